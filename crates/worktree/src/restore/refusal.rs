//! How a restore is refused once it is planned.

use ic_base::{Code, Diagnosis};
use serde_json::{Value, json};

use super::request::{Conflict, RestoreReport};

/// Errors: always `file_conflict`, naming what others changed. `conflicts`: one at least.
pub fn refused(conflicts: &[&Conflict]) -> Diagnosis {
    let listed: Vec<Value> =
        conflicts.iter().map(|c| json!({ "path": String::from_utf8_lossy(&c.path.0), "reason": c.reason })).collect();
    let first = conflicts[0];
    let path = String::from_utf8_lossy(&first.path.0).into_owned();
    let others = match conflicts.len() - 1 {
        0 => String::new(),
        n => format!(", and {n} more"),
    };
    Diagnosis::new(
        Code::FileConflict,
        format!("What would be restored changed since: {path} ({}){others}. Nothing was changed.", first.reason),
    )
    .hint("--keep-theirs leaves these paths as they are, --force takes the checkpoint's state; --dry-run lists them")
    .detail("conflicts", listed)
}

/// The refusal of `--expect-plan` when the plan is another one by now: always `plan_changed`, with the new hash.
pub(super) fn plan_changed(report: &RestoreReport) -> Diagnosis {
    Diagnosis::new(Code::PlanChanged, "The tree changed since the plan was made. Nothing was changed.")
        .hint("see the new plan: --dry-run")
        .detail("plan_hash", report.plan_hash.clone())
}
