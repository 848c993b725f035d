//! Prints errors on standard error, as JSON for a script or as text for a person.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};
use ic_base::display::escape_controls;
use ic_base::{Code, Diagnose, Diagnosis};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::cli::CommandLine;
use crate::exit::ExitStatus;
use crate::flags::valued;
use crate::format::OutputFormat;
use crate::text::{error_screen, plain, style, wrapped};

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

/// Prints an error on standard error, and returns the exit that its code leads to.
pub(crate) fn report(diagnosis: &Diagnosis, format: OutputFormat, quiet: bool) -> ExitStatus {
    match format {
        OutputFormat::Json | OutputFormat::Jsonl => {
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
        OutputFormat::Text => {
            let (bad, good, reset) = (style::BAD.render(), style::GOOD.render(), style::BAD.render_reset());
            let print = |text: String| print_line(&wrapped(text, error_screen()));
            print(format!("{bad}error{reset}: {}", plain(diagnosis.message())));
            // --quiet leaves out the hint and never the error.
            if let (Some(hint), false) = (diagnosis.get_hint(), quiet) {
                print(format!("{good}hint{reset}: {}", plain(hint)));
            }
        }
    }
    ExitStatus::from(diagnosis.kind())
}

/// Prints help and version texts on standard output; every other error of the parser is a usage error.
pub(crate) fn report_parse_error(error: &clap::Error, arguments: &[OsString], format: OutputFormat) -> ExitStatus {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // A reader that closes the pipe before the end of the help has seen enough.
        let printed = error.print().or_else(|failed| match failed.kind() {
            io::ErrorKind::BrokenPipe => Ok(()),
            _ => Err(failed),
        });
        let printed = printed.while_doing(|| "writing to standard output".to_owned());
        return printed.map_or_else(|failure| report(&failure, format, false), |()| ExitStatus::Done);
    }
    report(&diagnose(error, arguments), format, false)
}

/// Explains a command line that could not be parsed.
pub(crate) fn diagnose(error: &clap::Error, arguments: &[OsString]) -> Diagnosis {
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
    let unknown = context(ContextKind::InvalidSubcommand);
    let meant = unknown.as_deref().and_then(|word| meant(arguments, word).or_else(|| elsewhere(word)));
    // Our suggestion comes first: the suggestions of clap go by spelling alone.
    let suggestion = meant.or_else(|| {
        [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue].into_iter().find_map(
            |kind| {
                // A command is named as one types it.
                let whole = |name: &String| match kind {
                    ContextKind::SuggestedSubcommand => format!("{} {name}", path(arguments, unknown.as_deref())),
                    _ => name.clone(),
                };
                match error.get(kind)? {
                    // Clap names the nearest suggestion last.
                    ContextValue::Strings(texts) => did_you_mean(texts.iter().rev().map(whole).collect()),
                    ContextValue::String(text) => did_you_mean(vec![whole(text)]),
                    _ => None,
                }
            },
        )
    });
    let values = context(ContextKind::ValidValue).filter(|values| !values.is_empty());
    let values = values.map(|values| format!("possible values: {values}"));
    let hint = match (suggestion, values) {
        (Some(suggestion), Some(values)) => Some(format!("{suggestion} {values}")),
        (suggestion, values) => suggestion.or(values),
    };
    let hint = hint
        .or_else(|| match error.kind() {
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            | ErrorKind::MissingSubcommand
            | ErrorKind::InvalidSubcommand => Some(possible_commands(arguments, unknown.as_deref())),
            ErrorKind::MissingRequiredArgument => {
                example(arguments).map(|example| format!("as in: {example}; all options: --help"))
            }
            ErrorKind::UnknownArgument => {
                let flag = context(ContextKind::InvalidArg);
                without_flag(arguments, flag.as_deref()).or_else(|| short_flag(arguments, flag.as_deref()))
            }
            _ => None,
        })
        .unwrap_or_else(|| "add --help to see all options".to_owned());
    let code = match error.kind() {
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => Code::InvalidValue,
        _ => Code::Usage,
    };
    Diagnosis::new(code, message).hint(hint)
}

/// Explains a word that is a command of other tools, or that resembles another command of ours more than the right one.
fn meant(arguments: &[OsString], word: &str) -> Option<String> {
    // After a noun, clap suggests the verbs of that noun, which are nearer.
    let mut rest = arguments.iter().skip(1);
    // The value of an option, as in `-C DIR`, does not name a command.
    let is_option = |argument: &&OsString| argument.as_bytes().starts_with(b"-");
    let mut first = rest.next();
    while let Some(option) = first.filter(is_option) {
        valued(option, &mut rest);
        first = rest.next();
    }
    if first.is_none_or(|first| first != word) {
        return (word == "checkpoint").then(|| "did you mean ic checkpoint?".to_owned());
    }
    let found = MEANT.iter().find(|(words, _)| words.split(' ').any(|other| other == word))?;
    did_you_mean(found.1.iter().map(|&command| command.to_owned()).collect())
}

