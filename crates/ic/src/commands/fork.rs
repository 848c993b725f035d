//! `ic fork`

use std::ffi::OsString;

use ic_dispatch::Dispatch;
use ic_kernel::Kernel;
use ic_ops::forks;
use ic_session::conversation_point;
use ic_undo::points::{EntryReference, entry_meant};
use ic_worktree::Warning;

use crate::commands::conversation::ContinuedConversation;
use crate::commands::prelude::*;
use crate::views::fork::ForkJson;

/// Fork this work tree: a linked work tree beside it, with the same files.
///
/// The fork has the files as they are here now, untracked ones too, or as they were at REF. Ignored files do not come along, and nothing is
/// staged. Work in it is recorded apart and undone there. `ic adopt` merges it into this work tree, and `ic drop` removes it.
///
/// Where REF is a prompt of a coding agent, the client's own command that continues the conversation from before it is printed on standard
/// error.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic fork                        # a fork named 1, in ../PROJECT.forks/1
  cd \"$(ic fork --name try)\"
  ic fork 3f9a12c4 --name other   # as the files were before this work
  ic fork 3f9a12c4 --continue     # and its agent's conversation, too
  ic adopt try                   # merge what it became into this work tree
  ic drop try")]
pub(crate) struct ForkArgs {
    /// The work before which, or the checkpoint at which, the files were as in the fork [default: now]
    #[arg(value_name = "REF")]
    reference: Option<String>,
    /// The name of the fork, and of its directory [default: the next free number]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Continue the conversation of the prompt REF in it, with the client's own command
    #[arg(long = "continue", requires = "reference")]
    continues: bool,
    /// With --continue: more arguments for the client
    #[arg(last = true, value_name = "ARGUMENT", requires = "continues")]
    arguments: Vec<OsString>,
}

impl ForkArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let name = self.name.as_deref().map(named).transpose()?;
        let kernel = session.kernel_to_change(None)?;
        let settings = session.checkpoint_settings(&kernel)?;
        // Looked up first: a conversation that is not there must not leave a fork behind.
        let prompt = self.reference.as_deref().map(|reference| prompt_of(&kernel, reference)).transpose()?.flatten();
        if self.continues && prompt.is_none() {
            let message = format!("{} is no prompt.", self.reference.as_deref().unwrap_or_default());
            return Err(Diagnosis::new(Code::NoConversation, message).hint("name a prompt of a coding agent: ic log"));
        }
        let (fork, mut warnings) = forks::make(&kernel, &settings, self.reference.as_deref(), name.as_deref())?;
        let before = |work: &Dispatch| ContinuedConversation::before(session, &kernel, work, Some(&fork.root));
        let continued = match prompt.as_ref().map(before) {
            Some(Err(error)) if !self.continues => {
                warnings.push(Warning { code: error.code().as_str(), message: error.message().to_owned() });
                None
            }
            Some(Err(error)) => {
                // Nothing has worked in it, so nothing is lost.
                forks::drop(&kernel, &settings, &fork.name, true)?;
                return Err(error);
            }
            continued => continued.transpose()?,
        };
        session.output.warn_beside_value(&warnings);
        if let Some(continued) = &continued {
            continued.announce(session);
            // If it succeeds, the client has taken the place of this process, and nothing below is printed.
            if self.continues {
                return continued.run(&self.arguments);
            }
        }
        let mut record = ForkJson::new(&fork, &warnings);
        record.continuation = continued.map(|continued| continued.record());
        session.output.path(&fork.root, &record)
    }
}

/// The work of a prompt that a reference names; `None` if it names anything else.
fn prompt_of(kernel: &Kernel, reference: &str) -> Result<Option<Dispatch>> {
    let EntryReference::Work(work) = entry_meant(kernel, None, reference)? else { return Ok(None) };
    let point = kernel.read(|snapshot| conversation_point::find(snapshot, &work.dispatch))?;
    Ok(point.map(|_| work.dispatch))
}

/// A name that can be a directory's. Errors: `invalid_value`.
pub(crate) fn named(name: &str) -> Result<String> {
    let label = input::optional_label("--name", Some(name))?.unwrap_or_default();
    // A name that begins with a dot could be `..`, and other commands would read one that begins with a dash as a flag.
    let is_plain = !label.contains('/') && !label.starts_with(['.', '-']);
    if is_plain {
        return Ok(label);
    }
    let message = "--name must be the name of a directory: without / and with no dot or dash at its beginning.";
    Err(Diagnosis::new(Code::InvalidValue, message).detail("value", "--name"))
}
