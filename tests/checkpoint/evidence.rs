//! Nothing is deleted or replaced without evidence: what a checkpoint left out, or what is left out now and no
//! checkpoint could save, survives a restore, and where it stood in the way it is named.

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use ic_testkit::{Cli, TestDatabase, write_in};
use rustix::fs::{FileType, Mode};

use crate::project::{create, make_again, project, restore, restore_in_part, take_back, told, tree};

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| format!("({e})"))
}

fn skipped(report: &serde_json::Value) -> Vec<(String, String)> {
    told(report, "skipped", "reason")
}

fn names(skipped: &[(String, String)]) -> Vec<&str> {
    skipped.iter().map(|(path, _)| path.as_str()).collect()
}

/// The paths of which something does not come back.
fn not_kept(report: &serde_json::Value) -> Vec<String> {
    told(report, "not_kept", "reason").into_iter().map(|(path, _)| path).collect()
}

fn fifo(path: &Path) {
    let made = rustix::fs::mknodat(rustix::fs::CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0);
    made.expect("a fifo");
}

/// More than `max-file-size`, and nothing on the disk.
fn oversize(path: &Path) {
    fs::File::create(path).and_then(|file| file.set_len(11 << 20)).expect("a large file");
}

#[test]
fn what_is_ignored_now_and_was_not_then_is_restored_and_what_is_new_survives() {
    let cli = project();
    let old = write_in(cli.root(), "x.log", "old");
    let target = create(&cli);
    write_in(cli.root(), ".gitignore", "*.log\n");
    write_in(cli.root(), "x.log", "changed since");
    let new = write_in(cli.root(), "y.log", "made since");
    let before = tree(&cli);
    let report = restore(&cli, &target);
    assert_eq!((text(&old), text(&new)), ("old".into(), "made since".into()), "{report}");
    assert!(!cli.root().join(".gitignore").exists(), "{report}");
    take_back(&cli);
    tree(&cli).assert_is(&before, "the undo");
    make_again(&cli);
    assert_eq!((text(&old), text(&new)), ("old".into(), "made since".into()), "after the redo");
}

#[test]
fn a_path_that_stays_ignored_is_restored_undone_and_redone() {
    let cli = project();
    let path = write_in(cli.root(), "x.log", "old");
    let target = create(&cli);
    write_in(cli.root(), ".gitignore", "*.log\n");
    write_in(cli.root(), "x.log", "changed since");
    cli.ok(["checkpoint", "restore", &target, "--path", "x.log", "--yes"]);
    assert_eq!(text(&path), "old");
    take_back(&cli);
    assert_eq!(text(&path), "changed since", "after the undo");
    make_again(&cli);
    assert_eq!(text(&path), "old", "after the redo");
}

#[test]
fn what_was_ignored_then_and_is_not_now_is_left_alone_and_named() {
    let cli = project();
    write_in(cli.root(), ".gitignore", "*.log\n");
    let log = write_in(cli.root(), "x.log", "as it was");
    let target = create(&cli);
    write_in(cli.root(), ".gitignore", "");
    write_in(cli.root(), "x.log", "changed since");
    let report = restore(&cli, &target);
    assert_eq!(text(&log), "changed since", "{report}");
    assert_eq!(names(&skipped(&report)), ["x.log"], "{report}");
}

#[test]
fn a_directory_that_was_ignored_then_and_is_not_now_keeps_all_that_is_in_it() {
    let cli = project();
    write_in(cli.root(), ".gitignore", "/build/\n");
    let deep = write_in(cli.root(), "build/deep/out.o", "compiled for hours");
    let target = create(&cli);
    write_in(cli.root(), ".gitignore", "");
    let new = write_in(cli.root(), "build/new.o", "compiled since");
    let report = restore(&cli, &target);
    assert_eq!(text(&deep), "compiled for hours", "{report}");
    assert_eq!(text(&new), "compiled since", "{report}");
    assert!(names(&skipped(&report)).contains(&"build"), "{report}");
}

#[test]
fn a_large_file_that_was_left_out_is_left_alone_and_one_that_grew_comes_back_small() {
    let cli = project();
    let grew = write_in(cli.root(), "grew.bin", "small");
    let shrank = cli.root().join("shrank.bin");
    oversize(&shrank);
    let target = create(&cli);
    oversize(&grew);
    fs::write(&shrank, "small now").expect("a small file");
    let new = cli.root().join("new.bin");
    oversize(&new);
    let report = restore_in_part(&cli, &target);
    assert_eq!(text(&grew), "small", "{report}");
    assert_eq!(text(&shrank), "small now", "{report}");
    assert_eq!(fs::metadata(&new).expect("the new file").len(), 11 << 20, "{report}");
    let oversize = |name: &str| (name.to_owned(), "oversize".to_owned());
    assert_eq!(skipped(&report), [oversize("shrank.bin"), oversize("new.bin")], "{report}");
    take_back(&cli);
    assert_eq!(fs::metadata(&grew).expect("the file").len(), 11 << 20, "the undo brings its content back");
}

