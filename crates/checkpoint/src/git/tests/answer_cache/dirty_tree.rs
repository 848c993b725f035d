//! A tree that differs from the index in places that git named once.

use super::*;

/// While a path differs from the index for sure, git is asked of no other; once none does, of all.
#[test]
fn what_is_dirty_already_is_not_asked_for() {
    let mut told = Told::changed_long_ago();
    told.write("a", "won");
    assert!(told.record());
    assert_eq!(told.unasked(), 1);
    (0..10).for_each(|at| told.write(&kept(at), "kept"));
    assert!(told.record());
    assert_eq!((told.unasked(), told.shoot().0.dirty), (0, true));
    told.write("a", "two");
    told.record();
    assert!(!told.shoot().0.dirty);
}

/// However many paths differ from the index, no more are remembered than tell so, and git is asked again once none of those is left.
#[test]
fn what_is_dirty_in_many_places_is_not_asked_for() {
    let repository = Repository::with_history();
    let root = repository.root();
    let many = |at: usize| format!("d{}/f{at}", at % 7);
    (0..7).for_each(|at| std::fs::create_dir(root.join(format!("d{at}"))).unwrap());
    (0..450).for_each(|at| std::fs::write(root.join(many(at)), "first").unwrap());
    repository.git("add .");
    repository.git("commit -q -m many");
    (0..450).for_each(|at| std::fs::write(root.join(many(at)), "second").unwrap());
    let mut told = Told::of(repository, root);
    assert!(told.record(), "450 paths differ");
    // Some after the other, till more of them changed since than git is asked of.
    let settle = || std::thread::sleep(std::time::Duration::from_millis(2_100));
    for at in 0..3 {
        (0..140).for_each(|n| told.write(&many(at * 140 + n), "third"));
        assert!(told.record(), "{at}");
        settle();
        assert!(told.record(), "{at}");
    }
    assert!(told.unasked() <= 140, "of 420, most are not told");
    (0..450).for_each(|at| told.write(&many(at), "first"));
    assert!(!told.record(), "git is asked of all");
    assert!(!told.shoot().0.dirty);
    settle();
    told.record();
    told.write("d0/f0", "again");
    assert!(told.record(), "what was forgotten of many is not missed");
}

/// A file that is longer or shorter than the index says differs from it, however lately it was touched, and however many others were.
#[test]
fn what_is_of_another_length_is_not_asked_for() {
    let repository = Repository::with_history();
    let root = repository.root();
    let many = |at: usize| format!("f{at}");
    (0..250).for_each(|at| std::fs::write(root.join(many(at)), "first").unwrap());
    repository.git("add .");
    repository.git("commit -q -m many");
    let mut told = Told::of(repository, root);
    (0..250).for_each(|at| told.write(&many(at), "other"));
    assert!(!told.record(), "with that many changed paths git is asked");
    told.write("f0", "longer");
    (0..3).for_each(|_| assert!(told.record() && told.shoot().0.dirty));
    // As long as it was: nothing tells but its content.
    (0..250).for_each(|at| told.write(&many(at), "first"));
    assert!(!told.record());
    assert!(!told.shoot().0.dirty);
    told.write("f0", "");
    assert!(told.record() && told.shoot().0.dirty);
}

/// Of what git does not compare, the length tells nothing.
#[test]
fn the_length_of_what_git_does_not_compare_tells_nothing() {
    let mut told = Told::new();
    told.git("update-index --assume-unchanged a");
    told.record();
    told.write("a", "longer");
    told.record();
    assert!(!told.shoot().0.dirty);
    told.git("update-index --no-assume-unchanged a");
    told.record();
    assert!(told.shoot().0.dirty);
}

/// What a look was told, the capture after it knows, and keeps; a look after that knows it from the store.
#[test]
fn what_a_look_was_told_is_not_asked_for_again() {
    let mut told = Told::new();
    told.write("a", "longer");
    told.git("add a");
    assert!(!told.look().1, "the index is another one");
    assert!(told.record());
    assert!(told.look().1);
    told.git("commit -q -m longer");
    assert!(!told.look().1);
    told.write("new", "one");
    told.git("add new");
    assert!(!told.record(), "the index is another one again");
    told.git("reset -q");
    told.look();
    told.write("b", "untracked");
    // The tree of a look is not in the store, so what differs from it is not known.
    told.record();
    told.record();
}
