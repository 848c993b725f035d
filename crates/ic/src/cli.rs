//! The command tree. Each verb's arguments stand beside its code, in `commands/`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::commands::{dispatch, events, gate, ledger, run};

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

/// Flags that stand anywhere.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// The ledger's file [default: $IC_DB, else found upwards from here; see: ic where]
    #[arg(long, global = true, value_name = "PATH", hide_short_help = true)]
    pub(crate) db: Option<PathBuf>,
    /// Act as if started in this directory
    #[arg(short = 'C', global = true, value_name = "DIR", hide_short_help = true)]
    pub(crate) directory: Option<PathBuf>,
    /// The form of the output [default: $IC_FORMAT, else text on a terminal and JSON otherwise]
    #[arg(long, global = true, value_enum, value_name = "FORMAT", hide_short_help = true)]
    pub(crate) format: Option<FormatFlag>,
    /// The same as --format json
    #[arg(long, global = true, conflicts_with = "format", hide_short_help = true)]
    pub(crate) json: bool,
    /// Indent JSON
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) pretty: bool,
    /// How long to wait for other writers, as in 500ms or 5s
    #[arg(long, global = true, value_name = "DUR", default_value = "5s", value_parser = busy_timeout, hide_short_help = true)]
    pub(crate) busy_timeout: Duration,
    /// No hints and warnings on stderr
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) quiet: bool,
    /// Say on stderr which ledger is used
    #[arg(short = 'v', global = true, hide_short_help = true)]
    pub(crate) verbose: bool,
}

/// The values of `--format`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum FormatFlag {
    /// Text on a terminal, JSON otherwise
    Auto,
    /// One JSON document
    Json,
    /// One JSON record a line
    Jsonl,
    /// For people
    Text,
}

impl FormatFlag {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Json => "json",
            Self::Jsonl => "jsonl",
            Self::Text => "text",
        }
    }
}

/// The dispatch on whose behalf a verb writes.
#[derive(Debug, Args)]
pub(crate) struct Door {
    /// The dispatch on whose behalf this is done [default: $IC_DISPATCH]; refused if it was rolled back
    #[arg(long, value_name = "ID")]
    pub(crate) dispatch: Option<String>,
}

impl Door {
    pub(crate) fn as_deref(&self) -> Option<&str> {
        self.dispatch.as_deref()
    }
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
    /// Gates: check, override, list the rules
    #[command(subcommand)]
    Gate(gate::Verb),
    /// Events: follow, verify, redact
    #[command(subcommand)]
    Events(events::Verb),
}

fn busy_timeout(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|e| e.to_string())?;
    if duration > Duration::from_hours(1) {
        return Err("at most 1h".to_owned());
    }
    Ok(duration)
}
