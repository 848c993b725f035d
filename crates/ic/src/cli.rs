//! The command tree. Each verb's arguments stand beside its code, in `commands/`.

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand};

use crate::commands::{
    checkpoint, compensation, config, dispatch, events, gate, ledger, rewind, rollback, run, workflow,
};
use crate::flags::Global;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Cyan.on_default().dimmed());

/// The durable record, and the undo, of agent-driven development.
///
/// `ic` knows where every run is, what it produced, whether it may go on, and how to take it back to an earlier phase.
#[derive(Debug, Parser)]
#[command(
    name = "ic",
    styles = STYLES,
    max_term_width = 100,
    disable_version_flag = true,
    subcommand_required = true,
    infer_subcommands = false,
    after_help = "Begin with:
  ic init                                     make the ledger of this project
  run=$(ic run create --goal 'Add a login')   begin a run, at its first phase
  ic run artifact add @ --path docs/idea.md   register what the phase produced
  ic run advance @                            go on, past the gate
  ic run rollback @ --to-phase planned --dry-run    see what going back would do

Exit codes: 0 done or yes, 1 an expected no, 2 failure, 3 usage, 4 partly done.
Every error has a code; docs/errors/ has a page for each."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Init(ledger::init::Init),
    Where(ledger::r#where::Where),
    Version(ledger::version::Version),
    Health(ledger::health::Health),
    /// Runs: create, advance, roll back, look
    #[command(subcommand)]
    Run(run::Verb),
    /// Dispatches: work handed to agents, its commits and files
    #[command(subcommand)]
    Dispatch(dispatch::Verb),
    /// Checkpoints: capture the working tree, compare, restore, undo
    #[command(subcommand)]
    Checkpoint(checkpoint::Verb),
    /// Rollbacks: list, show, go on with, give up, take back
    #[command(subcommand)]
    Rollback(rollback::Verb),
    /// Workflows: run a file of steps, resume, take back
    #[command(subcommand)]
    Workflow(workflow::Verb),
    /// Compensations: declare how outside effects are undone, undo them
    #[command(subcommand)]
    Compensation(compensation::Verb),
    /// Rewinds: take the application's own database back to a task
    #[command(subcommand)]
    Rewind(rewind::Verb),
    /// Gates: check, override, list the rules
    #[command(subcommand)]
    Gate(gate::Verb),
    /// The project's configuration
    #[command(subcommand)]
    Config(config::Verb),
    /// Events: follow, verify, redact
    #[command(subcommand)]
    Events(events::Verb),
}
