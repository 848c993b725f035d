//! Chooses the form of the output: JSON, JSON Lines or text.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;

use clap::ValueEnum;
use ic_base::{Code, Diagnosis, Result};

use crate::environment::CliEnvironment;
use crate::flags::{FormatFlag, Global, valued};

/// The form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    /// One JSON document: a record, or an array of them.
    Json,
    /// One JSON record a line.
    Jsonl,
    /// Text for people, in colours on a terminal.
    Text,
}

/// The form that the flag and the environment ask for.
#[derive(Debug, Clone)]
pub(crate) struct FormatChoice {
    flag: Option<FormatFlag>,
    default: Option<OsString>,
}

impl FormatChoice {
    /// The choice of a parsed command line.
    pub(crate) fn of(global: &Global, environment: &CliEnvironment) -> Self {
        let flag = global.format.or(global.json.then_some(FormatFlag::Json));
        Self { flag, default: environment.format.clone() }
    }

    /// The choice of a command line that could not be parsed, so that its error takes the wanted form.
    pub(crate) fn guess(arguments: &[OsString], environment: &CliEnvironment) -> Self {
        // The last one wins, and a wrong value counts as none: only the form of an error depends on it.
        let mut flag = None;
        let mut rest = arguments.iter().skip(1).take_while(|argument| *argument != "--");
        while let Some(argument) = rest.next() {
            if let Some(("--format", value)) = valued(argument, &mut rest) {
                flag = named(&value);
            }
        }
        Self { flag, default: environment.format.clone() }
    }

    /// Whether a flag of this call asked for JSON: a verb that prints just a value then prints its record.
    pub(crate) fn json_was_asked_for(&self) -> bool {
        matches!(self.flag, Some(FormatFlag::Json | FormatFlag::Jsonl))
    }

    /// Errors: `invalid_value` if `IC_FORMAT` is no format. The parser has checked the flag.
    pub(crate) fn validate(&self) -> Result<()> {
        match &self.default {
            Some(value) if named(value).is_none() => Err(Diagnosis::new(
                Code::InvalidValue,
                format!("IC_FORMAT is {}; it must be auto, json, jsonl or text.", value.display()),
            )),
            _ => Ok(()),
        }
    }

    /// The form: the flag, else the environment, else text on a terminal and JSON otherwise.
    pub(crate) fn resolve(&self) -> OutputFormat {
        let chosen = self.flag.or_else(|| self.default.as_deref().and_then(named));
        match chosen.unwrap_or(FormatFlag::Auto) {
            FormatFlag::Auto if std::io::stdout().is_terminal() => OutputFormat::Text,
            FormatFlag::Auto | FormatFlag::Json => OutputFormat::Json,
            FormatFlag::Jsonl => OutputFormat::Jsonl,
            FormatFlag::Text => OutputFormat::Text,
        }
    }
}

/// The format that a value names; `None` if it names none.
fn named(text: &OsStr) -> Option<FormatFlag> {
    FormatFlag::from_str(text.to_str()?, false).ok()
}
