//! `ic hooks ...`

pub(crate) mod doctor;
mod exclude;
mod file;
pub(crate) mod install;
mod numbers;
mod script;
mod server;
mod settings;
mod toml;
pub(crate) mod uninstall;

use std::path::PathBuf;

use exclude::Exclude;
pub(crate) use exclude::Excluded;
pub(crate) use file::{Edit, Location};
use ic_session::clients::Client;
pub(crate) use server::Servers;

use crate::commands::prelude::*;
use crate::environment::CliEnvironment;
#[cfg(test)]
pub(crate) use settings::entry;

verbs! {
    pub(crate) enum HooksVerb {
        Install(install::HooksInstallArgs),
        Doctor(doctor::Doctor),
    }
}

/// The client, and the settings that are changed.
#[derive(Debug, Args)]
pub(crate) struct HooksTarget {
    #[arg(value_name = "CLIENT", help = client_help())]
    client: String,
    #[command(flatten)]
    pub(crate) place: SettingsPlace,
    /// Show what would change, and change nothing
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
}

impl HooksTarget {
    /// The client that was named. Errors: `invalid_value`, with the list of clients.
    pub(crate) fn client(&self) -> Result<&'static Client> {
        client_named(&self.client)
    }
}

/// The settings that are changed: those of the project, or those of the user.
#[derive(Debug, Args)]
pub(crate) struct SettingsPlace {
    /// Use the settings in your home directory: all projects
    #[arg(long, conflicts_with = "project")]
    user: bool,
    /// Use the settings of this project (the default)
    #[arg(long)]
    project: bool,
}

impl SettingsPlace {
    /// Whether the settings of the user are changed, which count for all projects.
    fn is_of_user(&self) -> bool {
        self.user
    }

    /// Writes an installation, unless it is a dry run, and returns whether git and captures ignore the settings. A project without a ledger
    /// gets one.
    pub(crate) fn install(&self, session: &CliSession, edit: &Edit, what: Excluded, dry_run: bool) -> Result<bool> {
        let root = if self.user { None } else { Some(Self::root(session)?) };
        let exclude = root.and_then(|root| Exclude::with(&root, what));
        if !dry_run {
            // With --user no project is meant, so none gets a ledger. A hook in a project without one records nothing.
            if !self.user {
                require_ledger(session)?;
            }
            // Before the settings are written: a capture between the two would include them, and an undo would then install them again.
            exclude.as_ref().map_or(Ok(()), Exclude::write)?;
            edit.write()?;
        }
        Ok(exclude.is_some_and(|exclude| exclude.covers_settings))
    }

    /// Writes an uninstallation, and removes the lines that an installation added to git's exclude file, if none of its settings are left.
    pub(crate) fn uninstall(&self, session: &CliSession, edit: &Edit, what: Excluded) -> Result<()> {
        edit.write()?;
        let is_left = self.user || !edit.left.is_empty();
        let exclude = if is_left { None } else { Exclude::without(&Self::root(session)?, what) };
        exclude.map_or(Ok(()), |exclude| exclude.write())
    }

    /// The file with one of these names, in the project or in the home directory. Errors: `invalid_value` without a home directory.
    pub(crate) fn file(&self, session: &CliSession, [of_project, of_user]: [&str; 2]) -> Result<Location> {
        if self.user {
            let home = session.home().ok_or_else(|| {
                Diagnosis::new(Code::InvalidValue, "HOME is not set, so your settings cannot be found.")
            })?;
            return Ok(Location::of_user(home, of_user));
        }
        Ok(Location::of_project(&Self::root(session)?, of_project))
    }

    /// The root of the project: of its ledger, or of the one that would be created.
    pub(crate) fn root(session: &CliSession) -> Result<PathBuf> {
        match session.place() {
            Ok(place) => Ok(place.root),
            Err(_) => Ok(ic_ledger::initial_place(&session.lookup(), None)?.root),
        }
    }
}

/// Creates the project's ledger if it has none.
fn require_ledger(session: &CliSession) -> Result<()> {
    if session.place().is_ok() {
        return Ok(());
    }
    let place = ic_ledger::initial_place(&session.lookup(), None)?;
    ic_ledger::create(&place, false, &session.directory, session.options(), &CliEnvironment::context()).map(drop)
}

/// The help of an argument that names a client.
pub(crate) fn client_help() -> String {
    let [all @ .., last] = Client::WORDS;
    format!("The client: {} or {last}", all.join(", "))
}

/// Parses the name of a client. Errors: `invalid_value`, with the list of clients.
fn client_named(text: &str) -> Result<&'static Client> {
    Client::parse(text).ok_or_else(|| {
        Diagnosis::new(Code::InvalidValue, format!("{text:?} is not a known client: {}.", Client::WORDS.join(", ")))
            .detail("value", "CLIENT")
    })
}

/// What an installation did apart from the settings themselves.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Installed {
    /// Whether git and captures ignore the settings.
    pub(crate) excluded: bool,
    /// Whether the client was made to trust the hooks.
    pub(crate) trusted: bool,
    /// Whether the settings of the user were changed.
    pub(crate) is_of_user: bool,
    /// Whether the ledger of the project is on a server.
    pub(crate) is_on_server: bool,
    /// Whether the ledger of the project is in git's directory.
    pub(crate) is_in_git: bool,
}
