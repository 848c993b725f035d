//! What is ours in a repository: refs, and directories of restores that were killed.

use std::time::Duration;

use ic_testkit::wait_for;

use super::{Repository, listing};
use crate::git::ic_refs::patterns_of_others;
use crate::git::index::{OWNER, SCRATCH};

#[test]
fn refs_of_ours_are_not_listed_and_all_others_are() {
    for is_packed in [false, true] {
        let repository = Repository::with_history();
        repository.git("update-ref refs/odd/x HEAD");
        repository.git("tag t");
        let without = repository.record(None);
        assert!(patterns_of_others(&ic_ledger::git_dirs(&repository.root()).unwrap()).is_empty());
        for at in 0..20 {
            repository.git(&format!("update-ref refs/ic/rolled-back/{at}/heads/main HEAD"));
        }
        if is_packed {
            repository.git("pack-refs --all");
        }
        let patterns = patterns_of_others(&ic_ledger::git_dirs(&repository.root()).unwrap());
        assert!(patterns.contains(&"refs/heads".to_owned()) && patterns.contains(&"refs/odd".to_owned()));
        assert!(!patterns.iter().any(|pattern| pattern.starts_with("refs/ic")), "{patterns:?}");
        assert_eq!(repository.record(Some(&without)).refs, without.refs);
    }
}

#[test]
fn directories_of_killed_restores_are_cleared_and_those_of_living_ones_are_not() {
    let repository = Repository::with_history();
    let git_dir = repository.root().join(".git");
    let before = listing(&git_dir);
    let long_ago = git_dir.metadata().unwrap().modified().unwrap() - Duration::from_hours(1);
    for (name, has_owner, is_old) in
        [("dead", true, false), ("old", false, true), ("young", false, false), ("alive", true, false)]
    {
        let place = git_dir.join(format!("{SCRATCH}{name}"));
        std::fs::create_dir_all(place.join("tree")).unwrap();
        std::fs::write(place.join("index"), "a copy").unwrap();
        if has_owner {
            std::fs::write(place.join(OWNER), "").unwrap();
        }
        if is_old {
            std::fs::File::open(&place).unwrap().set_modified(long_ago).unwrap();
        }
    }
    let alive = std::fs::File::open(git_dir.join(format!("{SCRATCH}alive/{OWNER}"))).unwrap();
    alive.lock().unwrap();
    repository.record(None);
    let mut left: Vec<_> = std::fs::read_dir(&git_dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(SCRATCH))
        .collect();
    left.sort();
    assert_eq!(left, [format!("{SCRATCH}alive"), format!("{SCRATCH}young")]);
    drop(alive);
    // A child that another thread is just starting shares the lock until it runs its program.
    let owner = std::fs::File::open(git_dir.join(format!("{SCRATCH}alive/{OWNER}"))).unwrap();
    wait_for("the lock is free", || owner.try_lock().is_ok());
    drop(owner);
    std::fs::File::open(git_dir.join(format!("{SCRATCH}young"))).unwrap().set_modified(long_ago).unwrap();
    repository.record(None);
    assert_eq!(listing(&git_dir), before);
}
