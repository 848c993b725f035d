//! The order in which recorded commits are reverted. Pure.

use std::collections::{BTreeSet, HashSet};

/// The commits to revert, newest first, each once.
///
/// `recorded` is in the order of recording, oldest first. A commit that was recorded more than once stands where it
/// was recorded last. A short id that is the beginning of a longer recorded one is the same commit, in its longer form.
pub fn revert_order<'a>(recorded: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    // It is collected, because it is read twice: the longer form of an id may have been recorded after the short one.
    let recorded: Vec<&str> = recorded.into_iter().collect();
    let known: BTreeSet<&str> = recorded.iter().copied().collect();
    let mut seen = HashSet::new();
    // It is read from the end: a1 b1 a1 c1 becomes c1 a1 b1.
    recorded
        .iter()
        .rev()
        .map(|sha| longest_form(sha, &known))
        .filter(|sha| seen.insert(*sha))
        .map(str::to_owned)
        .collect()
}

/// The longest recorded id that begins with `sha`. What begins with it sorts right after it.
fn longest_form<'a>(sha: &'a str, known: &BTreeSet<&'a str>) -> &'a str {
    // The ids are sorted, so those that begin with `sha` come directly after it.
    known
        .range(sha..)
        .take_while(|other| other.starts_with(sha))
        .max_by_key(|other| other.len())
        .copied()
        .unwrap_or(sha)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::revert_order;

    #[test]
    fn newest_first_without_duplicates() {
        assert_eq!(revert_order(["a1", "b1", "a1", "c1"]), ["c1", "a1", "b1"]);
        assert!(revert_order([]).is_empty());
    }

    #[test]
    fn a_short_id_is_its_longer_form() {
        assert_eq!(revert_order(["aaaaaaa1", "bbbbbbb", "aaaaaaa"]), ["aaaaaaa1", "bbbbbbb"]);
    }

    proptest! {
        #[test]
        fn every_commit_stands_once(shas in prop::collection::vec("[ab]{1,3}", 0..20)) {
            let order = revert_order(shas.iter().map(String::as_str));
            for sha in &shas {
                prop_assert_eq!(order.iter().filter(|o| o.starts_with(sha.as_str()) && *o == sha).count() <= 1, true);
                prop_assert!(order.iter().any(|o| o.starts_with(sha.as_str())));
            }
        }
    }
}
