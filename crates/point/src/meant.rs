//! What a person means who says "undo": which run, and which point of it.

use ic_base::{CheckpointId, Code, Diagnosis, DispatchId, Result};
use ic_checkpoint::record;
use ic_dispatch::dispatch;
use ic_journal::table;
use ic_kernel::Kernel;
use ic_phase::Run;
use ic_phase::point::{self, Kind};
use ic_phase::run::{self, Filter};
use ic_store::Snapshot;

use super::idle::is_idle;
use super::list::{Listed, list};

/// What goes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meant {
    /// A run, with all that it did.
    Run(Box<Run>),
    /// The tree alone, to a checkpoint that belongs to no run.
    Checkpoint(CheckpointId),
    /// The tree alone: there is no run here.
    Tree,
}

/// What goes back for who names a run, a point, or neither: the run of an id is known by itself; else the open run of this project, else
/// its newest.
///
/// Errors: those of a lookup; `ambiguous_run` where several runs are open.
pub fn meant(kernel: &Kernel, run: Option<&str>, point: Option<&str>) -> Result<Meant> {
    kernel.read(|snapshot| {
        if let Some(run) = run {
            return kernel.run(snapshot, run).map(|run| Meant::Run(Box::new(run)));
        }
        if let Some(found) = point.map(|text| by_itself(kernel, snapshot, text)).transpose()?.flatten() {
            return Ok(found);
        }
        match run_here(kernel, snapshot).map_err(named_by_a_flag)? {
            Some(run) => Ok(Meant::Run(Box::new(standing(snapshot, run)?))),
            None => Ok(Meant::Tree),
        }
    })
}

/// The run itself; of a session's own in which nothing stands any more, the one before it in which a prompt of the session does: a client
/// that ends and is resumed has a run for each time, and a person who says undo again means the one before.
fn standing(snapshot: &Snapshot<'_>, run: Run) -> Result<Run> {
    let Some(session) = ic_session::of_own_run(snapshot, &run.id)? else { return Ok(run) };
    if !last(snapshot, &run).is_err_and(|error| error.code() == Code::NothingToUndo) {
        return Ok(run);
    }
    for prompt in ic_session::of_session(snapshot, &session.id)?.into_iter().rev() {
        let work = dispatch::get(snapshot, &prompt.dispatch_id)?;
        if work.rolled_back_by.is_none() && work.run_id != run.id {
            return run::get(snapshot, &work.run_id);
        }
    }
    Ok(run)
}

/// Says how a call names a run that has no place for it among its arguments.
pub fn named_by_a_flag(error: Diagnosis) -> Diagnosis {
    match error.code() {
        Code::AmbiguousRun => error.hint("name one by the last digits of its id: --run RUN"),
        _ => error,
    }
}

/// The open run of this project, else its newest. Errors: `ambiguous_run`.
pub fn run_here(kernel: &Kernel, snapshot: &Snapshot<'_>) -> Result<Option<Run>> {
    let project = &kernel.project;
    match kernel.current(snapshot) {
        Ok(None) => {}
        Err(error) if error.code() == Code::AmbiguousRun => {
            return newest_of_session(kernel, snapshot)?.map_or(Err(error), |run| Ok(Some(run)));
        }
        found => return found,
    }
    let levels = project.directory.ancestors().take_while(|level| level.starts_with(&project.root));
    for level in levels {
        let filter = Filter { open: false, project: Some(level), limit: 1, before: None };
        if let Some(run) = run::list(snapshot, &filter)?.pop() {
            return Ok(Some(run));
        }
    }
    Ok(None)
}

