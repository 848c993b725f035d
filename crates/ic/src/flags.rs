//! Flags that more than one verb has.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

/// Flags that stand anywhere.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// The ledger: a file, or postgres://... [default: $IC_DB, else searched upwards from here; see: ic where]
    #[arg(long, global = true, value_name = "PATH", hide_short_help = true)]
    pub(crate) db: Option<PathBuf>,
    /// Run as if started in this directory
    #[arg(short = 'C', global = true, value_name = "DIR", hide_short_help = true)]
    pub(crate) directory: Option<PathBuf>,
    /// The output format [default: $IC_FORMAT, else text on a terminal, JSON otherwise]
    #[arg(long, global = true, value_enum, value_name = "FORMAT", hide_short_help = true)]
    pub(crate) format: Option<FormatFlag>,
    /// The same as --format json
    #[arg(long, global = true, conflicts_with = "format", hide_short_help = true)]
    pub(crate) json: bool,
    /// Indent JSON
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) pretty: bool,
    /// How long to wait for other writers, as in 500ms
    #[arg(long, global = true, value_name = "DUR", default_value = "5s", value_parser = busy_timeout, hide_short_help = true)]
    pub(crate) busy_timeout: Duration,
    /// No hints and warnings on stderr
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) quiet: bool,
    /// Print the ledger's path on stderr
    #[arg(short = 'v', global = true, hide_short_help = true)]
    pub(crate) verbose: bool,
}

/// The values of `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatFlag {
    /// Text on a terminal, JSON otherwise
    Auto,
    /// One JSON document
    Json,
    /// One JSON record per line
    Jsonl,
    /// For people
    Text,
    /// A diagram: `run history` only
    Mermaid,
}

/// The dispatch on whose behalf a verb writes.
#[derive(Debug, Args)]
pub(crate) struct Door {
    /// The calling dispatch [default: $IC_DISPATCH]; refused if it was rolled back
    #[arg(long, value_name = "ID")]
    pub(crate) dispatch: Option<String>,
}

impl Door {
    pub(crate) fn as_deref(&self) -> Option<&str> {
        self.dispatch.as_deref()
    }
}

fn busy_timeout(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|e| e.to_string())?;
    if duration > Duration::from_hours(1) {
        return Err("at most 1h".to_owned());
    }
    Ok(duration)
}

/// Takes one of these values by its word; each has its line in the help.
pub(crate) fn one_of<T: Copy + Send + Sync + 'static>(
    word: fn(T) -> &'static str,
    values: &'static [(T, &'static str)],
) -> impl TypedValueParser<Value = T> {
    let shown = values.iter().map(move |(value, help)| match *help {
        "" => PossibleValue::new(word(*value)),
        help => PossibleValue::new(word(*value)).help(help),
    });
    PossibleValuesParser::new(shown).try_map(move |text| {
        let found = values.iter().find(|(value, _)| word(*value) == text);
        found.map(|(value, _)| *value).ok_or("it is none of the values")
    })
}

/// Refuses what is no plan hash: that no plan has it says nothing about the plan.
pub(crate) fn plan_hash(text: &str) -> Result<String, String> {
    if (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(text.to_owned());
    }
    Err("a plan hash is hex digits, the `plan_hash` of a dry run".to_owned())
}
