//! `ic dispatch complete`, `fail`, `cancel`

use clap::{Args, ValueEnum};
use ic_base::Result;
use ic_dispatch::Verdict;
use ic_dispatch::dispatch::Ending;
use ic_ops::dispatch;

use crate::commands::input;
use crate::exit::Exit;
use crate::flags::Door;
use crate::json::DispatchJson;
use crate::render;
use crate::session::Session;

/// Mark a dispatch completed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic dispatch complete \"$d\" --summary 'form and tests'
  ic dispatch complete \"$review\" --verdict pass")]
pub(crate) struct Complete {
    /// The dispatch: an id, or the end of one
    id: String,
    /// What was done
    #[arg(long, value_name = "S")]
    summary: Option<String>,
    /// The verdict of a review
    #[arg(long, value_enum)]
    verdict: Option<Said>,
    /// Take no checkpoint of the working tree
    #[arg(long)]
    no_checkpoint: bool,
    #[command(flatten)]
    door: Door,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Said {
    Pass,
    Fail,
}

/// Mark a dispatch failed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic dispatch fail \"$d\" --error 'exit 1: tests do not compile'
  ic dispatch fail \"$d\" --error 'no answer for 10m' --timed-out")]
pub(crate) struct Fail {
    /// The dispatch: an id, or the end of one
    id: String,
    /// Why
    #[arg(long, value_name = "E")]
    error: String,
    /// It took too long
    #[arg(long)]
    timed_out: bool,
    /// Take no checkpoint of the working tree
    #[arg(long)]
    no_checkpoint: bool,
    #[command(flatten)]
    door: Door,
}

/// Cancel a dispatch. No process is signalled.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic dispatch cancel \"$d\" --reason 'no longer needed'")]
pub(crate) struct Cancel {
    /// The dispatch: an id, or the end of one
    id: String,
    /// Why
    #[arg(long, value_name = "R")]
    reason: Option<String>,
    #[command(flatten)]
    door: Door,
}

impl Complete {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        let verdict = self.verdict.map(|said| match said {
            Said::Pass => Verdict::Pass,
            Said::Fail => Verdict::Fail,
        });
        let summary = input::optional_text("--summary", self.summary.as_deref())?;
        finish(session, &self.id, &self.door, &Ending::Completed { summary, verdict }, !self.no_checkpoint)
    }
}

impl Fail {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        let error = input::text("--error", &self.error)?;
        let ending = if self.timed_out { Ending::TimedOut { error } } else { Ending::Failed { error } };
        finish(session, &self.id, &self.door, &ending, !self.no_checkpoint)
    }
}

impl Cancel {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        let reason = input::optional_text("--reason", self.reason.as_deref())?;
        finish(session, &self.id, &self.door, &Ending::Cancelled { reason }, false)
    }
}

/// `captures`: the working tree is captured as the work left it.
fn finish(session: &mut Session, id: &str, door: &Door, ending: &Ending<'_>, captures: bool) -> Result<Exit> {
    let kernel = session.kernel_for(door.as_deref())?;
    let kept = super::kept(session, &kernel, id, captures)?;
    // A state database is looked at where work begins; where it ends, only the tree is.
    let capturing = kept.settings.as_ref().filter(|settings| settings.checkpointing.auto);
    let (dispatch, warnings) = dispatch::finish(&kernel, id, ending, capturing)?;
    super::captured(session, &kernel, &kept, &warnings);
    session
        .output
        .record(&DispatchJson::from(&dispatch).warned(&warnings), || render::dispatch::one_line(&dispatch))?;
    Ok(Exit::Done)
}
