//! The command tree. Each verb's arguments stand beside its code, in `commands/`.

use std::ffi::OsString;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser};
use ic_base::Result;

use crate::command_path::CommandPath;
use crate::commands::{
    HelpGroup, RunCommand, adopt, backup, blame, checkpoint, compare, compensation, completions, config, diff,
    dispatch, drop, events, exec, fork, gate, health, hook, hooks, init, install, ledger_path, log, man, mcp, migrate,
    redo, restore, rewind, rollback, run, session, show, status, ui, undo, uninstall, verbs, version, wait, workflow,
};
use crate::environment::CliEnvironment;
use crate::exit::ExitStatus;
use crate::flags::Global;
use crate::lazy_verbs::Later;
use crate::session::CliSession;

/// The colours of help and of usage errors.
pub(crate) const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Cyan.on_default().dimmed());

/// Commands that a person seldom types: the short first page has no room for them.
const SELDOM: [&str; 10] =
    ["hook", "drop", "uninstall", "where", "backup", "health", "migrate", "completions", "man", "version"];

/// The commands by what they are for, as a newcomer reads them.
fn groups(is_full: bool) -> String {
    let mut text = String::new();
    for HelpGroup { heading, lines } in CliCommand::GROUPS {
        // A screen of 24 lines has room for the commands, or for the blank lines between them.
        let space = if is_full && !text.is_empty() { "\n" } else { "" };
        text += &format!("{space}\x1b[1m\x1b[32m{heading}:\x1b[0m\n");
        for (verb, line) in *lines {
            let name = verb.to_lowercase();
            if is_full || !SELDOM.contains(&name.as_str()) {
                text += &format!("  {name:<14}{line}\n");
            }
        }
    }
    // The short page says at its end how to get the help of a command.
    if is_full { text + "  help          Print the help of a command" } else { text }
}

/// The template of `ic --help` in full; of `ic -h`, which is to fit a screen, if not.
pub(crate) fn first_page(is_full: bool) -> String {
    let groups = groups(is_full);
    if is_full {
        let options = "\x1b[1m\x1b[32mGlobal options:\x1b[0m\n{options}{after-help}";
        return format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\n\n{options}");
    }
    let more = "Global options, first steps, exit codes: ic --help. Commands: ic COMMAND -h";
    format!("{{about}}\n{{usage-heading}} {{usage}}\n\n{groups}\n{more}")
}

/// The version, and the commit of a release.
fn version() -> String {
    let commit = option_env!("IC_BUILD_COMMIT").map(|commit| format!(" ({commit})"));
    format!("{}{}", env!("CARGO_PKG_VERSION"), commit.unwrap_or_default())
}

/// The durable record, and the undo, of agent-driven development.
///
/// `ic` knows the phase of every run, what it produced and whether it may advance, and undoes what went wrong.
#[derive(Debug, Parser)]
#[command(
    name = "ic",
    styles = STYLES,
    version = version(),
    max_term_width = 100,
    disable_version_flag = true,
    subcommand_required = true,
    infer_subcommands = false,
    after_help = "Begin with:
  ic init                                     create the ledger of this project
  run=$(ic run create --goal 'Add a login')   create a run, at its first phase
  ic status                                   its phase, and the command to type next
  ic log                                      the points that it can go back to
  ic undo --dry-run                           what an undo of the last work would do
  ic redo --dry-run                           what a redo would do

On a terminal, `ic` alone is `ic status`. docs/UNDO.md says which command undoes what.

Exit codes: 0 done or yes, 1 an expected no, 2 failure, 3 usage, 4 partly done.
Every error has a code; docs/errors/ has a page for each."
)]
pub(crate) struct CommandLine {
    #[command(flatten)]
    pub(crate) global: Global,
    /// Print the version
    #[arg(long, action = clap::ArgAction::Version)]
    version: Option<bool>,
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

impl CommandLine {
    /// The command line, parsed. Errors are those of the whole tree.
    pub(crate) fn parsed(arguments: &[OsString]) -> core::result::Result<Self, clap::Error> {
        if let Some(cli) = Self::named(arguments) {
            return Ok(cli);
        }
        // The whole tree is built only to explain an error or show help: building it takes longer than most calls.
        let mut tree = Self::command();
        tree.try_get_matches_from_mut(arguments).and_then(Self::of).map_err(|error| error.format(&mut tree))
    }

    /// A command line that names a command, by a tree of that one. None if it does not parse: the whole tree says why, or shows help.
    pub(crate) fn named(arguments: &[OsString]) -> Option<Self> {
        let root = Global::augment_args(clap::Command::new("ic").disable_help_subcommand(true));
        // Narrowed to one command: see `named`.
        let mut tree = CliCommand::only(root, arguments.get(1..)?);
        Self::of(tree.try_get_matches_from_mut(arguments).ok()?).ok()
    }

