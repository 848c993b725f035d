//! One file per verb: its arguments, one library call, its view.

/// The verbs of a noun: what clap parses, each run by its own `run`.
macro_rules! verbs {
    ($(#[$meta:meta])* pub(crate) enum Verb {
        $($(#[$about:meta])* $verb:ident($arguments:ty),)+
    }) => {
        $(#[$meta])*
        #[derive(Debug, clap::Subcommand)]
        pub(crate) enum Verb {
            $($(#[$about])* $verb($arguments),)+
        }

        impl Verb {
            pub(crate) fn run(
                &self,
                session: &mut crate::session::Session,
            ) -> ic_base::Result<crate::exit::Exit> {
                match self { $(Self::$verb(verb) => verb.run(session),)+ }
            }
        }
    };
}

pub(crate) mod blame;
pub(crate) mod checkpoint;
pub(crate) mod compensation;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod dispatch;
pub(crate) mod events;
pub(crate) mod gate;
pub(crate) mod hook;
pub(crate) mod hooks;
pub(crate) mod input;
pub(crate) mod ledger;
pub(crate) mod log;
pub(crate) mod man;
pub(crate) mod prelude;
pub(crate) mod redo;
pub(crate) mod rewind;
pub(crate) mod rollback;
pub(crate) mod rolling;
pub(crate) mod run;
pub(crate) mod session;
pub(crate) mod status;
pub(crate) mod undo;
pub(crate) mod workflow;

use clap::CommandFactory;
use ic_base::{Code, Diagnosis, Result};

use crate::cli::{Cli, Command};
use crate::environment::Environment;
use crate::exit::Exit;
use crate::later::Later;
use crate::session::Session;

/// Runs a parsed command line.
pub(crate) fn run(cli: Cli, environment: Environment) -> Result<Exit> {
    let mut session = Session::new(cli.global, environment)?;
    if session.mermaid && !matches!(&cli.command, Command::Run(Later(run::Verb::History(_)))) {
        return Err(Diagnosis::new(Code::Usage, "Only ic run history draws a diagram (--format mermaid).")
            .hint("use --format json, jsonl or text"));
    }
    match &cli.command {
        Command::Status(verb) => verb.run(&mut session),
        Command::Log(verb) => verb.run(&mut session),
        Command::Blame(verb) => verb.run(&mut session),
        Command::Init(verb) => verb.run(&mut session),
        Command::Where(verb) => verb.run(&mut session),
        Command::Version(verb) => verb.run(&mut session),
        Command::Health(verb) => verb.run(&mut session),
        Command::Completions(verb) => verb.run(&mut session),
        Command::Man(verb) => verb.run(&mut session, Cli::command()),
        Command::Undo(verb) => verb.run(&mut session),
        Command::Redo(verb) => verb.run(&mut session),
        Command::Run(Later(verb)) => verb.run(&mut session),
        Command::Dispatch(Later(verb)) => verb.run(&mut session),
        Command::Checkpoint(Later(verb)) => verb.run(&mut session),
        Command::Rollback(Later(verb)) => verb.run(&mut session),
        Command::Workflow(Later(verb)) => verb.run(&mut session),
        Command::Compensation(Later(verb)) => verb.run(&mut session),
        Command::Config(Later(verb)) => verb.run(&mut session),
        Command::Rewind(Later(verb)) => verb.run(&mut session),
        Command::Gate(Later(verb)) => verb.run(&mut session),
        Command::Events(Later(verb)) => verb.run(&mut session),
        Command::Hooks(Later(verb)) => verb.run(&mut session),
        Command::Session(Later(verb)) => verb.run(&mut session),
        Command::Hook(verb) => Ok(verb.run(&mut session)),
    }
}
