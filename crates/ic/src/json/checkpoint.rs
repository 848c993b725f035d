//! Checkpoints, what changed between them, and restores.

use std::collections::HashSet;

use ic_checkpoint::diff::{Change, State};
use ic_checkpoint::git::GitState;
use ic_checkpoint::manifest::{Manifest, PathText};
use ic_checkpoint::record::Checkpoint;
use ic_events::{Hash, hex};
use ic_store::path_from_bytes;
use ic_worktree::Warning;
use serde::Serialize;

use super::{PathJson, WarningJson};
use crate::render::{Cell, style};

/// A checkpoint.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CheckpointJson {
    id: String,
    short_id: String,
    /// manual, auto, safety or restored.
    #[cfg_attr(test, schemars(extend("enum" = ic_checkpoint::record::Kind::WORDS)))]
    kind: &'static str,
    name: Option<String>,
    message: Option<String>,
    conversation: Option<String>,
    workflow: Option<String>,
    run_id: Option<String>,
    phase: Option<String>,
    step: Option<String>,
    step_number: Option<i64>,
    dispatch_id: Option<String>,
    /// The checkpoint that it follows; null for the first of a line.
    parent_id: Option<String>,
    project_dir: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    project_dir_b64: Option<String>,
    /// The hash of the whole tree: equal for equal trees.
    tree_sha256: String,
    created_at: String,
    seq: i64,
    /// Whether nothing is in `skipped` or `unsettled`.
    complete: bool,
    /// Whether it marks the end of work.
    settled: bool,
    /// Whether its content is kept.
    retainable: bool,
    pruned_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<Vec<SkippedJson>>,
    /// Files that changed at each read: the checkpoint may hold an inconsistent state of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    unsettled: Option<Vec<PathJson>>,
    nested_git: Vec<PathJson>,
    counts: CountsJson,
    /// What changed since its parent; empty for the first of a line.
    changes: Vec<ChangeJson>,
    git: Option<GitJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<Vec<FileJson>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<WarningJson>,
}

/// The state of git that a checkpoint holds.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct GitJson {
    /// The branch that HEAD was on; null when it was detached, or on another ref.
    branch: Option<String>,
    /// The ref outside of refs/heads/ that HEAD was on.
    #[serde(skip_serializing_if = "Option::is_none")]
    head_ref: Option<String>,
    /// The commit that HEAD was at; null before the first one.
    head: Option<String>,
    /// Whether tracked files or the index differed from HEAD.
    dirty: bool,
    /// The newest stash entry; null if there was none.
    stash: Option<&'static str>,
    /// The commits of all stash entries, newest first.
    stashes: Vec<String>,
    /// A merge, rebase or the like that was in progress.
    operation: Option<String>,
}

impl From<&GitState> for GitJson {
    fn from(state: &GitState) -> Self {
        Self {
            branch: state.branch.as_ref().map(|name| String::from_utf8_lossy(&name.0).into_owned()),
            head_ref: state.head_ref.as_ref().map(|name| String::from_utf8_lossy(&name.0).into_owned()),
            head: state.head.clone(),
            dirty: state.dirty,
            stash: (!state.stash.is_empty()).then_some("stash@{0}"),
            stashes: state.stash.iter().map(|stash| stash.commit.clone()).collect(),
            operation: state.operation.clone(),
        }
    }
}

/// A path that was left out.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SkippedJson {
    #[serde(flatten)]
    pub(super) path: PathJson,
    /// Why.
    pub(super) reason: String,
}

/// How much a checkpoint holds, and what it cost.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CountsJson {
    files: u64,
    dirs: u64,
    symlinks: u64,
    bytes: u64,
    /// Objects that the store did not have before.
    new_objects: u64,
    /// Bytes that they take, compressed.
    stored_bytes: u64,
    duration_ms: u64,
}

/// A changed path.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ChangeJson {
    #[serde(flatten)]
    path: PathJson,
    /// added, modified, deleted, mode, attributes or type.
    #[cfg_attr(test, schemars(extend("enum" = ic_checkpoint::diff::Change::WORDS)))]
    change: String,
}

/// What a checkpoint holds at a path.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct FileJson {
    #[serde(flatten)]
    path: PathJson,
    /// file, symlink or directory.
    #[cfg_attr(test, schemars(extend("enum" = ["file", "symlink", "directory"])))]
    kind: &'static str,
    /// Permission bits in octal.
    mode: Option<String>,
    size: Option<u64>,
    sha256: Option<String>,
    /// Where a symlink points.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// Its content was purged, or lost: it cannot be restored. Left out where it is there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    purged: bool,
}

