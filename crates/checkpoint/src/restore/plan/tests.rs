//! Plans against a model: two trees made by chance, and what must stand where the plan was carried out.

use std::collections::{BTreeMap, BTreeSet};

use ic_base::Timestamp;
use ic_ledger::OpenOptions;
use proptest::prelude::*;

use super::{Limits, RestoreAction, RestoreNode, RestorePlan, is_at_or_below, must_be_saved, plan};
use crate::attributes::Attributes;
use crate::diff::{DiffState, Difference, diff_into_hidden};
use crate::manifest::PathText;
use crate::objects::{Objects, Writer};
use crate::tree::{Reason, TreeEntry, TreeNode as Kept, TreeObject};

/// What stands at a name.
#[derive(Debug, Clone, PartialEq)]
enum Item {
    File(u8, u32),
    Link(u8),
    Directory(u32, BTreeMap<String, Item>),
    Passed(Reason),
}

fn item() -> impl Strategy<Value = Item> {
    let reason = prop_oneof![Just(Reason::Ignored), Just(Reason::Git), Just(Reason::Secret)];
    let leaf = prop_oneof![
        4 => (0..3_u8, prop_oneof![Just(0o644), Just(0o755)]).prop_map(|(content, mode)| Item::File(content, mode)),
        1 => (0..2_u8).prop_map(Item::Link),
        1 => reason.prop_map(Item::Passed),
    ];
    leaf.prop_recursive(3, 24, 3, |inner| directory_of(inner).boxed())
}

fn directory_of(inner: impl Strategy<Value = Item>) -> impl Strategy<Value = Item> {
    // A name that begins like another one sorts between it and what lies below it.
    let name = prop_oneof![Just("a"), Just("a.b"), Just("b"), Just("c")].prop_map(str::to_owned);
    (prop_oneof![Just(0o755), Just(0o555)], prop::collection::btree_map(name, inner, 0..4))
        .prop_map(|(mode, entries)| Item::Directory(mode, entries))
}

fn root() -> impl Strategy<Value = Item> {
    directory_of(item())
}

fn kept(item: &Item, writer: &Writer<'_>) -> Kept {
    match item {
        Item::File(content, mode) => Kept::File { hash: [*content; 32], size: 1, mode: *mode },
        Item::Link(target) => Kept::Symlink(vec![b'0' + target]),
        Item::Passed(reason) => Kept::Passed(*reason),
        Item::Directory(mode, entries) => {
            let entry = |(name, item): (&String, &Item)| TreeEntry {
                name: name.clone().into_bytes(),
                node: kept(item, writer),
                attributes: Attributes::default(),
            };
            let entries = entries.iter().map(entry).collect();
            let tree = TreeObject { mode: *mode, entries, ..TreeObject::default() };
            Kept::Directory(writer.put_tree(&tree.encode()).unwrap())
        }
    }
}

/// How two trees differ, as a restore sees it.
fn differences(before: &Item, after: &Item) -> Vec<Difference> {
    let directory = tempfile::tempdir().unwrap();
    let objects = Objects::open(&directory.path().join("objects.db"), OpenOptions::default()).unwrap();
    let writer = objects.writer(Timestamp(1)).unwrap();
    let roots = [before, after].map(|item| match kept(item, &writer) {
        Kept::Directory(hash) => hash,
        other => panic!("{other:?} is no directory"),
    });
    writer.finish().unwrap();
    let mut differences = Vec::new();
    diff_into_hidden(&objects, &roots[0], &roots[1], &mut |difference| {
        differences.push(difference);
        Ok(())
    })
    .unwrap();
    differences
}

/// Every path of a tree and what stands there; directories without what is in them.
fn flat(item: &Item) -> BTreeMap<Vec<u8>, Item> {
    fn add(path: Vec<u8>, item: &Item, to: &mut BTreeMap<Vec<u8>, Item>) {
        if let Item::Directory(_, entries) = item {
            for (name, item) in entries {
                add(crate::capture::join(&path, name.as_bytes()), item, to);
            }
        }
        let alone = match item {
            Item::Directory(mode, _) => Item::Directory(*mode, BTreeMap::new()),
            other => other.clone(),
        };
        to.insert(path, alone);
    }
    let mut all = BTreeMap::new();
    add(Vec::new(), item, &mut all);
    all
}

