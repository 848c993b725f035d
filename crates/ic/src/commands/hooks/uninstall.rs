//! `ic hooks uninstall`

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use ic_base::Diagnose as _;
use ic_session::clients::Client;

use super::exclude::Excluded;
use super::file::{Edit, replace};
use super::settings::HooksSettings;
use super::{HooksTarget, SettingsPlace, report};
use crate::commands::prelude::*;
use crate::environment::directories_of;

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
    client: &'static Client,
    place: &SettingsPlace,
    edited: Option<&Edit>,
    dry_run: bool,
) -> Result<Edit> {
    let settings = HooksSettings::read(&place.file(session, client.hook_files)?, client, edited)?;
    let edit = settings.without(client)?;
    if !dry_run {
        // Before the settings change: the position of each hook in them may be its key in the client's trust.
        remove_trust(session, client, &settings)?;
        edit.write()?;
        place.clear(session, &edit, Excluded::Hooks(client))?;
    }
    Ok(edit)
}

/// Removes the client's trust in our hooks, if it keeps any.
fn remove_trust(session: &CliSession, client: &Client, settings: &HooksSettings) -> Result<()> {
    let directory = directories_of(client, session.home()).next();
    let Some((trust, directory)) = client.trust.zip(directory) else { return Ok(()) };
    let without = trust.without(&settings.location.file, &settings.places(client), &directory);
    let Some((file, after)) = without else { return Ok(()) };
    let mode = fs::metadata(&file).map(|found| found.permissions().mode()).ok();
    replace(&file, after.as_bytes(), mode).while_doing(|| format!("writing {}", file.display()))
}
