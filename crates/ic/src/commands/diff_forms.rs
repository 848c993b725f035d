//! The forms in which verbs show what differs between two trees: a patch, names, numbers of lines, or JSON.

use std::cell::RefCell;
use std::io::{self, Write};
use std::path::PathBuf;

use ic_base::{CheckpointId, Diagnose};
use ic_checkpoint::capture::CaptureProgress;
use ic_checkpoint::diff::{DiffState, Difference};
use ic_checkpoint::restore::plan::RestoreNode;
use ic_checkpoint::rootfs::RootDir;
use ic_worktree::contents::Contents;
use ic_worktree::{RestoreReport, Which, Workspace};

use crate::commands::prelude::*;
use crate::format::OutputFormat;
use crate::output::CliOutput;
use crate::text::diff::{DiffShape, Printer};
use crate::views::checkpoint::content::{DiffJson, PatchJson};
use crate::views::show::ShownFile;

/// The flags that choose a form.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct DiffForms {
    /// As a patch, which git apply takes
    #[arg(short, long, visible_alias = "unified", group = "shape")]
    patch: bool,
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

impl DiffForms {
    /// The form that was asked for by name.
    fn named(self) -> Option<DiffShape> {
        let all =
            [(self.patch, DiffShape::Unified), (self.name_status, DiffShape::NameStatus), (self.stat, DiffShape::Stat)];
        all.into_iter().find_map(|(asked, shape)| asked.then_some(shape))
    }

    /// The same, with a patch where no form was named.
    pub(crate) fn or_patch(self) -> Self {
        Self { patch: self.patch || (self.named().is_none() && self.patch_bytes.is_none()), ..self }
    }

    /// The form that was asked for by name. A shape that is named is for people; an explicit --json wins over it.
    pub(crate) fn asked(self, output: &CliOutput) -> Option<DiffShape> {
        self.named().filter(|_| !output.json_was_asked_for())
    }

    /// The most bytes of a patch in JSON; `None`: no patch was asked for.
    pub(crate) fn patch_bytes(self) -> Option<usize> {
        self.patch_bytes.map(|most| most as usize)
    }

    /// The form of the text; `None` if JSON was asked for.
    fn shape(self, output: &CliOutput) -> Option<DiffShape> {
        match output.format {
            OutputFormat::Text if !output.json_was_asked_for() => Some(self.named().unwrap_or(DiffShape::Unified)),
            _ => self.asked(output),
        }
    }
}

/// What differs between two trees, and where its content is.
pub(crate) struct ShownDiff<'d> {
    workspace: &'d Workspace<'d>,
    differences: Vec<Difference>,
    /// Paths that the caller named and that cannot be compared, and why.
    skipped: Vec<(Vec<u8>, String)>,
    /// Texts that no checkpoint holds.
    texts: Vec<Vec<u8>>,
    /// The older checkpoint, if one is the older side; the newer one.
    ends: (Option<CheckpointId>, Option<CheckpointId>),
    /// Whether the newer side is the tree as it stands.
    is_to_tree: bool,
}

impl<'d> ShownDiff<'d> {
    /// What differs between the trees at two points; without the second, from the first to the working tree.
    pub(crate) fn between(
        workspace: &'d Workspace<'d>,
        run: Option<&str>,
        (from, to): (&str, Option<&str>),
        paths: &[PathBuf],
    ) -> Result<Self> {
        let named = |text: &str| ic_undo::points::checkpoint_meant(workspace.kernel, run, text);
        let (from, to) = (named(from)?, to.map(named).transpose()?);
        let paths = ic_worktree::paths_in_root(workspace, paths)?;
        let (from, to) = (Which::Id(from.as_str()), to.as_ref().map(|to| Which::Id(to.as_str())));
        let compared = ic_worktree::diff(workspace, from, to, &paths, &CaptureProgress::default())?;
        let mut differences = Vec::new();
        let listed = ic_worktree::changes_of(workspace, compared.changes, &mut |difference| {
            if difference.change().is_some() && ic_worktree::is_among(&difference.path, &paths) {
                differences.push(difference);
            }
            Ok(())
        });
        let (older, newer) = (compared.from.id, compared.to.map(|newer| newer.id));
        let is_to_tree = newer.is_none();
        let diff = Self {
            workspace,
            differences,
            skipped: compared.skipped,
            texts: Vec::new(),
            ends: (Some(older), newer),
            is_to_tree,
        };
        // Another process may prune the checkpoints while they are read: `unless_pruned` then reports that, and no missing object.
        ic_worktree::unless_pruned(workspace, &diff.read(), listed)?;
        Ok(diff)
    }

    /// Differences whose content the store has, or is among these texts.
    pub(crate) fn of(workspace: &'d Workspace<'d>, differences: Vec<Difference>, texts: Vec<Vec<u8>>) -> Self {
        Self { workspace, differences, skipped: Vec::new(), texts, ends: (None, None), is_to_tree: false }
    }