/// The newest of the open runs of this project if all were made for one session, which an undo has opened again.
fn newest_of_session(kernel: &Kernel, snapshot: &Snapshot<'_>) -> Result<Option<Run>> {
    const MOST: usize = 100;
    let filter = Filter {
        open: true,
        project: Some(&kernel.project.root),
        limit: i64::try_from(MOST).unwrap_or(0),
        before: None,
    };
    let open = run::list(snapshot, &filter)?;
    let mut sessions = Vec::new();
    for run in &open {
        sessions.push(ic_session::of_own_run(snapshot, &run.id)?.map(|session| session.id));
    }
    sessions.dedup();
    let is_one = open.len() < MOST && matches!(sessions.as_slice(), [Some(_)]);
    Ok(open.into_iter().max_by_key(|run| run.seq).filter(|_| is_one))
}

/// The run that a reference names; without one that of [`run_here`]. Errors: those of a lookup of a run.
pub fn run_or_newest(kernel: &Kernel, snapshot: &Snapshot<'_>, reference: Option<&str>) -> Result<Run> {
    if reference.is_none()
        && let Some(run) = run_here(kernel, snapshot)?
    {
        return Ok(run);
    }
    kernel.run(snapshot, reference.unwrap_or("@"))
}

/// The newest point before work that stands: what a person means who names none. Said again, it is the one before.
///
/// Errors: `rolling_back` while a rollback of the run is not finished; `nothing_to_undo` if no dispatch, step or prompt of the run stands.
pub fn last(snapshot: &Snapshot<'_>, run: &Run) -> Result<Listed> {
    const WORK: [&str; 3] = ["prompt", "dispatch", "step"];
    table::require_finished(snapshot, &run.id)?;
    let found = list(snapshot, run, false, usize::MAX)?;
    let mut standing =
        found.into_iter().filter(|one| WORK.contains(&one.kind) && !one.is_undone && !one.is_of_subagent());
    let newest = standing.next();
    // Answered questions change nothing: whoever undoes means what was done before them. Where nothing else was done, they are meant.
    let mut meant = newest.clone();
    while let Some(one) = meant {
        if !is_answer(snapshot, run, &one)? {
            return Ok(one);
        }
        meant = standing.next();
    }
    newest.ok_or_else(|| {
        let short = run.id.short();
        Diagnosis::new(
            Code::NothingToUndo,
            format!("The run {short} has no dispatch, step or prompt to undo."),
        )
        .hint(format!("choose a point of it: ic log {short}; all of it: ic undo created --run {short} --yes"))
    })
}

/// Whether a point lies before a prompt that did nothing.
fn is_answer(snapshot: &Snapshot<'_>, run: &Run, point: &Listed) -> Result<bool> {
    let Some(id) = point.before.as_ref().filter(|_| point.kind == "prompt") else { return Ok(false) };
    let found = dispatch::find(snapshot, &DispatchId::from_ledger(id.clone()))?;
    found.map_or(Ok(false), |prompt| is_idle(snapshot, run, &prompt))
}

/// What an id says by itself. `None` for a reference that says nothing of a run: `phase:P`, `step:NAME`, `created`.
fn by_itself(kernel: &Kernel, snapshot: &Snapshot<'_>, text: &str) -> Result<Option<Meant>> {
    let (kind, id) = text.split_once(':').unwrap_or(("", text));
    let of_run = |id: &_| run::get(snapshot, id).map(|run| Some(Meant::Run(Box::new(run))));
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
            Some((None, id)) => return Ok(Some(Meant::Checkpoint(id))),
            None => {}
        }
    }
    let kind = Kind::parse(kind).filter(|kind| *kind != Kind::Step);
    let points = kind.map(|kind| point::named(snapshot, kind, id)).transpose()?.unwrap_or_default();
    points.last().map_or(Ok(None), |point| of_run(&point.run_id))
}

/// `None` for what is not there: who looks it up in the run then says so.
fn known<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Err(error)
            if matches!(
                error.code(),
                Code::DispatchNotFound | Code::CheckpointNotFound | Code::InvalidReference
            ) =>
        {
            Ok(None)
        }
        found => found.map(Some),
    }
}
