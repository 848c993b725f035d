//! Which form the output takes.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;

use ic_base::{Code, Diagnosis, Result};

use crate::environment::Environment;
use crate::flags::Global;

/// The form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// One JSON document.
    Json,
    /// One JSON record a line.
    Jsonl,
    /// For people.
    Text,
}

/// What flag and environment say of the form.
#[derive(Debug, Clone)]
pub(crate) struct FormatChoice {
    flag: Option<OsString>,
    default: Option<OsString>,
}

impl FormatChoice {
    /// The choice of a parsed command line.
    pub(crate) fn of(global: &Global, environment: &Environment) -> Self {
        let flag = match (&global.format, global.json) {
            (Some(format), _) => Some(OsString::from(format.as_str())),
            (None, true) => Some(OsString::from("json")),
            (None, false) => None,
        };
        Self { flag, default: environment.format.clone() }
    }

    /// The choice of a command line that could not be parsed, so that its error takes the wanted form.
    pub(crate) fn guess(arguments: &[OsString], environment: &Environment) -> Self {
        let mut flag = None;
        for (i, argument) in arguments.iter().enumerate() {
            match argument.to_str() {
                Some("--") => break,
                Some("--json") => flag = Some(OsString::from("json")),
                Some("--format") => flag = arguments.get(i + 1).cloned(),
                Some(text) if text.starts_with("--format=") => flag = Some(OsString::from(&text[9..])),
                _ => {}
            }
        }
        Self { flag, default: environment.format.clone() }
    }

    /// Whether JSON was asked for in this very call: scalar verbs then print their record.
    pub(crate) fn json_was_asked_for(&self) -> bool {
        matches!(self.flag.as_deref().and_then(OsStr::to_str), Some("json" | "jsonl"))
    }

    /// Errors: `invalid_value` if `IC_FORMAT` is not a format (the flag is checked by the parser).
    pub(crate) fn validate(&self) -> Result<()> {
        match &self.default {
            Some(value) if parse(value).is_none() => Err(Diagnosis::new(
                Code::InvalidValue,
                format!("IC_FORMAT is {}; it must be auto, json, jsonl or text.", value.display()),
            )),
            _ => Ok(()),
        }
    }

    /// The form: the flag, else the environment, else text on a terminal and JSON otherwise.
    pub(crate) fn resolve(&self) -> Format {
        [&self.flag, &self.default]
            .into_iter()
            .flatten()
            .find_map(|value| parse(value))
            .unwrap_or_else(automatic)
    }
}

/// The format that a value names; `auto` is decided here. `None` if it is not a format.
fn parse(text: &OsStr) -> Option<Format> {
    match text.to_str() {
        Some("auto") => Some(automatic()),
        Some("json") => Some(Format::Json),
        Some("jsonl") => Some(Format::Jsonl),
        // A diagram is text; which verb has one is known where the verbs are.
        Some("text" | "mermaid") => Some(Format::Text),
        _ => None,
    }
}

fn automatic() -> Format {
    if std::io::stdout().is_terminal() { Format::Text } else { Format::Json }
}
