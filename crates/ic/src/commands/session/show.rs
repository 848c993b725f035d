//! `ic session show`

use ic_dispatch::dispatch;
use ic_session::call;

use crate::commands::prelude::*;
use crate::views::session::SessionShowJson;

/// Show a session of a coding agent: its prompts, and the outcome of each.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic session show 3f9a12c4
  ic session show 3f9a12c4 --calls      # with the tool calls of each prompt
  ic session show 3f9a12c4 --json | jq -r '.prompts[] | [.short_id, .status, .name] | @tsv'")]
pub(crate) struct SessionShowArgs {
    /// The session: its id, the end of it, or the client's id
    id: String,
    /// Include tool calls that may change files
    #[arg(long)]
    calls: bool,
}

impl SessionShowArgs {
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let (found, prompts) = kernel.read(|snapshot| {
            let found = ic_session::places::resolve(snapshot, &self.id, &kernel.project.root)?;
            let mut all = Vec::new();
            for prompt in ic_session::of_session(snapshot, &found.id)? {
                let work = dispatch::get(snapshot, &prompt.dispatch_id)?;
                // Subagents are works of their own, and belong below the prompt that began them.
                let subagents = dispatch::descendants(snapshot, &work.id)?;
                for work in std::iter::once(work).chain(subagents) {
                    let calls = call::of_dispatch(snapshot, &work.id)?;
                    all.push((work, calls));
                }
            }
            Ok((found, all))
        })?;
        let record = SessionShowJson::new(&found, &prompts, self.calls);
        session.output.record(&record, || views::session::session(&found, &prompts, self.calls))
    }
}
