//! Checks values from the command line, the size of each among them.

use std::io::{Error, ErrorKind, Read};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use ic_base::{Code, Diagnose, Diagnosis, Label, Result, check_text};
use ic_kernel::Kernel;
use ic_phase::run::{self, RunFilter};
use serde_json::{Map, Value};

use crate::session::CliSession;

/// The longest reason, goal, summary or error, in bytes.
const MAX_TEXT: usize = 64 * 1024;
/// The longest JSON argument, in bytes.
const MAX_JSON: usize = 1024 * 1024;
/// The longest report on standard input, in bytes.
const MAX_STDIN: u64 = 256 * 1024 * 1024;

/// Checks free text. Errors: `invalid_value` if it is too long, or has control characters.
pub(crate) fn text<'a>(flag: &str, value: &'a str) -> Result<&'a str> {
    check_text(flag, value, MAX_TEXT).map(|()| value)
}

/// Checks free text, if there is any.
pub(crate) fn optional_text<'a>(flag: &str, value: Option<&'a str>) -> Result<Option<&'a str>> {
    value.map(|value| text(flag, value)).transpose()
}

/// Checks a short name, if there is one.
pub(crate) fn optional_label(flag: &str, value: Option<&str>) -> Result<Option<String>> {
    value.map(|value| Label::parse(flag, value).map(|label| label.to_string())).transpose()
}

/// The part of a text that can be recorded: control characters become spaces, and the end is cut. `None` if nothing is left.
pub(crate) fn cut_text(value: Option<&str>) -> Option<String> {
    cut(value, MAX_TEXT, |c| c.is_control() && c != '\n' && c != '\t')
}

/// The part of a text that can be a short name, as [`cut_text`].
pub(crate) fn cut_label(value: Option<&str>) -> Option<String> {
    cut(value, Label::MAX_BYTES, char::is_control)
}

fn cut(value: Option<&str>, max_bytes: usize, is_bad: impl Fn(char) -> bool) -> Option<String> {
    // Replaced and not removed, so that two words do not become one.
    let clean: String = value?.chars().map(|c| if is_bad(c) { ' ' } else { c }).collect();
    let clean = clean.trim();
    // Not within a character of several bytes.
    let end = clean.floor_char_boundary(max_bytes);
    let clean = clean[..end].trim_end();
    (!clean.is_empty()).then(|| clean.to_owned())
}

/// Checks each of several short names. Errors: `invalid_value`.
pub(crate) fn labels(flag: &str, values: &[String]) -> Result<Vec<String>> {
    values.iter().map(|value| Label::parse(flag, value).map(|label| label.to_string())).collect()
}

/// Checks a path that will be recorded, which need not exist. Errors: `invalid_value`.
pub(crate) fn path<'a>(flag: &str, value: &'a Path) -> Result<&'a Path> {
    let bytes = ic_ledger::path_bytes(value);
    // The limit of a path on Linux.
    if bytes.is_empty() || bytes.len() > 4096 {
        return Err(invalid(flag, "must be a path of 1 to 4096 bytes"));
    }
    Ok(value)
}

/// Parses a JSON object. Errors: `invalid_value`.
pub(crate) fn json_object(flag: &str, value: &str) -> Result<Map<String, Value>> {
    if value.len() > MAX_JSON {
        return Err(invalid(flag, &format!("is longer than {MAX_JSON} bytes")));
    }
    serde_json::from_str(value).map_err(|e| invalid(flag, &format!("is not a JSON object: {e}")))
}

/// The value itself, or the content of FILE if it is `@FILE`.
pub(crate) fn inline_or_file(session: &CliSession, flag: &str, value: &str) -> Result<String> {
    let Some(file) = value.strip_prefix('@') else { return Ok(value.to_owned()) };
    let path = session.directory.join(file);
    let doing = || format!("reading {}", path.display());
    let mut text = String::new();
    let opened = match std::fs::File::open(&path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Err(invalid(flag, &format!("names {}, which does not exist", path.display())));
        }
        opened => opened.while_doing(doing)?,
    };
    // One byte more than allowed is read, to tell a file that is too long from one that fits.
    opened.take(MAX_JSON as u64 + 1).read_to_string(&mut text).while_doing(doing)?;
    if text.len() > MAX_JSON {
        return Err(invalid(flag, &format!("names a file longer than {MAX_JSON} bytes")));
    }
    Ok(text)
}

/// Reads standard input to its end. Errors: `invalid_value` beyond 256 MiB.
pub(crate) fn standard_input() -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .take(MAX_STDIN + 1)
        .read_to_end(&mut bytes)
        .while_doing(|| "reading standard input".to_owned())?;
    if bytes.len() as u64 > MAX_STDIN {
        return Err(invalid("--stdin", &format!("was given more than {MAX_STDIN} bytes")));
    }
    Ok(bytes)
}

/// The project directory that a value names: absolute, without links. Errors: `invalid_value` if it is no directory.
pub(crate) fn project(session: &CliSession, value: &Path) -> Result<PathBuf> {
    // Links are resolved, because runs have the real path of their project and are found by it.
    let joined = session.directory.join(value);
    match std::fs::canonicalize(&joined) {
        Ok(path) if path.is_dir() => Ok(path),
        _ => Err(invalid("--project", &format!("must be a directory; {} is not", joined.display()))),
    }
}

/// As [`project`], for a search of runs: the directory may be gone, if runs are recorded for it.
///
/// Errors: `invalid_value` if it is no directory, and no run is recorded for it.
pub(crate) fn known_project(session: &CliSession, kernel: &Kernel, value: &Path) -> Result<PathBuf> {
    let refusal = match project(session, value) {
        Ok(path) => return Ok(path),
        Err(refusal) => refusal,
    };
    let Some(gone) = without_links(&session.directory.join(value)) else { return Err(refusal) };
    // A name without any run is a typing error, which an empty list would hide.
    let filter = RunFilter { open: false, project: Some(&gone), limit: 1, before: None };
    let is_known = kernel.read(|snapshot| Ok(!run::list(snapshot, &filter)?.is_empty()))?;
    if is_known { Ok(gone) } else { Err(refusal) }
}

/// The former real path of a directory that is gone: links in the part that still exists are resolved. `None` if it exists, or cannot be
/// looked at.
fn without_links(path: &Path) -> Option<PathBuf> {
    let is_absent = |e: &Error| matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    if !std::fs::canonicalize(path).is_err_and(|e| is_absent(&e)) {
        return None;
    }
    let (above, mut real) = path.ancestors().find_map(|above| Some((above, std::fs::canonicalize(above).ok()?)))?;
    // The part that is gone has no links any more, so `..` in it means the level above.
    for part in path.strip_prefix(above).ok()?.components() {
        match part {
            Component::ParentDir => drop(real.pop()),
            Component::CurDir => {}
            part => real.push(part),
        }
    }
    Some(real)
}

fn invalid(flag: &str, why: &str) -> Diagnosis {
    Diagnosis::new(Code::InvalidValue, format!("{flag} {why}.")).detail("value", flag)
}

/// How long work may be silent. A time of zero would be over at once.
pub(crate) fn ttl(text: &str) -> std::result::Result<Duration, String> {
    const LONGEST: Duration = Duration::from_hours(366 * 24);
    match humantime::parse_duration(text) {
        Ok(ttl) if ttl.is_zero() || ttl > LONGEST => Err("it must be more than 0s and at most a year".to_owned()),
        Ok(ttl) => Ok(ttl),
        Err(error) => Err(error.to_string()),
    }
}
