//! The undo of a step, in the file's form.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ic_base::{Diagnosis, Result};
use ic_kernel::config::explain::ConfigPlace;
use ic_kernel::config::scalar::{ConfigScalar, brief};
use ic_kernel::config::units::Given;
use serde::de::IgnoredAny;
use serde_saphyr::Spanned;

use super::explain::{did_you_mean, invalid, place};
use super::file::{self, FileText, Loose};
use super::value::{At, argv, below, directory, environment, prose, retries, script, timeout};
use super::{StepAction, StepCompensation, StepRetries};

/// The keys that name an action, in the order of listings.
const ACTIONS: &str = "exec, shell, restore-file, kill-process, skip, pivot, retry";

/// The actions that are written as a single word.
const WORDS: [&str; 3] = ["skip", "pivot", "retry"];

/// The undo of a step. Errors: `invalid_workflow`.
pub(super) fn compensate(file: &Path, value: Spanned<Loose<Box<file::CompensateFields>>>) -> Result<StepCompensation> {
    let at = At::new(file, &value);
    match value.value {
        Loose::Scalar(ConfigScalar::Text(word)) => {
            let action = match word.as_str() {
                "skip" => StepAction::Skip(None),
                "pivot" => StepAction::Pivot(None),
                "retry" => StepAction::Retry(None),
                _ => return Err(not_a_word(at, &word)),
            };
            Ok(bare(action))
        }
        Loose::Scalar(other) => Err(not_an_action(at, &other)),
        Loose::List(_) => Err(not_an_action(at, &ConfigScalar::List)),
        Loose::Mapping(mapping) => from_mapping(file, at, *mapping),
    }
}

fn not_an_action(at: At<'_>, found: &ConfigScalar) -> Diagnosis {
    at.wrong(&found.instead_of("skip, pivot, retry or a mapping")).hint(EXAMPLE)
}

fn not_a_word(at: At<'_>, word: &str) -> Diagnosis {
    let wrong = at.wrong(&format!("{} where skip, pivot, retry or a mapping is expected", brief(word)));
    match did_you_mean(word, WORDS.into_iter()) {
        Some(hint) => wrong.hint(hint),
        None => wrong.hint(EXAMPLE),
    }
}

const EXAMPLE: &str = "a command is written {exec: [\"./undo.sh\", \"argument\"]} or {shell: \"./undo.sh argument\"}";

/// A compensation without anything but its action.
fn bare(action: StepAction) -> StepCompensation {
    StepCompensation {
        action,
        directory: None,
        environment: BTreeMap::new(),
        timeout: None,
        retries: StepRetries::default(),
        on_failure: true,
    }
}

fn from_mapping(file: &Path, at: At<'_>, mapping: file::CompensateFields) -> Result<StepCompensation> {
    let key = the_action(file, at, &mapping)?;
    refuse_needless(file, key, &mapping)?;
    let action = match key {
        "exec" => mapping.exec.0.map(|words| exec(file, words)),
        "shell" => mapping.shell.0.map(|text| script(At::new(file, &text), text.value).map(StepAction::Shell)),
        "restore-file" => mapping.restore_file.0.map(|paths| restored(file, paths).map(StepAction::RestoreFile)),
        "kill-process" => mapping.kill_process.0.map(|path| pid_file(file, &path).map(StepAction::KillProcess)),
        "skip" => mapping.skip.0.map(|text| reason(file, text).map(StepAction::Skip)),
        "pivot" => mapping.pivot.0.map(|text| reason(file, text).map(StepAction::Pivot)),
        // `the_action` names no other key.
        _ => mapping.retry.0.map(|text| reason(file, text).map(StepAction::Retry)),
    };
    // The action is there: `the_action` found this key.
    let Some(action) = action else { return Err(no_action(at)) };
    Ok(StepCompensation {
        action: action?,
        directory: directory(file, mapping.cwd)?,
        environment: environment(file, mapping.env)?,
        timeout: timeout(file, mapping.timeout)?,
        retries: retries(file, mapping.retries)?,
        on_failure: mapping.on_failure.0.is_none_or(|flag| flag.value.0),
    })
}

