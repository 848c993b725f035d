//! The server of `ic mcp`: it runs every call as a command of the command line in this process, and asks no questions.

use std::ffi::OsString;
use std::io::{self, IsTerminal};

use ic_base::{Code, Diagnosis, Result};
use ic_mcp::{Commands, Said};

use crate::cli::{self, CommandLine};
use crate::environment::CliEnvironment;
use crate::exit::ExitStatus;
use crate::failure;
use crate::flags::Global;
use crate::output::{Capture, CliOutput};
use crate::session::CliSession;
use crate::signals;

/// Serves on standard input and output until the client goes away.
///
/// Errors: `usage` if standard input is a terminal, where a person would wait in vain for an answer.
pub(crate) fn serve(global: Global, environment: CliEnvironment) -> Result<ExitStatus> {
    if io::stdin().is_terminal() {
        return Err(Diagnosis::new(
            Code::Usage,
            "ic mcp speaks the Model Context Protocol with a coding agent, which starts it; a terminal is none.",
        )
        .hint("install it: ic install CLIENT"));
    }
    // The server opens the same ledger again and again; kept connections make that cheap.
    ic_ledger::keep_connections();
    let environment = CliEnvironment { is_mcp: true, ..environment };
    ic_mcp::serve(Here { global, environment }, env!("CARGO_PKG_VERSION"), &signals::that_end())?;
    Ok(ExitStatus::Done)
}

/// This program as it was started: its global flags and its environment.
struct Here {
    global: Global,
    environment: CliEnvironment,
}

impl Commands for Here {
    fn run(&self, words: &[String]) -> Result<Said> {
        let cli = parsed(words)?;
        let capture = Capture::default();
        // The flags of `ic mcp` count for every call; only the form may be asked for by each.
        let global = Global { format: cli.global.format, ..self.global.clone() };
        let output = CliOutput::captured(&capture);
        let mut session = CliSession::saying_to(output, global, self.environment.clone())?;
        // With an error the capture is dropped: the answer of the call is the error alone.
        let exit = cli::run_in(&mut session, &cli.command)?;
        let (json, text, notes) = capture.take();
        Ok(Said { json, text, notes, is_partly: exit == ExitStatus::Partly })
    }

    fn undoes(&self) -> bool {
        let output = CliOutput::captured(&Capture::default());
        let session = CliSession::saying_to(output, self.global.clone(), self.environment.clone());
        // Without a ledger yet, assume the usual kind, a file.
        session.and_then(|session| session.place()).map_or(true, |place| place.is_of_one_host())
    }

    fn dispatch(&self) -> Option<String> {
        self.environment.dispatch.as_ref()?.to_str().map(str::to_owned)
    }
}

/// Parses the words of a command. Errors: `usage`, `invalid_value`, as on the command line.
fn parsed(words: &[String]) -> Result<CommandLine> {
    let arguments: Vec<OsString> =
        std::iter::once("ic").chain(words.iter().map(String::as_str)).map(OsString::from).collect();
    CommandLine::parsed(&arguments).map_err(|error| failure::diagnose(&error, &arguments))
}
