//! The stages in their order, each recorded when it is done.

use ic_base::{Diagnosis, Result};
use ic_kernel::Kernel;
use ic_rewind::journal::{self, Deleted, RewindEntry, RewindFailure, Stage};
use ic_rewind::{Archive, ArchiveState, Rewind};
use ic_worktree::CaptureSettings;

use super::git;
use super::rewind_records::{here, open_remembered, options};
use super::vectors::{self, VectorWatch};

/// Executes the stages that are left of a rewind, until it is done or a stage fails; returns the entry as last written.
///
/// Errors: the failure itself when nothing was changed before it.
pub(super) fn carry_out(
    kernel: &Kernel,
    settings: &CaptureSettings,
    mut entry: RewindEntry,
    watch: &VectorWatch,
) -> Result<RewindEntry> {
    while entry.stage != Stage::VectorDone {
        //   planned ── git ──▶ git_done ── rows ──▶ db_done ── vectors ──▶ vector_done     without a commit git is left out
        let done = match (entry.stage, entry.git_commit.as_deref()) {
            (Stage::Planned, Some(commit)) => git::carry_out(kernel, settings, &entry, commit),
            (Stage::Planned, None) | (Stage::GitDone, _) => database(kernel, settings, &entry),
            _ => vectors::carry_out(kernel, &entry, watch),
        };
        let is_done = done.is_ok();
        let after = match done {
            Ok(()) => kernel.read(|snapshot| journal::get(snapshot, &entry.id))?,
            Err(error) => stop(kernel, &entry, error)?,
        };
        // The row has the paths from the beginning of the rewind, also after a move of the project.
        entry = here(kernel, after);
        if !is_done {
            break;
        }
    }
    Ok(entry)
}

/// The second stage: one transaction on the application's database.
fn database(kernel: &Kernel, settings: &CaptureSettings, entry: &RewindEntry) -> Result<()> {
    let mut archive = Archive::at(&entry.archive);
    let mut engine = open_remembered(&entry.setup.target, options(settings))?;
    // The process may have died between the application's commit and the journal's.
    let is_gone = archive.exists()? && engine.archive_state(&archive)? == ArchiveState::Applied;
    let deleted = if is_gone {
        Deleted::from(&archive.manifest()?)
    } else {
        let rewind = Rewind { id: entry.id.as_str(), now: kernel.context.now() };
        Deleted::from(&engine.rollback_to_task(entry.task_ref(), &rewind, &mut archive)?)
    };
    kernel.write_late_too(|tx, now| journal::db_done(tx, now, entry, &deleted))
}

/// Records that a stage failed. Errors: the failure itself when nothing was changed before it.
fn stop(kernel: &Kernel, entry: &RewindEntry, error: Diagnosis) -> Result<RewindEntry> {
    let failure = RewindFailure { code: error.code().as_str().to_owned(), message: error.message().to_owned() };
    let stopped = kernel.write_late_too(|tx, now| {
        journal::stop(tx, now, entry, &failure)?;
        journal::get(tx, &entry.id)
    });
    match stopped {
        Ok(stopped) if stopped.has_begun() => Ok(stopped),
        // A failure that could not be recorded is found by a resume; the first failure tells more.
        _ => Err(error.detail("rewind_id", entry.id.as_str())),
    }
}
