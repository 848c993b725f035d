//! The words that a schema lists for a field, from the enums that print them.

use ic_effects::coverage::EffectCoverage;
use ic_phase::gate::Tier;

/// The words of an enum, or null.
pub(crate) fn or_null(words: &[&'static str]) -> Vec<Option<&'static str>> {
    words.iter().map(|word| Some(*word)).chain([None]).collect()
}

/// The words of an enum, and one that stands for none of its values.
pub(crate) fn and(words: &[&'static str], more: &'static str) -> Vec<&'static str> {
    words.iter().copied().chain([more]).collect()
}

/// The tiers, strongest first; the enum itself is in order of weight.
pub(crate) fn tiers() -> Vec<&'static str> {
    Tier::WORDS.into_iter().rev().collect()
}

/// The coverages, with `undeclared` last.
pub(crate) fn coverages() -> [&'static str; 4] {
    [EffectCoverage::Compensated, EffectCoverage::Skip, EffectCoverage::Pivot, EffectCoverage::Undeclared]
        .map(EffectCoverage::as_str)
}
