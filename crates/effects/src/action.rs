//! What a durable compensation does, as its row keeps it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use ic_base::mask::mask_optional;
use ic_checkpoint::manifest::{PathText, hash_text};
use ic_ledger::events::Hash;
use serde::{Deserialize, Serialize};

use crate::coverage::EffectCoverage;
use ic_dispatch::process::ProcessIdentity;

/// How long an undo may take unless it says otherwise: one that hangs must not hold a rollback for ever.
pub const USUAL_TIMEOUT: Duration = Duration::from_mins(10);

/// The way in which an effect is undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
// The column `args` has this form: `{"do":"exec","argv":["rm","x"],"retries":0,"backoff_ms":0}`. A redaction writes one by
// hand (`compensation/redact.rs`), so a change of the tag or of `skip` is a change there, too.
#[serde(tag = "do", rename_all = "snake_case")]
pub enum EffectAction {
    /// A program is run, without a shell.
    Exec {
        /// The program's name and its arguments.
        argv: Vec<String>,
        /// Where, with which variables, and how long and how often it is run.
        #[serde(flatten)]
        how: How,
    },
    /// A line is run by `sh`.
    Shell {
        /// The line, as `sh -c` takes it.
        line: String,
        /// Where, with which variables, and how long and how often it is run.
        #[serde(flatten)]
        how: How,
    },
    /// Paths are restored to what they were when this was registered.
    RestoreFiles {
        /// Each path from the project's root, and what stood there.
        files: Vec<CompensatedFile>,
    },
    /// A process is ended.
    KillProcess {
        /// The file, from the project's root, that the process's number is written to.
        pid_file: Option<PathText>,
        /// The process, once its number is known.
        identity: Option<ProcessIdentity>,
        /// The process that the file named before the step: it is not the step's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<ProcessIdentity>,
    },
    /// Nothing needs to be done.
    Skip {
        /// Why nothing is needed, as declared.
        reason: Option<String>,
    },
    /// Nothing can be run; to try the step again is the advice.
    Retry {
        /// Why the step is tried again instead, as declared.
        reason: Option<String>,
    },
    /// What was done cannot be undone, and nothing that was done before it is, unless by force.
    Pivot {
        /// Why it cannot be undone, as declared.
        reason: Option<String>,
    },
}

/// How a command is run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct How {
    /// The working directory, from the project's directory; `None`: that directory itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathText>,
    /// Variables that are added to its environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// How long one attempt may take, in milliseconds; `None`: [`USUAL_TIMEOUT`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How often a failed attempt is followed by another.
    #[serde(default)]
    pub retries: u32,
    /// How long is waited before it is tried again, in milliseconds; twice as long each time.
    #[serde(default)]
    pub backoff_ms: u64,
}

impl How {
    /// How long one attempt may take.
    pub fn timeout(&self) -> Duration {
        self.timeout_ms.map_or(USUAL_TIMEOUT, Duration::from_millis)
    }

    /// How long is waited before attempt number `attempt` (from 1) is followed by another; `None`: it is the last.
    pub fn pause_after(&self, attempt: u32) -> Option<Duration> {
        // Without a bound, a backoff of one minute is two hours by the eighth attempt, and the run is closed all that time.
        const LONGEST: Duration = Duration::from_mins(5);
        // The shift has no result from attempt 65 on, and the product saturates: no count of attempts overflows.
        let doubled = 1_u64.checked_shl(attempt.saturating_sub(1)).unwrap_or(u64::MAX);
        (attempt <= self.retries).then(|| Duration::from_millis(self.backoff_ms.saturating_mul(doubled)).min(LONGEST))
    }
}

/// A path, and what stood there when its compensation was registered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompensatedFile {
    /// From the project's root.
    pub path: PathText,
    /// What was at the path: a file, a link, or nothing.
    pub before: EffectBefore,
}

/// What was at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "was", rename_all = "snake_case")]
pub enum EffectBefore {
    /// There was neither a file nor a link.
    Absent,
    /// There was a regular file.
    File {
        /// Its content, an object of the store.
        #[serde(with = "hash_text")]
        hash: Hash,
        /// Its permission bits, which the undo restores too.
        mode: u32,
    },
    /// There was a symbolic link.
    Symlink {
        /// The text of the link.
        target: PathText,
    },
}