impl CheckpointJson {
    /// A checkpoint without what only `show` and `create` tell.
    pub(crate) fn brief(checkpoint: &Checkpoint, manifest: Option<&Manifest>) -> Self {
        let link = &checkpoint.link;
        let root = PathJson::from(checkpoint.root.as_path());
        let (counts, stored) = (&checkpoint.counts, &checkpoint.stored);
        let changes = manifest.and_then(|m| m.changes.as_deref()).unwrap_or_default();
        Self {
            id: checkpoint.id.to_string(),
            short_id: checkpoint.id.short().to_owned(),
            kind: checkpoint.kind.as_str(),
            name: link.name.clone(),
            message: link.message.clone(),
            conversation: link.conversation.clone(),
            workflow: link.workflow.clone(),
            run_id: link.run_id.as_ref().map(ToString::to_string),
            phase: link.phase.clone(),
            step: link.step_name.clone(),
            step_number: link.step,
            dispatch_id: link.dispatch_id.as_ref().map(ToString::to_string),
            parent_id: checkpoint.parent_id.as_ref().map(ToString::to_string),
            project_dir: root.path,
            project_dir_b64: root.path_b64,
            tree_sha256: hex(&checkpoint.tree),
            created_at: checkpoint.created_at.to_string(),
            seq: checkpoint.seq,
            complete: checkpoint.complete,
            settled: checkpoint.settled,
            retainable: checkpoint.pruned_at.is_none(),
            pruned_at: checkpoint.pruned_at.map(|at| at.to_string()),
            skipped: None,
            unsettled: None,
            nested_git: manifest.map_or_else(Vec::new, |m| m.nested_git.iter().map(PathJson::from).collect()),
            counts: CountsJson {
                files: counts.files,
                dirs: counts.directories,
                symlinks: counts.symlinks,
                bytes: counts.bytes,
                new_objects: stored.new_objects,
                stored_bytes: stored.stored_bytes,
                duration_ms: checkpoint.duration_ms,
            },
            changes: changes
                .iter()
                .map(|c| ChangeJson { path: (&c.path).into(), change: c.change.clone() })
                .collect(),
            git: manifest.and_then(|m| m.git.as_ref()).map(GitJson::from),
            files: None,
            warnings: Vec::new(),
        }
    }

    /// Everything about a checkpoint.
    pub(crate) fn whole(checkpoint: &Checkpoint, manifest: Option<&Manifest>, warnings: &[Warning]) -> Self {
        let skipped = manifest.map_or(&[][..], |m| &m.skipped);
        Self {
            skipped: Some(
                skipped
                    .iter()
                    .map(|s| SkippedJson { path: (&s.path).into(), reason: s.reason.clone() })
                    .collect(),
            ),
            unsettled: Some(
                manifest.map_or_else(Vec::new, |m| m.unsettled.iter().map(PathJson::from).collect()),
            ),
            warnings: warnings.iter().map(WarningJson::from).collect(),
            ..Self::brief(checkpoint, manifest)
        }
    }

    /// The same with what it holds.
    pub(crate) fn with_files(self, files: Vec<FileJson>) -> Self {
        Self { files: Some(files), ..self }
    }
}

impl FileJson {
    /// What is at a path; `None` for a name that was left out. `purged`: contents that are gone.
    pub(crate) fn new(path: &[u8], state: &State, purged: &HashSet<Hash>) -> Option<Self> {
        let path = PathJson::from(path_from_bytes(path).as_path());
        let (mode, size, sha256, target) = (None, None, None, None);
        let blank = Self { path, kind: "file", mode, size, sha256, target, purged: false };
        Some(match state {
            State::File { hash, size, mode, .. } => Self {
                mode: Some(format!("{mode:04o}")),
                size: Some(*size),
                sha256: Some(hex(hash)),
                purged: purged.contains(hash),
                ..blank
            },
            State::Symlink(target) => {
                Self { kind: "symlink", target: Some(String::from_utf8_lossy(target).into_owned()), ..blank }
            }
            State::Directory { mode, .. } => {
                Self { kind: "directory", mode: Some(format!("{mode:04o}")), ..blank }
            }
            State::Passed(_) => return None,
        })
    }
}

impl FileJson {
    /// As a line of a table.
    pub(crate) fn cells(&self) -> Vec<Cell> {
        let path = match &self.target {
            Some(target) => format!("{} -> {target}", self.path.path),
            None if self.purged => format!("{}  (its content was purged, or lost)", self.path.path),
            None => self.path.path.clone(),
        };
        vec![
            Cell::new(style::DIM, self.mode.as_deref().unwrap_or(self.kind)),
            self.size.map_or_else(String::new, |size| size.to_string()).as_str().into(),
            Cell::new(style::DIM, self.sha256.as_deref().map_or("", |hash| &hash[..12])),
            path.as_str().into(),
        ]
    }
}

impl From<&PathText> for PathJson {
    fn from(path: &PathText) -> Self {
        path_from_bytes(&path.0).as_path().into()
    }
}

impl From<&Warning> for WarningJson {
    fn from(warning: &Warning) -> Self {
        Self { code: warning.code, message: warning.message.clone() }
    }
}

/// What differs between two checkpoints, or between one and the working tree.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DiffJson {
    /// The checkpoint that is compared.
    pub(crate) from_checkpoint_id: String,
    /// The other one; null for the working tree.
    pub(crate) to_checkpoint_id: Option<String>,
    pub(crate) changes: Vec<ChangeJson>,
    /// Paths that were asked for and that neither side has content of.
    pub(crate) skipped: Vec<SkippedJson>,
}

impl SkippedJson {
    pub(crate) fn new(path: &[u8], reason: String) -> Self {
        Self { path: path_from_bytes(path).as_path().into(), reason }
    }
}

impl ChangeJson {
    pub(crate) fn new(path: &[u8], change: Change) -> Self {
        Self { path: path_from_bytes(path).as_path().into(), change: change.as_str().to_owned() }
    }
}
