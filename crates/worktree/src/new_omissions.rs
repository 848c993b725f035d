//! What a capture leaves out that the checkpoint before it did not: said once, when it is news.

use std::collections::BTreeSet;

use ic_base::Result;
use ic_checkpoint::capture::Captured;
use ic_checkpoint::manifest::CheckpointManifest;
use ic_checkpoint::record;
use ic_checkpoint::tree::Reason;

use super::workspace::{Warning, Workspace};

/// More paths than these are counted only.
const NAMED: usize = 10;

/// How the warning `left_out` begins; then come the paths, each with its reason.
pub const LEFT_OUT: &str = "left out of the checkpoint, so that no restore or rollback can restore it: ";

/// Whether the warning `left_out`, or what was kept of it, names a path that was left out for this reason.
pub fn is_left_out_for(message: &str, reason: Reason) -> bool {
    message.contains(&in_brackets(reason))
}

fn in_brackets(reason: Reason) -> String {
    format!("({})", reason.as_str())
}

impl Workspace<'_> {
    /// Warnings about what this capture leaves out, unless the newest checkpoint of the root left out the same.
    pub(super) fn news(&self, captured: &Captured) -> Result<Vec<Warning>> {
        // Most trees have neither: then no manifest is read.
        if captured.nested_git.is_empty() && captured.skipped.is_empty() {
            return Ok(Vec::new());
        }
        // Of the root and not of the line: what another session's checkpoint left out is not new any more.
        let newest = self.kernel.read(|snapshot| record::newest_of_root(snapshot, &self.root))?;
        let newest = newest.map(|newest| CheckpointManifest::read(&self.objects, &newest.manifest)).transpose()?;
        let known = newest.as_ref();
        let repositories = new_repositories(captured, known);
        Ok(repositories.into_iter().chain(left_out(captured, known)).collect())
    }
}

fn new_repositories(captured: &Captured, known: Option<&CheckpointManifest>) -> Option<Warning> {
    let known: BTreeSet<&[u8]> =
        known.into_iter().flat_map(|known| &known.nested_git).map(|path| path.0.as_slice()).collect();
    let new: Vec<_> = captured.nested_git.iter().filter(|path| !known.contains(path.as_slice())).collect();
    let first = new.first()?;
    let others = if new.len() > 1 { format!(" and {} more", new.len() - 1) } else { String::new() };
    Some(Warning {
        code: "nested_git",
        message: format!(
            "{}{others}: a nested repository is captured as plain files; its .git, which is its history, is in no checkpoint",
            String::from_utf8_lossy(first)
        ),
    })
}

fn left_out(captured: &Captured, known: Option<&CheckpointManifest>) -> Option<Warning> {
    let known: BTreeSet<&[u8]> =
        known.into_iter().flat_map(|known| &known.skipped).map(|gap| gap.path.0.as_slice()).collect();
    let new: Vec<_> = captured.skipped.iter().filter(|(path, _)| !known.contains(path.as_slice())).collect();
    if new.is_empty() {
        return None;
    }
    let named = new.iter().take(NAMED);
    let mut named: Vec<String> =
        named.map(|(path, reason)| format!("{} {}", String::from_utf8_lossy(path), in_brackets(*reason))).collect();
    if new.len() > NAMED {
        named.push(format!("{} more", new.len() - NAMED));
    }
    let named = named.join(", ");
    Some(Warning { code: "left_out", message: format!("{LEFT_OUT}{named}") })
}
