//! Lays out help. The command tree has all texts; a page is laid out here, in the same way for every verb, and only when help is asked
//! for, so that other calls take no longer.
//!
//! `-h` has what fits a screen. `--help` has everything, in the same compact columns: clap's own long form spends three lines on each
//! option.

use std::ffi::OsString;

use clap::builder::{PossibleValue, Resettable, StyledStr};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command, CommandFactory};

use crate::cli::{self, CommandLine};
use crate::examples::parts;

const PAGE: &str = "\
{about-with-newline}
{usage-heading} {usage}

{before-help}{all-args}{after-help}

Global options (--json, --db, -C, --quiet, ...): ic --help";

/// The most examples that `-h` shows: more would push the options off the screen.
const FEW: usize = 3;

/// The page of help that was asked for; any other error is returned unchanged.
pub(crate) fn page(error: clap::Error, arguments: &[OsString]) -> clap::Error {
    if error.kind() != ErrorKind::DisplayHelp {
        return error;
    }
    let mut words = arguments.to_vec();
    // `ic help run create` asks for the same page as `ic run create --help`, but clap has only its long form for that.
    let is_spelled = words.iter().any(|word| word == "-h" || word == "--help");
    if let Some(at) = words.iter().position(|word| word == "help").filter(|_| !is_spelled) {
        words.remove(at);
        words.push("--help".into());
    }
    let is_full = words.iter().any(|word| word == "--help");
    // Only clap knows which verb the words lead to, so they are parsed again, by the tree that is laid out.
    match tree(is_full).try_get_matches_from(words) {
        Err(page) if page.kind() == ErrorKind::DisplayHelp => page,
        _ => error,
    }
}

/// The command tree as help shows it: with everything, or with what `-h` has room for.
pub(crate) fn tree(is_full: bool) -> Command {
    let mut tree = CommandLine::command();
    // Only a built tree has the verbs of each noun, and the global options in each verb.
    tree.build();
    let tree = tree.help_template(cli::first_page(is_full)).mut_subcommands(|verb| laid_out(verb, is_full));
    // The page is laid out in the short form of clap, which would leave out the options that are hidden from `-h`.
    in_columns(tree.mut_args(|argument| argument.hide_short_help(false)), is_full)
}

fn laid_out(verb: Command, is_full: bool) -> Command {
    // Clap has one text for what follows the arguments. A page has the examples before them and the notes after.
    let (examples, notes) = parts(&verb);
    let notes = Some(unwrapped(notes.trim())).filter(|text| is_full && !text.is_empty());
    let verb = verb
        .help_template(PAGE)
        .mut_args(|argument| {
            let is_global = argument.is_global_set();
            argument.hide(is_global)
        })
        .mut_subcommands(|verb| laid_out(verb, is_full))
        .after_help(Resettable::from(notes.map(StyledStr::from)));
    let shown = if is_full { examples.len() } else { FEW };
    let lines: Vec<String> = examples.into_iter().take(shown).map(|line| format!("  {line}")).collect();
    let heading = format!("{0}Examples:{0:#}", cli::STYLES.get_header());
    let verb = if lines.is_empty() { verb } else { verb.before_help(format!("{heading}\n{}", lines.join("\n"))) };
    in_columns(verb, is_full)
}

/// Moves every long text into the short one, because clap lays out a page in its spacious long form as soon as it finds one.
fn in_columns(command: Command, is_full: bool) -> Command {
    let about = command.get_long_about().filter(|_| is_full).or(command.get_about()).cloned();
    command.about(Resettable::from(about)).long_about(Resettable::Reset).mut_args(|argument| {
        let values = values(&argument);
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let long = argument.get_long_help().map(ToString::to_string).filter(|_| is_full).unwrap_or(help);
        // Clap wraps the column at a width that is not known here, so each value and its meaning are a line of their own.
        let long = if is_full { [vec![long], values.clone()].concat().join("\n") } else { long };
        let argument = argument.help(long).long_help(Resettable::Reset);
        // `--help` asks for the long form, and all texts are in the short one now.
        let is_help = matches!(argument.get_action(), ArgAction::Help);
        let argument = if is_help { argument.action(ArgAction::HelpShort) } else { argument };
        if is_full && !values.is_empty() { argument.hide_possible_values(true) } else { argument }
    })
}

/// A line such as `- json: One JSON document` for each value, if all of them have a meaning to tell.
fn values(argument: &Arg) -> Vec<String> {
    if !argument.get_action().takes_values() || argument.is_hide_possible_values_set() {
        return Vec::new();
    }
    let values = argument.get_possible_values();
    let shown = values.iter().filter(|value| !value.is_hide_set());
    let meaning = |value: &PossibleValue| Some(format!("- {}: {}", value.get_name(), value.get_help()?));
    shown.map(meaning).collect::<Option<_>>().unwrap_or_default()
}

/// Joins the lines of each paragraph, so that clap can wrap it: the source breaks them at its own width.
fn unwrapped(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|p| p.lines().map(str::trim).collect::<Vec<_>>().join(" "));
    paragraphs.map(|p| p.trim().to_owned()).collect::<Vec<_>>().join("\n\n")
}
