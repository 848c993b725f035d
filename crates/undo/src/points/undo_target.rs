//! What a person means by "undo": which run, and which point of it.

use std::ops::ControlFlow;

use ic_base::{CheckpointId, Code, Diagnosis, DispatchId, Result, Seq};
use ic_checkpoint::record;
use ic_dispatch::dispatch;
use ic_kernel::Kernel;
use ic_kernel::journal::table;
use ic_ledger::Snapshot;
use ic_phase::Run;
use ic_phase::point::{self, PointKind};
use ic_phase::run::{self, RunFilter};
use ic_session::Prompt;

use ic_phase::run_reference::moved_from;

use super::change_reference::require_work;
use super::git_names::unless_of_git;
use super::idle_prompts::is_idle;
use super::list::{ListedPoint, list};
use super::other_places::elsewhere;
use super::place_works::{WORK, steps_back, work_back};
use super::point_position::{NamedPoint, PointGoal, by_name, resolve};
use super::point_reference::checkpoint_at;

/// What a bare undo refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoTarget {
    /// A run, with all that it did since a point.
    Run(Box<Run>),
    /// The tree alone, to a checkpoint that belongs to no run.
    Checkpoint(CheckpointId),
    /// The tree alone, because there is no run here.
    Tree,
}

/// What a caller means that names a run, a point, or neither. An id is enough to find its run; otherwise the open run of this project is
/// meant, or else its newest.
///
/// Errors: those of a lookup; `ambiguous_run` where several runs are open.
pub fn meant(kernel: &Kernel, run: Option<&str>, point: Option<&str>) -> Result<UndoTarget> {
    kernel.read(|snapshot| {
        if let Some(run) = run {
            return kernel.run(snapshot, run).map(|run| UndoTarget::Run(Box::new(run)));
        }
        if let Some(found) = point.map(|text| by_itself(kernel, snapshot, text)).transpose()?.flatten() {
            return Ok(found);
        }
        match run_here(kernel, snapshot).map_err(named_by_a_flag)? {
            Some(run) => Ok(UndoTarget::Run(Box::new(run))),
            None => Ok(UndoTarget::Tree),
        }
    })
}

/// The checkpoint that a reference names, or that shows the tree at the point that it names.
///
/// Errors: those of [`checkpoint_named`], of [`meant`] and [`resolve`]; `no_checkpoint` where nothing was captured there.
pub fn checkpoint_meant(kernel: &Kernel, run: Option<&str>, text: &str) -> Result<CheckpointId> {
    checkpoint_of(kernel, run, text).map_err(|error| unless_of_git(&kernel.project.root, text, error))
}

fn checkpoint_of(kernel: &Kernel, run: Option<&str>, text: &str) -> Result<CheckpointId> {
    match text.split_once(':') {
        Some(("checkpoint", name)) => checkpoint_named(kernel, run, name),
        // The tree before a restore, or before what a person changed.
        Some(("restore" | "own", id)) => kernel.read(|snapshot| record::resolve(snapshot, id)).map(|found| found.id),
        None if text != "created" && steps_back(text).is_none() => {
            // Any checkpoint has an id, also one that no point shows.
            match kernel.read(|snapshot| known(record::resolve(snapshot, text)))? {
                Some(found) => Ok(found.id),
                None => checkpoint_at_point(kernel, run, text).map_err(|error| match error.code() {
                    Code::PointNotFound | Code::AmbiguousRun => {
                        kernel.read(|snapshot| record::resolve(snapshot, text)).err().unwrap_or(error)
                    }
                    _ => error,
                }),
            }
        }
        _ => checkpoint_at_point(kernel, run, text),
    }
}

