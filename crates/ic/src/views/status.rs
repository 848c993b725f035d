//! One run on one screen.

use ic_base::Timestamp;
use ic_dispatch::worker::Life;
use ic_ledger::events::EventType;
use ic_ops::advance::AdvanceOutcome;
use ic_ops::status::{Calling, RunOverview, UnfinishedWork, Working};
use ic_phase::Run;

use crate::text::{age, cut_to, plain, shell_word, style, styled};
use crate::views;
use crate::views::dispatch::AliveJson;
use crate::views::gate::GateCheckJson;
use crate::views::log::{Chosen, LogUndoJson, PointJson};
use crate::views::run::RunJson;

shape! {
    /// A run at a glance (`status`).
    pub(crate) struct StatusJson from status: &RunOverview {
        run: RunJson = (&status.run).into(),
        /// The outcome that an advance would have now; null for a run that has ended, is rolling back, or belongs to a session.
        gate: Option<GateCheckJson> = status.gate.as_ref().map(GateCheckJson::from),
        /// The calling dispatch, by `IC_DISPATCH` or by the session of an agent; null if there is none.
        caller: Option<CallerJson> = status.caller.as_ref().map(CallerJson::from),
        /// The workers of the run: its executor, then its dispatches that have begun and not ended, then its active agents, each newest
        /// first.
        working: Vec<WorkingJson> = status.working.iter().map(WorkingJson::from).collect(),
        /// Prompts that coding agents work on in this project, in runs of their own, newest first, up to three.
        elsewhere: Vec<WorkingJson> = status.elsewhere.iter().map(WorkingJson::from).collect(),
        /// The newest point that the run can go back to.
        last_point: Option<PointJson> = status.last_point.as_ref().map(PointJson::from),
        /// Unfinished operations that no live process executes.
        unfinished: Vec<UnfinishedJson> = status.unfinished.iter().map(UnfinishedJson::from).collect(),
        /// The command to type next; words in capitals are placeholders.
        next: String = status.next_command(),
    }

    /// The dispatch that makes this call.
    struct CallerJson from caller: &Calling {
        dispatch_id: String = caller.dispatch.id.to_string(),
        run_id: String = caller.dispatch.run_id.to_string(),
        status: &'static str as ic_dispatch::DispatchStatus = caller.dispatch.status.as_str(),
        /// Whether it, or the work that began it, was rolled back: its reports are refused from then on.
        stale: bool = caller.is_stale,
        rolled_back_by: Option<String> = caller.dispatch.rolled_back_by.as_ref().map(ToString::to_string),
    }

    struct WorkingJson from working: &Working where
        (pid, life, dispatch, agent) = match working {
            Working::Executor { pid } => (pid.map(i64::from), Some(Life::Alive), None, None),
            Working::Dispatch(dispatch, life) => (dispatch.pid(), *life, Some(dispatch), None),
            Working::Agent(agent) => (None, None, None, Some(agent)),
        };
    {
        #[cfg_attr(test, schemars(extend("enum" = ["executor", "dispatch", "agent"])))]
        kind: &'static str = match working {
            Working::Executor { .. } => "executor",
            Working::Dispatch(..) => "dispatch",
            Working::Agent(_) => "agent",
        },
        /// The run that it works for; null for the executor.
        run_id: Option<String> =
            dispatch.map(|one| &one.run_id).or(agent.map(|one| &one.run_id)).map(ToString::to_string),
        /// Of an agent, the dispatch that it works on; null for the executor, and for an agent that works on none.
        dispatch_id: Option<String> =
            dispatch.map(|one| &one.id).or(agent.and_then(|one| one.dispatch_id.as_ref())).map(ToString::to_string),
        /// The status of an agent; null for all other workers.
        agent_id: Option<String> = agent.map(|agent| agent.id.to_string()),
        name: Option<String> =
            dispatch.map_or_else(|| agent.and_then(|one| one.name.clone()), |one| one.work.name.clone()),
        agent_kind: Option<String> = dispatch
            .map_or_else(|| agent.map(|one| one.kind.clone()), |one| one.work.agent_type.clone()),
        pid: Option<i64> = pid,
        /// Whether it lives, as of a dispatch.
        #[cfg_attr(test, schemars(extend("enum" = [true, false, "unknown", "lost", null])))]
        alive: Option<AliveJson> = life.map(AliveJson::from),
        /// When its work began; for an agent, when it was added.
        started_at: Option<String> = dispatch
            .and_then(|dispatch| dispatch.started_at)
            .or(agent.map(|agent| agent.created_at))
            .map(|at| at.to_string()),
    }

    struct UnfinishedJson from unfinished: &UnfinishedWork {
        #[cfg_attr(test, schemars(extend("enum" = ["rollback", "restore", "rewind", "compensation", "workflow"])))]
        kind: &'static str = unfinished.kind,
        /// The id of the operation; for a workflow and for compensations, the id of the run.
        id: String = unfinished.id.clone(),
        message: String = unfinished.message.clone(),
        /// The command that resumes it.
        command: String = unfinished.command.clone(),
        /// The command that aborts it instead; left out if there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        abort: Option<String> = unfinished.abort.clone(),
    }
}

/// The columns beside a label, in a line of 80 columns.
const ROOM: usize = 66;

