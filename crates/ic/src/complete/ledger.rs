//! Completes names from the ledger: the newest of each kind, described by what a person knows it by.

mod journal_entries;

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ic_base::{CheckpointId, Result, RunId, Timestamp};
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_dispatch::{Dispatch, DispatchStatus, dispatch};
use ic_kernel::config;
use ic_kernel::standing;
use ic_ledger::{Lookup, OpenOptions, Snapshot, reference};
use ic_phase::run_reference::{self, ProjectScope, RunStanding};
use ic_phase::{Run, run, skip};
use ic_rewind::{EngineOptions, RelationalRollbackEngine};
use ic_runtrack::{agent, artifact};

use super::position::Position;
use super::{Candidate, files};
use crate::environment::CliEnvironment;
use crate::text::plain;

/// The most candidates of a kind.
const MOST: usize = 100;
/// The most tasks that are read: the database is the application's, and others write to it.
const OFFERED_TASKS: u32 = 100;
/// The number of newest checkpoints that are searched for those of this working tree.
const CHECKPOINTS_SEEN: i64 = 300;
/// The number of newest open runs that are searched for agents and artifacts.
const RUNS_SEEN: i64 = 20;
/// The longest wait for a lock: a person who presses a key takes longer for a hang.
const PATIENCE: Duration = Duration::from_millis(200);

/// The directory that a line acts in: after `-C`, without links; `None` if there is no such directory.
pub(super) fn directory(at: &Position<'_>, environment: &CliEnvironment) -> Option<PathBuf> {
    std::fs::canonicalize(typed_path(at, "directory", environment).unwrap_or(".".into())).ok()
}

/// The path that an option names, as the shell will give it.
fn typed_path(at: &Position<'_>, option: &str, environment: &CliEnvironment) -> Option<PathBuf> {
    Some(files::place(at.value(option)?.as_bytes(), Path::new(""), environment.home.as_deref()))
}

/// A snapshot of the ledger that a line acts on.
pub(super) struct Looked<'a> {
    at: &'a Position<'a>,
    snapshot: &'a Snapshot<'a>,
    project: ProjectScope,
    store: &'a Path,
}

