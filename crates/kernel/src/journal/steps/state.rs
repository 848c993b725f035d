//! How far a step is, and what may follow: pure.

use ic_base::{Code, Diagnosis, Result};

ic_base::words! {
    /// How far a step is.
    pub enum RollbackStepState {
        /// It was not begun.
        Pending = "pending",
        /// It is being made, or its process died.
        Running = "running",
        /// Its work was carried out and recorded.
        Done = "done",
        /// It stopped with an error, which the row keeps.
        Failed = "failed",
        /// It was skipped, by decision.
        Skipped = "skipped",
    }
}

impl RollbackStepState {
    /// Whether nothing is left to do about it.
    pub fn is_over(self) -> bool {
        match self {
            Self::Done | Self::Skipped => true,
            Self::Pending | Self::Running | Self::Failed => false,
        }
    }
}

/// What happens to a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepEvent {
    /// It begins, on the way forward.
    Begins,
    /// It begins to be undone.
    BeginsBack,
    /// More is known of what it did, while it is made.
    Learns,
    /// Its work was carried out.
    Succeeds,
    /// It stopped with an error.
    Fails,
    /// A person decided to skip it.
    IsSkipped,
    /// What it did is undone.
    IsUndone,
    /// The rollback changes its direction to an undo or abort: whatever came of the step, there may be something to undo.
    TurnsBack,
    /// The rollback changes its direction: the step is to come.
    IsToCome,
    /// The undo or abort was not begun after all, and nothing was changed: the step has its former state again.
    IsAsBefore(RollbackStepState),
}

impl StepEvent {
    fn as_str(self) -> &'static str {
        match self {
            Self::Begins => "to begin",
            Self::BeginsBack => "to begin to be undone",
            Self::Learns => "to say more of itself",
            Self::Succeeds => "to succeed",
            Self::Fails => "to fail",
            Self::IsSkipped => "to be skipped",
            Self::IsUndone => "to be undone",
            Self::TurnsBack => "to turn back",
            Self::IsToCome => "to be pending again",
            Self::IsAsBefore(_) => "to be as it was before",
        }
    }
}

/// The state that follows. Errors: `internal` for a pair that no caller may cause; then nothing is to be written.
pub(super) fn next(state: RollbackStepState, happening: StepEvent) -> Result<RollbackStepState> {
    use {RollbackStepState as S, StepEvent as H};
    match (state, happening) {
        // A process may have died in the middle of a step, in either direction; the call that resumes begins the same step again.
        (S::Pending | S::Running | S::Failed, H::Begins)
        | (S::Running | S::Done | S::Failed, H::BeginsBack)
        | (S::Running, H::Learns) => Ok(S::Running),
        // An undo or abort goes through the steps that are `done`. So the turn makes a step `done` if it may have changed
        // something. That includes one that failed half-way, and the tree of a rollback that stopped at its effects.
        (S::Running, H::Succeeds) | (S::Pending | S::Running | S::Done | S::Failed | S::Skipped, H::TurnsBack) => {
            Ok(S::Done)
        }
        (S::Running, H::Fails) => Ok(S::Failed),
        (S::Running | S::Failed, H::IsSkipped) => Ok(S::Skipped),
        // A step that an undo or abort skipped is undone later, by itself.
        (S::Running | S::Skipped, H::IsUndone)
        | (S::Pending | S::Running | S::Done | S::Failed | S::Skipped, H::IsToCome) => Ok(S::Pending),
        // `TurnsBack`, and the failure of the first step after it, left these states.
        (S::Pending | S::Running | S::Done, H::IsAsBefore(before)) => Ok(before),
        (S::Done | S::Skipped, H::Begins)
        | (S::Pending | S::Skipped, H::BeginsBack)
        | (S::Pending | S::Done | S::Failed | S::Skipped, H::Learns | H::Succeeds | H::Fails)
        | (S::Pending | S::Done | S::Skipped, H::IsSkipped)
        | (S::Pending | S::Done | S::Failed, H::IsUndone)
        | (S::Failed | S::Skipped, H::IsAsBefore(_)) => {
            let message = format!("A step of a rollback that is {} was asked {}.", state.as_str(), happening.as_str());
            Err(Diagnosis::new(Code::Internal, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{RollbackStepState, StepEvent, next};

    /// All pairs: a row for each state, a column for each thing that can happen to it.
    #[test]
    fn every_pair_of_state_and_happening_is_decided() {
        let happenings = [
            StepEvent::Begins,
            StepEvent::BeginsBack,
            StepEvent::Learns,
            StepEvent::Succeeds,
            StepEvent::Fails,
            StepEvent::IsSkipped,
            StepEvent::IsUndone,
            StepEvent::TurnsBack,
            StepEvent::IsToCome,
        ];
        let table = [
            (RollbackStepState::Pending, ["running", "-", "-", "-", "-", "-", "-", "done", "pending"]),
            (
                RollbackStepState::Running,
                ["running", "running", "running", "done", "failed", "skipped", "pending", "done", "pending"],
            ),
            (RollbackStepState::Done, ["-", "running", "-", "-", "-", "-", "-", "done", "pending"]),
            (RollbackStepState::Failed, ["running", "running", "-", "-", "-", "skipped", "-", "done", "pending"]),
            (RollbackStepState::Skipped, ["-", "-", "-", "-", "-", "-", "pending", "done", "pending"]),
        ];
        assert_eq!(table.map(|(state, _)| state), RollbackStepState::ALL);
        for (state, wanted) in table {
            let found = happenings.map(|happening| next(state, happening).map_or("-", RollbackStepState::as_str));
            assert_eq!(found, wanted, "{state:?}");
            for before in RollbackStepState::ALL {
                let found = next(state, StepEvent::IsAsBefore(before)).ok();
                let is_legal = !matches!(state, RollbackStepState::Failed | RollbackStepState::Skipped);
                assert_eq!(found, is_legal.then_some(before), "{state:?} as before: {before:?}");
            }
        }
    }

    #[test]
    fn what_cannot_follow_is_said_in_words() {
        let refused = next(RollbackStepState::Done, StepEvent::IsSkipped).expect_err("it is over");
        assert_eq!(refused.message(), "A step of a rollback that is done was asked to be skipped.");
    }
}
