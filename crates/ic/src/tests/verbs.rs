//! Rules that every verb keeps.

use clap::{Arg, Command, CommandFactory};

use crate::cli::CommandLine;
use crate::help;

/// The whole command tree, with usages and global options where they belong.
pub(super) fn tree() -> Command {
    let mut tree = CommandLine::command();
    tree.build();
    tree
}

/// Every verb with its full name (`ic run create`), in the order of the help.
pub(super) fn leaves(tree: &Command) -> Vec<(String, &Command)> {
    let mut found = Vec::new();
    collect(tree, "", &mut found);
    found
}

fn collect<'t>(command: &'t Command, before: &str, found: &mut Vec<(String, &'t Command)>) {
    let name = format!("{before}{}", command.get_name());
    if command.has_subcommands() {
        for verb in command.get_subcommands().filter(|c| c.get_name() != "help") {
            collect(verb, &format!("{name} "), found);
        }
    } else {
        found.push((name, command));
    }
}

/// The arguments of one verb, without the global ones and `--help`.
pub(super) fn own_arguments(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|a| !a.is_global_set() && a.get_id() != "help" && !a.is_hide_set())
}

#[test]
fn the_tree_is_consistent() {
    CommandLine::command().debug_assert();
}

#[test]
fn every_verb_says_what_it_does_with_examples() {
    let tree = tree();
    let leaves = leaves(&tree);
    assert!(leaves.len() >= 37, "{} verbs", leaves.len());
    for (name, command) in leaves {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        assert!(!about.is_empty(), "{name} does not say what it does");
        let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples = after.strip_prefix("Examples:\n").unwrap_or_else(|| panic!("{name} has no examples"));
        assert!(examples.contains(&name), "the examples of {name} do not show it");
        for argument in command.get_arguments() {
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(!help.is_empty(), "{name}: {} has no help", argument.get_id());
        }
    }
}

#[test]
fn no_flag_is_short_but_global_ones_and_those_of_other_tools() {
    // As in git and package managers: a patch, a number of entries, a preview, and yes to a question. No verb has both a number and a preview.
    const KNOWN: [(&str, char); 4] = [("patch", 'p'), ("number", 'n'), ("dry_run", 'n'), ("yes", 'y')];
    let tree = tree();
    for (name, command) in leaves(&tree) {
        for argument in own_arguments(command) {
            let id = argument.get_id().as_str();
            let known = KNOWN.iter().find(|(flag, _)| *flag == id).map(|(_, short)| *short);
            assert_eq!(argument.get_short(), known, "{name}: {id} has another short form");
        }
    }
}

#[test]
fn the_first_page_names_every_noun_once() {
    let mut tree = help::tree(true);
    let text = tree.render_help().to_string();
    let nouns: Vec<String> = tree.get_subcommands().map(|noun| noun.get_name().to_owned()).collect();
    let (_, listed) = text.split_once("Every day:").expect("the nouns");
    let (listed, _) = listed.split_once("Global options").expect("the options");
    let listed: Vec<&str> =
        listed.lines().filter_map(|line| line.strip_prefix("  ")).filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(listed, nouns);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn the_first_page_lists_verbs_that_there_are() {
    let mut tree = help::tree(false);
    let text = tree.render_help().to_string();
    let mut lists = 0;
    for noun in tree.get_subcommands().filter(|noun| noun.has_subcommands() && noun.get_name() != "help") {
        let start = format!("  {} ", noun.get_name());
        let line = text.lines().find(|line| line.starts_with(&start)).expect("its line");
        let Some((_, list)) = line.split_once(": ") else { continue };
        let list = list.split(';').next().unwrap_or_default();
        for verb in list.split(", ") {
            let is_verb = noun.get_subcommands().any(|command| command.get_name() == verb);
            assert!(is_verb, "ic {} has no {verb:?}", noun.get_name());
        }
        lists += 1;
    }
    assert!(lists >= 7, "{lists} lists");
}

#[test]
fn the_short_help_of_a_verb_fits_a_screen() {
    const LINES: usize = 40;
    const COLUMNS: usize = 80;
    let tree = help::tree(false);
    let mut pages = vec![("ic".to_owned(), &tree)];
    pages.extend(leaves(&tree));
    for (name, command) in pages {
        let text = command.clone().term_width(COLUMNS).render_help().to_string();
        let lines = text.lines().count();
        assert!(lines <= LINES, "ic {name} -h has {lines} lines\n{text}");
        // Clap breaks no usage.
        let mut rest = text.lines().filter(|line| !line.starts_with("Usage:"));
        assert_eq!(rest.find(|line| line.chars().count() > COLUMNS), None, "{name}");
    }
}
