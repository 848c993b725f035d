//! `ic compensation add`

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::ArgGroup;
use ic_base::Label;
use ic_checkpoint::manifest::PathText;
use ic_effects::EffectAction;
use ic_effects::action::How;
use ic_undo::compensation::{self, Declaration, Declared};

use crate::commands::prelude::*;
use crate::views::compensation::CompensationJson;

/// The longest command, in bytes: the sum of its arguments.
const LONGEST_COMMAND: usize = 64 * 1024;

/// Declare how to undo the effect of a step, before you make it, and print the compensation's id.
///
/// From then on the effect counts as begun: `ic compensation run` undoes it, in reverse order of declaration. So an
/// undo must succeed when there is nothing to undo yet, and when it runs twice. A command gets the id as
/// `IC_IDEMPOTENCY_KEY`, and `IC_RUN` and `IC_STEP`; its output goes to a log beside the ledger.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("kind").required(true).args(KINDS),
    after_help = "Examples:
  key=$(ic compensation add @ --step queue --exec -- ./queue.sh delete orders)
  ic compensation add @ --step migrate --shell 'psql -f down.sql' --retries 3
  ic compensation add @ --step configure --restore-file app.toml
  ic compensation add @ --step serve --kill-pid \"$server\"
  ic compensation add @ --step build --skip --reason 'only ignored files'
  ic compensation add @ --step mail --pivot --reason 'mail cannot be recalled'

--restore-file keeps what is at the path now, or that nothing is: a file that existed is restored, never deleted.
--kill-pid ends that very process, not a later one with the same number. Effects before a pivot are not undone without
--past-pivot."
)]
pub(crate) struct CompensationAddArgs {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
    /// The step that makes the effect
    #[arg(long, value_name = "S")]
    step: String,
    #[command(flatten)]
    kind: Kind,
    /// The command's directory, relative to the project's [default: that]
    #[arg(long, value_name = "DIR", conflicts_with_all = NO_COMMAND)]
    cwd: Option<PathBuf>,
    /// The command's timeout [default: 10m]
    #[arg(long, value_name = "DUR", value_parser = timeout, conflicts_with_all = NO_COMMAND)]
    timeout: Option<Duration>,
    /// Retries of the command [default: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1000), conflicts_with_all = NO_COMMAND)]
    retries: Option<u32>,
    /// Wait before a retry, doubled each time, at most 5m [default: 0s]
    #[arg(long, value_name = "DUR", value_parser = duration, requires = "retries")]
    backoff: Option<Duration>,
    /// A description for people
    #[arg(long, value_name = "D")]
    description: Option<String>,
    #[command(flatten)]
    door: ForceFlags,
    /// After --exec: the program and its arguments
    #[arg(last = true, value_name = "CMD", requires = "exec", conflicts_with_all = NO_PROGRAM)]
    command: Vec<OsString>,
}

#[derive(Debug, Args)]
struct Kind {
    /// Undo it with a program, without a shell
    #[arg(long, requires = "command")]
    exec: bool,
    /// Undo it with a line for sh
    #[arg(long, value_name = "LINE")]
    shell: Option<String>,
    /// Undo it by restoring the present content of a file or link; repeatable
    #[arg(long, value_name = "P")]
    restore_file: Vec<PathBuf>,
    /// Undo it by ending a process that runs now
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    kill_pid: Option<u32>,
    /// Nothing needs to be undone
    #[arg(long)]
    skip: bool,
    /// It cannot be undone: a rollback stops at it
    #[arg(long)]
    pivot: bool,
    /// Undo nothing; the step is to be retried
    #[arg(long)]
    retry: bool,
    /// Why nothing is undone
    #[arg(long, value_name = "R", conflicts_with_all = ["exec", "shell", "restore_file", "kill_pid"])]
    reason: Option<String>,
}

