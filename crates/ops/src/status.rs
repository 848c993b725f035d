//! A run at a glance: where it is, who works, what is left unfinished, and what to type next.

mod unfinished_work;

use ic_base::{Code, Diagnosis, Result, shell_word};
use ic_checkpoint::restore::journal;
use ic_dispatch::dispatch::{self, DispatchFilter};
use ic_dispatch::process::ProcessIdentity;
use ic_dispatch::worker::{Life, life};
use ic_dispatch::{Dispatch, DispatchStatus};
use ic_kernel::Kernel;
use ic_kernel::owner;
use ic_ledger::events::EventType;
use ic_ledger::{OpenOptions, Snapshot};
use ic_phase::gate::GateCheck;
use ic_phase::{Run, RunStatus};
use ic_runtrack::agent::{self, Agent};
use ic_undo::points::ListedPoint;
use ic_worktree::way_back;

use crate::advance::{self, AdvanceOutcome};
use crate::run::is_executed;

/// How many dispatches are named: more is no longer a glance.
const NAMED: i64 = 20;

/// The newest point that was not undone is looked for among this number of points.
const LOOKED_AT: usize = 20;

/// The number of other runs that are named.
const OTHERS: usize = 3;

/// A run at a glance.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOverview {
    /// The run that is shown.
    pub run: Run,
    /// Whether it was made for a session of a coding agent, which moves it.
    pub is_of_session: bool,
    /// Whether the caller said which run.
    pub is_named: bool,
    /// Where it is not open itself, the newest runs of this project that are, up to three.
    pub others_open: Vec<Run>,
    /// What an advance would do now; `None` for a run that does not move: it has ended, or is in the middle of a rollback.
    pub gate: Option<AdvanceOutcome>,
    /// The dispatch on whose behalf this is asked, of whichever run it is.
    pub caller: Option<Calling>,
    /// Who works for it.
    pub working: Vec<Working>,
    /// Prompts that coding agents work on in this project in runs of their own, the newest first, up to three: they may change the same
    /// files.
    pub elsewhere: Vec<Working>,
    /// The newest point to which it can go back.
    pub last_point: Option<ListedPoint>,
    /// Of a run that was made for a session, the point before its newest prompt that stands.
    pub newest_prompt: Option<ListedPoint>,
    /// What was begun and not finished, and no living process does it.
    pub unfinished: Vec<UnfinishedWork>,
}

/// The dispatch that asks.
#[derive(Debug, Clone, PartialEq)]
pub struct Calling {
    /// The dispatch that the caller's environment names.
    pub dispatch: Dispatch,
    /// Whether it was rolled back, or what began it: what it reports is refused.
    pub is_stale: bool,
}

/// A worker of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Working {
    /// A process executes its workflow, rolls it back or undoes its effects.
    Executor {
        /// Its number, if it is on record.
        pid: Option<u32>,
    },
    /// A dispatch that was begun and has not ended, newest first.
    Dispatch(Box<Dispatch>, Option<Life>),
    /// An agent that was added to the run and has not ended.
    Agent(Box<Agent>),
}

/// Something that was begun and not finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedWork {
    /// `rollback`, `restore`, `rewind`, `compensation` or `workflow`.
    pub kind: &'static str,
    /// Its id; of a workflow and of compensations, the run's.
    pub id: String,
    /// What is so, for people.
    pub message: String,
    /// The command that resumes it.
    pub command: String,
    /// The command that aborts it instead; `None`: it cannot be aborted.
    pub abort: Option<String>,
}

/// The error that there is no run here, with what an interrupted restore of the tree has left to do.
pub fn without_run(kernel: &Kernel, options: OpenOptions, error: Diagnosis) -> Diagnosis {
    let interrupted = kernel.read(|snapshot| journal::unfinished(snapshot, &kernel.project.root));
    // The answer is `error` either way. A read that fails leaves out only the advice.
    let interrupted = interrupted.ok().flatten();
    let Some(restore) = interrupted else { return error };
    match unfinished_work::interrupted(kernel, options, &restore) {
        Some(left) => {
            error.but(&left.message).hint(format!("finish it: {}; or undo it: {}", left.command, way_back(&restore)))
        }
        None => error,
    }
}

