//! Gates: what must hold before a run may leave a phase. Pure: facts in, verdict out.

mod check;
mod judgement;
mod rules;

pub use check::{AuthorRule, GateCheck, Tier};
pub use judgement::{Artifacts, CountedWork, Facts, GateCondition, OpenWork};
pub use rules::{Gates, Requirement};

ic_base::words! {
    /// What a gate says as a whole.
    pub enum GateResult {
        /// Every condition that was asked holds.
        Pass = "pass",
        /// At least one condition does not hold.
        Fail = "fail",
        /// No requirement stands at this transition.
        None = "none",
    }
}

/// The verdict of a gate and its evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateVerdict {
    /// Whether all conditions hold.
    pub result: GateResult,
    /// Of a failure: its strongest failed tier. Of a pass: the strongest tier asked.
    pub tier: Tier,
    /// Every requirement, weighed, in the order of the rules.
    pub conditions: Vec<GateCondition>,
}

impl GateVerdict {
    /// The verdict where nothing is asked.
    pub fn unasked() -> Self {
        Self { result: GateResult::None, tier: Tier::None, conditions: Vec::new() }
    }

    /// Whether the run may not move.
    pub fn blocks(&self) -> bool {
        self.result == GateResult::Fail && self.tier == Tier::Hard
    }

    /// The failed conditions as one sentence.
    pub fn complaint(&self) -> String {
        let failed: Vec<&str> = self.conditions.iter().filter(|c| !c.holds).map(|c| c.detail.as_str()).collect();
        failed.join("; ")
    }
}

/// Weighs requirements against what was counted for each, in the same order.
///
/// `strongest` is what the call's priority allows: a requirement weighs the lesser of that and its own tier, and one
/// that weighs nothing is left out.
pub fn evaluate(asked: &[(Requirement, Facts)], strongest: Tier) -> GateVerdict {
    let conditions: Vec<GateCondition> = asked
        .iter()
        .map(|(requirement, facts)| judgement::weigh(requirement, facts, strongest.min(requirement.tier)))
        .filter(|condition| condition.tier != Tier::None)
        .collect();
    // `holds != failed` selects the conditions that failed for `true`, and those that hold for `false`.
    let strongest_of = |failed: bool| conditions.iter().filter(|c| c.holds != failed).map(|c| c.tier).max();
    let (result, tier) = match (strongest_of(true), strongest_of(false)) {
        (Some(failed), _) => (GateResult::Fail, failed),
        (None, Some(held)) => (GateResult::Pass, held),
        (None, None) => (GateResult::None, Tier::None),
    };
    GateVerdict { result, tier, conditions }
}

#[cfg(test)]
mod tests;
