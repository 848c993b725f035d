//! `ic hooks uninstall`

use super::distrust::Distrust;
use super::exclude::{Exclude, Excluded};
use super::settings::{Edit, Settings};
use super::{Place, client_named, report};
use crate::clients::Client;
use crate::commands::prelude::*;

/// Uninstall the hooks: remove from a client's settings exactly what install added.
///
/// Settings that did not change since the install are again byte for byte as before it. An entry that changed since is
/// left and named: exit 1. What Codex trusts of these hooks goes from its `config.toml`, too.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic hooks uninstall claude-code
  ic hooks uninstall gemini --dry-run")]
pub(crate) struct Uninstall {
    /// The client: claude-code, codex, gemini, copilot or opencode
    #[arg(value_name = "CLIENT")]
    client: String,
    #[command(flatten)]
    place: Place,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl Uninstall {
    pub(super) fn run(&self, session: &mut Session) -> Result<Exit> {
        let client = client_named(&self.client)?;
        let edit = uninstall(session, client, &self.place, self.dry_run)?;
        report(session, client, &edit, self.dry_run, None)
    }
}

/// Uninstalls the hooks, or says what that would do.
pub(crate) fn uninstall(session: &Session, client: Client, place: &Place, dry_run: bool) -> Result<Edit> {
    let settings = Settings::read(&place.file(session, client.settings())?, client)?;
    let edit = settings.without(client)?;
    if !dry_run {
        if client == Client::Codex {
            // First: where the hooks stand says which trust is of them.
            let distrust = Distrust::of(&settings, session.home());
            distrust.map_or(Ok(()), |distrust| distrust.write())?;
        }
        edit.write(&settings)?;
        if !place.is_of_user() && edit.left.is_empty() {
            let exclude = Exclude::without(&Place::root(session)?, Excluded::Hooks(client));
            exclude.map_or(Ok(()), |exclude| exclude.write())?;
        }
    }
    Ok(edit)
}
