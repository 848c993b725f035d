//! Builds the verbs of a noun only when a call names that noun.
//!
//! Building the arguments of all the others would take longer than everything else that `ic version` does.

use std::ffi::OsString;

use clap::builder::Resettable;
use clap::{ArgMatches, Command, Error, FromArgMatches, Subcommand};
use ic_base::Diagnosis;

use crate::command_path::CommandPath;
use crate::commands::RunCommand;
use crate::exit::ExitStatus;
use crate::session::CliSession;

/// The verbs `V` of a noun, parsed as `V` is. The tree has them only after the noun was named, or after all of it was built
/// ([`clap::Command::build`]).
#[derive(Debug)]
pub(crate) struct Later<V>(pub(crate) V);

impl<V: Subcommand> Later<V> {
    fn verbs(noun: Command) -> Command {
        // The attributes of the noun stand at its variant in `Command`; those of `V` would replace them.
        let (about, long) = (noun.get_about().cloned(), noun.get_long_about().cloned());
        V::augment_subcommands(noun).about(Resettable::from(about)).long_about(Resettable::from(long))
    }
}

impl<V: Subcommand> FromArgMatches for Later<V> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        V::from_arg_matches(matches).map(Self)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        V::from_arg_matches_mut(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<V: Subcommand> Subcommand for Later<V> {
    fn augment_subcommands(noun: Command) -> Command {
        noun.defer(Self::verbs)
    }

    fn augment_subcommands_for_update(noun: Command) -> Command {
        noun.defer(V::augment_subcommands_for_update)
    }

    fn has_subcommand(name: &str) -> bool {
        V::has_subcommand(name)
    }
}

impl<V: RunCommand> RunCommand for Later<V> {
    fn run(&self, session: &mut CliSession) -> Result<ExitStatus, Diagnosis> {
        self.0.run(session)
    }
}

impl<V: CommandPath> CommandPath for Later<V> {
    fn only(command: Command, words: &[OsString]) -> Command {
        V::only(command, words)
    }
}
