//! `ic hooks uninstall`

use super::exclude::Excluded;
use super::file::Edit;
use super::settings::HooksSettings;
use super::trust_removal::Distrust;
use super::{HooksTarget, SettingsPlace, report};
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
pub(crate) struct HooksUninstallArgs {
    #[command(flatten)]
    target: HooksTarget,
}

impl HooksUninstallArgs {
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let (client, target) = (self.target.client()?, &self.target);
        let edit = uninstall(session, client, &target.place, None, target.dry_run)?;
        report(session, client, &edit, target.dry_run, None)
    }
}

/// Uninstalls the hooks, or returns the edit of a dry run. `edited`: what another edit is about to make of the file.
pub(crate) fn uninstall(
    session: &CliSession,
    client: Client,
    place: &SettingsPlace,
    edited: Option<&Edit>,
    dry_run: bool,
) -> Result<Edit> {
    let settings = HooksSettings::read(&place.file(session, client.settings())?, client, edited)?;
    let edit = settings.without(client)?;
    if !dry_run {
        if client == Client::Codex {
            // Before the settings change: the position of each hook in them is its key in Codex's trust.
            let distrust = Distrust::of(&settings, session.home());
            distrust.map_or(Ok(()), |distrust| distrust.write())?;
        }
        edit.write()?;
        place.clear(session, &edit, Excluded::Hooks(client))?;
    }
    Ok(edit)
}
