//! Writes the part `rewind` of a configuration, and nothing else of it.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnose, Diagnosis, Result};
use ic_kernel::Kernel;
use ic_kernel::config::{self, DEVS_DATABASE};
use ic_rewind::{Profile, RelationalRollbackEngine, RewindTarget, create_devs};
use ic_worktree::CaptureSettings;
use serde_json::Value;

use super::rewind_records::options;

/// The result of setting a profile up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewindSetup {
    /// The profile that was set up.
    pub profile: Profile,
    /// The file of the database.
    pub database: PathBuf,
    /// The configuration to which the part was added.
    pub file: PathBuf,
    /// Whether the tables were made now.
    pub has_made_tables: bool,
    /// Whether the database exists.
    pub is_there: bool,
}

/// Sets a profile up: makes the tables of `devs`, and adds the part `rewind` to the configuration `file`.
///
/// `database`, from `directory`; `None`: beside the ledger. Errors: `not_on_server`; `config_not_changed` when the configuration has such a part, or tables
/// have the names already; `invalid_value` without the database of another program; `invalid_config` when it does not fit.
pub fn init(
    kernel: &Kernel,
    settings: &CaptureSettings,
    file: &Path,
    profile: Profile,
    database: Option<&Path>,
) -> Result<RewindSetup> {
    kernel.ledger.require_one_host("A rewind")?;
    let root = &kernel.project.root;
    let named = database.map(|path| kernel.project.directory.join(path));
    let path = match (&named, profile) {
        (Some(path), _) => path.clone(),
        (None, Profile::Devs) => kernel.store().join(DEVS_DATABASE),
        (None, Profile::Langgraph) => {
            return Err(Diagnosis::new(Code::InvalidValue, "The database of the checkpointer was not named.")
                .hint("name it: --database PATH"));
        }
    };
    let target = RewindTarget::of_profile(profile, &path);
    let written = named.as_deref().map(|path| within(path, root)).transpose()?;
    let part = part(&target, written.as_deref(), &[])?;
    // Composed before the tables are made: a configuration that takes no section must leave no tables behind.
    let new = composed(file, &part)?;
    let is_there = path.exists();
    let has_made_tables = profile == Profile::Devs && create_devs(&path, settings.busy_timeout)?;
    // The database of another program must fit the profile before a configuration names it.
    if is_there && profile != Profile::Devs {
        RelationalRollbackEngine::open(&target, options(settings))?;
    }
    replace(file, &new)?;
    let is_there = is_there || has_made_tables;
    Ok(RewindSetup { profile, database: path, file: file.to_owned(), has_made_tables, is_there })
}

/// Adds a target as the part `rewind` to the configuration `file`. Errors: `config_not_changed` when it has one already.
pub fn add_to_configuration(file: &Path, root: &Path, target: &RewindTarget, notes: &[String]) -> Result<()> {
    replace(file, &composed(file, &configuration_text(root, target, notes)?)?)
}

/// The part `rewind` of a configuration in `root` for a target, as YAML, with notes as comments.
///
/// Errors: `invalid_value` when the path of the database is not UTF-8, which no YAML can be.
pub fn configuration_text(root: &Path, target: &RewindTarget, notes: &[String]) -> Result<String> {
    part(target, Some(&within(&target.database, root)?), notes)
}

/// The path in the form that the configuration has: from the root if it is below it.
fn within(path: &Path, root: &Path) -> Result<String> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let written = path.strip_prefix(root).unwrap_or(&path);
    written.to_str().map(str::to_owned).ok_or_else(|| {
        Diagnosis::new(Code::InvalidValue, format!("The path {} is not UTF-8, and a configuration is.", path.display()))
            .hint("give the database a name in UTF-8, or a link to it")
    })
}

fn part(target: &RewindTarget, database: Option<&str>, notes: &[String]) -> Result<String> {
    let value = |target: &RewindTarget| {
        serde_json::to_value(RewindTarget { database: PathBuf::new(), ..target.clone() })
            .map_err(|e| Diagnosis::new(Code::Internal, format!("The configuration cannot be written: {e}.")))
    };
    let mut keys = serde_json::Map::new();
    if let Some(profile) = target.profile {
        keys.insert("profile".to_owned(), value(target)?["profile"].clone());
        // The parts that the profile supplies are left to it.
        if value(&RewindTarget::of_profile(profile, Path::new("")))? != value(target)? {
            keys.extend(own_keys(value(target)?));
        }
    } else {
        keys.extend(own_keys(value(target)?));
    }
    if let Some(database) = database {
        keys.shift_insert(
            keys.len().min(usize::from(target.profile.is_some())),
            "database".to_owned(),
            database.into(),
        );
    }
    let mut text: String = notes.iter().map(|note| format!("# {}\n", note.replace('\n', " "))).collect();
    text.push_str("rewind:\n");
    mapping(&keys, 2, &mut text);
    Ok(text)
}

