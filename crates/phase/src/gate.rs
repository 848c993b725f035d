//! Gates: what must hold before a run may leave a phase. Pure: facts in, verdict out.

mod rules;
mod weigh;

use ic_base::Label;

pub use rules::{Gates, Requirement};
pub use weigh::{Facts, Unfinished, Work};

/// A question that a gate asks of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// The phase has an artifact.
    ArtifactExists,
    /// No agent is active, and no dispatch is unfinished.
    AgentsComplete,
    /// No dispatch is unfinished.
    DispatchesComplete,
    /// The newest verdict is pass.
    VerdictExists,
    /// A dispatch has a verdict, and none is fail.
    VerdictClean,
}

impl Check {
    /// All checks.
    pub const ALL: &'static [Check] = &[
        Self::ArtifactExists,
        Self::AgentsComplete,
        Self::DispatchesComplete,
        Self::VerdictExists,
        Self::VerdictClean,
    ];

    /// The name in rules and evidence.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ArtifactExists => "artifact_exists",
            Self::AgentsComplete => "agents_complete",
            Self::DispatchesComplete => "dispatches_complete",
            Self::VerdictExists => "verdict_exists",
            Self::VerdictClean => "verdict_clean",
        }
    }
}

/// How much a failed check weighs. Ordered: a weaker tier is smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// It is not asked.
    None,
    /// It warns, and the run advances.
    Soft,
    /// It blocks.
    Hard,
}

impl Tier {
    /// The name in rules and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Soft => "soft",
            Self::Hard => "hard",
        }
    }

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

/// What a gate says as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateResult {
    /// Everything holds.
    Pass,
    /// Something does not.
    Fail,
    /// Nothing was asked.
    None,
}

impl GateResult {
    /// The name in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::None => "none",
        }
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
