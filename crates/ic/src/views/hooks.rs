//! Hooks of coding agents.

use std::path::{Path, PathBuf};

use crate::clients::Client;
use crate::commands::hooks::{Edit, Installed};
use crate::hook_log::Line;
use crate::text::{path_text, plain, style, styled};
use crate::views::PathJson;
use crate::views::exact;

shape! {
    /// What became of a client's settings (`hooks install`, `hooks uninstall`).
    pub(crate) struct HooksJson from (client: &'static str, file: &Path, changed: bool, dry_run: bool, left: &[String]) {
        #[cfg_attr(test, schemars(extend("enum" = crate::clients::Client::WORDS)))]
        client: &'static str = client,
        /// The client's settings.
        config_file: String = file.to_string_lossy().into_owned(),
        #[serde(skip_serializing_if = "Option::is_none")]
        config_file_b64: Option<String> = exact(file),
        /// False if they were so already.
        changed: bool = changed,
        dry_run: bool = dry_run,
        /// Of a dry run, the text that the file would have; null where nothing would change.
        content: Option<String> = None,
        /// The events whose entry was changed by hand: it is left.
        events_left: Vec<String> = left.to_vec(),
        /// Whether git and captures leave the file out from now on, by `.git/info/exclude`.
        excluded: bool = false,
        /// Whether the client was made to trust the hooks (`--trust`).
        trusted: bool = false,
    }

    /// Whether the hooks of a client work (`hooks doctor`).
    pub(crate) struct HooksDoctorJson {
        #[cfg_attr(test, schemars(extend("enum" = crate::clients::Client::WORDS)))]
        pub(crate) client: &'static str,
        /// The settings that call ic.
        pub(crate) config_files: Vec<PathJson>,
        /// When a hook last called; null: none did, as far as the log goes.
        pub(crate) called_at: Option<String>,
        /// How long that took.
        pub(crate) duration_ms: Option<u64>,
        /// The newest calls that failed, oldest first.
        pub(crate) failures: Vec<HookFailureJson>,
    }

    /// A call of a hook that failed: the agent was let through.
    pub(crate) struct HookFailureJson {
        pub(crate) event: String,
        pub(crate) created_at: String,
        pub(crate) code: String,
        pub(crate) message: String,
    }
}

impl HooksJson {
    /// The same, and what an installation did besides.
    pub(crate) fn with(self, Installed { excluded, trusted }: Installed) -> Self {
        Self { excluded, trusted, ..self }
    }

    /// The same with the text that the file would have.
    pub(crate) fn with_content(self, content: String) -> Self {
        Self { content: Some(content), ..self }
    }
}

impl HooksDoctorJson {
    /// `lines`: of all clients, oldest first.
    pub(crate) fn new(client: &'static str, files: &[PathBuf], lines: &[Line]) -> Self {
        const SHOWN: usize = 5;
        let own: Vec<&Line> = lines.iter().filter(|line| line.client == client).collect();
        let failed: Vec<&&Line> = own.iter().filter(|line| line.code.is_some()).collect();
        let failures = failed.iter().skip(failed.len().saturating_sub(SHOWN)).map(|line| HookFailureJson {
            event: line.event.clone(),
            created_at: line.ended_at().to_string(),
            code: line.code.clone().unwrap_or_default(),
            message: line.message.clone().unwrap_or_default(),
        });
        Self {
            client,
            config_files: files.iter().map(|file| file.as_path().into()).collect(),
            called_at: own.last().map(|line| line.ended_at().to_string()),
            duration_ms: own.last().map(|line| line.ms),
            failures: failures.collect(),
        }
    }
}

/// What became of a client's settings. `installed`: of an installation, what else it did.
pub(crate) fn edited(client: Client, edit: &Edit, dry_run: bool, installed: Option<Installed>) -> String {
    let installs = installed.is_some();
    let Installed { excluded, trusted } = installed.unwrap_or_default();
    let file = path_text(&edit.file);
    let name = client.as_str();
    let mut out = match (edit.is_change(), dry_run, installs) {
        (false, _, true) => format!("The hooks are installed already: {file}\n"),
        (false, _, false) => format!("No hook of ic to remove: {file}\n"),
        (true, true, _) => format!("Would write {file}:\n{}", edit.text()),
        (true, false, true) => format!(
            "{} {file}\nFrom its next session on {name} records each prompt: see ic log; undo one with ic undo.\n",
            styled(style::GOOD, "installed in")
        ),
        (true, false, false) => format!("{} {file}\n", styled(style::GOOD, "removed from")),
    };
    if excluded && edit.is_change() {
        out.push_str("Git and captures leave it out, by .git/info/exclude: an undo neither removes hooks nor brings them back.\n");
    }
    if client == Client::Codex && installs && !dry_run {
        out.push_str(if trusted {
            "Codex trusts them.\n"
        } else {
            "Codex runs a hook only when it is trusted: type /hooks in it once, or install with --trust.\n"
        });
    }
    for event in &edit.left {
        out.push_str(&format!(
            "{} the entry of {} was changed by hand; remove it there\n",
            styled(style::WARN, "left:"),
            plain(event)
        ));
    }
    out
}

/// Whether hooks work, a client a block.
pub(crate) fn doctor(all: &[HooksDoctorJson]) -> String {
    let mut out = String::new();
    for one in all {
        out.push_str(&format!("{}\n", styled(style::STRONG, one.client)));
        if one.config_files.is_empty() {
            out.push_str(&match one.called_at {
                Some(_) => "  not in its settings, and called: by a plugin\n".to_owned(),
                None => format!("  not installed: ic hooks install {}\n", one.client),
            });
        }
        for file in &one.config_files {
            out.push_str(&format!("  installed in {}\n", plain(&file.path)));
        }
        match (&one.called_at, one.duration_ms) {
            (Some(at), Some(ms)) => out.push_str(&format!("  last called {at}, {ms} ms\n")),
            _ if one.config_files.is_empty() => {}
            _ => out.push_str("  never called: begin a new session of the client\n"),
        }
        for failure in &one.failures {
            out.push_str(&format!(
                "  {} {} {}: {}\n",
                styled(style::BAD, "failed"),
                failure.created_at,
                plain(&failure.event),
                plain(&failure.message)
            ));
        }
    }
    out
}
