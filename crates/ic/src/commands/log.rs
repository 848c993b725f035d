//! `ic log`

use std::collections::BTreeSet;
use std::path::PathBuf;

use ic_base::DispatchId;
use ic_dispatch::dispatch;
use ic_kernel::Kernel;
use ic_ledger::Snapshot;
use ic_phase::Run;
use ic_session::outside_files::{self, OutsideFile};
use ic_session::places;
use ic_undo::WorkChanges;
use ic_undo::points::log::{LogEntry, LogPage, PointLog, What};
use ic_undo::points::place_log::{PlaceChoice, of_one_run, of_place};
use ic_undo::points::{NamedWork, PlaceEntry, work_at};
use ic_worktree::Workspace;

use crate::commands::diff_forms::{ShownDiff, write_text};
use crate::commands::hooks::doctor;
use crate::commands::prelude::*;
use crate::text::diff::DiffShape;
use crate::views::log::entry_lines::{self, PlaceView};
use crate::views::log::{Chosen, LogEntryJson, LogUndoJson, LoggedEntry};

/// Show what was done here, by all agents and by you, newest first; with RUN, the points of one run.
///
/// Without RUN it is the log of this place: prompts, dispatches and steps, over all sessions and runs, with checkpoints,
/// phase changes, rollbacks and restores. Work that was undone is dimmed. Each line begins with what names the entry,
/// which ic show, diff, undo and restore take.
///
/// What changed between two works is yours, in lines with own:ID. ic undo takes out work and no own:ID; to restore a path
/// as it was before your change: ic restore --before own:ID PATH. What changed since the last checkpoint is not listed yet.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic log
  ic log -n 5 --stat
  ic log -p -- src/main.rs              # the work that changed it, each with its patch
  ic log --session 5d6e7f80             # of one session
  ic log 7f3a9c --all                   # one run, with what was rolled back, as branches
  ic log -n 50 --before 1204            # the next page
  ic log --json | jq -r '.[] | select(.kind != \"rollback\").reference'")]
pub(crate) struct LogArgs {
    /// The run: an id, the end of one, @, or scope:NAME [default: all of this place]
    run: Option<String>,
    /// Include everything that was rolled back, and rollbacks that were undone
    #[arg(long)]
    all: bool,
    /// Print at most N entries, but all that have the event of the last one
    #[arg(short, long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    number: u32,
    /// Only what was recorded before this event, as the last `seq` of a page
    #[arg(long, value_name = "SEQ", value_parser = clap::value_parser!(i64).range(1..))]
    before: Option<i64>,
    /// Only what this session of a coding agent did
    #[arg(long, value_name = "SESSION", conflicts_with = "run")]
    session: Option<String>,
    /// Below each entry, the patch of its work
    #[arg(short, long, group = "shape")]
    patch: bool,
    /// Below each entry, the files of its work, with the number of changed lines
    #[arg(long, group = "shape")]
    stat: bool,
    /// Only work that changed these paths, or what is below them
    #[arg(last = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
}

