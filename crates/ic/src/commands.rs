//! One file per verb: its arguments, one library call, its rendering.

pub(crate) mod checkpoint;
pub(crate) mod compensation;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod dispatch;
pub(crate) mod events;
pub(crate) mod gate;
pub(crate) mod input;
pub(crate) mod ledger;
pub(crate) mod man;
pub(crate) mod rewind;
pub(crate) mod rollback;
pub(crate) mod run;
pub(crate) mod workflow;

use ic_base::{Code, Diagnosis, Result};

use crate::cli::{Cli, Command};
use crate::environment::Environment;
use crate::exit::Exit;
use crate::session::Session;

/// Runs a parsed command line.
pub(crate) fn run(cli: Cli, environment: Environment) -> Result<Exit> {
    let mut session = Session::new(cli.global, environment)?;
    if session.mermaid && !matches!(&cli.command, Command::Run(run::Verb::History(_))) {
        return Err(Diagnosis::new(Code::Usage, "Only ic run history draws a diagram (--format mermaid).")
            .hint("use --format json, jsonl or text"));
    }
    match &cli.command {
        Command::Init(verb) => verb.run(&mut session),
        Command::Where(verb) => verb.run(&mut session),
        Command::Version(verb) => verb.run(&mut session),
        Command::Health(verb) => verb.run(&mut session),
        Command::Completions(verb) => verb.run(&mut session),
        Command::Man(verb) => verb.run(&mut session),
        Command::Run(verb) => verb.run(&mut session),
        Command::Dispatch(verb) => verb.run(&mut session),
        Command::Checkpoint(verb) => verb.run(&mut session),
        Command::Rollback(verb) => verb.run(&mut session),
        Command::Workflow(verb) => verb.run(&mut session),
        Command::Compensation(verb) => verb.run(&mut session),
        Command::Config(verb) => verb.run(&mut session),
        Command::Rewind(verb) => verb.run(&mut session),
        Command::Gate(verb) => verb.run(&mut session),
        Command::Events(verb) => verb.run(&mut session),
    }
}
