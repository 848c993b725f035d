//! Gates: what must hold before a run may leave a phase. Pure: facts in, verdict out.

mod rules;
mod weigh;

use ic_base::Label;

pub use rules::{Gates, Requirement};
pub use weigh::{Facts, Unfinished, Work};

ic_base::words! {
    /// A question that a gate asks of the run.
    pub enum Check {
        /// The phase has an artifact.
        ArtifactExists = "artifact_exists",
        /// No agent is active, and no dispatch is unfinished.
        AgentsComplete = "agents_complete",
        /// No dispatch is unfinished.
        DispatchesComplete = "dispatches_complete",
        /// The newest verdict is pass.
        VerdictExists = "verdict_exists",
        /// A dispatch has a verdict, and none is fail.
        VerdictClean = "verdict_clean",
    }
}

ic_base::words! {
    /// How much a failed check weighs. Ordered: a weaker tier is smaller.
    #[derive(PartialOrd, Ord)]
    pub enum Tier {
        /// It is not asked.
        None = "none",
        /// It warns, and the run advances.
        Soft = "soft",
        /// It blocks.
        Hard = "hard",
    }
}

impl Tier {
    /// The strongest tier that a priority allows: 0 and 1 hard, 2 and 3 soft, 4 and above none.
    pub fn of_priority(priority: u32) -> Self {
        match priority {
            0 | 1 => Self::Hard,
            2 | 3 => Self::Soft,
            _ => Self::None,
        }
    }
}

/// One requirement, weighed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// What was asked.
    pub check: Check,
    /// Of which phase; `None`: of the whole run.
    pub phase: Option<Label>,
    /// How much it weighs.
    pub tier: Tier,
    /// Whether it holds.
    pub holds: bool,
    /// What was counted.
    pub count: i64,
    /// The same as a sentence.
    pub detail: String,
    /// The work that it waits for.
    pub unfinished: Vec<Unfinished>,
    /// Whether it holds only because nothing was ever done.
    pub is_idle: bool,
}

ic_base::words! {
    /// What a gate says as a whole.
    pub enum GateResult {
        /// Everything holds.
        Pass = "pass",
        /// Something does not.
        Fail = "fail",
        /// Nothing was asked.
        None = "none",
    }
}

/// The verdict of a gate and its evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Pass, fail or none.
    pub result: GateResult,
    /// Of a failure: its strongest failed tier. Of a pass: the strongest tier asked.
    pub tier: Tier,
    /// Every requirement, weighed, in the order of the rules.
    pub conditions: Vec<Condition>,
}

impl Verdict {
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
        let failed: Vec<&str> =
            self.conditions.iter().filter(|c| !c.holds).map(|c| c.detail.as_str()).collect();
        failed.join("; ")
    }
}

/// Weighs requirements against what was counted for each, in the same order.
///
/// `strongest` is what the call's priority allows: a requirement weighs the lesser of that and its own tier, and one
/// that weighs nothing is left out.
pub fn evaluate(asked: &[(Requirement, Facts)], strongest: Tier) -> Verdict {
    let conditions: Vec<Condition> = asked
        .iter()
        .map(|(requirement, facts)| weigh::weigh(requirement, facts, strongest.min(requirement.tier)))
        .filter(|condition| condition.tier != Tier::None)
        .collect();
    let strongest_of = |failed: bool| conditions.iter().filter(|c| c.holds != failed).map(|c| c.tier).max();
    let (result, tier) = match (strongest_of(true), strongest_of(false)) {
        (Some(failed), _) => (GateResult::Fail, failed),
        (None, Some(held)) => (GateResult::Pass, held),
        (None, None) => (GateResult::None, Tier::None),
    };
    Verdict { result, tier, conditions }
}

#[cfg(test)]
mod tests;
