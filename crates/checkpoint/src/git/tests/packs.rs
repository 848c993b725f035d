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

/// After an amend and a collection of garbage nothing of the newest checkpoint is left that bounds what is new. A tag keeps the new commit
/// until a restore takes the tag away.
#[test]
fn a_commit_with_a_tag_comes_back_after_all_before_it_was_collected() {
    let repository = Repository::with_history();
    let base = repository.record(None);
    repository.git("commit -q --amend -m amended");
    repository.git("tag mark");
    repository.collect_garbage();
    let tagged = repository.record(Some(&base));
    repository.restore(&base, "one");
    repository.collect_garbage();
    repository.restore(&tagged, "two");
    assert_eq!(repository.record(Some(&tagged)).head, tagged.head);
    assert!(repository.git("fsck --full --strict --no-dangling").is_empty());
}
