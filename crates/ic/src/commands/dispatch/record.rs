//! `ic dispatch record`

use std::path::PathBuf;

use ic_dispatch::report::{self, DispatchReport, ReportedCommit};
use ic_ops::dispatch;

use crate::commands::prelude::*;
use crate::views::dispatch::RecordedJson;

/// Record the commits and files that a dispatch left in the repository.
///
/// Rolled-back work is accepted too, and marked late: the revert plan needs it. Recording the same again changes
/// nothing.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
#[command(after_help = "Examples:
  git log --name-only --format=%H%x09 \"$base..HEAD\" | ic dispatch record \"$d\" --stdin
  ic dispatch record \"$d\" --commit 1a2b3c4 --commit 5d6e7f8 --file src/login.rs
  echo '{\"commit\": \"1a2b3c4\", \"files\": [\"src/login.rs\"]}' | ic dispatch record \"$d\" --stdin

git log is read newest first; JSON Lines and repeated --commit are oldest first.")]
pub(crate) struct DispatchRecordArgs {
    /// The dispatch: an id, or the end of one
    id: String,
    /// A commit, 7 to 64 hex digits; git does not check it, as it may be in another repository. Repeatable, oldest first
    #[arg(long = "commit", value_name = "SHA", group = "what")]
    commits: Vec<String>,
    /// A changed file, relative to here; repeatable. Outside of the project it is recorded as an absolute path, and no checkpoint holds it
    #[arg(long = "file", value_name = "PATH", group = "what")]
    files: Vec<PathBuf>,
    /// Read `git log --name-only --format=%H%x09`, or JSON Lines {commit, files}
    #[arg(long, group = "what", conflicts_with_all = ["commits", "files"])]
    stdin: bool,
}

impl DispatchRecordArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        // All of it is read and checked before the ledger is opened, so one bad line leaves nothing recorded.
        let mut report = if self.stdin { report::parse(&input::standard_input()?)? } else { self.report()? };
        let kernel = session.kernel()?;
        if !self.stdin {
            // On the command line, paths are relative to here; a report has them from the top, as git prints them.
            report.files = dispatch::files_from_root(&kernel, &report.files);
        }
        let (dispatch, recorded) = dispatch::record(&kernel, &self.id, &report)?;
        session
            .output
            .record(&RecordedJson::new(&dispatch, &recorded), || views::dispatch::recorded(&dispatch, &recorded))
    }

    fn report(&self) -> Result<DispatchReport> {
        let commits = self
            .commits
            .iter()
            .map(|sha| Ok(ReportedCommit { sha: report::parse_sha(sha)?, files: Vec::new() }))
            .collect::<Result<_>>()?;
        for file in &self.files {
            report::check_file(file)?;
        }
        Ok(DispatchReport { commits, files: self.files.clone() })
    }
}
