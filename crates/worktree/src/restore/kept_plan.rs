//! The plan of a restore: how it is stored, and the hash that names it.

use std::collections::BTreeSet;

use ic_base::{CheckpointId, Code, Diagnosis, Result};
use ic_checkpoint::git::GitRestorePlan;
use ic_checkpoint::restore::journal::RestoreRecord;
use ic_checkpoint::restore::plan::RestorePlan;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::super::workspace::Workspace;

/// The paths that a plan changes; `None` if what else is captured depends on them.
pub(super) fn touched(plan: &RestorePlan) -> Option<BTreeSet<Vec<u8>>> {
    let paths: BTreeSet<Vec<u8>> = plan.steps.iter().map(|step| step.path.0.clone()).collect();
    // Another `.gitignore` lets the next capture judge files that the plan does not name.
    let has_rules = paths.iter().any(|path| path.ends_with(b".gitignore"));
    (!has_rules).then_some(paths)
}

/// The plan of a restore. Errors: `corrupt`.
pub(super) fn read_plan(workspace: &Workspace<'_>, restore: &RestoreRecord) -> Result<RestorePlan> {
    serde_json::from_slice(&workspace.objects.read(&restore.plan)?)
        .map_err(|e| Diagnosis::new(Code::Corrupt, format!("The plan of a restore cannot be read: {e}.")))
}

/// What names a plan: a digest of its JSON, so that the same plan has the same name in every build. A caller may hold it from a preview
/// that another version printed; what differs in any field is another plan.
///
/// Errors: `internal` if the plan cannot be written as JSON: no two plans may share the name of an empty text.
pub(super) fn hash_of(plan: &RestorePlan, git: Option<&GitRestorePlan>, target: &CheckpointId) -> Result<String> {
    let named = Named { target: target.as_str(), git, files: plan };
    let text = serde_json::to_vec(&named)
        .map_err(|e| Diagnosis::new(Code::Internal, format!("The plan of a restore cannot be written: {e}.")))?;
    Ok(ic_ledger::events::hex(&Sha256::digest(text).into()))
}

#[derive(Serialize)]
struct Named<'a> {
    target: &'a str,
    git: Option<&'a GitRestorePlan>,
    files: &'a RestorePlan,
}

#[cfg(test)]
mod tests;
