//! Runs.

use ic_base::Timestamp;
use ic_dispatch::dispatch::TokenCounts;
use ic_dispatch::token_totals::{self, Spent};
use ic_ops::run::CreatedRun;
use ic_phase::skip::SkipRecord;
use ic_phase::{Run, RunStatus};
use serde_json::value::RawValue;

use crate::text::{Cell, TextTable, path_text, plain, style, styled, when};
use crate::views::common_shapes::WarningJson;
use crate::views::dispatch::TokensJson;
use crate::views::exact;

shape! {
    /// The current state of a run.
    pub(crate) struct RunJson from run: &Run where
        metadata = RawValue::from_string(run.metadata.clone());
    {
        id: String = run.id.to_string(),
        /// The last eight digits of the id.
        short_id: String = run.id.short().to_owned(),
        goal: String = run.goal.clone(),
        /// active, `rolling_back`, completed, cancelled or failed.
        status: &'static str as ic_phase::RunStatus = run.status.as_str(),
        phase: String = run.phase.clone(),
        /// The phases of its chain, in order.
        phases: Vec<String> = run.chain.names().into_iter().map(str::to_owned).collect(),
        project_dir: String = run.project_dir.to_string_lossy().into_owned(),
        #[serde(skip_serializing_if = "Option::is_none")]
        project_dir_b64: Option<String> = exact(&run.project_dir),
        complexity: Option<i64> = run.complexity,
        auto_advance: bool = run.auto_advance,
        scope_id: Option<String> = run.scope_id.clone(),
        /// Data of the caller: an object.
        #[cfg_attr(test, schemars(with = "serde_json::Map<String, serde_json::Value>"))]
        metadata: Box<RawValue> = metadata.unwrap_or_else(|_| RawValue::NULL.to_owned()),
        /// Grows by one with each rollback of the run, and with the undo or abort of one.
        epoch: i64 = run.epoch,
        created_at: String = run.created_at.to_string(),
        updated_at: String = run.updated_at.to_string(),
        finished_at: Option<String> = run.completed_at.map(|t| t.to_string()),
    }

    /// A run that was created, or was open already under the same scope (`run create`).
    pub(crate) struct RunCreatedJson from created: &CreatedRun {
        #[serde(flatten)]
        run: RunJson = (&created.run).into(),
        /// Whether this call created it. False: a run with the same scope, goal and phases was open already.
        created: bool = created.is_new,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<WarningJson> = created.warnings.iter().map(WarningJson::from).collect(),
    }

    /// The current phase of a run (`run phase`).
    pub(crate) struct PhaseJson from run: &Run {
        run_id: String = run.id.to_string(),
        phase: String = run.phase.clone(),
        epoch: i64 = run.epoch,
        status: &'static str as ic_phase::RunStatus = run.status.as_str(),
    }

    /// A phase marked to be skipped (`run skip`).
    pub(crate) struct SkipJson from (run, skip, changed): &(Run, SkipRecord, bool) {
        run_id: String = run.id.to_string(),
        phase: String = skip.phase.clone(),
        reason: Option<String> = skip.reason.clone(),
        seq: i64 = skip.seq,
        /// False if it was marked already.
        changed: bool = *changed,
    }

    /// The current state of a run, with the tokens that its work used (`run status`).
    pub(crate) struct RunStatusJson from (run: &Run, spent: &[Spent]) where
        phases = spent.iter().map(PhaseTokensJson::from);
        (all, rolled_back) = token_totals::total(spent);
        sum = SpentJson::new(all, rolled_back);
    {
        #[serde(flatten)]
        run: RunJson = run.into(),
        tokens: RunTokensJson = RunTokensJson { by_phase: phases.collect(), sum },
    }

    /// The tokens that the dispatches of a run used.
    struct RunTokensJson {
        #[serde(flatten)]
        sum: SpentJson,
        /// The tokens of each phase with a dispatch, in the order of the chain.
        by_phase: Vec<PhaseTokensJson>,
    }

    /// The tokens of one phase.
    struct PhaseTokensJson from of: &Spent {
        phase: String = of.phase.clone(),
        #[serde(flatten)]
        sum: SpentJson = SpentJson::new(of.all, of.rolled_back),
    }

    /// What all dispatches used, rolled-back ones included.
    struct SpentJson from (all: TokenCounts, rolled_back: TokenCounts) {
        #[serde(flatten)]
        all: TokensJson = all.into(),
        /// The part that rolled-back dispatches used.
        rolled_back: TokensJson = rolled_back.into(),
    }
}