fn item_of(node: &RestoreNode) -> Item {
    match node {
        RestoreNode::File { hash, mode, .. } => Item::File(hash[0], *mode),
        RestoreNode::Symlink(target) => Item::Link(target.0[0] - b'0'),
        RestoreNode::Directory { mode, .. } => Item::Directory(*mode, BTreeMap::new()),
    }
}

/// What stands where after a plan, which must find what it expects.
fn carried_out(plan: &RestorePlan, before: &BTreeMap<Vec<u8>, Item>) -> BTreeMap<Vec<u8>, Item> {
    let mut now = before.clone();
    for step in &plan.steps {
        let found = before.get(&step.path.0);
        assert_eq!(found, step.before.as_ref().map(item_of).as_ref(), "{step:?}");
        assert_ne!(step.before, step.after);
        match &step.after {
            None => now.remove(&step.path.0),
            Some(node) => now.insert(step.path.0.clone(), item_of(node)),
        };
    }
    now
}

fn is_passed(item: Option<&Item>) -> bool {
    matches!(item, Some(Item::Passed(_)))
}

/// The path itself and all that it lies in.
fn line(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let parents = path.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| &path[..at]);
    parents.chain([path]).filter(|part| !part.is_empty())
}

/// What must stand at a path when everything may be restored: the target, unless a rule hid it in one of both, or it
/// would have to go and holds what a rule hides.
fn expected<'i>(
    path: &[u8],
    before: &'i BTreeMap<Vec<u8>, Item>,
    after: &'i BTreeMap<Vec<u8>, Item>,
) -> Option<&'i Item> {
    let holds_hidden = |base: &[u8]| {
        before.iter().any(|(other, item)| other != base && is_at_or_below(other, base) && is_passed(Some(item)))
    };
    let is_directory = |item: Option<&Item>| matches!(item, Some(Item::Directory(..)));
    let stays = line(path).any(|base| {
        let (was, is) = (before.get(base), after.get(base));
        let blocked = is_directory(was) && !is_directory(is) && holds_hidden(base);
        is_passed(was) || is_passed(is) || (blocked && (is.is_some() || base == path))
    });
    if stays { before.get(path) } else { after.get(path) }
}

fn everything() -> Limits {
    Limits::default()
}

fn paths() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let path = prop::collection::vec(prop_oneof![Just("a"), Just("a.b"), Just("b"), Just("c")], 1..3);
    prop::collection::vec(path.prop_map(|parts| parts.join("/").into_bytes()), 0..3)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ic_testkit::cases(100, 20_000), ..ProptestConfig::default() })]

    #[test]
    fn what_a_plan_leaves_is_the_target_but_for_what_is_hidden(before in root(), after in root()) {
        let plan = plan(&differences(&before, &after), &everything(), &|_| true);
        let (before, after) = (flat(&before), flat(&after));
        let now = carried_out(&plan, &before);
        for path in before.keys().chain(after.keys()) {
            prop_assert_eq!(now.get(path), expected(path, &before, &after), "{}", String::from_utf8_lossy(path));
        }
        for (path, _) in &plan.skipped {
            prop_assert_eq!(now.get(&path.0), before.get(&path.0));
        }
    }

    #[test]
    fn a_plan_keeps_to_its_limits_and_leaves_a_tree(
        before in root(),
        after in root(),
        paths in paths(),
        only in prop::option::of(paths()),
        keep in paths(),
    ) {
        let only = only.map(BTreeSet::from_iter);
        let limits = Limits { paths, only, keep: keep.into_iter().collect(), ..Limits::default() };
        let plan = plan(&differences(&before, &after), &limits, &|_| true);
        let (before, after) = (flat(&before), flat(&after));
        let now = carried_out(&plan, &before);
        for step in &plan.steps {
            let path = &step.path.0;
            prop_assert_eq!(now.get(path), after.get(path));
            prop_assert!(!limits.keep.iter().any(|base| is_at_or_below(path, base)), "kept");
            let makes_directory = step.before.is_none() && matches!(step.after, Some(RestoreNode::Directory { .. }));
            let fits = |base: &Vec<u8>| is_at_or_below(path, base) || (makes_directory && is_at_or_below(base, path));
            prop_assert!(limits.paths.is_empty() || limits.paths.iter().any(fits), "paths");
            let is_meant = |only: &BTreeSet<Vec<u8>>| only.iter().any(|one| is_at_or_below(one, path));
            prop_assert!(limits.only.as_ref().is_none_or(is_meant), "only");
        }
        for path in now.keys() {
            for above in line(path).filter(|above| above != path) {
                let above = now.get(above);
                prop_assert!(matches!(above, Some(Item::Directory(..))), "{path:?} lies in {above:?}");
            }
        }
    }

    #[test]
    fn what_a_rule_hides_is_saved_before_it_is_changed(before in root(), after in root(), paths in paths()) {
        let limits = Limits { paths, ..Limits::default() };
        let saved = must_be_saved(&differences(&before, &after), &limits);
        let (before, after) = (flat(&before), flat(&after));
        for (path, item) in &after {
            let is_hidden = line(path).any(|base| {
                matches!(before.get(base), Some(Item::Passed(reason)) if *reason != Reason::Git)
            });
            let is_directory = matches!(item, Item::Directory(..)) && !before.contains_key(path);
            let fits = |base: &Vec<u8>| is_at_or_below(path, base) || (is_directory && is_at_or_below(base, path));
            let is_meant = limits.paths.is_empty() || limits.paths.iter().any(fits);
            let wanted = is_hidden && is_meant && !is_passed(Some(item));
            prop_assert_eq!(saved.contains(path), wanted, "{}", String::from_utf8_lossy(path));
        }
        prop_assert!(saved.iter().all(|path| after.contains_key(path)));
    }
}