impl LogArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        match &self.run {
            Some(run) => {
                let found = kernel.read(|snapshot| kernel.run(snapshot, run));
                let run = found.map_err(|error| match error.code() {
                    // People see the id of a prompt or a change in the log, and so they type it here.
                    Code::InvalidReference => error.hint(format!(
                        "runs: ic run list; one prompt, dispatch or change: ic show {word}; of a path: ic log -- {word}",
                        word = ic_base::shell_word(run)
                    )),
                    _ => error,
                })?;
                self.of_run(session, &kernel, &run)
            }
            None => self.of_place(session, &kernel),
        }
    }

    /// The points and rollbacks of one run.
    fn of_run(&self, session: &mut CliSession, kernel: &Kernel, run: &Run) -> Result<ExitStatus> {
        let log = if self.paths.is_empty() {
            of_one_run(kernel, session.options(), run, self.page(), &mut |_, _| Ok(true))?
        } else {
            let settings = session.settings_of_project(kernel, &run.project_dir)?;
            let workspace = Workspace::open(kernel, ic_ledger::project_root(&run.project_dir), &settings)?;
            let paths = ic_worktree::paths_in_root(&workspace, &self.paths)?;
            let mut changes_any = |run: &Run, entry: &LogEntry| has_changed(&workspace, session, run, entry, &paths);
            of_one_run(kernel, session.options(), run, self.page(), &mut changes_any)?
        };
        self.print(session, kernel, log, (Some((run, Chosen::Named)), None))
    }

    /// The entries of this place, over all its runs and sessions.
    fn of_place(&self, session: &mut CliSession, kernel: &Kernel) -> Result<ExitStatus> {
        let place = &kernel.project.root;
        let of = self.session.as_ref().map(|text| kernel.read(|snapshot| places::resolve(snapshot, text, place)));
        let of = of.transpose()?.map(|of| of.id);
        let log = if self.paths.is_empty() {
            let choice = PlaceChoice { session: of.as_ref(), ..PlaceChoice::default() };
            of_place(kernel, session.options(), self.page(), choice)?
        } else {
            let settings = session.checkpoint_settings(kernel)?;
            let workspace = Workspace::here(kernel, &settings)?;
            let paths = ic_worktree::paths_in_root(&workspace, &self.paths)?;
            let mut changes_any = |run: &Run, entry: &LogEntry| has_changed(&workspace, session, run, entry, &paths);
            let choice = PlaceChoice { session: of.as_ref(), paths: &paths, is_wanted: Some(&mut changes_any) };
            of_place(kernel, session.options(), self.page(), choice)?
        };
        // This is asked before the list is known to be empty, because it is also printed below a list.
        let elsewhere = kernel.read(|snapshot| ic_undo::points::elsewhere(kernel, snapshot))?;
        let is_filtered = of.is_some() || !self.paths.is_empty() || self.before.is_some();
        if log.entries.is_empty() && !is_filtered {
            return Self::nothing(session, kernel, elsewhere.as_deref());
        }
        // Where one run that a person opened is all there is, its phase and goal are the first thing to know.
        // Restores, and what a person changed, are of no run.
        let mut of_runs = log.entries.iter().filter(|one| one.entry.looks().is_none());
        let first = of_runs.clone().next().and_then(|one| one.run.clone());
        let mut is_of_one = |run: &Run| of_runs.all(|one| one.run.as_ref().is_some_and(|other| other.id == run.id));
        let head = first.filter(|run| is_of_one(run)).filter(|_| !is_filtered);
        let head = kernel.read(|snapshot| match &head {
            Some(run) if !ic_session::is_own_run(snapshot, &run.id)? => {
                let is_alone = ic_undo::points::others_open(kernel, snapshot, run, 1)?.is_empty();
                Ok(Some((run, Chosen::of(false, is_alone))))
            }
            _ => Ok(None),
        })?;
        self.print(session, kernel, log, (head, elsewhere.as_deref()))
    }

    /// The log of a place where nothing is recorded: what it waits for.
    fn nothing(session: &mut CliSession, kernel: &Kernel, elsewhere: Option<&str>) -> Result<ExitStatus> {
        let missing = kernel.read(|snapshot| ic_undo::points::run_or_newest(kernel, snapshot, None));
        let waiting = doctor::installed_clients(session);
        match missing {
            // A project that was moved has runs elsewhere in the ledger, and the error says where.
            Err(error) if waiting.is_empty() || kernel.read(ic_undo::points::moved_from)?.is_some() => Err(error),
            _ => {
                let none: [LogEntryJson; 0] = [];
                let text = || views::log::waiting(&waiting) + &views::log::elsewhere(elsewhere);
                session.output.list(&none, text)
            }
        }
    }

    fn print(
        &self,
        session: &mut CliSession,
        kernel: &Kernel,
        log: PointLog<PlaceEntry>,
        (head, elsewhere): (Option<(&Run, Chosen)>, Option<&str>),
    ) -> Result<ExitStatus> {
        if let Some(why) = &log.unread {
            let why = why.trim_end_matches('.');
            session.output.warn(&format!("What changed is not known at every point. {why}; more of it: ic health"));
        }
        // Asked for the entries of the page alone, so a long log costs no more.
        let mut logged = Vec::new();
        for one in log.entries {
            logged.push(logged_entry(kernel, one)?);
        }
        let view = PlaceView {
            head,
            is_named: self.run.is_some(),
            all: self.all,
            has_more: log.has_more,
            now: kernel.context.now(),
            back: LogUndoJson::of(&kernel.ledger),
        };
        let shape = if self.patch { Some(DiffShape::Unified) } else { self.stat.then_some(DiffShape::Stat) };
        if let Some(shape) = shape.filter(|_| !session.output.json_was_asked_for()) {
            return self.print_changes(session, kernel, (&view, &logged), shape);
        }
        let records: Vec<LogEntryJson> = logged.iter().map(LogEntryJson::from).collect();
        session.output.list(&records, || entry_lines::list(&view, &logged) + &views::log::elsewhere(elsewhere))
    }

    /// Prints each entry with what its work changed below it.
    fn print_changes(
        &self,
        session: &mut CliSession,
        kernel: &Kernel,
        (view, logged): (&PlaceView<'_>, &[LoggedEntry]),
        shape: DiffShape,
    ) -> Result<ExitStatus> {
        let lines = entry_lines::lines(view, logged);
        for (entry, line) in logged.iter().zip(lines) {
            // The settings are read for each entry: the runs of one place may be of projects with configurations of their own.
            let settings = match &entry.run {
                Some(run) => session.settings_of_project(kernel, &run.project_dir)?,
                None => session.checkpoint_settings(kernel)?,
            };
            let workspace = match &entry.run {
                Some(run) => Workspace::open(kernel, ic_ledger::project_root(&run.project_dir), &settings)?,
                None => Workspace::here(kernel, &settings)?,
            };
            let paths = ic_worktree::paths_in_root(&workspace, &self.paths)?;
            let WorkChanges { mut differences, texts, .. } = match changes(&workspace, session, entry) {
                // Its line says that the tree was not captured, or that its content was pruned.
                Err(error) if matches!(error.code(), Code::NoCheckpoint | Code::CheckpointNotFound) => {
                    WorkChanges::default()
                }
                found => found?,
            };
            differences.retain(|one| ic_worktree::is_among(&one.path, &paths));
            if differences.is_empty() {
                session.output.exact(|sink| write_text(sink, &line))?;
            } else {
                ShownDiff::of(&workspace, differences, texts).print_below(session, shape, &line)?;
            }
        }
        Ok(ExitStatus::Done)
    }

    fn page(&self) -> LogPage {
        LogPage { all: self.all, before: self.before, at_most: self.number as usize }
    }
}

