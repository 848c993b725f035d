//! `ic fork`

use ic_ops::forks;

use crate::commands::prelude::*;
use crate::views::fork::ForkJson;

/// Fork this work tree: a linked work tree beside it, with the same files.
///
/// The fork has the files as they are here now, untracked ones too, or as they were at REF. Ignored files do not come along, and nothing is
/// staged. Work in it is recorded apart and undone there. `ic adopt` merges it into this work tree, and `ic drop` removes it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic fork                        # a fork named 1, in ../PROJECT.forks/1
  cd \"$(ic fork --name try)\"
  ic fork 3f9a12c4 --name other   # as the files were before this work
  ic adopt try                   # merge what it became into this work tree
  ic drop try")]
pub(crate) struct ForkArgs {
    /// The work before which, or the checkpoint at which, the files were as in the fork [default: now]
    #[arg(value_name = "REF")]
    reference: Option<String>,
    /// The name of the fork, and of its directory [default: the next free number]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

impl ForkArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let name = self.name.as_deref().map(named).transpose()?;
        let kernel = session.kernel_to_change(None)?;
        let settings = session.checkpoint_settings(&kernel)?;
        let (fork, warnings) = forks::make(&kernel, &settings, self.reference.as_deref(), name.as_deref())?;
        session.output.warn_beside_value(&warnings);
        session.output.path(&fork.root, &ForkJson::new(&fork, &warnings))
    }
}

/// A name that can be a directory's. Errors: `invalid_value`.
pub(crate) fn named(name: &str) -> Result<String> {
    let label = input::optional_label("--name", Some(name))?.unwrap_or_default();
    let is_plain = !label.contains('/') && !label.starts_with(['.', '-']);
    if is_plain {
        return Ok(label);
    }
    let message = "--name must be the name of a directory: without / and with no dot or dash at its beginning.";
    Err(Diagnosis::new(Code::InvalidValue, message).detail("value", "--name"))
}
