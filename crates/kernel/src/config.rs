//! The project's configuration: `.ic.yaml` in its root (seed 000's keys and defaults).

pub mod explain;
mod file;
mod rewind;
pub mod scalar;
pub mod units;

use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ic_base::{Diagnose, Diagnosis, Result};
use ic_checkpoint::capture::Flush;
use ic_checkpoint::retention::Policy;
use serde_json::{Value, json};

use crate::kernel::Kernel;

pub use rewind::{DEVS_DATABASE, Rewinding};

/// The configuration that the content of a file asks for. Errors: `invalid_config`.
pub fn parse(bytes: &[u8], path: &Path) -> Result<Config> {
    file::parse(bytes, path).map(|(config, _)| config)
}

/// The name of the configuration's file in a project's root.
pub const FILE_NAME: &str = ".ic.yaml";

/// More bytes than any configuration has.
const LONGEST: u64 = 1_000_000;

/// Everything that can be configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Whether checkpoints are taken along the way, and failures ask about a rollback.
    pub enabled: bool,
    /// How checkpoints are taken.
    pub checkpointing: Checkpointing,
    /// How long checkpoints are kept.
    pub retention: Retention,
    /// What happens when a step of a workflow fails.
    pub on_failure: FailureConfig,
    /// What becomes of an agent's command that destroys what cannot be undone, as far as the project says; it can only tighten.
    pub guard: Option<Guard>,
    /// Whether the gate of a run blocks the stop of an agent that works for it.
    pub gate: bool,
    /// The application's database that can be rewound.
    pub rewind: Option<Rewinding>,
}

ic_base::words! {
    /// What becomes of an agent's command that destroys what cannot be undone; the later ones are tighter.
    #[derive(PartialOrd, Ord)]
    pub enum Guard {
        /// The command runs without a question.
        Allow = "allow",
        /// The person at the agent decides.
        Ask = "ask",
        /// The command does not run, and the agent is told why.
        Deny = "deny",
    }
}

impl Guard {
    /// The setting in force: the user's own, tightened by the project's. Where neither says anything, the person is asked.
    pub fn in_force(own: Option<Self>, of_project: Option<Self>) -> Self {
        own.unwrap_or(Self::Ask).max(of_project.unwrap_or(Self::Allow))
    }
}

/// How checkpoints are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpointing {
    /// Whether a run takes one when it begins and whenever it moves.
    pub auto: bool,
    /// Whether git's state is recorded.
    pub include_git: bool,
    /// Larger files are left out, in bytes.
    pub max_file_size: u64,
    /// Trees with more files are refused.
    pub max_files: u64,
    /// Patterns of ignored files that are captured anyway.
    pub include_ignored: Vec<String>,
    /// Patterns of likely secrets that are captured anyway.
    pub include_secrets: Vec<String>,
    /// How stores through memory maps are noticed.
    pub flush: Flush,
}

/// How long checkpoints are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// Older ones may go.
    pub max_age: Duration,
    /// The number of newest checkpoints of each lineage that are kept, however old.
    pub keep_last: u32,
    /// The number of newest points of each unfinished run whose checkpoints are kept, however old, beside those of phases and steps.
    pub points: u32,
    /// Whether checkpoints that a person asked for are kept, however old.
    pub keep_manual: bool,
    /// The most bytes that the store may take; `None`: no limit.
    pub max_size: Option<u64>,
}

/// The size of a store beyond which the oldest checkpoints go, unless a configuration says otherwise. A project of ten thousand files and
/// an agent that works on it for months stay far below it, and it fills no disk of today.
pub const MAX_SIZE: u64 = 5_000_000_000;

/// What happens when a step of a workflow fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureConfig {
    /// Whether the person at the terminal is asked.
    pub prompt: bool,
    /// Whether it is rolled back without asking.
    pub auto_rollback: bool,
}