/// Runs, one a line.
pub(crate) fn table(runs: &[Run], now: Timestamp) -> String {
    let mut table = TextTable::new(&["RUN", "STATUS", "PHASE", "EPOCH", "CREATED", "GOAL"]);
    for run in runs {
        table.row(vec![
            Cell::new(style::STRONG, run.id.short()),
            Cell::new(status_style(run.status), run.status.as_str()),
            run.phase.as_str().into(),
            run.epoch.to_string().into(),
            Cell::new(style::DIM, &when(now, run.created_at)),
            run.goal.as_str().into(),
        ]);
    }
    table.render("No runs.")
}

fn status_style(status: RunStatus) -> anstyle::Style {
    match status {
        RunStatus::Active => style::NONE,
        RunStatus::RollingBack => style::WARN,
        RunStatus::Completed => style::GOOD,
        RunStatus::Cancelled | RunStatus::Failed => style::BAD,
    }
}

/// One run, with its chain drawn.
pub(crate) fn card(run: &Run, skipped: &[String], spent: &[Spent]) -> String {
    let mut out = format!("{}  {}\n", styled(style::STRONG, run.id.short()), plain(&run.goal));
    let mut line = |label: &str, value: &str| {
        out += &format!("  {}  {value}\n", styled(style::DIM, &format!("{label:<9}")));
    };
    let mut state = styled(status_style(run.status), run.status.as_str());
    if !run.auto_advance {
        state.push_str(", auto-advance is off");
    }
    line("status", &state);
    line("chain", &chain(run, skipped));
    line("epoch", &run.epoch.to_string());
    if let Some(scope) = &run.scope_id {
        line("scope", &plain(scope));
    }
    if let Some(complexity) = run.complexity {
        line("work", &format!("{complexity} of 5"));
    }
    if let Some(tokens) = tokens(spent) {
        line("tokens", &tokens);
    }
    if run.metadata != "{}" {
        line("metadata", &plain(&run.metadata));
    }
    line("project", &path_text(&run.project_dir));
    line("created", &run.created_at.to_string());
    match run.completed_at {
        Some(completed) => line("completed", &completed.to_string()),
        None => line("updated", &run.updated_at.to_string()),
    }
    line("id", run.id.as_str());
    out
}

/// `12000 in, 3400 out, 0 cached`, and the part that was rolled back; `None` if no work reported any.
fn tokens(spent: &[Spent]) -> Option<String> {
    let (all, rolled_back) = token_totals::total(spent);
    let told = |t: TokenCounts| format!("{} in, {} out, {} cached", t.input, t.output, t.cache);
    let part = |t: TokenCounts| {
        if t == TokenCounts::default() { String::new() } else { format!("; rolled back of it: {}", told(t)) }
    };
    (all != TokenCounts::default()).then(|| told(all) + &part(rolled_back))
}

/// The chain with a mark for each phase: `✓ a  ▶ b  · c  ⤼ d  · e`.
pub(crate) fn chain(run: &Run, skipped: &[String]) -> String {
    let current = run.chain.index_of(&run.phase).unwrap_or(0);
    // A completed run is at its last phase, which is passed, too.
    let done = run.completed_at.is_some();
    let phases: Vec<String> = run
        .chain
        .names()
        .iter()
        .enumerate()
        .map(|(i, phase)| {
            let name = plain(phase);
            if skipped.iter().any(|s| s == phase) {
                styled(style::DIM, &format!("({name})"))
            } else if i < current || done {
                styled(style::GOOD, &format!("✓ {name}"))
            } else if i == current {
                styled(style::STRONG, &format!("▶ {name}"))
            } else {
                styled(style::DIM, &name)
            }
        })
        .collect();
    phases.join("  ")
}
