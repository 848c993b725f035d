//! The manual: a page for the program, for each group of verbs and for each verb, from the same texts as the help.

mod roff;

use clap::{Arg, ArgAction, Command, CommandFactory};

use crate::cli::Cli;
use roff::{Page as Text, bold, italic};

/// The day that pages carry: of the commit that a release was built from, else of the last change to this manual.
const DATE: &str = match option_env!("IC_BUILD_DATE") {
    Some(date) => date,
    None => "2026-11-21",
};

const EXITS: &[(&str, &str)] = &[
    ("0", "Done, or yes."),
    (
        "1",
        "An expected no: blocked, paused, conflict, stale, refused in this state, nothing found by a query.",
    ),
    ("2", "Failure: I/O, corruption, busy past the timeout."),
    ("3", "Usage: bad flags or values, or a reference to something that does not exist."),
    ("4", "Partly done: the report on standard output names what is left."),
    ("130", "Ctrl-C or a request to end interrupted a consumer of events, which left its event, or a wait."),
];

const ENVIRONMENT: &[(&str, &str)] = &[
    ("IC_DB", "The ledger's file, unless `--db` names another."),
    ("IC_FORMAT", "The form of the output, unless a flag says otherwise: auto, json, jsonl, text."),
    ("IC_CONFIG", "The configuration file, in place of .ic.yaml in the project's root."),
    ("IC_DISPATCH", "The dispatch on whose behalf writes are made, unless `--dispatch` names another."),
    ("NO_COLOR", "If it is set and not empty, text has no colours."),
];

const FILES: &[(&str, &str)] = &[
    (".git/ic/ic.db", "The ledger of a git repository; its linked work trees share it."),
    (".ic/ic.db", "The ledger of a directory that is in no git repository."),
    ("objects.db", "The content of checkpoints, beside the ledger."),
    ("ic.db.reserve", "Room for a prune on a full disk, beside the ledger; it holds nothing."),
    ("rewinds/", "The rows that rewinds and rollbacks took away, beside the ledger."),
    ("logs/", "What undo commands and steps of workflows printed, beside the ledger."),
    (".ic.yaml", "The project's configuration, in its root."),
];

/// A page of the manual.
pub(crate) struct Page {
    /// The name of its file, as in `ic-run-rollback.1`.
    pub(crate) name: String,
    /// Its text, for man(1).
    pub(crate) text: String,
}

/// All pages: the program's own, then group by group.
pub(crate) fn pages() -> Vec<Page> {
    let mut tree = Cli::command();
    tree.build();
    let mut pages = Vec::new();
    collect(&tree, &[&tree], &mut pages);
    pages
}

fn collect(root: &Command, path: &[&Command], pages: &mut Vec<Page>) {
    let Some(command) = path.last() else { return };
    pages.push(Page { name: format!("{}.1", title(path)), text: page(root, path) });
    for verb in verbs(command) {
        collect(root, &[path, &[verb]].concat(), pages);
    }
}

fn verbs(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|verb| verb.get_name() != "help" && !verb.is_hide_set())
}

/// `ic-run-rollback`.
fn title(path: &[&Command]) -> String {
    path.iter().map(|command| command.get_name()).collect::<Vec<_>>().join("-")
}

fn page(root: &Command, path: &[&Command]) -> String {
    let [.., command] = path else { return String::new() };
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut text = Text::new(&title(path), DATE, &format!("ic {}", env!("CARGO_PKG_VERSION")));
    text.section("NAME");
    text.words(&format!("{} - {}", title(path), about.trim_end_matches('.')));
    text.section("SYNOPSIS");
    synopsis(&mut text, command, path);
    let (examples, notes) = examples(command);
    text.section("DESCRIPTION");
    let long = command.get_long_about().map_or(about, ToString::to_string);
    text.paragraphs(&sentence(&long));
    if path.len() > 1 {
        text.paragraphs(&notes);
    }
    text.section("OPTIONS");
    if path.len() == 1 {
        text.paragraphs("They stand anywhere on the line.");
        command.get_arguments().for_each(|argument| option(&mut text, argument));
    } else {
        let is_own = |a: &&Arg| !a.is_global_set() && !a.is_hide_set() && a.get_id() != "help";
        command.get_arguments().filter(is_own).for_each(|argument| option(&mut text, argument));
        text.break_paragraph();
        text.line(&format!("Options that stand anywhere on the line are in {}.", reference(&[root])));
    }
    if verbs(command).next().is_some() {
        text.section("COMMANDS");
        for verb in verbs(command) {
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            text.tagged(&reference(&[path, &[verb]].concat()), &sentence(&about));
        }
    }
    if !examples.is_empty() {
        text.section("EXAMPLES");
        text.example(&examples);
    }
    endings(&mut text, path);
    text.into_string()
}

