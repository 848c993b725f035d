//! Errors that say where the file is wrong and what would be right.

use std::path::Path;

use ic_base::{Code, Diagnosis};
use serde_saphyr::{Error, MessageFormatter, UserMessageFormatter};

use super::Loaded;
use super::scalar::brief;

/// A place in the file: line and column, from 1.
pub type ConfigPlace = (u64, u64);

/// What the parser found wrong, as `invalid_config`.
pub(super) fn explain(path: &Path, error: &Error) -> Diagnosis {
    let place = error.location().map(|location| (location.line(), location.column()));
    match cause(error) {
        Error::SerdeUnknownField { field, expected, .. } => {
            invalid(path, place, &format!("unknown key {}", key(field)), Some(known(field, expected)))
        }
        other => invalid(path, place, &sentence(other), None),
    }
}

/// `invalid_config` with the file and, if it is known, the place.
pub(super) fn invalid(path: &Path, place: Option<ConfigPlace>, what: &str, hint: Option<String>) -> Diagnosis {
    let name = path.display();
    let message = match place {
        Some((line, column)) => format!("{name}, line {line}, column {column}: {what}."),
        None => format!("{name}: {what}."),
    };
    let mut diagnosis = Diagnosis::new(Code::InvalidConfig, message)
        .hint(hint.unwrap_or_else(|| "correct the file; a project without one has the defaults".to_owned()))
        .detail("file", path.to_string_lossy().into_owned());
    if let Some((line, column)) = place {
        diagnosis = diagnosis.detail("line", line).detail("column", column);
    }
    diagnosis
}

/// The error itself, where the parser wraps it to say that an alias led to it.
pub fn cause(error: &Error) -> &Error {
    match error {
        Error::AliasError { error, .. } => cause(error),
        other => other,
    }
}

/// What the parser found wrong, as a sentence without its end.
pub fn sentence(error: &Error) -> String {
    match error {
        Error::Message { msg, .. } | Error::ExternalMessage { msg, .. } => msg.trim_end_matches('.').to_owned(),
        Error::DuplicateMappingKey { key: Some(twice), .. } => {
            format!("the key {} appears twice", key(twice))
        }
        Error::DuplicateMappingKey { key: None, .. } => "a key appears twice".to_owned(),
        Error::Unexpected { expected, .. } => match *expected {
            "mapping start" => "a mapping is expected, as in `key: value`".to_owned(),
            "sequence start" => "a list is expected, as in [a, b]".to_owned(),
            "string scalar" => "a single text is expected".to_owned(),
            other => format!("{other} is expected"),
        },
        Error::NullIntoString { .. } => "nothing where a single text is expected".to_owned(),
        Error::MultipleDocuments { .. } => "a second document begins; the file may hold one".to_owned(),
        Error::UnknownAnchor { .. } => "the alias has no anchor".to_owned(),
        Error::RecursiveReferencesRequireWeakTypes { .. } => "the alias stands inside its own anchor".to_owned(),
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            "too much nesting, or too many aliases, for a configuration".to_owned()
        }
        other => UserMessageFormatter.format_message(other).trim_end_matches('.').to_owned(),
    }
}

/// What to write instead of `field`, which is not among the keys of its mapping.
fn known(field: &str, here: &[&str]) -> String {
    // What may be meant, in this order: a key of this mapping; a flat key, `rollback.enabled`, as one word; a key of
    // another mapping.
    if let Some(near) = closest(field, here.iter().map(|key| (*key, *key))) {
        return format!("did you mean `{near}`?");
    }
    let settings = Loaded::default().settings();
    let keys = || settings.iter().map(|setting| setting.key);
    if keys().any(|key| key == field) {
        return format!("keys are nested: `{}:` on lines of their own", field.replace('.', ":`, `"));
    }
    let ends = keys().filter_map(|key| Some((key, key.rsplit('.').next()?)));
    match closest(field, ends) {
        Some(elsewhere) => format!("did you mean `{elsewhere}`?"),
        None => format!("known here: {}", here.join(", ")),
    }
}

/// The candidate whose name is meant by another spelling or by a slip of at most two letters.
pub fn closest<'k>(field: &str, candidates: impl Iterator<Item = (&'k str, &'k str)>) -> Option<&'k str> {
    let plain = |text: &str| text.to_lowercase().replace(['_', '-', ' '], "");
    let field = plain(field);
    candidates
        .map(|(candidate, name)| (candidate, plain(name)))
        // No more slips than the lengths differ: a key of a megabyte is not compared.
        .filter(|(_, name)| field.len().abs_diff(name.len()) <= 2)
        .map(|(candidate, name)| (distance(&field, &name), name.len(), candidate))
        // In a short name two slips are half of it, so nearly every other short name would be meant.
        .filter(|(distance, length, _)| *distance <= 2 && distance * 2 < *length)
        .min()
        .map(|(_, _, candidate)| candidate)
}

/// Levenshtein's distance: the least number of letters to add, remove or replace.
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

/// A key of the file, set off from the sentence around it.
pub fn key(text: &str) -> String {
    let quoted = brief(text);
    match quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        // Nothing in it was escaped or cut.
        Some(plain) if plain == text => format!("`{text}`"),
        _ => quoted,
    }
}
