//! The paths that work names as its own, which decide where several ran at once.

use std::collections::{HashMap, HashSet};

use ic_base::{CallId, DispatchId, Result};
use ic_dispatch::{Dispatch, code};
use ic_ledger::{Snapshot, path_bytes};

use crate::call::ToolCall;
use crate::shell_targets;

/// The paths that work named as its own, by work.
#[derive(Debug, Default)]
pub(super) struct NamedPaths {
    /// Paths that a person or a script recorded.
    pub(super) recorded: HashMap<DispatchId, HashSet<Vec<u8>>>,
    /// Paths in commits that its calls made.
    pub(super) committed: HashMap<DispatchId, HashSet<Vec<u8>>>,
    /// Paths that a call's line for a shell writes, by call.
    pub(super) written: HashMap<CallId, Vec<String>>,
}

impl NamedPaths {
    pub(super) fn of(
        snapshot: &Snapshot<'_>,
        workers: &[Dispatch],
        calls: &[ToolCall],
        told: &HashSet<DispatchId>,
    ) -> Result<Self> {
        let mut named = Self::default();
        // Work that was alone needs no name.
        if workers.len() < 2 {
            return Ok(named);
        }
        for file in code::named_by(snapshot, workers.iter().map(|worker| &worker.id))? {
            // For work that tells no calls, a commit on record names a path as well as a recorded path does.
            let is_of_call = file.is_of_commit && told.contains(&file.dispatch_id);
            let by = if is_of_call { &mut named.committed } else { &mut named.recorded };
            by.entry(file.dispatch_id).or_default().insert(path_bytes(&file.path).to_vec());
        }
        // A call that names paths needs no line: its paths are the better name.
        for call in calls.iter().filter(|call| call.paths.is_empty()) {
            let written = call.line.as_deref().map(shell_targets::written).unwrap_or_default();
            if !written.is_empty() {
                named.written.insert(call.id.clone(), written);
            }
        }
        Ok(named)
    }
}

pub(super) fn has(named: &HashMap<DispatchId, HashSet<Vec<u8>>>, work: &DispatchId, path: &[u8]) -> bool {
    named.get(work).is_some_and(|paths| paths.iter().any(|name| is_named(name, path)))
}

/// Whether a name means a path: the path itself, or a path in it, because its directory may be new.
pub(super) fn is_named(name: &[u8], path: &[u8]) -> bool {
    name.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}
