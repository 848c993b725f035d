use std::fs::OpenOptions;
use std::path::Path;

use ic_sys::lease::map::{Access, SharedMap};

use super::*;

/// What is known of a file's maps in a capture that begins now, and whether every process was looked at for it.
fn looked(root: &Path, file: &Path, flush: Flush) -> (bool, bool) {
    let maps = Maps::new(&OwnedFd::from(File::open(root).unwrap()), flush).unwrap();
    let file = File::open(file).unwrap();
    let key = Key::of(&fstat(&file).unwrap());
    let answer = (maps.may_be_stored_to(&file, &key), maps.files.get().is_some());
    assert!(maps.noticing.is_some() || flush == Flush::Never || answer.1, "no lease is trusted here");
    answer
}

#[test]
fn processes_are_looked_at_only_where_the_kernel_does_not_say_enough() {
    const LONG: u64 = CHEAP_TO_READ + 1;
    let place = tempfile::tempdir().unwrap();
    let root = place.path();
    if Maps::new(&OwnedFd::from(File::open(root).unwrap()), Flush::Auto).unwrap().noticing.is_none() {
        println!("skipped: temporary files lie on a file system whose leases are not used");
        return;
    }
    let (short, long) = (root.join("short"), root.join("long"));
    for (path, length) in [(&short, 8192), (&long, LONG)] {
        File::create(path).unwrap().set_len(length).unwrap();
        assert_eq!(looked(root, path, Flush::Auto), (false, false), "nothing writes to it");
        assert_eq!(looked(root, path, Flush::Always), (false, true));
    }
    let open = |path: &Path| OpenOptions::new().read(true).write(true).open(path).unwrap();
    let writers = [open(&short), open(&long)];
    assert_eq!(looked(root, &short, Flush::Auto), (true, false), "it is read again");
    assert_eq!(looked(root, &long, Flush::Auto), (false, true), "it is open, and not mapped");
    let maps = writers.map(|file| SharedMap::new(&file, 4096, Access::Write).unwrap());
    assert_eq!(looked(root, &short, Flush::Auto), (true, false), "its handle is closed");
    assert_eq!(looked(root, &long, Flush::Auto), (true, true));
    assert_eq!(looked(root, &long, Flush::Never), (false, true), "nothing is looked at for it");
    drop(maps);
    assert_eq!(looked(root, &long, Flush::Auto), (false, false));
}

#[test]
fn a_file_system_that_keeps_no_maps_of_its_own_is_looked_at_by_its_processes() {
    let memory = Path::new("/dev/shm");
    let Ok(place) = tempfile::tempdir_in(memory) else {
        println!("skipped: nothing can be written in /dev/shm here");
        return;
    };
    if ic_sys::memory_maps::shared_files().is_none() {
        println!("skipped: this system does not tell what is mapped");
        return;
    }
    let path = place.path().join("file");
    std::fs::write(&path, [0; 4096]).unwrap();
    assert_eq!(looked(place.path(), &path, Flush::Auto), (false, true));
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let map = SharedMap::new(&file, 4096, Access::Write).unwrap();
    drop(file);
    assert_eq!(looked(place.path(), &path, Flush::Auto), (true, true));
    drop(map);
}
