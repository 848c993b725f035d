//! The refusals of a plan of the tree: each hint says how to plan without what is refused.

use ic_base::{Code, Diagnosis, shell_word};
use ic_checkpoint::restore::Strategy;
use ic_kernel::journal::{LayerName as Name, layer};
use serde_json::Value;

use super::goal::Goal;
use crate::refusals::alone_first;

impl Goal<'_> {
    /// A refusal of a plan, with a hint how to plan without what is refused.
    pub(super) fn explained(&self, error: Diagnosis) -> Diagnosis {
        let Some(planned) = self.covered.as_planned().filter(|_| self.work.is_none()) else { return error };
        // An unfinished restore must be settled first, whatever is left out.
        if error.details().contains_key("unfinished") {
            return error;
        }
        match error.code() {
            Code::GitUnsupported | Code::GitInProgress | Code::GitBusy | Code::ForeignCommits
                if self.strategy == Strategy::Full =>
            {
                let rest = layer::all_but(&self.covered.layers, Name::Git);
                let moved = error.details().get("moved").and_then(Value::as_str);
                let (left, forced) = match moved {
                    Some("index") => (
                        "git unchanged, with what is staged",
                        "; or take it off the index anyway (a checkpoint keeps it, and `ic redo` brings it back): --force-commits",
                    ),
                    Some("stash") => (
                        "git unchanged, with the stash",
                        "; or put the stash back as it was anyway (`ic redo` brings back what it is): --force-commits",
                    ),
                    Some(_) => ("git unchanged", "; or move the branch back anyway: --force-commits"),
                    None => ("git unchanged", "; or take them off their branch anyway: --force-commits"),
                };
                let (theirs, forced) = match (error.code(), planned.keeps_theirs()) {
                    (Code::ForeignCommits, false) => ("", forced),
                    // A file can be left out; a commit that others built upon cannot.
                    (Code::ForeignCommits, true) => (" --keep-theirs", forced),
                    (_, true) => (" --keep-theirs", ""),
                    _ => ("", ""),
                };
                let lock = error.details().get("lock").and_then(Value::as_str).map(shell_word);
                let wait = match (error.code(), lock) {
                    (Code::GitBusy, Some(lock)) => {
                        format!("wait until git is done, or, when none runs here, remove what one left: rm {lock}; or ")
                    }
                    (Code::GitBusy, None) => "wait until git is done, or ".to_owned(),
                    // The way to end the operation comes before the way around it.
                    (Code::GitInProgress, _) => {
                        // The hint of a plain restore ends with its own way around git, which is another command
                        // here.
                        let hint = error.get_hint().unwrap_or_default();
                        hint.split("restore the files alone").next().unwrap_or_default().to_owned()
                    }
                    _ => String::new(),
                };
                let alone = match error.code() {
                    Code::ForeignCommits => alone_first(planned.point_of_one.as_deref()),
                    _ => String::new(),
                };
                error.hint(format!("{alone}{wait}leave {left}: --layer={rest}{theirs}{forced}"))
            }
            Code::WorkRunning => error.hint("end it first; or roll back anyway: --force-workers"),
            _ => error,
        }
    }
}
