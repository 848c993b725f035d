use std::fs::{self, File, OpenOptions};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;

use super::linux::Lease;
use super::map::{Access, SharedMap};
use super::{Writers, writers_of};

const PAGE: usize = 4096;

fn file() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), [b'a'; PAGE]).unwrap();
    file
}

fn asked(path: &Path) -> Writers {
    writers_of(File::open(path).unwrap().as_fd())
}

fn to_read_and_write(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(path).unwrap()
}

#[test]
fn only_what_may_still_write_counts() {
    let place = file();
    // The handle that made the file may write.
    let path = place.into_temp_path();
    assert_eq!(asked(&path), Writers::None, "nothing has it open");

    let reader = File::open(&path).unwrap();
    let read = SharedMap::new(&reader, PAGE, Access::Read).unwrap();
    assert_eq!(asked(&path), Writers::None, "open and mapped for reading");
    drop(read);

    let writer = OpenOptions::new().append(true).open(&path).unwrap();
    assert_eq!(asked(&path), Writers::Some, "open for writing");
    drop(writer);
    assert_eq!(asked(&path), Writers::None);

    let map = SharedMap::new(&to_read_and_write(&path), PAGE, Access::Write).unwrap();
    map.store(0, b'b');
    assert_eq!(fs::read(&path).unwrap()[0], b'b');
    assert_eq!(asked(&path), Writers::Some, "mapped for writing, and every handle is closed");
    drop(map);
    assert_eq!(asked(&path), Writers::None);

    let may_become_writable = SharedMap::new(&to_read_and_write(&path), PAGE, Access::Read).unwrap();
    assert_eq!(asked(&path), Writers::Some, "its protection can be changed, or was");
    drop(may_become_writable);
    assert_eq!(asked(&path), Writers::None);
}

#[test]
fn what_is_no_regular_file_is_not_known() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(writers_of(File::open(directory.path()).unwrap().as_fd()), Writers::Unknown);
}

#[test]
fn who_opens_the_file_in_the_moment_of_the_lease_ends_no_process_and_waits_for_the_release() {
    let path = file().into_temp_path();
    let signalled = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGURG, signalled.clone()).unwrap();
    let opened = Arc::new(AtomicBool::new(false));
    let reader = File::open(&path).unwrap();
    let lease = Lease::take(reader.as_fd()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            drop(OpenOptions::new().write(true).open(&path).unwrap());
            opened.store(true, SeqCst);
        });
        // SIGIO would have ended this process here.
        while !signalled.load(SeqCst) {
            std::thread::yield_now();
        }
        assert!(!opened.load(SeqCst), "the lease is held");
        drop(lease);
    });
    assert!(opened.load(SeqCst));
    assert_eq!(asked(&path), Writers::None);
}

#[test]
fn many_who_open_it_again_and_again_are_never_refused() {
    let path = file().into_temp_path();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(SeqCst) {
                    drop(to_read_and_write(&path));
                }
            });
        }
        let answers: Vec<Writers> = (0..20_000).map(|_| asked(&path)).collect();
        is_over.store(true, SeqCst);
        assert!(!answers.contains(&Writers::Unknown));
    });
    assert_eq!(asked(&path), Writers::None, "each lease was released");
}
