//! `ic run cancel`

use clap::Args;
use ic_base::Result;
use ic_ops::run;

use crate::commands::input;
use crate::exit::Exit;
use crate::flags::Door;
use crate::json::CancelJson;
use crate::render;
use crate::session::Session;

/// Call a run off, with its unfinished dispatches and active agents.
///
/// It records that they are cancelled; no process is signalled. `ic run reopen` makes a cancelled run active again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic run cancel @ --reason 'superseded by sprint-13'")]
pub(crate) struct Cancel {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    door: Door,
}

impl Cancel {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        let reason = input::optional_text("--reason", self.reason.as_deref())?;
        let kernel = session.kernel_for(self.door.as_deref())?;
        let cancelled = run::cancel(&kernel, &self.run, reason)?;
        session.output.record(&CancelJson::from(&cancelled), || render::run::cancelled(&cancelled))?;
        Ok(Exit::Done)
    }
}
