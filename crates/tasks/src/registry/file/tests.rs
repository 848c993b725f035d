use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use ic_base::Code;
use tempfile::{TempDir, tempdir};

use super::{FileBeforeTask, MAX_BYTES};

fn directory() -> TempDir {
    tempdir().unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Refused, and everything that is named still has its content.
fn assert_refused(before: &FileBeforeTask, untouched: &[(&Path, &str)]) {
    let error = before.put_back().unwrap_err();
    assert_eq!(error.code(), Code::Conflict, "{error:?}");
    for (path, content) in untouched {
        assert_eq!(fs::read_to_string(path).unwrap(), *content);
    }
}

#[test]
fn a_new_file_is_deleted_once_and_again() {
    let root = directory();
    let path = root.path().join(OsStr::from_bytes(b"not \xff utf-8"));
    let before = FileBeforeTask::of(&path);
    before.put_back().unwrap();
    fs::write(&path, "new").unwrap();
    before.put_back().unwrap();
    before.put_back().unwrap();
    assert!(!path.exists());
}

#[test]
fn a_new_link_is_deleted_and_what_it_leads_to_stays() {
    let root = directory();
    let (path, target) = (root.path().join("link"), root.path().join("target"));
    fs::write(&target, "precious").unwrap();
    let before = FileBeforeTask::of(&path);
    symlink(&target, &path).unwrap();
    before.put_back().unwrap();
    assert!(path.symlink_metadata().is_err());
    assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
}

#[test]
fn a_file_in_a_new_directory_is_deleted_and_the_directory_stays() {
    let root = directory();
    let path = root.path().join("made/below/file");
    let before = FileBeforeTask::of(&path);
    before.put_back().unwrap();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "new").unwrap();
    before.put_back().unwrap();
    assert!(!path.exists() && path.parent().unwrap().is_dir());
}

#[test]
fn an_old_file_gets_its_content_and_permissions_back() {
    let root = directory();
    let path = root.path().join("old");
    fs::write(&path, "precious").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    let before = FileBeforeTask::of(&path);
    let is_back = || fs::read_to_string(&path).unwrap() == "precious" && mode(&path) == 0o640;

    fs::write(&path, "overwritten").unwrap();
    before.put_back().unwrap();
    assert!(is_back());
    fs::remove_file(&path).unwrap();
    before.put_back().unwrap();
    assert!(is_back());
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    before.put_back().unwrap();
    assert!(is_back());
    let left: Vec<_> = fs::read_dir(root.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn an_old_file_that_is_unchanged_is_not_written() {
    let root = directory();
    let path = root.path().join("old");
    fs::write(&path, "precious").unwrap();
    let (before, stamp) = (FileBeforeTask::of(&path), fs::metadata(&path).unwrap().modified().unwrap());
    before.put_back().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), stamp);
}

#[test]
fn an_old_file_comes_back_with_its_directory() {
    let root = directory();
    let path = root.path().join("a/b/old");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "precious").unwrap();
    let before = FileBeforeTask::of(&path);
    fs::remove_dir_all(root.path().join("a")).unwrap();
    before.put_back().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}

#[test]
fn an_old_file_that_became_a_link_does_not_overwrite_what_the_link_leads_to() {
    let root = directory();
    let (path, other) = (root.path().join("old"), root.path().join("other"));
    fs::write(&path, "precious").unwrap();
    fs::write(&other, "other").unwrap();
    let before = FileBeforeTask::of(&path);
    fs::remove_file(&path).unwrap();
    symlink(&other, &path).unwrap();
    before.put_back().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    assert!(path.symlink_metadata().unwrap().is_file());
    assert_eq!(fs::read_to_string(&other).unwrap(), "other");
}

#[test]
fn the_longest_file_that_is_kept_comes_back_and_a_longer_one_is_refused() {
    let root = directory();
    let (kept, longer) = (root.path().join("kept"), root.path().join("longer"));
    let content = vec![b'x'; usize::try_from(MAX_BYTES).unwrap()];
    fs::write(&kept, &content).unwrap();
    fs::write(&longer, [content.as_slice(), b"x"].concat()).unwrap();
    let undos = [&kept, &longer].map(|path| FileBeforeTask::of(path));
    fs::write(&kept, "overwritten").unwrap();
    fs::write(&longer, "overwritten").unwrap();
    undos[0].put_back().unwrap();
    assert_eq!(fs::read(&kept).unwrap(), content);
    assert_refused(&undos[1], &[(&longer, "overwritten")]);
}

#[test]
fn what_is_no_file_is_refused() {
    let root = directory();
    let (target, link) = (root.path().join("target"), root.path().join("link"));
    fs::write(&target, "precious").unwrap();
    symlink(&target, &link).unwrap();
    let undos =
        [&link, root.path(), Path::new("/"), &root.path().join("a/../b"), Path::new("")].map(FileBeforeTask::of);
    for undo in &undos {
        assert_refused(undo, &[(&target, "precious"), (&link, "precious")]);
    }
}

#[test]
fn a_directory_in_the_place_of_the_file_is_never_removed() {
    let root = directory();
    let (new, old) = (root.path().join("new"), root.path().join("old"));
    fs::write(&old, "precious").unwrap();
    let undos = [&new, &old].map(|path| FileBeforeTask::of(path));
    fs::remove_file(&old).unwrap();
    for path in [&new, &old] {
        fs::create_dir(path).unwrap();
    }
    for undo in &undos {
        assert_refused(undo, &[]);
    }
    assert!(new.is_dir() && old.is_dir());
}

#[test]
fn a_link_in_the_way_leads_to_no_other_file() {
    let (root, elsewhere) = (directory(), directory());
    let foreign = elsewhere.path().join("file");
    fs::write(&foreign, "precious").unwrap();
    let below = root.path().join("made/file");
    fs::create_dir(root.path().join("kept")).unwrap();
    let (in_kept, old) = (root.path().join("kept/file"), root.path().join("kept/old"));
    fs::write(&old, "old").unwrap();
    let undos = [&below, &in_kept, &old].map(|path| FileBeforeTask::of(path));

    symlink(elsewhere.path(), root.path().join("made")).unwrap();
    fs::rename(root.path().join("kept"), root.path().join("moved")).unwrap();
    symlink(elsewhere.path(), root.path().join("kept")).unwrap();
    for undo in &undos {
        assert_refused(undo, &[(&foreign, "precious"), (&root.path().join("moved/old"), "old")]);
    }
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
}

#[test]
fn a_link_that_was_in_the_way_before_is_followed() {
    let root = directory();
    fs::create_dir(root.path().join("real")).unwrap();
    symlink("real", root.path().join("link")).unwrap();
    let path = root.path().join("link/new");
    let before = FileBeforeTask::of(&path);
    fs::write(&path, "new").unwrap();
    before.put_back().unwrap();
    assert!(!root.path().join("real/new").exists());
}
