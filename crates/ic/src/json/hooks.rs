//! Hooks of coding agents.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{PathJson, exact};
use crate::commands::hooks::Installed;
use crate::hook_log::Line;

/// What became of a client's settings (`hooks install`, `hooks uninstall`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HooksJson {
    #[cfg_attr(test, schemars(extend("enum" = crate::clients::Client::WORDS)))]
    client: &'static str,
    /// The client's settings.
    config_file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    config_file_b64: Option<String>,
    /// False if they were so already.
    changed: bool,
    dry_run: bool,
    /// Of a dry run, the text that the file would have; null where nothing would change.
    content: Option<String>,
    /// The events whose entry was changed by hand: it is left.
    events_left: Vec<String>,
    /// Whether git and captures leave the file out from now on, by `.git/info/exclude`.
    excluded: bool,
    /// Whether the client was made to trust the hooks (`--trust`).
    trusted: bool,
}

impl HooksJson {
    pub(crate) fn new(
        client: &'static str,
        file: &Path,
        changed: bool,
        dry_run: bool,
        left: &[String],
    ) -> Self {
        Self {
            client,
            config_file: file.to_string_lossy().into_owned(),
            config_file_b64: exact(file),
            changed,
            dry_run,
            content: None,
            events_left: left.to_vec(),
            excluded: false,
            trusted: false,
        }
    }
}

/// Whether the hooks of a client work (`hooks doctor`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

/// A call of a hook that failed: the agent continued.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HookFailureJson {
    pub(crate) event: String,
    pub(crate) created_at: String,
    pub(crate) code: String,
    pub(crate) message: String,
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
