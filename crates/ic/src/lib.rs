//! The `ic` command line: parse, one library call, one view. No SQL and no rule lives here.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

mod background_sweep;
mod cli;
mod command_path;
mod commands;
mod complete;
mod environment;
mod examples;
mod exit;
mod failure;
mod flags;
mod format;
mod help;
mod hook_log;
mod hook_runs;
mod hook_spool;
mod lazy_verbs;
mod man;
mod output;
mod progress;
#[cfg(feature = "mcp")]
mod serve;
mod session;
mod shell;
mod signals;
mod text;
mod transcript;
mod views;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;

use crate::cli::{CliCommand, CommandLine};
use crate::environment::CliEnvironment;
use crate::exit::ExitStatus;
use crate::format::FormatChoice;
use crate::shell::CompletionShell;

/// Runs the command line of this process and returns its exit code (see `docs/CLI.md`).
pub fn main() -> ExitCode {
    let environment = CliEnvironment::read();
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    // This comes before the line is parsed: a line that is being typed often does not parse, and its error would be
    // printed into the line.
    if let Some(shell) = CompletionShell::asking(&environment) {
        complete::answer(shell, arguments.into_iter().skip(1).collect(), &environment);
        return ExitCode::SUCCESS;
    }
    // On a terminal it shows where things are, and what to type next. In a pipe it is an error: a script forgot a word.
    if arguments.len() == 1 && std::io::stdout().is_terminal() {
        arguments.push("status".into());
    }
    let exit = match CommandLine::parsed(&arguments) {
        Ok(cli) => run(cli, environment, &arguments),
        Err(error) => {
            let error = help::page(error, &arguments);
            let format = FormatChoice::guess(&arguments, &environment).resolve();
            failure::report_parse_error(&error, &arguments, format)
        }
    };
    ExitCode::from(exit.code())
}

fn run(mut cli: CommandLine, mut environment: CliEnvironment, arguments: &[OsString]) -> ExitStatus {
    // This comes first: a wrong IC_FORMAT, or a directory that is gone, would end the call before the event is read.
    if let CliCommand::Hook(_) = cli.command {
        commands::hook::demand_nothing(&mut cli.global, &mut environment);
    }
    let quiet = cli.global.quiet;
    let choice = FormatChoice::of(&cli.global, &environment);
    // A hook is never in the way, whatever its line says.
    if !matches!(cli.command, CliCommand::Hook(_))
        && let Err(disagreement) = flags::require_agreement(arguments)
    {
        // The form of the output may be what is disagreed on: the last word has it, as where a line is not parsed.
        let format = FormatChoice::guess(arguments, &environment).resolve();
        return failure::report(&disagreement, format, quiet);
    }
    let result = choice.validate().and_then(|()| match &cli.command {
        // A server runs other commands, and so stands above them.
        #[cfg(feature = "mcp")]
        CliCommand::Mcp(_) => serve::serve(cli.global, environment),
        _ => cli::run(cli, environment),
    });
    match result {
        Ok(exit) => exit,
        Err(diagnosis) => failure::report(&diagnosis, choice.resolve(), quiet),
    }
}

#[cfg(test)]
mod tests;
