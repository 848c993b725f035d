//! Runs, advances, skips and gates.

use ic_events::EventType;
use ic_ops::advance::Outcome;
use ic_phase::Run;
use ic_phase::gate::{Condition, GateResult, Requirement, Tier, Unfinished};
use ic_phase::skip::Skip;
use serde::Serialize;
use serde_json::value::RawValue;

use super::exact;

/// A run as it is now.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RunJson {
    id: String,
    /// The last eight digits of the id.
    short_id: String,
    goal: String,
    /// active, `rolling_back`, completed, cancelled or failed.
    #[cfg_attr(test, schemars(extend("enum" = ic_phase::RunStatus::WORDS)))]
    status: &'static str,
    phase: String,
    /// The chain, in order.
    phases: Vec<String>,
    project_dir: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    project_dir_b64: Option<String>,
    complexity: Option<i64>,
    auto_advance: bool,
    scope_id: Option<String>,
    /// The caller's own facts: an object.
    #[cfg_attr(test, schemars(with = "serde_json::Map<String, serde_json::Value>"))]
    metadata: Box<RawValue>,
    /// Grows by one with each rollback of the run, and with the undo or abort of one.
    epoch: i64,
    created_at: String,
    updated_at: String,
    finished_at: Option<String>,
}

impl From<&Run> for RunJson {
    fn from(run: &Run) -> Self {
        let metadata = RawValue::from_string(run.metadata.clone());
        Self {
            id: run.id.to_string(),
            short_id: run.id.short().to_owned(),
            goal: run.goal.clone(),
            status: run.status.as_str(),
            phase: run.phase.clone(),
            phases: run.chain.names().into_iter().map(str::to_owned).collect(),
            project_dir: run.project_dir.to_string_lossy().into_owned(),
            project_dir_b64: exact(&run.project_dir),
            complexity: run.complexity,
            auto_advance: run.auto_advance,
            scope_id: run.scope_id.clone(),
            metadata: metadata.unwrap_or_else(|_| RawValue::NULL.to_owned()),
            epoch: run.epoch,
            created_at: run.created_at.to_string(),
            updated_at: run.updated_at.to_string(),
            finished_at: run.completed_at.map(|t| t.to_string()),
        }
    }
}

/// Where a run is (`run phase`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PhaseJson {
    run_id: String,
    phase: String,
    epoch: i64,
    #[cfg_attr(test, schemars(extend("enum" = ic_phase::RunStatus::WORDS)))]
    status: &'static str,
}

impl From<&Run> for PhaseJson {
    fn from(run: &Run) -> Self {
        Self {
            run_id: run.id.to_string(),
            phase: run.phase.clone(),
            epoch: run.epoch,
            status: run.status.as_str(),
        }
    }
}

/// Something that did not stop the command, but that you should know.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct WarningJson {
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

/// One requirement of a gate, weighed.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ConditionJson {
    #[cfg_attr(test, schemars(extend("enum" = ic_phase::gate::Check::WORDS)))]
    check: &'static str,
    /// The phase that is asked of; null: the whole run.
    phase: Option<String>,
    /// hard or soft.
    #[cfg_attr(test, schemars(extend("enum" = crate::json::words::tiers()[..2])))]
    tier: &'static str,
    /// pass or fail.
    #[cfg_attr(test, schemars(extend("enum" = ic_phase::gate::GateResult::WORDS[..2])))]
    result: &'static str,
    count: i64,
    detail: String,
    /// The work that is waited for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unfinished: Vec<UnfinishedJson>,
}

/// An agent or a dispatch that a gate waits for.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct UnfinishedJson {
    #[cfg_attr(test, schemars(extend("enum" = ["agent", "dispatch"])))]
    kind: &'static str,
    id: String,
    name: Option<String>,
    #[cfg_attr(test, schemars(extend("enum" = ["active", "pending", "running"])))]
    status: &'static str,
    /// The command that ends it: of a dispatch whose process is gone the one that reports its failure.
    command: String,
    /// The others that can end it.
    other_commands: Vec<String>,
}

impl From<&Unfinished> for UnfinishedJson {
    fn from(work: &Unfinished) -> Self {
        Self {
            kind: work.kind,
            id: work.id.clone(),
            name: work.name.clone(),
            status: work.status,
            command: work.command.clone(),
            other_commands: work.other_commands.clone(),
        }
    }
}

/// What a gate found.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct EvidenceJson {
    conditions: Vec<ConditionJson>,
}

impl From<&[Condition]> for EvidenceJson {
    fn from(conditions: &[Condition]) -> Self {
        let conditions = conditions
            .iter()
            .map(|c| ConditionJson {
                check: c.check.as_str(),
                phase: c.phase.as_ref().map(ToString::to_string),
                tier: c.tier.as_str(),
                result: if c.holds { "pass" } else { "fail" },
                count: c.count,
                detail: c.detail.clone(),
                unfinished: c.unfinished.iter().map(Into::into).collect(),
            })
            .collect();
        Self { conditions }
    }
}

