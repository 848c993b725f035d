//! The guard: which commands of an agent that destroy uncaptured content are allowed, asked about, or refused.

use std::path::Path;

use ic_base::{Diagnosis, Result};
use ic_kernel::config::{self, Guard, OwnHooks};
use ic_ops::hooks::calls::GuardedCall;
use ic_session::clients::{Client, may_write};
use ic_worktree::Warning;
use serde_json::Value;

use super::payload::Payload;
use super::{Said, tools, warning};
use crate::session::CliSession;

/// The user's own settings of hooks. A file that cannot be read counts as empty, with a warning; one that lies in the project is not
/// believed.
pub(super) fn own_hooks(session: &CliSession, root: &Path, warnings: &mut Vec<Warning>) -> OwnHooks {
    session.believed_home(root).and_then(config::own_hooks).unwrap_or_else(|error| {
        warnings.push(warning(&error));
        OwnHooks::default()
    })
}

/// The guard in force, of the user's settings and the project's. A file of the project that cannot be read counts as empty.
pub(super) fn in_force(session: &CliSession, root: &Path, warnings: &mut Vec<Warning>) -> Guard {
    let own = own_hooks(session, root, warnings);
    // A broken file must not make the guard weaker than the user's own settings, which still count.
    let of_project = session.config(&config::root_seen_from(root, root)).ok();
    Guard::in_force(own.guard, of_project.and_then(|loaded| loaded.config.guard))
}

/// The shell line of a call, to be checked by the guard; `None` if there is none, or the guard allows everything.
pub(super) fn guarded<'c>(
    call: &'c tools::ClientCall,
    guard: Guard,
    home: Option<&'c Path>,
) -> Option<GuardedCall<'c>> {
    let line = call.command.as_deref().filter(|_| guard != Guard::Allow)?;
    Some(GuardedCall { line, directory: &call.directory, home })
}

/// Guards a call that cannot be recorded because the ledger failed with `error`. Nothing is captured, so the check counts no capture.
pub(super) fn alone(
    session: &CliSession,
    root: &Path,
    client: &Client,
    payload: &Payload<'_>,
    error: Diagnosis,
) -> Result<Said> {
    let mut warnings = vec![warning(&error)];
    // It can destroy nothing, so the error is all that is left to report.
    if !may_write(payload.tool()) {
        return Err(error);
    }
    let guard = in_force(session, root, &mut warnings);
    let call = payload.call(&session.directory, root);
    let why = guarded(&call, guard, session.home()).and_then(|guarded| guarded.doubt(root));
    // A call that destroys nothing is let through, and only the log has the error.
    let why = why.ok_or(error)?;
    Ok(Said { answer: Some(doubt(client, guard, &why)), warnings, ..Said::default() })
}

/// The answer to a call that would destroy what cannot be undone. If the client cannot ask its person, the call is refused, and the reason
/// says how to allow it.
pub(super) fn doubt(client: &Client, guard: Guard, why: &str) -> Value {
    let asked = (guard == Guard::Ask).then(|| client.dialect.ask(&format!("{why} Is this intended?"))).flatten();
    asked.unwrap_or_else(|| {
        client.dialect.refuse(&format!(
            "{why} Ask the person first. If it is intended, they run it themselves, or allow such commands: \
             `hooks: {{guard: allow}}` in ~/.config/ic/config.yaml."
        ))
    })
}
