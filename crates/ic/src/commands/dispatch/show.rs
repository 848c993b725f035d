//! `ic dispatch show`

use ic_dispatch::{code, dispatch};
use ic_ops::exec;

use crate::commands::prelude::*;
use crate::views::dispatch::DispatchShowJson;

/// Show a dispatch with its commits and files.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic dispatch show 5d6e7f
  ic dispatch show \"$d\" --json | jq -r '.commits[].sha'")]
pub(crate) struct DispatchShowArgs {
    /// The dispatch: an id, or the end of one
    id: String,
}

impl DispatchShowArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let (dispatch, commits, files) = kernel.read(|snapshot| {
            let dispatch = dispatch::resolve(snapshot, &self.id)?;
            let commits = code::commits_of(snapshot, &dispatch.id)?;
            let files = code::files_of(snapshot, &dispatch.id)?;
            Ok((dispatch, commits, files))
        })?;
        let log = exec::log_of(&kernel, &dispatch);
        session.output.record(&DispatchShowJson::new(&dispatch, &commits, &files, log.as_deref()), || {
            views::dispatch::card(&dispatch, &commits, &files, log.as_deref())
        })
    }
}
