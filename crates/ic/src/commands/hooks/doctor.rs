//! `ic hooks doctor`

use std::path::PathBuf;

use ic_ledger::LedgerLocation;
use ic_session::clients::Client;
use rustix::fs::{Access, access};

use super::client_named;
use super::exclude::{Exclude, Excluded};
use super::file::Location;
use super::settings::HooksSettings;
use crate::commands::prelude::*;
use crate::environment::CliEnvironment;
use crate::views::hooks::{HookFailureJson, HooksDoctorJson};
use crate::{hook_log, hook_runs, hook_spool};

/// Check the hooks of coding agents: installed, called, how long they took, what failed.
///
/// What captures left out by a rule, as likely secrets, is listed apart: nothing failed, and a setting includes it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic hooks doctor
  ic hooks doctor codex --json | jq '.[].failures'")]
pub(crate) struct Doctor {
    /// The client [default: all]
    #[arg(value_name = "CLIENT")]
    client: Option<String>,
}

/// A failure that no hook can write down: the store is not writable.
fn unwritable(place: &LedgerLocation) -> Option<HookFailureJson> {
    // A ledger on a server has no file here; the store beside it holds the log of hooks.
    let file = place.server.is_none().then_some(&place.db);
    let error =
        [Some(&place.store), file].into_iter().flatten().find_map(|path| access(path, Access::WRITE_OK).err())?;
    Some(HookFailureJson {
        event: "store".to_owned(),
        created_at: CliEnvironment::context().now().to_string(),
        code: Code::PermissionDenied.as_str().to_owned(),
        message: format!("{} cannot be written ({error}): nothing is recorded.", place.store.display()),
    })
}

/// The settings of a client that call ic: those of the project, and those of the user.
fn files_that_call(session: &CliSession, place: Option<&LedgerLocation>, client: &Client) -> Vec<PathBuf> {
    let is_installed = |location: &Location| {
        HooksSettings::read(location, client, None)
            // Installed is what an uninstallation would remove, in whichever form it is there.
            .and_then(|settings| settings.without(client))
            .is_ok_and(|edit| edit.is_change())
    };
    let [of_project, of_user] = client.hook_files;
    let files = [
        place.map(|place| Location::of_project(&place.root, of_project)),
        session.home().map(|home| Location::of_user(home, of_user)),
    ];
    files.into_iter().flatten().filter(is_installed).map(|location| location.file).collect()
}

/// A client whose hooks were installed in the project, and whose settings there do not call ic any more: `git clean -x` removes them. No
/// hook can write that down. The lines in git's exclude file tell it from an uninstallation, which removes them.
fn missing(session: &CliSession, place: &LedgerLocation, client: &'static Client) -> Option<HookFailureJson> {
    let (name, file) = (client.name, client.hook_files[0]);
    // The lines are the whole repository's: another work tree of it has settings of its own, or none.
    let is_main = ic_ledger::git_dirs(&place.root).is_some_and(|dirs| dirs.git_dir == dirs.common_dir);
    let was_installed = is_main && Exclude::without(&place.root, Excluded::Hooks(client)).is_some();
    let settings = HooksSettings::read(&Location::of_project(&place.root, file), client, None);
    // An uninstallation leaves what a person changed, and the lines with it.
    let is_changed = settings.and_then(|settings| settings.without(client)).is_ok_and(|edit| !edit.left.is_empty());
    if !was_installed || is_changed || !files_that_call(session, Some(place), client).is_empty() {
        return None;
    }
    Some(HookFailureJson {
        event: "settings".to_owned(),
        created_at: CliEnvironment::context().now().to_string(),
        code: Code::PathNotFound.as_str().to_owned(),
        message: format!(
            "the hooks of {name} were installed in {file}, and are missing there: nothing is recorded until ic hooks install {name}"
        ),
    })
}

/// A warning for each client whose hooks are missing in this project.
pub(crate) fn missing_hooks(session: &CliSession) -> Vec<String> {
    let Ok(place) = session.place() else { return Vec::new() };
    Client::ALL.into_iter().filter_map(|client| missing(session, &place, client)).map(|one| one.message).collect()
}

/// The clients whose hooks are installed, for this project or for the user.
pub(crate) fn installed_clients(session: &CliSession) -> Vec<&'static str> {
    let place = session.place().ok();
    let is_installed = |client: &&Client| !files_that_call(session, place.as_ref(), client).is_empty();
    Client::ALL.into_iter().filter(is_installed).map(|client| client.name).collect()
}

/// The events of a client that wait for the ledger, as one failure.
fn unsent(place: &LedgerLocation, client: &Client) -> Option<HookFailureJson> {
    let mut waiting = hook_spool::read(&place.store);
    waiting.events.retain(|event| event.client == client.name);
    let last = waiting.events.last()?;
    Some(HookFailureJson {
        event: last.event.clone(),
        created_at: ic_base::Timestamp(last.at).to_string(),
        code: last.code.clone(),
        message: waiting.said()?,
    })
}

impl Doctor {
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let clients = match &self.client {
            Some(name) => vec![client_named(name)?],
            None => Client::ALL.to_vec(),
        };
        let place = session.place().ok();
        let lines = place.as_ref().map(|place| {
            let cut_off = hook_runs::cut_off(&place.store);
            hook_log::read(&place.store).into_iter().chain(cut_off).collect::<Vec<_>>()
        });
        let lines = lines.unwrap_or_default();
        let records: Vec<HooksDoctorJson> = clients
            .into_iter()
            .map(|client| {
                let files = files_that_call(session, place.as_ref(), client);
                let mut record = HooksDoctorJson::new(client, &files, &lines);
                record.failures.extend(place.as_ref().and_then(|place| missing(session, place, client)));
                record.failures.extend(place.as_ref().and_then(|place| unsent(place, client)));
                // A client that is not used here loses nothing by it.
                record.failures.extend(place.as_ref().filter(|_| record.is_in_use()).and_then(unwritable));
                record
            })
            .collect();
        let now = CliEnvironment::context().now();
        let is_in_git = place.is_some_and(|place| place.is_in_git());
        session.output.list(&records, || views::hooks::doctor(&records, is_in_git, now))
    }
}
