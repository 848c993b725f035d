//! `ic completions`

use ic_base::Diagnose;

use crate::commands::prelude::*;
use crate::shell::Shell;

/// Print a script that completes `ic` in a shell: verbs, options, files, and what the ledger holds.
///
/// Runs, phases, dispatches, checkpoints, rollbacks and more are offered with what a person knows them by, from the ledger that
/// the line acts on. It is only looked at; where there is none, nothing is offered. The script asks the `ic` on PATH.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  source <(ic completions bash)           # this session; in ~/.bashrc, every one
  source <(ic completions zsh)            # the same in ~/.zshrc
  ic completions fish | source            # the same in ~/.config/fish/config.fish
  mkdir -p ~/.local/share/bash-completion/completions
  ic completions bash >~/.local/share/bash-completion/completions/ic
  ic completions fish >~/.config/fish/completions/ic.fish")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        let script = self.shell.script().as_bytes();
        session.output.exact(|sink| sink.write_all(script).while_doing(|| "printing the script".to_owned()))
    }
}