    /// What a planned restore would take out of the tree: from what it would leave to what stands there.
    pub(crate) fn of_plan(workspace: &'d Workspace<'d>, plan: &RestoreReport, paths: &[Vec<u8>]) -> Self {
        let steps = &plan.plan.steps;
        let state = |at: usize, node: &Option<RestoreNode>| {
            let state = node.clone()?.into_state();
            let DiffState::Directory { mode, attributes, .. } = state else { return Some(state) };
            // A directory comes right before what is in it.
            let below = [steps[at].path.0.as_slice(), b"/"].concat();
            // A directory that comes or goes is shown only if it is empty: see `Difference::change`.
            let is_empty = !steps.get(at + 1).is_some_and(|next| next.path.0.starts_with(&below));
            Some(DiffState::Directory { mode, attributes, is_empty })
        };
        // What a restore makes is what is missing now, so a patch of the work has both sides swapped.
        let reversed = steps.iter().enumerate().map(|(at, step)| Difference {
            path: step.path.0.clone(),
            before: state(at, &step.after),
            after: state(at, &step.before),
        });
        let is_shown = |one: &Difference| one.change().is_some() && ic_worktree::is_among(&one.path, paths);
        let differences = reversed.filter(is_shown).collect();
        Self { is_to_tree: true, ..Self::of(workspace, differences, plan.texts.clone()) }
    }

    /// Prints it in the form that is asked for.
    pub(crate) fn print(&self, session: &mut CliSession, forms: DiffForms) -> Result<ExitStatus> {
        if let Some(shape) = forms.shape(&session.output) {
            return self.print_below(session, shape, "");
        }
        let patch = forms.patch_bytes().map(|most| self.patch(most)).transpose()?;
        let text = patch.as_ref().map(PatchJson::text).unwrap_or_default();
        let (older, newer) = (self.ends.0.as_ref(), self.ends.1.as_ref());
        let record = DiffJson::new(older, newer, &self.differences, &self.skipped, patch);
        session.output.record(&record, || text)
    }

    /// Prints it as a text below a heading.
    pub(crate) fn print_below(&self, session: &mut CliSession, shape: DiffShape, heading: &str) -> Result<ExitStatus> {
        let tree = self.tree()?;
        let printer = self.printer(tree.as_ref(), CliOutput::has_colours(), CliOutput::is_terminal());
        session.output.exact(|sink| {
            write_text(sink, heading)?;
            let done = printer.write(shape, &self.differences, &self.skipped, sink);
            ic_worktree::unless_pruned(self.workspace, &self.read(), done)
        })?;
        // `git apply` ignores comments, so its user would never learn what the patch lacks.
        if !printer.is_terminal && !printer.unheld.borrow().is_empty() {
            session.output.warn_beside_text(&not_held(&printer.unheld.borrow()));
        }
        Ok(ExitStatus::Done)
    }

    /// The patch, up to `most` bytes. Control characters become escapes, because a program may print the text on a terminal without knowing
    /// what is in it.
    pub(crate) fn patch(&self, most: usize) -> Result<PatchJson> {
        let tree = self.tree()?;
        let printer = self.printer(tree.as_ref(), false, true);
        let bounded = bounded(&printer, &self.differences, most);
        ic_worktree::unless_pruned(self.workspace, &self.read(), bounded)
    }

    /// The tree that content is read from; `None` between checkpoints. So the directory of dropped work may be gone.
    fn tree(&self) -> Result<Option<RootDir>> {
        self.is_to_tree.then(|| RootDir::open(&self.workspace.root)).transpose()
    }

    fn printer<'p>(&'p self, tree: Option<&'p RootDir>, colours: bool, is_terminal: bool) -> Printer<'p> {
        let contents = Contents { objects: &self.workspace.objects, tree, texts: &self.texts };
        Printer { contents, colours, is_terminal, unheld: RefCell::default() }
    }

    /// What changed, by path: the first state of a path to its last, and the lines of all its changes.
    pub(crate) fn files(&self) -> Result<Vec<ShownFile>> {
        let tree = self.tree()?;
        // This is used only for counts, so neither colours nor escapes matter.
        let printer = self.printer(tree.as_ref(), false, false);
        let mut files: Vec<ShownFile> = Vec::new();
        for of_path in self.differences.chunk_by(|one, other| one.path == other.path) {
            let (Some(first), Some(last)) = (of_path.first(), of_path.last()) else { continue };
            let (before, after) = (first.before.clone(), last.after.clone());
            let whole = Difference { path: first.path.clone(), before, after };
            // Work that made a file and removed it again has changed nothing in the end.
            let Some(change) = whole.change() else { continue };
            let mut lines = None;
            for one in of_path {
                if let Some((added, removed)) = printer.line_counts(one)? {
                    let (all_added, all_removed) = lines.unwrap_or((0, 0));
                    lines = Some((all_added + added, all_removed + removed));
                }
            }
            files.push(ShownFile { path: whole.path, change, lines });
        }
        Ok(files)
    }

    /// The checkpoints whose content is read.
    fn read(&self) -> Vec<&CheckpointId> {
        self.ends.0.iter().chain(&self.ends.1).collect()
    }
}

/// Writes a text with colours where standard output can show them.
pub(crate) fn write_text(sink: &mut dyn Write, text: &str) -> Result<()> {
    let plain = anstream::adapter::strip_str(text).to_string();
    let shown = if CliOutput::has_colours() { text } else { plain.as_str() };
    sink.write_all(shown.as_bytes()).while_doing(|| "writing to standard output".to_owned())
}

fn bounded(printer: &Printer<'_>, differences: &[Difference], most: usize) -> Result<PatchJson> {
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
        // This is never below zero: no more than `most` bytes are taken.
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
