//! The content of a checkpoint, and the differences of two.

use std::collections::HashSet;

use ic_base::CheckpointId;
use ic_checkpoint::diff::{DiffState, Difference};
use ic_ledger::events::{Hash, hex};
use ic_ledger::path_from_bytes;

use crate::text::{Cell, TextTable, counted, plain, style};
use crate::views::PathJson;
use crate::views::common_shapes::SkippedJson;

shape! {
    /// A path that changed, and how.
    pub(crate) struct ChangeJson from (path: &[u8], change: &str) {
        #[serde(flatten)]
        path: PathJson = path_from_bytes(path).as_path().into(),
        /// The kind of change: added, modified, deleted, mode, attributes or type.
        change: String as ic_checkpoint::diff::TreeChange = change.to_owned(),
    }

    /// A path in a checkpoint, and its content.
    pub(crate) struct FileJson {
        #[serde(flatten)]
        path: PathJson,
        /// file, symlink or directory.
        #[cfg_attr(test, schemars(extend("enum" = ["file", "symlink", "directory"])))]
        kind: &'static str,
        /// Permission bits in octal, of a file or directory.
        mode: Option<String>,
        size: Option<u64>,
        sha256: Option<String>,
        /// The target of a symlink.
        #[serde(skip_serializing_if = "Option::is_none")]
        target: Option<String>,
        /// Whether its content was purged or lost, so that it cannot be restored. Left out if it was not.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        purged: bool,
    }

    /// The differences of two checkpoints, or of one and the working tree.
    pub(crate) struct DiffJson from (
        older: Option<&CheckpointId>,
        newer: Option<&CheckpointId>,
        differences: &[Difference],
        skipped: &[(Vec<u8>, String)],
        patch: Option<PatchJson>,
    ) where
        changed = differences.iter().filter_map(|one| Some((&one.path, one.change()?)));
    {
        /// The older checkpoint of the two; null only in `ic diff` without a reference, whose older side is the tree after an undo.
        from_checkpoint_id: Option<String> = older.map(ToString::to_string),
        /// The newer one; null for the working tree.
        to_checkpoint_id: Option<String> = newer.map(ToString::to_string),
        changes: Vec<ChangeJson> =
            changed.map(|(path, change)| ChangeJson::new(path, change.as_str())).collect(),
        /// Requested paths that cannot be compared: neither side has their content.
        skipped: Vec<SkippedJson> =
            skipped.iter().map(|(path, reason)| SkippedJson::new(path, reason.clone())).collect(),
        /// The changes as a patch, with control characters escaped; left out if it was not asked for.
        #[serde(skip_serializing_if = "Option::is_none")]
        patch: Option<PatchJson> = patch,
    }

    /// A patch, up to the number of bytes that was asked for.
    pub(crate) struct PatchJson {
        text: String,
        /// The path within whose changes it was cut; null if it is whole.
        cut_path: Option<String>,
        /// The number of changed paths that are missing in it, or cut.
        cut_count: usize,
    }
}

impl PatchJson {
    pub(crate) fn new(text: String, cut: Option<(&[u8], usize)>) -> Self {
        let cut_path = cut.map(|(path, _)| path_from_bytes(path).to_string_lossy().into_owned());
        Self { text, cut_path, cut_count: cut.map_or(0, |(_, count)| count) }
    }

    /// The patch for people; if it was cut, its last line says so.
    pub(crate) fn text(&self) -> String {
        match &self.cut_path {
            None => self.text.clone(),
            Some(path) => {
                let rest = counted(self.cut_count, "path");
                format!("{}# cut here, in {}: {rest} left out, or in part\n", self.text, plain(path))
            }
        }
    }
}

impl FileJson {
    /// The entry of a path; `None` for a name that was left out. `purged`: hashes of contents that are gone.
    pub(crate) fn new(path: &[u8], state: &DiffState, purged: &HashSet<Hash>) -> Option<Self> {
        let path = PathJson::from(path_from_bytes(path).as_path());
        let (mode, size, sha256, target) = (None, None, None, None);
        let blank = Self { path, kind: "file", mode, size, sha256, target, purged: false };
        Some(match state {
            DiffState::File { hash, size, mode, .. } => Self {
                mode: Some(format!("{mode:04o}")),
                size: Some(*size),
                sha256: Some(hex(hash)),
                purged: purged.contains(hash),
                ..blank
            },
            DiffState::Symlink(target) => {
                Self { kind: "symlink", target: Some(String::from_utf8_lossy(target).into_owned()), ..blank }
            }
            DiffState::Directory { mode, .. } => Self { kind: "directory", mode: Some(format!("{mode:04o}")), ..blank },
            DiffState::Passed(_) => return None,
        })
    }
}

impl FileJson {
    /// The entry as a row of a table.
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

/// The files of a checkpoint, one a line.
pub(crate) fn files(files: &[FileJson]) -> String {
    let mut table = TextTable::new(&["MODE", "SIZE", "SHA-256", "PATH"]);
    for file in files {
        table.row(file.cells());
    }
    table.render("Nothing.")
}
