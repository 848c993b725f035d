//! Hooks of coding agents.

use std::path::PathBuf;

use ic_base::Timestamp;
use ic_checkpoint::tree::Reason;
use ic_session::clients::Client;
use ic_worktree::is_left_out_for;

use crate::commands::hooks::{Edit, Installed};
use crate::hook_log::HookLogLine;
use crate::text::{age, path_text, plain, style, styled};
use crate::views::{PathJson, exact};

/// The most failed calls that are shown: the newest.
const FAILURES: usize = 5;

shape! {
    /// What was done to a client's settings, by any verb.
    pub(crate) struct SettingsEditJson from (client: &Client, edit: &Edit, dry_run: bool) {
        client: &'static str as Client = client.name,
        /// The file with the client's settings.
        config_file: String = edit.file().to_string_lossy().into_owned(),
        #[serde(skip_serializing_if = "Option::is_none")]
        config_file_b64: Option<String> = exact(edit.file()),
        /// False if the settings were right already.
        changed: bool = edit.is_change(),
        dry_run: bool = dry_run,
        /// Whether the file is removed, because nothing else is left in it.
        removes_file: bool = edit.removes_file(),
        /// In a dry run, the text that the file would have, empty if it would be removed; null if nothing would change.
        content: Option<String> = (dry_run && edit.is_change()).then(|| edit.text()),
    }

    /// What was done to a client's settings (`hooks install`).
    pub(crate) struct HooksJson from (client: &Client, edit: &Edit, dry_run: bool, installed: Installed) {
        #[serde(flatten)]
        edit: SettingsEditJson = SettingsEditJson::new(client, edit, dry_run),
        /// The events whose entry a person changed: it stays.
        events_left: Vec<String> = edit.left.clone(),
        /// Whether git and captures ignore the file, by `.git/info/exclude`.
        excluded: bool = installed.excluded,
        /// Whether the client was made to trust the hooks (`--trust`).
        trusted: bool = installed.trusted,
    }

    /// Whether the hooks of a client work (`hooks doctor`).
    pub(crate) struct HooksDoctorJson from (client: &Client, files: &[PathBuf], lines: &[HookLogLine]) where
        own = lines.iter().filter(|line| line.client == client.name).collect::<Vec<_>>();
        failed = own.iter().copied().filter(|line| line.code.is_some() && !line.is_note()).collect::<Vec<_>>();
        newest = &failed[failed.len().saturating_sub(FAILURES)..];
        by_rule = own.iter().copied().filter(|line| line.is_note()).collect::<Vec<_>>();
        newest_by_rule = &by_rule[by_rule.len().saturating_sub(FAILURES)..];
    {
        pub(crate) client: &'static str as Client = client.name,
        /// The settings files that call ic.
        pub(crate) config_files: Vec<PathJson> = files.iter().map(|file| file.as_path().into()).collect(),
        /// When a hook last called; null if the log has no call.
        pub(crate) called_at: Option<String> = own.last().map(|line| line.ended_at().to_string()),
        #[serde(skip)]
        called: Option<Timestamp> = own.last().map(|line| line.ended_at()),
        /// How long that call took, in milliseconds.
        pub(crate) duration_ms: Option<u64> = own.last().map(|line| line.ms),
        /// The newest calls that failed, oldest first.
        pub(crate) failures: Vec<HookFailureJson> =
            newest.iter().map(|line| HookFailureJson::from(*line)).collect(),
        /// What captures left out by a rule, such as likely secrets, which is no failure: the newest calls with such a note, oldest first.
        pub(crate) left_out: Vec<HookLeftOutJson> = newest_by_rule.iter().map(|line| HookLeftOutJson::from(*line)).collect(),
    }

    /// A call of a hook whose capture left something out that the capture before had not.
    pub(crate) struct HookLeftOutJson from line: &HookLogLine {
        pub(crate) event: String = line.event.clone(),
        pub(crate) created_at: String = line.ended_at().to_string(),
        /// The names that were left out, each with its reason.
        pub(crate) message: String = line.left_out().to_owned(),
        /// The setting that makes captures include it; null: none does.
        pub(crate) hint: Option<&'static str> = taken_by(line.left_out()),
    }

    /// A call of a hook that failed: the agent continued.
    pub(crate) struct HookFailureJson from line: &HookLogLine {
        pub(crate) event: String = line.event.clone(),
        pub(crate) created_at: String = line.ended_at().to_string(),
        pub(crate) code: String = line.code.clone().unwrap_or_default(),
        pub(crate) message: String = line.message.clone().unwrap_or_default(),
    }
}

