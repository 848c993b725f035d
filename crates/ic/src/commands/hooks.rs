//! `ic hooks ...`

mod distrust;
mod doctor;
mod exclude;
pub(crate) mod install;
mod numbers;
mod script;
mod server;
mod settings;
mod toml;
mod trust;
pub(crate) mod uninstall;

use std::path::PathBuf;

pub(crate) use exclude::{Exclude, Excluded};
pub(crate) use server::Servers;
pub(crate) use settings::Edit;

use crate::clients::Client;
use crate::commands::prelude::*;
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
    pub(crate) fn is_of_user(&self) -> bool {
        self.user
    }

    /// The file that a client names so in a project and at home. Errors: `invalid_value` without a home directory.
    pub(crate) fn file(&self, session: &Session, [of_project, of_user]: [&str; 2]) -> Result<PathBuf> {
        if self.user {
            let home = session.home().ok_or_else(|| {
                Diagnosis::new(Code::InvalidValue, "HOME is not set, so your settings cannot be found.")
            })?;
            return Ok(home.join(of_user));
        }
        Ok(Self::root(session)?.join(of_project))
    }

    /// The project.
    pub(crate) fn root(session: &Session) -> Result<PathBuf> {
        match session.place() {
            Ok(place) => Ok(place.root),
            Err(_) => Ok(ic_store::initial_place(&session.lookup(), None)?.root),
        }
    }
}

/// Errors: `invalid_value` with the list.
pub(crate) fn client_named(text: &str) -> Result<Client> {
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
