//! Checkpoints: lists, cards, trees.

pub(crate) mod content;
pub(crate) mod git;
pub(crate) mod restore;
pub(crate) mod retention;
pub(crate) mod size;
mod tree;

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use ic_base::{Result, Timestamp};
use ic_checkpoint::capture::CaptureProgress;
use ic_checkpoint::git::GitState;
use ic_checkpoint::manifest::{ChangedCounts, CheckpointManifest, PathText};
use ic_checkpoint::record::{CheckpointKind, CheckpointRecord};
use ic_ledger::events::hex;
use ic_ledger::path_from_bytes;
use ic_session::Prompt;
use ic_worktree::{ShownCheckpoint, Warning};

pub(crate) use tree::{choice, tree};

use crate::output::ListOutput;
use crate::text::{Cell, TextTable, counted, path_text, plain, style, styled, when};
use crate::views::PathJson;
use crate::views::checkpoint::content::{ChangeJson, FileJson};
use crate::views::common_shapes::{SkippedJson, WarningJson};

shape! {
    /// A checkpoint, with what is known about its content.
    pub(crate) struct CheckpointJson from (checkpoint: &CheckpointRecord, manifest: Option<&CheckpointManifest>) where
        link = &checkpoint.link;
        root = PathJson::from(checkpoint.root.as_path());
        changes = manifest.and_then(|m| m.changes.as_deref()).unwrap_or_default();
    {
        id: String = checkpoint.id.to_string(),
        short_id: String = checkpoint.id.short().to_owned(),
        /// manual, auto, safety or restored.
        kind: &'static str as ic_checkpoint::record::CheckpointKind = checkpoint.kind.as_str(),
        name: Option<String> = link.name.clone(),
        message: Option<String> = link.message.clone(),
        conversation: Option<String> = link.conversation.clone(),
        workflow: Option<String> = link.workflow.clone(),
        run_id: Option<String> = link.run_id.as_ref().map(ToString::to_string),
        phase: Option<String> = link.phase.clone(),
        step: Option<String> = link.step_name.clone(),
        step_number: Option<i64> = link.step,
        dispatch_id: Option<String> = link.dispatch_id.as_ref().map(ToString::to_string),
        /// The session whose hooks took it; null if no hook did.
        session_id: Option<String> = None,
        /// The prompt that it was taken for: before, in, or at the end of its work. The id of its dispatch.
        prompt_id: Option<String> = None,
        /// The checkpoint that it follows; null for the first of a lineage.
        parent_id: Option<String> = checkpoint.parent_id.as_ref().map(ToString::to_string),
        project_dir: String = root.path,
        #[serde(skip_serializing_if = "Option::is_none")]
        project_dir_b64: Option<String> = root.path_b64,
        /// The hash of the whole tree: equal for equal trees.
        tree_sha256: String = hex(&checkpoint.tree),
        created_at: String = checkpoint.created_at.to_string(),
        seq: i64 = checkpoint.seq,
        /// Whether nothing is in `skipped` or `unsettled`.
        complete: bool = checkpoint.complete,
        /// Whether it marks the end of work: later changes are others'.
        settled: bool = checkpoint.settled,
        /// Whether its content is kept.
        retainable: bool = checkpoint.pruned_at.is_none(),
        pruned_at: Option<String> = checkpoint.pruned_at.map(|at| at.to_string()),
        #[serde(skip_serializing_if = "Option::is_none")]
        skipped: Option<Vec<SkippedJson>> = None,
        /// Files that changed at each read: the checkpoint may hold an inconsistent state of them.
        #[serde(skip_serializing_if = "Option::is_none")]
        unsettled: Option<Vec<PathJson>> = None,
        nested_git: Vec<PathJson> =
            manifest.map_or_else(Vec::new, |m| m.nested_git.iter().map(PathJson::from).collect()),
        /// Other work trees, none of which is in the checkpoint; those outside of its root have their whole paths.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        work_trees: Vec<PathJson> = manifest
            .map_or_else(Vec::new, |m| m.work_trees.iter().map(PathJson::from).collect()),
        counts: CountsJson = checkpoint.into(),
        /// What changed since its parent; empty for the first of a lineage.
        changes: Vec<ChangeJson> = changes.iter().map(|c| ChangeJson::new(&c.path.0, &c.change)).collect(),
        git: Option<GitJson> = manifest.and_then(|m| m.git.as_ref()).map(GitJson::from),
        #[serde(skip_serializing_if = "Option::is_none")]
        files: Option<Vec<FileJson>> = None,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<WarningJson> = Vec::new(),
    }

    /// The state of git that a checkpoint holds.
    pub(crate) struct GitJson from state: &GitState {
        /// The branch that HEAD was on; null when it was detached, or on another ref.
        branch: Option<String> =
            state.branch.as_ref().map(|name| String::from_utf8_lossy(&name.0).into_owned()),
        /// The ref outside of refs/heads/ that HEAD was on.
        #[serde(skip_serializing_if = "Option::is_none")]
        head_ref: Option<String> =
            state.head_ref.as_ref().map(|name| String::from_utf8_lossy(&name.0).into_owned()),
        /// The commit that HEAD was at; null before the first one.
        head: Option<String> = state.head.clone(),
        /// Whether tracked files or the index differed from HEAD, for a git that runs no filter. Untracked files, and changes inside of a
        /// submodule, do not count.
        dirty: bool = state.dirty,
        /// The newest stash entry; null if there was none.
        stash: Option<&'static str> = (!state.stash.is_empty()).then_some("stash@{0}"),
        /// The commits of all stash entries, newest first.
        stashes: Vec<String> = state.stash.iter().map(|stash| stash.commit.clone()).collect(),
        /// A merge, rebase or the like that was in progress.
        operation: Option<String> = state.operation.clone(),
    }

    /// How much a checkpoint contains, and how much it added to the store.
    pub(crate) struct CountsJson from checkpoint: &CheckpointRecord {
        files: u64 = checkpoint.counts.files,
        dirs: u64 = checkpoint.counts.directories,
        symlinks: u64 = checkpoint.counts.symlinks,
        bytes: u64 = checkpoint.counts.bytes,
        /// Objects that the store did not have before.
        new_objects: u64 = checkpoint.stored.new_objects,
        /// Bytes that they take, compressed.
        stored_bytes: u64 = checkpoint.stored.stored_bytes,
        duration_ms: u64 = checkpoint.duration_ms,
    }
}

