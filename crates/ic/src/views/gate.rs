//! Advances of a run, and the gates that they pass or not.

use ic_base::Label;
use ic_ledger::events::EventType;
use ic_ops::advance::AdvanceOutcome;
use ic_phase::gate::{GateCheck, GateCondition, GateResult, OpenWork, Requirement, Tier};
use ic_worktree::Warning;

use crate::text::{TextTable, plain, shell_word, style, styled};
use crate::views::common_shapes::WarningJson;

shape! {
    /// One requirement of a gate, with its result.
    struct ConditionJson from c: &GateCondition {
        check: &'static str as ic_phase::gate::GateCheck = c.check.as_str(),
        /// The phase whose records count; null: the whole run.
        phase: Option<String> = c.phase.as_ref().map(ToString::to_string),
        /// hard: a failure blocks the run; soft: it warns.
        #[cfg_attr(test, schemars(extend("enum" = crate::views::tests::schema_words::tiers()[..2])))]
        tier: &'static str = c.tier.as_str(),
        /// other: only artifacts and verdicts of others than the agents that did the work count; any: all do.
        by: &'static str as ic_phase::gate::AuthorRule = c.by.as_str(),
        /// The result: pass or fail.
        #[cfg_attr(test, schemars(extend("enum" = ic_phase::gate::GateResult::WORDS[..2])))]
        result: &'static str = if c.holds { "pass" } else { "fail" },
        count: i64 = c.count,
        detail: String = c.detail.clone(),
        /// The unfinished work that the check waits for.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        unfinished: Vec<UnfinishedJson> = c.unfinished.iter().map(Into::into).collect(),
        /// Registered files that do not exist, and so were not counted.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        missing: Vec<String> = c.missing.clone(),
    }

    /// An agent or a dispatch that a gate waits for.
    struct UnfinishedJson from work: &OpenWork {
        #[cfg_attr(test, schemars(extend("enum" = ["agent", "dispatch"])))]
        kind: &'static str = work.kind,
        id: String = work.id.clone(),
        name: Option<String> = work.name.clone(),
        #[cfg_attr(test, schemars(extend("enum" = ["active", "pending", "running"])))]
        status: &'static str = work.status,
        /// The command that ends it; for a dispatch whose process is gone, the one that reports its failure.
        command: String = work.command.clone(),
        /// Other commands that can end it.
        other_commands: Vec<String> = work.other_commands.clone(),
    }

    /// The results of all requirements of a gate.
    struct EvidenceJson from conditions: &[GateCondition] {
        conditions: Vec<ConditionJson> = conditions.iter().map(ConditionJson::from).collect(),
    }

    /// The outcome of an advance (`run advance`, `gate override`).
    pub(crate) struct AdvanceJson from outcome: &AdvanceOutcome {
        run_id: String = outcome.run_id.to_string(),
        advanced: bool = outcome.advanced(),
        /// advance, override, block or pause.
        #[cfg_attr(test, schemars(extend("enum" = [ic_ledger::events::EventType::Advance, ic_ledger::events::EventType::Override, ic_ledger::events::EventType::Block, ic_ledger::events::EventType::Pause].map(ic_ledger::events::EventType::as_str))))]
        event_kind: &'static str = outcome.event_type.as_str(),
        from_phase: String = outcome.from.clone(),
        to_phase: String = outcome.to.clone(),
        /// pass, fail or none.
        gate_result: &'static str as ic_phase::gate::GateResult = outcome.verdict.result.as_str(),
        /// hard, soft or none.
        #[cfg_attr(test, schemars(extend("enum" = crate::views::tests::schema_words::tiers())))]
        gate_tier: &'static str = outcome.verdict.tier.as_str(),
        evidence: EvidenceJson = outcome.verdict.conditions.as_slice().into(),
        reason: Option<String> = outcome.reason.clone(),
        epoch: i64 = outcome.epoch,
        seq: Option<i64> = outcome.seq,
        /// The id of the checkpoint that the advance took.
        checkpoint_id: Option<String> = outcome.checkpoint_id.as_ref().map(ToString::to_string),
        /// The reason why the run did not move: `gate_blocked` or `paused`; null if it moved.
        #[cfg_attr(test, schemars(extend("enum" = crate::views::tests::schema_words::or_null(&[ic_base::Code::GateBlocked, ic_base::Code::Paused].map(ic_base::Code::as_str)))))]
        code: Option<&'static str> = refusal(outcome).map(ic_base::Code::as_str),
        #[serde(skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<WarningJson> =
            soft_warning(outcome).iter().chain(&outcome.warnings).map(WarningJson::from).collect(),
    }

    /// The outcome that an advance would have now (`gate check`).
    pub(crate) struct GateCheckJson from outcome: &AdvanceOutcome {
        run_id: String = outcome.run_id.to_string(),
        from_phase: String = outcome.from.clone(),
        to_phase: String = outcome.to.clone(),
        /// advance, block or pause.
        #[cfg_attr(test, schemars(extend("enum" = [ic_ledger::events::EventType::Advance, ic_ledger::events::EventType::Block, ic_ledger::events::EventType::Pause].map(ic_ledger::events::EventType::as_str))))]
        would: &'static str = outcome.event_type.as_str(),
        gate_result: &'static str as ic_phase::gate::GateResult = outcome.verdict.result.as_str(),
        #[cfg_attr(test, schemars(extend("enum" = crate::views::tests::schema_words::tiers())))]
        gate_tier: &'static str = outcome.verdict.tier.as_str(),
        evidence: EvidenceJson = outcome.verdict.conditions.as_slice().into(),
        reason: Option<String> = outcome.reason.clone(),
        epoch: i64 = outcome.epoch,
        /// `gate_blocked`, `paused` or null.
        #[cfg_attr(test, schemars(extend("enum" = crate::views::tests::schema_words::or_null(&[ic_base::Code::GateBlocked, ic_base::Code::Paused].map(ic_base::Code::as_str)))))]
        code: Option<&'static str> = refusal(outcome).map(ic_base::Code::as_str),
    }

    /// The requirements of one transition (`gate rules`).
    pub(crate) struct GateRuleJson from (from, to, requirements): (&str, &str, &[Requirement]) {
        pub(crate) from_phase: String = from.to_owned(),
        pub(crate) to_phase: String = to.to_owned(),
        pub(crate) checks: Vec<RequirementJson> = requirements.iter().map(RequirementJson::from).collect(),
    }

    /// One requirement of a gate, in its declaration.
    pub(crate) struct RequirementJson from r: &Requirement {
        pub(crate) check: &'static str as ic_phase::gate::GateCheck = r.check.as_str(),
        pub(crate) phase: Option<String> = r.phase.as_ref().map(ToString::to_string),
        #[cfg_attr(test, schemars(extend("enum" = crate::views::tests::schema_words::tiers()[..2])))]
        pub(crate) tier: &'static str = r.tier.as_str(),
        /// other: only artifacts and verdicts of others than the agents that did the work count; any: all do.
        pub(crate) by: &'static str as ic_phase::gate::AuthorRule = r.by.as_str(),
    }
}

