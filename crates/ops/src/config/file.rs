//! The file's form, and errors that say where.

use std::collections::BTreeSet;
use std::path::Path;

use ic_base::{Code, Diagnosis, Result};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_saphyr::Error;

use super::Config;
use super::units::{Size, Span};

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct File {
    rollback: Option<Rollback>,
    /// Parts with configurations of their own.
    #[serde(rename = "rewind")]
    _rewind: Option<IgnoredAny>,
    #[serde(rename = "workflow")]
    _workflow: Option<IgnoredAny>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct Rollback {
    enabled: Option<bool>,
    checkpointing: Option<Checkpointing>,
    retention: Option<Retention>,
    on_failure: Option<OnFailure>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct Checkpointing {
    auto: Option<bool>,
    include_git: Option<bool>,
    max_file_size: Option<Size>,
    max_files: Option<u64>,
    include_ignored: Option<Vec<String>>,
    include_secrets: Option<Vec<String>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct Retention {
    max_age: Option<Span>,
    keep_last: Option<u32>,
    keep_manual: Option<bool>,
    max_size: Option<Size>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct OnFailure {
    prompt: Option<bool>,
    auto_rollback: Option<bool>,
}

/// The configuration that a file asks for, and the keys that it sets.
pub(super) fn parse(bytes: &[u8], path: &Path) -> Result<(Config, BTreeSet<&'static str>)> {
    let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let before = &bytes[..e.valid_up_to()];
        let line = before.split(|b| *b == b'\n').count();
        invalid(path, Some((line as u64, 1)), "it is not UTF-8", None)
    })?;
    let file: Option<File> =
        serde_saphyr::from_str_with_options(text, options).map_err(|e| explain(path, &e))?;
    Ok(apply(file.unwrap_or_default()))
}

fn apply(file: File) -> (Config, BTreeSet<&'static str>) {
    let (mut config, mut set) = (Config::default(), BTreeSet::new());
    let rollback = file.rollback.unwrap_or_default();
    let (checkpointing, retention, on_failure) = (
        rollback.checkpointing.unwrap_or_default(),
        rollback.retention.unwrap_or_default(),
        rollback.on_failure.unwrap_or_default(),
    );
    macro_rules! take {
        ($($key:literal: $given:expr => $target:expr;)*) => {$(
            if let Some(value) = $given {
                $target = value;
                set.insert($key);
            }
        )*};
    }
    take! {
        "rollback.enabled": rollback.enabled => config.enabled;
        "rollback.checkpointing.auto": checkpointing.auto => config.checkpointing.auto;
        "rollback.checkpointing.include-git": checkpointing.include_git => config.checkpointing.include_git;
        "rollback.checkpointing.max-file-size": checkpointing.max_file_size.map(|s| s.0) => config.checkpointing.max_file_size;
        "rollback.checkpointing.max-files": checkpointing.max_files => config.checkpointing.max_files;
        "rollback.checkpointing.include-ignored": checkpointing.include_ignored => config.checkpointing.include_ignored;
        "rollback.checkpointing.include-secrets": checkpointing.include_secrets => config.checkpointing.include_secrets;
        "rollback.retention.max-age": retention.max_age.map(|s| s.0) => config.retention.max_age;
        "rollback.retention.keep-last": retention.keep_last => config.retention.keep_last;
        "rollback.retention.keep-manual": retention.keep_manual => config.retention.keep_manual;
        "rollback.retention.max-size": retention.max_size.map(|s| Some(s.0)) => config.retention.max_size;
        "rollback.on-failure.prompt": on_failure.prompt => config.on_failure.prompt;
        "rollback.on-failure.auto-rollback": on_failure.auto_rollback => config.on_failure.auto_rollback;
    }
    (config, set)
}

fn explain(path: &Path, error: &Error) -> Diagnosis {
    let place = error.location().map(|location| (location.line(), location.column()));
    match error {
        Error::SerdeUnknownField { field, expected, .. } => {
            let hint = match closest(field, expected) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known here: {}", expected.join(", ")),
            };
            invalid(path, place, &format!("unknown key `{field}`"), Some(hint))
        }
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().unwrap_or("?");
            invalid(path, place, &format!("the key `{key}` stands twice"), None)
        }
        Error::SerdeInvalidType { unexpected, expected, .. }
        | Error::SerdeInvalidValue { unexpected, expected, .. } => {
            invalid(path, place, &format!("{unexpected} where {expected} is expected"), None)
        }
        other => {
            let message = other.to_string();
            // The place is said in our own words.
            let message = message.split(" at line ").next().unwrap_or(&message).to_owned();
            invalid(path, place, message.trim_end_matches('.'), None)
        }
    }
}

fn invalid(path: &Path, place: Option<(u64, u64)>, what: &str, hint: Option<String>) -> Diagnosis {
    let name = path.display();
    let message = match place {
        Some((line, column)) => format!("{name}, line {line}, column {column}: {what}."),
        None => format!("{name}: {what}."),
    };
    Diagnosis::new(Code::InvalidConfig, message)
        .hint(
            hint.unwrap_or_else(|| {
                "see what is in force, and the names of all keys: ic config show".to_owned()
            }),
        )
        .detail("file", path.to_string_lossy().into_owned())
        .detail("line", place.map(|(line, _)| line))
        .detail("column", place.map(|(_, column)| column))
}

/// The known key that is meant by another spelling or by a slip of at most two letters.
fn closest<'k>(field: &str, known: &[&'k str]) -> Option<&'k str> {
    let plain = |text: &str| text.to_lowercase().replace(['_', '-', ' '], "");
    known
        .iter()
        .map(|key| (distance(&plain(field), &plain(key)), *key))
        .filter(|(distance, key)| *distance <= 2 && *distance < key.len())
        .min()
        .map(|(_, key)| key)
}

/// Levenshtein's distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let cost = usize::from(x != *y);
            let next = (diagonal + cost).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = row[j + 1];
            row[j + 1] = next;
        }
    }
    row[b.len()]
}
