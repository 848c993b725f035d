//! The plan of a restore: as it is kept, and what names it.

use std::collections::BTreeSet;

use ic_base::{CheckpointId, Code, Diagnosis, Result};
use ic_checkpoint::restore::journal::Restore;
use ic_checkpoint::restore::plan::Plan;
use sha2::{Digest, Sha256};

use super::super::Workspace;
use super::super::git::GitRestore;

/// The paths that a plan changes; `None` if what else is captured depends on them.
pub(super) fn touched(plan: &Plan) -> Option<BTreeSet<Vec<u8>>> {
    let paths: BTreeSet<Vec<u8>> = plan.steps.iter().map(|step| step.path.0.clone()).collect();
    let has_rules = paths.iter().any(|path| path.ends_with(b".gitignore"));
    (!has_rules).then_some(paths)
}

/// The plan of a restore. Errors: `corrupt`.
pub(super) fn read_plan(workspace: &Workspace<'_>, restore: &Restore) -> Result<Plan> {
    serde_json::from_slice(&workspace.objects.read(&restore.plan)?)
        .map_err(|e| Diagnosis::new(Code::Corrupt, format!("The plan of a restore cannot be read: {e}.")))
}

pub(super) fn hash_of(plan: &Plan, git: Option<&GitRestore>, target: &CheckpointId) -> String {
    let mut digest = Sha256::new();
    digest.update(target.as_str());
    digest.update(format!("{:?}", git.map(|git| &git.plan)));
    // A plan is plain data: it can always be written.
    digest.update(serde_json::to_vec(plan).unwrap_or_default());
    ic_events::hex(&digest.finalize().into())
}