/// Reads the ledger that the line acts on. No candidate is found if there is none, or if it cannot be read.
pub(super) fn look(
    at: &Position<'_>,
    environment: &CliEnvironment,
    find: impl FnOnce(&Looked<'_>) -> Result<Vec<Candidate>>,
) -> Vec<Candidate> {
    let Some(directory) = directory(at, environment) else { return Vec::new() };
    let db = typed_path(at, "db", environment);
    let lookup = Lookup { db: db.as_deref(), env_db: environment.db.as_deref(), directory: &directory };
    let Ok(mut place) = ic_ledger::locate(&lookup) else { return Vec::new() };
    if let Some(server) = &mut place.server {
        // A longer wait for a server that is away would look like a hang of the shell.
        server.connect_timeout = Some(1);
    }
    let options = OpenOptions { busy_timeout: PATIENCE, ..OpenOptions::default() };
    // The ledger is neither created nor migrated, because a key press must change nothing. `None`: its schema is older.
    let Ok(Some(ledger)) = place.open_to_look(options) else { return Vec::new() };
    let project = ProjectScope { directory, root: place.root };
    let store = place.db.parent().unwrap_or(Path::new("/"));
    ledger.read(|snapshot| find(&Looked { at, snapshot, project, store })).unwrap_or_default()
}

impl Looked<'_> {
    /// The run that the line names, else the only active one.
    pub(super) fn run(&self) -> Option<Run> {
        let named = self.at.value("run").map_or(Some("@"), |value| value.to_str())?;
        run_reference::resolve(self.snapshot, named, &self.project, &self.standing()).ok()
    }

    fn standing(&self) -> impl Fn(&Snapshot<'_>, &Run, bool) -> Result<RunStanding> {
        |snapshot, run, _| standing(&ic_workflow::ABOVE, self.store, snapshot, run)
    }

    /// Runs, open ones first: the ends of their ids, `@` and scopes.
    pub(super) fn runs(&self, typed: &str) -> Result<Vec<Candidate>> {
        let filter = run::RunFilter { open: true, project: None, limit: MOST_ROWS, before: None };
        // Open runs are read apart: the newest runs alone may all have ended.
        let mut runs = run::list(self.snapshot, &filter)?;
        runs.extend(run::list(self.snapshot, &run::RunFilter { open: false, ..filter })?);
        let mut seen = HashSet::new();
        runs.retain(|run| seen.insert(run.id.clone()));
        runs.truncate(MOST);
        let mut found = Vec::new();
        // Where several are open, `@` would be refused as ambiguous, so it is not offered.
        if let Ok(Some(run)) = run_reference::current(self.snapshot, &self.project, &self.standing()) {
            found.push(Candidate::new("@", about_run(&run)));
        }
        found.extend(runs.iter().map(|run| id(run.id.as_str(), run.id.short(), typed, about_run(run))));
        // Scopes are offered only when something was typed: each stands for a run that is in the list already.
        if !typed.is_empty() {
            let mut scopes = HashSet::new();
            for run in &runs {
                if let Some(scope) = run.scope_id.as_deref().filter(|scope| scopes.insert((*scope).to_owned())) {
                    found.push(Candidate::new(format!("scope:{scope}"), about_run(run)));
                }
            }
        }
        Ok(found)
    }

    /// The ids of runs, for an option that takes nothing else.
    pub(super) fn run_ids(&self, typed: &str) -> Result<Vec<Candidate>> {
        let filter = run::RunFilter { open: false, project: None, limit: MOST_ROWS, before: None };
        let runs = run::list(self.snapshot, &filter)?;
        Ok(runs.iter().map(|run| id(run.id.as_str(), run.id.short(), typed, about_run(run))).collect())
    }

    /// The phases of the run's chain that `is_wanted`, which is given the index of the phase and that of the current one.
    pub(super) fn phases(&self, is_wanted: impl Fn(usize, usize) -> bool) -> Vec<Candidate> {
        let Some(run) = self.run() else { return Vec::new() };
        let current = run.chain.index_of(&run.phase).unwrap_or(0);
        let about = |index: usize| match index.cmp(&current) {
            std::cmp::Ordering::Less => "behind",
            std::cmp::Ordering::Equal => "where the run is",
            std::cmp::Ordering::Greater => "ahead",
        };
        let names = run.chain.names().into_iter().enumerate();
        names
            .filter(|(index, _)| is_wanted(*index, current))
            .map(|(index, name)| Candidate::new(name, about(index)))
            .collect()
    }

    /// The phases ahead that can be skipped: not the last one, and not those that are marked for it already.
    pub(super) fn skippable(&self) -> Result<Vec<Candidate>> {
        let Some(run) = self.run() else { return Ok(Vec::new()) };
        let mut skipped = skip::skipped_phases(self.snapshot, &run.id)?;
        skipped.push(run.chain.last().to_owned());
        let mut phases = self.phases(|index, current| index > current);
        phases.retain(|phase| phase.value.to_str().is_none_or(|name| skipped.iter().all(|s| s != name)));
        Ok(phases)
    }

    /// The points of the run to which it can go back, newest first.
    pub(super) fn points(&self) -> Result<Vec<Candidate>> {
        let Some(run) = self.run() else { return Ok(Vec::new()) };
        let found = ic_undo::points::list(self.snapshot, &run, false, MOST)?;
        let about = |one: &ic_undo::points::ListedPoint| described(&[Some(&one.title), Some(&time(one.created_at))]);
        Ok(found.iter().map(|one| Candidate::new(one.reference.as_str(), about(one))).collect())
    }

    /// The work of this place that is not undone, as a log prints it, the names of checkpoints, and the places of the run.
    pub(super) fn entries(&self, typed: &str) -> Result<Vec<Candidate>> {
        // With a colon, what is typed is the whole reference of a point, as `phase:built`.
        if self.at.has("run") || typed.contains(':') {
            return self.points();
        }
        let about = |one: &ic_undo::points::ListedPoint| described(&[Some(&one.title), Some(&time(one.created_at))]);
        let works = ic_undo::points::newest_works(self.snapshot, &self.project.root, MOST)?;
        // `@` means the newest work of the place that is not undone.
        let mut found: Vec<Candidate> =
            works.first().iter().map(|(_, newest)| Candidate::new("@", about(newest))).collect();
        found.extend(works.iter().map(|(_, one)| match (one.kind, &one.before) {
            // A step is known by its name, other work by the end of its id.
            ("step", Some(name)) => Candidate::new(name.as_str(), about(one)),
            (_, Some(whole)) => id(whole, &whole[whole.len().saturating_sub(8)..], typed, about(one)),
            (_, None) => Candidate::new(one.reference.as_str(), about(one)),
        }));
        found.extend(self.checkpoint_words(|checkpoint| checkpoint.link.name.as_deref())?);
        // Where nothing was typed, an id of a checkpoint tells a person less than all of these.
        if !typed.is_empty() {
            found.extend(self.checkpoint_ids(typed)?);
        }
        // The run's work is above already, under shorter names.
        let places = self.points()?;
        found.extend(places.into_iter().filter(|one| {
            let value = one.value.to_string_lossy();
            value == "created" || value.starts_with("phase:")
        }));
        Ok(found)
    }

    /// The current phase of the run, with and without its epoch, for `--expect-phase`.
    pub(super) fn expectable(&self) -> Vec<Candidate> {
        let Some(run) = self.run() else { return Vec::new() };
        vec![
            Candidate::new(run.phase.as_str(), "where the run is"),
            Candidate::new(format!("{}@{}", run.phase, run.epoch), "and no rollback since"),
        ]
    }

    /// The dispatches that `is_wanted`: of the run that the line names, else of all runs.
    pub(super) fn dispatches(&self, typed: &str, is_wanted: impl Fn(DispatchStatus) -> bool) -> Result<Vec<Candidate>> {
        // `run` alone does not decide: without a named run it is the open one, and here all runs count.
        let run = if self.at.has("run") { self.run() } else { None };
        let run_id = run.as_ref().map(|run| &run.id);
        let filter = dispatch::DispatchFilter { run_id, phase: None, status: None, limit: MOST_ROWS };
        let found = dispatch::list(self.snapshot, &filter)?;
        Ok(found
            .iter()
            .filter(|dispatch| is_wanted(dispatch.status))
            .map(|dispatch| id(dispatch.id.as_str(), dispatch.id.short(), typed, about_dispatch(dispatch)))
            .collect())
    }

    /// The newest checkpoints of the working tree that are not pruned.
    fn checkpoints(&self) -> Result<Vec<CheckpointRecord>> {
        let mut found = Vec::new();
        // More are read than are offered, because pruned ones and those of other trees are left out.
        for id in reference::newest(self.snapshot, record::REFERENT, CHECKPOINTS_SEEN)? {
            let checkpoint = record::get(self.snapshot, &CheckpointId::from_ledger(id))?;
            if checkpoint.root == self.project.root && checkpoint.pruned_at.is_none() {
                found.push(checkpoint);
            }
            if found.len() == MOST {
                break;
            }
        }
        Ok(found)
    }

    /// Checkpoints of the working tree, as the ends of their ids.
    pub(super) fn checkpoint_ids(&self, typed: &str) -> Result<Vec<Candidate>> {
        let about = |c: &CheckpointRecord| {
            let what = c.link.message.as_ref().or(c.link.name.as_ref()).map(String::as_str);
            let what = what.or(c.link.step_name.as_deref()).unwrap_or(c.kind.as_str());
            described(&[Some(what), c.link.phase.as_deref(), Some(&time(c.created_at))])
        };
        let found = self.checkpoints()?;
        Ok(found.iter().map(|c| id(c.id.as_str(), c.id.short(), typed, about(c))).collect())
    }

    /// The different values of `word` among the checkpoints of the working tree: names, conversations or workflows.
    pub(super) fn checkpoint_words(&self, word: impl Fn(&CheckpointRecord) -> Option<&str>) -> Result<Vec<Candidate>> {
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        for checkpoint in self.checkpoints()? {
            if let Some(word) = word(&checkpoint).filter(|word| seen.insert((*word).to_owned())) {
                found.push(Candidate::new(word, time(checkpoint.created_at)));
            }
        }
        Ok(found)
    }

    /// Sessions of coding agents.
    pub(super) fn sessions(&self, typed: &str) -> Result<Vec<Candidate>> {
        let mut found = Vec::new();
        for session in ic_session::list(self.snapshot, MOST_ROWS)?.into_iter().rev() {
            let about = described(&[Some(&session.client), Some(session.run_id.short())]);
            found.push(id(session.id.as_str(), session.id.short(), typed, about));
        }
        Ok(found)
    }

    /// The newest tasks of the state database that the configuration names, newest first.
    pub(super) fn tasks(&self, named_config: Option<&Path>) -> Result<Vec<Candidate>> {
        let named = named_config.map(|path| self.project.directory.join(path));
        let Some(rewinding) = config::load(&self.project.root, named.as_deref())?.config.rewind else {
            return Ok(Vec::new());
        };
        let target = rewinding.setup(&self.project.root, self.store).target;
        let engine = RelationalRollbackEngine::open(&target, EngineOptions { busy_timeout: PATIENCE })?;
        let tasks = engine.read_newest_tasks(None, OFFERED_TASKS)?;
        // A key that several scopes have is one word.
        let mut seen = HashSet::new();
        let first = tasks.into_iter().filter(|task| seen.insert(task.task_id.clone()));
        Ok(first.map(|task| Candidate::new(&task.task_id, plain(&task.created_at.to_string()))).collect())
    }

    /// The agents of the newest open runs.
    pub(super) fn agents(&self, typed: &str) -> Result<Vec<Candidate>> {
        self.of_runs(|run_id| {
            let agents = agent::list(self.snapshot, run_id)?;
            let newest = agents.iter().rev().map(|agent| {
                let name = agent.name.as_deref().unwrap_or(&agent.kind);
                let about = described(&[Some(name), Some(agent.status.as_str()), Some(&agent.phase)]);
                id(agent.id.as_str(), agent.id.short(), typed, about)
            });
            Ok(newest.collect())
        })
    }

    /// The artifacts of the newest open runs.
    pub(super) fn artifacts(&self, typed: &str) -> Result<Vec<Candidate>> {
        self.of_runs(|run_id| {
            let artifacts = artifact::list(self.snapshot, run_id, artifact::ArtifactFilter::default())?;
            let newest = artifacts.iter().rev().map(|artifact| {
                let path = artifact.path.to_string_lossy();
                let about = described(&[Some(&path), Some(&artifact.phase), Some(artifact.status.as_str())]);
                id(artifact.id.as_str(), artifact.id.short(), typed, about)
            });
            Ok(newest.collect())
        })
    }

    fn of_runs(&self, list: impl Fn(&RunId) -> Result<Vec<Candidate>>) -> Result<Vec<Candidate>> {
        let filter = run::RunFilter { open: true, project: None, limit: RUNS_SEEN, before: None };
        let mut found = Vec::new();
        for run in run::list(self.snapshot, &filter)? {
            found.extend(list(&run.id)?);
            if found.len() >= MOST {
                break;
            }
        }
        found.truncate(MOST);
        Ok(found)
    }

    /// Steps of the run that have a compensation.
    pub(super) fn steps(&self) -> Result<Vec<Candidate>> {
        let Some(run) = self.run() else { return Ok(Vec::new()) };
        let mut seen = HashSet::new();
        let mut found = ic_effects::compensation::list(self.snapshot, &run.id)?;
        found.reverse();
        // The list was reversed before, so that the newest compensation of a step stays.
        found.retain(|compensation| seen.insert(compensation.step.clone()));
        found.truncate(MOST);
        let about = |c: &ic_effects::Compensation| described(&[Some(c.state.as_str()), c.description.as_deref()]);
        Ok(found.iter().map(|c| Candidate::new(c.step.as_str(), about(c))).collect())
    }

    /// The newest events, by their number.
    pub(super) fn events(&self) -> Result<Vec<Candidate>> {
        // As for dispatches, all runs count if none is named.
        let run = if self.at.has("run") { self.run() } else { None };
        let run_id = run.as_ref().map(|run| &run.id);
        // Events are read forwards, so the reading begins just before the newest ones, and its result is reversed.
        let since = ic_ledger::events::before_newest(self.snapshot, run_id, MOST_ROWS)?;
        let mut found = Vec::new();
        ic_ledger::events::each_since(self.snapshot, run_id, since, MOST_ROWS, |event| {
            let about = described(&[
                Some(&event.event_type),
                event.to.as_deref().or(event.from.as_deref()),
                event.reason.as_deref(),
            ]);
            found.push(Candidate::new(event.seq.to_string(), about));
            Ok(ControlFlow::Continue(()))
        })?;
        found.reverse();
        Ok(found)
    }

    /// The cursors of consumers, by name, with the event that each has reached.
    pub(super) fn cursors(&self) -> Result<Vec<Candidate>> {
        let mut seen = HashSet::new();
        let mut found = ic_ledger::events::cursor::list(self.snapshot)?;
        found.retain(|cursor| seen.insert(cursor.name.clone()));
        found.truncate(MOST);
        Ok(found.iter().map(|c| Candidate::new(c.name.clone(), format!("after event {}", c.seq))).collect())
    }
}

