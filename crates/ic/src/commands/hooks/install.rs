//! `ic hooks install`

use std::path::PathBuf;

use ic_base::shell_word;
use ic_session::clients::{Client, HookTrust};

use super::exclude::Excluded;
use super::file::Edit;
use super::settings::{self, HooksSettings};
use super::{HooksTarget, Installed, SettingsPlace};
use crate::commands::prelude::*;
use crate::views::hooks::HooksJson;

/// Install hooks into a coding agent: ic then records every prompt, and can undo it.
///
/// The hooks are merged into the client's settings, and a copy is kept beside them. A project without a ledger gets one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic hooks install claude-code
  ic hooks install codex --dry-run        # shows what would be added
  ic hooks install gemini
  ic init --store ~/ledgers/shop && ic hooks install claude-code   # a record that outlives .git

With --user, every project that has a ledger takes part. Codex runs no hook before you trust it: type /hooks in Codex once, or install with --trust.")]
pub(crate) struct HooksInstallArgs {
    #[command(flatten)]
    target: HooksTarget,
    /// Make Codex trust these hooks, and no others
    #[arg(long)]
    trust: bool,
}

impl HooksInstallArgs {
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let (client, target) = (self.target.client()?, &self.target);
        let trust = require_trust(client, self.trust)?;
        let (edit, mut installed) = install(session, client, &target.place, target.dry_run)?;
        if let Some(trust) = trust.filter(|_| !target.dry_run) {
            installed.trusted = grant(trust, session, client, &edit)?;
        }
        let record = HooksJson::new(client, &edit, target.dry_run, installed);
        session.output.record(&record, || views::hooks::edited(client, &edit, target.dry_run, Some(installed)))?;
        Ok(if edit.left.is_empty() { ExitStatus::Done } else { ExitStatus::No })
    }
}

/// The client's trust, if `--trust` is given. Errors: `invalid_value` if this client runs hooks without it.
pub(crate) fn require_trust(client: &Client, trusts: bool) -> Result<Option<&'static dyn HookTrust>> {
    if trusts && client.trust.is_none() {
        let others = Client::ALL.into_iter().filter(|other| other.trust.is_some()).map(|other| other.name);
        let only = format!("Only {} has --trust.", others.collect::<Vec<_>>().join(" or "));
        return Err(Diagnosis::new(Code::InvalidValue, only).detail("value", "--trust"));
    }
    Ok(client.trust.filter(|_| trusts))
}

/// Makes the client trust the hooks, and returns true. It is the last step of an installation, so that a failure leaves all else done.
pub(crate) fn grant(trust: &dyn HookTrust, session: &CliSession, client: &Client, edit: &Edit) -> Result<bool> {
    let program = shell_word(&program());
    let events = client.events.iter();
    let commands = events.map(|(event, _)| settings::command(client, event, &program)).collect();
    trust.grant(edit.file(), &SettingsPlace::root(session)?, &commands)?;
    Ok(true)
}

/// Installs the hooks, or returns the edit of a dry run.
pub(crate) fn install(
    session: &CliSession,
    client: &'static Client,
    place: &SettingsPlace,
    dry_run: bool,
) -> Result<(Edit, Installed)> {
    let location = place.file(session, client.hook_files)?;
    let edit = HooksSettings::read(&location, client, None)?.with(client, &program())?;
    let installed = Installed {
        excluded: place.install(session, &edit, Excluded::Hooks(client), dry_run)?,
        trusted: false,
        is_of_user: place.is_of_user(),
        is_on_server: session.place().is_ok_and(|place| !place.is_of_one_host()),
        is_in_git: !place.is_of_user() && session.place().is_ok_and(|place| place.is_in_git()),
    };
    Ok((edit, installed))
}

/// The path of this program, for a client's settings.
pub(crate) fn program() -> String {
    // A client starts hooks with a PATH of its own, so the name alone may not be found.
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("ic")).to_string_lossy().into_owned()
}
