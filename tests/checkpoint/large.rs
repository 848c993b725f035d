//! Files above `max-file-size`: what git has comes back from git; what is kept nowhere is named and makes the restore partial.

use std::fs;

use ic_testkit::{Cli, CliOutcome, git_in, read_in, write_in};
use serde_json::Value;

use crate::project::{create, make_again, project, take_back};

const LIMIT: usize = 10_000_000;

/// What is done to a file, and its name.
type Way = (&'static str, fn(&Cli));

/// A content above the limit.
fn large(seed: u8) -> Vec<u8> {
    let mut content = vec![seed; LIMIT + usize::from(seed)];
    content[17] = b'\n';
    content
}

/// A project in whose first commit git has a large file.
fn tracked() -> Cli {
    let cli = project();
    git_in(cli.root(), &["init", "-q"]);
    write_in(cli.root(), "model.bin", large(1));
    write_in(cli.root(), "small", "small");
    git_in(cli.root(), &["add", "."]);
    git_in(cli.root(), &["commit", "-qm", "one"]);
    cli
}

fn restore(cli: &Cli, id: &str) -> (CliOutcome, Value) {
    let planned = cli.run(["checkpoint", "restore", id, "--dry-run", "--json"]);
    let done = cli.run(["checkpoint", "restore", id, "--yes", "--json"]);
    assert_eq!(planned.code, done.code, "a look ends as the call does: {planned:?} {done:?}");
    assert_eq!(planned.json()["plan_hash"], done.json()["plan_hash"], "{planned:?} {done:?}");
    let report = done.json();
    (done, report)
}

fn is(cli: &Cli, path: &str, content: &[u8]) -> bool {
    fs::read(cli.root().join(path)).is_ok_and(|found| found == content)
}

#[test]
fn what_git_has_comes_back_from_git_however_it_went() {
    let ways: [Way; 5] = [
        ("removed", |cli| fs::remove_file(cli.root().join("model.bin")).expect("remove it")),
        ("removed in a commit", |cli| {
            git_in(cli.root(), &["rm", "-q", "model.bin"]);
            git_in(cli.root(), &["commit", "-qm", "two"]);
        }),
        ("changed", |cli| drop(write_in(cli.root(), "model.bin", large(2)))),
        ("changed in a commit", |cli| {
            write_in(cli.root(), "model.bin", large(2));
            git_in(cli.root(), &["commit", "-qam", "two"]);
        }),
        ("made small", |cli| drop(write_in(cli.root(), "model.bin", "small now"))),
    ];
    for (way, change) in ways {
        let cli = tracked();
        let id = create(&cli);
        change(&cli);
        let changed = fs::read(cli.root().join("model.bin")).ok();
        let (done, report) = restore(&cli, &id);
        assert_eq!(done.code, Some(0), "{way}: {report}");
        assert!(is(&cli, "model.bin", &large(1)), "{way}: {report}");
        assert_eq!(git_in(cli.root(), &["status", "--porcelain", "--", "model.bin"]), "", "{way}");
        // What was there is as safe as all else.
        take_back(&cli);
        assert_eq!(fs::read(cli.root().join("model.bin")).ok(), changed, "{way}: the undo");
        make_again(&cli);
        assert!(is(&cli, "model.bin", &large(1)), "{way}: the redo");
    }
}

#[test]
fn a_file_that_is_as_it_was_is_neither_named_nor_a_reason_to_be_partial() {
    let cli = tracked();
    write_in(cli.root(), "own.bin", large(3));
    let id = create(&cli);
    write_in(cli.root(), "small", "changed");
    let (done, report) = restore(&cli, &id);
    assert_eq!(done.code, Some(0), "{report}");
    assert!(!report.to_string().contains(".bin"), "{report}");
    assert_eq!(read_in(cli.root(), "small").as_deref(), Some("small"));
}

#[test]
fn what_nobody_has_is_named_and_the_restore_is_partial() {
    let ways: [Way; 4] = [
        ("own.bin", |cli| drop(write_in(cli.root(), "own.bin", large(4)))),
        ("own.bin", |cli| fs::remove_file(cli.root().join("own.bin")).expect("remove it")),
        ("new.bin", |cli| drop(write_in(cli.root(), "new.bin", large(5)))),
        (".env", |cli| drop(write_in(cli.root(), ".env", "A=2\n"))),
    ];
    for (path, change) in ways {
        let cli = tracked();
        write_in(cli.root(), "own.bin", large(3));
        write_in(cli.root(), ".env", "A=1\n");
        let id = create(&cli);
        change(&cli);
        let changed = fs::read(cli.root().join(path)).ok();
        write_in(cli.root(), "small", "changed");
        let (done, report) = restore(&cli, &id);
        assert_eq!(done.code, Some(4), "{path}: {report}");
        let skipped = report["skipped"].as_array().expect("a list");
        assert!(skipped.iter().any(|one| one["path"] == path), "{path}: {report}");
        assert_eq!(fs::read(cli.root().join(path)).ok(), changed, "{path} stays");
        assert_eq!(read_in(cli.root(), "small").as_deref(), Some("small"));
    }
}

#[test]
fn a_new_file_that_git_has_goes_and_comes_again() {
    let cli = tracked();
    let id = create(&cli);
    write_in(cli.root(), "new.bin", large(5));
    git_in(cli.root(), &["add", "."]);
    git_in(cli.root(), &["commit", "-qm", "two"]);
    let (done, report) = restore(&cli, &id);
    assert_eq!(done.code, Some(0), "{report}");
    assert!(!cli.root().join("new.bin").exists(), "{report}");
    take_back(&cli);
    assert!(is(&cli, "new.bin", &large(5)));
}

#[test]
fn a_blob_that_git_lost_or_filters_is_named() {
    let cli = tracked();
    let id = create(&cli);
    let blob = git_in(cli.root(), &["rev-parse", "HEAD:model.bin"]);
    let blob = blob.trim();
    fs::remove_file(cli.root().join("model.bin")).expect("remove it");
    let object = cli.root().join(".git/objects").join(&blob[..2]).join(&blob[2..]);
    fs::remove_file(object).expect("what git has of it");
    let (done, report) = restore(&cli, &id);
    assert_eq!(done.code, Some(4), "{report}");
    assert!(report["skipped"].to_string().contains("model.bin"), "{report}");
}

#[test]
fn what_git_lfs_has_comes_back_from_its_store() {
    let cli = project();
    git_in(cli.root(), &["init", "-q"]);
    let content = large(7);
    let oid = ic_ledger::events::hex(&ic_checkpoint::objects::hash_of(&content));
    let pointer = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {}\n", content.len());
    // As `git lfs` does it: git has the pointer, its store the content, and a filter stands between them.
    write_in(cli.root(), ".gitattributes", "*.bin filter=lfs -text\n");
    let place = format!(".git/lfs/objects/{}/{}/{oid}", &oid[..2], &oid[2..4]);
    write_in(cli.root(), &place, &content);
    write_in(cli.root(), "pointer", &pointer);
    git_in(cli.root(), &["config", "filter.lfs.clean", "cat pointer"]);
    git_in(cli.root(), &["config", "filter.lfs.smudge", "cat"]);
    write_in(cli.root(), "model.bin", &content);
    git_in(cli.root(), &["add", "."]);
    git_in(cli.root(), &["commit", "-qm", "one"]);
    // Git trusts what it saw only of files that were written before its index was.
    std::thread::sleep(std::time::Duration::from_millis(20));
    git_in(cli.root(), &["update-index", "--refresh"]);
    write_in(cli.root(), "later", "x");
    git_in(cli.root(), &["add", "later"]);
    let id = create(&cli);
    fs::remove_file(cli.root().join("model.bin")).expect("remove it");
    let (done, report) = restore(&cli, &id);
    assert_eq!(done.code, Some(0), "{report}");
    assert!(is(&cli, "model.bin", &content), "{report}");
}
