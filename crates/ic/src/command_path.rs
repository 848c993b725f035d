//! Parses a call with a tree of only the command that it names.
//!
//! The whole tree copies every global option into each of its commands, which takes longer than a query.

use std::ffi::OsString;

use clap::{Args, Command, Subcommand};

/// A function that narrows a command to the part that `words`, those after its own name, lead to.
pub(crate) type Only = fn(Command, words: &[OsString]) -> Command;

/// A command that can be built with only the part that a call names. What that part parses, the whole command parses to the same value.
pub(crate) trait CommandPath {
    /// `command`, with nothing below it but what `words` lead to; unchanged if they name none of its verbs.
    fn only(command: Command, words: &[OsString]) -> Command;
}

impl<A: Args> CommandPath for A {
    fn only(command: Command, _words: &[OsString]) -> Command {
        command
    }
}

/// [`CommandPath::only`] for a noun with the verbs `V`; `narrow` has a function for each, in their order.
pub(crate) fn only<V: Subcommand>(noun: Command, words: &[OsString], narrow: &[Only]) -> Command {
    // The verbs are deferred, so this builds their names, and not their arguments.
    let mut all = V::augment_subcommands(Command::new(""));
    // Options may stand before the verb. If this word is really the value of an option, the narrowed tree cannot parse the line, and the
    // caller parses it again with the whole one.
    let verb = |word: &OsString| all.get_subcommands().position(|verb| word.as_os_str() == verb.get_name());
    // An alias is not found, as in `ic checkpoint info`. The noun then keeps all verbs, which parse the same.
    let Some((at, place)) = words.iter().enumerate().find_map(|(at, word)| Some((at, verb(word)?))) else {
        return noun;
    };
    let verb = all.get_subcommands_mut().nth(place).map(std::mem::take).unwrap_or_default();
    // Replaces the deferred build of the noun, which would add all of its verbs.
    noun.defer(|noun| noun).subcommand(narrow[place](verb, &words[at + 1..]))
}
