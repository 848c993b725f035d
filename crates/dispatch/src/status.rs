//! The states of a dispatch: pending → running → completed | failed | `timed_out` | interrupted | cancelled. Pure.

use ic_base::{Code, Diagnosis, Result};

ic_base::words! {
    /// The state of a dispatch.
    pub enum DispatchStatus {
        /// Handed out, not begun.
        Pending = "pending",
        /// Work has begun, by report or by its own command.
        Running = "running",
        /// The work was done, as its worker reports.
        Completed = "completed",
        /// The work could not be done, as its worker reports.
        Failed = "failed",
        /// It took too long, as its caller decided.
        TimedOut = "timed_out",
        /// What ran it was ended from outside before it was done.
        Interrupted = "interrupted",
        /// It was cancelled, alone or with its run.
        Cancelled = "cancelled",
    }
}

impl DispatchStatus {
    /// Whether it has ended.
    pub fn is_finished(self) -> bool {
        match self {
            Self::Pending | Self::Running => false,
            Self::Completed | Self::Failed | Self::TimedOut | Self::Interrupted | Self::Cancelled => true,
        }
    }

    /// Whether a dispatch in this state may go to `next`; work that was never reported as begun may still end.
    ///
    /// Errors: `dispatch_finished`, `dispatch_running`.
    pub fn check_move_to(self, next: Self, name: &str) -> Result<()> {
        match (self, next) {
            (Self::Pending, Self::Running) => Ok(()),
            (Self::Pending | Self::Running, next) if next.is_finished() => Ok(()),
            (Self::Running, Self::Running) => {
                Err(Diagnosis::new(Code::DispatchRunning, format!("The dispatch {name} was already started."))
                    .detail("status", self.as_str()))
            }
            // All moves that are left begin at an ended dispatch. No caller asks for `Pending`: a dispatch is created
            // in it and never returns to it.
            _ => Err(Diagnosis::new(
                Code::DispatchFinished,
                format!("The dispatch {name} has already ended: it is {}.", self.as_str()),
            )
            .hint("create a new dispatch: ic dispatch create RUN")
            .detail("status", self.as_str())),
        }
    }
}

ic_base::words! {
    /// What a dispatch's reviewer said.
    pub enum WorkVerdict {
        /// The work may go on to the next phase.
        Pass = "pass",
        /// The work must be changed first.
        Fail = "fail",
    }
}

#[cfg(test)]
mod tests {
    use ic_base::Code;

    use super::DispatchStatus::{self, Cancelled, Completed, Failed, Interrupted, Pending, Running, TimedOut};

    #[test]
    fn every_pair_of_states_is_decided() {
        let ends = [Completed, Failed, TimedOut, Interrupted, Cancelled];
        for from in DispatchStatus::ALL {
            for to in DispatchStatus::ALL {
                let answer = from.check_move_to(to, "d").map_err(|e| e.code());
                let expected = match (from, to) {
                    (Pending, Running) => Ok(()),
                    (Pending | Running, to) if ends.contains(&to) => Ok(()),
                    (Running, Running) => Err(Code::DispatchRunning),
                    _ => Err(Code::DispatchFinished),
                };
                assert_eq!(answer, expected, "{from:?} to {to:?}");
            }
            assert_eq!(DispatchStatus::parse(from.as_str()), Some(from));
        }
    }
}
