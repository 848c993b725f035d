//! `ic exec`

use std::ffi::OsString;
use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ic_base::{Diagnose, DispatchId};
use ic_dispatch::dispatch::{self, Dispatch, DispatchWork};
use ic_effects::child::ChildExit;
use ic_ops::direct_work::{self, DirectWork};
use ic_ops::exec::{self, ExecOutput, ExecRequest, ExecWatch, ExecutedCommand};
use ic_ops::forks;
use ic_worktree::Warning;
use rustix::process::Signal;

use crate::background_sweep;
use crate::commands::fork;
use crate::commands::prelude::*;
use crate::format::OutputFormat;
use crate::signals;
use crate::views::dispatch::{DispatchJson, ExecJson};

/// What `--isolate` without a name stands for: no name contains it.
const NEXT: &str = "/";

/// The beginning of a line with a warning of the process in the background. No id begins with it.
const WARNS: &str = "! ";

/// Run a command as a piece of work: captured, recorded, undone alone.
///
/// The tree is captured before the command starts and when it has ended, so `ic undo` takes out exactly what it changed. Its output is passed
/// through and kept in a log, its commits are recorded, and its exit status is that of ic. On a terminal the command has the terminal
/// itself, without a log. If ic is killed, the command ends with it, and the work says interrupted. The command finds `IC_DISPATCH`,
/// `IC_RUN` and `IC_DB`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic exec -- make test
  ic exec --name login -- claude -p \"$(cat prompt.md)\"
  ic exec --run @ --timeout 30m --retry 2 -- codex exec - <prompt.md
  for i in 1 2 3; do ic exec --isolate=$i --detach -- ./agent.sh; done
  d=$(ic exec --detach -- ./agent.sh); ic wait \"$d\"
  ic undo                               # take out what it changed

