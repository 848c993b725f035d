//! `ic hooks ...`

mod distrust;
pub(crate) mod doctor;
mod exclude;
mod file;
pub(crate) mod install;
mod numbers;
mod script;
mod server;
mod settings;
mod toml;
mod trust;
pub(crate) mod uninstall;

use std::path::PathBuf;

use exclude::Exclude;
pub(crate) use exclude::Excluded;
pub(crate) use file::{Edit, Location};
pub(crate) use server::Servers;

use crate::clients::Client;
use crate::commands::prelude::*;
use crate::environment::Environment;
use crate::views::hooks::HooksJson;
#[cfg(test)]
pub(crate) use settings::entry;

verbs! {
    pub(crate) enum Verb {
        Install(install::Install),
        Uninstall(uninstall::Uninstall),
        Doctor(doctor::Doctor),
    }
}

/// What is installed into, or uninstalled from.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// The client: claude-code, codex, gemini, copilot or opencode
    #[arg(value_name = "CLIENT")]
    client: String,
    #[command(flatten)]
    pub(crate) place: Place,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

impl Target {
    /// Errors: `invalid_value` with the list.
    pub(crate) fn client(&self) -> Result<Client> {
        client_named(&self.client)
    }
}

/// Whose settings.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// Use the settings in your home directory: all projects
    #[arg(long, conflicts_with = "project")]
    user: bool,
    /// Use the settings of this project (the default)
    #[arg(long)]
    project: bool,
}

impl Place {
    /// Whether all projects are meant.
    fn is_of_user(&self) -> bool {
        self.user
    }

    /// What git and captures are to leave out once something is installed; `None` at home, and outside of git.
    pub(crate) fn exclude(&self, session: &Session, what: Excluded) -> Result<Option<Exclude>> {
        let root = if self.user { None } else { Some(Self::root(session)?) };
        Ok(root.and_then(|root| Exclude::with(&root, what)))
    }

    /// Makes a project ready for settings that are installed: it has a ledger, and git leaves the settings out.
    pub(crate) fn prepare(&self, session: &Session, exclude: Option<&Exclude>) -> Result<()> {
        if !self.user {
            require_ledger(session)?;
        }
        // Before the settings: a capture between the two would keep what an undo must not bring back.
        exclude.map_or(Ok(()), Exclude::write)
    }

    /// Removes from git's excludes what an installation added, if none of its settings is left.
    pub(crate) fn clear(&self, session: &Session, edit: &Edit, what: Excluded) -> Result<()> {
        if self.user || !edit.left.is_empty() {
            return Ok(());
        }
        let exclude = Exclude::without(&Self::root(session)?, what);
        exclude.map_or(Ok(()), |exclude| exclude.write())
    }

    /// The file that a client names so in a project and at home. Errors: `invalid_value` without a home directory.
    pub(crate) fn file(&self, session: &Session, [of_project, of_user]: [&str; 2]) -> Result<Location> {
        if self.user {
            let home = session.home().ok_or_else(|| {
                Diagnosis::new(Code::InvalidValue, "HOME is not set, so your settings cannot be found.")
            })?;
            return Ok(Location::of_user(home, of_user));
        }
        Ok(Location::of_project(&Self::root(session)?, of_project))
    }

    /// The project.
    pub(crate) fn root(session: &Session) -> Result<PathBuf> {
        match session.place() {
            Ok(place) => Ok(place.root),
            Err(_) => Ok(ic_store::initial_place(&session.lookup(), None)?.root),
        }
    }
}

/// A project without a ledger gets one.
fn require_ledger(session: &Session) -> Result<()> {
    if session.place().is_ok() {
        return Ok(());
    }
    let place = ic_store::initial_place(&session.lookup(), None)?;
    ic_store::create(&place, false, &session.directory, session.options(), &Environment::context()).map(drop)
}

/// Errors: `invalid_value` with the list.
fn client_named(text: &str) -> Result<Client> {
    Client::parse(text).ok_or_else(|| {
        Diagnosis::new(
            Code::InvalidValue,
            format!("{text:?} is not a known client: {}.", Client::WORDS.join(", ")),
        )
        .detail("value", "CLIENT")
    })
}

/// What an installation did besides.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Installed {
    /// Whether git and captures leave the file out.
    pub(crate) excluded: bool,
    /// Whether the client was made to trust the hooks.
    pub(crate) trusted: bool,
    /// Whether all projects are meant.
    pub(crate) is_of_user: bool,
    /// Whether the project's ledger is on a server.
    pub(crate) is_on_server: bool,
    /// Whether the project's ledger lies in git's directory.
    pub(crate) is_in_git: bool,
}

pub(crate) fn report(
    session: &mut Session,
    client: Client,
    edit: &Edit,
    dry_run: bool,
    installed: Option<Installed>,
) -> Result<Exit> {
    let record = HooksJson::new(client, edit, dry_run, installed.unwrap_or_default());
    session.output.record(&record, || views::hooks::edited(client, edit, dry_run, installed))?;
    Ok(if edit.left.is_empty() { Exit::Done } else { Exit::No })
}
