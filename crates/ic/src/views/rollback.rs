//! A rollback of the record, planned or done.

pub(crate) mod commits;
pub(crate) mod data;
pub(crate) mod layers_plan;
pub(crate) mod record;
pub(crate) mod rollback_undo;
pub(crate) mod steps;
pub(crate) mod tree;

use commits::{CommitJson, OwnCommitJson};
use ic_dispatch::Dispatch;
use ic_kernel::journal::steps::next_command;
use ic_runtrack::{Agent, Artifact};
use ic_undo::{Effects, LayeredRollback, LayeredStatus, OutsideChange, Refusal, RollbackPlan, RollbackSummary};

use crate::text::{Cell, TextTable, counted, path_text, plain, shell_word, style, styled};
use crate::views::PathJson;
use crate::views::checkpoint::restore::RestoreJson;
use crate::views::common_shapes::{RefusalJson, WarningJson};
use crate::views::compensation::compensation_report::UndoneStepJson;
use crate::views::conversation::UndoneConversationJson;
use crate::views::rollback::data::DataJson;
use crate::views::rollback::steps::StepJson;

shape! {
    /// A rollback, planned or done (`run rollback`). Statuses inside the lists are those before it.
    pub(crate) struct RollbackJson from rollback: &RollbackSummary where
        plan = &rollback.plan;
    {
        run_id: String = plan.run.id.to_string(),
        /// The rollback's id; null for a dry run.
        rollback_id: Option<String> = rollback.done.as_ref().map(|(id, _)| id.to_string()),
        dry_run: bool = rollback.done.is_none(),
        layers: Vec<&'static str> = vec!["workflow"],
        from_phase: String = plan.run.phase.clone(),
        to_phase: String = plan.to_phase.clone(),
        include_target: bool = plan.include_target,
        /// The point that the run goes back to; null if it goes back to a phase.
        point: Option<String> = plan.point.clone(),
        /// The dispatches that alone are undone, oldest first, while the run stays in its phase; empty if the run goes back.
        dispatch_ids: Vec<String> = plan.chosen.iter().map(ToString::to_string).collect(),
        /// Earlier undos of single dispatches that this rollback lifts, because it goes back to before them: the ids of their rollbacks.
        reinstated: Vec<String> = plan.reinstated.iter().map(ToString::to_string).collect(),
        /// Whether the run was completed, so that the rollback makes it active again.
        reopens: bool = plan.reopens(),
        /// The event that the run goes back to: everything with a greater number is rolled back.
        cut_seq: i64 = plan.cut.seq,
        /// The run's epoch after the rollback.
        epoch: i64 = plan.next_epoch(),
        reason: Option<String> = rollback.reason.clone(),
        /// The hash of the plan; null for a plan that would be refused, which --expect-plan cannot accept.
        plan_hash: Option<String> = Some(rollback.plan_hash.clone()),
        /// The phases that the run leaves, in the order of its chain; the target is among them only with --include-target.
        rolled_back_phases: Vec<String> = plan.rolled_back_phases(),
        /// Dispatches that had not ended, and are cancelled.
        cancelled_dispatches: Vec<DispatchRef> = DispatchRef::all(plan, &plan.cancelled_dispatches),
        /// Dispatches that had ended: they are marked, and keep their status.
        marked_dispatches: Vec<DispatchRef> = DispatchRef::all(plan, &plan.marked_dispatches),
        marked_artifacts: Vec<ArtifactRef> = plan.artifacts.iter().map(Into::into).collect(),
        /// Agents that were active, and fail.
        failed_agents: Vec<AgentRef> = plan.failed_agents.iter().map(Into::into).collect(),
        /// Agents that had ended: they are marked, and keep their status.
        marked_agents: Vec<AgentRef> = plan.marked_agents.iter().map(Into::into).collect(),
        cleared_skips: Vec<String> = plan.skips.iter().map(|s| s.phase.clone()).collect(),
        counts: CountsJson = plan.into(),
        /// The effects that are undone, in order; null if that layer is not rolled back.
        #[serde(skip_serializing_if = "Option::is_none")]
        effects: Option<EffectsJson> = None,
        /// Files and git's state; null if they are not rolled back.
        #[serde(skip_serializing_if = "Option::is_none")]
        files: Option<RestoreJson> = None,
        /// Files outside of the project that tool calls changed; left out if there are none.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        outside: Vec<OutsideJson> = Vec::new(),
        /// The commits that leave their branches, newest first; null if git's state is not rolled back.
        #[serde(skip_serializing_if = "Option::is_none")]
        commits: Option<Vec<CommitJson>> = None,
        /// The commits of the dispatch that alone is undone, newest first: they stay on their branches. Null for any other rollback.
        #[serde(skip_serializing_if = "Option::is_none")]
        own_commits: Option<Vec<OwnCommitJson>> = None,
        /// Rows of the application's tables; null if that layer is not rolled back.
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<DataJson> = None,
        /// The state of each step.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        steps: Vec<StepJson> = Vec::new(),
        /// In a dry run, the refusal of the real call; left out if there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        refusal: Option<RefusalJson> = None,
        /// In a dry run, all refusals of the real call, in order, each with the flag that overrides it.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        refusals: Vec<DecidedJson> = Vec::new(),
        /// The command that resumes after a step failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        resume: Option<String> = None,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<WarningJson> = Vec::new(),
        /// Conversations of agents that still have an undone prompt, each with the command that continues it from before. Left out if there
        /// are none.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub(crate) conversations: Vec<UndoneConversationJson> = Vec::new(),
        /// planned, `rolled_back`, `rolling_back`; `rolled_back_in_part`: something of the one dispatch stays, see files.skipped;
        /// `already_there`: the rollback `rollback_id`, at the same time, went back to the same phase.
        status: &'static str as ic_undo::LayeredStatus = status(rollback),
        /// The number of the rollback's event; null for a dry run.
        seq: Option<i64> = rollback.done.as_ref().map(|(_, seq)| *seq),
    }

    struct CountsJson from plan: &RollbackPlan where
        counts = plan.counts();
    {
        phases: usize = counts.phases,
        dispatches: usize = counts.dispatches,
        artifacts: usize = counts.artifacts,
        agents: usize = counts.agents,
        skips: usize = counts.skips,
    }

    struct DispatchRef from (dispatch: &Dispatch, undone_from: Option<i64>) {
        id: String = dispatch.id.to_string(),
        name: Option<String> = dispatch.work.name.clone(),
        phase: String = dispatch.phase.clone(),
        status: &'static str as ic_dispatch::DispatchStatus = dispatch.status.as_str(),
        /// Null, or the event after which its work is undone, if it began before. Then its earlier work stays.
        #[serde(skip_serializing_if = "Option::is_none")]
        undone_from: Option<i64> = undone_from,
    }

    struct ArtifactRef from artifact: &Artifact {
        id: String = artifact.id.to_string(),
        phase: String = artifact.phase.clone(),
        #[serde(flatten)]
        path: PathJson = artifact.path.as_path().into(),
        kind: String = artifact.kind.clone(),
    }

    struct AgentRef from agent: &Agent {
        id: String = agent.id.to_string(),
        name: Option<String> = agent.name.clone(),
        phase: String = agent.phase.clone(),
        status: &'static str as ic_runtrack::agent::AgentStatus = agent.status.as_str(),
    }

    /// The outside effects that a rollback undoes.
    pub(crate) struct EffectsJson from effects: &Effects {
        /// The compensations, in the order in which they are undone.
        results: Vec<UndoneStepJson> = effects.compensations.iter().map(UndoneStepJson::from).collect(),
        /// The compensations that are not undone.
        compensations_left: Vec<String> = effects.left.iter().map(|left| left.id.to_string()).collect(),
    }

    /// A file outside of the project, and how it changes.
    pub(crate) struct OutsideJson from change: &OutsideChange {
        #[serde(flatten)]
        path: PathJson = change.path.as_path().into(),
        #[cfg_attr(test, schemars(extend("enum" = ["create", "modify", "delete"])))]
        change: &'static str = change.action,
        /// The reason why it is not changed; null if it changes.
        reason: Option<String> = change.left.clone(),
    }

    /// A refusal, and the flag that overrides it.
    pub(crate) struct DecidedJson from refusal: &Refusal {
        code: &'static str = refusal.error.code().as_str(),
        message: String = refusal.error.message().to_owned(),
        hint: Option<String> = refusal.error.get_hint().map(ToString::to_string),
        /// The flag that overrides it; null if none does.
        flag: Option<&'static str> = refusal.flag,
    }
}

