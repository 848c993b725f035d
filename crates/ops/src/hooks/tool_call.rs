//! A tool call, as a client tells of it.

use std::path::{Path, PathBuf};

use ic_base::{CallId, DispatchId, RunId, Seq, SessionId};
use ic_session::NewCall;

use super::guard::{self, Danger, StoredPaths};

/// What a client says of a tool call.
#[derive(Debug, Clone, Copy)]
pub struct ToldCall<'a> {
    /// The client's name of the prompt that it is made for.
    pub prompt_id: Option<&'a str>,
    /// The client's name of the call.
    pub call_id: Option<&'a str>,
    /// The client's name of the subagent that makes it.
    pub agent_id: Option<&'a str>,
    /// The kind of that subagent.
    pub agent_type: Option<&'a str>,
    /// The tool's name, as the client calls it.
    pub tool: &'a str,
    /// What it is asked to do.
    pub line: &'a str,
    /// The paths that it names, relative to the root.
    pub paths: &'a [String],
    /// Those that lie outside of it, absolute and without links.
    pub outside: &'a [PathBuf],
    /// The client's own record of the session.
    pub transcript: Option<&'a Path>,
    /// An open run of this project that the session's work belongs to; `None`: one of its own.
    pub run: Option<&'a RunId>,
    /// The line for a shell that it runs, and where, if it is to be guarded.
    pub guarded: Option<GuardedCall<'a>>,
}

impl<'a> ToldCall<'a> {
    /// The new call: its id, its work and its session; the event as it begins, and the one after which the same agent had changed nothing.
    pub(super) fn call(
        &self,
        (id, dispatch_id, session_id): (&'a CallId, &'a DispatchId, &'a SessionId),
        (began_seq, before_seq): (Seq, Seq),
    ) -> NewCall<'a> {
        NewCall {
            id,
            dispatch_id,
            session_id,
            call_id: self.call_id,
            agent_id: self.agent_id,
            agent_type: self.agent_type,
            tool: self.tool,
            line: self.line,
            paths: self.paths,
            began_seq,
            before_seq,
            head: None,
            head_log_start: None,
        }
    }
}

/// A line for a shell whose call is doubtful if it destroys what cannot be undone.
#[derive(Debug, Clone, Copy)]
pub struct GuardedCall<'a> {
    /// The line, as the shell gets it.
    pub line: &'a str,
    /// The directory that it runs in.
    pub directory: &'a Path,
    /// The home directory, to which `~` is expanded.
    pub home: Option<&'a Path>,
}

impl GuardedCall<'_> {
    pub(super) fn danger(&self) -> Danger {
        guard::read(self.line, self.directory, self.home)
    }

    /// What it would destroy for good in a project of which nothing is captured; `None`: nothing.
    pub fn doubt(&self, root: &Path) -> Option<String> {
        self.danger().doubt(root, StoredPaths::Nothing)
    }
}
