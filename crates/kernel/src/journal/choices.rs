//! The decisions that were made when a rollback began, as its journal keeps them. A call that resumes the rollback is bound by them.

use std::collections::BTreeSet;

use ic_base::{Code, Diagnosis, Result};
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::restore::Strategy;
use ic_checkpoint::restore::reverse::LineDecision;
use ic_phase::RunStatus;
use ic_rewind::RewindTarget;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::journal::force_flags::Force;
use crate::journal::path_decisions::PathDecisions;
use crate::journal::table::RollbackRecord;

/// The key of the plan that holds the choices.
pub const KEY: &str = "choices";

/// The decisions. A member that is not known may be a decision, so it is an error and is never ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
// "choices": {"force": {"files": true, "commits": false, "workers": false, "past_pivot": false},
//             "keep_theirs": false, "mine": false, "strategy": "full", "state": null}
#[serde(deny_unknown_fields)]
pub struct Choices {
    /// The refusals that are passed.
    pub force: Force,
    /// Whether files that others changed too stay unchanged.
    pub keep_theirs: bool,
    /// Whether only files that this run recorded are restored.
    pub mine: bool,
    /// The paths in conflict that were decided one by one.
    #[serde(default, skip_serializing_if = "PathDecisions::is_empty")]
    pub paths: PathDecisions,
    /// Paths that do not go back to the point because others changed them since: what the run did there is merged out.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub beside: BTreeSet<PathText>,
    /// How the tree is restored; `None` where no tree is restored.
    strategy: Option<Strategy>,
    /// The state database; `None` where no rows go, or where its path is not UTF-8, which JSON cannot hold.
    state: Option<Value>,
}

impl Choices {
    /// What was decided, to be recorded.
    pub fn new(
        force: Force,
        keep_theirs: bool,
        mine: bool,
        strategy: Option<Strategy>,
        state: Option<&RewindTarget>,
    ) -> Self {
        let (paths, state) = (PathDecisions::default(), state.and_then(|target| serde_json::to_value(target).ok()));
        Self { force, keep_theirs, mine, paths, beside: BTreeSet::new(), strategy, state }
    }

    /// The same choices, with the paths that others changed since.
    #[must_use]
    pub fn with_beside(self, beside: BTreeSet<PathText>) -> Self {
        Self { beside, ..self }
    }

    /// The same choices, with these about single paths.
    #[must_use]
    pub fn with_paths(self, paths: &PathDecisions) -> Self {
        Self { paths: paths.clone(), ..self }
    }

    /// The same choices, with these refusals passed as well.
    #[must_use]
    pub fn with(&self, force: Force) -> Self {
        Self { force: self.force.or(force), ..self.clone() }
    }

    /// The choices of a rollback with a journal. Errors: `corrupt` if they cannot be read.
    pub fn of(remembered: &RollbackRecord) -> Result<Self> {
        serde_json::from_value(remembered.plan[KEY].clone())
            .map_err(|e| damaged(remembered, &format!("what was decided: {e}")))
    }

    /// What was decided about a path that others changed too, in an undo of works; `None`: that it refuses the undo.
    pub fn about(&self, path: &[u8]) -> Option<LineDecision> {
        self.paths.about_or(path, (self.keep_theirs, self.force.files))
    }

    /// What is restored of the tree. Errors: `corrupt` if that was not kept.
    pub fn strategy(&self, remembered: &RollbackRecord) -> Result<Strategy> {
        self.strategy.ok_or_else(|| damaged(remembered, "it restores a tree, and does not say by which strategy"))
    }

    /// The state database whose rows go, if it was kept. Errors: `corrupt` if it was, and cannot be read: today's configuration may name
    /// another database.
    pub fn state(&self, remembered: &RollbackRecord) -> Result<Option<RewindTarget>> {
        let kept = self.state.clone().map(serde_json::from_value).transpose();
        kept.map_err(|e| damaged(remembered, &format!("its state database: {e}")))
    }
}

/// The status that the run had before it was rolled back. Errors: `corrupt` if that is not known: a run that had ended must not become
/// active because its status cannot be read.
pub fn run_status(remembered: &RollbackRecord) -> Result<RunStatus> {
    let kept = &remembered.plan["run_status"];
    let status = kept.as_str().and_then(RunStatus::parse);
    status.ok_or_else(|| damaged(remembered, &format!("the status of the run before it, {kept}")))
}

/// The status that the run has after the rollback: it is active again, unless only the work of some dispatches was undone. Errors: as [`run_status`].
pub fn status_after(remembered: &RollbackRecord) -> Result<RunStatus> {
    if remembered.is_of_works() { run_status(remembered) } else { Ok(RunStatus::Active) }
}

fn damaged(remembered: &RollbackRecord, why: &str) -> Diagnosis {
    let message = format!("The journal of the rollback {} cannot be read: {why}.", remembered.id.short());
    Diagnosis::new(Code::Corrupt, message).hint("nothing was changed; run `ic events verify` and `ic health`")
}
