//! The position in the command tree that the words of a line lead to.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use clap::{Arg, ArgAction, Command};

/// The words before the cursor, as the parser would read them.
pub(super) struct Position<'t> {
    /// The nouns and the verb, as in `["run", "advance"]`.
    pub(super) path: Vec<&'t str>,
    /// The innermost command that was named.
    pub(super) command: &'t Command,
    /// The option whose value comes next.
    pub(super) awaits: Option<&'t Arg>,
    /// Whether `help` was typed first: what follows are the nouns and verbs of the tree, and nothing else.
    is_help: bool,
    /// Whether `--` was typed: what follows is no option.
    pub(super) is_escaped: bool,
    given: Vec<(&'t Arg, OsString)>,
}

impl<'t> Position<'t> {
    /// The position after these words in a tree that was built; `None` if a word is unknown.
    pub(super) fn after(tree: &'t Command, words: &[OsString]) -> Option<Self> {
        let mut at = Self {
            path: Vec::new(),
            command: tree,
            awaits: None,
            is_help: false,
            is_escaped: false,
            given: Vec::new(),
        };
        words.iter().try_for_each(|word| at.step(word))?;
        Some(at)
    }

    fn step(&mut self, word: &OsStr) -> Option<()> {
        // The order is: a value that an option awaits, `--`, `--flag`, `-f`, a noun or verb, a positional value. A dash
        // alone is a value.
        let bytes = word.as_bytes();
        if let Some(argument) = self.awaits.take() {
            self.given.push((argument, word.to_owned()));
        } else if !self.is_escaped && bytes == b"--" {
            self.is_escaped = true;
        } else if !self.is_escaped && bytes.starts_with(b"--") {
            self.long(bytes)?;
        } else if !self.is_escaped && bytes.starts_with(b"-") && bytes.len() > 1 {
            self.short(word.to_str()?)?;
        } else if self.command.has_subcommands() {
            let found = self.command.find_subcommand(word)?;
            self.path.push(found.get_name());
            // `ic help run` names nouns and verbs of the same tree, so the walk does not enter `help`.
            if found.get_name() == "help" {
                self.is_help = true;
            } else {
                self.command = found;
            }
        } else {
            let argument = self.next_positional()?;
            self.given.push((argument, word.to_owned()));
        }
        Some(())
    }

    fn long(&mut self, word: &[u8]) -> Option<()> {
        let end = word.iter().position(|byte| *byte == b'=');
        let argument = self.option(&word[..end.unwrap_or(word.len())])?;
        match end {
            Some(end) => self.given.push((argument, OsStr::from_bytes(&word[end + 1..]).to_owned())),
            None if argument.get_action().takes_values() => self.awaits = Some(argument),
            // It is kept without a value: `has` and `open_options` ask whether it was given.
            None => self.given.push((argument, OsString::new())),
        }
        Some(())
    }

    /// `-v`, `-C DIR`, `-CDIR`, `-vC DIR`.
    fn short(&mut self, word: &str) -> Option<()> {
        for (at, letter) in word.char_indices().skip(1) {
            let argument = self.options().find(|argument| argument.get_short() == Some(letter))?;
            let rest = &word[at + letter.len_utf8()..];
            if !argument.get_action().takes_values() {
                self.given.push((argument, OsString::new()));
            } else if rest.is_empty() {
                self.awaits = Some(argument);
            } else {
                self.given.push((argument, OsString::from(rest.strip_prefix('=').unwrap_or(rest))));
                break;
            }
        }
        Some(())
    }

    /// The options that are known here, given or not.
    fn options(&self) -> impl Iterator<Item = &'t Arg> + use<'t> {
        let is_help = self.is_help;
        self.command.get_arguments().filter(move |a| !is_help && !a.is_positional() && !a.is_hide_set())
    }

    /// The option with this name, `--` included.
    pub(super) fn option(&self, name: &[u8]) -> Option<&'t Arg> {
        let long = name.strip_prefix(b"--")?;
        self.options().find(|argument| argument.get_long().is_some_and(|l| l.as_bytes() == long))
    }

    /// The options that can still be given: not given yet or repeatable, and not excluded by another one.
    pub(super) fn open_options(&self) -> impl Iterator<Item = &'t Arg> {
        // `--json` and `--format` say the same; clap does not know that, and the second is refused or says nothing.
        let says_the_same = |one: &Arg, other: &Arg| one.get_id() == "json" && other.get_id() == "format";
        let excludes = move |one: &Arg, other: &Arg| {
            says_the_same(one, other) || self.command.get_arg_conflicts_with(one).contains(&other)
        };
        // Clap knows a conflict only from the option that declares it, so both are asked.
        self.options().filter(move |argument| {
            self.given.iter().all(|(given, _)| {
                if given == argument {
                    is_repeatable(argument)
                } else {
                    !excludes(given, argument) && !excludes(argument, given)
                }
            })
        })
    }

    /// The positional argument that comes next.
    pub(super) fn next_positional(&self) -> Option<&'t Arg> {
        if self.is_help {
            return None;
        }
        // This is `last` of clap: only what comes after `--` belongs to it, as in `ic exec -- make test`.
        let takes_rest = self.command.get_positionals().find(|argument| argument.is_last_set());
        if let Some(rest) = takes_rest.filter(|_| self.is_escaped) {
            return Some(rest);
        }
        self.command.get_positionals().find(|argument| {
            // An argument that repeats takes all that is left.
            !argument.is_last_set() && (is_repeatable(argument) || !self.has(argument.get_id().as_str()))
        })
    }

    /// Whether this option or argument was given.
    pub(super) fn has(&self, id: &str) -> bool {
        self.value(id).is_some()
    }

    /// The last value of an option or argument that was given.
    pub(super) fn value(&self, id: &str) -> Option<&OsStr> {
        self.given.iter().rev().find(|(a, _)| a.get_id() == id).map(|(_, value)| value.as_os_str())
    }

    /// The values of an option that may be given again.
    pub(super) fn values(&self, argument: &Arg) -> impl Iterator<Item = &OsStr> {
        self.given.iter().filter(move |(a, _)| *a == argument).map(|(_, value)| value.as_os_str())
    }
}

fn is_repeatable(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Append | ArgAction::Count)
}
