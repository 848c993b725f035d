//! `ic hooks install`

use std::path::PathBuf;

use ic_base::shell_word;

use super::exclude::Exclude;
use super::settings::{self, Settings};
use super::{Installed, Place, client_named, report, trust};
use crate::clients::Client;
use crate::commands::prelude::*;
use crate::environment::Environment;

/// Install hooks into a coding agent: ic then records every prompt, and can undo it.
///
/// The hooks are merged into the client's settings, and a copy is kept beside them. A project without a ledger gets one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic hooks install claude-code
  ic hooks install codex --dry-run        # shows what would be added
  ic hooks install gemini

With --user, every project that has a ledger takes part. Codex runs no hook before you trust it: type /hooks in Codex once, or install with --trust.")]
pub(crate) struct Install {
    /// The client: claude-code, codex, gemini, copilot or opencode
    #[arg(value_name = "CLIENT")]
    client: String,
    #[command(flatten)]
    place: Place,
    /// Make Codex trust these hooks, and no others
    #[arg(long)]
    trust: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl Install {
    pub(super) fn run(&self, session: &mut Session) -> Result<Exit> {
        let client = client_named(&self.client)?;
        if self.trust && client != Client::Codex {
            return Err(
                Diagnosis::new(Code::InvalidValue, "Only codex has --trust.").detail("value", "--trust")
            );
        }
        let file = self.place.file(session, client)?;
        let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("ic"));
        let settings = Settings::read(&file, client)?;
        let edit = settings.with(client, &program.to_string_lossy())?;
        let root = if self.place.user { None } else { Some(Place::root(session)?) };
        let exclude = root.and_then(|root| Exclude::with(&root, client));
        if !self.dry_run {
            if !self.place.user && session.place().is_err() {
                let place = ic_store::initial_place(&session.lookup(), None)?;
                ic_store::create(
                    &place,
                    false,
                    &session.directory,
                    session.options(),
                    &Environment::context(),
                )?;
            }
            // First: a capture between the two would keep what an undo must not bring back.
            exclude.as_ref().map_or(Ok(()), Exclude::write)?;
            edit.write(&settings)?;
            if self.trust {
                let program = shell_word(&program.to_string_lossy());
                let events = client.events().iter();
                let commands = events.map(|(event, _)| settings::command(client, event, &program)).collect();
                trust::trust(&file, &Place::root(session)?, &commands)?;
            }
        }
        let installed = Installed {
            excluded: exclude.is_some_and(|exclude| exclude.covers_settings),
            trusted: self.trust && !self.dry_run,
            is_of_user: self.place.user,
        };
        report(session, client, &edit, self.dry_run, Some(installed))
    }
}
