//! Which session of a coding agent makes a call, and what it works on.

use ic_base::Result;
use ic_kernel::{Caller, Kernel};
use ic_ops::hooks;
use ic_store::Snapshot;

use super::Session;

impl Session {
    /// In the shell of a coding agent `@` means the run of its session, and what is written is written for the prompt that it works on.
    pub(super) fn join_session(&self, kernel: &mut Kernel) -> Result<()> {
        let Some((client, _)) = &self.environment.session else { return Ok(()) };
        let named =
            kernel.caller.as_ref().filter(|caller| !caller.explicit).map(|caller| caller.reference.as_str());
        let found = kernel.read(|snapshot| {
            // Of our tools, whatever the client puts before their names.
            let known = self.calling_session(kernel, snapshot, |tool| tool.contains("ic_"))?;
            let Some(known) = known.filter(|known| known.client == *client) else { return Ok(None) };
            let (run, work) = hooks::calling(snapshot, &known)?;
            // A prompt that a dispatch began is nearer to this call than the dispatch that its whole client was given.
            let is_nearer = match (&work, named) {
                (Some(work), Some(named)) => hooks::is_begun_by(snapshot, work, named)?,
                (_, named) => named.is_none(),
            };
            Ok(Some((run, work.filter(|_| is_nearer))))
        })?;
        let Some((run, work)) = found else { return Ok(()) };
        kernel.own_run = Some(run.id);
        if kernel.caller.as_ref().is_none_or(|caller| !caller.explicit)
            && let Some(work) = work
        {
            kernel.caller = Some(Caller { reference: work.to_string(), explicit: false });
        }
        Ok(())
    }

    /// The session of a coding agent that makes this call. In a shell, the environment names it; over MCP, it is the one with an open call
    /// of such a tool.
    fn calling_session(
        &self,
        kernel: &Kernel,
        snapshot: &Snapshot<'_>,
        is_tool: impl Fn(&str) -> bool,
    ) -> Result<Option<ic_session::Session>> {
        let named = match &self.environment.session {
            // In another place than the one that the session began in, what it does there is meant.
            Some((client, id)) => ic_session::places::at(snapshot, client, id, &kernel.project.root)?,
            None => None,
        };
        if !self.environment.is_mcp {
            return Ok(named);
        }
        // A client that resumes a session, or begins one anew, starts its server in the environment of another session.
        ic_session::that_calls(snapshot, &kernel.project.root, is_tool, named.as_ref())
    }

    /// The prompt that an agent works on which makes this call: in its own shell, or over MCP. `None`: a person or a script makes it.
    pub(crate) fn asking(&self, kernel: &Kernel) -> Result<Option<ic_session::Prompt>> {
        kernel.read(|snapshot| {
            let known = self.calling_session(kernel, snapshot, |tool| tool.ends_with("undo"))?;
            let latest = known.map_or(Ok(None), |known| ic_session::latest(snapshot, &known.id))?;
            Ok(latest.filter(|prompt| prompt.ended_at.is_none()))
        })
    }
}
