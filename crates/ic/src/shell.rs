//! The shells that can complete a line.

use clap::ValueEnum;

use crate::environment::CliEnvironment;

/// A shell whose lines can be completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompletionShell {
    /// Bash 4 or later
    Bash,
    /// Zsh 5 or later
    Zsh,
    /// Fish 3 or later
    Fish,
}

impl CompletionShell {
    /// The shell that asks for candidates; `None` in every call but a completion.
    pub(crate) fn asking(environment: &CliEnvironment) -> Option<Self> {
        // Any other value of IC_COMPLETE asks nothing, and the call runs as usual.
        match environment.complete.as_deref()?.to_str()? {
            "bash" => Some(Self::Bash),
            "zsh" => Some(Self::Zsh),
            "fish" => Some(Self::Fish),
            _ => None,
        }
    }

    /// The script that makes this shell call `ic` for candidates.
    pub(crate) fn script(self) -> &'static str {
        match self {
            Self::Bash => include_str!("complete/ic.bash"),
            Self::Zsh => include_str!("complete/ic.zsh"),
            Self::Fish => include_str!("complete/ic.fish"),
        }
    }
}