/// A run at a glance, and `also` what other owners left unfinished of it where no process executes it. Nothing is written.
pub fn status(
    kernel: &Kernel,
    options: OpenOptions,
    run: &Run,
    is_named: bool,
    also: impl FnOnce(&Snapshot<'_>) -> Result<Option<UnfinishedWork>>,
) -> Result<RunOverview> {
    let is_executed = is_executed(kernel, &run.id);
    let (mut status, restore) = kernel.read(|snapshot| {
        let mut unfinished = Vec::new();
        // What a living process does is not left unfinished: to resume it would be refused.
        if !is_executed {
            unfinished.extend(unfinished_work::of_run(snapshot, run)?);
            unfinished.extend(also(snapshot)?);
        }
        // Rewinds are looked for even while the run is executed: each has a lock of its own, which is asked.
        unfinished.extend(unfinished_work::rewinds(kernel, snapshot, run)?);
        let is_of_session = (kernel.above.is_of_session)(snapshot, &run.id)?;
        let mut standing = ic_undo::points::list(snapshot, run, false, LOOKED_AT)?;
        standing.retain(|one| !one.is_undone);
        let status = RunOverview {
            // The session moves its own run, so its gate is nothing for a person to satisfy.
            gate: if is_of_session { None } else { gate(snapshot, run)? },
            is_of_session,
            is_named,
            others_open: match run.require_active() {
                Ok(()) => Vec::new(),
                Err(_) => ic_undo::points::others_open(kernel, snapshot, run, OTHERS)?,
            },
            caller: caller(kernel, snapshot)?,
            working: working(snapshot, run, is_executed)?,
            elsewhere: elsewhere(kernel, snapshot, run)?,
            newest_prompt: standing.iter().find(|one| is_of_session && one.kind == "prompt").cloned(),
            last_point: standing.into_iter().next(),
            unfinished,
            run: run.clone(),
        };
        Ok((status, unfinished_work::restore(snapshot, run)?))
    })?;
    // This comes after the snapshot is closed, because it reads the plan of the restore from the object store.
    status.unfinished.extend(restore.and_then(|restore| unfinished_work::interrupted(kernel, options, &restore)));
    Ok(status)
}

/// The calling dispatch. One that is not of this ledger is no reason to say nothing of the run.
fn caller(kernel: &Kernel, snapshot: &Snapshot<'_>) -> Result<Option<Calling>> {
    let Some(caller) = &kernel.caller else { return Ok(None) };
    let is_stale = match kernel.calling_dispatch(snapshot) {
        Ok(_) => false,
        Err(error) if error.code() == Code::StaleDispatch => true,
        // The environment may name a dispatch of another ledger.
        Err(error) if matches!(error.code(), Code::DispatchNotFound | Code::AmbiguousId | Code::InvalidReference) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let dispatch = dispatch::resolve(snapshot, &caller.reference)?;
    Ok(Some(Calling { dispatch, is_stale }))
}

fn gate(snapshot: &Snapshot<'_>, run: &Run) -> Result<Option<AdvanceOutcome>> {
    match run.status {
        RunStatus::Active => match advance::verdict(snapshot, run) {
            // An open run at the end of its chain has nowhere to go. The status succeeds.
            Err(error) if error.code() == Code::TerminalPhase => Ok(None),
            outcome => outcome.map(Some),
        },
        RunStatus::RollingBack | RunStatus::Completed | RunStatus::Cancelled | RunStatus::Failed => Ok(None),
    }
}

/// What holds a run in its phase, and what removes that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldPhase {
    /// The code of the refusal: `gate_blocked` or `paused`.
    pub code: Code,
    /// What is so, for people.
    pub message: String,
    /// The command to type next.
    pub command: String,
}

/// What holds a run in its phase: auto-advance is off, or its gate does not hold. `None`: nothing does, or it does not move at all.
pub fn held(snapshot: &Snapshot<'_>, run: &Run) -> Result<Option<HeldPhase>> {
    let Some(outcome) = gate(snapshot, run)? else { return Ok(None) };
    let (code, command) = match outcome.event_type {
        EventType::Pause => (Code::Paused, format!("ic run set {} --auto-advance true", run.id.short())),
        EventType::Block => (Code::GateBlocked, next_move(&outcome)),
        _ => return Ok(None),
    };
    let why = outcome.reason.as_deref().unwrap_or("its gate does not hold");
    let message = format!("the run does not get from {} to {}: {why}", outcome.from, outcome.to);
    Ok(Some(HeldPhase { code, message, command }))
}

fn working(snapshot: &Snapshot<'_>, run: &Run, is_executed: bool) -> Result<Vec<Working>> {
    let mut working = Vec::new();
    if is_executed {
        let holder = owner::holder(snapshot, &run.id)?;
        // The lock says that there is one; the recorded holder may be an earlier one that died.
        let pid = holder.filter(ProcessIdentity::is_alive).map(|holder| holder.pid);
        working.push(Working::Executor { pid });
    }
    let running = Some(DispatchStatus::Running);
    let filter = DispatchFilter { run_id: Some(&run.id), phase: None, status: running, limit: NAMED };
    for dispatch in dispatch::list(snapshot, &filter)? {
        let life = life(&dispatch);
        working.push(Working::Dispatch(Box::new(dispatch), life));
    }
    let agents = agent::active(snapshot, &run.id, None)?;
    let most = usize::try_from(NAMED).unwrap_or(usize::MAX);
    // `active` has the oldest first. If there are many, the newest are named, as for dispatches.
    working.extend(agents.into_iter().rev().take(most).map(|agent| Working::Agent(Box::new(agent))));
    Ok(working)
}

/// The prompts at work in this project that are of other runs, made for the sessions of their agents.
fn elsewhere(kernel: &Kernel, snapshot: &Snapshot<'_>, run: &Run) -> Result<Vec<Working>> {
    let mut found = Vec::new();
    // Most ledgers have none, and to prepare the question takes longer than to ask whether it is one.
    if !ic_session::are_any_prompts(snapshot)? {
        return Ok(found);
    }
    // This looks at what runs, and not at the newest prompts: a prompt that works for long is older than many that have
    // ended.
    for work in dispatch::running(snapshot)? {
        if found.len() == OTHERS {
            break;
        }
        if work.run_id != run.id && is_open_prompt(kernel, snapshot, &work)? {
            let life = life(&work);
            found.push(Working::Dispatch(Box::new(work), life));
        }
    }
    Ok(found)
}

/// Whether work is a prompt of this project that its agent works on, in a run made for its session.
fn is_open_prompt(kernel: &Kernel, snapshot: &Snapshot<'_>, work: &Dispatch) -> Result<bool> {
    let prompt = ic_session::prompt_of(snapshot, &work.id)?.filter(|prompt| prompt.ended_at.is_none());
    let Some(prompt) = prompt.filter(|_| work.rolled_back_by.is_none()) else { return Ok(false) };
    let project = ic_session::get(snapshot, &prompt.session_id)?.project_dir;
    Ok(project == kernel.project.root && ic_session::is_own_run(snapshot, &work.run_id)?)
}

impl RunOverview {
    /// The command to type next: it finishes what was left, waits, or moves the run.
    pub fn next_command(&self) -> String {
        let id = self.run.id.short();
        // This comes before all others: what was left unfinished may have closed the run, and then any other command is
        // refused.
        if let Some(first) = self.unfinished.first() {
            return first.command.clone();
        }
        if self.working.iter().any(|one| matches!(one, Working::Executor { .. })) {
            return format!("ic run events {id}");
        }
        match (&self.gate, self.run.status) {
            (None, RunStatus::Active | RunStatus::Completed) if self.is_of_session => {
                if self.is_named {
                    format!("ic log {id}")
                } else {
                    "ic log".to_owned()
                }
            }
            (Some(outcome), _) => next_move(outcome),
            (None, RunStatus::Cancelled) => format!("ic run reopen {id} --reason WHY"),
            (None, RunStatus::Completed | RunStatus::Failed | RunStatus::Active) => {
                "ic run create --goal TEXT".to_owned()
            }
            (None, RunStatus::RollingBack) => format!("ic rollback list {id}"),
        }
    }
}

/// What moves a run, or gives its gate what it asks for.
fn next_move(outcome: &AdvanceOutcome) -> String {
    let id = outcome.run_id.short();
    match outcome.event_type {
        EventType::Advance | EventType::Override => return format!("ic run advance {id}"),
        EventType::Pause => return format!("ic gate override {id} --reason WHY"),
        _ => {}
    }
    for condition in outcome.verdict.conditions.iter().filter(|condition| !condition.holds) {
        if let Some(work) = condition.unfinished.first() {
            return work.command.clone();
        }
        if condition.check == GateCheck::ArtifactExists {
            let phase = condition.phase.as_ref().map(ic_base::Label::as_str);
            let elsewhere = phase.filter(|phase| *phase != outcome.from);
            let phase = elsewhere.map(|phase| format!(" --phase {}", shell_word(phase))).unwrap_or_default();
            return format!("ic run artifact add {id} --path FILE{phase}");
        }
    }
    format!("ic gate check {id}")
}
