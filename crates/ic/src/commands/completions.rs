//! `ic completions`

use ic_base::Diagnose;

use crate::commands::prelude::*;
use crate::shell::CompletionShell;

/// Print a script that completes `ic` in a shell: verbs, options, files, and ids from the ledger.
///
/// It offers runs, phases, dispatches, checkpoints, rollbacks and more, with their names, from the ledger that the
/// line acts on. The ledger is only read; without one, nothing is offered. The script calls the `ic` on PATH.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  source <(ic completions bash)           # or in ~/.bashrc
  source <(ic completions zsh)            # or in ~/.zshrc
  ic completions fish | source            # or in config.fish
  mkdir -p ~/.local/share/bash-completion/completions
  ic completions bash >~/.local/share/bash-completion/completions/ic
  ic completions fish >~/.config/fish/completions/ic.fish")]
pub(crate) struct Completions {
    /// The shell that reads the script
    #[arg(value_enum)]
    shell: CompletionShell,
}

impl Completions {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let script = self.shell.script().as_bytes();
        session.output.exact(|sink| sink.write_all(script).while_doing(|| "printing the script".to_owned()))
    }
}