const KINDS: [&str; 7] = ["exec", "shell", "restore_file", "kill_pid", "skip", "pivot", "retry"];
/// The kinds that run no program of their own, and so take no arguments.
const NO_PROGRAM: [&str; 6] = ["shell", "restore_file", "kill_pid", "skip", "pivot", "retry"];
/// The kinds that run no command, and so have no directory, timeout or retries.
const NO_COMMAND: [&str; 5] = ["restore_file", "kill_pid", "skip", "pivot", "retry"];

impl CompensationAddArgs {
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let step = Label::parse("--step", &self.step)?;
        let declaration = Declaration {
            run: &self.run,
            step: step.as_str(),
            declared: self.declared()?,
            description: input::optional_text("--description", self.description.as_deref())?,
        };
        let kernel = session.kernel_for(self.door.as_deref())?;
        let settings = session.checkpoint_settings(&kernel)?;
        let compensation = compensation::add(&kernel, &settings, &declaration)?;
        session.output.scalar(compensation.id.as_str(), &CompensationJson::from(&compensation))
    }

    fn declared(&self) -> Result<Declared> {
        let kind = &self.kind;
        let reason = input::optional_text("--reason", kind.reason.as_deref())?.map(str::to_owned);
        // The group of these flags lets exactly one through. So the last branch is --restore-file.
        let action = if kind.exec {
            EffectAction::Exec { argv: argv(&self.command)?, how: self.how()? }
        } else if let Some(line) = &kind.shell {
            EffectAction::Shell { line: input::text("--shell", line)?.to_owned(), how: self.how()? }
        } else if let Some(pid) = kind.kill_pid {
            return Ok(Declared::KillProcess(pid));
        } else if kind.skip {
            EffectAction::Skip { reason }
        } else if kind.pivot {
            EffectAction::Pivot { reason }
        } else if kind.retry {
            EffectAction::Retry { reason }
        } else {
            kind.restore_file.iter().try_for_each(|path| input::path("--restore-file", path).map(drop))?;
            return Ok(Declared::RestoreFiles(kind.restore_file.clone()));
        };
        Ok(Declared::Action(action))
    }

    fn how(&self) -> Result<How> {
        let directory = self.cwd.as_deref().map(|cwd| input::path("--cwd", cwd)).transpose()?;
        Ok(How {
            directory: directory.map(|directory| PathText(ic_ledger::path_bytes(directory).to_vec())),
            environment: BTreeMap::new(),
            timeout_ms: self.timeout.map(milliseconds),
            retries: self.retries.unwrap_or(0),
            backoff_ms: self.backoff.map_or(0, milliseconds),
        })
    }
}

/// The words of a command, as the ledger stores them. Errors: `invalid_value`.
fn argv(words: &[OsString]) -> Result<Vec<String>> {
    let bytes: usize = words.iter().map(|word| word.len()).sum();
    if bytes > LONGEST_COMMAND {
        return Err(invalid(&format!("The command is {bytes} bytes long; at most {LONGEST_COMMAND} are allowed.")));
    }
    // It is refused now, because the undo would fail only when it is needed.
    if words.first().is_some_and(|program| program.is_empty()) {
        return Err(invalid("The command is empty: it names no program."));
    }
    words
        .iter()
        .map(|word| {
            let text = word.to_str().map(str::to_owned);
            text.ok_or_else(|| invalid(&format!("The argument {} is not UTF-8.", word.display())))
                .map_err(|error| error.hint("write the command into a script, and name that"))
        })
        .collect()
}

fn invalid(message: &str) -> Diagnosis {
    Diagnosis::new(Code::InvalidValue, message)
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn timeout(text: &str) -> std::result::Result<Duration, String> {
    match duration(text)? {
        none if none < Duration::from_millis(1) => Err("a timeout must be longer than 0".to_owned()),
        some => Ok(some),
    }
}

fn duration(text: &str) -> std::result::Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|e| e.to_string())?;
    if duration > Duration::from_hours(365 * 24) {
        return Err("at most 365d".to_owned());
    }
    Ok(duration)
}
