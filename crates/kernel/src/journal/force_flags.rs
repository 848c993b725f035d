//! What a person has decided about refusals before they come.

use ic_base::Code;
use serde::{Deserialize, Serialize};

/// The refusals that a caller has decided to pass, each by a flag of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "four decisions, each of them made or not")]
pub struct Force {
    /// Files that others changed, and rows that others may have written, go back too.
    pub files: bool,
    /// Commits of others leave their branches too.
    pub commits: bool,
    /// Workers that live may write into what goes back.
    pub workers: bool,
    /// Effects before one that cannot be undone are undone anyway.
    pub past_pivot: bool,
}

impl Force {
    /// Every refusal is passed: `--force`.
    pub const ALL: Self = Self { files: true, commits: true, workers: true, past_pivot: true };

    /// All of them, or none.
    pub fn all_if(is_forced: bool) -> Self {
        if is_forced { Self::ALL } else { Self::default() }
    }

    /// The decisions of either: a flag that both callers gave counts once.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            files: self.files || other.files,
            commits: self.commits || other.commits,
            workers: self.workers || other.workers,
            past_pivot: self.past_pivot || other.past_pivot,
        }
    }

    /// The flags, as they are typed; all together are one.
    pub fn flags(self) -> Vec<&'static str> {
        if self == Self::ALL {
            return vec!["--force"];
        }
        let each = [
            (self.files, "--force-files"),
            (self.commits, "--force-commits"),
            (self.workers, "--force-workers"),
            (self.past_pivot, "--past-pivot"),
        ];
        each.into_iter().filter(|(is_given, _)| *is_given).map(|(_, flag)| flag).collect()
    }

    /// The decision that passes a refusal of the working tree; `None` for a refusal that no flag passes.
    pub fn of_tree(code: Code) -> Option<Self> {
        match code {
            Code::FileConflict | Code::RowConflict => Some(Self { files: true, ..Self::default() }),
            Code::ForeignCommits => Some(Self { commits: true, ..Self::default() }),
            Code::WorkRunning => Some(Self { workers: true, ..Self::default() }),
            _ => None,
        }
    }
}
