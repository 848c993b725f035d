//! What may follow on how far a restore came: pure.

use ic_base::{Code, Diagnosis, Result};

use super::RestoreProgress;

/// What happens to a restore once it is prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RestoreEvent {
    /// The first write is about to be made, or made again after a crash.
    Begins,
    /// All is written that could be, and what it left is recorded.
    Ends,
}

impl RestoreEvent {
    fn as_str(self) -> &'static str {
        match self {
            Self::Begins => "to begin",
            Self::Ends => "to end",
        }
    }
}

/// The state that follows. Errors: `internal` for a pair that no caller may bring about; then nothing is to be written.
pub(super) fn next(progress: RestoreProgress, happening: RestoreEvent) -> Result<RestoreProgress> {
    use {RestoreEvent as H, RestoreProgress as P};
    match (progress, happening) {
        // `Applying` again: a process died while it wrote, and the next one applies the same plan.
        (P::Prepared | P::Applying, H::Begins) => Ok(P::Applying),
        (P::Applying, H::Ends) => Ok(P::Applied),
        (P::Applied, H::Begins | H::Ends) | (P::Prepared, H::Ends) => {
            let message = format!("A restore that is {} was asked {}.", progress.as_str(), happening.as_str());
            Err(Diagnosis::new(Code::Internal, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{RestoreEvent, RestoreProgress, next};

    /// All pairs: a row for each state, a column for each thing that can happen to it.
    #[test]
    fn every_pair_of_state_and_happening_is_decided() {
        let table = [
            (RestoreProgress::Prepared, ["applying", "-"]),
            (RestoreProgress::Applying, ["applying", "applied"]),
            (RestoreProgress::Applied, ["-", "-"]),
        ];
        assert_eq!(table.map(|(progress, _)| progress), RestoreProgress::ALL);
        for (progress, wanted) in table {
            let found = [RestoreEvent::Begins, RestoreEvent::Ends]
                .map(|happening| next(progress, happening).map_or("-", RestoreProgress::as_str));
            assert_eq!(found, wanted, "{progress:?}");
        }
    }

    #[test]
    fn what_cannot_follow_is_said_in_words() {
        let refused = next(RestoreProgress::Applied, RestoreEvent::Begins).expect_err("it is over");
        assert_eq!(refused.message(), "A restore that is applied was asked to begin.");
    }
}
