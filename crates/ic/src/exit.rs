//! The exit codes, and the errors that lead to each.

use ic_base::ErrorKind;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitStatus {
    /// Done; for a question, yes.
    Done,
    /// A no that a script expects, such as a gate that does not pass.
    No,
    /// A failure: I/O, corruption, busy past the timeout.
    Failure,
    /// Bad flags or values, or a reference to something that does not exist.
    Usage,
    /// Partly done: the report on stdout names what is left.
    Partly,
    /// Ended by Ctrl-C or SIGTERM between two operations: the same call does the rest.
    Interrupted,
    /// As a command ended that was run.
    Of(u8),
}

impl ExitStatus {
    /// The process's exit code. Stable from the first release.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::No => 1,
            Self::Failure => 2,
            Self::Usage => 3,
            Self::Partly => 4,
            // 128 and the number of SIGINT, as shells report it.
            Self::Interrupted => 130,
            Self::Of(code) => code,
        }
    }
}

impl From<ErrorKind> for ExitStatus {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::No => Self::No,
            ErrorKind::Failure => Self::Failure,
            ErrorKind::Usage => Self::Usage,
        }
    }
}
