//! Finds the session of a coding agent that makes a call, and the prompt that it works on.

use ic_base::Result;
use ic_kernel::{Caller, Kernel};
use ic_ledger::Snapshot;
use ic_ops::hooks;

use super::CliSession;

impl CliSession {
    /// In the shell of a coding agent, makes `@` mean the run of its session, and attributes writes to the prompt that it works on.
    pub(super) fn join_session(&self, kernel: &mut Kernel) -> Result<()> {
        let Some((client, id)) = &self.environment.session else { return Ok(()) };
        // Also of a client whose hooks are not installed.
        kernel.session = Some(((*client).to_owned(), id.clone()));
        let named = kernel.caller.as_ref().filter(|caller| !caller.explicit).map(|caller| caller.reference.as_str());
        let found = kernel.read(|snapshot| {
            // Clients put a prefix before the names of our tools, so a part of the name is searched for.
            let known = self.calling_session(kernel, snapshot, |tool| tool.contains("ic_"))?;
            // Over MCP it is searched among the sessions of the project, and those may be of another client.
            let Some(known) = known.filter(|known| known.client == *client) else { return Ok(None) };
            let (run, work) = hooks::calling(snapshot, &known)?;
            // A prompt that the named dispatch itself began is closer to this call than that dispatch, which the whole client was given.
            let is_nearer = match (&work, named) {
                (Some(work), Some(named)) => hooks::is_begun_by(snapshot, work, named)?,
                (_, named) => named.is_none(),
            };
            Ok(Some((known, run, work.filter(|_| is_nearer))))
        })?;
        let Some((known, run, work)) = found else { return Ok(()) };
        kernel.session = Some((known.client, known.client_id));
        kernel.own_run = Some(run.id);
        if kernel.caller.as_ref().is_none_or(|caller| !caller.explicit)
            && let Some(work) = work
        {
            kernel.caller = Some(Caller { reference: work.to_string(), explicit: false });
        }
        Ok(())
    }

    /// The session of a coding agent that makes this call. In a shell, the environment names it. Over MCP, it is the session with an open
    /// call of a tool that `is_tool`.
    fn calling_session(
        &self,
        kernel: &Kernel,
        snapshot: &Snapshot<'_>,
        is_tool: impl Fn(&str) -> bool,
    ) -> Result<Option<ic_session::AgentSession>> {
        let named = match &self.environment.session {
            // If the call is made in another work tree, the session's entry for that place is meant.
            Some((client, id)) => ic_session::places::at(snapshot, client, id, &kernel.project.root)?,
            None => None,
        };
        if !self.environment.is_mcp {
            return Ok(named);
        }
        // The environment cannot be trusted here: a client that resumes or begins a session may start its server in the environment of
        // another one.
        ic_session::that_calls(snapshot, &kernel.project.root, is_tool, named.as_ref())
    }

    /// The prompt whose agent makes this call, in its shell or over MCP. `None` if a person or a script makes it.
    pub(crate) fn asking(&self, kernel: &Kernel) -> Result<Option<ic_session::Prompt>> {
        kernel.read(|snapshot| {
            let known = self.calling_session(kernel, snapshot, |tool| tool.ends_with("undo"))?;
            let latest = known.map_or(Ok(None), |known| ic_session::latest(snapshot, &known.id))?;
            Ok(latest.filter(|prompt| prompt.ended_at.is_none()))
        })
    }
}