/// The setting that makes captures include what was left out.
fn taken_by(named: &str) -> Option<&'static str> {
    let is_for = |reason| is_left_out_for(named, reason);
    let (is_secret, is_large) = (is_for(Reason::Secret), is_for(Reason::Oversize));
    // A name that was cut off has lost its reason, so nothing is suggested.
    let is_cut = !named.contains('(');
    match (is_secret || is_cut, is_large || is_cut) {
        (true, true) => Some(
            "to capture it: rollback.checkpointing.include-secrets and max-file-size in .ic.yaml (docs/CONFIGURATION.md)",
        ),
        (true, false) => {
            Some("to capture it: name it in rollback.checkpointing.include-secrets in .ic.yaml (docs/CONFIGURATION.md)")
        }
        (false, true) => {
            Some("to capture it: rollback.checkpointing.max-file-size in .ic.yaml (docs/CONFIGURATION.md)")
        }
        (false, false) => None,
    }
}

/// A note about a record that is lost with its repository.
const IN_GIT: &str = "The record is in .git and is lost with it; how to keep it in another directory: ic init --help\n";

/// What was done to a client's settings. `installed`: after an installation, what else it did.
pub(crate) fn edited(client: &Client, edit: &Edit, dry_run: bool, installed: Option<Installed>) -> String {
    let installs = installed.is_some();
    let Installed { excluded, trusted, is_of_user, is_on_server, is_in_git } = installed.unwrap_or_default();
    let file = path_text(edit.file());
    let name = client.name;
    let mut out = match (edit.is_change(), dry_run, installs) {
        (false, _, true) => format!("The hooks are installed already: {file}\n"),
        (false, _, false) => format!("No hook of ic to remove: {file}\n"),
        (true, true, _) if edit.removes_file() => format!("Would remove {file}\n"),
        (true, true, _) => format!("Would write {file}:\n{}", edit.text()),
        (true, false, true) => {
            let each = if is_of_user { ", in each project that has a ledger (ic init in each)" } else { "" };
            let undo = if is_on_server && !is_of_user { "" } else { "; undo one with ic undo" };
            format!(
                "{} {file}\nFrom its next session on {name} records each prompt{each}: see ic log{undo}.\n",
                styled(style::GOOD, "installed in")
            )
        }
        (true, false, false) => format!("{} {file}\n", styled(style::GOOD, "removed from")),
    };
    if excluded && edit.is_change() {
        out += "Git and captures leave it out, by .git/info/exclude: an undo neither removes hooks nor brings them back.\n";
    }
    if is_in_git && edit.is_change() && !dry_run {
        out += IN_GIT;
    }
    if let Some(trust) = client.trust.filter(|_| installs && !dry_run) {
        out += &if trusted { format!("{} trusts them.\n", client.title) } else { trust.note().to_owned() };
    }
    for event in &edit.left {
        out += &format!(
            "{} the entry of {} was changed by hand; remove it there\n",
            styled(style::WARN, "left:"),
            plain(event)
        );
    }
    out
}

impl HooksDoctorJson {
    /// Whether hooks are installed, or have called before.
    pub(crate) fn is_in_use(&self) -> bool {
        !self.config_files.is_empty() || self.called_at.is_some()
    }
}

/// Whether the hooks work, one client after the other. `is_in_git`: whether the ledger is in git's directory.
pub(crate) fn doctor(all: &[HooksDoctorJson], is_in_git: bool, now: Timestamp) -> String {
    let mut out = String::new();
    for one in all {
        out += &format!("{}\n", styled(style::STRONG, one.client));
        // Hooks that were installed and are missing are listed among the failures, with the command that installs them.
        let is_missing = one.failures.iter().any(|failure| failure.event == "settings");
        if one.config_files.is_empty() && !is_missing {
            out += &match one.called_at {
                Some(_) => "  not in its settings: what called is a plugin, or was uninstalled since\n".to_owned(),
                None => format!("  not installed: ic hooks install {}\n", one.client),
            };
        }
        for file in &one.config_files {
            out += &format!("  installed in {}\n", plain(&file.path));
        }
        match (&one.called_at, one.called, one.duration_ms) {
            (Some(at), Some(when), Some(ms)) => {
                out += &format!("  last called {}, at {at}, {ms} ms\n", age(now, when));
            }
            _ if one.config_files.is_empty() => {}
            _ => out += "  never called: begin a new session of the client\n",
        }
        for left_out in &one.left_out {
            out += &format!(
                "  {} {} {}: {}, by a rule of captures\n",
                styled(style::DIM, "left out"),
                left_out.created_at,
                plain(&left_out.event),
                plain(&left_out.message)
            );
            out += &left_out.hint.map(|hint| format!("    {hint}\n")).unwrap_or_default();
        }
        for failure in &one.failures {
            out += &format!(
                "  {} {} {}: {}\n",
                styled(style::BAD, "failed"),
                failure.created_at,
                plain(&failure.event),
                plain(&failure.message)
            );
        }
    }
    if is_in_git && all.iter().any(HooksDoctorJson::is_in_use) {
        out += IN_GIT;
    }
    out
}
