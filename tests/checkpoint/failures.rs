//! Single files that cannot be restored: they are named, they are as they were, and the rest is restored.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ic_testkit::{Cli, write_in};

use crate::disk::Tmpfs;
use crate::project::{create, project, restore, told, tree};

/// A path that cannot be changed, not even by root, until this value is dropped.
pub(crate) struct Immutable(PathBuf);

impl Immutable {
    /// `None` where the file system or the user may not do this.
    pub(crate) fn new(path: &Path) -> Option<Self> {
        let changed = Command::new("chattr").arg("+i").arg(path).output().is_ok_and(|o| o.status.success());
        if !changed {
            println!("skipped: no file can be made immutable here");
        }
        changed.then(|| Self(path.to_owned()))
    }
}

impl Drop for Immutable {
    fn drop(&mut self) {
        let _ = Command::new("chattr").arg("-i").arg(&self.0).status();
    }
}

/// Restores, of which a part must fail, and returns the paths that did.
fn restore_partly(cli: &Cli, id: &str) -> Vec<String> {
    let outcome = cli.run(["checkpoint", "restore", id, "--yes", "--json"]);
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    let report = outcome.json();
    assert_eq!(report["status"], "partial", "{report}");
    let failed = told(&report, "failed", "error");
    assert!(failed.iter().all(|(_, error)| !error.is_empty()), "{report}");
    let changed = told(&report, "changes", "change");
    assert!(!failed.iter().any(|(path, _)| changed.iter().any(|(other, _)| other == path)), "{report}");
    failed.into_iter().map(|(path, _)| path).collect()
}

#[test]
fn an_immutable_file_is_named_and_the_rest_is_restored() {
    let cli = project();
    for name in ["a/first", "a/stuck", "z/last", "stuck-directory/x"] {
        write_in(cli.root(), name, "old");
    }
    let id = create(&cli);
    let wanted = tree(&cli);
    for name in ["a/first", "a/stuck", "z/last", "stuck-directory/x", "new", "stuck-directory/new"] {
        write_in(cli.root(), name, "new content");
    }
    let before = tree(&cli);
    let Some(file) = Immutable::new(&cli.root().join("a/stuck")) else { return };
    let Some(directory) = Immutable::new(&cli.root().join("stuck-directory")) else { return };
    let failed = restore_partly(&cli, &id);
    assert_eq!(failed, ["a/stuck", "stuck-directory/new", "stuck-directory/x"]);
    let now = tree(&cli);
    now.assert_no_temporary("the partial restore");
    for path in now.paths().chain(wanted.paths()) {
        let shown = String::from_utf8_lossy(path);
        let is_stuck = failed.iter().any(|failed| failed.as_bytes() == path);
        let expected = if is_stuck { &before } else { &wanted };
        assert!(now.get(path) == expected.get(path), "{shown:?}");
    }
    drop((file, directory));
    cli.ok(["redo", "--yes"]);
    tree(&cli).assert_is(&before, "the undo of a part");
    restore(&cli, &id);
    tree(&cli).assert_is(&wanted, "the restore of everything");
}

#[test]
fn a_read_only_place_is_named_and_the_rest_is_restored() {
    let cli = project();
    let point = cli.root().join("mounted");
    let Some(disk) = Tmpfs::mount(&point, 2) else { return };
    write_in(cli.root(), "mounted/x", "old");
    write_in(cli.root(), "mounted/mode", "old");
    write_in(cli.root(), "plain", "old");
    let id = create(&cli);
    let wanted = tree(&cli);
    write_in(cli.root(), "mounted/x", "new");
    write_in(cli.root(), "mounted/since", "new");
    write_in(cli.root(), "plain", "new");
    crate::forest::set_mode(&cli.root().join("mounted/mode"), 0o755);
    disk.remount("ro");
    let failed = restore_partly(&cli, &id);
    assert_eq!(failed, ["mounted/mode", "mounted/since", "mounted/x"]);
    assert_eq!(fs::read_to_string(cli.root().join("plain")).expect("the file"), "old");
    disk.remount("rw");
    restore(&cli, &id);
    tree(&cli).assert_is(&wanted, "the restore of everything");
}

#[test]
fn a_directory_that_cannot_go_leaves_the_rest_restored() {
    let cli = project();
    write_in(cli.root(), ".gitignore", "*.o\n");
    write_in(cli.root(), "place", "a file");
    write_in(cli.root(), "other", "old");
    let id = create(&cli);
    fs::remove_file(cli.root().join("place")).expect("make room");
    write_in(cli.root(), "place/kept.o", "ignored");
    write_in(cli.root(), "place/plain", "made since");
    write_in(cli.root(), "other", "new");
    let outcome = cli.run(["checkpoint", "restore", &id, "--yes", "--json"]);
    // The file of the checkpoint is not in the tree.
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    let report = outcome.json();
    assert_eq!(report["status"], "partial", "{report}");
    let skipped = told(&report, "skipped", "reason");
    assert_eq!(skipped, [("place".to_owned(), "holds ignored content".to_owned())], "{report}");
    assert_eq!(fs::read_to_string(cli.root().join("place/kept.o")).expect("it survives"), "ignored");
    assert_eq!(fs::read_to_string(cli.root().join("other")).expect("the file"), "old");
}
