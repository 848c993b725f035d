//! What of git's objects is kept, and what is kept already.

use super::super::pack;
use super::super::program::Git;
use super::*;

/// What the tree goes back to was kept when it was recorded, if what is kept since holds those packs.
#[test]
fn what_is_kept_already_is_not_packed_again() {
    let repository = Repository::with_history();
    let root = repository.root();
    let base = repository.record(None);
    repository.commit("b", "more");
    let newest = repository.record(Some(&base));
    repository.git("reset -q --hard HEAD~1");
    // Git has lost the objects that it would pack: it is not asked.
    let objects = root.join(".git/objects");
    std::fs::rename(&objects, root.join("kept")).unwrap();
    let state = GitState { packs: Vec::new(), ..base.clone() };
    let writer = repository.objects.writer(Timestamp(1)).unwrap();
    let keep = |newest: &GitState, other: &GitState| {
        let (git, before) = (Git::new(&root), PackBase { newest: Some(newest), other: Some(other) });
        pack::keep(&git, before, &state, &writer, &mut false)
    };
    assert_eq!(keep(&newest, &base).unwrap(), []);
    let without = GitState { packs: Vec::new(), ..newest.clone() };
    assert!(!base.packs.is_empty() && keep(&without, &base).is_err(), "its packs are not among the others");
    let purged = GitState { purged: true, ..base.clone() };
    assert!(keep(&newest, &purged).is_err(), "something was taken out of its packs");
}