#[test]
fn secrets_are_never_touched() {
    let cli = project();
    let old = write_in(cli.root(), ".env", "A=1");
    let target = create(&cli);
    write_in(cli.root(), ".env", "A=2");
    let new = write_in(cli.root(), "service/.env.local", "B=1");
    let key = write_in(cli.root(), "id_ed25519", "a key");
    let plain = write_in(cli.root(), "service/app.yml", "made since");
    let report = restore_in_part(&cli, &target);
    assert_eq!((text(&old), text(&new), text(&key)), ("A=2".into(), "B=1".into(), "a key".into()), "{report}");
    assert!(!plain.exists(), "{report}");
    let named = [("service", "holds secret content"), (".env", "secret"), ("id_ed25519", "secret")];
    assert_eq!(skipped(&report), named.map(|(path, why)| (path.to_owned(), why.to_owned())), "{report}");
}

/// Makes a directory with something in it that no restore may remove, beside something that it removes.
fn guarded(cli: &Cli, directory: &str, make: impl FnOnce(&Path)) {
    write_in(cli.root(), format!("{directory}/deep/plain.txt"), "made since");
    make(&cli.root().join(directory).join("deep"));
}

#[test]
fn a_directory_that_must_go_keeps_what_must_not_and_is_named() {
    let cli = project();
    write_in(cli.root(), ".gitignore", "*.o\n");
    // In the place of these three stood something else, and in that of the others nothing.
    write_in(cli.root(), "was-a-file", "a file");
    symlink("nowhere", cli.root().join("was-a-link")).expect("a link");
    write_in(cli.root(), "was-a-file-too", "a file");
    let target = create(&cli);
    for name in ["was-a-file", "was-a-link", "was-a-file-too"] {
        fs::remove_file(cli.root().join(name)).expect("make room");
    }
    guarded(&cli, "was-a-file", |at| fs::write(at.join("x.o"), "ignored").expect("a file"));
    guarded(&cli, "was-a-link", |at| fs::write(at.join(".env"), "A=1").expect("a secret"));
    guarded(&cli, "was-a-file-too", |at| oversize(&at.join("large.bin")));
    guarded(&cli, "new-ignored", |at| fs::write(at.join("y.o"), "ignored").expect("a file"));
    guarded(&cli, "new-fifo", |at| fifo(&at.join("pipe")));
    guarded(&cli, "new-socket", |at| drop(UnixListener::bind(at.join("socket")).expect("a socket")));
    guarded(&cli, "new-git", |at| {
        fs::create_dir(at.join(".git")).expect("a repository");
        fs::write(at.join(".git/config"), "[core]").expect("its configuration");
    });
    // Three files of the checkpoint cannot be put where they were.
    let outcome = cli.run(["checkpoint", "restore", &target, "--yes", "--json"]);
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    let report = outcome.json();
    let root = cli.root();
    let guarded = ["was-a-file", "was-a-link", "was-a-file-too", "new-ignored", "new-fifo", "new-socket", "new-git"];
    let skipped = skipped(&report);
    for name in guarded {
        assert!(!root.join(name).join("deep/plain.txt").exists() || name.starts_with("was"), "{name}: {report}");
        assert!(root.join(name).join("deep").is_dir(), "{name}: {report}");
        assert!(names(&skipped).contains(&name), "{name}: {report}");
    }
    assert_eq!(text(&root.join("was-a-file/deep/x.o")), "ignored");
    assert_eq!(text(&root.join("was-a-link/deep/.env")), "A=1");
    assert!(root.join("was-a-file-too/deep/large.bin").exists());
    assert_eq!(text(&root.join("new-ignored/deep/y.o")), "ignored");
    let kind = |path: &str| fs::symlink_metadata(root.join(path)).expect("it survives").file_type();
    assert!(kind("new-fifo/deep/pipe").is_fifo());
    assert!(kind("new-socket/deep/socket").is_socket());
    assert_eq!(text(&root.join("new-git/deep/.git/config")), "[core]");
    take_back(&cli);
    for name in guarded {
        assert_eq!(text(&root.join(name).join("deep/plain.txt")), "made since", "{name}: after the undo");
    }
}

