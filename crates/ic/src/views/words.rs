//! The words that a schema lists, from the enums that print them.

use ic_phase::gate::Tier;
use ic_saga::coverage::Coverage;

/// The words, or null.
pub(super) fn or_null(words: &[&'static str]) -> Vec<Option<&'static str>> {
    words.iter().map(|word| Some(*word)).chain([None]).collect()
}

/// The words, and one that stands for no value of their enum.
pub(super) fn and(words: &[&'static str], more: &'static str) -> Vec<&'static str> {
    words.iter().copied().chain([more]).collect()
}

/// Strongest first: the enum's own order is by weight.
pub(super) fn tiers() -> Vec<&'static str> {
    Tier::WORDS.into_iter().rev().collect()
}

/// Those of which something is known come first.
pub(super) fn coverages() -> [&'static str; 4] {
    [Coverage::Compensated, Coverage::Skip, Coverage::Pivot, Coverage::Undeclared].map(Coverage::as_str)
}