impl Retention {
    /// The part of it that decides which checkpoints go; `max_size` is applied on its own.
    pub fn policy(&self) -> Policy {
        Policy {
            max_age: self.max_age,
            keep_last: usize::try_from(self.keep_last).unwrap_or(usize::MAX),
            points: usize::try_from(self.points).unwrap_or(usize::MAX),
            keep_manual: self.keep_manual,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            enabled: true,
            checkpointing: Checkpointing {
                auto: true,
                include_git: true,
                max_file_size: 10_000_000,
                max_files: 1_000_000,
                include_ignored: Vec::new(),
                include_secrets: Vec::new(),
                flush: Flush::Auto,
            },
            retention: Retention {
                max_age: Duration::from_hours(168),
                keep_last: 5,
                points: 200,
                keep_manual: true,
                max_size: Some(MAX_SIZE),
            },
            on_failure: FailureConfig { prompt: true, auto_rollback: false },
            guard: None,
            gate: false,
            rewind: None,
        }
    }
}

/// A configuration and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Loaded {
    /// What is in force.
    pub config: Config,
    /// The file that was read.
    pub file: Option<PathBuf>,
    /// The keys that the file sets.
    set: BTreeSet<&'static str>,
}

/// One setting in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Its flat key: `rollback.retention.keep-last`.
    pub key: &'static str,
    /// Its value; sizes in bytes, durations as text.
    pub value: Value,
    /// Whether the file sets it.
    pub from_file: bool,
    /// What it does not do, where that may surprise, or what decides it where the file does not.
    pub note: Option<&'static str>,
}

/// The root that holds a project's directory, where its configuration is: the top of its git work tree; without git the caller's
/// project, if the directory lies in it, else the directory itself.
pub fn root_of(kernel: &Kernel, project_dir: &Path) -> PathBuf {
    root_seen_from(&kernel.project.root, project_dir)
}

/// As [`root_of`], for a caller in the project with this root.
pub fn root_seen_from(caller: &Path, project_dir: &Path) -> PathBuf {
    let top = ic_ledger::project_root(project_dir);
    // Without git nothing says where the project of a directory ends, so the caller's root decides.
    if ic_ledger::git_dirs(&top).is_none() && project_dir.starts_with(caller) {
        return caller.to_owned();
    }
    top
}

/// Reads the configuration of a project: the file that was named, else `.ic.yaml` in its root, else the defaults.
///
/// Errors: `invalid_config`, with file, line and column; also for a file that was named and is not there, and for a
/// link in its place that leads nowhere.
pub fn load(root: &Path, named: Option<&Path>) -> Result<Loaded> {
    let path = named.map_or_else(|| root.join(FILE_NAME), Path::to_owned);
    let Some(meta) = meta_of(&path, named.is_some())? else { return Ok(Loaded::default()) };
    // A file in a shared directory such as `/tmp` could be another user's trap: it names programs that this process would run.
    if named.is_none() && !ic_ledger::trust::is_believable(&path, root) {
        let hint = "copy its settings into a directory of your own, or name it: IC_CONFIG";
        let what = "it belongs to another user, in a directory where everybody may write";
        return Err(explain::invalid(&path, None, what, Some(hint.to_owned())));
    }
    let bytes = content(&path, &meta)?;
    let (config, set) = file::parse(&bytes, &path)?;
    Ok(Loaded { config, file: Some(path), set })
}

/// What the user's own file says of hooks, `~/.config/ic/config.yaml`: what a project's file must not weaken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnHooks {
    /// What becomes of commands that destroy what cannot be undone.
    pub guard: Option<Guard>,
    /// Whether gates hold stops back, in every project.
    pub gate: bool,
}

/// The user's own settings of hooks.
///
/// Errors: `invalid_config`; those of reading the file.
pub fn own_hooks(home: Option<&Path>) -> Result<OwnHooks> {
    let Some(path) = home.map(|home| home.join(".config/ic/config.yaml")) else {
        return Ok(OwnHooks::default());
    };
    let Some(meta) = meta_of(&path, false)? else { return Ok(OwnHooks::default()) };
    file::parse_own(&content(&path, &meta)?, &path)
}

