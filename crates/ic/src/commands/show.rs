//! `ic show`

use std::path::PathBuf;

use ic_base::mask::mask;
use ic_dispatch::dispatch;
use ic_kernel::Kernel;
use ic_session::clients::Client;
use ic_session::{AgentSession, ToolCall, call, outside_files};
use ic_undo::WorkChanges;
use ic_undo::points::{ChangeReference, EntryReference, NamedWork, change_at, entry_meant};
use ic_worktree::Workspace;

use crate::commands::diff_forms::{DiffForms, ShownDiff};
use crate::commands::log::logged_entry;
use crate::commands::prelude::*;
use crate::transcript::Transcript;
use crate::views::show::change::{ShowChangeJson, ShownChange};
use crate::views::show::{ShowJson, ShowWorkJson, ShownWork};

/// Show one entry of the log: a prompt, dispatch or step, with its calls, files and commits.
///
/// The files are what this work changed, by the same rules as an undo of it alone: what others or you changed at the same
/// time is not among them. A checkpoint and a rollback are shown as `ic checkpoint show` and `ic rollback show` do. A
/// restore, and what you changed between the works (own:ID), are shown with their files.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic show                               # the newest work here that is not undone
  ic show 3f9a12c4
  ic show @~2 -p                        # its patch
  ic show 3f9a12c4 -p -- src | git apply -R
  ic show 3f9a12c4 --json | jq -r '.files[] | [.change, .path] | @tsv'")]
pub(crate) struct ShowArgs {
    /// The entry, as ic log prints it: the end of an id, a name of a step or checkpoint, own:ID, @, or @~2 [default: @]
    reference: Option<String>,
    /// The run of a step [default: the newest here that has one of this name]
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Only these paths and what is below them
    #[arg(last = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    forms: DiffForms,
}

impl ShowArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let work = match entry_meant(&kernel, self.run.as_deref(), self.reference.as_deref().unwrap_or("@"))? {
            EntryReference::Work(work) => *work,
            // Their own verbs show them, in their own shapes.
            EntryReference::Checkpoint(id) => return crate::commands::checkpoint::show_by_id(session, id.as_str()),
            EntryReference::Rollback(id) => return crate::commands::rollback::show_by_id(session, id.as_str()),
            EntryReference::Change(named) => return self.change(session, &kernel, &named),
        };
        // The configuration and the root are those of its run: the entry may be of another work tree.
        let settings = session.settings_of_project(&kernel, &work.run.project_dir)?;
        let root = ic_ledger::project_root(&work.run.project_dir);
        let workspace = Workspace::open(&kernel, root, &settings)?;
        let paths = ic_worktree::paths_in_root(&workspace, &self.paths)?;
        let mut changes = match ic_undo::changes_of_entry(&workspace, session.options(), &work) {
            Ok(changes) => Ok(changes),
            // The rest of the entry is worth showing where the tree was not captured.
            Err(error) if error.code() == Code::NoCheckpoint => Err(error.message().to_owned()),
            Err(error) => return Err(error),
        };
        if let Ok(changes) = &mut changes {
            changes.differences.retain(|one| ic_worktree::is_among(&one.path, &paths));
            changes.unsure.retain(|(path, _)| ic_worktree::is_among(path, &paths));
        }
        let (found, unknown) = match changes {
            Ok(found) => (found, None),
            Err(why) => (WorkChanges::default(), Some(why)),
        };
        let (calls, of_session, outside) = told(&kernel, &work)?;
        let WorkChanges { differences, texts, unsure, commits, .. } = found;
        let diff = ShownDiff::of(&workspace, differences, texts);
        let (actor, in_part) = kernel.read(|snapshot| {
            let actor = ic_ledger::events::author(snapshot, work.dispatch.seq)?;
            Ok((actor, ic_undo::points::undone_in_part_by(snapshot, &work.dispatch)?))
        })?;
        let shown = ShownWork {
            other: actor.as_ref().and_then(|actor| kernel.other_person(actor)),
            actor,
            text: text(&kernel, session, &work, of_session.as_ref()),
            files: diff.files()?,
            work: &work,
            in_part,
            session: of_session,
            calls,
            unsure,
            commits,
            outside,
            unknown,
        };
        let now = kernel.context.now();
        if let Some(shape) = self.forms.asked(&session.output) {
            return diff.print_below(session, shape, &(views::show::head(&shown, now) + "\n"));
        }
        let patch = self.forms.patch_bytes().map(|most| diff.patch(most)).transpose()?;
        let record = ShowJson::Work(Box::new(ShowWorkJson::new(&shown, patch)));
        session.output.record(&record, || views::show::card(&shown, now))
    }

    /// Shows a restore, or what a person changed between the works.
    fn change(&self, session: &mut CliSession, kernel: &Kernel, named: &ChangeReference) -> Result<ExitStatus> {
        let found = change_at(kernel, session.options(), named)?;
        let settings = session.checkpoint_settings(kernel)?;
        let workspace = Workspace::here(kernel, &settings)?;
        let paths = ic_worktree::paths_in_root(&workspace, &self.paths)?;
        let mut differences = match found.entry.looks() {
            Some(looks) => ic_undo::changes_between(&workspace, looks)?,
            None => Vec::new(),
        };
        differences.retain(|one| ic_worktree::is_among(&one.path, &paths));
        let diff = ShownDiff::of(&workspace, differences, Vec::new());
        let shown = ShownChange { logged: logged_entry(kernel, found)?, files: diff.files()? };
        let now = kernel.context.now();
        if let Some(shape) = self.forms.asked(&session.output) {
            return diff.print_below(session, shape, &(views::show::change::head(&shown, now) + "\n"));
        }
        let patch = self.forms.patch_bytes().map(|most| diff.patch(most)).transpose()?;
        let record = ShowJson::Change(Box::new(ShowChangeJson::new(&shown, patch)));
        session.output.record(&record, || views::show::change::card(&shown, now))
    }
}

