//! How a call of the `git` program fails, for callers that go on differently; everyone else sees a [`Diagnosis`].

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use ic_base::{Code, Diagnose, Diagnosis};
use thiserror::Error;

/// Why a call of git has no result.
#[derive(Debug, Error)]
pub(crate) enum GitError {
    /// The program could not be run: it is not there, or the machine has no room for a process.
    #[error("running git {command}: {source}")]
    NotRun {
        /// The arguments, joined by spaces.
        command: String,
        source: io::Error,
    },
    /// Another git holds a lock.
    #[error("git {}: {said}.", verb(command))]
    Locked {
        /// The arguments, joined by spaces.
        command: String,
        /// Its first line on stderr.
        said: String,
    },
    /// It ended with an error.
    #[error("git {}: {said}.", verb(command))]
    Failed {
        /// The arguments, joined by spaces.
        command: String,
        /// Its first line on stderr.
        said: String,
    },
    /// What was to read its output, or to write its input, failed.
    #[error(transparent)]
    Conversation(#[from] Diagnosis),
}

/// The result of a call of git.
pub(crate) type GitResult<T> = Result<T, GitError>;

impl GitError {
    /// A command that ended with such a status, and what it said on stderr.
    pub(super) fn ended<A: AsRef<OsStr>>(arguments: &[A], status: ExitStatus, stderr: &[u8]) -> Self {
        match status.signal() {
            // What git said before the signal tells more than the signal's number.
            Some(signal) if stderr.is_empty() => {
                Self::said(arguments, format!("the signal {signal} ended it").as_bytes())
            }
            _ => Self::said(arguments, stderr),
        }
    }

    /// What a command that failed said on stderr.
    pub(super) fn said<A: AsRef<OsStr>>(arguments: &[A], stderr: &[u8]) -> Self {
        let text = String::from_utf8_lossy(stderr);
        // What it was about to do may come first.
        let is_reason = |line: &&str| line.starts_with("fatal: ") || line.starts_with("error: ");
        let said = text.lines().find(is_reason).or_else(|| text.lines().next()).unwrap_or("it said nothing");
        let said = said.trim_start_matches("fatal: ").trim_end_matches('.').to_owned();
        let command = line(arguments);
        // Git has no status of its own for a lock; its words are the same in every version since 2.25.
        let is_denied = text.contains("Permission denied") || text.contains("Read-only file system");
        // A lock that cannot be made at all is held by no other git.
        if (said.contains(".lock") || said.contains("cannot lock ref")) && !is_denied {
            Self::Locked { command, said }
        } else {
            Self::Failed { command, said }
        }
    }

    pub(super) fn not_run<A: AsRef<OsStr>>(arguments: &[A]) -> impl Fn(io::Error) -> Self {
        move |source| Self::NotRun { command: line(arguments), source }
    }
}

impl From<GitError> for Diagnosis {
    fn from(error: GitError) -> Self {
        let message = error.to_string();
        let (code, command) = match error {
            GitError::Conversation(diagnosis) => return diagnosis,
            GitError::NotRun { command, source } => {
                let run: ic_base::Result<()> = Err(source).while_doing(|| format!("running git {command}"));
                return run.err().unwrap_or_else(|| Self::new(Code::Io, message));
            }
            GitError::Locked { command, .. } => (Code::GitBusy, command),
            GitError::Failed { command, .. } => (Code::GitFailed, command),
        };
        let error = Self::new(code, message).detail("command", command.as_str());
        // Work trees are made and removed for forks, and no restore is under way.
        if verb(&command) == "worktree" {
            return error;
        }
        error.hint("restore the files alone: ic checkpoint restore ID --strategy files-only --yes")
    }
}

fn line<A: AsRef<OsStr>>(arguments: &[A]) -> String {
    let arguments: Vec<_> = arguments.iter().map(AsRef::as_ref).collect();
    arguments.join(OsStr::new(" ")).to_string_lossy().into_owned()
}

fn verb(command: &str) -> &str {
    command.split(' ').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::GitError;

    #[test]
    fn a_command_that_a_signal_ended_says_so_unless_it_said_why() {
        let ended = |raw, stderr: &str| {
            GitError::ended(&["stash", "push"], ExitStatus::from_raw(raw), stderr.as_bytes()).to_string()
        };
        assert_eq!(ended(9, ""), "git stash: the signal 9 ended it.");
        assert_eq!(ended(9, "fatal: no room\n"), "git stash: no room.");
        assert_eq!(ended(1 << 8, ""), "git stash: it said nothing.");
    }
}
