//! The `ic` command line: parse, one library call, one view. No SQL and no rule lives here.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

mod background;
mod cli;
mod clients;
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
mod later;
mod man;
mod named;
mod output;
#[cfg(test)]
mod plugins;
mod progress;
#[cfg(feature = "mcp")]
mod serve;
mod session;
mod shell;
mod signals;
mod text;
mod views;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::cli::{Cli, Command};
use crate::environment::Environment;
use crate::exit::Exit;
use crate::format::FormatChoice;
use crate::shell::Shell;

/// Runs the command line of this process and returns its exit code (see `docs/CLI.md`).
pub fn main() -> ExitCode {
    let environment = Environment::read();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if let Some(shell) = Shell::asking(&environment) {
        complete::answer(shell, arguments.into_iter().skip(1).collect(), &environment);
        return ExitCode::SUCCESS;
    }
    let exit = match Cli::parsed(&arguments) {
        Ok(cli) => run(cli, environment, &arguments),
        Err(error) => {
            let error = help::page(error, &arguments);
            let format = FormatChoice::guess(&arguments, &environment).resolve();
            failure::report_parse_error(&error, &arguments, format)
        }
    };
    ExitCode::from(exit.code())
}

fn run(mut cli: Cli, mut environment: Environment, arguments: &[OsString]) -> Exit {
    if let Command::Hook(_) = cli.command {
        commands::hook::demand_nothing(&mut cli.global, &mut environment);
    }
    let quiet = cli.global.quiet;
    let choice = FormatChoice::of(&cli.global, &environment);
    // A hook is never in the way, whatever its line says.
    if !matches!(cli.command, Command::Hook(_))
        && let Err(disagreement) = flags::require_agreement(arguments)
    {
        // The form of the output may be what is disagreed on: the last word has it, as where a line is not parsed.
        let format = FormatChoice::guess(arguments, &environment).resolve();
        return failure::report(&disagreement, format, quiet);
    }
    let result = choice.validate().and_then(|()| match &cli.command {
        // A server runs other commands, and so stands above them.
        #[cfg(feature = "mcp")]
        Command::Mcp(mcp) if mcp.is_server() => serve::serve(cli.global, environment),
        _ => cli::run(cli, environment),
    });
    match result {
        Ok(exit) => exit,
        Err(diagnosis) => failure::report(&diagnosis, choice.resolve(), quiet),
    }
}

#[cfg(test)]
mod tests;
