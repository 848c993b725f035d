//! Gates: what must hold before a run may leave a phase. Pure: facts in, verdict out.

mod rules;

use ic_base::Label;

pub use rules::{Gates, Requirement};

/// A question that a gate asks of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// The phase has an artifact.
    ArtifactExists,
    /// No agent is active.
    AgentsComplete,
    /// No dispatch is unfinished.
    DispatchesComplete,
    /// A dispatch has the verdict pass.
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

/// What was counted for one requirement. Nothing that was rolled back is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Facts {
    /// Artifacts.
    Artifacts(i64),
    /// Agents still active.
    ActiveAgents(i64),
    /// Dispatches that have not ended.
    UnfinishedDispatches(i64),
    /// Dispatches by verdict.
    Verdicts {
        /// With verdict pass.
        pass: i64,
        /// With verdict fail.
        fail: i64,
    },
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
        .map(|(requirement, facts)| weigh(requirement, *facts, strongest.min(requirement.tier)))
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

fn weigh(requirement: &Requirement, facts: Facts, tier: Tier) -> Condition {
    let place = match &requirement.phase {
        Some(phase) => format!("phase {phase}"),
        None => "the run".to_owned(),
    };
    let (holds, count, detail) = match (requirement.check, facts) {
        (_, Facts::Artifacts(n)) => (n > 0, n, format!("{} in {place}", counted(n, "artifact"))),
        (_, Facts::ActiveAgents(n)) => (n == 0, n, format!("{} in {place}", counted(n, "active agent"))),
        (_, Facts::UnfinishedDispatches(n)) => {
            (n == 0, n, format!("{} in {place}", counted(n, "unfinished dispatch")))
        }
        (Check::VerdictClean, Facts::Verdicts { pass, fail }) => (
            pass > 0 && fail == 0,
            pass + fail,
            format!("{} and {} in {place}", counted(pass, "passing verdict"), counted(fail, "failing one")),
        ),
        (_, Facts::Verdicts { pass, .. }) => {
            (pass > 0, pass, format!("{} in {place}", counted(pass, "passing verdict")))
        }
    };
    Condition { check: requirement.check, phase: requirement.phase.clone(), tier, holds, count, detail }
}

/// `no artifact`, `1 artifact`, `3 artifacts`.
fn counted(n: i64, noun: &str) -> String {
    match (n, noun.ends_with("ch")) {
        (0, _) => format!("no {noun}"),
        (1, _) => format!("1 {noun}"),
        (_, true) => format!("{n} {noun}es"),
        (_, false) => format!("{n} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Check, Facts, GateResult, Requirement, Tier, evaluate};

    fn requirement(check: Check, tier: Tier) -> Requirement {
        Requirement { check, phase: None, tier }
    }

    #[test]
    fn the_strongest_failed_tier_decides() {
        let soft = (requirement(Check::ArtifactExists, Tier::Soft), Facts::Artifacts(0));
        let hard = (requirement(Check::AgentsComplete, Tier::Hard), Facts::ActiveAgents(2));
        let held = (requirement(Check::VerdictExists, Tier::Hard), Facts::Verdicts { pass: 1, fail: 3 });

        let verdict = evaluate(&[soft.clone(), hard.clone(), held.clone()], Tier::Hard);
        assert_eq!((verdict.result, verdict.tier), (GateResult::Fail, Tier::Hard));
        assert!(verdict.blocks());
        assert_eq!(verdict.complaint(), "no artifact in the run; 2 active agents in the run");

        let verdict = evaluate(&[soft.clone(), held.clone()], Tier::Hard);
        assert_eq!((verdict.result, verdict.tier), (GateResult::Fail, Tier::Soft));
        assert!(!verdict.blocks());

        let verdict = evaluate(&[soft, hard], Tier::Soft);
        assert_eq!((verdict.result, verdict.tier), (GateResult::Fail, Tier::Soft));

        let verdict = evaluate(&[held], Tier::Hard);
        assert_eq!((verdict.result, verdict.tier), (GateResult::Pass, Tier::Hard));
    }

    #[test]
    fn each_check_counts_what_it_asks_for() {
        let weighed = |check, facts| {
            let verdict = evaluate(&[(requirement(check, Tier::Hard), facts)], Tier::Hard);
            let condition = verdict.conditions.into_iter().next().unwrap();
            assert_eq!(condition.holds, verdict.result == GateResult::Pass);
            (verdict.result.as_str(), condition.count, condition.detail)
        };
        for (check, facts, says) in [
            (Check::ArtifactExists, Facts::Artifacts(0), ("fail", 0, "no artifact in the run")),
            (Check::ArtifactExists, Facts::Artifacts(2), ("pass", 2, "2 artifacts in the run")),
            (Check::AgentsComplete, Facts::ActiveAgents(0), ("pass", 0, "no active agent in the run")),
            (Check::AgentsComplete, Facts::ActiveAgents(1), ("fail", 1, "1 active agent in the run")),
            (
                Check::DispatchesComplete,
                Facts::UnfinishedDispatches(0),
                ("pass", 0, "no unfinished dispatch in the run"),
            ),
            (
                Check::DispatchesComplete,
                Facts::UnfinishedDispatches(3),
                ("fail", 3, "3 unfinished dispatches in the run"),
            ),
            (
                Check::VerdictClean,
                Facts::Verdicts { pass: 3, fail: 2 },
                ("fail", 5, "3 passing verdicts and 2 failing ones in the run"),
            ),
            (
                Check::VerdictExists,
                Facts::Verdicts { pass: 0, fail: 2 },
                ("fail", 0, "no passing verdict in the run"),
            ),
            (
                Check::VerdictExists,
                Facts::Verdicts { pass: 1, fail: 2 },
                ("pass", 1, "1 passing verdict in the run"),
            ),
        ] {
            let (result, count, detail) = says;
            assert_eq!(weighed(check, facts), (result, count, detail.to_owned()), "{check:?} {facts:?}");
        }
        assert_eq!(evaluate(&[], Tier::Hard).result.as_str(), "none");
    }

    #[test]
    fn a_priority_of_four_asks_nothing() {
        let hard = (requirement(Check::ArtifactExists, Tier::Hard), Facts::Artifacts(0));
        for (priority, result) in
            [(0, GateResult::Fail), (1, GateResult::Fail), (3, GateResult::Fail), (4, GateResult::None)]
        {
            let verdict = evaluate(std::slice::from_ref(&hard), Tier::of_priority(priority));
            assert_eq!(verdict.result, result, "{priority}");
            assert_eq!(verdict.blocks(), priority < 2, "{priority}");
        }
        assert_eq!(evaluate(&[], Tier::Hard).result, GateResult::None);
    }

    #[test]
    fn a_clean_verdict_needs_one_pass_and_no_fail() {
        let holds = |pass, fail| {
            evaluate(
                &[(requirement(Check::VerdictClean, Tier::Hard), Facts::Verdicts { pass, fail })],
                Tier::Hard,
            )
            .result
                == GateResult::Pass
        };
        assert!(holds(1, 0));
        assert!(!holds(0, 0));
        assert!(!holds(1, 1));
    }
}
