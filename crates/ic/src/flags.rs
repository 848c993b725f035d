//! Flags that several verbs share, and the checks of their values.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use ic_base::mask::mask;
use ic_base::{Code, Diagnosis};

/// Flags that may stand anywhere on the line, and may be repeated. The parser reads each level of the line by itself, and takes the
/// innermost value; [`require_agreement`] checks that all are equal.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// The ledger: a file, or postgres://... [default: $IC_DB, else searched upwards from here; see: ic where]
    #[arg(long, global = true, overrides_with = "db", value_name = "PATH", hide_short_help = true)]
    pub(crate) db: Option<PathBuf>,
    /// Run as if started in this directory
    #[arg(short = 'C', global = true, overrides_with = "directory", value_name = "DIR", hide_short_help = true)]
    pub(crate) directory: Option<PathBuf>,
    /// The output format [default: $IC_FORMAT, else text on a terminal, JSON otherwise]
    #[arg(long, global = true, overrides_with = "format", value_enum, value_name = "FORMAT", hide_short_help = true)]
    pub(crate) format: Option<FormatFlag>,
    /// The same as --format json
    #[arg(long, global = true, overrides_with = "json", hide_short_help = true)]
    pub(crate) json: bool,
    /// Indent JSON by two spaces
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

/// Refuses a line that gives a global option two different values, wherever they stand. `--json` counts as `--format json`.
///
/// Errors: `usage`. The line was parsed before, so a word that begins with a dash is an option, and no value is missing.
pub(crate) fn require_agreement(arguments: &[OsString]) -> ic_base::Result<()> {
    let mut given: Vec<(&str, OsString)> = Vec::new();
    // What follows `--` is not ours, as in `ic exec -- tool --json`.
    let mut rest = arguments.iter().skip(1).take_while(|argument| *argument != "--");
    while let Some(argument) = rest.next() {
        let Some((name, value)) = valued(argument, &mut rest) else { continue };
        match given.iter().find(|(known, _)| *known == name) {
            Some((_, before)) if !is_same(name, before, &value) => {
                // The values are masked: the URL of a server may contain a password.
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

/// A global option with its value, which is in the same word or in the next one; `None` for any other word.
pub(crate) fn valued<'a>(
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
            Some([b'=', value @ ..]) => return Some((name, ic_ledger::path_from_bytes(value).into())),
            _ => {}
        }
    }
    // A single dash: letters without values, then perhaps C, whose value is the rest of the word or the next word.
    let letters = bytes.strip_prefix(b"-").filter(|letters| !letters.starts_with(b"-"))?;
    let at = letters.iter().position(|letter| *letter == b'C')?;
    match &letters[at + 1..] {
        [] => rest.next().map(|value| ("-C", value.clone())),
        // The parser strips one equals sign, so `-C=DIR` and `-CDIR` are the same.
        [b'=', value @ ..] | value => Some(("-C", ic_ledger::path_from_bytes(value).into())),
    }
}

fn is_same(name: &str, one: &OsStr, other: &OsStr) -> bool {
    let duration = |text: &OsStr| text.to_str().and_then(|text| busy_timeout(text).ok());
    // `1m` and `60s` say the same.
    one == other || name == "--busy-timeout" && duration(one) == duration(other)
}

/// The values of `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatFlag {
    /// Text on a terminal, JSON otherwise
    Auto,
    /// One JSON document, also for a list
    Json,
    /// One JSON record per line
    Jsonl,
    /// Text for people, in colours on a terminal
    Text,
}

/// Whether a plan is shown, asked about, or carried out.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct PlanFlags {
    /// Show the plan and change nothing
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
    /// Refuse any plan but the one that has this hash in a dry run
    #[arg(long, value_name = "HASH", value_parser = plan_hash)]
    pub(crate) expect_plan: Option<String>,
    /// Do not ask for confirmation
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
}

/// The dispatch on whose behalf a verb writes.
#[derive(Debug, Args)]
pub(crate) struct ForceFlags {
    /// The calling dispatch [default: $IC_DISPATCH]; refused if it was rolled back
    #[arg(long, value_name = "ID")]
    pub(crate) dispatch: Option<String>,
}

impl ForceFlags {
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

/// Parses one of `values` by its word. Each has a line in the help, if its second part is not empty.
pub(crate) fn one_of<T: Copy + Send + Sync + 'static>(
    word: fn(T) -> &'static str,
    values: &'static [(T, &'static str)],
) -> impl TypedValueParser<Value = T> {
    let shown = values.iter().map(move |(value, help)| match *help {
        "" => PossibleValue::new(word(*value)),
        help => PossibleValue::new(word(*value)).help(help),
    });
    PossibleValuesParser::new(shown).try_map(move |text| {
        // The value is always found: the parser above accepts no other word.
        let found = values.iter().find(|(value, _)| word(*value) == text);
        found.map(|(value, _)| *value).ok_or("it is none of the values")
    })
}

/// Checks that a text is a plan hash. Otherwise a typing error would be reported as a plan that has changed.
pub(crate) fn plan_hash(text: &str) -> Result<String, String> {
    if (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(text.to_owned());
    }
    Err("a plan hash is hex digits, the `plan_hash` of a dry run".to_owned())
}