/// The code of the reason why a run did not move.
pub(crate) fn refusal(outcome: &AdvanceOutcome) -> Option<ic_base::Code> {
    match outcome.event_type {
        EventType::Block => Some(ic_base::Code::GateBlocked),
        EventType::Pause => Some(ic_base::Code::Paused),
        _ => None,
    }
}

/// The warning of a soft gate that failed and let the run pass.
pub(crate) fn soft_warning(outcome: &AdvanceOutcome) -> Option<Warning> {
    let soft = outcome.verdict.result == GateResult::Fail && outcome.verdict.tier == Tier::Soft;
    soft.then(|| Warning { code: "gate_failed_softly", message: format!("{}.", outcome.verdict.complaint()) })
}

/// The outcome of an advance, as text.
pub(crate) fn advance(outcome: &AdvanceOutcome) -> String {
    let (from, to) = (plain(&outcome.from), plain(&outcome.to));
    let mut out = match outcome.event_type {
        EventType::Advance => {
            format!("{} {from} → {}\n", styled(style::GOOD, "advanced"), styled(style::STRONG, &to))
        }
        EventType::Override => {
            format!("{} {from} → {}\n", styled(style::WARN, "overridden"), styled(style::STRONG, &to))
        }
        EventType::Pause => format!("{} at {from}: auto-advance is off\n", styled(style::WARN, "paused")),
        _ => format!("{} at {from}: the gate to {to} does not hold\n", styled(style::BAD, "blocked")),
    };
    if outcome.completes {
        out += "The run is completed.\n";
    }
    out += &conditions(&outcome.verdict.conditions);
    out += &way_out(outcome);
    out
}

