//! The command tree. Each verb's arguments stand beside its code, in `commands/`.

use clap::Parser;
use clap::builder::styling::{AnsiColor, Styles};

use crate::commands::{
    blame, checkpoint, compensation, completions, config, dispatch, events, gate, health, hook, hooks, init,
    log, man, redo, rewind, rollback, run, session, status, undo, verbs, version, r#where, workflow,
};
use crate::flags::Global;
use crate::later::Later;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Cyan.on_default().dimmed());

/// The first page that a newcomer reads: the nouns by what they are for. A test holds it to the tree.
const HELP: &str = "\
{about-with-newline}
{usage-heading} {usage}

\x1b[1m\x1b[32mEvery day:\x1b[0m
  status        A run at a glance, what is unfinished, and what to type next
  log           What a run can go back to, and how it went back before
  blame         Which prompts and dispatches changed a file
  undo          Undo what was done last: record, effects, git, files, rows
  redo          Bring back what was undone last

\x1b[1m\x1b[32mThe record:\x1b[0m
  init          Make the ledger of this project
  run           Runs: create, advance, rollback, status; their agents and artifacts
  dispatch      Work handed to agents, with its state, commits and files
  gate          What must hold before a run goes on: check, override, rules
  events        Everything that happened: tail, verify, redact

\x1b[1m\x1b[32mThe undo:\x1b[0m
  checkpoint    The working tree: create, diff, restore
  rollback      Rollbacks of runs: list, resume, abort, undo
  compensation  How outside effects are undone: add, list, run
  workflow      A file of steps, each with its undo: run, resume, rollback
  rewind        The application's own database, back to a task: targets, to, undo

\x1b[1m\x1b[32mCoding agents:\x1b[0m
  hooks         Let a coding agent's prompts be recorded: install, uninstall, doctor
  session       Sessions of coding agents and their prompts: list, show, attach
  hook          What a client calls

\x1b[1m\x1b[32mThe program:\x1b[0m
  where         Print the path of the ledger that commands use here
  config        Show the settings in force, and where they come from
  health        Check that the ledger is sound
  completions   Print a script that completes lines in a shell
  man           Write the manual
  version       Print versions
  help          Print the help of a command, as its --help does

\x1b[1m\x1b[32mOptions:\x1b[0m
{options}{after-help}";

/// The version, and the commit of a release.
fn version() -> String {
    let commit = option_env!("IC_BUILD_COMMIT").map(|commit| format!(" ({commit})"));
    format!("{}{}", env!("CARGO_PKG_VERSION"), commit.unwrap_or_default())
}

/// The durable record, and the undo, of agent-driven development.
///
/// `ic` knows where every run is, what it produced and whether it may go on, and undoes what went wrong.
#[derive(Debug, Parser)]
#[command(
    name = "ic",
    styles = STYLES,
    help_template = HELP,
    version = version(),
    max_term_width = 100,
    disable_version_flag = true,
    subcommand_required = true,
    infer_subcommands = false,
    after_help = "Begin with:
  ic init                                     make the ledger of this project
  run=$(ic run create --goal 'Add a login')   begin a run, at its first phase
  ic status                                   see where it is, and what to type next
  ic log                                      see what it can go back to
  ic undo --dry-run                           see what undoing the last work would do
  ic redo --dry-run                           see what bringing it back would do

What to type to undo what: docs/UNDO.md.

Exit codes: 0 done or yes, 1 an expected no, 2 failure, 3 usage, 4 partly done.
Every error has a code; docs/errors/ has a page for each."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    /// Print the version
    #[arg(long, action = clap::ArgAction::Version)]
    version: Option<bool>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

verbs! {
    pub(crate) enum Command {
        Status(status::Status),
        Log(log::Log),
        Blame(blame::Blame),
        Undo(undo::Undo),
        Redo(redo::Redo),
        Init(init::Init),
        /// Runs: create, advance, roll back, look
        #[command(subcommand)]
        Run(Later<run::Verb>),
        /// Dispatches: work handed to agents, its commits and files
        #[command(subcommand)]
        Dispatch(Later<dispatch::Verb>),
        /// Gates: check, override, list the rules
        #[command(subcommand)]
        Gate(Later<gate::Verb>),
        /// Events: follow, verify, redact
        #[command(subcommand)]
        Events(Later<events::Verb>),
        /// Checkpoints: capture the working tree, compare, restore, undo
        #[command(subcommand)]
        Checkpoint(Later<checkpoint::Verb>),
        /// Rollbacks: list, show, resume, abort, undo
        #[command(subcommand)]
        Rollback(Later<rollback::Verb>),
        /// Compensations: declare how outside effects are undone, undo them
        #[command(subcommand)]
        Compensation(Later<compensation::Verb>),
        /// Workflows: run a file of steps, resume, roll back
        #[command(subcommand)]
        Workflow(Later<workflow::Verb>),
        /// Rewinds: take the application's own database back to a task
        #[command(subcommand)]
        Rewind(Later<rewind::Verb>),
        /// Hooks of coding agents: install, uninstall, doctor
        #[command(subcommand)]
        Hooks(Later<hooks::Verb>),
        /// Sessions of coding agents: list, show
        #[command(subcommand)]
        Session(Later<session::Verb>),
        Hook(hook::Hook),
        Where(r#where::Where),
        /// The project's configuration
        #[command(subcommand)]
        Config(Later<config::Verb>),
        Health(health::Health),
        Completions(completions::Completions),
        Man(man::Man),
        Version(version::Version),
    }
}
