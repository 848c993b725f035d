//! `ic man`

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::support::{Page, Project};

/// The names in a directory.
fn names(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn man() {
    Page::without_ledger("ic man")
        .does("man pages")
        .does("man pages")
        .refuses("man .ic.yaml", 3, "invalid_value")
        .ends();
}

#[test]
fn a_page_for_everything_is_written() {
    let project = Project::without_ledger();
    let first = project.json("man pages");
    let directory = project.root().join("pages");
    let written = first["written"].as_array().expect("names");
    assert_eq!(written.len(), names(&directory).len());
    for name in ["ic.1", "ic-run.1", "ic-run-rollback.1", "ic-events-cursor-reset.1", "ic-man.1"] {
        assert!(written.iter().any(|page| page == name), "{name}");
    }
    // What is right is left alone; what is not is put right, and nothing else.
    let old = fs::metadata(directory.join("ic.1")).expect("a page").modified().expect("a time");
    fs::write(directory.join("ic-run.1"), "old").expect("an old page");
    fs::write(directory.join("other.1"), "mine").expect("another program's page");
    assert_eq!(project.json("man pages")["written"], serde_json::json!(["ic-run.1"]));
    assert_eq!(project.json("man pages")["written"], serde_json::json!([]));
    assert_eq!(fs::metadata(directory.join("ic.1")).expect("a page").modified().expect("a time"), old);
    assert_eq!(fs::read_to_string(directory.join("other.1")).expect("the page"), "mine");
    // From the directory that -C names, and where names are no UTF-8.
    project.json("-C pages man more");
    assert!(directory.join("more/ic.1").exists());
    let odd = std::ffi::OsStr::from_bytes(b"p\xff");
    let record = project.run_words([odd_word("man"), odd, odd_word("--json")]).json();
    assert!(record["directory_b64"].is_string() && project.root().join(odd).join("ic.1").exists());
}

fn odd_word(word: &str) -> &std::ffi::OsStr {
    std::ffi::OsStr::new(word)
}

#[test]
fn all_pages_are_written_or_none() {
    let project = Project::without_ledger();
    let directory = project.root().join("pages");
    fs::create_dir_all(directory.join("ic-run-rollback.1")).expect("a directory in the way");
    fs::write(directory.join("ic.1"), "old").expect("an old page");
    let before = names(&directory);
    assert_eq!(project.refused("man pages"), (3, "invalid_value".to_owned()));
    assert_eq!((names(&directory), fs::read(directory.join("ic.1")).expect("the page")), (before, b"old".to_vec()));
    // What is missing above it is made, too.
    project.ok("man elsewhere/share/man1");
    // A link to a directory is one; a link to nothing is in the way.
    std::os::unix::fs::symlink("pages", project.root().join("link")).expect("a link");
    std::os::unix::fs::symlink("nowhere", project.root().join("broken")).expect("a link");
    fs::remove_dir(directory.join("ic-run-rollback.1")).expect("out of the way");
    project.ok("man link");
    assert_eq!(project.refused("man broken"), (3, "invalid_value".to_owned()));
    if !rustix::process::geteuid().is_root() {
        let closed = project.root().join("closed");
        fs::create_dir(&closed).expect("a directory");
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).expect("read-only");
        assert_eq!(project.refused("man closed").1, "permission_denied");
        assert_eq!(project.refused("man closed/new").1, "permission_denied");
        assert!(names(&closed).is_empty());
    }
}

#[test]
fn a_full_disk_leaves_nothing() {
    let project = Project::without_ledger();
    // No file may grow beyond a few blocks.
    let mut shell = Command::new("bash");
    shell.args(["-c", "ulimit -f 1; trap '' XFSZ; exec \"$0\" man pages"]).arg(crate::support::BINARY);
    let output = shell.current_dir(project.root()).output().expect("bash");
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!project.root().join("pages").exists());
}

#[test]
fn man_and_mandoc_have_nothing_to_say() {
    let project = Project::without_ledger();
    project.ok("man pages");
    let pages: Vec<_> = names(&project.root().join("pages")).into_iter().map(|n| format!("pages/{n}")).collect();
    for (program, arguments) in [("mandoc", &["-Tlint", "-Wwarning"][..]), ("man", &["--warnings", "-l"][..])] {
        let mut command = Command::new(program);
        command.args(arguments).args(&pages).current_dir(project.root());
        let Ok(output) = command.env("LC_ALL", "C.UTF-8").output() else {
            eprintln!("skipped: no {program}");
            continue;
        };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = if program == "man" { String::new() } else { text.clone() };
        assert_eq!(said + &String::from_utf8_lossy(&output.stderr), "", "{program}");
        assert!(output.status.success(), "{program}");
        if program == "man" {
            for part in ["ic run rollback @ --to-phase planned --dry-run", "EXIT STATUS", "ic-run-advance(1)"] {
                assert!(text.contains(part), "{part}");
            }
        }
    }
}