/// The checkpoint of the tree at a point.
fn checkpoint_at_point(kernel: &Kernel, run: Option<&str>, point: &str) -> Result<CheckpointId> {
    let run = match meant(kernel, run, Some(point))? {
        UndoTarget::Checkpoint(id) => return Ok(id),
        UndoTarget::Run(run) => run,
        UndoTarget::Tree => {
            return Err(Diagnosis::new(Code::PointNotFound, format!("There is no run here that has a point {point}."))
                .hint("name its run: --run RUN; all runs: ic run list"));
        }
    };
    let found = kernel.read(|snapshot| {
        let seq = match resolve(snapshot, &run, point)? {
            PointGoal::Place(place) => Some(place.seq),
            PointGoal::Phase { include_target: true, .. } => Some(run.seq),
            PointGoal::Phase { name, .. } => left(snapshot, &run, &name)?,
            PointGoal::Works(_) => None,
        };
        seq.map_or(Ok(None), |seq| checkpoint_at(snapshot, &run, seq))
    })?;
    found.map(|checkpoint| checkpoint.id).ok_or_else(|| {
        let text = format!("The tree was not captured at {point}.");
        let hint = format!("points whose tree was captured have a checkpoint_id: ic log {} --json", run.id.short());
        Diagnosis::new(Code::NoCheckpoint, text).hint(hint).detail("point", point)
    })
}

/// The checkpoint that a person means: the newest of this name in the named run, or one by its id, or the newest of this name in the
/// project.
///
/// Errors: those of a lookup of a run, and of one of a checkpoint.
pub fn checkpoint_named(kernel: &Kernel, run: Option<&str>, text: &str) -> Result<CheckpointId> {
    kernel.read(|snapshot| {
        if let Some(run) = run {
            let run = kernel.run(snapshot, run)?;
            if let Some(found) = record::of_run_named(snapshot, &run.id, text)? {
                return Ok(found.id);
            }
        }
        let error = match record::resolve(snapshot, text) {
            Ok(found) => return Ok(found.id),
            Err(error) => error,
        };
        match record::named(snapshot, &kernel.project.root, text)? {
            Some(found) => Ok(found.id),
            None => Err(error),
        }
    })
}

