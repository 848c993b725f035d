//! `ic session continue`

use std::ffi::OsString;

use ic_undo::points::{EntryReference, entry_meant};

use crate::commands::conversation::ContinuedConversation;
use crate::commands::prelude::*;

/// Continue an agent's conversation from before a prompt, with the client's own command.
///
/// The client gets a copy of its own record that ends before the prompt, under a new id: the agent does not know of that prompt and of what
/// came after it. The session itself is not changed. Files are not touched: `ic undo` takes out what the prompt changed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic session continue 3f9a12c4                    # after: ic undo 3f9a12c4
  ic session continue 3f9a12c4 --print            # the client's own command
  ic session continue 3f9a12c4 -- --model opus    # more arguments for the client
  ic fork 3f9a12c4 --continue                     # in a fork, with the files from before it")]
pub(crate) struct ContinueArgs {
    /// The prompt, as ic log prints it
    reference: String,
    /// Print the command and do not run it
    #[arg(long)]
    print: bool,
    /// More arguments for the client
    #[arg(last = true, value_name = "ARGUMENT", conflicts_with = "print")]
    arguments: Vec<OsString>,
}

impl ContinueArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let EntryReference::Work(work) = entry_meant(&kernel, None, &self.reference)? else {
            return Err(Diagnosis::new(Code::NoConversation, format!("{} is no prompt.", self.reference))
                .hint("name a prompt of a coding agent: ic log"));
        };
        let continued = ContinuedConversation::before(session, &kernel, &work.dispatch, None)?;
        // With --json a program reads the answer, and the client in the place of this process would print none.
        if self.print || session.output.json_was_asked_for() {
            return session.output.scalar(&continued.line(), &continued.record());
        }
        continued.announce(session);
        continued.run(&self.arguments)
    }
}
