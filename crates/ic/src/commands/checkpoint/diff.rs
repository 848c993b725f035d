//! `ic checkpoint diff`

use std::cell::RefCell;
use std::path::PathBuf;

use clap::ValueEnum;
use ic_base::CheckpointId;
use ic_checkpoint::capture::Progress;
use ic_checkpoint::rootfs::RootDir;
use ic_worktree::{Which, Workspace};

use crate::commands::prelude::*;
use crate::format::Format;
use crate::output::Output;
use crate::text;
use crate::views::checkpoint::content::DiffJson;

/// Show what changed between two checkpoints, or from one to the working tree.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic checkpoint diff 3f9a12c4                       # against the working tree
  ic checkpoint diff 3f9a12c4 8b1c22d0 --stat
  ic checkpoint diff 3f9a12c4 -- src docs/a.md      # only these paths
  ic checkpoint diff 3f9a12c4 --unified | git apply -R
  ic checkpoint diff 3f9a12c4 --json | jq -r '.changes[] | select(.change == \"added\").path'")]
pub(crate) struct Diff {
    /// The older checkpoint: an id, or the end of one
    from: String,
    /// The newer one [default: the working tree]
    to: Option<String>,
    /// Only these paths and what is below them
    #[arg(last = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// As a patch [default on a terminal]
    #[arg(long, group = "shape")]
    unified: bool,
    /// Names, each with a letter: Added, Modified, Deleted, Permissions, Owner or attributes, Type; `?`: not compared
    #[arg(long, group = "shape")]
    name_status: bool,
    /// Names, each with the number of changed lines
    #[arg(long, group = "shape")]
    stat: bool,
}

/// The form of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shape {
    Unified,
    NameStatus,
    Stat,
}

impl Diff {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        let kernel = session.kernel()?;
        let settings = session.checkpoint_settings(&kernel)?;
        let workspace = Workspace::here(&kernel, &settings)?;
        session.warn_of_interruption(&workspace)?;
        let (from, to) = (Which::Id(self.from.as_str()), self.to.as_deref().map(Which::Id));
        let mut differences = Vec::new();
        let paths = ic_worktree::paths_in_root(&workspace, &self.paths)?;
        let compared = ic_worktree::diff(&workspace, from, to, &paths, &Progress::default())?;
        let read: Vec<&CheckpointId> =
            [&compared.from].into_iter().chain(&compared.to).map(|one| &one.id).collect();
        let listed = ic_worktree::changes_of(&workspace, compared.changes, &mut |difference| {
            if difference.change().is_some() && ic_worktree::is_among(&difference.path, &paths) {
                differences.push(difference);
            }
            Ok(())
        });
        ic_worktree::unless_pruned(&workspace, &read, listed)?;
        if let Some(shape) = self.shape(session.output.format, session.output.json_was_asked_for()) {
            let root = RootDir::open(&workspace.root)?;
            let printer = text::diff::Printer {
                objects: &workspace.objects,
                tree: self.to.is_none().then_some(&root),
                colours: Output::has_colours(),
                is_terminal: Output::is_terminal(),
                unheld: RefCell::default(),
            };
            session.output.exact(|sink| {
                let done = printer.write(shape, &differences, &compared.skipped, sink);
                ic_worktree::unless_pruned(&workspace, &read, done)
            })?;
            // A program at the other end of a pipe passes over the margin, and its user would never see it.
            if !printer.is_terminal && !printer.unheld.borrow().is_empty() {
                session.output.warn_beside_text(&not_held(&printer.unheld.borrow()));
            }
            return Ok(Exit::Done);
        }
        let (older, newer) = (&compared.from, compared.to.as_ref());
        session.output.record(&DiffJson::new(older, newer, &differences, &compared.skipped), String::new)
    }

    /// The form of the text that was asked for; `None`: JSON.
    fn shape(&self, format: Format, json_asked: bool) -> Option<Shape> {
        let named =
            [(self.unified, Shape::Unified), (self.name_status, Shape::NameStatus), (self.stat, Shape::Stat)]
                .into_iter()
                .find_map(|(asked, shape)| asked.then_some(shape));
        match (format, named) {
            _ if json_asked => None,
            (_, Some(shape)) => Some(shape),
            (Format::Text, None) => Some(Shape::Unified),
            _ => None,
        }
    }
}

/// The first of what a patch does not hold, and how many more there are.
fn not_held(unheld: &[String]) -> String {
    const NAMED: usize = 10;
    let mut named: Vec<String> = unheld.iter().take(NAMED).cloned().collect();
    if unheld.len() > NAMED {
        named.push(format!("{} more", unheld.len() - NAMED));
    }
    format!(
        "the patch does not hold: {}; ic checkpoint restore brings back all of a checkpoint",
        named.join("; ")
    )
}
