//! How far a rewind is, its outcome, and what may follow: pure.

use ic_base::{Code, Diagnosis, Result};

use super::entry::{RewindStatus, Stage};

/// An event in the life of a rewind that is planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RewindEvent {
    /// The tree is at the task's commit.
    GitIsDone,
    /// The rows are deleted.
    DbIsDone,
    /// Vectors are pruned, or there are none.
    Ends,
    /// A stage failed; the error is recorded.
    Stops,
    /// Another process resumes it.
    Resumes,
    /// Its rows are restored, or were never deleted.
    IsUndone,
}

impl RewindEvent {
    fn as_str(self) -> &'static str {
        match self {
            Self::GitIsDone => "to end with git",
            Self::DbIsDone => "to end with the rows",
            Self::Ends => "to end",
            Self::Stops => "to stop",
            Self::Resumes => "to resume",
            Self::IsUndone => "to be undone",
        }
    }
}

/// The state that follows. Errors: `internal` for a pair that no caller may cause; then nothing is to be written.
pub(super) fn next((stage, status): (Stage, RewindStatus), happening: RewindEvent) -> Result<(Stage, RewindStatus)> {
    use {RewindEvent as H, RewindStatus as S, Stage as G};
    match (stage, status, happening) {
        (G::Planned, S::InProgress, H::GitIsDone) => Ok((G::GitDone, S::InProgress)),
        // A rewind that does not move the tree has no stage of git.
        (G::Planned | G::GitDone, S::InProgress, H::DbIsDone) => Ok((G::DbDone, S::InProgress)),
        (G::DbDone, S::InProgress, H::Ends) => Ok((G::VectorDone, S::Done)),
        (G::Planned | G::GitDone | G::DbDone, S::InProgress, H::Stops) => Ok((stage, S::Stopped)),
        // A process may have died in the middle of a stage; then no stop is on record.
        (G::Planned | G::GitDone | G::DbDone, S::InProgress | S::Stopped, H::Resumes) => Ok((stage, S::InProgress)),
        // The stage stays: it tells what there was to restore.
        (_, S::InProgress | S::Stopped | S::Done, H::IsUndone) => Ok((stage, S::Undone)),
        // Each pair is named, so that the compiler asks about a new state or event.
        (_, S::Stopped, H::GitIsDone | H::DbIsDone | H::Ends | H::Stops)
        | (_, S::Done, H::GitIsDone | H::DbIsDone | H::Ends | H::Stops | H::Resumes)
        | (_, S::Undone, H::GitIsDone | H::DbIsDone | H::Ends | H::Stops | H::Resumes | H::IsUndone)
        | (G::GitDone | G::DbDone | G::VectorDone, S::InProgress, H::GitIsDone)
        | (G::DbDone | G::VectorDone, S::InProgress, H::DbIsDone)
        | (G::Planned | G::GitDone | G::VectorDone, S::InProgress, H::Ends)
        | (G::VectorDone, S::InProgress, H::Stops)
        | (G::VectorDone, S::InProgress | S::Stopped, H::Resumes) => {
            let (stage, status) = (stage.as_str(), status.as_str());
            let happening = happening.as_str();
            let message = format!("A rewind that is {stage}, {status} was asked {happening}.");
            Err(Diagnosis::new(Code::Internal, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{RewindEvent, RewindStatus, Stage, next};

    /// All pairs: a row for each stage and status, a column for each thing that can happen.
    #[test]
    fn every_pair_of_state_and_happening_is_decided() {
        let happenings = [
            RewindEvent::GitIsDone,
            RewindEvent::DbIsDone,
            RewindEvent::Ends,
            RewindEvent::Stops,
            RewindEvent::Resumes,
            RewindEvent::IsUndone,
        ];
        let table = "\
            planned done: - - - - - planned/undone
            planned stopped: - - - - planned/in_progress planned/undone
            planned in_progress: git_done/in_progress db_done/in_progress - planned/stopped planned/in_progress planned/undone
            planned undone: - - - - - -
            git_done done: - - - - - git_done/undone
            git_done stopped: - - - - git_done/in_progress git_done/undone
            git_done in_progress: - db_done/in_progress - git_done/stopped git_done/in_progress git_done/undone
            git_done undone: - - - - - -
            db_done done: - - - - - db_done/undone
            db_done stopped: - - - - db_done/in_progress db_done/undone
            db_done in_progress: - - vector_done/done db_done/stopped db_done/in_progress db_done/undone
            db_done undone: - - - - - -
            vector_done done: - - - - - vector_done/undone
            vector_done stopped: - - - - - vector_done/undone
            vector_done in_progress: - - - - - vector_done/undone
            vector_done undone: - - - - - -";
        let mut rows = table.lines();
        for stage in Stage::ALL {
            for status in RewindStatus::ALL {
                let found = happenings.map(|happening| match next((stage, status), happening) {
                    Ok((stage, status)) => format!("{}/{}", stage.as_str(), status.as_str()),
                    Err(_) => "-".to_owned(),
                });
                let found = format!("{} {}: {}", stage.as_str(), status.as_str(), found.join(" "));
                assert_eq!(rows.next().map(str::trim), Some(found.as_str()));
            }
        }
        assert_eq!(rows.next(), None, "no row is left over");
    }

    #[test]
    fn what_cannot_follow_is_said_in_words() {
        let refused = next((Stage::VectorDone, RewindStatus::Done), RewindEvent::GitIsDone).expect_err("it is over");
        assert_eq!(refused.message(), "A rewind that is vector_done, done was asked to end with git.");
    }
}
