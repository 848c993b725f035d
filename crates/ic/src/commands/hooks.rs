//! `ic hooks ...`

mod doctor;
mod exclude;
mod script;
mod settings;
mod trust;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ic_base::{Code, Diagnosis, Result, shell_word};

use crate::clients::Client;
use crate::environment::Environment;
use crate::exit::Exit;
use crate::json::HooksJson;
use crate::render;
use crate::session::Session;

use exclude::Exclude;
use settings::Settings;

pub(crate) use settings::Edit;
#[cfg(test)]
pub(crate) use settings::entry;

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Install(Install),
    Uninstall(Uninstall),
    Doctor(doctor::Doctor),
}

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

/// Uninstall the hooks: remove from a client's settings exactly what install added.
///
/// Settings that did not change since the install are again byte for byte as before it. An entry that changed since is
/// left and named: exit 1.
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

/// Whose settings.
#[derive(Debug, Args)]
struct Place {
    /// Use the settings in your home directory: all projects
    #[arg(long, conflicts_with = "project")]
    user: bool,
    /// Use the settings of this project (the default)
    #[arg(long)]
    project: bool,
}

impl Verb {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        match self {
            Self::Install(verb) => verb.run(session),
            Self::Uninstall(verb) => verb.run(session),
            Self::Doctor(verb) => verb.run(session),
        }
    }
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

impl Place {
    /// The client's file. Errors: `invalid_value` without a home directory.
    fn file(&self, session: &Session, client: Client) -> Result<PathBuf> {
        let [of_project, of_user] = client.settings();
        if self.user {
            let home = session.home().ok_or_else(|| {
                Diagnosis::new(Code::InvalidValue, "HOME is not set, so your settings cannot be found.")
            })?;
            return Ok(home.join(of_user));
        }
        Ok(Self::root(session)?.join(of_project))
    }

    /// The project.
    fn root(session: &Session) -> Result<PathBuf> {
        match session.place() {
            Ok(place) => Ok(place.root),
            Err(_) => Ok(ic_store::initial_place(&session.lookup(), None)?.root),
        }
    }
}

impl Install {
    fn run(&self, session: &mut Session) -> Result<Exit> {
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
        let installed = Installed { excluded: exclude.is_some(), trusted: self.trust && !self.dry_run };
        report(session, client, &edit, self.dry_run, Some(installed))
    }
}

impl Uninstall {
    fn run(&self, session: &mut Session) -> Result<Exit> {
        let client = client_named(&self.client)?;
        let settings = Settings::read(&self.place.file(session, client)?, client)?;
        let edit = settings.without(client)?;
        if !self.dry_run {
            edit.write(&settings)?;
            if !self.place.user && edit.left.is_empty() {
                Exclude::without(&Place::root(session)?, client).map_or(Ok(()), |exclude| exclude.write())?;
            }
        }
        report(session, client, &edit, self.dry_run, None)
    }
}

/// What an installation did besides.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Installed {
    /// Whether git and captures leave the file out.
    pub(crate) excluded: bool,
    /// Whether the client was made to trust the hooks.
    pub(crate) trusted: bool,
}

fn report(
    session: &mut Session,
    client: Client,
    edit: &Edit,
    dry_run: bool,
    installed: Option<Installed>,
) -> Result<Exit> {
    let record = HooksJson::new(client.as_str(), &edit.file, edit.is_change(), dry_run, &edit.left);
    let record = if dry_run && edit.is_change() { record.with_content(edit.text()) } else { record };
    let record = record.with(installed.unwrap_or_default());
    session.output.record(&record, || render::hooks::edited(client, edit, dry_run, installed))?;
    Ok(if edit.left.is_empty() { Exit::Done } else { Exit::No })
}
