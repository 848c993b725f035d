//! Locks of refs that a killed git left go when the restore is finished that was killed with it; those that may be held stay, and are named.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ic_testkit::{TestWorld, dies_with_its_git, git_in};
use serde_json::Value;

/// A checkpoint of one commit, and since then a commit, a branch that is checked out, and a stash.
fn moved_on() -> TestWorld {
    let world = TestWorld::of_a_repository(env!("CARGO_BIN_EXE_ic"));
    world.ic(&["checkpoint", "create", "--name", "here"]);
    world.write("a", "two\n");
    world.commit("two");
    world.git(&["checkout", "-q", "-b", "other"]);
    world.write("a", "three\n");
    world.commit("three");
    world.write("a", "put away\n");
    world.git(&["stash", "push", "-q"]);
    world
}

const RESTORE: [&str; 5] = ["checkpoint", "restore", "--name", "here", "--yes"];

/// Kills a call in this command of git, which leaves what the shell command makes in the git directory.
fn killed(world: &TestWorld, words: &[&str], at: &str, leaves: &str) {
    let leaves = format!("cd '{}' && {leaves}", world.root().join(".git").display());
    dies_with_its_git(&mut world.cli.command(words), world.cli.home(), at, &leaves);
}

/// Every lock in the git directory, and what is to replace the packed refs.
fn locks(world: &TestWorld) -> Vec<PathBuf> {
    fn below(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            let is_lock = path.extension().is_some_and(|end| end == "lock" || end == "new");
            // The ledger has locks of its own.
            if path.is_dir() && !path.ends_with(".git/ic") {
                below(&path, found);
            } else if is_lock {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    below(&world.root().join(".git"), &mut found);
    found
}

fn is_restored(world: &TestWorld, when: &str) {
    assert_eq!(locks(world), Vec::<PathBuf>::new(), "{when}");
    assert_eq!(world.git(&["symbolic-ref", "--short", "HEAD"]), "main", "{when}");
    assert_eq!(world.git(&["log", "-1", "--format=%s"]), "one", "{when}");
    assert_eq!(world.git(&["branch", "--format=%(refname:short)"]), "main", "{when}");
    assert_eq!(world.git(&["stash", "list"]), "", "{when}");
    assert_eq!((world.git(&["status", "--porcelain"]), world.text("a")), (String::new(), "one\n".to_owned()));
    // Git itself works again.
    world.git(&["commit", "-q", "--allow-empty", "-m", "after"]);
    world.git(&["pack-refs", "--all"]);
}

#[test]
fn locks_that_a_killed_git_left_go_with_the_next_restore() {
    let below = "below=$(tr '\\0' '\\n' | grep -ao 'refs/ic/rolled-back/[^/]*' | head -n1); test -n \"$below\" && mkdir -p $below/heads && : > $below/heads/main.lock";
    let cases = [
        ("update-ref", ": > HEAD.lock"),
        ("update-ref", ": > packed-refs.lock; : > packed-refs.new"),
        ("update-ref", "echo 1234 > refs/heads/main.lock"),
        ("update-ref", ": > refs/heads/other.lock; : > refs/heads/main.lock; : > HEAD.lock"),
        ("update-ref", below),
        ("update-index --refresh", ": > index.lock"),
        // The restore's own, which it had not removed yet: the index is where it belongs, and nothing is left to do about it.
        ("update-index --refresh", "echo 'ic: restore checkpoint' > index.lock"),
        ("symbolic-ref -m", "echo ref: refs/heads/main > HEAD.lock"),
        ("stash drop", ": > refs/stash.lock; mkdir -p logs/refs; : > logs/refs/stash.lock"),
    ];
    for (at, leaves) in cases {
        let world = moved_on();
        killed(&world, &RESTORE, at, leaves);
        let left = locks(&world);
        assert!(!left.is_empty(), "{leaves}");
        let dump = world.cli.dump();
        world.ic(&["checkpoint", "restore", "--name", "here", "--dry-run"]);
        assert_eq!((world.cli.dump(), locks(&world)), (dump, left), "{leaves}: a look changed something");
        world.ic(&RESTORE);
        is_restored(&world, leaves);
    }
}

#[test]
fn a_killed_undo_is_finished_past_the_lock_that_its_git_left() {
    let world = moved_on();
    world.ic(&RESTORE);
    killed(&world, &["redo", "--yes"], "update-ref", ": > HEAD.lock");
    // It is finished first, and made again.
    world.ic(&["undo", &world.cli.last_restore(), "--yes"]);
    is_restored(&world, "redo");
}

#[test]
fn health_names_the_lock_and_the_files_alone_can_be_restored() {
    let world = moved_on();
    killed(&world, &RESTORE, "update-ref", ": > HEAD.lock");
    let checks = world.cli.json(["health", "--json"])["checks"].clone();
    let restores = checks.as_array().expect("checks").iter().find(|check| check["name"] == "restores");
    let detail = restores.expect("what health says of restores")["detail"].as_str().expect("text").to_owned();
    assert!(detail.contains("/.git/HEAD.lock, which is in its way"), "{detail}");
    world.ic(&["checkpoint", "restore", "--name", "here", "--strategy", "files-only", "--yes"]);
    is_restored(&world, "files alone");
}

/// A refused restore, which names the lock and leads on; returns its hint.
fn refused(world: &TestWorld, lock: &Path) -> String {
    let mut hints = Vec::new();
    for more in [&["--dry-run"][..], &["--yes"], &["--strategy", "files-only", "--yes"]] {
        let words = [&["checkpoint", "restore", "--name", "here", "--format", "json"], more].concat();
        let outcome = world.cli.run(&words);
        assert_eq!((outcome.code, outcome.error().as_str()), (Some(1), "git_busy"), "{outcome:?}");
        let line: Value = serde_json::from_str(&outcome.stderr).expect("one line");
        let error = &line["error"];
        assert!(error["message"].as_str().expect("text").contains(&lock.display().to_string()), "{error}");
        assert_eq!(error["details"]["lock"].as_str(), lock.to_str(), "{error}");
        let hint = error["hint"].as_str().expect("a hint").to_owned();
        assert!(!hint.contains("files-only"), "{hint}");
        assert!(lock.exists(), "{more:?} removed what may be held");
        hints.push(hint);
    }
    assert!(hints.iter().all(|hint| *hint == hints[0]), "{hints:?}");
    hints.remove(0)
}

/// Types the command of the hint, and calls again.
fn follow(world: &TestWorld, hint: &str) {
    let (_, rest) = hint.split_once("rm ").expect("a command");
    let (command, _) = rest.split_once("; then call again").expect("its end");
    let removed = Command::new("sh").args(["-c", &format!("rm {command}")]).status().expect("a shell");
    assert!(removed.success(), "{hint}");
    world.ic(&RESTORE);
    is_restored(world, hint);
}

#[test]
fn a_lock_from_before_the_restore_stays_and_is_named() {
    let world = moved_on();
    let lock = world.root().join(".git/refs/heads/other.lock");
    // One that was there is met before a restore begins: by its time, this one was there.
    fs::write(&lock, "").expect("a lock");
    let outcome = world.cli.run(RESTORE);
    assert_eq!((outcome.code, outcome.error().as_str()), (Some(1), "git_busy"), "{outcome:?}");
    fs::remove_file(&lock).expect("no lock");
    let old = "touch -d '1 hour ago' refs/heads/other.lock";
    killed(&world, &RESTORE, "update-ref", old);
    let hint = refused(&world, &lock);
    follow(&world, &hint);
}

#[test]
fn a_lock_whose_time_is_to_come_stays_and_is_named() {
    let world = moved_on();
    let lock = world.root().join(".git/HEAD.lock");
    killed(&world, &RESTORE, "update-ref", ": > HEAD.lock");
    let file = File::options().write(true).open(&lock).expect("the lock");
    let written = file.metadata().and_then(|meta| meta.modified()).expect("its time");
    file.set_modified(written + Duration::from_hours(1)).expect("another time");
    drop(file);
    let hint = refused(&world, &lock);
    follow(&world, &hint);
}

#[test]
fn a_lock_that_a_process_has_open_stays_until_that_ends() {
    let world = moved_on();
    let lock = world.root().join(".git/packed-refs.lock");
    killed(&world, &RESTORE, "update-ref", ": > packed-refs.lock");
    let held = File::open(&lock).expect("the lock");
    let hint = refused(&world, &lock);
    assert_eq!(hint, format!("when the process {} has ended, call again", std::process::id()));
    drop(held);
    world.ic(&RESTORE);
    is_restored(&world, "let go of");
}

/// A git that waits, in this directory.
fn waiting_git(directory: &Path) -> Child {
    let mut command = Command::new("git");
    command.args(["cat-file", "--batch"]).current_dir(directory);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("start git")
}

#[test]
fn a_lock_beside_a_git_that_runs_stays_until_that_ends() {
    let world = moved_on();
    let lock = world.root().join(".git/HEAD.lock");
    killed(&world, &RESTORE, "update-ref", ": > HEAD.lock");
    // One in another repository holds no lock of this one.
    let elsewhere = world.cli.home().join("elsewhere");
    fs::create_dir(&elsewhere).expect("a directory");
    git_in(&elsewhere, &["init", "-q"]);
    let mut stranger = waiting_git(&elsewhere);
    let mut git = waiting_git(world.root());
    let hint = refused(&world, &lock);
    assert_eq!(hint, format!("when the process {} has ended, call again", git.id()));
    drop(git.stdin.take());
    git.wait().expect("its end");
    world.ic(&RESTORE);
    is_restored(&world, "ended");
    drop(stranger.stdin.take());
    stranger.wait().expect("its end");
}

#[test]
fn a_lock_without_an_interrupted_restore_is_named_with_the_way_around() {
    let world = moved_on();
    let lock = world.root().join(".git/HEAD.lock");
    fs::write(&lock, "").expect("a lock");
    let outcome = world.cli.run([&RESTORE[..], &["--format", "json"]].concat());
    let line: Value = serde_json::from_str(&outcome.stderr).expect("one line");
    let hint = line["error"]["hint"].as_str().expect("a hint").to_owned();
    assert!(hint.contains(&format!("rm {}; or restore the files alone", lock.display())), "{hint}");
    let words = ["checkpoint", "restore", "--name", "here", "--strategy", "files-only", "--yes"];
    world.ic(&words);
    assert!(lock.exists() && world.text("a") == "one\n");
}
