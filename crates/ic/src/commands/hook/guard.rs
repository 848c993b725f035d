//! What the user's own settings, and the project's, let an agent's command destroy.

use std::path::Path;

use ic_base::{Diagnosis, Result};
use ic_kernel::config::{self, Guard, OwnHooks};
use ic_ops::hooks::calls::Guarded;
use ic_worktree::Warning;
use serde_json::Value;

use super::payload::Payload;
use super::{Said, warning};
use crate::clients::{Client, tools};
use crate::session::Session;

/// The user's own settings of hooks. A file that cannot be read says nothing, nor does one in the project.
pub(super) fn own_hooks(session: &Session, root: &Path, warnings: &mut Vec<Warning>) -> OwnHooks {
    session.believed_home(root).and_then(config::own_hooks).unwrap_or_else(|error| {
        warnings.push(warning(&error));
        OwnHooks::default()
    })
}

/// The guard in force. A file of the project that cannot be read says nothing.
pub(super) fn in_force(session: &Session, root: &Path, warnings: &mut Vec<Warning>) -> Guard {
    let own = own_hooks(session, root, warnings);
    let of_project = session.config(&config::root_seen_from(root, root)).ok();
    Guard::in_force(own.guard, of_project.and_then(|loaded| loaded.config.guard))
}

/// The line of a call for a shell, if it is to be guarded.
pub(super) fn guarded<'c>(
    call: &'c tools::Call,
    guard: Guard,
    home: Option<&'c Path>,
) -> Option<Guarded<'c>> {
    let line = call.command.as_deref().filter(|_| guard != Guard::Allow)?;
    Some(Guarded { line, directory: &call.directory, home })
}

/// Guards a call of which nothing can be recorded: the ledger says `error`, and nothing is captured either.
pub(super) fn alone(
    session: &Session,
    root: &Path,
    client: Client,
    payload: &Payload<'_>,
    error: Diagnosis,
) -> Result<Said> {
    let mut warnings = vec![warning(&error)];
    if !tools::may_write(payload.tool()) {
        return Err(error);
    }
    let guard = in_force(session, root, &mut warnings);
    let call = payload.call(&session.directory, root);
    let why = guarded(&call, guard, session.home()).and_then(|guarded| guarded.doubt(root));
    let why = why.ok_or(error)?;
    Ok(Said { answer: Some(doubt(client, guard, &why)), warnings, ..Said::default() })
}

/// What becomes of a call that destroys what cannot be undone. Who cannot be asked is refused, and told what decides.
pub(super) fn doubt(client: Client, guard: Guard, why: &str) -> Value {
    let asked = (guard == Guard::Ask).then(|| client.ask(&format!("{why} Is this intended?"))).flatten();
    asked.unwrap_or_else(|| {
        client.refuse(&format!(
            "{why} Ask the person first. If it is intended, they run it themselves, or allow such commands: \
             `hooks: {{guard: allow}}` in ~/.config/ic/config.yaml."
        ))
    })
}
