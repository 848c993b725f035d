use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnosis, Result};
use rustix::fs::{CWD, Mode, RenameFlags, mkfifoat, renameat_with};
use tempfile::TempDir;

use super::{EntryState, RootDir, check_path};

pub(crate) mod crash_injection;
mod hostile;
mod modes;

const TEMPORARY: &[u8] = b".ic-restore-test";

/// A root, and a directory beside it that nothing may be written into.
struct Place {
    _base: TempDir,
    tree: PathBuf,
    outside: PathBuf,
    root: RootDir,
}

impl Place {
    fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        let (tree, outside) = (base.path().join("tree"), base.path().join("outside"));
        fs::create_dir(&tree).unwrap();
        fs::create_dir(&outside).unwrap();
        let root = RootDir::open(&tree).unwrap();
        Self { _base: base, tree, outside, root }
    }

    fn at(&self, path: impl AsRef<[u8]>) -> PathBuf {
        self.tree.join(OsStr::from_bytes(path.as_ref()))
    }

    fn write(&self, path: impl AsRef<[u8]>, content: &[u8]) -> Result<()> {
        self.write_mode(path, 0o644, content)
    }

    fn write_mode(&self, path: impl AsRef<[u8]>, mode: u32, content: &[u8]) -> Result<()> {
        self.root.write_file(path.as_ref(), mode, TEMPORARY, &|_| true, &mut |file| put(file, content))
    }
}

fn put(file: &mut fs::File, content: &[u8]) -> Result<()> {
    file.write_all(content).map_err(|e| Diagnosis::new(Code::Io, e.to_string()))
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Permission bits do not bind this user.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The names in a directory, sorted.
fn names(directory: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().as_bytes().to_vec()).collect();
    names.sort();
    names
}

#[test]
fn impossible_paths_are_refused_everywhere() {
    let long = vec![b'x'; 256];
    let paths: [&[u8]; 19] = [
        b"",
        b"/",
        b"/etc/passwd",
        b"a/",
        b"a//b",
        b".",
        b"./a",
        b"..",
        b"../a",
        b"a/../../b",
        b"a/..",
        b".git",
        b"a/.GIT/config",
        b".gIt/hooks/pre-commit",
        b"GIT~1/config",
        b"a/.git./config",
        b".g\xe2\x80\x8cit/config",
        b"nul\0here",
        &long,
    ];
    let place = Place::new();
    for path in paths {
        let corrupt = |result: Result<()>| assert_eq!(result.unwrap_err().code(), Code::Corrupt, "{path:?}");
        corrupt(check_path(path));
        corrupt(place.write(path, b"x"));
        corrupt(place.root.make_symlink(path, b"t", TEMPORARY, &|_| true));
        corrupt(place.root.make_directory(path));
        corrupt(place.root.remove_file(path, &|_| true));
        corrupt(place.root.remove_directory(path));
        assert!(place.root.open_file(path).is_err());
        // The empty path is the root itself for what only looks and for its mode.
        if !path.is_empty() {
            corrupt(place.root.set_mode(path, 0o700, &|_| true));
            assert!(place.root.state(path).is_err());
            assert!(place.root.remove_temporary(path, TEMPORARY).is_err());
        }
    }
    for path in [&b"a"[..], b".gitignore", b"a/.github/x", b"...", b"a/b..c", &long[1..], b"\xff\n/\xfe"] {
        check_path(path).unwrap();
    }
    assert!(names(&place.tree).is_empty());
}

#[test]
fn a_temporary_name_leads_nowhere_else() {
    let place = Place::new();
    fs::write(place.outside.join("victim"), "theirs").unwrap();
    fs::write(place.at("file"), "old").unwrap();
    fs::create_dir(place.at("d")).unwrap();
    let names: [&[u8]; 8] = [b"../outside/x", b"../outside/victim", b"/tmp/x", b"d/x", b"", b"..", b".git", b"file"];
    for temporary in names {
        let error = place.root.write_file(b"file", 0o644, temporary, &|_| true, &mut |file| put(file, b"new"));
        assert_eq!(error.unwrap_err().code(), Code::Corrupt, "{temporary:?}");
        let error = place.root.make_symlink(b"file", b"t", temporary, &|_| true);
        assert_eq!(error.unwrap_err().code(), Code::Corrupt, "{temporary:?}");
    }
    assert_eq!(fs::read(place.at("file")).unwrap(), b"old");
    assert_eq!(fs::read(place.outside.join("victim")).unwrap(), b"theirs");
    assert_eq!(fs::read_dir(&place.outside).unwrap().count(), 1);
}

#[test]
fn a_file_of_the_temporary_name_is_not_ours_to_remove() {
    let place = Place::new();
    fs::write(place.at(TEMPORARY), "another's").unwrap();
    assert!(place.write("file", b"new").is_err());
    assert!(place.root.make_symlink(b"link", b"t", TEMPORARY, &|_| true).is_err());
    assert_eq!(fs::read(place.at(TEMPORARY)).unwrap(), b"another's");
    assert_eq!(names(&place.tree), [TEMPORARY]);
}