impl CheckpointJson {
    /// The checkpoint with its manifest and warnings.
    pub(crate) fn whole(
        checkpoint: &CheckpointRecord,
        manifest: Option<&CheckpointManifest>,
        warnings: &[Warning],
    ) -> Self {
        let skipped = manifest.map_or(&[][..], |m| &m.skipped);
        Self {
            skipped: Some(skipped.iter().map(|s| SkippedJson::new(&s.path.0, s.reason.clone())).collect()),
            unsettled: Some(manifest.map_or_else(Vec::new, |m| m.unsettled.iter().map(PathJson::from).collect())),
            warnings: warnings.iter().map(WarningJson::from).collect(),
            ..Self::new(checkpoint, manifest)
        }
    }

    /// Adds the prompt that it was taken for.
    pub(crate) fn for_prompt(self, prompt: Option<&Prompt>) -> Self {
        let session_id = prompt.map(|prompt| prompt.session_id.to_string());
        Self { session_id, prompt_id: prompt.map(|prompt| prompt.dispatch_id.to_string()), ..self }
    }

    /// Adds the files that it contains.
    pub(crate) fn with_files(self, files: Vec<FileJson>) -> Self {
        Self { files: Some(files), ..self }
    }
}

/// The most lines of a section that are shown; the rest is counted.
pub(crate) const SHOWN: usize = 40;

/// A table of checkpoints that is filled row by row.
pub(crate) struct CheckpointRows {
    table: TextTable,
    now: Timestamp,
}

impl CheckpointRows {
    /// An empty table. `now`: the time that ages are counted from.
    pub(crate) fn new(now: Timestamp) -> Self {
        Self { table: TextTable::new(&["CHECKPOINT", "KIND", "CREATED", "CHANGES", "FILES", "ABOUT"]), now }
    }