/// The metadata of a configuration's file; `None` if there is nothing at the path. `named`: the user named this very file.
///
/// Errors: `invalid_config` for a name that leads nowhere.
fn meta_of(path: &Path, named: bool) -> Result<Option<fs::Metadata>> {
    let is_absent = |e: &std::io::Error| matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    match fs::metadata(path) {
        Ok(meta) => Ok(Some(meta)),
        // A name that leads nowhere is a mistake; a project without a file has the defaults.
        Err(e) if is_absent(&e) && !named && !leads_nowhere(path) => Ok(None),
        // A link that leads nowhere is not an absent file: the user believes that a configuration is in force.
        Err(e) if is_absent(&e) => Err(absent(path, named)),
        Err(e) => Err(e).while_doing(|| format!("reading {}", path.display())),
    }
}

/// Whether the path, or the nearest directory above it that is there, is a link to nothing.
fn leads_nowhere(path: &Path) -> bool {
    path.ancestors().find_map(|one| fs::symlink_metadata(one).ok()).is_some_and(|meta| meta.is_symlink())
}

/// The content of a configuration. Errors: `invalid_config` for what is not a file, or too long.
fn content(path: &Path, meta: &fs::Metadata) -> Result<Vec<u8>> {
    let bytes = if meta.is_file() { read(path)? } else { None };
    bytes.ok_or_else(|| explain::invalid(path, None, "it is not a file of at most 1 MB", None))
}

/// The content; `None` if it is too long.
fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    fs::File::open(path)
        // Not by the size that stat(2) tells: the file may grow while it is read.
        .and_then(|file| file.take(LONGEST + 1).read_to_end(&mut bytes))
        .while_doing(|| format!("reading {}", path.display()))?;
    Ok((bytes.len() as u64 <= LONGEST).then_some(bytes))
}

fn absent(path: &Path, named: bool) -> Diagnosis {
    let (what, hint) = if named {
        ("it does not exist", "IC_CONFIG names it: correct or unset it")
    } else {
        ("it is a dangling link", "correct or remove the link")
    };
    explain::invalid(path, None, what, Some(hint.to_owned()))
}

impl Loaded {
    /// Every setting, in order.
    pub fn settings(&self) -> Vec<Setting> {
        // The pattern has no `..`, so a new part of the configuration does not compile until it is listed here.
        let Config { enabled, checkpointing: c, retention: r, on_failure: f, guard, gate, rewind } = &self.config;
        let all = [
            ("rollback.enabled", json!(enabled)),
            ("rollback.checkpointing.auto", json!(c.auto)),
            ("rollback.checkpointing.include-git", json!(c.include_git)),
            ("rollback.checkpointing.max-file-size", json!(c.max_file_size)),
            ("rollback.checkpointing.max-files", json!(c.max_files)),
            ("rollback.checkpointing.include-ignored", json!(c.include_ignored)),
            ("rollback.checkpointing.include-secrets", json!(c.include_secrets)),
            ("rollback.checkpointing.flush", json!(c.flush.as_str())),
            ("rollback.retention.max-age", json!(units::written(r.max_age))),
            ("rollback.retention.keep-last", json!(r.keep_last)),
            ("rollback.retention.points", json!(r.points)),
            ("rollback.retention.keep-manual", json!(r.keep_manual)),
            ("rollback.retention.max-size", json!(r.max_size)),
            ("rollback.on-failure.prompt", json!(f.prompt)),
            ("rollback.on-failure.auto-rollback", json!(f.auto_rollback)),
            ("hooks.guard", json!(guard.unwrap_or(Guard::Ask).as_str())),
            ("hooks.gate", json!(gate)),
        ];
        all.into_iter()
            .chain(Rewinding::settings(rewind.as_ref()))
            .map(|(key, value)| {
                let note = match key {
                    "rollback.checkpointing.flush" => Some(unseen(c.flush)),
                    "hooks.guard" => Some("a project can only make the settings of ~/.config/ic/config.yaml stricter"),
                    _ => rewind.as_ref().and_then(|rewind| rewind.note(key)),
                };
                Setting { key, value, from_file: self.set.contains(key), note }
            })
            .collect()
    }
}

/// The stores through memory maps that a checkpoint may miss.
fn unseen(flush: Flush) -> &'static str {
    match flush {
        Flush::Auto => "misses what processes store through memory maps that /proc does not show",
        Flush::Always => "misses on tmpfs what processes store through memory maps that /proc does not show",
        Flush::Never => "misses what processes store through memory maps",
    }
}

#[cfg(test)]
mod tests;
