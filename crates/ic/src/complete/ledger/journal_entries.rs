//! Completes what is undone by its id: rollbacks, restores and rewinds.

use ic_base::{Result, RewindId, RollbackId};
use ic_checkpoint::restore::journal as restores;
use ic_kernel::journal::table::{self as rollbacks, RollbackRecord};
use ic_ledger::reference;
use ic_rewind::journal::{self, RewindStatus};

use super::{Looked, MOST_ROWS, described, id, time};
use crate::complete::Candidate;

impl Looked<'_> {
    /// The newest rollbacks that `is_wanted`, with their status, phases and reason.
    pub(in crate::complete) fn rollbacks(
        &self,
        typed: &str,
        is_wanted: impl Fn(&RollbackRecord) -> bool,
    ) -> Result<Vec<Candidate>> {
        let mut found = Vec::new();
        for text in reference::newest(self.snapshot, rollbacks::REFERENT, MOST_ROWS)? {
            let rollback = rollbacks::get(self.snapshot, &RollbackId::from_ledger(text))?;
            if is_wanted(&rollback) {
                let way = format!("{} to {}", rollback.from_phase, rollback.to_phase);
                let about = described(&[Some(rollback.status.as_str()), Some(&way), rollback.reason.as_deref()]);
                found.push(id(rollback.id.as_str(), rollback.id.short(), typed, about));
            }
        }
        Ok(found)
    }

    /// The last restore of this working tree, by its safety checkpoint.
    pub(in crate::complete) fn last_restore(&self, typed: &str) -> Result<Vec<Candidate>> {
        let all = restores::finished(self.snapshot, &self.project.root)?;
        // Only the newest restore that stands can be undone.
        let last = restores::stacks(&all).0.pop().map(|last| {
            let about = described(&[
                Some("restored"),
                Some(&format!("checkpoint {}", last.target_id.short())),
                Some(&time(last.created_at)),
            ]);
            id(last.safety_id.as_str(), last.safety_id.short(), typed, about)
        });
        Ok(last.into_iter().collect())
    }

    /// The newest rewinds, with their status and the task that each went to.
    pub(in crate::complete) fn rewinds(
        &self,
        typed: &str,
        is_wanted: impl Fn(RewindStatus) -> bool,
    ) -> Result<Vec<Candidate>> {
        let mut found = Vec::new();
        for text in reference::newest(self.snapshot, journal::REFERENT, MOST_ROWS)? {
            let entry = journal::get(self.snapshot, &RewindId::from_ledger(text))?;
            if !is_wanted(entry.status) {
                continue;
            }
            let about = described(&[
                Some(entry.status.as_str()),
                Some(&format!("to {}", entry.task_id)),
                Some(&time(entry.created_at)),
            ]);
            found.push(id(entry.id.as_str(), entry.id.short(), typed, about));
        }
        Ok(found)
    }
}