/// Commands of other tools, with the commands here that do the same.
const MEANT: &[(&str, &[&str])] = &[
    ("checkout switch", &["ic restore", "ic checkpoint restore"]),
    ("revert back reset abandon rewind-to rollback-to", &["ic undo"]),
    ("verify fsck", &["ic checkpoint verify", "ic events verify"]),
    ("prune gc clean vacuum", &["ic checkpoint prune"]),
    ("start begin", &["ic dispatch start", "ic run create", "ic workflow run"]),
    ("list ls", &["ic log", "ic run list"]),
    ("save snapshot commit stash tag", &["ic checkpoint create"]),
    ("search find grep", &["ic log", "ic blame", "ic ui"]),
    ("export dump", &["ic backup", "ic events tail --format jsonl"]),
    ("history", &["ic log", "ic run history"]),
    ("op reflog timeline prompts changes whatchanged", &["ic log"]),
    ("info describe view", &["ic show", "ic status"]),
    ("annotate praise who bisect", &["ic blame"]),
    ("cat", &["ic checkpoint cat", "ic show"]),
    ("delete remove rm", &["ic checkpoint delete"]),
    ("create new", &["ic run create"]),
    ("stop kill", &["ic dispatch cancel", "ic run cancel"]),
    ("ps jobs top agents sessions", &["ic session list", "ic dispatch list"]),
    ("watch follow", &["ic events tail --follow"]),
    ("worktree branch workspace", &["ic fork"]),
    ("merge", &["ic adopt"]),
    ("setup configure", &["ic install", "ic init"]),
    ("web serve open tui gui", &["ic ui"]),
    ("doctor", &["ic hooks doctor", "ic health"]),
];

/// Suggests the long flag of this verb for a short flag of other tools.
fn short_flag(arguments: &[OsString], flag: Option<&str>) -> Option<String> {
    let long: &[&str] = match flag? {
        "-n" => &["limit", "name"],
        "-f" => &["follow", "force"],
        "-a" => &["all"],
        "-m" => &["reason", "message", "name", "goal"],
        _ => return None,
    };
    let tree = whole_tree();
    let known = innermost(&tree, arguments.iter());
    let is_known = |name: &&&str| known.get_arguments().any(|argument| argument.get_long() == Some(**name));
    long.iter().find(is_known).map(|name| format!("did you mean --{name}?"))
}

/// The commands that can follow the given nouns, before the `unknown` word: `possible commands: create, list, ...`.
fn possible_commands(arguments: &[OsString], unknown: Option<&str>) -> String {
    let tree = whole_tree();
    let names: Vec<&str> = before(&tree, arguments, unknown).get_subcommands().map(Command::get_name).collect();
    format!("possible commands: {}", names.join(", "))
}

/// What one types before the `unknown` word: `ic`, or `ic run`.
fn path(arguments: &[OsString], unknown: Option<&str>) -> String {
    let tree = whole_tree();
    before(&tree, arguments, unknown).get_bin_name().unwrap_or("ic").to_owned()
}

/// The command that the words before the `unknown` one lead to.
fn before<'a>(tree: &'a Command, arguments: &[OsString], unknown: Option<&str>) -> &'a Command {
    let known = arguments.iter().take_while(|argument| unknown.is_none_or(|word| *argument != word));
    // `help` stands before the command that it explains, so the path does not include it.
    innermost(tree, known.filter(|argument| *argument != "help"))
}

/// Suggests the commands with this name below some noun, if there are few; `help`, which is below every noun, is not suggested.
fn elsewhere(unknown: &str) -> Option<String> {
    const FEW: usize = 3;
    let tree = whole_tree();
    let mut found = Vec::new();
    collect(&tree, "ic", unknown, &mut found);
    if found.len() > FEW { None } else { did_you_mean(found) }
}

/// `did you mean a, b, or c?`, the nearest first; `None` if `near` is empty.
fn did_you_mean(mut near: Vec<String>) -> Option<String> {
    let last = near.pop()?;
    Some(match near.as_slice() {
        [] => format!("did you mean {last}?"),
        [one] => format!("did you mean {one} or {last}?"),
        others => format!("did you mean {}, or {last}?", others.join(", ")),
    })
}

fn collect(command: &Command, path: &str, name: &str, found: &mut Vec<String>) {
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        let path = format!("{path} {}", below.get_name());
        if below.get_name() == name {
            found.push(path.clone());
        }
        collect(below, &path, name, found);
    }
}

/// The first example in the help of the verb that was named, without its explanation.
fn example(arguments: &[OsString]) -> Option<String> {
    let tree = whole_tree();
    let help = innermost(&tree, arguments.iter()).get_after_help()?.to_string();
    let line = help.strip_prefix("Examples:\n")?.lines().next()?.trim();
    // An example and its explanation have three blanks or more between them.
    Some(line.split("   ").next().unwrap_or(line).to_owned())
}

/// For an unknown flag that has the name of a positional argument: how that argument is written.
fn without_flag(arguments: &[OsString], flag: Option<&str>) -> Option<String> {
    let name = flag?.strip_prefix("--")?;
    let tree = whole_tree();
    let verb = innermost(&tree, arguments.iter());
    verb.get_positionals().find(|positional| positional.get_id() == name)?;
    Some(format!("give it without --{name}: {} {}", verb.get_bin_name()?, name.to_uppercase()))
}

fn whole_tree() -> Command {
    let mut tree = CommandLine::command();
    tree.build();
    tree
}

/// The innermost command that these words lead to; words that name none are skipped.
fn innermost(tree: &Command, words: impl Iterator<Item = impl AsRef<OsStr>>) -> &Command {
    let mut command = tree;
    for word in words.skip(1) {
        if let Some(found) = word.as_ref().to_str().and_then(|name| command.find_subcommand(name)) {
            command = found;
        }
    }
    command
}

/// Clap's message without its prefix, its usage block and its tips.
fn first_sentence(text: &str) -> String {
    // For example:
    //
    //     error: the following required arguments were not provided:
    //       --goal <TEXT>
    //
    //     Usage: ic run create --goal <TEXT>
    let lines: Vec<&str> = text
        .strip_prefix("error: ")
        .unwrap_or(text)
        .lines()
        .take_while(|line| !line.is_empty() && !line.starts_with("Usage:"))
        .map(str::trim)
        // A line `[possible values: ...]` is left out: the hint has them.
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
    // With stderr closed the error reaches no person; the exit code still tells it.
    let _ = writeln!(anstream::stderr().lock(), "{line}");
}
