//! Errors that say where the workflow is wrong and what would be right.

use std::path::Path;

use ic_base::{Code, Diagnosis};
use ic_kernel::config::explain::{ConfigPlace, cause, closest, key, sentence};
use serde_saphyr::{Error, Spanned};

/// Keys of other programs' workflow files, and their names here.
const ELSEWHERE: &[(&str, &str)] = &[
    ("depends-on", "needs"),
    ("depends_on", "needs"),
    ("after", "needs"),
    ("command", "run"),
    ("cmd", "run"),
    ("script", "run"),
    ("working-directory", "cwd"),
    ("workdir", "cwd"),
    ("dir", "cwd"),
    ("environment", "env"),
    ("undo", "compensate"),
    ("rollback", "compensate"),
    ("retry", "retries"),
    ("delay", "backoff"),
    ("attempts", "max"),
    ("count", "max"),
];

/// The place of a value: for an alias, the place of the alias.
pub(super) fn place<T>(at: &Spanned<T>) -> ConfigPlace {
    (at.referenced.line(), at.referenced.column())
}

/// What the parser found wrong, as `invalid_workflow`.
pub(super) fn explain(path: &Path, error: &Error) -> Diagnosis {
    let place = error.location().map(|location| (location.line(), location.column()));
    match cause(error) {
        Error::SerdeUnknownField { field, expected, .. } => {
            invalid(path, place, &format!("unknown key {}", key(field))).hint(known(field, expected))
        }
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            invalid(path, place, "too much nesting, or too many aliases, for a workflow")
        }
        other => invalid(path, place, &sentence(other)),
    }
}

/// `invalid_workflow` with the file and, if it is known, the place in it.
pub(super) fn invalid(path: &Path, place: Option<ConfigPlace>, what: &str) -> Diagnosis {
    let name = path.display();
    let message = match place {
        Some((line, column)) => format!("{name}, line {line}, column {column}: {what}."),
        None => format!("{name}: {what}."),
    };
    let mut diagnosis = Diagnosis::new(Code::InvalidWorkflow, message)
        .hint("correct the file, then check it: ic workflow validate FILE")
        .detail("file", path.to_string_lossy().into_owned());
    if let Some((line, column)) = place {
        diagnosis = diagnosis.detail("line", line).detail("column", column);
    }
    diagnosis
}

/// Asks whether the nearest of `names` was meant; `None` if none is near.
pub(super) fn did_you_mean<'n>(text: &str, names: impl Iterator<Item = &'n str>) -> Option<String> {
    closest(text, names.map(|name| (name, name))).map(|near| format!("did you mean `{near}`?"))
}

/// A hint for `field`, which is not among the keys of its mapping.
fn known(field: &str, here: &[&str]) -> String {
    let elsewhere = || {
        let (_, name) = ELSEWHERE.iter().find(|(theirs, ours)| *theirs == field && here.contains(ours))?;
        Some(format!("did you mean `{name}`?"))
    };
    elsewhere()
        .or_else(|| did_you_mean(field, here.iter().copied()))
        .unwrap_or_else(|| format!("known here: {}", here.join(", ")))
}