/// The run, its gate, its workers, the last point, what is unfinished, and the command to type next.
pub(crate) fn screen(status: &RunOverview, now: Timestamp, back: LogUndoJson, store: Option<&str>) -> String {
    let is_alone = status.others_open.is_empty() && !status.is_of_session;
    let mut out = views::log::head(&status.run, Chosen::of(status.is_named, is_alone));
    let mut line = |label: &str, value: &str| {
        out += &format!("  {}  {value}\n", styled(style::DIM, &format!("{label:<10}")));
    };
    if let Some(outcome) = &status.gate {
        line("phase", &way(&status.run, outcome));
        line("gate", &gate(outcome));
    }
    if let Some(caller) = &status.caller {
        line("caller", &calling(caller));
    }
    for working in &status.working {
        line("working", &worker(working, now));
    }
    if status.working.is_empty() && status.gate.is_some() {
        line("working", &styled(style::DIM, "none"));
    }
    for working in &status.elsewhere {
        line("elsewhere", &worker(working, now));
    }
    let (label, point) =
        if status.is_of_session { ("prompt", &status.newest_prompt) } else { ("point", &status.last_point) };
    if status.is_of_session && point.is_none() {
        line(label, &styled(style::DIM, "none that stands"));
    }
    if let Some(point) = point {
        let reference = shell_word(&point.reference);
        let in_part = point.undone().map(|undone| format!(" ({undone})")).unwrap_or_default();
        let about = format!("{}{in_part}  {}", age(now, point.created_at), plain(&point.title));
        let room = ROOM.saturating_sub(reference.len() + 2);
        line(label, &format!("{reference}  {}", cut_to(about.trim_end(), room)));
        if let Some(rest) = point.rest() {
            line("the rest", &styled(style::STRONG, &rest));
        }
    }
    for unfinished in &status.unfinished {
        line("unfinished", &left(unfinished));
    }
    for open in &status.others_open {
        let id = open.id.short();
        let goal = cut_to(&plain(&ic_base::title(&open.goal)), ROOM.saturating_sub(id.len() + 2));
        line("also open", &format!("{id}  {goal}"));
    }
    if let Some(store) = store {
        line("store", store);
    }
    line("next", &styled(style::STRONG, &plain(&status.next_command())));
    // What is unfinished has to be finished first, so no undo is named beside it.
    if let Some(prompt) = status.newest_prompt.as_ref().filter(|_| status.unfinished.is_empty()) {
        let run = if status.is_named { format!(" --run {}", status.run.id.short()) } else { String::new() };
        let way = match back {
            LogUndoJson::Undo => format!("ic undo{run} --dry-run"),
            LogUndoJson::Record => {
                let to = shell_word(&prompt.reference);
                format!("ic run rollback {} --to {to} --dry-run", status.run.id.short())
            }
        };
        line("or", &styled(style::STRONG, &way));
    }
    out
}

/// The next step in the chain: `executing → review  (5 of 9)`.
fn way(run: &Run, outcome: &AdvanceOutcome) -> String {
    let at = run.chain.index_of(&run.phase).map_or(0, |at| at + 1);
    let of_all = format!("  ({at} of {})", run.chain.names().len());
    let way = format!("{} → {}", plain(&outcome.from), plain(&outcome.to));
    cut_to(&way, ROOM.saturating_sub(of_all.len())) + &of_all
}

fn gate(outcome: &AdvanceOutcome) -> String {
    let (said, colour) = match outcome.event_type {
        EventType::Advance | EventType::Override => ("holds", style::GOOD),
        EventType::Pause => ("would pause", style::WARN),
        _ => ("would be blocked", style::BAD),
    };
    let why = outcome.reason.as_deref().map(|reason| format!(": {}", plain(reason))).unwrap_or_default();
    format!("{}{}", styled(colour, said), cut_to(&why, ROOM.saturating_sub(said.len())))
}

fn calling(caller: &Calling) -> String {
    let (id, status) = (caller.dispatch.id.short(), caller.dispatch.status.as_str());
    if caller.is_stale {
        return styled(style::BAD, &format!("dispatch {id} was rolled back: what it reports is refused"));
    }
    format!("dispatch {id}, {status}")
}

fn worker(working: &Working, now: Timestamp) -> String {
    match working {
        Working::Executor { pid } => {
            let pid = pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
            format!("the executor of the run{pid}")
        }
        Working::Dispatch(work, life) => {
            let name = work.work.name.as_deref().or(work.work.agent_type.as_deref()).unwrap_or_default();
            let age = work.started_at.map(|at| format!(", begun {}", age(now, at))).unwrap_or_default();
            let pid = work.pid().map(|pid| format!(", pid {pid}")).unwrap_or_default();
            let alive = life.map_or("", views::dispatch::alive);
            let facts = format!("{age}{pid}{alive}");
            let start = format!("dispatch {} ", work.id.short());
            let room = ROOM.saturating_sub(start.len() + facts.len());
            let named = format!("{start}{}", cut_to(&plain(&ic_base::title(name)), room));
            format!("{}{facts}", named.trim_end())
        }
        Working::Agent(agent) => {
            let start = format!("agent {} ", agent.id.short());
            let facts = format!(", added {}", age(now, agent.created_at));
            let name =
                agent.name.as_ref().map_or_else(|| agent.kind.clone(), |name| format!("{name} ({})", agent.kind));
            let room = ROOM.saturating_sub(start.len() + facts.len());
            format!("{start}{}{facts}", cut_to(&plain(&ic_base::title(&name)), room))
        }
    }
}

/// An unfinished operation; its command is on a line of its own, whole, because a person copies it.
fn left(unfinished: &UnfinishedWork) -> String {
    let message = cut_to(&plain(&ic_base::title(&unfinished.message)), ROOM);
    let command = styled(style::STRONG, &plain(&unfinished.command));
    // Two spaces, ten for a label, and two: the command stands below the message.
    let abort = unfinished.abort.as_ref().map(|abort| format!("\n{:<14}or abort it: {}", "", plain(abort)));
    format!("{}\n{:<14}{command}{}", styled(style::WARN, &message), "", abort.unwrap_or_default())
}