impl EffectAction {
    /// The words for the kinds.
    pub const KINDS: [&'static str; 6] = ["exec", "file", "process", "skip", "retry", "pivot"];

    /// The text of its kind in the ledger and in JSON, one of [`Self::KINDS`].
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Exec { .. } | Self::Shell { .. } => "exec",
            Self::RestoreFiles { .. } => "file",
            Self::KillProcess { .. } => "process",
            Self::Skip { .. } => "skip",
            Self::Retry { .. } => "retry",
            Self::Pivot { .. } => "pivot",
        }
    }

    /// What it says about its step.
    pub fn coverage(&self) -> EffectCoverage {
        match self {
            Self::Exec { .. } | Self::Shell { .. } | Self::RestoreFiles { .. } | Self::KillProcess { .. } => {
                EffectCoverage::Compensated
            }
            Self::Skip { .. } | Self::Retry { .. } => EffectCoverage::Skip,
            Self::Pivot { .. } => EffectCoverage::Pivot,
        }
    }

    /// How its command is run, if it runs one.
    pub fn how(&self) -> Option<&How> {
        match self {
            Self::Exec { how, .. } | Self::Shell { how, .. } => Some(how),
            _ => None,
        }
    }

    /// Itself, with tokens masked in what it says to people. What it runs stays exact.
    pub(crate) fn masked(&self) -> Self {
        let masked = |reason: &Option<String>| mask_optional(reason.as_deref()).map(Cow::into_owned);
        match self {
            Self::Skip { reason } => Self::Skip { reason: masked(reason) },
            Self::Retry { reason } => Self::Retry { reason: masked(reason) },
            Self::Pivot { reason } => Self::Pivot { reason: masked(reason) },
            Self::Exec { .. } | Self::Shell { .. } | Self::RestoreFiles { .. } | Self::KillProcess { .. } => {
                self.clone()
            }
        }
    }

    /// The contents in the store that it needs: a prune must keep them.
    pub fn contents(&self) -> impl Iterator<Item = Hash> {
        let files = match self {
            Self::RestoreFiles { files } => files.as_slice(),
            _ => &[],
        };
        files.iter().filter_map(|file| match file.before {
            EffectBefore::File { hash, .. } => Some(hash),
            // The row itself holds the text of a link.
            EffectBefore::Absent | EffectBefore::Symlink { .. } => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ic_checkpoint::manifest::PathText;

    use super::{CompensatedFile, EffectAction, EffectBefore, How};

    #[test]
    fn an_action_is_read_as_it_was_written() {
        let how = How { retries: 2, backoff_ms: 5, timeout_ms: Some(7), ..How::default() };
        let actions = [
            EffectAction::Exec { argv: vec!["rm".to_owned(), "x".to_owned()], how: how.clone() },
            EffectAction::Shell { line: "rm x".to_owned(), how },
            EffectAction::RestoreFiles {
                files: vec![
                    CompensatedFile { path: PathText(b"\xff".to_vec()), before: EffectBefore::Absent },
                    CompensatedFile {
                        path: PathText(b"a".to_vec()),
                        before: EffectBefore::File { hash: [7; 32], mode: 0o755 },
                    },
                    CompensatedFile {
                        path: PathText(b"l".to_vec()),
                        before: EffectBefore::Symlink { target: PathText(b"a".to_vec()) },
                    },
                ],
            },
            EffectAction::KillProcess {
                pid_file: Some(PathText(b"server.pid".to_vec())),
                identity: None,
                before: None,
            },
            EffectAction::Skip { reason: None },
            EffectAction::Retry { reason: None },
            EffectAction::Pivot { reason: Some("sent".to_owned()) },
        ];
        for action in actions {
            let text = serde_json::to_string(&action).unwrap();
            assert_eq!(serde_json::from_str::<EffectAction>(&text).unwrap(), action, "{text}");
        }
    }

    #[test]
    fn it_waits_twice_as_long_each_time() {
        let how = How { retries: 3, backoff_ms: 10, ..How::default() };
        let pauses: Vec<_> = (1..=4).map(|attempt| how.pause_after(attempt)).collect();
        assert_eq!(pauses, [Some(10), Some(20), Some(40), None].map(|p| p.map(Duration::from_millis)));
        let long = How { retries: u32::MAX, backoff_ms: u64::MAX, ..How::default() };
        assert_eq!(long.pause_after(200), Some(Duration::from_mins(5)));
    }
}
