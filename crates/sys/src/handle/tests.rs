use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use rustix::fs::{Gid, Uid};
use rustix::io::Errno;

use super::{FileByName, Handle, Way, set_directory_mode};
use crate::stat::{mode, permissions};

/// Each way that this system has.
fn ways(directory: &File, name: &str) -> Vec<Handle> {
    let portable = Handle(Way::Name(FileByName::open(directory, name.as_bytes()).unwrap()));
    vec![Handle::open(directory, name.as_bytes()).unwrap(), portable]
}

#[test]
fn a_handle_changes_what_it_was_opened_for_by_each_way() {
    let place = tempfile::tempdir().unwrap();
    let root = File::open(place.path()).unwrap();
    let path = place.path().join("file");
    for at in 0..2 {
        for bits in [0o644, 0o000] {
            let _ = fs::remove_file(&path);
            fs::write(&path, "content").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(bits)).unwrap();
            let handle = ways(&root, "file").swap_remove(at);
            handle.set_mode(permissions(0o4751)).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o4751, "{handle:?}");
            handle.set_mode(permissions(bits)).unwrap();
            let meta = fs::metadata(&path).unwrap();
            let (user, group) = (Uid::from_raw(meta.uid()), Gid::from_raw(meta.gid()));
            handle.set_owner(Some(user), group).unwrap();
            match handle.set_attribute(c"user.test", Some(b"value")) {
                Err(Errno::OPNOTSUPP) => println!("skipped: no attributes on this file system"),
                // Only who may write into a file may set its attributes, by either way.
                Err(Errno::ACCESS) => assert!(bits == 0 && !rustix::process::geteuid().is_root(), "{handle:?}"),
                set => {
                    set.unwrap();
                    let mut value = vec![0; handle.attribute(c"user.test", &mut []).unwrap()];
                    assert_eq!(handle.attribute(c"user.test", &mut value), Ok(5));
                    assert_eq!(value, b"value");
                    let mut names = vec![0; handle.attribute_names(&mut []).unwrap()];
                    handle.attribute_names(&mut names).unwrap();
                    assert!(names.split(|byte| *byte == 0).any(|name| name == b"user.test"));
                    handle.set_attribute(c"user.test", None).unwrap();
                    assert!(handle.attribute(c"user.test", &mut []).is_err());
                }
            }
            assert_eq!(mode(&handle.stat().unwrap()) & 0o7777, bits, "the bits are as they were: {handle:?}");
        }
    }
}

#[test]
fn a_file_that_took_the_name_is_not_changed() {
    let place = tempfile::tempdir().unwrap();
    let root = File::open(place.path()).unwrap();
    let path = place.path().join("file");
    let target = place.path().join("target");
    fs::write(&target, "").unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
    for at in 0..2 {
        fs::write(&path, "first").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
        let handle = ways(&root, "file").swap_remove(at);
        fs::rename(&path, place.path().join("moved")).unwrap();
        symlink(&target, &path).unwrap();
        // The first file, or nothing.
        let _ = handle.set_mode(permissions(0o777));
        assert_eq!(fs::metadata(&target).unwrap().mode() & 0o777, 0o600, "{handle:?}");
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_directory_is_opened_and_closed_again() {
    let place = tempfile::tempdir().unwrap();
    let root = File::open(place.path()).unwrap();
    let closed = place.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o300)).unwrap();
    let directory = crate::descent::open(&root.into(), b"closed").unwrap();
    assert_eq!(fs::metadata(&closed).unwrap().mode() & 0o777, 0o300);
    set_directory_mode(&directory, permissions(0o700)).unwrap();
    assert_eq!(fs::metadata(&closed).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn an_open_file_is_held_without_its_name() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("file");
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path).unwrap();
    let handle = Handle::of_file(&file).unwrap();
    fs::remove_file(&path).unwrap();
    handle.set_mode(permissions(0o640)).unwrap();
    assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o640);
}
