//! Histories made by chance. The seed is printed; `IC_TEST_SEED` repeats a campaign.

use ic_testkit::{Random, rounds};

use super::{Told, kept};
use crate::git::tests::campaign::DEEDS;

#[test]
fn what_is_believed_is_what_git_says_whatever_was_done() {
    const MORE: [&str; 13] = [
        "pack-refs --all",
        "merge -q --no-edit b1",
        "merge --abort",
        "cherry-pick b2",
        "cherry-pick --abort",
        "rebase -q b1",
        "rebase --abort",
        "update-index --skip-worktree f2",
        "update-index --really-refresh",
        "update-ref -d refs/heads/b1",
        "update-ref -d refs/heads/b2",
        "stash drop -q stash@{1}",
        "gc -q --prune=now",
    ];
    // These write settings, which are not believed for two seconds then.
    let writes_settings = |line: &&&str| line.starts_with("branch -D") || line.starts_with("branch -M");
    let deeds: Vec<&str> = DEEDS.iter().filter(|line| !writes_settings(line)).chain(&MORE).copied().collect();
    let mut random = Random::seeded();
    for number in rounds(3) {
        println!("history {number}");
        let mut told = Told::new();
        for step in 0..50 {
            let mut next = |below: usize| random.place_in(below);
            for _ in 0..next(3) {
                let file = ["f1", "f2", "f3", "new", "d/f"][next(5)];
                match next(4) {
                    0 => drop(std::fs::remove_file(told.root.join(file))),
                    1 => {
                        let _ = std::fs::create_dir_all(told.root.join("d"));
                        let _ = std::fs::write(told.root.join(file), format!("{}", step % 3));
                    }
                    _ => {
                        told.attempt(deeds[next(deeds.len())]);
                    }
                }
            }
            told.record();
        }
        println!("{} of 52 states were known", told.known);
        assert!(told.known > 5, "nothing was tried");
    }
}

/// Most of what happens is that files change, while others have differed from the index for long.
#[test]
fn what_is_dirty_for_long_is_told_as_git_says_whatever_changes() {
    let mut random = Random::seeded();
    let mut unasked = 0;
    for number in rounds(3) {
        println!("history {number}");
        let mut told = Told::changed_long_ago();
        for step in 0..60 {
            let mut next = |below: usize| random.place_in(below);
            for _ in 0..next(3) {
                let file = if next(4) == 0 { kept(next(10)) } else { ["a", "b", "d/f"][next(3)].to_owned() };
                match next(8) {
                    0 => drop(std::fs::remove_file(told.root.join(file))),
                    1 => drop(std::fs::rename(told.root.join(file), told.root.join("moved"))),
                    2 if next(6) == 0 => told.attempt("commit -q -a -m more"),
                    3 if next(6) == 0 => told.attempt("stash push -q"),
                    _ => told.write(&file, ["kept", "two", "changed", "other"][(next(4) + step) % 4]),
                }
            }
            told.record();
            unasked += usize::from(told.unasked() > 0);
        }
    }
    println!("{unasked} states had paths that git was not asked of");
    // Of one history all may change too soon for that.
    assert!(unasked > 0, "nothing was tried");
}
