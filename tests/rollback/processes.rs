//! What a rollback asks git for: each process that it starts is named here, so one more is a decision.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use ic_testkit::{Cli, TestWorld};

use crate::project::{Work as _, in_git};

/// The world with a `git` that writes down how it is called.
fn listened(mut world: TestWorld) -> TestWorld {
    let path = std::env::var_os("PATH").expect("a path");
    let git = std::env::split_paths(&path).map(|place| place.join("git")).find(|git| git.is_file());
    let place = world.cli.home().join("listening");
    fs::create_dir(&place).expect("a directory");
    let script = format!(
        "#!/bin/sh\necho \"$*\" >> {}\nexec {} \"$@\"\n",
        place.join("calls").display(),
        git.expect("git").display()
    );
    fs::write(place.join("git"), script).expect("a script");
    fs::set_permissions(place.join("git"), fs::Permissions::from_mode(0o755)).expect("a program");
    let paths: Vec<_> = [place].into_iter().chain(std::env::split_paths(&path)).collect();
    world.cli = world.cli.with_env("PATH", std::env::join_paths(paths).expect("paths"));
    world
}

/// The commands of git that were called since it was asked last, sorted, with the first words that tell what they were for.
fn calls(cli: &Cli) -> Vec<String> {
    let file = cli.home().join("listening/calls");
    let text = fs::read_to_string(&file).unwrap_or_default();
    let _ = fs::remove_file(&file);
    let mut calls: Vec<String> = text
        .lines()
        .map(|line| {
            let mut words = line.split(' ').skip_while(|word| *word != "-C").skip(2).peekable();
            while words.next_if(|word| *word == "-c").is_some() {
                words.next();
            }
            words.take(3).collect::<Vec<_>>().join(" ")
        })
        .collect();
    calls.sort();
    calls
}

/// The plan: the state of git, the commits that leave their branch, and who made them.
const PLAN: [&str; 6] = [
    "config --list --show-scope",
    "for-each-ref --format=%(objectname) %(refname)",
    "log --no-walk=unsorted --no-show-signature",
    "rev-list --ignore-missing --stdin",
    "rev-list --objects --quiet",
    "status --porcelain=v2 -z",
];

/// The tree around the effects: git's state is known from the plan; the new commit is kept.
const EFFECTS: [&str; 2] = ["cat-file --batch-check=%(objecttype)", "pack-objects --revs --stdout"];

/// The commits again, the moves, and the state that they leave: git looks at the files when it refreshes its index, and not once more.
const TREE: [&str; 10] = [
    "for-each-ref --format=%(objectname) %(refname)",
    "for-each-ref --format=%(objectname) %(refname)",
    "log --no-walk=unsorted --no-show-signature",
    "rev-list --ignore-missing --stdin",
    "rev-list --objects --quiet",
    "rev-list --objects --quiet",
    "symbolic-ref --quiet HEAD",
    "update-index --refresh",
    "update-index -z --index-info",
    "update-ref -m ic:",
];

/// What was written lately may be written again without a trace: it is asked for again.
fn settle() {
    std::thread::sleep(std::time::Duration::from_millis(2_100));
}

#[test]
fn a_rollback_asks_git_only_for_what_it_does_not_know() {
    let world = listened(in_git().begun());
    for n in 0..5 {
        world.write(&format!("file{n}"), "as it was\n");
    }
    world.commit("files");
    settle();
    world.advance();
    world.write("file1", "committed work\n");
    world.commit("work");
    world.write("file2", "work that is not committed\n");
    for step in ["first", "second"] {
        world.effect(step, &[]);
    }
    settle();
    calls(&world.cli);
    let preview = world.cli.json(world.all("a", &["--dry-run"]));
    assert_eq!(preview["status"], "planned", "{preview}");
    let planned = calls(&world.cli);
    world.roll_back("a", &[]);
    let rolled_back = calls(&world.cli);
    assert_eq!(world.read("file1").as_deref(), Some("as it was\n"));
    assert_eq!(planned, PLAN);
    let mut expected: Vec<&str> = PLAN.into_iter().chain(EFFECTS).chain(TREE).collect();
    expected.sort_unstable();
    assert_eq!(rolled_back, expected);
}