fn file(content: u8, mode: u32) -> DiffState {
    DiffState::File { hash: [content; 32], size: 1, mode, attributes: Attributes::default() }
}

fn difference(path: &str, before: Option<DiffState>, after: Option<DiffState>) -> Difference {
    Difference { path: path.as_bytes().to_vec(), before, after }
}

#[test]
fn a_restore_of_certain_paths_makes_them_and_the_directories_they_need() {
    let directory = Some(DiffState::Directory { mode: 0o755, attributes: Attributes::default(), is_empty: false });
    let made = |path: &str| difference(path, None, Some(file(1, 0o644)));
    let differences = [made("a"), made("b"), difference("d", None, directory), made("d/e"), made("d/f"), made("dd")];
    let only = ["a", "d/e"].map(|path| path.as_bytes().to_vec());
    let limits = Limits { only: Some(BTreeSet::from(only)), ..Limits::default() };
    let plan = plan(&differences, &limits, &|_| false);
    let made: Vec<_> = plan.steps.iter().map(|step| step.path.0.as_slice()).collect();
    assert_eq!(made, [&b"a"[..], b"d", b"d/e"]);
}

#[test]
fn each_difference_has_its_action() {
    let directory = |mode| Some(DiffState::Directory { mode, attributes: Attributes::default(), is_empty: false });
    let link = |target: &[u8]| Some(DiffState::Symlink(target.to_vec()));
    for (before, after, action) in [
        (None, Some(file(1, 0o644)), RestoreAction::Create),
        (None, directory(0o755), RestoreAction::Create),
        (Some(file(1, 0o644)), None, RestoreAction::Delete),
        (Some(file(1, 0o644)), Some(file(1, 0o755)), RestoreAction::Chmod),
        (Some(file(1, 0o644)), Some(file(2, 0o755)), RestoreAction::Modify),
        (directory(0o755), directory(0o700), RestoreAction::Chmod),
        (link(b"x"), link(b"y"), RestoreAction::Modify),
        (link(b"x"), Some(file(1, 0o644)), RestoreAction::Replace),
        (Some(file(1, 0o644)), directory(0o755), RestoreAction::Replace),
        (directory(0o755), link(b"x"), RestoreAction::Replace),
    ] {
        let plan = plan(&[difference("p", before.clone(), after.clone())], &everything(), &|path| path == b"p");
        assert_eq!(plan.steps.len(), 1);
        assert_eq!(plan.steps[0].action, action, "{before:?} {after:?}");
        assert_eq!(plan.steps[0].uncaptured, before.is_some(), "what is not there needs no saving");
        assert!(plan.skipped.is_empty());
    }
    let names = [
        RestoreAction::Create,
        RestoreAction::Modify,
        RestoreAction::Delete,
        RestoreAction::Chmod,
        RestoreAction::Replace,
    ];
    assert_eq!(names.map(RestoreAction::as_str), ["create", "modify", "delete", "chmod", "replace"]);
}