#[allow(clippy::cast_possible_wrap, reason = "a small constant")]
const MOST_ROWS: i64 = MOST as i64;

/// An id as a candidate: its short end, or the whole id if `typed` begins to spell that.
fn id(whole: &str, short: &str, typed: &str, about: String) -> Candidate {
    let is_whole = !typed.is_empty() && !short.starts_with(typed) && whole.starts_with(typed);
    Candidate::new(if is_whole { whole } else { short }, about)
}

fn about_run(run: &Run) -> String {
    let place = if run.status == run::RunStatus::Active { run.phase.as_str() } else { run.status.as_str() };
    described(&[Some(&run.goal), Some(place)])
}

fn about_dispatch(dispatch: &Dispatch) -> String {
    let name = dispatch.work.name.as_deref().or(dispatch.work.agent_type.as_deref());
    let state = if dispatch.rolled_back_by.is_some() { "rolled back" } else { dispatch.status.as_str() };
    described(&[name, Some(state), Some(&dispatch.phase)])
}

/// `a, b, c` of the parts that are given, safe for a terminal.
fn described(parts: &[Option<&str>]) -> String {
    let parts: Vec<String> = parts.iter().flatten().map(|part| plain(part)).collect();
    parts.join(", ")
}

/// The time to the second, as lists show it: two candidates of one minute must not look alike.
fn time(at: Timestamp) -> String {
    crate::text::second(at)
}