#[test]
fn what_stands_there_is_told() {
    let place = Place::new();
    fs::write(place.at("file"), "12345").unwrap();
    chmod(&place.at("file"), 0o4751);
    symlink("somewhere/\u{e9}", place.at("link")).unwrap();
    fs::create_dir(place.at("d")).unwrap();
    mkfifoat(CWD, place.at("fifo"), Mode::from_raw_mode(0o600)).unwrap();

    let EntryState::File(stat) = place.root.state(b"file").unwrap() else { panic!() };
    let meta = fs::metadata(place.at("file")).unwrap();
    assert_eq!((stat.dev, stat.ino, stat.size, stat.mode), (meta.dev(), meta.ino(), 5, 0o4751));
    assert_eq!(stat.mtime, (meta.mtime(), meta.mtime_nsec().try_into().unwrap()));
    assert_eq!(stat.ctime, (meta.ctime(), meta.ctime_nsec().try_into().unwrap()));
    let EntryState::Symlink(_, target) = place.root.state(b"link").unwrap() else { panic!() };
    assert_eq!(target, "somewhere/\u{e9}".as_bytes());
    assert!(matches!(place.root.state(b"d").unwrap(), EntryState::Directory(_)));
    assert!(matches!(place.root.state(b"").unwrap(), EntryState::Directory(_)));
    assert_eq!(place.root.state(b"fifo").unwrap(), EntryState::Special);
    for absent in [&b"none"[..], b"none/x", b"file/x", b"file/x/y", b"link/x"] {
        assert_eq!(place.root.state(absent).unwrap(), EntryState::Absent, "{absent:?}");
    }
}

#[test]
fn only_regular_files_are_opened() {
    let place = Place::new();
    fs::write(place.at("file"), "content").unwrap();
    symlink("file", place.at("link")).unwrap();
    fs::create_dir(place.at("d")).unwrap();
    // Without O_NONBLOCK this waits for a writer for ever.
    mkfifoat(CWD, place.at("fifo"), Mode::from_raw_mode(0o600)).unwrap();
    let mut content = String::new();
    place.root.open_file(b"file").unwrap().read_to_string(&mut content).unwrap();
    assert_eq!(content, "content");
    for path in [&b"link"[..], b"d", b"fifo", b"none"] {
        assert!(place.root.open_file(path).is_err(), "{path:?}");
    }
}

#[test]
fn files_are_made_and_replaced() {
    let place = Place::new();
    fs::create_dir(place.at("d")).unwrap();
    let names: [&[u8]; 5] = [b"plain", b"d/in it", b"d/new\nline", b"d/\xff\xfe", b"d/-rf *"];
    for name in names {
        place.write(name, b"one").unwrap();
        assert_eq!(fs::read(place.at(name)).unwrap(), b"one");
        let before = fs::metadata(place.at(name)).unwrap().ino();
        place.write(name, b"two").unwrap();
        assert_eq!(fs::read(place.at(name)).unwrap(), b"two");
        assert_ne!(fs::metadata(place.at(name)).unwrap().ino(), before, "replaced, not written into");
    }
    assert_eq!(self::names(&place.tree), [&b"d"[..], b"plain"]);
    assert_eq!(self::names(&place.at("d")).len(), 4);
}

#[test]
fn other_names_of_a_replaced_file_keep_its_content() {
    let place = Place::new();
    fs::write(place.outside.join("store"), "shared").unwrap();
    fs::hard_link(place.outside.join("store"), place.at("file")).unwrap();
    place.write_mode("file", 0o755, b"new").unwrap();
    assert_eq!(fs::read(place.outside.join("store")).unwrap(), b"shared");
    assert_eq!(mode(&place.outside.join("store")), 0o644);
}

#[test]
fn links_are_made_replaced_and_never_followed() {
    let place = Place::new();
    fs::write(place.outside.join("victim"), "theirs").unwrap();
    let victim = place.outside.join("victim");
    place.root.make_symlink(b"link", victim.as_os_str().as_bytes(), TEMPORARY, &|_| true).unwrap();
    assert_eq!(fs::read_link(place.at("link")).unwrap(), victim);

    let error = place.root.set_mode(b"link", 0o777, &|_| true);
    assert!(error.is_err());
    place.root.make_symlink(b"link", b"\xff\n", TEMPORARY, &|_| true).unwrap();
    assert_eq!(fs::read_link(place.at("link")).unwrap().as_os_str().as_bytes(), b"\xff\n");
    place.write("link", b"a file now").unwrap();
    assert!(fs::symlink_metadata(place.at("link")).unwrap().is_file());
    place.root.make_symlink(b"link", b"../outside/victim", TEMPORARY, &|_| true).unwrap();
    place.root.remove_file(b"link", &|now| matches!(now, EntryState::Symlink(..))).unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"theirs");
    assert!(names(&place.tree).is_empty());
}

