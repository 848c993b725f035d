//! The verbs, one file each: its arguments, one call of a library crate, one view.

/// A verb that was parsed, and can be run.
pub(crate) trait RunCommand {
    fn run(&self, session: &mut CliSession) -> Result<ExitStatus>;
}

/// Commands that stand together on the first page of help.
pub(crate) struct HelpGroup {
    pub(crate) heading: &'static str,
    /// Each command as its enum names it, with its line.
    pub(crate) lines: &'static [(&'static str, &'static str)],
}

/// Declares the verbs of a noun: an enum that clap parses, and that runs each verb by its own `run`. Verbs below a heading have a line each
/// for the first page of help.
macro_rules! verbs {
    ($(#[$meta:meta])* pub(crate) enum $name:ident {
        $($heading:literal: { $($(#[$about:meta])* $verb:ident($arguments:ty) = $line:literal,)+ })+
    }) => {
        crate::commands::verbs! { $(#[$meta])* pub(crate) enum $name { $($($(#[$about])* $verb($arguments),)+)+ } }

        impl $name {
            pub(crate) const GROUPS: &[crate::commands::HelpGroup] = &[$(crate::commands::HelpGroup {
                heading: $heading,
                lines: &[$((stringify!($verb), $line)),+],
            }),+];
        }
    };
    ($(#[$meta:meta])* pub(crate) enum $name:ident {
        $($(#[$about:meta])* $verb:ident($arguments:ty),)+
    }) => {
        $(#[$meta])*
        #[derive(Debug, clap::Subcommand)]
        // The arguments of a verb are built only when it is named: building those of all verbs takes longer than a query.
        #[command(defer = true)]
        pub(crate) enum $name {
            $($(#[$about])* $verb($arguments),)+
        }

        impl crate::command_path::CommandPath for $name {
            fn only(command: clap::Command, words: &[std::ffi::OsString]) -> clap::Command {
                // The order is that of the variants: a verb is found by its place in the tree that clap makes of them.
                const NARROW: &[crate::command_path::Only] = &[$(<$arguments as crate::command_path::CommandPath>::only),+];
                crate::command_path::only::<Self>(command, words, NARROW)
            }
        }

        impl crate::commands::RunCommand for $name {
            fn run(&self, session: &mut crate::session::CliSession) -> ic_base::Result<crate::exit::ExitStatus> {
                match self { $(Self::$verb(verb) => verb.run(session),)+ }
            }
        }
    };
}
pub(crate) use verbs;

pub(crate) mod adopt;
pub(crate) mod backup;
pub(crate) mod blame;
pub(crate) mod checkpoint;
pub(crate) mod compare;
pub(crate) mod compensation;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod conflict_questions;
pub(crate) mod conversation;
pub(crate) mod diff;
pub(crate) mod diff_forms;
pub(crate) mod dispatch;
pub(crate) mod drop;
pub(crate) mod events;
pub(crate) mod exec;
pub(crate) mod fork;
pub(crate) mod gate;
pub(crate) mod health;
pub(crate) mod hook;
pub(crate) mod hooks;
pub(crate) mod init;
pub(crate) mod input;
pub(crate) mod install;
pub(crate) mod layered_rollback;
pub(crate) mod ledger_path;
pub(crate) mod log;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod migrate;
pub(crate) mod prelude;
pub(crate) mod redo;
pub(crate) mod restore;
pub(crate) mod rewind;
pub(crate) mod rollback;
pub(crate) mod run;
pub(crate) mod session;
pub(crate) mod show;
pub(crate) mod status;
pub(crate) mod ui;
pub(crate) mod undo;
pub(crate) mod uninstall;
pub(crate) mod version;
pub(crate) mod wait;
pub(crate) mod workflow;

use ic_base::Result;

use crate::exit::ExitStatus;
use crate::session::CliSession;