fn own_keys(value: Value) -> serde_json::Map<String, Value> {
    match value {
        Value::Object(mut keys) => {
            keys.shift_remove("database");
            keys.shift_remove("profile");
            keys
        }
        _ => serde_json::Map::new(),
    }
}

/// A mapping as YAML in block style, its lists of plain values in flow style.
fn mapping(keys: &serde_json::Map<String, Value>, indent: usize, out: &mut String) {
    let space = " ".repeat(indent);
    for (key, value) in keys {
        match value {
            Value::Object(inner) => {
                out.push_str(&format!("{space}{key}:\n"));
                mapping(inner, indent + 2, out);
            }
            Value::Array(items) if items.iter().any(Value::is_object) => {
                out.push_str(&format!("{space}{key}:\n"));
                for item in items.iter().filter_map(Value::as_object) {
                    let mut text = String::new();
                    mapping(item, indent + 4, &mut text);
                    // The first key is on the line of the dash.
                    out.push_str(&format!("{space}  - {}", text.trim_start()));
                }
            }
            other => out.push_str(&format!("{space}{key}: {}\n", flow(other))),
        }
    }
}

fn flow(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::String(text) if is_plain(text) => text.clone(),
        // A value that needs quotes gets those of JSON, which YAML reads, too.
        other => other.to_string(),
    }
}

/// Whether a text needs no quotes, in any version of YAML.
fn is_plain(text: &str) -> bool {
    // Versions of YAML read these as truth values, as nothing or as a number.
    const WORDS: [&str; 10] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan"];
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-'))
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}

/// The configuration with one more part. Errors: `config_not_changed` when it has such a part, or its syntax allows no addition at its end.
fn composed(file: &Path, part: &str) -> Result<String> {
    let old = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == ErrorKind::NotFound => Vec::new(),
        Err(e) => return Err(e).while_doing(|| format!("reading {}", file.display())),
    };
    if config::parse(&old, file)?.rewind.is_some() {
        return Err(Diagnosis::new(
            Code::ConfigNotChanged,
            format!("{} has a section `rewind` already; it is not overwritten.", file.display()),
        )
        .hint("change it there, or remove it first"));
    }
    // It was parsed, so it is UTF-8.
    let mut new = String::from_utf8_lossy(&old).into_owned();
    if !new.is_empty() && !new.ends_with('\n') {
        new.push('\n');
    }
    new.push_str(part);
    // Read again: a file in flow style, or with an open block at its end, takes no section there.
    match config::parse(new.as_bytes(), file) {
        Ok(config) if config.rewind.is_some() => Ok(new),
        _ => Err(Diagnosis::new(
            Code::ConfigNotChanged,
            format!("A section cannot be added at the end of {}; it was not changed.", file.display()),
        )
        .hint(format!("write it there yourself:\n{part}"))),
    }
}

/// Replaces the content of a file, or of the file to which a link there leads, as a whole or not at all.
fn replace(file: &Path, content: &str) -> Result<()> {
    // A link stays a link: its target is replaced.
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let mut partial = file.clone().into_os_string();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let write = || -> std::io::Result<()> {
        let mut new = fs::File::create(&partial)?;
        if let Ok(meta) = fs::metadata(&file) {
            // The rename would otherwise leave the file with the permissions of a new one.
            new.set_permissions(meta.permissions())?;
        }
        new.write_all(content.as_bytes())?;
        // The content is durable before the rename: after a power loss the name leads to the old content or to all of
        // the new.
        new.sync_all()?;
        fs::rename(&partial, &file)
    };
    let written = write().while_doing(|| format!("writing {}", file.display()));
    if written.is_err() {
        // A rest that cannot be removed is replaced by the next attempt.
        let _ = fs::remove_file(&partial);
    }
    written
}