    fn of(mut matches: ArgMatches) -> core::result::Result<Self, clap::Error> {
        let global = Global::from_arg_matches_mut(&mut matches)?;
        let command = CliCommand::from_arg_matches_mut(&mut matches)?;
        Ok(Self { global, version: None, command })
    }
}

verbs! {
    pub(crate) enum CliCommand {
        "Every day": {
            Status(status::StatusArgs) = "A run, what is unfinished, and the command to type next",
            Log(log::LogArgs) = "What agents and you did here, newest first",
            Show(show::ShowArgs) = "One entry: a prompt or dispatch, its calls, files, patch",
            Diff(diff::DiffArgs) = "What an undo would take out, or what changed since",
            Blame(blame::BlameArgs) = "The prompts and dispatches that changed a file",
            Undo(undo::UndoArgs) = "Undo the last work: record, effects, git, files, rows",
            Redo(redo::RedoArgs) = "Undo the last undo",
            Restore(restore::RestoreArgs) = "Restore files as they were before a piece of work",
            Ui(ui::UiArgs) = "A page in the browser: what was done here, undo, redo",
        }
        "The record": {
            Init(init::InitArgs) = "Create the ledger of this project",
            /// Runs: create, advance, roll back, inspect
            #[command(subcommand)]
            Run(Later<run::RunVerb>) = "Runs: create, advance, rollback, status; agents, artifacts",
            /// Dispatches: the work of agents, its commits and files
            #[command(subcommand)]
            Dispatch(Later<dispatch::DispatchVerb>) = "Work of agents: create, start, beat, complete, record",
            /// Gates: check, override, list the rules
            #[command(subcommand)]
            Gate(Later<gate::GateVerb>) = "The conditions of an advance: check, override, rules",
            /// Events: follow, verify, redact
            #[command(subcommand)]
            Events(Later<events::EventsVerb>) = "The record of everything that happened: tail, verify, redact",
        }
        "Several agents": {
            Exec(exec::ExecArgs) = "Run a command as a piece of work that can be undone",
            Wait(wait::WaitArgs) = "Wait until work or runs end: all, any, or the first",
            Fork(fork::ForkArgs) = "A work tree beside this one, with the same files",
            Compare(compare::CompareArgs) = "The forks beside one another",
            Adopt(adopt::AdoptArgs) = "Merge what a fork became into this work tree",
            Drop(drop::DropArgs) = "Remove a fork",
        }
        "The undo": {
            /// Checkpoints: capture the working tree, compare, restore, undo
            #[command(subcommand)]
            Checkpoint(Later<checkpoint::CheckpointVerb>) = "The working tree: create, diff, restore",
            /// Rollbacks: list, show, resume, abort, undo
            #[command(subcommand)]
            Rollback(Later<rollback::RollbackVerb>) = "Rollbacks of runs: list, show, resume, abort",
            /// Compensations: declare the undo of outside effects, run it
            #[command(subcommand)]
            Compensation(Later<compensation::CompensationVerb>) = "The undo of outside effects: add, list, run",
            /// Workflows: run a file of steps, resume, roll back
            #[command(subcommand)]
            Workflow(Later<workflow::WorkflowVerb>) = "A file of steps, each with its undo: run, resume, rollback",
            /// Rewinds: take the application's database back to a task
            #[command(subcommand)]
            Rewind(Later<rewind::RewindVerb>) = "The application's database, back to a task: targets, to, resume",
        }
        "Coding agents": {
            Install(install::InstallArgs) = "Install the hooks and the MCP server into a coding agent",
            Uninstall(uninstall::UninstallArgs) = "Uninstall both",
            /// Hooks of coding agents: install, doctor
            #[command(subcommand)]
            Hooks(Later<hooks::HooksVerb>) = "Record the prompts of a coding agent: install, doctor",
            Mcp(mcp::Mcp) = "Serve the tools of agents by MCP",
            /// Sessions of coding agents: list, show
            #[command(subcommand)]
            Session(Later<session::SessionVerb>) = "Sessions of coding agents: list, show, attach, continue",
            Hook(hook::Hook) = "Called by the hooks",
        }
        "The program": {
            Where(ledger_path::Where) = "Print the path of the ledger that commands use here",
            /// The project's configuration
            #[command(subcommand)]
            Config(Later<config::ConfigVerb>) = "Show the settings in force, and their sources",
            Backup(backup::BackupArgs) = "Copy the ledger to a file, while others work with it",
            Health(health::Health) = "Check the health of the ledger",
            Migrate(migrate::Migrate) = "Bring a ledger on a server to the schema of this program",
            Completions(completions::Completions) = "Print a script for completion in a shell",
            Man(man::Man) = "Write the manual pages",
            Version(version::Version) = "Print versions",
        }
    }
}

/// Runs a parsed command line.
pub(crate) fn run(cli: CommandLine, environment: CliEnvironment) -> Result<ExitStatus> {
    run_in(&mut CliSession::new(cli.global, environment)?, &cli.command)
}

/// Runs a parsed command in a session.
pub(crate) fn run_in(session: &mut CliSession, command: &CliCommand) -> Result<ExitStatus> {
    command.run(session).map_err(|failure| session.output.with_reservation(failure))
}
