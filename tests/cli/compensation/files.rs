//! Files that are restored to their content at the time when their compensation was declared.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::{project, text, undo};
use crate::support::Project;

fn declare(project: &Project, paths: &[&Path]) {
    let mut words: Vec<&OsStr> = ["compensation", "add", "@", "--step", "files"].map(OsStr::new).to_vec();
    for path in paths {
        words.extend([OsStr::new("--restore-file"), path.as_os_str()]);
    }
    let outcome = project.run_words(words);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("its mode").permissions().mode() & 0o7777
}

#[test]
fn what_stood_there_stands_there_again() {
    let project = project();
    let at = |name: &str| project.root().join(name);
    project.write("run.sh", "old\n");
    fs::set_permissions(at("run.sh"), Permissions::from_mode(0o750)).expect("a mode");
    symlink("run.sh", at("link")).expect("a link");
    let odd = PathBuf::from(OsStr::from_bytes(b"deep/\xff\xfe name"));
    project.write(&odd, "kept");
    project.write("lost/below/it", "kept too");
    let named: Vec<&Path> = ["run.sh", "link", "new/made.txt", "lost/below/it"].map(Path::new).to_vec();
    declare(&project, &[named.as_slice(), &[odd.as_path()]].concat());

    project.write("run.sh", "new\n");
    fs::set_permissions(at("run.sh"), Permissions::from_mode(0o600)).expect("a mode");
    fs::remove_file(at("link")).expect("the link");
    project.write("link", "a file in its place");
    project.write("new/made.txt", "made");
    project.write(&odd, "changed");
    fs::remove_dir_all(at("lost")).expect("a directory");
    undo(&project, "", 0);

    assert_eq!(fs::read_to_string(at("run.sh")).expect("the file"), "old\n");
    assert_eq!(mode(&at("run.sh")), 0o750);
    assert_eq!(fs::read_link(at("link")).expect("the link"), Path::new("run.sh"));
    assert!(!at("new/made.txt").exists(), "it was not there");
    assert_eq!(fs::read_to_string(project.root().join(&odd)).expect("the file"), "kept");
    assert_eq!(fs::read_to_string(at("lost/below/it")).expect("the file"), "kept too");
}

#[test]
fn a_file_that_existed_is_never_deleted() {
    let project = project();
    project.write("settings", "mine");
    declare(&project, &[Path::new("settings")]);
    undo(&project, "", 0);
    assert_eq!(fs::read_to_string(project.root().join("settings")).expect("the file"), "mine");
    declare(&project, &[Path::new("settings")]);
    fs::remove_file(project.root().join("settings")).expect("the file");
    undo(&project, "", 0);
    assert_eq!(fs::read_to_string(project.root().join("settings")).expect("the file"), "mine");
}

#[test]
fn a_path_is_meant_from_where_one_stands() {
    let project = project();
    project.write("sub/a", "old");
    project.ok("compensation add @ --step s --restore-file a -C sub");
    let action = &project.json("compensation list @")[0]["action"];
    // Of "old".
    let hash = "cba06b5736faf67e54b07b561eae94395e774c517a7d910a54369e1263ccfbd4";
    assert_eq!((&action["files"][0]["path"], &action["files"][0]["sha256"]), (&json!("sub/a"), &json!(hash)));
    project.write("sub/a", "new");
    undo(&project, "", 0);
    assert_eq!(fs::read_to_string(project.root().join("sub/a")).expect("the file"), "old");
}

#[test]
fn a_directory_in_its_place_stays_and_is_a_failure() {
    let project = project();
    declare(&project, &[Path::new("made")]);
    project.write("made/by/others", "else");
    let report = undo(&project, "", 4);
    assert!(text(&report["results"][0]["error"]).contains("There is a directory"), "{report}");
    assert!(project.root().join("made/by/others").exists());
    fs::remove_dir_all(project.root().join("made")).expect("the directory");
    undo(&project, "", 0);
}

#[test]
fn what_cannot_be_put_back_is_refused_when_it_is_declared() {
    let project = project();
    project.write("real/file", "x");
    symlink("real", project.root().join("link")).expect("a link");
    for (path, code) in [
        (".", "invalid_value"),
        ("real", "invalid_value"),
        (".git/config", "invalid_value"),
        (".ic/ic.db", "invalid_value"),
        (".ic/objects.db", "invalid_value"),
        ("link/file", "invalid_value"),
        ("../elsewhere", "path_not_found"),
        ("/etc/hosts", "path_not_found"),
        ("''", "invalid_value"),
    ] {
        let line = format!("compensation add @ --step s --restore-file {path}");
        assert_eq!(project.refused(&line), (3, code.to_owned()), "{path}");
    }
}

#[test]
fn pruning_leaves_what_an_undo_needs() {
    let project = project();
    project.write("settings", "only the compensation has this");
    declare(&project, &[Path::new("settings")]);
    project.write("settings", "changed");
    project.ok("checkpoint prune --older-than 0s --keep-last 0 --grace 0s");
    undo(&project, "", 0);
    let found = fs::read_to_string(project.root().join("settings")).expect("the file");
    assert_eq!(found, "only the compensation has this");
}

/// Whatever wrote it, and even if a rule ignores it.
#[test]
fn what_stands_in_their_place_is_saved_first() {
    let project = project();
    project.write(".gitignore", "*.log\n");
    project.write("a.log", "old\n");
    declare(&project, &[Path::new("a.log")]);
    project.write("a.log", "written since\n");
    let report = undo(&project, "", 0);
    assert_eq!(fs::read_to_string(project.root().join("a.log")).expect("the file"), "old\n");
    let kept = text(&report["safety_checkpoint_id"]);
    assert_eq!(project.ok(&format!("checkpoint cat {kept} a.log")), "written since");
    assert_eq!(undo(&project, "", 0)["safety_checkpoint_id"], json!(null), "nothing is left to restore");
}