Exit: that of the command; 124 when it took too long, 128 and the number of the signal that ended it.
An error of ic itself, such as a run that is closed, has its code on standard error. Before the command starts,
nothing has run then; after that, what it did stands.")]
pub(crate) struct ExecArgs {
    /// The run that the work belongs to [default: that of IC_DISPATCH, else one of its own]
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Its phase [default: the run's current one]
    #[arg(long, value_name = "P", requires = "run")]
    phase: Option<String>,
    /// A name for people [default: the command]
    #[arg(long, value_name = "N")]
    name: Option<String>,
    /// The kind of agent
    #[arg(long, value_name = "T")]
    agent_type: Option<String>,
    /// The model that the agent uses
    #[arg(long, value_name = "M")]
    model: Option<String>,
    /// End the command after DUR, as in 90s or 2h
    #[arg(long, value_name = "DUR", value_parser = humantime::parse_duration)]
    timeout: Option<Duration>,
    /// Run it again up to N times while it fails
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100))]
    retry: u32,
    /// The pause before the first retry; each further one is twice as long
    #[arg(long, value_name = "DUR", default_value = "1s", value_parser = humantime::parse_duration)]
    backoff: Duration,
    /// Return when the command has started, and print the id of its work; its output goes to the log alone
    #[arg(long)]
    detach: bool,
    /// The process in the background that --detach starts
    #[arg(long, hide = true, conflicts_with = "detach")]
    in_background: bool,
    /// Record that the process which ran this dispatch's command was killed
    #[arg(long, hide = true, value_name = "ID")]
    killed: Option<String>,
    /// Run it in a new fork of this work tree, with this name [default: the next free number]
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = NEXT, conflicts_with_all = ["run", "no_checkpoint"])]
    isolate: Option<String>,
    /// Take no checkpoint of the working tree
    #[arg(long)]
    no_checkpoint: bool,
    /// The command and its arguments
    #[arg(required_unless_present = "killed", last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl ExecArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let work = DispatchWork {
            agent_type: input::optional_label("--agent-type", self.agent_type.as_deref())?,
            name: match &self.name {
                Some(name) => input::optional_label("--name", Some(name))?,
                None => input::cut_label(Some(&exec::command_line(&self.command))),
            },
            model: input::optional_label("--model", self.model.as_deref())?,
            prompt_file: None,
            parent_id: None,
        };
        // --killed ID   called by the guard of a command: record the end of work whose process was killed
        // --detach      start `ic exec --in-background`, and return when it has printed its id
        // --isolate     make a fork, and run the command in it
        // else          run the command here
        if let Some(killed) = &self.killed {
            return record_killed(session, killed);
        }
        if self.detach {
            return self.detach(session);
        }
        let Some(name) = &self.isolate else { return self.run_here(session, work, Vec::new()) };
        // This is checked before the fork is made: a command that cannot start leaves no fork behind.
        exec::require_startable(&self.command, &session.directory)?;
        let name = Some(name.as_str()).filter(|name| *name != NEXT).map(fork::named).transpose()?;
        let kernel = session.kernel_to_change(None)?;
        let settings = session.checkpoint_settings(&kernel)?;
        // The command starts in the fork at the place where the caller stands in this tree.
        let below = session.directory.strip_prefix(&kernel.project.root).map(Path::to_owned).unwrap_or_default();
        let (fork, warnings) = forks::make(&kernel, &settings, None, name.as_deref())?;
        if self.in_background {
            // Warnings are printed before the id, for the caller that started this process.
            let mut out = std::io::stdout();
            for warning in &warnings {
                let line = warning.message.replace('\n', " ");
                writeln!(out, "{WARNS}{} {line}", warning.code).while_doing(|| "printing a warning".to_owned())?;
            }
        } else {
            // Not in the background: standard error is a pipe there, which the caller reads only after a failure.
            session.output.warn_all(&warnings);
        }
        // A directory that is ignored, or empty in git's eyes, may not be there.
        let inside = Some(fork.root.join(below)).filter(|inside| inside.is_dir()).unwrap_or(fork.root);
        session.within(&inside, |session| self.run_here(session, work, warnings))
    }

    /// Runs the command where the session stands. `warnings`: those of making the fork, which text has shown already.
    fn run_here(&self, session: &mut CliSession, work: DispatchWork, warnings: Vec<Warning>) -> Result<ExitStatus> {
        let kernel = session.kernel_to_change(None)?;
        let project = kernel.project.root.clone();
        let is_captured = !self.no_checkpoint && kernel.ledger.is_of_one_host();
        let kept = if is_captured { session.kept_along_the_way(&kernel, &project, true)? } else { None };
        let directory = session.directory.clone();
        let request = ExecRequest {
            work: DirectWork {
                run: self.run.as_deref(),
                phase: self.phase.as_deref(),
                work,
                line: exec::command_line(&self.command),
                kept: kept.as_ref(),
            },
            argv: &self.command,
            directory: &directory,
            timeout: self.timeout,
            retries: self.retry,
            backoff: self.backoff,
            // With --json standard output is for the record alone, so the output of the command goes to standard
            // error.
            output: match (self.in_background, session.output.json_was_asked_for()) {
                (true, _) => ExecOutput::Nowhere,
                (_, true) => ExecOutput::ErrorStream,
                _ if has_terminal() => ExecOutput::Terminal,
                _ => ExecOutput::Streams,
            },
        };
        // The handlers are installed first: once the work is on record, a signal has to end the command as well.
        let mut watch = Watch { first: signals::received()?, directory: &directory, announces: self.in_background };
        let mut executed = exec::exec(&kernel, &request, &mut watch)?;
        background_sweep::sweep(session, &kernel, kept.as_ref(), &project);
        // In the background no process reads what is printed now: the caller ended when it had the id.
        if !self.in_background {
            session.output.warn_all(&executed.warnings);
            executed.warnings.splice(..0, warnings);
            report(session, &executed)?;
        }
        Ok(ExitStatus::Of(exit_code(&executed)))
    }

    /// Starts this command in the background, and prints the id of its work once that is on record.
    fn detach(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let doing = || "starting ic in the background".to_owned();
        let mut background = Command::new(std::env::current_exe().while_doing(doing)?);
        // The child inherits the environment of this call and none of its flags. Its form is named, because its error is printed here.
        let is_text = session.output.format == OutputFormat::Text;
        background.args(["--format", if is_text { "text" } else { "json" }]);
        background.arg(format!("--busy-timeout={}ms", session.busy_timeout().as_millis()));
        background.arg("-C").arg(&session.directory).arg("--db").arg(session.place()?.name());
        background.args(["exec", "--in-background"]);
        let options = [
            ("--run", self.run.clone()),
            ("--phase", self.phase.clone()),
            ("--name", self.name.clone()),
            ("--agent-type", self.agent_type.clone()),
            ("--model", self.model.clone()),
            ("--timeout", self.timeout.map(|timeout| format!("{}ms", timeout.as_millis()))),
            ("--backoff", Some(format!("{}ms", self.backoff.as_millis()))),
            ("--retry", Some(self.retry.to_string())),
        ];
        for (name, value) in options {
            if let Some(value) = value {
                // Name and value are one word, so that a value that begins with a dash is not read as a flag.
                background.arg(format!("{name}={value}"));
            }
        }
        match self.isolate.as_deref() {
            Some(NEXT) => drop(background.arg("--isolate")),
            Some(name) => drop(background.arg(format!("--isolate={name}"))),
            None => {}
        }
        if self.no_checkpoint {
            background.arg("--no-checkpoint");
        }
        background.arg("--").args(&self.command);
        // A group of its own: neither Ctrl-C nor the end of this shell's job reaches it.
        background.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = background.spawn().while_doing(doing)?;
        // The child prints this, and nothing after it:
        //
        //     ! CODE TEXT   any number of warnings, from making the fork
        //     ID            once the work is on record, before the command starts
        let (mut id, mut warnings) = (String::new(), Vec::new());
        for line in child.stdout.take().into_iter().flat_map(|said| BufReader::new(said).lines()) {
            let line = line.while_doing(doing)?;
            let Some(message) = line.strip_prefix(WARNS) else {
                id = line;
                break;
            };
            let (code, message) = message.split_once(' ').unwrap_or_default();
            // Codes are constants of this program, and those of the child are known only as text. The process ends soon.
            warnings.push(Warning { code: code.to_owned().leak(), message: message.to_owned() });
        }
        // The stream ended without an id: the child has ended, and its command was not started.
        if id.trim().is_empty() {
            // It was refused, and says why in the form that was asked for.
            let mut error = Vec::new();
            if let Some(mut said) = child.stderr.take() {
                said.read_to_end(&mut error).while_doing(doing)?;
            }
            std::io::stderr().write_all(&error).while_doing(|| "writing the error".to_owned())?;
            let status = child.wait().while_doing(doing)?;
            // Without a code, a signal killed it, which is a failure.
            return Ok(ExitStatus::Of(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(2)));
        }
        let kernel = session.kernel()?;
        let begun = kernel.read(|snapshot| dispatch::resolve(snapshot, id.trim()))?;
        session.output.warn_beside_value(&warnings);
        session.output.scalar(begun.id.as_str(), &DispatchJson::from(&begun).warned(&warnings))
    }
}