fn status(rollback: &RollbackSummary) -> &'static str {
    let status = match &rollback.done {
        Some(_) if rollback.is_at_once => LayeredStatus::AlreadyThere,
        Some(_) => LayeredStatus::RolledBack,
        None => LayeredStatus::Planned,
    };
    status.as_str()
}

impl DispatchRef {
    fn all(plan: &RollbackPlan, dispatches: &[Dispatch]) -> Vec<Self> {
        dispatches.iter().map(|one| Self::new(one, plan.undone_in_part_from(one))).collect()
    }
}

impl From<&LayeredRollback> for RollbackJson {
    fn from(whole: &LayeredRollback) -> Self {
        let id = whole.rollback.done.as_ref().map(|(id, _)| id);
        let is_stopped = whole.status == LayeredStatus::RollingBack;
        let parts = &whole.parts;
        Self {
            layers: whole.layers.iter().map(|layer| layer.as_str()).collect(),
            effects: parts.effects.as_ref().map(EffectsJson::from),
            files: parts.tree.as_ref().map(RestoreJson::from),
            outside: parts.outside.iter().map(OutsideJson::from).collect(),
            commits: parts.commits.as_ref().map(|all| all.iter().map(CommitJson::from).collect()),
            own_commits: parts.own_commits.as_ref().map(|all| all.iter().map(OwnCommitJson::from).collect()),
            data: parts.data.as_ref().map(DataJson::from),
            steps: StepJson::all(&whole.steps, true),
            plan_hash: whole.refusals.is_empty().then(|| whole.rollback.plan_hash.clone()),
            refusal: whole.refusals.first().map(|refusal| RefusalJson::from(&refusal.error)),
            refusals: whole.refusals.iter().map(DecidedJson::from).collect(),
            resume: id.filter(|_| is_stopped).map(|id| next_command(id, &whole.steps)),
            warnings: whole.stays().map(WarningJson::from).collect(),
            status: whole.status.as_str(),
            ..Self::from(&whole.rollback)
        }
    }
}