/// An entry with what a list says of it: its session, and files outside of the project.
pub(super) fn logged_entry(kernel: &Kernel, PlaceEntry { run, entry, makers }: PlaceEntry) -> Result<LoggedEntry> {
    let outside = outside_files(kernel, &entry)?;
    // A restore has no dispatch. Its makers are those that were in a call as it was made.
    let works: Vec<DispatchId> = if makers.is_empty() { dispatch_of(&entry).into_iter().collect() } else { makers };
    let seq = match &entry.what {
        What::Point { point, .. } => point.seq,
        What::Rollback(rollback) => rollback.seq,
    };
    let (session, actor, taken_out) = kernel.read(|snapshot| {
        let session = ic_session::of_works(snapshot, &works)?;
        Ok((session, ic_ledger::events::author(snapshot, seq)?, taken_out(snapshot, &entry)?))
    })?;
    let other = actor.as_ref().and_then(|actor| kernel.other_person(actor));
    // Work made the change, and the work is of no session: then the change is not said to be a person's.
    let is_unknown = entry.looks().is_some() && !works.is_empty() && session.is_none();
    Ok(LoggedEntry { run, entry, session, is_unknown, taken_out, outside, actor, other })
}

/// The name of the work that an undo took out, if it took out work alone: of several, that of the first.
fn taken_out(snapshot: &Snapshot<'_>, entry: &LogEntry) -> Result<Option<String>> {
    let What::Rollback(rollback) = &entry.what else { return Ok(None) };
    let Some(first) = rollback.chosen().into_iter().next() else { return Ok(None) };
    Ok(dispatch::get(snapshot, &first)?.work.name)
}

/// What changed at an entry; nothing for a rollback or another place.
fn changes(workspace: &Workspace<'_>, session: &CliSession, one: &LoggedEntry) -> Result<WorkChanges> {
    if let Some(looks) = one.entry.looks() {
        return Ok(WorkChanges { differences: ic_undo::changes_between(workspace, looks)?, ..WorkChanges::default() });
    }
    let work = one.run.as_ref().map_or(Ok(None), |run| work_of(workspace.kernel, run, &one.entry))?;
    let changes = work.map(|work| ic_undo::changes_of_entry(workspace, session.options(), &work)).transpose()?;
    Ok(changes.unwrap_or_default())
}

/// The work that begins at an entry; `None` for a rollback or another place.
fn work_of(kernel: &Kernel, run: &Run, entry: &LogEntry) -> Result<Option<NamedWork>> {
    let What::Point { point, .. } = &entry.what else { return Ok(None) };
    kernel.read(|snapshot| work_at(snapshot, run.clone(), point))
}

/// Whether the work of an entry changed one of these paths.
fn has_changed(
    workspace: &Workspace<'_>,
    session: &CliSession,
    run: &Run,
    entry: &LogEntry,
    paths: &[Vec<u8>],
) -> Result<bool> {
    match work_of(workspace.kernel, run, entry)? {
        Some(work) => ic_undo::has_changed(workspace, session.options(), &work, paths),
        None => Ok(false),
    }
}

/// The dispatch of the work that begins at an entry, if it is a prompt or a dispatch.
fn dispatch_of(entry: &LogEntry) -> Option<DispatchId> {
    let What::Point { point, .. } = &entry.what else { return None };
    let id = point.before.clone().filter(|_| matches!(point.kind, "dispatch" | "prompt"))?;
    Some(DispatchId::from_ledger(id))
}

/// The files outside of the project that the work at an entry changed.
fn outside_files(kernel: &Kernel, entry: &LogEntry) -> Result<BTreeSet<String>> {
    let Some(id) = dispatch_of(entry) else { return Ok(BTreeSet::new()) };
    let files = kernel.read(|snapshot| outside_files::of_dispatch(snapshot, &id))?;
    Ok(files.into_iter().filter(OutsideFile::is_changed).map(|file| file.path).collect())
}