#[test]
fn directories_come_and_go() {
    let place = Place::new();
    place.root.make_directory(b"d").unwrap();
    place.root.make_directory(b"d/e").unwrap();
    assert_eq!(mode(&place.at("d/e")), 0o700);
    assert!(place.root.make_directory(b"d").is_err());
    assert!(place.root.make_directory(b"none/d").is_err());
    let error = place.root.remove_directory(b"d").unwrap_err();
    let source = std::error::Error::source(&error).unwrap();
    let source = source.downcast_ref::<std::io::Error>().unwrap();
    assert_eq!(source.kind(), std::io::ErrorKind::DirectoryNotEmpty);
    place.root.remove_directory(b"d/e").unwrap();
    place.root.remove_directory(b"d").unwrap();
    fs::write(place.at("file"), "").unwrap();
    assert!(place.root.remove_directory(b"file").is_err());
    place.root.remove_file(b"file", &|_| true).unwrap();
    fs::create_dir(place.at("d")).unwrap();
    assert!(place.root.remove_file(b"d", &|_| true).is_err());
    assert!(place.at("d").exists());
}

#[test]
fn nothing_changes_when_the_caller_says_no() {
    let place = Place::new();
    fs::write(place.at("file"), "theirs").unwrap();
    chmod(&place.at("file"), 0o640);
    let no = |found: &EntryState| -> bool {
        assert!(matches!(found, EntryState::File(stat) if stat.size == 6));
        false
    };
    let results = [
        place.root.write_file(b"file", 0o755, TEMPORARY, &no, &mut |file| put(file, b"ours")),
        place.root.make_symlink(b"file", b"t", TEMPORARY, &no),
        place.root.set_mode(b"file", 0o777, &no),
        place.root.remove_file(b"file", &no),
    ];
    for result in results {
        assert_eq!(result.unwrap_err().code(), Code::FileConflict);
    }
    assert_eq!(fs::read(place.at("file")).unwrap(), b"theirs");
    assert_eq!(mode(&place.at("file")), 0o640);
    assert_eq!(names(&place.tree), [b"file"]);
}

#[test]
fn the_caller_is_asked_after_the_content_is_written() {
    let place = Place::new();
    fs::write(place.at("file"), "old").unwrap();
    let before = place.root.state(b"file").unwrap();
    let file = place.at("file");
    let result = place.root.write_file(b"file", 0o644, TEMPORARY, &|now| *now == before, &mut |out| {
        fs::write(&file, "changed while the content was written").unwrap();
        put(out, b"ours")
    });
    assert_eq!(result.unwrap_err().code(), Code::FileConflict);
    assert!(fs::read(&file).unwrap().starts_with(b"changed"));
}

#[test]
fn a_failure_leaves_no_temporary_file() {
    let place = Place::new();
    fs::write(place.at("file"), "old").unwrap();
    fs::create_dir(place.at("d")).unwrap();
    let broken = |file: &mut fs::File| {
        put(file, b"half")?;
        Err(Diagnosis::new(Code::Corrupt, "The object is damaged."))
    };
    let error = place.root.write_file(b"file", 0o644, TEMPORARY, &|_| true, &mut { broken }).unwrap_err();
    assert_eq!(error.code(), Code::Corrupt);
    assert!(place.write("d", b"over a directory").is_err());
    assert!(place.root.make_symlink(b"d", b"t", TEMPORARY, &|_| true).is_err());
    assert!(place.root.make_symlink(b"file", b"nul\0", TEMPORARY, &|_| true).is_err());
    assert!(place.write("none/file", b"").is_err());
    assert_eq!(fs::read(place.at("file")).unwrap(), b"old");
    assert_eq!(names(&place.tree), [&b"d"[..], b"file"]);
}

#[test]
fn what_a_killed_restore_left_is_removed() {
    let place = Place::new();
    fs::create_dir(place.at("d")).unwrap();
    for name in ["d/.ic-a-1", "d/.ic-a-2", "d/.ic-b-1", "d/other"] {
        fs::write(place.at(name), "").unwrap();
    }
    symlink(&place.outside, place.at("d/.ic-a-3")).unwrap();
    fs::create_dir(place.at("d/.ic-a-0")).unwrap();
    fs::create_dir(place.at("d/.ic-a-9")).unwrap();
    mkfifoat(CWD, place.at("d/.ic-a-fifo"), Mode::from_raw_mode(0o600)).unwrap();
    assert_eq!(place.root.remove_temporary(b"d", b".ic-a-").unwrap(), 3);
    let left: [&[u8]; 5] = [b".ic-a-0", b".ic-a-9", b".ic-a-fifo", b".ic-b-1", b"other"];
    assert_eq!(names(&place.at("d")), left);
    assert!(place.outside.exists());
    assert!(place.root.remove_temporary(b"none", b".ic-a-").is_err());
    fs::write(place.at(".ic-a-"), "").unwrap();
    assert_eq!(place.root.remove_temporary(b"", b".ic-a-").unwrap(), 1);
    assert!(place.root.remove_temporary(b"d", b"").is_err(), "every name begins so");
    assert_eq!(names(&place.at("d")).len(), 5);
}
