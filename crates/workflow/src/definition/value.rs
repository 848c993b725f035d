//! Values of steps and compensations, each checked at its place.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use ic_base::{Diagnosis, Label, Result, check_text};
use ic_kernel::config::explain::ConfigPlace;
use ic_kernel::config::scalar::{ConfigScalar, brief};
use ic_kernel::config::units::{Given, Span};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde_saphyr::Spanned;

use super::StepRetries;
use super::explain::{did_you_mean, invalid, place};
use super::file::{self, FileText, Loose, Pairs};

/// The longest text for people, in bytes, as on the command line.
const MAX_PROSE: usize = 64 * 1024;

/// More repetitions than a person would wait for.
const MAX_RETRIES: u64 = 1_000;

/// A longer time is a mistake, and the sum of it and the present time must be a time.
const LONGEST_DURATION: Duration = Duration::from_hours(365 * 24);

/// The variables that the executor sets for every step.
const RESERVED: &[&str] = &["IC_DB", "IC_RUN", "IC_DISPATCH", "IC_STEP", "IC_OUTPUTS", "IC_IDEMPOTENCY_KEY"];

/// A place in a file, where a value is right or wrong.
#[derive(Clone, Copy)]
pub(super) struct At<'f> {
    file: &'f Path,
    place: ConfigPlace,
}

impl<'f> At<'f> {
    pub(super) fn new<T>(file: &'f Path, value: &Spanned<T>) -> Self {
        Self { file, place: place(value) }
    }

    /// The line in the file, from 1.
    pub(super) fn line(self) -> u64 {
        self.place.0
    }

    /// The error `invalid_workflow`, at this place.
    pub(super) fn wrong(self, what: &str) -> Diagnosis {
        invalid(self.file, Some(self.place), what)
    }

    /// The message of another check, at this place.
    fn because(self, error: &Diagnosis) -> Diagnosis {
        self.wrong(error.message().trim_end_matches('.'))
    }

    fn instead_of(self, found: &ConfigScalar, expected: &str) -> Diagnosis {
        self.wrong(&found.instead_of(expected))
    }
}

/// A name on one line.
pub(super) fn label(file: &Path, what: &str, text: FileText) -> Result<String> {
    Label::parse(what, &text.value).map_err(|e| At::new(file, &text).because(&e))?;
    Ok(text.value)
}

/// A text for people: a goal or a reason.
pub(super) fn prose(file: &Path, what: &str, text: FileText) -> Result<String> {
    check_text(what, &text.value, MAX_PROSE).map_err(|e| At::new(file, &text).because(&e))?;
    Ok(text.value)
}

/// The one of `all` that the text names.
pub(super) fn choice<T: Copy>(file: &Path, text: &FileText, all: &[T], name: fn(T) -> &'static str) -> Result<T> {
    all.iter().copied().find(|one| name(*one) == text.value).ok_or_else(|| {
        let names = all.iter().map(|one| name(*one));
        let listed = names.clone().collect::<Vec<_>>().join(", ");
        let wrong = At::new(file, text).wrong(&format!("{} where one of {listed} is expected", brief(&text.value)));
        match did_you_mean(&text.value, names) {
            Some(hint) => wrong.hint(hint),
            None => wrong.hint(format!("write one of: {listed}")),
        }
    })
}

/// A text that a shell is to run.
pub(super) fn script(at: At<'_>, text: String) -> Result<String> {
    if text.trim().is_empty() {
        return Err(at.wrong("the command is empty"));
    }
    without_nul(at, text)
}

/// A program and its arguments; `at` is the place of the list.
pub(super) fn argv(file: &Path, at: At<'_>, words: Vec<FileText>) -> Result<Vec<String>> {
    match words.first() {
        None => return Err(at.wrong("the command is empty")),
        Some(program) if program.value.is_empty() => {
            return Err(At::new(file, program).wrong("the program's name is empty"));
        }
        Some(_) => {}
    }
    words.into_iter().map(|word| without_nul(At::new(file, &word), word.value)).collect()
}

fn without_nul(at: At<'_>, text: String) -> Result<String> {
    if text.contains('\0') {
        return Err(at.wrong("a NUL byte, which no program can be given"));
    }
    Ok(text)
}

/// A path from the project's root that does not leave it, without needless parts; `.` is the root.
pub(super) fn inside(at: At<'_>, text: &str) -> Result<PathBuf> {
    let no = |why: &str| Err(at.wrong(&format!("the path {} {why}", brief(text))));
    if text.is_empty() {
        return Err(at.wrong("the path is empty"));
    }
    if text.contains('\0') {
        return no("contains a NUL byte");
    }
    let mut path = PathBuf::new();
    for part in Path::new(text).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir => return no("contains `..`; paths lead from the project's root into it"),
            Component::RootDir | Component::Prefix(_) => {
                return no("is absolute; paths lead from the project's root into it");
            }
        }
    }
    // `.` and `./` leave no part, and an empty path would name nothing.
    Ok(if path.as_os_str().is_empty() { PathBuf::from(".") } else { path })
}

