//! Single entries of the index, as an undo of work changes them.

use std::collections::HashSet;
use std::path::Path;

use ic_base::Result;

use super::super::index_entries::{IndexEdit, entries, oid};
use super::super::pack::existing;
use super::super::program::Git;
use super::index::edit_index;

/// Reverts entries of the index to before the work, or makes them again what the work had left. `is_back`: the latter. An entry that is something else by
/// now stays, and so does one whose content git has lost.
///
/// The caller holds the lock of the root. Errors: `git_busy` if another command holds the index; `git_failed`.
pub fn revert_entries(root: &Path, edits: &[IndexEdit], is_back: bool) -> Result<()> {
    if ic_ledger::git_dirs(root).is_none() {
        return Ok(());
    }
    let git = Git::new(root);
    let wanted = |edit: &IndexEdit| if is_back { edit.was.clone() } else { edit.becomes.clone() };
    let expected = |edit: &IndexEdit| if is_back { edit.becomes.clone() } else { edit.was.clone() };
    let all: Vec<String> = edits.iter().filter_map(wanted).collect();
    let oids: Vec<&str> = all.iter().map(|entry| oid(entry)).collect();
    let there: HashSet<&str> = existing(&git, &oids)?.into_iter().collect();
    edit_index(root, |listing| {
        let (now, mut gone, mut come) = (entries(listing), Vec::new(), Vec::new());
        for edit in edits.iter().filter(|edit| now.get(&edit.path.0) == expected(edit).as_ref()) {
            match wanted(edit) {
                Some(entry) if there.contains(oid(&entry)) => come.push(info(&entry, &edit.path.0)),
                Some(_) => {}
                // Mode 0 removes an entry. Git wants a name of zeros with it, as long as the names of objects here.
                None => gone.push(info(&format!("0 {}", "0".repeat(oid_length(edit))), &edit.path.0)),
            }
        }
        // All that goes goes first: a file may come where a directory was.
        gone.into_iter().chain(come).flatten().collect()
    })
}

/// A line as `git update-index -z --index-info` takes it.
fn info(entry: &str, path: &[u8]) -> Vec<u8> {
    [entry.as_bytes(), b"\t", path, b"\0"].concat()
}

fn oid_length(edit: &IndexEdit) -> usize {
    // At least one side has an object, because an edit changes something.
    edit.was.as_ref().or(edit.becomes.as_ref()).map_or(40, |entry| oid(entry).len())
}