    /// Adds a checkpoint, which is printed at once in JSON; breaks if the reader has gone.
    pub(crate) fn push(&mut self, list: &mut ListOutput<'_>, shown: &ShownCheckpoint) -> Result<ControlFlow<()>> {
        let (checkpoint, manifest) = (&shown.checkpoint, shown.manifest.as_ref());
        let prompt = shown.prompt.as_ref();
        list.push(&CheckpointJson::new(checkpoint, manifest).for_prompt(prompt), || {
            // As text, nothing is printed yet: the columns of a table depend on all rows.
            self.add(checkpoint, manifest, prompt);
            String::new()
        })
    }

    fn add(&mut self, checkpoint: &CheckpointRecord, manifest: Option<&CheckpointManifest>, prompt: Option<&Prompt>) {
        let of_prompt = prompt.map(|prompt| format!("prompt:{}", prompt.dispatch_id.short()));
        let about = [Some(about(checkpoint)), of_prompt].into_iter().flatten().filter(|text| !text.is_empty());
        let about = about.collect::<Vec<_>>().join(", ");
        self.table.row(vec![
            Cell::new(style::STRONG, checkpoint.id.short()),
            Cell::new(kind_style(checkpoint.kind), checkpoint.kind.as_str()),
            Cell::new(style::DIM, &when(self.now, checkpoint.created_at)),
            summary(manifest).as_str().into(),
            checkpoint.counts.files.to_string().into(),
            about.as_str().into(),
        ]);
    }

    pub(crate) fn render(&self) -> String {
        self.table.render("No checkpoints.")
    }
}

/// The progress of a capture, in one line.
pub(crate) fn capturing(progress: &CaptureProgress) -> String {
    format!(
        "capturing: {} names, {} read",
        progress.seen.load(Ordering::Relaxed),
        bytes(progress.read.load(Ordering::Relaxed))
    )
}

/// The run, step, prompt and so on that a checkpoint belongs to, each with its label.
fn links(checkpoint: &CheckpointRecord, prompt: Option<&Prompt>) -> Vec<(&'static str, String)> {
    let link = &checkpoint.link;
    let named = [
        ("name", &link.name),
        ("message", &link.message),
        ("conversation", &link.conversation),
        ("workflow", &link.workflow),
        ("phase", &link.phase),
        ("step", &link.step_name),
    ];
    let named = named.into_iter().filter_map(|(label, value)| Some((label, plain(value.as_deref()?))));
    let ids = [
        ("run", link.run_id.as_ref().map(|run| run.short().to_owned())),
        ("dispatch", link.dispatch_id.as_ref().map(|dispatch| dispatch.short().to_owned())),
        ("session", prompt.map(|prompt| prompt.session_id.short().to_owned())),
        ("prompt", prompt.map(|prompt| prompt.dispatch_id.short().to_owned())),
    ];
    named.chain(ids.into_iter().filter_map(|(label, id)| Some((label, id?)))).collect()
}

/// Everything about one checkpoint except its files.
pub(crate) fn card(
    checkpoint: &CheckpointRecord,
    manifest: Option<&CheckpointManifest>,
    prompt: Option<&Prompt>,
) -> String {
    let mut out = format!(
        "{}  {}\n",
        styled(style::STRONG, checkpoint.id.short()),
        styled(kind_style(checkpoint.kind), checkpoint.kind.as_str())
    );
    let mut row = |label: &str, value: &str| {
        out += &format!("  {}  {value}\n", styled(style::DIM, &format!("{label:<12}")));
    };
    for (label, value) in links(checkpoint, prompt) {
        row(label, &value);
    }
    row("follows", checkpoint.parent_id.as_ref().map_or("nothing: the first of its lineage", |id| id.short()));
    row("root", &path_text(&checkpoint.root));
    let counts = &checkpoint.counts;
    let counted = |n: u64, noun| counted(usize::try_from(n).unwrap_or(usize::MAX), noun);
    row(
        "holds",
        &format!(
            "{}, {}, {}, {}",
            counted(counts.files, "file"),
            counted(counts.directories, "directory"),
            counted(counts.symlinks, "link"),
            bytes(counts.bytes)
        ),
    );
    if let Some(git) = manifest.and_then(|m| m.git.as_ref()) {
        let branch = git.standing_on();
        let head = git.head.as_deref().map_or("no commit yet", |oid| &oid[..oid.len().min(12)]);
        let dirty = if git.dirty { ", with changes" } else { "" };
        row("git", &plain(&format!("{} at {head}{dirty}", branch.as_deref().unwrap_or("detached"))));
    }
    row("stored", &format!("{} in {} ms", bytes(checkpoint.stored.stored_bytes), checkpoint.duration_ms));
    row("created", &checkpoint.created_at.to_string());
    if let Some(at) = checkpoint.pruned_at {
        row("pruned", &at.to_string());
    }
    row("tree", &ic_ledger::events::hex(&checkpoint.tree));
    row("id", checkpoint.id.as_str());
    if let Some(manifest) = manifest {
        out += &details(manifest);
    }
    out
}

