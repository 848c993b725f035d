//! `ic log`

use std::collections::BTreeSet;

use ic_base::DispatchId;
use ic_kernel::Kernel;
use ic_session::outside_files::{self, OutsideFile};
use ic_undo::points::log::{self, LogEntry, LogPage, What};

use crate::commands::hooks::doctor;
use crate::commands::prelude::*;
use crate::views::log::{Chosen, LogEntryJson, LogUndoJson, OutsideFiles};

/// Show the points that a run can go back to, and its rollbacks, newest first.
///
/// There is a point before each dispatch, step and prompt, at each phase change, and at each checkpoint that you made;
/// the first one is `created`. Each lists the files that changed up to the next point, and the commits that its
/// dispatch recorded.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic log
  ic log 7f3a9c --limit 5
  ic log --all                          # with what was rolled back, as branches
  ic log --limit 50 --before 1204       # the next page
  ic log --json | jq -r '.[] | select(.kind != \"rollback\").reference'")]
pub(crate) struct LogArgs {
    /// The run: an id, the end of one, @, or scope:NAME [default: @, or all sessions]
    run: Option<String>,
    /// Include what was rolled back, and rollbacks that were undone
    #[arg(long)]
    all: bool,
    /// Print at most N entries
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    /// Only what was recorded before this event, as the last `seq` of a page
    #[arg(long, value_name = "SEQ", value_parser = clap::value_parser!(i64).range(1..))]
    before: Option<i64>,
}

impl LogArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        if self.run.is_none() && Self::is_of_agents(&kernel)? {
            return self.of_agents(session, &kernel);
        }
        let run = kernel.read(|snapshot| ic_undo::points::run_or_newest(&kernel, snapshot, self.run.as_deref()));
        let run = match run {
            Err(error) if error.code() == Code::RunNotFound && self.run.is_none() => {
                // Without a run, but with hooks that wait for the first prompt, the list is empty, and the text says so.
                let waiting = doctor::installed_clients(session);
                // A project that was moved has runs elsewhere in the ledger, and the error says where.
                if waiting.is_empty() || kernel.read(ic_undo::points::moved_from)?.is_some() {
                    return Err(error);
                }
                let none: [LogEntryJson; 0] = [];
                let elsewhere = Self::elsewhere(&kernel)?;
                return session
                    .output
                    .list(&none, || views::log::waiting(&waiting) + &views::log::elsewhere(elsewhere.as_deref()));
            }
            run => run?,
        };
        let log = log::log(&kernel, session.options(), &run, self.page())?;
        let named = outside_files(&kernel, log.entries.iter())?;
        let records: Vec<LogEntryJson> =
            log.entries.iter().map(|entry| LogEntryJson::new(&run, entry, &named)).collect();
        let (chosen, outside) = kernel.read(|snapshot| {
            let is_alone = ic_undo::points::others_open(&kernel, snapshot, &run, 1)?.is_empty()
                && !ic_session::is_own_run(snapshot, &run.id)?;
            let chosen = Chosen::of(self.run.is_some(), is_alone);
            let newest = log.entries.first().map_or(run.seq, |entry| entry.seq);
            let outside = match chosen {
                Chosen::Named => None,
                _ => ic_undo::points::prompts_outside(&kernel, snapshot, &run, newest)?,
            };
            Ok((chosen, outside))
        })?;
        let now = kernel.context.now();
        let back = LogUndoJson::of(&kernel.ledger);
        let elsewhere = if self.run.is_some() { None } else { Self::elsewhere(&kernel)? };
        let beside = kernel.read(|snapshot| {
            // Newer prompts are mentioned only on the first page, and not if a run was named.
            if self.run.is_some() || self.before.is_some() {
                return Ok(None);
            }
            let newest = log.entries.first().map_or(run.seq, |entry| entry.seq);
            ic_undo::points::beside(&kernel, snapshot, &run, newest).map(|beside| beside.said())
        })?;
        Self::warn_of_unread(session, log.unread.as_deref());
        session.output.list(&records, || {
            views::log::list(&run, chosen, (&log, &named), outside.as_ref(), self.all, now, back)
                + &views::log::elsewhere(beside.as_deref())
                + &views::log::elsewhere(elsewhere.as_deref())
        })
    }

    /// Warns that the numbers of changes are incomplete because content cannot be read, if `why` says so.
    fn warn_of_unread(session: &CliSession, why: Option<&str>) {
        if let Some(why) = why {
            let why = why.trim_end_matches('.');
            session.output.warn(&format!("What changed is not known at every point. {why}; more of it: ic health"));
        }
    }

    fn elsewhere(kernel: &Kernel) -> Result<Option<String>> {
        kernel.read(|snapshot| ic_undo::points::elsewhere(kernel, snapshot))
    }

    fn page(&self) -> LogPage {
        LogPage { all: self.all, before: self.before, at_most: self.limit as usize }
    }

    /// Whether only agents' sessions are open here, so that all of them are shown. Not in an agent's own shell, which shows its session.
    fn is_of_agents(kernel: &Kernel) -> Result<bool> {
        if kernel.own_run.is_some() {
            return Ok(false);
        }
        kernel.read(|snapshot| match ic_undo::points::run_here(kernel, snapshot) {
            Ok(Some(run)) => ic_session::is_own_run(snapshot, &run.id),
            Ok(None) => Ok(false),
            // Several runs are open. If all are agents' sessions, they are shown together.
            Err(error) if error.code() == Code::AmbiguousRun => ic_undo::points::only_sessions(kernel, snapshot),
            Err(error) => Err(error),
        })
    }

    fn of_agents(&self, session: &mut CliSession, kernel: &Kernel) -> Result<ExitStatus> {
        let log = log::of_sessions(kernel, session.options(), self.page())?;
        let named = outside_files(kernel, log.entries.iter().map(|(_, entry)| entry))?;
        let records: Vec<LogEntryJson> =
            log.entries.iter().map(|(run, entry)| LogEntryJson::new(run, entry, &named)).collect();
        let now = kernel.context.now();
        let back = LogUndoJson::of(&kernel.ledger);
        Self::warn_of_unread(session, log.unread.as_deref());
        let elsewhere = Self::elsewhere(kernel)?;
        session.output.list(&records, || {
            views::log::of_agents((&log, &named), now, back) + &views::log::elsewhere(elsewhere.as_deref())
        })
    }
}

/// The files outside of the project that the work at these entries changed, by the reference of each entry.
fn outside_files<'e>(kernel: &Kernel, entries: impl Iterator<Item = &'e LogEntry>) -> Result<OutsideFiles> {
    let mut named = OutsideFiles::new();
    for entry in entries {
        let What::Point { point, .. } = &entry.what else { continue };
        let Some(work) = point.before.as_ref().filter(|_| matches!(point.kind, "dispatch" | "prompt")) else {
            continue;
        };
        let files =
            kernel.read(|snapshot| outside_files::of_dispatch(snapshot, &DispatchId::from_ledger(work.clone())))?;
        let paths: BTreeSet<String> = files.into_iter().filter(OutsideFile::is_changed).map(|file| file.path).collect();
        if !paths.is_empty() {
            named.insert(point.reference.clone(), paths);
        }
    }
    Ok(named)
}