fn no_action(at: At<'_>) -> Diagnosis {
    at.wrong("the compensation has no action").hint(format!("give it one of: {ACTIONS}"))
}

/// The key of the only action. Errors if there is none, or if there are several.
fn the_action(file: &Path, at: At<'_>, mapping: &file::CompensateFields) -> Result<&'static str> {
    let given = [
        ("exec", stands(&mapping.exec)),
        ("shell", stands(&mapping.shell)),
        ("restore-file", stands(&mapping.restore_file)),
        ("kill-process", stands(&mapping.kill_process)),
        ("skip", stands(&mapping.skip)),
        ("pivot", stands(&mapping.pivot)),
        ("retry", stands(&mapping.retry)),
    ];
    let mut given: Vec<(ConfigPlace, &str)> =
        given.into_iter().filter_map(|(key, place)| place.map(|place| (place, key))).collect();
    // In the order of the file, so that the error points at the second action.
    given.sort_unstable();
    match given.as_slice() {
        [] => Err(no_action(at)),
        [(_, only)] => Ok(only),
        [(_, first), (place, second), ..] => {
            Err(invalid(file, Some(*place), &format!("a second action, `{second}` beside `{first}`"))
                .hint("a compensation has one action; a script may take several steps"))
        }
    }
}

/// Refuses keys without a meaning for the action: a directory where no command runs, a timeout where nothing runs.
fn refuse_needless(file: &Path, action: &str, mapping: &file::CompensateFields) -> Result<()> {
    let runs = matches!(action, "exec" | "shell");
    let acts = runs || matches!(action, "restore-file" | "kill-process");
    // An empty mapping has no entry to point at, and does no harm.
    let env = mapping.env.0.as_ref().and_then(|pairs| pairs.0.first());
    let needless = [
        ("cwd", runs, stands(&mapping.cwd)),
        ("env", runs, env.map(|(name, _)| place(name))),
        ("timeout", acts, stands(&mapping.timeout)),
        ("retries", acts, stands(&mapping.retries)),
        ("on-failure", acts, stands(&mapping.on_failure)),
    ];
    for (key, has_meaning, place) in needless {
        if place.is_some() && !has_meaning {
            return Err(invalid(file, place, &format!("`{key}` means nothing for `{action}`"))
                .hint(format!("leave out `{key}`")));
        }
    }
    Ok(())
}

/// The place of the value of a key, if the key is given.
fn stands<T>(given: &Given<Spanned<T>>) -> Option<ConfigPlace> {
    given.0.as_ref().map(place)
}

fn exec(file: &Path, words: Spanned<Vec<FileText>>) -> Result<StepAction> {
    let at = At::new(file, &words);
    Ok(StepAction::Exec { argv: argv(file, at, words.value)? })
}

fn restored(file: &Path, paths: Spanned<Loose<IgnoredAny>>) -> Result<Vec<PathBuf>> {
    const EXPECTED: &str = "a path or a list of paths";
    let at = At::new(file, &paths);
    match paths.value {
        Loose::Scalar(ConfigScalar::Text(path)) => Ok(vec![below(at, &path)?]),
        Loose::Scalar(other) => Err(at.wrong(&other.instead_of(EXPECTED))),
        Loose::Mapping(_) => Err(at.wrong(&ConfigScalar::Mapping.instead_of(EXPECTED))),
        Loose::List(paths) if paths.is_empty() => Err(at.wrong("the list of paths is empty")),
        Loose::List(paths) => paths.iter().map(|path| below(At::new(file, path), &path.value)).collect(),
    }
}

fn pid_file(file: &Path, path: &Spanned<ConfigScalar>) -> Result<PathBuf> {
    let at = At::new(file, path);
    match &path.value {
        ConfigScalar::Text(text) => below(at, text),
        other => Err(at.wrong(&other.instead_of("the path of a file that holds a process id"))),
    }
}

fn reason(file: &Path, text: FileText) -> Result<Option<String>> {
    prose(file, "the reason", text).map(Some)
}
