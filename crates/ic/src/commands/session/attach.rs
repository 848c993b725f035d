//! `ic session attach`

use ic_ops::hooks;

use crate::commands::prelude::*;
use crate::views::session::SessionJson;

/// Let the later prompts of a session belong to an open run: a sprint that an agent is to work on.
///
/// The run that was made for the session is completed, unless the agent is at work on a prompt: then it stays open, with that prompt in
/// it. When the run is not open any more, the session's next prompt begins one of its own again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic session attach 7f3a9c21                        # in the agent's own shell
  ic session attach 7f3a9c21 --session 3f9a12c4")]
pub(crate) struct Attach {
    /// The run
    run: String,
    /// The session: its id, the end of it, or what its client calls it [default: the one in whose shell this is called]
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
}

impl Attach {
    pub(super) fn run(&self, session: &mut Session) -> Result<Exit> {
        let kernel = session.kernel()?;
        let found = kernel.read(|snapshot| match (&self.session, session.called_by()) {
            (Some(named), _) => ic_session::resolve(snapshot, named),
            (None, Some((client, id))) => ic_session::by_client(snapshot, client, id)?.ok_or_else(no_caller),
            (None, None) => Err(no_caller()),
        })?;
        let attached = hooks::attach(&kernel, &found.id, &self.run)?;
        let record = SessionJson::from(&attached);
        session.output.record(&record, || views::session::attached(&found, &attached))
    }
}

fn no_caller() -> Diagnosis {
    Diagnosis::new(Code::SessionNotFound, "This is called by no session of a coding agent that is on record.")
        .hint("name one with --session; see: ic session list")
}