/// What is the same on every page, and what to read next.
fn endings(text: &mut Text, path: &[&Command]) {
    text.section("EXIT STATUS");
    text.list(EXITS, bold);
    text.paragraphs("An error has a code, which `docs/errors/` explains; in a pipe it is a line of JSON on standard error.");
    text.section("ENVIRONMENT");
    text.list(ENVIRONMENT, bold);
    text.section("FILES");
    text.list(FILES, italic);
    text.section("SEE ALSO");
    let mut related: Vec<String> = (1..path.len()).map(|depth| reference(&path[..depth])).collect();
    // The verbs of a noun are neighbours; nouns have little to do with each other.
    if let [_, .., group, own] = path {
        let beside = verbs(group).filter(|verb| verb.get_name() != own.get_name());
        related.extend(beside.map(|verb| reference(&[&path[..path.len() - 1], &[verb]].concat())));
    }
    if related.is_empty() {
        related = ["git", "jq", "sqlite3"].iter().map(|program| format!("{}(1)", bold(program))).collect();
    }
    text.line(&related.join(",\n"));
}

/// **ic-run-rollback**(1).
fn reference(path: &[&Command]) -> String {
    format!("{}(1)", bold(&title(path)))
}

fn synopsis(text: &mut Text, command: &Command, path: &[&Command]) {
    let name = path.iter().map(|command| command.get_name()).collect::<Vec<_>>().join(" ");
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    for line in usage.lines().map(str::trim) {
        let rest = line.strip_prefix(name.as_str()).unwrap_or(line).trim();
        text.line(&bold(&name));
        text.words(rest);
    }
}

/// The lines of the examples, and what is said after them.
fn examples(command: &Command) -> (Vec<String>, String) {
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut lines = after.lines().skip(1).peekable();
    let mut examples = Vec::new();
    while let Some(line) = lines.next_if(|line| line.is_empty() || line.starts_with("  ")) {
        examples.push(line.strip_prefix("  ").unwrap_or(line).to_owned());
    }
    while examples.last().is_some_and(String::is_empty) {
        examples.pop();
    }
    (examples, lines.collect::<Vec<_>>().join("\n"))
}

fn option(text: &mut Text, argument: &Arg) {
    let names: Vec<String> =
        argument.get_value_names().unwrap_or_default().iter().map(|name| italic(name)).collect();
    let value = if argument.get_action().takes_values() { names.join(" ") } else { String::new() };
    let flags =
        [argument.get_short().map(|s| format!("-{s}")), argument.get_long().map(|l| format!("--{l}"))];
    let flags: Vec<String> = flags.into_iter().flatten().map(|flag| bold(&flag)).collect();
    let again = if matches!(argument.get_action(), ArgAction::Append) { " ..." } else { "" };
    let tag = [flags.join(", "), value].join(" ");
    let mut meaning = argument
        .get_long_help()
        .or(argument.get_help())
        .map(|help| sentence(&help.to_string()))
        .unwrap_or_default();
    if argument.is_required_set() && !argument.is_positional() {
        meaning.push_str(" Required.");
    }
    let defaults: Vec<_> = argument.get_default_values().iter().map(|v| v.to_string_lossy()).collect();
    if argument.get_action().takes_values() && !argument.is_hide_default_value_set() && !defaults.is_empty() {
        meaning.push_str(&format!(" [default: {}]", defaults.join(",")));
    }
    text.tagged(&format!("{}{again}", tag.trim()), &meaning);
    if !argument.get_action().takes_values() {
        return;
    }
    let values = argument.get_possible_values();
    let values: Vec<_> = values.iter().filter(|value| !value.is_hide_set()).collect();
    if values.iter().any(|value| value.get_help().is_some()) {
        text.indented(|text| {
            for value in &values {
                let help = value.get_help().map(|help| sentence(&help.to_string())).unwrap_or_default();
                text.tagged(&bold(value.get_name()), &help);
            }
        });
    } else if !values.is_empty() {
        let names: Vec<&str> = values.iter().map(|value| value.get_name()).collect();
        text.line(&roff::escaped(&format!("One of {}.", names.join(", "))));
    }
}

/// A text that ends as a sentence does.
fn sentence(text: &str) -> String {
    let text = text.trim_end();
    let stop = if text.is_empty() || text.ends_with(['.', '?', '!', ':', ']']) { "" } else { "." };
    format!("{text}{stop}")
}

#[cfg(test)]
mod tests;