/// The event by which a run last left this phase.
fn left(snapshot: &Snapshot<'_>, run: &Run, phase: &str) -> Result<Option<Seq>> {
    let mut found = None;
    ic_ledger::events::each_crossing_newest_first(snapshot, &run.id, |event| {
        if event.from.as_deref() != Some(phase) {
            return Ok(ControlFlow::Continue(()));
        }
        found = Some(event.seq);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// Adds to an error how a command names a run that it does not take as a plain argument.
pub fn named_by_a_flag(error: Diagnosis) -> Diagnosis {
    match error.code() {
        Code::AmbiguousRun => error.hint("name one by the last digits of its id: --run RUN"),
        _ => error,
    }
}

/// The open run of this project, else its newest. Runs that were made for sessions of agents come after those that a person opened. Of the
/// former the one with the newest standing prompt is meant, whichever session it was given in and whether that has ended.
///
/// Errors: `ambiguous_run` where several are open that no session was made for.
pub fn run_here(kernel: &Kernel, snapshot: &Snapshot<'_>) -> Result<Option<Run>> {
    let project = &kernel.project;
    match kernel.current(snapshot) {
        // In an agent's own shell its run is meant, though it was made for a session.
        Ok(Some(run)) if kernel.own_run.is_some() || !is_of_session(snapshot, &run)? => return Ok(Some(run)),
        Ok(_) => {}
        Err(error) if error.code() == Code::AmbiguousRun => {
            if !only_sessions(kernel, snapshot)? {
                return Err(error);
            }
        }
        Err(error) => return Err(error),
    }
    if let Some(run) = of_newest_prompt(kernel, snapshot)? {
        return Ok(Some(run));
    }
    // A run belongs to the directory in which it was created. The nearest one counts, up to the root.
    let levels = project.directory.ancestors().take_while(|level| level.starts_with(&project.root));
    for level in levels {
        let filter = RunFilter { open: false, project: Some(level), limit: 1, before: None };
        if let Some(run) = run::list(snapshot, &filter)?.pop() {
            return Ok(Some(run));
        }
    }
    Ok(None)
}

fn is_of_session(snapshot: &Snapshot<'_>, run: &Run) -> Result<bool> {
    ic_session::is_own_run(snapshot, &run.id)
}

/// Whether all open runs of this project were made for sessions.
pub fn only_sessions(kernel: &Kernel, snapshot: &Snapshot<'_>) -> Result<bool> {
    const MOST: usize = 100;
    for run in open_runs(kernel, snapshot, MOST)? {
        if !is_of_session(snapshot, &run)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The newest open runs of this project, up to `most`.
pub(super) fn open_runs(kernel: &Kernel, snapshot: &Snapshot<'_>, most: usize) -> Result<Vec<Run>> {
    let limit = i64::try_from(most).unwrap_or(i64::MAX);
    let filter = RunFilter { open: true, project: Some(&kernel.project.root), limit, before: None };
    run::list(snapshot, &filter)
}

/// The run of the newest prompt that stands and did something, over all sessions of this project. If none did anything, the run of the
/// newest that stands.
fn of_newest_prompt(kernel: &Kernel, snapshot: &Snapshot<'_>) -> Result<Option<Run>> {
    const MOST: i64 = 50;
    // An undo that stopped half-way comes first: the tree is neither what it was before nor what it is to be.
    for rollback in table::unfinished(snapshot)? {
        let run = run::get(snapshot, &rollback.run_id)?;
        if ic_ledger::project_root(&run.project_dir) == kernel.project.root && is_of_session(snapshot, &run)? {
            return Ok(Some(run));
        }
    }
    let mut newest = None;
    for prompt in ic_session::standing(snapshot, &kernel.project.root, MOST)? {
        let work = dispatch::get(snapshot, &prompt.dispatch_id)?;
        let run = run::get(snapshot, &work.run_id)?;
        if run.require_settled().is_err() || !is_idle(snapshot, &run, &work)? {
            return Ok(Some(run));
        }
        // It is meant only if no prompt did anything.
        newest.get_or_insert(run);
    }
    Ok(newest)
}

/// The run that a reference names; without one that of [`run_here`]. Errors: those of a lookup of a run.
pub fn run_or_newest(kernel: &Kernel, snapshot: &Snapshot<'_>, reference: Option<&str>) -> Result<Run> {
    if reference.is_none()
        && let Some(run) = run_here(kernel, snapshot)?
    {
        return Ok(run);
    }
    let named = kernel.run(snapshot, reference.unwrap_or("@"));
    named.map_err(|error| match (error.code(), reference) {
        (Code::RunNotFound, None) => match moved_from(snapshot) {
            Ok(Some(hint)) => error.hint(hint),
            _ => match elsewhere(kernel, snapshot) {
                Ok(Some(elsewhere)) => error.hint(elsewhere),
                _ => error.hint(
                "the first prompt of an agent begins one, once its hooks are installed (see: ic hooks doctor); without an agent, \
                 create one: ic run create --goal TEXT",
            )},
        },
        _ => error,
    })
}

/// The newest point before work that stands: what a caller means who names none. After an undo it is the point before.
///
/// Errors: `rolling_back` while a rollback of the run is not finished; `nothing_to_undo` if no dispatch, step or prompt of the run stands.
pub fn last(snapshot: &Snapshot<'_>, run: &Run) -> Result<ListedPoint> {
    table::require_finished(snapshot, &run.id)?;
    let found = list(snapshot, run, false, usize::MAX)?;
    let mut standing = Vec::new();
    for one in found.into_iter().filter(|one| WORK.contains(&one.kind) && !one.is_undone && !one.is_of_subagent()) {
        // A command, or a prompt, that a command began goes back with that one.
        let is_inside = one
            .parent_id
            .as_ref()
            .is_some_and(|parent| ic_session::prompt_of(snapshot, parent).is_ok_and(|prompt| prompt.is_some()));
        if !is_inside {
            standing.push(one);
        }
    }
    // Of work that was undone in part the rest was left by a decision, or cannot be taken out. Who wants it names it.
    let (in_part, whole): (Vec<_>, Vec<_>) = standing.into_iter().partition(|one| one.is_in_part);
    let mut standing = whole.into_iter().chain(in_part);
    let newest = standing.next();
    // Answered questions changed nothing, so an undo means the work before them. If there is no other work, the newest question is meant.
    let mut meant = newest.clone();
    while let Some(one) = meant {
        if !is_answer(snapshot, run, &one)? {
            return Ok(one);
        }
        meant = standing.next();
    }
    newest.ok_or_else(|| {
        let short = run.id.short();
        let nothing =
            Diagnosis::new(Code::NothingToUndo, format!("The run {short} has no dispatch, step or prompt to undo."));
        // In a run that was made for a session there was nothing before its first prompt.
        match is_of_session(snapshot, run) {
            Ok(true) => {
                nothing.hint(format!("what was undone: ic log {short} --all; bring it back: ic redo --dry-run"))
            }
            _ => nothing
                .hint(format!("choose a point of it: ic log {short}; all of it: ic undo created --run {short} --yes")),
        }
    })
}

/// The newest earlier prompt of the session of `asking` that stands and changed something. An agent that asks for an undo while it works on
/// `asking` means that one.
///
/// Errors: `nothing_to_undo` where there is none.
pub fn earlier(snapshot: &Snapshot<'_>, asking: &Prompt) -> Result<DispatchId> {
    const MOST: i64 = 1_000;
    for prompt in ic_session::newest(snapshot, &asking.session_id, MOST)? {
        let work = dispatch::get(snapshot, &prompt.dispatch_id)?;
        let is_before = prompt.seq < asking.seq && work.rolled_back_by.is_none();
        if is_before && !is_idle(snapshot, &run::get(snapshot, &work.run_id)?, &work)? {
            return Ok(work.id);
        }
    }
    let why = "No earlier prompt of this session stands that changed anything. The prompt that asks is never undone by itself.";
    Err(Diagnosis::new(Code::NothingToUndo, why)
        .hint("what was done here: ic log; undo one of it: ic undo --only ID --dry-run; bring back what was undone: ic redo --dry-run"))
}

/// Whether a point is before a prompt that did nothing.
fn is_answer(snapshot: &Snapshot<'_>, run: &Run, point: &ListedPoint) -> Result<bool> {
    let Some(id) = point.before.as_ref().filter(|_| point.kind == "prompt") else { return Ok(false) };
    let found = dispatch::find(snapshot, &DispatchId::from_ledger(id.clone()))?;
    found.map_or(Ok(false), |prompt| is_idle(snapshot, run, &prompt))
}

/// The meaning of a reference that is clear without a run. `None` for a reference that is not: `phase:P`, `step:NAME`, `created`.
fn by_itself(kernel: &Kernel, snapshot: &Snapshot<'_>, text: &str) -> Result<Option<UndoTarget>> {
    if let Some(back) = steps_back(text) {
        let (run, _) = work_back(snapshot, &kernel.project.root, back)?;
        return Ok(Some(UndoTarget::Run(Box::new(run))));
    }
    require_work(snapshot, &kernel.project.root, text)?;
    let (kind, id) = text.split_once(':').unwrap_or(("", text));
    let of_run = |id: &_| run::get(snapshot, id).map(|run| Some(UndoTarget::Run(Box::new(run))));
    if matches!(kind, "" | "dispatch" | "prompt")
        && let Some(found) = known(dispatch::resolve(snapshot, id))?
    {
        return of_run(&found.run_id);
    }
    if matches!(kind, "" | "checkpoint") {
        let found = match known(record::resolve(snapshot, id))? {
            None if kind == "checkpoint" => record::named(snapshot, &kernel.project.root, id)?,
            found => found,
        };
        match found.map(|found| (found.link.run_id, found.id)) {
            Some((Some(run), _)) => return of_run(&run),
            Some((None, id)) => return Ok(Some(UndoTarget::Checkpoint(id))),
            None => {}
        }
    }
    if kind.is_empty() && text != "created" {
        match by_name(snapshot, &kernel.project.root, None, text)? {
            Some(NamedPoint::Step(run)) => return of_run(&run),
            Some(NamedPoint::Checkpoint(found)) => {
                return match &found.link.run_id {
                    Some(run) => of_run(run),
                    None => Ok(Some(UndoTarget::Checkpoint(found.id))),
                };
            }
            None => {}
        }
    }
    // The name of a step means something only within its run.
    let kind = PointKind::parse(kind).filter(|kind| *kind != PointKind::Step);
    let points = kind.map(|kind| point::named(snapshot, kind, id)).transpose()?.unwrap_or_default();
    // If several runs have such a point, the run with the newest one is meant.
    points.last().map_or(Ok(None), |point| of_run(&point.run_id))
}

/// `None` for what does not exist: the lookup in the run then reports that.
pub(crate) fn known<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Err(error)
            if matches!(
                error.code(),
                Code::DispatchNotFound
                    | Code::CheckpointNotFound
                    | Code::RollbackNotFound
                    | Code::RewindNotFound
                    | Code::InvalidReference
            ) =>
        {
            Ok(None)
        }
        found => found.map(Some),
    }
}
