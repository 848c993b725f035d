use std::collections::BTreeSet;

use ic_base::CheckpointId;
use ic_checkpoint::attributes::Attributes;
use ic_checkpoint::git::{GitRestorePlan, Moved};
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::restore::plan::{PlannedDatabase, RestoreAction, RestoreNode, RestorePlan, RestoreStep};

use super::hash_of;

const TARGET: &str = "019c7bfa-1d38-7000-8000-00000a000011";

fn path(text: &str) -> PathText {
    PathText(text.as_bytes().to_vec())
}

fn file(size: u64) -> RestoreNode {
    RestoreNode::File { hash: [7; 32], size, mode: 0o644, attributes: Attributes::default() }
}

fn plan() -> RestorePlan {
    RestorePlan {
        steps: vec![RestoreStep::new(path("a.md"), RestoreAction::Modify, Some(file(1)), Some(file(2)))],
        skipped: vec![(path("key.pem"), "secret".to_owned())],
        left_changed: Vec::new(),
        not_kept: vec![(path("big.iso"), "too large".to_owned())],
        closed: vec![(path("dir"), 0o555)],
        databases: vec![PlannedDatabase { path: path("s.db"), sides: vec![path("s.db-wal")] }],
    }
}

fn git() -> GitRestorePlan {
    GitRestorePlan {
        refs: vec![Moved { name: b"refs/heads/main".to_vec(), from: Some("a".repeat(40)), to: Some("b".repeat(40)) }],
        head: true,
        index: true,
        stash: false,
        ends: None,
        new_commits: vec!["c".repeat(40)],
    }
}

fn named(plan: &RestorePlan, git: Option<&GitRestorePlan>, target: &str) -> String {
    hash_of(plan, git, &CheckpointId::from_ledger(target.to_owned())).unwrap()
}

/// A caller may give the hash of a preview to a later build: a change of this text breaks that, and must be meant.
#[test]
fn the_hash_of_a_plan_is_the_same_in_every_build() {
    assert_eq!(
        [named(&plan(), Some(&git()), TARGET), named(&RestorePlan::default(), None, TARGET)],
        [
            "0e24a2b1c9252106214faf8f576dc69d35114a9125e151ca5d162ba63e2aa493",
            "c2511858688c46b631b7dba1a753b45367117f880e8f3366ace72ab9e27f6071"
        ]
    );
}

#[test]
fn the_same_plan_has_the_same_hash_and_each_field_makes_another() {
    let same = named(&plan(), Some(&git()), TARGET);
    assert_eq!(named(&plan(), Some(&git()), TARGET), same);
    let of_plan: &[fn(&mut RestorePlan)] = &[
        |plan| plan.steps.clear(),
        |plan| plan.steps[0].path = path("b.md"),
        |plan| plan.steps[0].action = RestoreAction::Create,
        |plan| plan.steps[0].before = None,
        |plan| plan.steps[0].before = Some(file(3)),
        |plan| plan.steps[0].after = None,
        |plan| plan.steps[0].uncaptured = true,
        |plan| plan.steps[0].link = Some(path("c.md")),
        |plan| plan.steps[0].anew = true,
        |plan| plan.steps[0].names = 2,
        |plan| plan.skipped.clear(),
        |plan| plan.skipped[0].0 = path("other.pem"),
        |plan| "ignored".clone_into(&mut plan.skipped[0].1),
        |plan| plan.left_changed.push(path("key.pem")),
        |plan| plan.not_kept.clear(),
        |plan| plan.closed.clear(),
        |plan| plan.closed[0].1 = 0o500,
        |plan| plan.databases.clear(),
        |plan| plan.databases[0].sides.clear(),
    ];
    let of_git: &[fn(&mut GitRestorePlan)] = &[
        |git| git.refs.clear(),
        |git| git.refs[0].name = b"refs/heads/\xff".to_vec(),
        |git| git.refs[0].from = None,
        |git| git.refs[0].to = None,
        |git| git.head = false,
        |git| git.index = false,
        |git| git.stash = true,
        |git| git.ends = Some("merge".to_owned()),
        |git| git.new_commits.clear(),
    ];
    let mut hashes = BTreeSet::from([same]);
    for change in of_plan {
        let mut changed = plan();
        change(&mut changed);
        hashes.insert(named(&changed, Some(&git()), TARGET));
    }
    for change in of_git {
        let mut changed = git();
        change(&mut changed);
        hashes.insert(named(&plan(), Some(&changed), TARGET));
    }
    hashes.insert(named(&plan(), None, TARGET));
    hashes.insert(named(&plan(), Some(&git()), &TARGET.replace("11", "12")));
    assert_eq!(hashes.len(), 1 + of_plan.len() + of_git.len() + 2);
}
