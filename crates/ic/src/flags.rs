//! Flags that more than one verb has.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use ic_base::mask::mask;
use ic_base::{Code, Diagnosis};

/// Flags that stand anywhere, and may be repeated: the parser knows of each level of a line for itself, and takes the innermost. That all say the
/// same is seen by [`require_agreement`].
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// The ledger: a file, or postgres://... [default: $IC_DB, else searched upwards from here; see: ic where]
    #[arg(long, global = true, overrides_with = "db", value_name = "PATH", hide_short_help = true)]
    pub(crate) db: Option<PathBuf>,
    /// Run as if started in this directory
    #[arg(
        short = 'C',
        global = true,
        overrides_with = "directory",
        value_name = "DIR",
        hide_short_help = true
    )]
    pub(crate) directory: Option<PathBuf>,
    /// The output format [default: $IC_FORMAT, else text on a terminal, JSON otherwise]
    #[arg(
        long,
        global = true,
        overrides_with = "format",
        value_enum,
        value_name = "FORMAT",
        hide_short_help = true
    )]
    pub(crate) format: Option<FormatFlag>,
    /// The same as --format json
    #[arg(long, global = true, overrides_with = "json", hide_short_help = true)]
    pub(crate) json: bool,
    /// Indent JSON
    #[arg(long, global = true, overrides_with = "pretty", hide_short_help = true)]
    pub(crate) pretty: bool,
    /// How long to wait for other writers, as in 500ms
    #[arg(long, global = true, overrides_with = "busy_timeout", value_name = "DUR", default_value = "5s", value_parser = busy_timeout, hide_short_help = true)]
    pub(crate) busy_timeout: Duration,
    /// No hints and warnings on stderr
    #[arg(long, global = true, overrides_with = "quiet", hide_short_help = true)]
    pub(crate) quiet: bool,
    /// Print the ledger's path on stderr
    #[arg(short = 'v', global = true, overrides_with = "verbose", hide_short_help = true)]
    pub(crate) verbose: bool,
}

/// Refuses a line that gives a global option two values, at whichever places: neither is guessed. `--json` is `--format json`.
///
/// Errors: `usage`. The line was parsed before, so what begins with a dash is an option, and what an option asks for is there.
pub(crate) fn require_agreement(arguments: &[OsString]) -> ic_base::Result<()> {
    let mut given: Vec<(&str, OsString)> = Vec::new();
    let mut rest = arguments.iter().skip(1).take_while(|argument| *argument != "--");
    while let Some(argument) = rest.next() {
        let Some((name, value)) = valued(argument, &mut rest) else { continue };
        match given.iter().find(|(known, _)| *known == name) {
            Some((_, before)) if !is_same(name, before, &value) => {
                let said = |value: &OsString| format!("{:?}", mask(&value.to_string_lossy()));
                let (before, value) = (said(before), said(&value));
                let message = format!("The option {name} is given two values: {before} and {value}.");
                return Err(Diagnosis::new(Code::Usage, message).hint("give it once"));
            }
            Some(_) => {}
            None => given.push((name, value)),
        }
    }
    Ok(())
}

/// A global option that has a value, and its value: in the same word, or the next of the line.
fn valued<'a>(
    argument: &OsStr,
    rest: &mut impl Iterator<Item = &'a OsString>,
) -> Option<(&'static str, OsString)> {
    const LONG: [&str; 3] = ["--db", "--format", "--busy-timeout"];
    let bytes = argument.as_encoded_bytes();
    if argument == "--json" {
        return Some(("--format", "json".into()));
    }
    for name in LONG {
        match bytes.strip_prefix(name.as_bytes()) {
            Some(b"") => return rest.next().map(|value| (name, value.clone())),
            Some([b'=', value @ ..]) => return Some((name, ic_store::path_from_bytes(value).into())),
            _ => {}
        }
    }
    // One dash: letters that want no value, and C, which wants what follows it.
    let letters = bytes.strip_prefix(b"-").filter(|letters| !letters.starts_with(b"-"))?;
    let at = letters.iter().position(|letter| *letter == b'C')?;
    match &letters[at + 1..] {
        [] => rest.next().map(|value| ("-C", value.clone())),
        [b'=', value @ ..] | value => Some(("-C", ic_store::path_from_bytes(value).into())),
    }
}

fn is_same(name: &str, one: &OsStr, other: &OsStr) -> bool {
    let duration = |text: &OsStr| text.to_str().and_then(|text| busy_timeout(text).ok());
    one == other || name == "--busy-timeout" && duration(one) == duration(other)
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
