//! Answers a shell that completes a command line: what can stand at its cursor.
//!
//! The scripts of `ic completions` call the program again with `IC_COMPLETE=SHELL` and what was typed. The answer is one candidate a line.
//! Every error is an empty answer, because a message would land in the middle of the person's line. A ledger is only read: none is created
//! or migrated, and no more of it is read than a person can choose from.

mod bash;
mod command_line;
mod files;
mod ledger;
mod position;
mod values;

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

use clap::{Arg, CommandFactory};

use crate::cli::CommandLine;
use crate::environment::CliEnvironment;
use crate::shell::CompletionShell;
use position::Position;

/// One thing that can stand at the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Candidate {
    /// The whole word at the cursor, not only the part that is missing.
    value: OsString,
    /// Its description, on one line; empty if it needs none.
    about: String,
}

impl Candidate {
    fn new(value: impl Into<OsString>, about: impl Into<String>) -> Self {
        Self { value: value.into(), about: about.into() }
    }

    /// The same candidate with the part of the word before it: `--layer=` or `git,`.
    fn behind(self, before: &OsStr) -> Self {
        let mut value = before.to_owned();
        value.push(&self.value);
        Self { value, ..self }
    }

    /// Whether a shell can be told of it. A line is one candidate, a tab ends its value, and the shell prints it unescaped. So a name that
    /// would steer the terminal or hide its own text is left for the person to type.
    fn can_be_shown(&self) -> bool {
        !String::from_utf8_lossy(self.value.as_bytes()).chars().any(ic_base::is_unsafe_to_show)
    }
}

/// Prints the candidates. `arguments` are those of the shell's script, without the program's name.
pub(crate) fn answer(shell: CompletionShell, arguments: Vec<OsString>, environment: &CliEnvironment) {
    let lines = match shell {
        CompletionShell::Bash => bash::answer(&arguments, environment),
        CompletionShell::Zsh => Some(described(arguments, environment)),
        CompletionShell::Fish => {
            let mut words = arguments;
            // Only this shell needs it: the script for zsh removes the quotes itself, and bash sends the whole line.
            if let Some(last) = words.last_mut() {
                *last = command_line::unquoted(last.as_bytes(), command_line::QuoteRules::Fish);
            }
            Some(described(words, environment))
        }
    };
    // Nothing to do if the shell has gone.
    let _ = std::io::stdout().lock().write_all(&lines.unwrap_or_default());
}

/// A line for each candidate: the word, a tab, its description. The last of `words` is the one that is being typed.
fn described(mut words: Vec<OsString>, environment: &CliEnvironment) -> Vec<u8> {
    let typed = words.pop().unwrap_or_default();
    let mut lines = Vec::new();
    for candidate in candidates(&words, &typed, environment) {
        lines.extend_from_slice(candidate.value.as_bytes());
        if !candidate.about.is_empty() {
            lines.push(b'\t');
            lines.extend_from_slice(candidate.about.as_bytes());
        }
        lines.push(b'\n');
    }
    lines
}

/// The candidates after `words` that begin with `typed`.
fn candidates(words: &[OsString], typed: &OsStr, environment: &CliEnvironment) -> Vec<Candidate> {
    let mut tree = CommandLine::command();
    // The verbs of a noun are deferred, and only a built tree has them.
    tree.build();
    let mut found = Position::after(&tree, words).map(|at| all(&at, typed, environment)).unwrap_or_default();
    // Filtered here for all kinds: the functions below may return more than what fits.
    found.retain(|c| c.value.as_bytes().starts_with(typed.as_bytes()) && c.can_be_shown());
    found
}

fn all(at: &Position<'_>, typed: &OsStr, environment: &CliEnvironment) -> Vec<Candidate> {
    if let Some(argument) = at.awaits {
        return values::of(at, argument, typed, environment);
    }
    let bytes = typed.as_bytes();
    // `--flag=value` is one word to most shells, so the candidates have to begin with the flag.
    let equals = bytes.iter().position(|byte| *byte == b'=');
    if let Some(end) = equals.filter(|_| !at.is_escaped && bytes.starts_with(b"--")) {
        let (flag, value) = bytes.split_at(end + 1);
        let Some(argument) = at.option(&flag[..end]) else { return Vec::new() };
        let values = values::of(at, argument, OsStr::from_bytes(value), environment);
        return values.into_iter().map(|c| c.behind(OsStr::from_bytes(flag))).collect();
    }
    if !at.is_escaped && bytes.starts_with(b"-") {
        let (global, own): (Vec<&Arg>, Vec<&Arg>) = at.open_options().partition(|a| a.is_global_set());
        return own.into_iter().chain(global).map(option).collect();
    }
    if at.command.has_subcommands() {
        return verbs(at);
    }
    match at.next_positional() {
        Some(argument) => values::of(at, argument, typed, environment),
        None if at.is_escaped => Vec::new(),
        // No positional is left: the verb's own options are offered without a dash, since nothing else can follow.
        None => at.open_options().filter(|a| !a.is_global_set() && a.get_id() != "help").map(option).collect(),
    }
}

/// The nouns or verbs of a group.
fn verbs(at: &Position<'_>) -> Vec<Candidate> {
    at.command
        .get_subcommands()
        // Every group has a `help`; offering the one of `ic` is enough.
        .filter(|verb| !verb.is_hide_set() && (at.path.is_empty() || verb.get_name() != "help"))
        .map(|verb| Candidate::new(verb.get_name(), first_line(verb.get_about())))
        .collect()
}

fn option(argument: &Arg) -> Candidate {
    let name = match (argument.get_long(), argument.get_short()) {
        (Some(long), _) => format!("--{long}"),
        (None, Some(short)) => format!("-{short}"),
        (None, None) => String::new(),
    };
    Candidate::new(name, first_line(argument.get_help()))
}

fn first_line(text: Option<&clap::builder::StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