/// What became of an advance (`run advance`, `gate override`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct AdvanceJson {
    run_id: String,
    advanced: bool,
    /// advance, override, block or pause.
    #[cfg_attr(test, schemars(extend("enum" = [ic_events::EventType::Advance, ic_events::EventType::Override, ic_events::EventType::Block, ic_events::EventType::Pause].map(ic_events::EventType::as_str))))]
    event_kind: &'static str,
    from_phase: String,
    to_phase: String,
    /// pass, fail or none.
    #[cfg_attr(test, schemars(extend("enum" = ic_phase::gate::GateResult::WORDS)))]
    gate_result: &'static str,
    /// hard, soft or none.
    #[cfg_attr(test, schemars(extend("enum" = crate::json::words::tiers())))]
    gate_tier: &'static str,
    evidence: EvidenceJson,
    reason: Option<String>,
    epoch: i64,
    seq: Option<i64>,
    /// The checkpoint that the advance took.
    checkpoint_id: Option<String>,
    /// Why the run did not move: `gate_blocked` or `paused`.
    #[cfg_attr(test, schemars(extend("enum" = crate::json::words::or_null(&[ic_base::Code::GateBlocked, ic_base::Code::Paused].map(ic_base::Code::as_str)))))]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<WarningJson>,
}

impl From<&Outcome> for AdvanceJson {
    fn from(outcome: &Outcome) -> Self {
        Self {
            run_id: outcome.run_id.to_string(),
            advanced: outcome.advanced(),
            event_kind: outcome.event_type.as_str(),
            from_phase: outcome.from.clone(),
            to_phase: outcome.to.clone(),
            gate_result: outcome.verdict.result.as_str(),
            gate_tier: outcome.verdict.tier.as_str(),
            evidence: outcome.verdict.conditions.as_slice().into(),
            reason: outcome.reason.clone(),
            epoch: outcome.epoch,
            seq: outcome.seq,
            checkpoint_id: outcome.checkpoint_id.as_ref().map(ToString::to_string),
            code: refusal(outcome).map(ic_base::Code::as_str),
            warnings: soft_warning(outcome)
                .into_iter()
                .chain(outcome.warnings.iter().map(WarningJson::from))
                .collect(),
        }
    }
}

/// The code of what holds a run back.
pub(crate) fn refusal(outcome: &Outcome) -> Option<ic_base::Code> {
    match outcome.event_type {
        EventType::Block => Some(ic_base::Code::GateBlocked),
        EventType::Pause => Some(ic_base::Code::Paused),
        _ => None,
    }
}

/// A soft gate that failed lets the run pass, with a warning.
pub(crate) fn soft_warning(outcome: &Outcome) -> Option<WarningJson> {
    let soft = outcome.verdict.result == GateResult::Fail && outcome.verdict.tier == Tier::Soft;
    soft.then(|| WarningJson {
        code: "gate_failed_softly",
        message: format!("{}.", outcome.verdict.complaint()),
    })
}

/// What an advance would do now (`gate check`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct GateCheckJson {
    run_id: String,
    from_phase: String,
    to_phase: String,
    /// advance, block or pause.
    #[cfg_attr(test, schemars(extend("enum" = [ic_events::EventType::Advance, ic_events::EventType::Block, ic_events::EventType::Pause].map(ic_events::EventType::as_str))))]
    would: &'static str,
    #[cfg_attr(test, schemars(extend("enum" = ic_phase::gate::GateResult::WORDS)))]
    gate_result: &'static str,
    #[cfg_attr(test, schemars(extend("enum" = crate::json::words::tiers())))]
    gate_tier: &'static str,
    evidence: EvidenceJson,
    reason: Option<String>,
    epoch: i64,
    /// `gate_blocked`, `paused` or null.
    #[cfg_attr(test, schemars(extend("enum" = crate::json::words::or_null(&[ic_base::Code::GateBlocked, ic_base::Code::Paused].map(ic_base::Code::as_str)))))]
    code: Option<&'static str>,
}

impl From<&Outcome> for GateCheckJson {
    fn from(outcome: &Outcome) -> Self {
        Self {
            run_id: outcome.run_id.to_string(),
            from_phase: outcome.from.clone(),
            to_phase: outcome.to.clone(),
            would: outcome.event_type.as_str(),
            gate_result: outcome.verdict.result.as_str(),
            gate_tier: outcome.verdict.tier.as_str(),
            evidence: outcome.verdict.conditions.as_slice().into(),
            reason: outcome.reason.clone(),
            epoch: outcome.epoch,
            code: refusal(outcome).map(ic_base::Code::as_str),
        }
    }
}

/// The requirements of one transition (`gate rules`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct GateRuleJson {
    pub(crate) from_phase: String,
    pub(crate) to_phase: String,
    pub(crate) checks: Vec<RequirementJson>,
}

/// One requirement.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RequirementJson {
    #[cfg_attr(test, schemars(extend("enum" = ic_phase::gate::Check::WORDS)))]
    pub(crate) check: &'static str,
    pub(crate) phase: Option<String>,
    #[cfg_attr(test, schemars(extend("enum" = crate::json::words::tiers()[..2])))]
    pub(crate) tier: &'static str,
}

impl From<(&str, &str, &[Requirement])> for GateRuleJson {
    fn from((from, to, requirements): (&str, &str, &[Requirement])) -> Self {
        let checks = requirements
            .iter()
            .map(|r| RequirementJson {
                check: r.check.as_str(),
                phase: r.phase.as_ref().map(ToString::to_string),
                tier: r.tier.as_str(),
            })
            .collect();
        Self { from_phase: from.to_owned(), to_phase: to.to_owned(), checks }
    }
}

/// A phase marked to be skipped (`run skip`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SkipJson {
    run_id: String,
    phase: String,
    reason: Option<String>,
    seq: i64,
    /// False if it was marked already.
    changed: bool,
}

impl From<&(Run, Skip, bool)> for SkipJson {
    fn from((run, skip, changed): &(Run, Skip, bool)) -> Self {
        Self {
            run_id: run.id.to_string(),
            phase: skip.phase.clone(),
            reason: skip.reason.clone(),
            seq: skip.seq,
            changed: *changed,
        }
    }
}