/// Whether all three streams are terminals: then a command may ask a person.
fn has_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && std::io::stderr().is_terminal()
}

/// What the guard of a command records.
fn record_killed(session: &mut CliSession, id: &str) -> Result<ExitStatus> {
    let kernel = session.kernel()?;
    let is_captured = kernel.ledger.is_of_one_host();
    let kept_of = |project: &Path| session.kept_along_the_way(&kernel, project, is_captured);
    direct_work::record_killed(&kernel, id, &kept_of)?;
    Ok(ExitStatus::Done)
}

/// The command that records the death of this process, with which a piece of work ended.
pub(crate) fn if_killed(directory: &Path, work: &DispatchId) -> Vec<OsString> {
    // --db is left out: the guard gives the ledger to this command in IC_DB.
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("ic"));
    let words = ["exec", "--killed", work.as_str()].map(OsString::from);
    [program.into(), "-C".into(), directory.into()].into_iter().chain(words).collect()
}

struct Watch<'a> {
    first: Arc<AtomicUsize>,
    directory: &'a Path,
    /// Whether the id is printed once it is on record.
    announces: bool,
}

impl ExecWatch for Watch<'_> {
    fn begun(&mut self, dispatch: &Dispatch) -> Result<()> {
        if !self.announces {
            return Ok(());
        }
        let mut out = std::io::stdout();
        writeln!(out, "{}", dispatch.id).and_then(|()| out.flush()).while_doing(|| "printing the id".to_owned())
    }

    fn signal(&self) -> Option<Signal> {
        match i32::try_from(self.first.load(Ordering::SeqCst)).ok()? {
            0 => None,
            signal => Signal::from_named_raw(signal),
        }
    }

    fn if_killed(&self, dispatch: &DispatchId) -> Vec<OsString> {
        if_killed(self.directory, dispatch)
    }
}

/// Says how it ended: as a record where JSON was asked for, as a line on a terminal.
fn report(session: &mut CliSession, executed: &ExecutedCommand) -> Result<()> {
    if session.output.json_was_asked_for() {
        let record = ExecJson::new(executed, i64::from(exit_code(executed)));
        return session.output.record(&record, String::new).map(drop);
    }
    if std::io::stderr().is_terminal() && !session.output.is_quiet() {
        // With stderr closed the line is lost, and the call still succeeds.
        let _ = writeln!(anstream::stderr(), "{}", views::dispatch::executed(executed));
    }
    Ok(())
}

fn exit_code(executed: &ExecutedCommand) -> u8 {
    let of_signal = |signal: i32| u8::try_from(128 + signal).unwrap_or(255);
    match (&executed.exit, executed.signal) {
        // This comes before the signal: a command that ended well in spite of it is recorded as completed.
        (ChildExit::Code(0), _) => 0,
        (_, Some(signal)) => of_signal(signal.as_raw()),
        (ChildExit::Code(code), _) => u8::try_from(*code).unwrap_or(255),
        (ChildExit::Signal(signal), _) => of_signal(*signal),
        // 124 and 126 are the codes of timeout(1).
        (ChildExit::TimedOut, _) => 124,
        (ChildExit::NotStarted(_), _) => 126,
        (ChildExit::Cancelled, _) => 125,
    }
}
