//! An entry of the journal, by its id: what was done to a tree, a run or rows, and can be undone as a whole.

use ic_base::{Code, Diagnosis, RestoreId, Result, RewindId, RollbackId, reversed_digits};
use ic_checkpoint::restore::journal::{self as restores, RestoreRecord};
use ic_dispatch::dispatch;
use ic_kernel::Kernel;
use ic_kernel::journal::table as rollbacks;
use ic_ledger::Snapshot;
use ic_rewind::journal as rewinds;

use super::points::known;

/// What is undone by its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JournalEntry {
    /// A rollback of a run, or of works of it.
    Rollback(RollbackId),
    /// A restore of a working tree, or the undo or redo of one.
    Restore(RestoreId),
    /// A rewind of an application's rows.
    Rewind(RewindId),
}

/// The entry that `text` names, by its id or the end of it; of a restore also by its safety checkpoint, which is what people are shown.
/// `None` if it names no entry, or work: the undo of work is not that of one entry.
///
/// Errors: `ambiguous_id`.
pub fn entry_of_journal(kernel: &Kernel, text: &str) -> Result<Option<JournalEntry>> {
    kernel.read(|snapshot| {
        if known(dispatch::resolve(snapshot, text))?.is_some() {
            return Ok(None);
        }
        let rollback = known(rollbacks::resolve(snapshot, text))?.map(|one| JournalEntry::Rollback(one.id));
        let rewind = known(rewinds::resolve(snapshot, text))?.map(|one| JournalEntry::Rewind(one.id));
        let restore = restore_named(snapshot, text)?.map(|one| JournalEntry::Restore(one.id));
        let mut found = [rollback, restore, rewind].into_iter().flatten();
        // Each lookup refuses an end that fits several of its own kind. Ends that fit two kinds meet only here.
        match (found.next(), found.next()) {
            (Some(_), Some(_)) => Err(ambiguous(text)),
            (one, _) => Ok(one),
        }
    })
}

/// The newest restore of any tree that the text names.
fn restore_named(snapshot: &Snapshot<'_>, text: &str) -> Result<Option<RestoreRecord>> {
    // As short as the ends of all other ids may be.
    const MIN_DIGITS: usize = 6;
    let text = text.strip_prefix("restore:").unwrap_or(text);
    let digits = reversed_digits(&text.to_ascii_lowercase());
    if digits.len() < MIN_DIGITS || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(None);
    }
    let ends = |id: &str| reversed_digits(id).starts_with(&digits);
    let is_named = |one: &RestoreRecord| ends(one.safety_id.as_str()) || ends(one.id.as_str());
    let mut found = restores::all(snapshot)?.into_iter().filter(is_named).rev();
    let newest = found.next();
    // Two restores in a row may have one safety checkpoint: the newer one is the one to undo.
    let is_same = |one: &RestoreRecord| newest.as_ref().is_some_and(|newest| newest.safety_id == one.safety_id);
    if found.all(|one| is_same(&one)) { Ok(newest) } else { Err(ambiguous(text)) }
}

fn ambiguous(text: &str) -> Diagnosis {
    Diagnosis::new(
        Code::AmbiguousId,
        format!("{text} is the end of the ids of several rollbacks, restores or rewinds."),
    )
    .hint("give more digits")
    .detail("reference", text)
}