#[test]
fn what_is_left_alone_is_named_with_its_reason() {
    let passed = |reason| Some(DiffState::Passed(reason));
    let directory = || Some(DiffState::Directory { mode: 0o755, attributes: Attributes::default(), is_empty: false });
    let skipped = |differences: &[Difference], limits: &Limits| -> Vec<(String, String)> {
        let text = |(PathText(path), why): (PathText, String)| (String::from_utf8(path).unwrap(), why);
        plan(differences, limits, &|_| false).skipped.into_iter().map(text).collect()
    };
    let named = |path: &str, why: &str| vec![(path.to_owned(), why.to_owned())];
    let hidden_now = [difference(".env", passed(Reason::Secret), Some(file(1, 0o600)))];
    assert_eq!(skipped(&hidden_now, &everything()), named(".env", "secret"));
    let hidden_then = [difference("big", Some(file(1, 0o600)), passed(Reason::Oversize))];
    assert_eq!(skipped(&hidden_then, &everything()), named("big", "oversize"));
    // Neither checkpoint holds it: there is nothing to tell.
    let nowhere = [difference("x", passed(Reason::Ignored), passed(Reason::Secret))];
    assert_eq!(skipped(&nowhere, &everything()), []);
    assert_eq!(skipped(&[difference("y", None, passed(Reason::Ignored))], &everything()), []);

    let goes = [
        difference("d", directory(), None),
        difference("d/e", directory(), None),
        difference("d/e/f", passed(Reason::Ignored), None),
        difference("d/g", Some(file(1, 0o644)), None),
    ];
    let plan_of = |limits: &Limits| plan(&goes, limits, &|_| false);
    let steps =
        |limits: &Limits| -> Vec<Vec<u8>> { plan_of(limits).steps.into_iter().map(|step| step.path.0).collect() };
    assert_eq!(
        skipped(&goes, &everything()),
        [named("d", "holds ignored content"), named("d/e", "holds ignored content")].concat()
    );
    assert_eq!(steps(&everything()), [b"d/g"]);
    let kept = Limits { keep: [b"d/g".to_vec()].into(), ..Limits::default() };
    let kept_goes: Vec<Difference> = goes.iter().filter(|d| !d.path.starts_with(b"d/e")).cloned().collect();
    assert_eq!(skipped(&kept_goes, &kept), named("d", "holds kept content"));
    assert_eq!(plan(&kept_goes, &kept, &|_| false).steps, []);

    let comes = [
        difference("c", passed(Reason::Unreadable), directory()),
        difference("c/e", None, Some(file(2, 0o644))),
        difference("d", Some(file(1, 0o644)), directory()),
        difference("d/e", None, directory()),
        difference("d/e/f", None, Some(file(2, 0o644))),
        difference("d.x", None, Some(file(3, 0o644))),
    ];
    let paths = [&b"c/e"[..], b"d/e", b"d.x"].map(<[u8]>::to_vec).to_vec();
    let below = Limits { paths, ..Limits::default() };
    let left = [named("c/e", "unreadable"), named("d/e", "lies in a file")].concat();
    assert_eq!(skipped(&comes, &below), left);
    let made: Vec<_> = plan(&comes, &below, &|_| false).steps.into_iter().map(|step| step.path.0).collect();
    assert_eq!(made, [b"d.x"]);
    assert_eq!(plan(&comes, &everything(), &|_| false).steps.len(), 4);
}

#[test]
fn a_path_lies_below_what_it_begins_with_and_a_slash() {
    for (path, base, is) in [
        ("a", "a", true),
        ("a/b", "a", true),
        ("a.b", "a", false),
        ("ab", "a", false),
        ("a", "a/b", false),
        ("a", "", true),
        ("", "", true),
        ("", "a", false),
    ] {
        assert_eq!(is_at_or_below(path.as_bytes(), base.as_bytes()), is, "{path} {base}");
    }
}