/// A rollback of the record, done or planned. `has_more`: whether the run has other layers, which could be asked for.
pub(crate) fn summary(rollback: &RollbackSummary, has_more: bool) -> String {
    if let (true, Some((by, _))) = (rollback.is_at_once, &rollback.done) {
        let (run, phase) = (rollback.plan.run.id.short(), plain(&rollback.plan.to_phase));
        return format!("{run} is at {phase} already: the rollback {} took it there at the same time\n", by.short());
    }
    let stays = match rollback.done {
        Some(_) => "Files and commits stayed as they are: only the record was rolled back.",
        None if has_more => {
            "Files and commits stay as they are: only the record is rolled back. With them: --layer=all"
        }
        None => "Files and commits stay as they are: only the record is rolled back.",
    };
    format!("{}{}{stays}\n{}", head(rollback, true), record(rollback, false), next(rollback))
}

/// What is undone: the run or the work, and why.
fn head(rollback: &RollbackSummary, is_finished: bool) -> String {
    let plan = &rollback.plan;
    let is_of_works = plan.cut.is_of_works();
    let what = match (&rollback.done, is_finished) {
        (Some(_), true) if is_of_works => styled(style::BAD, "undone in"),
        (Some(_), false) if is_of_works => styled(style::WARN, "undoing in"),
        (None, _) if is_of_works => styled(style::WARN, "would undo in"),
        (Some(_), true) => styled(style::BAD, "rolled back"),
        (Some(_), false) => styled(style::WARN, "rolling back"),
        (None, _) => styled(style::WARN, "would roll back"),
    };
    let mut out = format!("{what} {} {}\n", styled(style::STRONG, plan.run.id.short()), plain(&plan.run.goal));
    if !is_of_works {
        out += &format!("  {}\n", route(plan));
    }
    if let Some(reason) = &rollback.reason {
        out += &format!("  because {}\n", plain(reason));
    }
    if plan.reopens() {
        let said = match (&rollback.done, is_finished) {
            (Some(_), true) => "The run was completed: it is active again.",
            _ => "The run is completed: it becomes active again.",
        };
        out += &format!("  {}\n", styled(style::WARN, said));
    }
    out += &works(plan);
    if is_of_works {
        out += &format!("  {}\n", styled(style::DIM, "what others did stays, before it and after it"));
    }
    out
}

/// The dispatches that are undone, oldest first.
fn works(plan: &RollbackPlan) -> String {
    let mut table = TextTable::headless();
    // The plan has two lists. A person looks for the work in the order in which it was made.
    let cancelled = plan.cancelled_dispatches.iter().map(|one| (one, "cancel"));
    let mut all: Vec<(&Dispatch, &str)> =
        cancelled.chain(plan.marked_dispatches.iter().map(|one| (one, "undo"))).collect();
    all.sort_by_key(|(one, _)| one.seq);
    for (one, verb) in all {
        let name = one.work.name.as_deref().unwrap_or("");
        table.row(vec![Cell::new(style::BAD, verb), one.id.short().into(), one.phase.as_str().into(), name.into()]);
    }
    let text = table.render("") + &straddling(plan);
    text.lines().filter(|line| !line.is_empty()).map(|line| format!("  {line}\n")).collect()
}

