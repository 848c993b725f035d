//! `ic session attach`

use ic_ops::hooks;
use ic_session::places;

use crate::commands::prelude::*;
use crate::views::session::SessionJson;

/// Attach a session to an active run: its later prompts belong to that run.
///
/// The session's own run is completed; where the agent is working on a prompt, that stays in it, and the run is
/// completed when the agent stops. When the attached run has ended, the session's next prompt begins a run of its own again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic session attach 7f3a9c21                        # in the agent's own shell
  ic session attach 7f3a9c21 --session 3f9a12c4")]
pub(crate) struct Attach {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
    /// The session: its id, the end of it, or the client's id [default: the one of this shell]
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
}

impl Attach {
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let place = &kernel.project.root;
        let found = kernel.read(|snapshot| match (&self.session, session.called_by()) {
            (Some(named), _) => places::resolve(snapshot, named, place),
            (None, Some((client, id))) => places::at(snapshot, client, id, place)?.ok_or_else(no_caller),
            (None, None) => Err(no_caller()),
        })?;
        let attached = hooks::attach(&kernel, &found.id, &self.run)?;
        let record = SessionJson::from(&attached);
        session.output.record(&record, || views::session::attached(&found, &attached))
    }
}

fn no_caller() -> Diagnosis {
    Diagnosis::new(Code::SessionNotFound, "No recorded session of a coding agent makes this call.")
        .hint("name one with --session; see: ic session list")
}