/// The outcome that an advance would have, as text.
pub(crate) fn gate_check(outcome: &AdvanceOutcome) -> String {
    let (from, to) = (plain(&outcome.from), plain(&outcome.to));
    let mut out = match outcome.event_type {
        EventType::Advance => format!("{from} → {to}: {}\n", styled(style::GOOD, "would advance")),
        EventType::Pause => {
            format!("{from} → {to}: {}, auto-advance is off\n", styled(style::WARN, "would pause"))
        }
        _ => format!("{from} → {to}: {}\n", styled(style::BAD, "would be blocked")),
    };
    out += &conditions(&outcome.verdict.conditions);
    out += &way_out(outcome);
    out
}

fn conditions(conditions: &[GateCondition]) -> String {
    conditions
        .iter()
        .map(|c| {
            let mark = if c.holds { styled(style::GOOD, "✓") } else { styled(style::BAD, "✗") };
            let tier = styled(style::DIM, &format!("({})", c.tier.as_str()));
            let waits: String = c.unfinished.iter().map(unfinished).collect();
            format!("  {mark} {}: {} {tier}\n{waits}", c.check.as_str(), plain(&c.detail))
        })
        .collect()
}

/// One piece of work that a gate waits for, with the command that ends it.
fn unfinished(work: &OpenWork) -> String {
    let name = work.name.as_deref().map(|name| format!(" {}", plain(name))).unwrap_or_default();
    let commands: Vec<&str> = [&work.command].into_iter().chain(&work.other_commands).map(String::as_str).collect();
    let commands = styled(style::DIM, &commands.join(", or "));
    format!("      {} {}{name} is {}: {commands}\n", work.kind, work.short_id, work.status)
}

fn way_out(outcome: &AdvanceOutcome) -> String {
    let id = outcome.run_id.short();
    match outcome.event_type {
        EventType::Block => {
            missing(outcome)
                + &styled(style::DIM, &format!("  to override it: ic gate override {id} --reason WHY"))
                + "\n"
        }
        EventType::Pause => {
            styled(
                style::DIM,
                &format!("  to advance: ic gate override {id} --reason WHY, or ic run set {id} --auto-advance true"),
            ) + "\n"
        }
        _ => String::new(),
    }
}

/// How to register the artifact that a gate asks for; empty if it asks for none.
fn missing(outcome: &AdvanceOutcome) -> String {
    let is_missing = |condition: &&GateCondition| !condition.holds && condition.check == GateCheck::ArtifactExists;
    let Some(condition) = outcome.verdict.conditions.iter().find(is_missing) else { return String::new() };
    // Without the flag the artifact would be one of the current phase.
    let elsewhere = condition.phase.as_ref().map(Label::as_str).filter(|phase| *phase != outcome.from);
    let phase = elsewhere.map(|phase| format!(" --phase {}", shell_word(phase))).unwrap_or_default();
    let id = outcome.run_id.short();
    styled(style::DIM, &format!("  to register one: ic run artifact add {id} --path FILE{phase}")) + "\n"
}

/// The requirements of gates, one a line.
pub(crate) fn rules(rules: &[GateRuleJson]) -> String {
    let mut table = TextTable::new(&["FROM", "TO", "CHECK", "OF", "TIER"]);
    for rule in rules {
        for check in &rule.checks {
            table.row(vec![
                rule.from_phase.as_str().into(),
                rule.to_phase.as_str().into(),
                if check.by == "other" { format!("{} by other", check.check) } else { check.check.to_owned() }
                    .as_str()
                    .into(),
                check.phase.as_deref().unwrap_or("the run").into(),
                check.tier.into(),
            ]);
        }
    }
    table.render("No gates.")
}
