//! What a tree of the named command alone parses, the whole tree parses to the same.

use std::ffi::OsString;

use clap::{Arg, CommandFactory, FromArgMatches};

use super::verbs::{leaves, own_arguments, tree};
use crate::cli::CommandLine;

/// A line that the verb may parse: its words, a value for each argument that is demanded, and some of the others.
fn line(name: &str, arguments: &[&Arg], values: &[&str], turn: usize) -> Vec<OsString> {
    let mut line: Vec<String> = name.split(' ').map(str::to_owned).collect();
    for (at, argument) in arguments.iter().enumerate() {
        let known = argument.get_possible_values();
        let value = known
            .get(turn % known.len().max(1))
            .map_or(if turn.is_multiple_of(2) { values[0] } else { values[(turn + at) % values.len()] }, |one| {
                one.get_name()
            });
        let is_wanted = argument.is_required_set() || (turn > 3 && (turn + at).is_multiple_of(3));
        match argument.get_long() {
            _ if !is_wanted => {}
            Some(long) if argument.get_action().takes_values() => line.push(format!("--{long}={value}")),
            Some(long) => line.push(format!("--{long}")),
            None => line.push(value.to_owned()),
        }
    }
    line.into_iter().map(OsString::from).collect()
}

fn whole(arguments: &[OsString]) -> Option<CommandLine> {
    let mut matches = CommandLine::command().try_get_matches_from(arguments).ok()?;
    CommandLine::from_arg_matches_mut(&mut matches).ok()
}

fn text(cli: Option<CommandLine>) -> Option<String> {
    cli.map(|cli| format!("{cli:?}"))
}

#[test]
fn every_verb_is_parsed_by_its_own_tree_as_by_the_whole_one() {
    let tree = tree();
    let values = ["5", "run", "status", "a,b", "1h", "http://x/y", "name=value", "-"];
    for (name, command) in leaves(&tree) {
        let arguments: Vec<&Arg> = own_arguments(command).collect();
        let mut parsed = 0;
        for turn in 0..24 {
            let mut line = line(&name, &arguments, &values, turn);
            line.insert(1 + turn % 2, "--json".into());
            let expected = text(whole(&line));
            assert_eq!(text(CommandLine::named(&line)), expected, "{line:?}");
            parsed += usize::from(expected.is_some());
            // Values that are names of commands: the own tree may be another one's, and fail.
            line.splice(1..1, ["-C", "run", "--db", "status"].map(OsString::from));
            assert_eq!(text(CommandLine::parsed(&line).ok()), text(whole(&line)), "{line:?}");
            line.push("--no-such-option".into());
            assert_eq!(text(CommandLine::parsed(&line).ok()), None, "{line:?}");
        }
        // What it demands beyond single arguments, or asks of them together, the verbs' own tests try.
        let is_choosy = ["ic compensation add", "ic exec"].contains(&name.as_str());
        assert!(parsed > 0 || is_choosy, "nothing that {name} parses was tried");
    }
}

#[test]
fn what_names_no_command_is_left_to_the_whole_tree() {
    for words in [
        "", "nothing", "run", "run nothing", "run agent", "help", "help run", "run help", "--help", "-C run",
        "--version", "run status -h",
    ] {
        let line: Vec<OsString> = ["ic"].into_iter().chain(words.split_whitespace()).map(OsString::from).collect();
        assert!(CommandLine::named(&line).is_none(), "{words}");
    }
}
