//! Removal of archives: the rows that rewinds removed are kept as long as checkpoints are.
//!
//! Archives that are needed are never removed: that of an unfinished rewind, and that of a rollback which can still be undone. A rewind's
//! archive is removed only under the lock of its database, so no other process works on it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ic_base::{Code, Diagnose, Result, RewindId, Timestamp};
use ic_checkpoint::retention::Policy;
use ic_kernel::Kernel;
use ic_kernel::journal::table::needs_no_archive;
use ic_rewind::Archive;
use ic_rewind::journal::{RewindEntry, RewindStatus};

use super::lock;
use super::rewind_records::list;

/// Removes the archives that `policy` does not keep; returns their rewinds, oldest first. `keep_last` counts the rewinds of one database
/// that can be undone; those that were undone are kept for their age alone.
///
/// A database that another process rewinds right now is left out. With `dry_run` nothing is changed.
pub fn give_up_archives(kernel: &Kernel, policy: &Policy, dry_run: bool) -> Result<Vec<RewindId>> {
    let age = i64::try_from(policy.max_age.as_millis()).unwrap_or(i64::MAX);
    let oldest = Timestamp(kernel.context.now().millis().saturating_sub(age));
    let mut gone = Vec::new();
    for database in databases(&chosen(kernel, policy, oldest)?) {
        let _lock = match lock::database(kernel.store(), &database, Duration::ZERO) {
            // Not waited for: the next sweep removes what this one leaves.
            Err(error) if error.code() == Code::Busy => continue,
            locked => locked?,
        };
        // Chosen again under the lock: another process may have undone or resumed one before the lock was taken.
        for entry in chosen(kernel, policy, oldest)?.iter().filter(|entry| entry.database == database) {
            if !dry_run {
                remove(&entry.archive)?;
            }
            gone.push((entry.seq, entry.id.clone()));
        }
    }
    if !dry_run {
        remove_of_undone_rollbacks(kernel, oldest)?;
    }
    gone.sort_unstable_by_key(|(seq, _)| *seq);
    Ok(gone.into_iter().map(|(_, id)| id).collect())
}

/// The rewinds whose archives exist and are not kept.
fn chosen(kernel: &Kernel, policy: &Policy, oldest: Timestamp) -> Result<Vec<RewindEntry>> {
    let mut newer: BTreeMap<PathBuf, usize> = BTreeMap::new();
    // The list is newest first, so the first `keep_last` of a database that are done stay.
    let is_chosen = |entry: &RewindEntry| {
        if entry.status == RewindStatus::Done {
            let of_database = newer.entry(entry.database.clone()).or_default();
            *of_database += 1;
            if *of_database <= policy.keep_last {
                return false;
            }
        }
        !entry.is_unfinished() && entry.created_at < oldest && entry.kept_archive().is_some()
    };
    Ok(list(kernel)?.into_iter().filter(is_chosen).collect())
}

fn databases(entries: &[RewindEntry]) -> Vec<PathBuf> {
    let mut databases: Vec<PathBuf> = entries.iter().map(|entry| entry.database.clone()).collect();
    databases.sort_unstable();
    databases.dedup();
    databases
}

/// Removes an archive, with the log of its rewind's command and what a crash left unfinished.
fn remove(archive: &Path) -> Result<()> {
    // Before the archive: without it no later sweep would look for these.
    for beside in [archive.with_extension("log"), ic_ledger::sibling(archive, ".partial")] {
        Archive::at(beside).remove()?;
    }
    let archive = Archive::at(archive);
    archive.remove()?;
    let aside = (1..).map(|n| archive.aside(n)).take_while(|path| path.exists());
    for path in aside.collect::<Vec<_>>() {
        Archive::at(path).remove()?;
    }
    Ok(())
}

/// Rollbacks over several layers have archives here too: `<rollback>-<number>.db`.
fn remove_of_undone_rollbacks(kernel: &Kernel, oldest: Timestamp) -> Result<()> {
    let directory = lock::directory(kernel.store())?;
    let doing = || format!("listing {}", directory.display());
    for file in std::fs::read_dir(&directory).while_doing(doing)? {
        let file = file.while_doing(doing)?;
        let name = file.file_name();
        let id = name.to_str().and_then(|name| name.strip_suffix(".db")?.rsplit_once('-'));
        // The rows of a rollback that was undone or aborted are in the database again.
        if let Some((id, _)) = id
            && kernel.read(|snapshot| needs_no_archive(snapshot, id, oldest))?
        {
            remove(&file.path())?;
        }
    }
    Ok(())
}
