//! Entries of the journal, with the paths at which their files are now.

use std::time::Duration;

use ic_base::{Code, Result};
use ic_kernel::Kernel;
use ic_rewind::journal::{self, RewindEntry};
use ic_rewind::{EngineOptions, RelationalRollbackEngine, RewindTarget};
use ic_worktree::CaptureSettings;

/// An entry with its present paths: a project that was moved took its database and its archives along.
pub(crate) fn here(kernel: &Kernel, mut entry: RewindEntry) -> RewindEntry {
    let root = &kernel.project.root;
    if let Some(name) = entry.archive.file_name().filter(|_| !entry.archive.exists()) {
        let moved = kernel.store().join("rewinds").join(name);
        if moved.exists() {
            entry.archive = moved;
        }
    }
    // Where the old directory exists, it is another project by now, or this one was copied.
    if !entry.root.exists() {
        if let Ok(below) = entry.database.strip_prefix(&entry.root) {
            entry.database = root.join(below);
            entry.setup.target.database.clone_from(&entry.database);
        }
        entry.root.clone_from(root);
    }
    entry
}

/// Every rewind, newest first.
pub fn list(kernel: &Kernel) -> Result<Vec<RewindEntry>> {
    Ok(kernel.read(journal::list)?.into_iter().map(|entry| here(kernel, entry)).collect())
}

/// Opens the database that a journal names. The configuration is not read, so another database in it has no effect.
pub fn open_remembered(target: &RewindTarget, options: EngineOptions) -> Result<RelationalRollbackEngine> {
    RelationalRollbackEngine::open(target, options).map_err(|error| {
        if error.code() != Code::InvalidConfig || !error.details().contains_key("database") {
            return error;
        }
        error.hint(format!("it is the one that was rewound: move it back to {}", target.database.display()))
    })
}

pub(crate) fn options(settings: &CaptureSettings) -> EngineOptions {
    EngineOptions { busy_timeout: settings.busy_timeout.max(Duration::from_millis(1)) }
}
