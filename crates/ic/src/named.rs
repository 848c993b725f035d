//! A call is parsed by a tree of the command that it names alone.
//!
//! The whole tree copies every global option into each of its commands, which takes longer than a query.

use std::ffi::OsString;

use clap::{Args, Command, Subcommand};

/// What narrows a command to what `words` name, which are the words after its own name.
pub(crate) type Only = fn(Command, words: &[OsString]) -> Command;

/// A command of which no more than what a call names can be built. What it parses, the whole one parses as well, and to the same.
pub(crate) trait Named {
    /// `command`, with nothing below it but what `words` name. As it is, if they name nothing of it.
    fn only(command: Command, words: &[OsString]) -> Command;
}

impl<A: Args> Named for A {
    fn only(command: Command, _words: &[OsString]) -> Command {
        command
    }
}

/// [`Named::only`] of a noun with the verbs `V`; `narrow` has a function for each, in their order.
pub(crate) fn only<V: Subcommand>(noun: Command, words: &[OsString], narrow: &[Only]) -> Command {
    let mut all = V::augment_subcommands(Command::new(""));
    // Options may stand before it. If the word is the value of one, what is left here does not parse.
    let verb = |word: &OsString| all.get_subcommands().position(|verb| word.as_os_str() == verb.get_name());
    let Some((at, place)) = words.iter().enumerate().find_map(|(at, word)| Some((at, verb(word)?))) else {
        return noun;
    };
    let verb = all.get_subcommands_mut().nth(place).map(std::mem::take).unwrap_or_default();
    // What the noun would build is all of its verbs.
    noun.defer(|noun| noun).subcommand(narrow[place](verb, &words[at + 1..]))
}