#[test]
fn a_fifo_in_place_of_a_file_is_left_alone_and_named() {
    let cli = project();
    let path = write_in(cli.root(), "pipe", "a file");
    let other = write_in(cli.root(), "other", "old");
    let target = create(&cli);
    fs::remove_file(&path).expect("make room");
    fifo(&path);
    write_in(cli.root(), "other", "new");
    let outcome = cli.run(["checkpoint", "restore", &target, "--yes", "--json"]);
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    let report = outcome.json();
    assert_eq!(report["status"], "partial", "{report}");
    assert!(fs::symlink_metadata(&path).expect("it survives").file_type().is_fifo(), "{report}");
    assert_eq!(skipped(&report), [("pipe".to_owned(), "special".to_owned())], "{report}");
    assert_eq!(text(&other), "old", "{report}");
}

#[test]
fn a_nested_repository_keeps_its_git_directory_in_every_direction() {
    let cli = project();
    write_in(cli.root(), "tool/main.c", "one");
    write_in(cli.root(), "tool/.git/HEAD", "ref: refs/heads/main");
    let with = create(&cli);
    fs::remove_dir_all(cli.root().join("tool/.git")).expect("no repository any more");
    write_in(cli.root(), "tool/main.c", "two");
    let without = create(&cli);
    let report = restore(&cli, &with);
    assert!(!cli.root().join("tool/.git").exists(), "what was not kept is not made up");
    assert_eq!(not_kept(&report), ["tool"], "{report}");
    write_in(cli.root(), "tool/.git/HEAD", "ref: refs/heads/other");
    let report = restore(&cli, &without);
    assert_eq!(text(&cli.root().join("tool/.git/HEAD")), "ref: refs/heads/other", "{report}");
    assert_eq!(text(&cli.root().join("tool/main.c")), "two", "{report}");
}

#[test]
fn what_comes_into_being_after_the_plan_is_not_deleted_with_its_directory() {
    let cli = project();
    let target = create(&cli);
    write_in(cli.root(), "new/a", "made since");
    let hash = cli.json(["checkpoint", "restore", &target, "--dry-run", "--json"])["plan_hash"].clone();
    let late = write_in(cli.root(), "new/late", "made after the plan");
    let hash = hash.as_str().expect("a hash");
    let store = TestDatabase::open(&cli.beside("objects.db"));
    let kept = || store.first_row("SELECT (SELECT count(*) FROM objects), (SELECT count(*) FROM packs)");
    let before = kept();
    let refused = cli.refused(["checkpoint", "restore", &target, "--yes", "--expect-plan", hash]);
    assert_eq!(refused, (Some(1), "plan_changed".to_owned()));
    assert_eq!(text(&late), "made after the plan");
    assert_eq!(kept(), before, "what is refused keeps nothing");
    restore(&cli, &target);
    assert!(!late.exists());
    take_back(&cli);
    assert_eq!(text(&late), "made after the plan", "after the undo");
}

#[test]
fn a_repository_inside_that_is_gone_comes_back_without_its_history_and_that_is_said() {
    let cli = project();
    for name in ["inner", "mod"] {
        write_in(cli.root(), format!("{name}/file"), "content");
        write_in(cli.root(), format!("{name}/.git/HEAD"), "ref: refs/heads/main");
    }
    let warned = |outcome: &ic_testkit::CliOutcome| outcome.stderr.contains("nested repository");
    let first = cli.run(["checkpoint", "create", "--format", "text"]);
    assert!(warned(&first), "the first capture warns: {first:?}");
    let id = create(&cli);
    assert!(!warned(&cli.run(["checkpoint", "create", "--format", "text"])), "and no other one");
    assert_eq!(not_kept(&restore(&cli, &id)), Vec::<String>::new());
    for name in ["inner", "mod"] {
        fs::remove_dir_all(cli.root().join(name)).expect("it goes");
    }
    let preview = cli.json(["checkpoint", "restore", &id, "--dry-run", "--json"]);
    assert_eq!(not_kept(&preview), ["inner", "mod"], "{preview}");
    let only = cli.json(["checkpoint", "restore", &id, "--path", "inner", "--dry-run", "--json"]);
    assert_eq!(not_kept(&only), ["inner"], "{only}");
    let text_of = cli.ok(["checkpoint", "restore", &id, "--dry-run", "--format", "text"]);
    assert!(text_of.contains("Not kept (2)"), "{text_of}");
    let done = cli.ok(["checkpoint", "restore", &id, "--yes", "--format", "text"]);
    assert!(done.contains(", but not all of it.") && done.contains("Not kept (2)"), "{done}");
    assert!(cli.root().join("mod/file").exists() && !cli.root().join("mod/.git").exists());
    // The files are as they were, the repository is not: there is nothing to do, and that is not all.
    let again = cli.ok(["checkpoint", "restore", &id, "--yes", "--format", "text"]);
    assert!(again.contains("Not kept (2)"), "{again}");
}
