//! How a dispatch ends.

use ic_base::mask::mask_optional;
use ic_base::{Result, Timestamp};
use ic_ledger::Transaction;
use ic_ledger::events::EventType;
use serde_json::json;

use super::row::{Dispatch, append_change, get};
use crate::status::{DispatchStatus, WorkVerdict};

/// The way in which a dispatch ends, with what its worker or canceller said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DispatchEnding<'a> {
    /// The work was done.
    Completed {
        /// What was done, in the worker's words.
        summary: Option<&'a str>,
        /// The verdict, where the work was a review.
        verdict: Option<WorkVerdict>,
    },
    /// The work could not be done.
    Failed {
        /// Why, in the words of its worker or of the process that ran it.
        error: &'a str,
    },
    /// It took too long.
    TimedOut {
        /// Why it took too long, as it was reported.
        error: &'a str,
    },
    /// What ran it was ended from outside before it was done.
    Interrupted {
        /// What ended it, in the words of who found that.
        error: &'a str,
    },
    /// It was cancelled, alone or with its run.
    Cancelled {
        /// Why, where the canceller says so.
        reason: Option<&'a str>,
    },
}

impl DispatchEnding<'_> {
    /// The status that it leads to.
    pub fn status(&self) -> DispatchStatus {
        match self {
            Self::Completed { .. } => DispatchStatus::Completed,
            Self::Failed { .. } => DispatchStatus::Failed,
            Self::TimedOut { .. } => DispatchStatus::TimedOut,
            Self::Interrupted { .. } => DispatchStatus::Interrupted,
            Self::Cancelled { .. } => DispatchStatus::Cancelled,
        }
    }
}

/// Ends work. Errors: `stale_dispatch`, `dispatch_finished`.
pub fn finish(
    tx: &Transaction<'_>,
    now: Timestamp,
    dispatch: &Dispatch,
    ending: &DispatchEnding<'_>,
) -> Result<Dispatch> {
    dispatch.require_current()?;
    let (status, event_type) = match ending {
        DispatchEnding::Completed { .. } => (ending.status(), EventType::DispatchCompleted),
        DispatchEnding::Failed { .. } => (ending.status(), EventType::DispatchFailed),
        DispatchEnding::TimedOut { .. } => (ending.status(), EventType::DispatchTimedOut),
        DispatchEnding::Interrupted { .. } => (ending.status(), EventType::DispatchInterrupted),
        DispatchEnding::Cancelled { .. } => (ending.status(), EventType::DispatchCancelled),
    };
    // Before any event: an end that is refused must leave no trace.
    dispatch.status.check_move_to(status, dispatch.id.short())?;
    let (summary, verdict, error, reason) = match ending {
        DispatchEnding::Completed { summary, verdict } => (*summary, verdict.map(WorkVerdict::as_str), None, *summary),
        DispatchEnding::Failed { error }
        | DispatchEnding::TimedOut { error }
        | DispatchEnding::Interrupted { error } => (None, None, Some(*error), Some(*error)),
        DispatchEnding::Cancelled { reason } => (None, None, None, *reason),
    };
    // The event's reason is masked where it is appended; the row's own copies are masked here.
    let (summary, error) = (mask_optional(summary), mask_optional(error));
    let payload = verdict.map(|verdict| json!({ "verdict": verdict }));
    let seq = append_change(tx, now, dispatch, status, event_type, reason, payload)?;
    tx.execute_one(
        "UPDATE dispatches SET status = $1, summary = $2, verdict = $3, error = $4, finished_at = $5, finished_seq = $6 WHERE id = $7",
        &[&status.as_str(), &summary.as_deref(), &verdict, &error.as_deref(), &now.millis(), &seq, &dispatch.id.as_str()],
    )?;
    get(tx, &dispatch.id)
}
