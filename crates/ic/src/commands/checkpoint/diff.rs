//! `ic checkpoint diff`

use std::cell::RefCell;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use ic_base::CheckpointId;
use ic_checkpoint::capture::CaptureProgress;
use ic_checkpoint::diff::Difference;
use ic_checkpoint::rootfs::RootDir;
use ic_kernel::Kernel;
use ic_worktree::contents::Contents;
use ic_worktree::{Which, Workspace};

use crate::commands::prelude::*;
use crate::format::OutputFormat;
use crate::output::CliOutput;
use crate::text;
use crate::views::checkpoint::content::{DiffJson, PatchJson};

/// Show what changed between two checkpoints or points, or from one to the working tree.
///
/// A point stands for the tree as it was there; `ic log` lists the points of a run.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic checkpoint diff 3f9a12c4                       # against the working tree
  ic checkpoint diff 3f9a12c4 8b1c22d0 --stat
  ic checkpoint diff prompt:5d6e7f80 --stat         # since before that prompt
  ic checkpoint diff phase:planned --run @
  ic checkpoint diff 3f9a12c4 -- src docs/a.md      # only these paths
  ic checkpoint diff 3f9a12c4 --unified | git apply -R
  ic checkpoint diff 3f9a12c4 --json | jq -r '.changes[] | select(.change == \"added\").path'")]
pub(crate) struct CheckpointDiffArgs {
    /// The older checkpoint or point: an id, the end of one, dispatch:ID, prompt:ID, step:NAME, phase:P, checkpoint:NAME, or created
    from: String,
    /// The newer one [default: the working tree]
    to: Option<String>,
    /// The run of the points [default: that of an id, else @, else the newest here]
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
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
    /// In JSON, the patch too, cut after N bytes
    #[arg(long, value_name = "N", conflicts_with = "shape")]
    patch_bytes: Option<u32>,
}

/// The form of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffShape {
    Unified,
    NameStatus,
    Stat,
}

impl CheckpointDiffArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let settings = session.checkpoint_settings(&kernel)?;
        let workspace = Workspace::here(&kernel, &settings)?;
        session.warn_of_interruption(&workspace)?;
        let from = self.checkpoint(&kernel, &self.from)?;
        let to = self.to.as_deref().map(|to| self.checkpoint(&kernel, to)).transpose()?;
        let (from, to) = (Which::Id(&from), to.as_deref().map(Which::Id));
        let mut differences = Vec::new();
        let paths = ic_worktree::paths_in_root(&workspace, &self.paths)?;
        let compared = ic_worktree::diff(&workspace, from, to, &paths, &CaptureProgress::default())?;
        let read: Vec<&CheckpointId> = [&compared.from].into_iter().chain(&compared.to).map(|one| &one.id).collect();
        // Another process may prune the checkpoints while they are read: `unless_pruned` then reports that, and no missing object.
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
                contents: Contents { objects: &workspace.objects, tree: self.to.is_none().then_some(&root) },
                colours: CliOutput::has_colours(),
                is_terminal: CliOutput::is_terminal(),
                unheld: RefCell::default(),
            };
            session.output.exact(|sink| {
                let done = printer.write(shape, &differences, &compared.skipped, sink);
                ic_worktree::unless_pruned(&workspace, &read, done)
            })?;
            // `git apply` ignores comments, so its user would never learn what the patch lacks.
            if !printer.is_terminal && !printer.unheld.borrow().is_empty() {
                session.output.warn_beside_text(&not_held(&printer.unheld.borrow()));
            }
            return Ok(ExitStatus::Done);
        }
        let patch = match self.patch_bytes {
            Some(most) => {
                let root = RootDir::open(&workspace.root)?;
                let tree = self.to.is_none().then_some(&root);
                let patch = bounded(&workspace, tree, &differences, most as usize);
                Some(ic_worktree::unless_pruned(&workspace, &read, patch)?)
            }
            None => None,
        };
        let text = patch.as_ref().map(PatchJson::text).unwrap_or_default();
        let (older, newer) = (&compared.from, compared.to.as_ref());
        let record = DiffJson::new(older, newer, &differences, &compared.skipped, patch);
        session.output.record(&record, || text)
    }

    /// The id of the checkpoint that a reference names, or that captured the tree at a point.
    fn checkpoint(&self, kernel: &Kernel, reference: &str) -> Result<String> {
        ic_undo::points::checkpoint_meant(kernel, self.run.as_deref(), reference).map(|id| id.to_string())
    }

    /// The form of the text; `None` if JSON was asked for.
    fn shape(&self, format: OutputFormat, json_asked: bool) -> Option<DiffShape> {
        let named = [
            (self.unified, DiffShape::Unified),
            (self.name_status, DiffShape::NameStatus),
            (self.stat, DiffShape::Stat),
        ]
        .into_iter()
        .find_map(|(asked, shape)| asked.then_some(shape));
        match (format, named) {
            // A shape that is named is for people; an explicit --json wins over it.
            _ if json_asked => None,
            (_, Some(shape)) => Some(shape),
            (OutputFormat::Text, None) => Some(DiffShape::Unified),
            _ => None,
        }
    }
}

/// The patch, up to `most` bytes. Control characters become escapes, because a program may print the text on a terminal without knowing
/// what is in it.
fn bounded(
    workspace: &Workspace<'_>,
    tree: Option<&RootDir>,
    differences: &[Difference],
    most: usize,
) -> Result<PatchJson> {
    let objects = &workspace.objects;
    let printer = text::diff::Printer {
        contents: Contents { objects, tree },
        colours: false,
        is_terminal: true,
        unheld: RefCell::default(),
    };
    let mut sink = Bounded { bytes: Vec::new(), most, is_full: false };
    let mut cut = None;
    for (at, difference) in differences.iter().enumerate() {
        match printer.write(DiffShape::Unified, std::slice::from_ref(difference), &[], &mut sink) {
            // The sink refuses bytes only when it is full; any other error comes from the store or the tree.
            Err(_) if sink.is_full => {
                cut = Some((difference.path.as_slice(), differences.len() - at));
                break;
            }
            done => done?,
        }
    }
    // The cut may be within a line: that line is removed.
    if cut.is_some() {
        let end = sink.bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        sink.bytes.truncate(end);
    }
    Ok(PatchJson::new(String::from_utf8_lossy(&sink.bytes).into_owned(), cut))
}

/// Takes bytes up to a limit, and refuses the next one.
struct Bounded {
    bytes: Vec<u8>,
    most: usize,
    is_full: bool,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.most - self.bytes.len();
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if bytes.len() > room {
            self.is_full = true;
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The warning about changes that a patch lacks: the first ones, and the number of the others.
fn not_held(unheld: &[String]) -> String {
    const NAMED: usize = 10;
    let mut named: Vec<String> = unheld.iter().take(NAMED).cloned().collect();
    if unheld.len() > NAMED {
        named.push(format!("{} more", unheld.len() - NAMED));
    }
    format!("the patch does not hold: {}; ic checkpoint restore brings back all of a checkpoint", named.join("; "))
}
