//! The hooks go out of a client's settings.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use ic_base::Diagnose as _;
use ic_session::clients::Client;

use super::SettingsPlace;
use super::exclude::Excluded;
use super::file::{Edit, replace};
use super::settings::HooksSettings;
use crate::commands::prelude::*;
use crate::environment::directories_of;

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
        place.uninstall(session, &edit, Excluded::Hooks(client))?;
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