fn details(manifest: &CheckpointManifest) -> String {
    let mut out = String::new();
    if let Some(changes) = &manifest.changes {
        for (change, title) in [
            ("added", "Added"),
            ("modified", "Modified"),
            ("deleted", "Deleted"),
            ("mode", "Permissions"),
            ("attributes", "Owners and attributes"),
            ("type", "Type"),
        ] {
            let paths: Vec<&PathText> = changes.iter().filter(|c| c.change == change).map(|c| &c.path).collect();
            section(&mut out, title, &paths.iter().map(|path| text(path)).collect::<Vec<_>>());
        }
    }
    let skipped: Vec<String> =
        manifest.skipped.iter().map(|s| format!("{}  {}", text(&s.path), styled(style::DIM, &s.reason))).collect();
    section(&mut out, "Left out", &skipped);
    let unsettled: Vec<String> = manifest.unsettled.iter().map(text).collect();
    section(&mut out, "Changed at each read", &unsettled);
    section(&mut out, "Nested repositories", &manifest.nested_git.iter().map(text).collect::<Vec<_>>());
    let work_trees = manifest.work_trees.iter().map(text).collect::<Vec<_>>();
    section(&mut out, "Other work trees", &work_trees);
    out
}

pub(crate) fn section(out: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    *out += &format!("{} ({})\n", styled(style::STRONG, title), lines.len());
    for line in lines.iter().take(SHOWN) {
        *out += &format!("  {line}\n");
    }
    if lines.len() > SHOWN {
        *out += &format!("  {}\n", styled(style::DIM, &format!("and {} more: --json", lines.len() - SHOWN)));
    }
}

/// The number of changed paths, as in `+2 ~1 -3`: added, modified, deleted.
fn summary(manifest: Option<&CheckpointManifest>) -> String {
    let Some(changes) = manifest.and_then(|m| m.changes.as_ref()) else { return String::new() };
    let count =
        |wanted: &[&str]| changes.iter().filter(|c: &&ChangedCounts| wanted.contains(&c.change.as_str())).count();
    format!("+{} ~{} -{}", count(&["added"]), count(&["modified", "mode", "attributes", "type"]), count(&["deleted"]))
}

/// A few words about a checkpoint: its message, name or step.
fn about(checkpoint: &CheckpointRecord) -> String {
    let link = &checkpoint.link;
    let mut words: Vec<String> = Vec::new();
    words.extend(link.name.clone());
    words.extend(link.step_name.clone().or_else(|| link.phase.clone()));
    words.extend(link.message.clone());
    words.join(" · ")
}

fn kind_style(kind: CheckpointKind) -> anstyle::Style {
    match kind {
        CheckpointKind::Manual => style::GOOD,
        CheckpointKind::Auto => style::NONE,
        CheckpointKind::Safety => style::DIM,
        CheckpointKind::Restored => style::WARN,
    }
}

pub(crate) fn text(path: &PathText) -> String {
    path_text(&path_from_bytes(&path.0))
}

/// A size with a unit, as in `1.5 MB`, in powers of 1000.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    // Whole numbers are cut and not rounded: 999 999 bytes are 999.9 kB, and no size becomes 1000.0 kB.
    let (mut whole, mut rest, mut unit) = (count, 0, 0);
    while whole >= 1000 && unit + 1 < UNITS.len() {
        rest = whole % 1000 / 100;
        whole /= 1000;
        unit += 1;
    }
    if unit == 0 { format!("{whole} B") } else { format!("{whole}.{rest} {}", UNITS[unit]) }
}
