//! Errors as a script or a person sees them, on stderr.

use std::ffi::OsString;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use ic_base::{Code, Diagnosis};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::cli::Cli;
use crate::exit::Exit;
use crate::format::Format;
use crate::output::escape_controls;
use crate::render::{plain, style};

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ErrorJson<'a> {
    error: ErrorBody<'a>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ErrorBody<'a> {
    /// Stable; each has a page in docs/errors/.
    code: &'a str,
    message: &'a str,
    hint: Option<&'a str>,
    details: &'a Map<String, Value>,
}

/// Prints a diagnosis on stderr and returns the exit that its code stands for.
pub(crate) fn report(diagnosis: &Diagnosis, format: Format, quiet: bool) -> Exit {
    match format {
        Format::Json | Format::Jsonl => {
            let body = ErrorBody {
                code: diagnosis.code().as_str(),
                message: diagnosis.message(),
                hint: diagnosis.get_hint(),
                details: diagnosis.details(),
            };
            let mut line = serde_json::to_vec(&ErrorJson { error: body }).unwrap_or_default();
            escape_controls(&mut line);
            print_line(&String::from_utf8_lossy(&line));
        }
        Format::Text => {
            let (bad, good, reset) = (style::BAD.render(), style::GOOD.render(), style::BAD.render_reset());
            print_line(&format!("{bad}error{reset}: {}", plain(diagnosis.message())));
            if let (Some(hint), false) = (diagnosis.get_hint(), quiet) {
                print_line(&format!("{good}hint{reset}: {}", plain(hint)));
            }
        }
    }
    Exit::from(diagnosis.kind())
}

/// Help and version texts go to stdout; everything else that the parser says is a usage error.
pub(crate) fn report_parse_error(error: &clap::Error, arguments: &[OsString], format: Format) -> Exit {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // Help that nobody reads to its end is no failure.
        let _ = error.print();
        return Exit::Done;
    }
    report(&diagnose(error, arguments), format, false)
}

fn diagnose(error: &clap::Error, arguments: &[OsString]) -> Diagnosis {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => Some(texts.join(", ")),
        _ => None,
    };
    let message = match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            "A command is missing.".to_owned()
        }
        _ => first_sentence(&error.to_string()),
    };
    let suggestion =
        [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue]
            .into_iter()
            .find_map(context)
            .map(|text| format!("did you mean {text}?"));
    let hint = suggestion
        .or_else(|| {
            context(ContextKind::ValidValue)
                .filter(|values| !values.is_empty())
                .map(|values| format!("possible values: {values}"))
        })
        .or_else(|| match error.kind() {
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            | ErrorKind::MissingSubcommand
            | ErrorKind::InvalidSubcommand => {
                Some(possible_commands(arguments, context(ContextKind::InvalidSubcommand).as_deref()))
            }
            _ => None,
        })
        .unwrap_or_else(|| "add --help to see what is possible".to_owned());
    let code = match error.kind() {
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => Code::InvalidValue,
        _ => Code::Usage,
    };
    Diagnosis::new(code, message).hint(hint)
}

/// What can follow the nouns that were given, before the `unknown` word: `possible commands: create, list, ...`.
fn possible_commands(arguments: &[OsString], unknown: Option<&str>) -> String {
    let mut tree = Cli::command();
    tree.build();
    let mut command = &tree;
    let known = arguments.iter().skip(1).take_while(|argument| unknown.is_none_or(|word| *argument != word));
    for argument in known {
        if let Some(found) = argument.to_str().and_then(|name| command.find_subcommand(name)) {
            command = found;
        }
    }
    let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    format!("possible commands: {}", names.join(", "))
}

/// Clap's message without its prefix, its usage block and its tips.
fn first_sentence(text: &str) -> String {
    let lines: Vec<&str> = text
        .strip_prefix("error: ")
        .unwrap_or(text)
        .lines()
        .take_while(|line| !line.is_empty() && !line.starts_with("Usage:"))
        .map(str::trim)
        .filter(|line| !line.starts_with('['))
        .collect();
    let joined = lines.join(" ");
    let mut rest = joined.chars();
    let mut sentence: String = rest.next().into_iter().flat_map(char::to_uppercase).chain(rest).collect();
    if !sentence.ends_with('.') {
        sentence.push('.');
    }
    sentence
}

fn print_line(line: &str) {
    use std::io::Write;
    // With stderr gone there is nobody left to tell.
    let _ = writeln!(anstream::stderr().lock(), "{line}");
}
