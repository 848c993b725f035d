//! How far a compensation is, and what may follow: pure.

use ic_base::{Code, Diagnosis, Result};

ic_base::words! {
    /// How far a compensation is.
    pub enum CompensationState {
        /// Declared; the effect is not begun, so it is never run.
        Registered = "registered",
        /// The effect is about to be made, or was.
        Armed = "armed",
        /// The undo is under way, or its process died.
        Running = "running",
        /// The effect is undone.
        Done = "done",
        /// The undo failed; it can be tried again.
        Failed = "failed",
        /// The effect was left, as declared or by decision.
        Skipped = "skipped",
    }
}

impl CompensationState {
    /// Whether there may be an effect that is not undone.
    pub fn is_open(self) -> bool {
        match self {
            Self::Armed | Self::Running | Self::Failed => true,
            Self::Registered | Self::Done | Self::Skipped => false,
        }
    }
}

/// How an attempt to undo ended, or that none is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompensationEnd<'a> {
    /// The effect is undone.
    Done,
    /// The attempt failed, and why.
    Failed(&'a str),
    /// The process of the attempt died: it is not known whether the effect is undone.
    CutOff,
    /// Nothing is done about the effect, and why.
    Skipped(&'a str),
}

impl<'a> CompensationEnd<'a> {
    /// The reason that is recorded, for people.
    pub(super) fn error(self) -> Option<&'a str> {
        match self {
            Self::Done => None,
            Self::CutOff => Some("the process that undid it died, and it is unknown how far it came"),
            Self::Failed(why) | Self::Skipped(why) => Some(why),
        }
    }
}

/// What happens to a compensation once it is armed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CompensationEvent<'a> {
    /// An attempt to undo begins.
    Begins,
    /// The attempt ends in this way.
    Ends(CompensationEnd<'a>),
    /// It may be undone again. Either the decision to leave it ended with its rollback, or the tree restored what was undone, or its step
    /// makes the effect anew after a failed undo.
    ArmedAgain,
}

impl CompensationEvent<'_> {
    // The outcome of the attempt is left out: it may hold the output of a command.
    fn as_str(self) -> &'static str {
        match self {
            Self::Begins => "to begin",
            Self::Ends(_) => "to end",
            Self::ArmedAgain => "to be armed again",
        }
    }
}

/// The state that follows. Errors: `internal` for a pair that no caller may cause; then nothing is to be written.
pub(super) fn next(state: CompensationState, happening: CompensationEvent<'_>) -> Result<CompensationState> {
    use {CompensationEnd as E, CompensationEvent as H, CompensationState as S};
    match (state, happening) {
        // A predecessor may have died between the beginning and the end of its attempt.
        (S::Armed | S::Running | S::Failed, H::Begins) => Ok(S::Running),
        (S::Running, H::Ends(E::Done)) => Ok(S::Done),
        (S::Running, H::Ends(E::Failed(_) | E::CutOff)) => Ok(S::Failed),
        // `running` comes here by an action that runs nothing, or by decision. Then its process is ended first.
        (S::Armed | S::Running | S::Failed, H::Ends(E::Skipped(_))) => Ok(S::Skipped),
        (S::Done | S::Failed | S::Skipped, H::ArmedAgain) => Ok(S::Armed),
        (S::Registered | S::Done | S::Skipped, H::Begins | H::Ends(_))
        | (S::Armed | S::Failed, H::Ends(E::Done | E::Failed(_) | E::CutOff))
        | (S::Registered | S::Armed | S::Running, H::ArmedAgain) => {
            let message = format!("A compensation that is {} was asked {}.", state.as_str(), happening.as_str());
            Err(Diagnosis::new(Code::Internal, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CompensationEnd, CompensationEvent, CompensationState, next};

    /// All pairs: a row for each state, a column for each thing that can happen to it.
    #[test]
    fn every_pair_of_state_and_happening_is_decided() {
        let happenings = [
            CompensationEvent::Begins,
            CompensationEvent::Ends(CompensationEnd::Done),
            CompensationEvent::Ends(CompensationEnd::Failed("why")),
            CompensationEvent::Ends(CompensationEnd::CutOff),
            CompensationEvent::Ends(CompensationEnd::Skipped("why")),
            CompensationEvent::ArmedAgain,
        ];
        let table = [
            (CompensationState::Registered, ["-", "-", "-", "-", "-", "-"]),
            (CompensationState::Armed, ["running", "-", "-", "-", "skipped", "-"]),
            (CompensationState::Running, ["running", "done", "failed", "failed", "skipped", "-"]),
            (CompensationState::Done, ["-", "-", "-", "-", "-", "armed"]),
            (CompensationState::Failed, ["running", "-", "-", "-", "skipped", "armed"]),
            (CompensationState::Skipped, ["-", "-", "-", "-", "-", "armed"]),
        ];
        assert_eq!(table.map(|(state, _)| state), CompensationState::ALL);
        for (state, wanted) in table {
            let found = happenings.map(|happening| next(state, happening).map_or("-", CompensationState::as_str));
            assert_eq!(found, wanted, "{state:?}");
        }
    }

    #[test]
    fn what_cannot_follow_is_said_in_words() {
        let refused = next(CompensationState::Done, CompensationEvent::Ends(CompensationEnd::Failed("a \"secret\"")))
            .expect_err("it is over");
        assert_eq!(refused.message(), "A compensation that is done was asked to end.");
    }
}