type Told = (Vec<ToolCall>, Option<AgentSession>, Vec<String>);

/// The calls of the work and of what it began, oldest first; its session; and the files outside of the project that it changed.
fn told(kernel: &Kernel, work: &NamedWork) -> Result<Told> {
    kernel.read(|snapshot| {
        let (mut calls, mut outside) = (Vec::new(), Vec::new());
        let begun = dispatch::descendants(snapshot, &work.dispatch.id)?;
        for one in std::iter::once(&work.dispatch).chain(&begun) {
            calls.extend(call::of_dispatch(snapshot, &one.id)?);
            let files = outside_files::of_dispatch(snapshot, &one.id)?;
            outside.extend(files.into_iter().filter(outside_files::OutsideFile::is_changed).map(|file| file.path));
        }
        calls.sort_by_key(|call| (call.began_seq, call.created_at));
        outside.sort();
        outside.dedup();
        Ok((calls, ic_session::of_work(snapshot, &work.dispatch)?, outside))
    })
}

/// What a person typed, masked: the whole text from the client's own record where that still has it, else the line that the ledger keeps.
fn text(kernel: &Kernel, session: &CliSession, work: &NamedWork, of_session: Option<&AgentSession>) -> Option<String> {
    let kept = work.dispatch.work.name.clone()?;
    let whole = || {
        let prompt = kernel.read(|snapshot| ic_session::prompt_of(snapshot, &work.dispatch.id)).ok()??;
        let of_session = of_session?;
        let path = of_session.transcript.as_ref()?.to_str()?;
        let transcript = Transcript::of(Client::parse(&of_session.client)?, Some(path), session.home())?;
        // What was redacted stays so although the client still has it, and another prompt is not this one.
        let is_it = |text: &String| {
            let first = text.lines().find(|line| !line.trim().is_empty());
            first.is_some_and(|first| ic_base::title(first) == kept)
        };
        let found = transcript.texts_since(prompt.transcript_start?).into_iter().find(is_it)?;
        Some(mask(found.trim()).into_owned())
    };
    whole().or(Some(kept))
}
