//! Histories made by chance: whatever git did between a checkpoint and its restore, the state comes back. The seed is
//! printed; `IC_TEST_SEED` repeats a campaign.

use ic_testkit::{Random, rounds};

use super::*;

/// What git is made to do between checkpoints; what it refuses is no loss.
pub(super) const DEEDS: [&str; 30] = [
    "commit -q -a -m more",
    "commit -q -a -m again",
    "commit -q --amend -m amended",
    "branch b1",
    "branch b2",
    "branch b1/deep",
    "branch -D b1",
    "branch -D b2",
    "branch -M b2 b1",
    "branch -M b1 b1/deep",
    "branch -f b2 HEAD",
    "branch -f b1 HEAD~1",
    "checkout -q -f main",
    "checkout -q -f b1",
    "checkout -q -f b2",
    "checkout -q -f --detach",
    "checkout -q -f -B fresh",
    "checkout -q --orphan void",
    "stash push -q",
    "stash push -q -m named",
    "stash drop -q",
    "stash pop -q",
    "reset -q --soft HEAD~1",
    "reset -q HEAD~1",
    "reset -q --hard",
    "add -A",
    "add -N new",
    "rm -q --cached f2",
    "update-index --assume-unchanged f1",
    "tag -f mark",
];

/// Does this and that, and goes back and forth between the checkpoints that were taken on the way.
fn history(random: &mut Random) {
    let repository = Repository::with_history();
    let mut next = |below: usize| random.place_in(below);
    let attempt = |line: &str| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@b.c"]).args(line.split(' '));
        git.current_dir(repository.root()).output().unwrap()
    };
    let mut taken = vec![repository.record(None)];
    for step in 0..60 {
        match next(10) {
            0..=6 => {
                let file = ["f1", "f2", "f3", "new", "d/f"][next(5)];
                if next(4) == 0 {
                    let _ = std::fs::remove_file(repository.root().join(file));
                } else {
                    std::fs::create_dir_all(repository.root().join("d")).unwrap();
                    let _ = std::fs::write(repository.root().join(file), format!("{step}"));
                }
                attempt(DEEDS[next(DEEDS.len())]);
            }
            7 => taken.push(repository.record(taken.last())),
            8 => {
                let target = taken[next(taken.len())].clone();
                if next(2) == 0 {
                    repository.collect_garbage();
                }
                let current = repository.record(taken.last());
                if target.operation.is_some() || current.operation.is_some() {
                    continue;
                }
                taken.push(current.clone());
                // As every restore does: a tag of which git has lost what it names does not come back.
                let target = super::super::with_tags(&repository.root(), target, &current, &[], true).unwrap();
                let planned = plan(&repository.root(), &target, &current, &repository.objects, &[]).unwrap();
                let id = format!("r{step}");
                apply_refs(&repository.root(), &planned, &target, &current, &id, &repository.objects).unwrap();
                apply_index(&repository.root(), &target, &current, &repository.objects).unwrap();
                let without_tags = |mut state: GitState| {
                    state.refs.retain(|(name, _)| name.0.starts_with(b"refs/heads/"));
                    state
                };
                assert_same(&without_tags(repository.record(taken.last())), &without_tags(target));
                assert_sound(&repository);
            }
            _ => {
                if next(3) == 0 {
                    taken.push(repository.record(taken.last()));
                    repository.collect_garbage();
                }
            }
        }
    }
}

/// Git finds nothing wrong, but for what it says of its own work too: `reset --hard` before the first commit names the empty tree in
/// the index and does not write it, for git knows it without its file.
fn assert_sound(repository: &Repository) {
    const EMPTY_TREE: &str = "missing tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904";
    let mut git = Command::new("git");
    git.args(["fsck", "--full", "--strict", "--no-dangling"]).current_dir(repository.root());
    let output = git.output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stdout).into_owned();
    let is_own = complaints.lines().all(|line| line == EMPTY_TREE) && !complaints.is_empty();
    assert!(output.status.success() || is_own, "{output:?}");
}

#[test]
fn every_checkpoint_comes_back_whatever_was_done() {
    let mut random = Random::seeded();
    for number in rounds(3) {
        println!("history {number}");
        history(&mut random);
    }
}