/// What changes in the record besides the work, and where it ends. `has_effects`: whether effects are undone, too, which are a part of it.
fn record(rollback: &RollbackSummary, has_effects: bool) -> String {
    let plan = &rollback.plan;
    if plan.cut.is_of_works() {
        return String::new();
    }
    let mut out = format!("\n{}\n", styled(style::STRONG, "Record"));
    out += &details(plan, has_effects);
    for undo in &plan.reinstated {
        out += &format!("  the undo {} of single work is lifted: its work counts again\n", undo.short());
    }
    let counts = plan.counts();
    let all = [
        (counts.phases, "phase"),
        (counts.dispatches, "dispatch"),
        (counts.artifacts, "artifact"),
        (counts.agents, "agent"),
        (counts.skips, "skip"),
    ];
    let all: Vec<String> = all.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| counted(n, what)).collect();
    let all = if all.is_empty() { String::new() } else { format!("rolled back: {}; ", all.join(", ")) };
    out += &format!("  {all}records up to event {} stay\n", plan.cut.seq);
    out
}

/// The way that the run goes: `planned ← executing ← review`, or `executing, before dispatch:3f9a12c4`.
fn route(plan: &RollbackPlan) -> String {
    if let Some(point) = &plan.point {
        let from =
            if plan.run.phase == plan.to_phase { String::new() } else { format!(" ← {}", plain(&plan.run.phase)) };
        return format!("{}{from}, before {}", styled(style::STRONG, &plain(&plan.to_phase)), plain(point));
    }
    let mut stops: Vec<String> = Vec::new();
    for phase in plan.run.chain.names() {
        let leaves = plan.cut.phases.iter().any(|p| p == phase);
        if phase == plan.to_phase {
            let name = styled(style::STRONG, &plain(phase));
            stops.push(if plan.include_target { format!("{name} (redone)") } else { name });
        } else if leaves {
            stops.push(styled(style::DIM, &plain(phase)));
        }
    }
    stops.join(" ← ")
}

fn details(plan: &RollbackPlan, has_effects: bool) -> String {
    let mut table = TextTable::headless();
    for a in &plan.artifacts {
        table.row(vec![
            Cell::new(style::WARN, "mark"),
            format!("artifact {}", a.id.short()).into(),
            a.phase.as_str().into(),
            a.status.as_str().into(),
            path_text(&a.path).as_str().into(),
        ]);
    }
    for a in &plan.failed_agents {
        table.row(agent_row("fail", a));
    }
    for a in &plan.marked_agents {
        table.row(agent_row("mark", a));
    }
    for s in &plan.skips {
        table.row(vec![
            Cell::new(style::WARN, "clear"),
            "skip".into(),
            s.phase.as_str().into(),
            "skipped".into(),
            s.reason.as_deref().unwrap_or("").into(),
        ]);
    }
    let has_works = !plan.cancelled_dispatches.is_empty() || !plan.marked_dispatches.is_empty();
    let text = table.render(if has_works { "" } else { where_nothing_is_marked(plan, has_effects) });
    text.lines().filter(|line| !line.is_empty()).map(|line| format!("  {line}\n")).collect()
}

/// The dispatches above that began before the point.
fn straddling(plan: &RollbackPlan) -> String {
    let ids: Vec<&str> = plan.straddling.iter().map(ic_base::DispatchId::short).collect();
    let Some(all) = (!ids.is_empty()).then(|| ids.join(", ")) else { return String::new() };
    format!("began before that and worked on after it: {all}; what was done before stays, but counts no more\n")
}

/// A sentence about the record, for a rollback that marks nothing.
fn where_nothing_is_marked(plan: &RollbackPlan, has_effects: bool) -> &'static str {
    let moves = plan.run.phase != plan.to_phase;
    match (moves, plan.reopens()) {
        _ if has_effects => "No dispatch, artifact, agent or skip is marked.",
        (true, true) => "In the record, only the phase and the status of the run change.",
        (true, false) => "In the record, only the phase changes.",
        (false, true) => "In the record, only the status of the run changes.",
        (false, false) => "In the record, the run is unchanged; the rollback is noted there.",
    }
}

fn agent_row(verb: &str, a: &Agent) -> Vec<Cell> {
    vec![
        Cell::new(style::BAD, verb),
        format!("agent {}", a.id.short()).into(),
        a.phase.as_str().into(),
        a.status.as_str().into(),
        a.name.as_deref().unwrap_or("").into(),
    ]
}

fn next(rollback: &RollbackSummary) -> String {
    let id = rollback.plan.run.id.short();
    let to = shell_word(&rollback.plan.to_phase);
    let hint = match &rollback.done {
        Some((rollback_id, _)) if rollback.plan.point.is_some() || rollback.plan.cut.is_of_works() => {
            format!("to bring it back: ic redo {} --yes", rollback_id.short())
        }
        Some(_) => {
            let target = if rollback.plan.include_target { " --include-target" } else { "" };
            format!(
                "to see which commits to revert, before you advance again: ic run rollback {id} --layer=code --to-phase {to}{target}"
            )
        }
        None => format!("nothing was changed; exactly this plan: --expect-plan {}", rollback.plan_hash),
    };
    styled(style::DIM, &hint) + "\n"
}