/// The path of something in the project, not of the project itself.
pub(super) fn below(at: At<'_>, text: &str) -> Result<PathBuf> {
    let path = inside(at, text)?;
    if path == Path::new(".") {
        return Err(at.wrong("the path is the project's root itself"));
    }
    Ok(path)
}

/// The directory in which a command runs.
pub(super) fn directory(file: &Path, cwd: Given<FileText>) -> Result<Option<PathBuf>> {
    cwd.0.map(|text| inside(At::new(file, &text), &text.value)).transpose()
}

/// The variables that are added to an environment.
pub(super) fn environment(file: &Path, pairs: Given<Pairs>) -> Result<BTreeMap<String, String>> {
    let mut environment = BTreeMap::new();
    for (name, value) in pairs.0.unwrap_or_default().0 {
        let at = At::new(file, &name);
        // The environment is a list of `NAME=VALUE` texts, each ended by a NUL.
        if name.value.is_empty() || name.value.contains(['=', '\0']) {
            return Err(at.wrong(&format!("{} is not a variable's name", brief(&name.value))));
        }
        if RESERVED.contains(&name.value.as_str()) {
            return Err(
                at.wrong(&format!("the variable {} is set by ic for every step, and cannot be set here", name.value))
            );
        }
        environment.insert(name.value, without_nul(At::new(file, &value), value.value)?);
    }
    Ok(environment)
}

/// The longest time of an attempt.
pub(super) fn timeout(file: &Path, given: Given<Spanned<ConfigScalar>>) -> Result<Option<Duration>> {
    let Some(scalar) = given.0 else { return Ok(None) };
    let at = At::new(file, &scalar);
    let duration = duration(at, &scalar.value)?;
    if duration.is_zero() {
        return Err(at.wrong("a timeout must be longer than 0"));
    }
    Ok(Some(duration))
}

fn duration(at: At<'_>, scalar: &ConfigScalar) -> Result<Duration> {
    let ConfigScalar::Text(text) = scalar else {
        return Err(at.instead_of(scalar, "a duration with its unit, as in 10m or 90s,"));
    };
    // The reader of the configuration reads it, so that both files take the same units.
    let Span(duration) =
        Span::deserialize(text.as_str().into_deserializer()).map_err(|_: serde::de::value::Error| {
            at.wrong(&format!("{} is not a duration; write 10m, 90s or 1h 30m", brief(text)))
        })?;
    if duration > LONGEST_DURATION {
        return Err(at.wrong(&format!("{} is too long; the most is 365d", brief(text))));
    }
    Ok(duration)
}

/// The number of retries, or a mapping with their number and the pause.
pub(super) fn retries(file: &Path, given: Given<Spanned<Loose<file::RetriesFields>>>) -> Result<StepRetries> {
    let Some(value) = given.0 else { return Ok(StepRetries::default()) };
    let at = At::new(file, &value);
    let mut retries = StepRetries::default();
    match value.value {
        Loose::Scalar(scalar) => retries.max = number(at, &scalar)?,
        Loose::List(_) => return Err(at.instead_of(&ConfigScalar::List, NUMBER_OR_MAPPING)),
        Loose::Mapping(mapping) => {
            let Some(max) = mapping.max.0 else {
                return Err(at.wrong("`max` is missing").hint("as in: retries: {max: 2, backoff: 5s}"));
            };
            retries.max = number(At::new(file, &max), &max.value)?;
            if let Some(backoff) = mapping.backoff.0 {
                retries.backoff = duration(At::new(file, &backoff), &backoff.value)?;
            }
        }
    }
    Ok(retries)
}

const NUMBER_OR_MAPPING: &str = "a whole number, or {max: 2, backoff: 5s},";

fn number(at: At<'_>, scalar: &ConfigScalar) -> Result<u32> {
    match scalar {
        ConfigScalar::Whole(number) if *number <= MAX_RETRIES => Ok(u32::try_from(*number).unwrap_or(u32::MAX)),
        ConfigScalar::Whole(number) => Err(at.wrong(&format!("{number} is too large; the most is {MAX_RETRIES}"))),
        ConfigScalar::Negative(number) => Err(at.wrong(&format!("{number} is too small; the least is 0"))),
        other => Err(at.instead_of(other, NUMBER_OR_MAPPING)),
    }
}
