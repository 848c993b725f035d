//! Prompts whose own hook never came, or was killed before it recorded anything: their first call begins them, so that none is added to the
//! prompt before.

use ic_base::Result;
use ic_dispatch::dispatch;
use ic_kernel::Kernel;
use ic_ledger::Snapshot;
use ic_session as session;
use ic_worktree::{CaptureSettings, Warning};

use super::caller::Teller;
use super::prompts::{AskedPrompt, record};
use super::tool_call::ToldCall;

/// What a prompt is called whose text was not told.
const NOT_SEEN: &str = "(prompt not seen)";

/// Begins the prompt that a call belongs to, if it was never told.
pub(super) fn begin(
    kernel: &Kernel,
    teller: Teller<'_>,
    told: &ToldCall<'_>,
    kept: Option<&CaptureSettings>,
) -> Result<Vec<Warning>> {
    if !kernel.read(|snapshot| is_unseen(snapshot, teller, told))? {
        return Ok(Vec::new());
    }
    let asked = AskedPrompt {
        prompt_id: told.prompt_id,
        text: NOT_SEEN,
        model: None,
        transcript: told.transcript,
        transcript_size: None,
        parent: None,
        run: told.run,
        is_heard: false,
        is_unseen: true,
    };
    // The prompt is recorded without a look: the call that follows takes it, and the work begins with that.
    let recorded = record(kernel, teller, &asked, kept)?;
    let message = "a tool was called for a prompt whose own hook did not come, or was ended before it recorded anything; \
                   the prompt begins with this call";
    let warning = Warning { code: "prompt_not_seen", message: message.to_owned() };
    Ok(recorded.warnings.into_iter().chain([warning]).collect())
}

fn is_unseen(snapshot: &Snapshot<'_>, teller: Teller<'_>, told: &ToldCall<'_>) -> Result<bool> {
    let Some(known) = teller.session(snapshot)? else { return Ok(true) };
    let Some(latest) = session::latest(snapshot, &known.id)? else { return Ok(true) };
    // A subagent works for the prompt that began it, and may outlive that.
    if told.agent_id.is_some() {
        return Ok(false);
    }
    // After an undo the agent waits for a prompt: what comes without one is late, and is refused.
    if dispatch::get(snapshot, &latest.dispatch_id)?.rolled_back_by.is_some() {
        return Ok(false);
    }
    let Some(id) = told.prompt_id else {
        // Between a stop and the next prompt only what the client itself begins goes on.
        return Ok(latest.ended_at.is_some() && known.unprompted.is_none());
    };
    let is_unprompted = known.unprompted.is_some_and(|turn| turn.is_empty() || turn == id);
    // A client that names calls and not prompts names none that could be compared.
    let is_named = latest.prompt_id.as_deref().is_some_and(|name| !name.starts_with(BY_TIME));
    Ok(!is_unprompted && is_named && session::by_prompt_id(snapshot, &known.id, id)?.is_none())
}

/// How the names of prompts begin that are made of the time at which they were told.
const BY_TIME: &str = "at ";

/// Records that a turn begins that no person began: what the agent does in it belongs to the prompt before.
///
/// Errors: whatever the ledger says.
pub fn go_on(kernel: &Kernel, teller: Teller<'_>, turn: Option<&str>) -> Result<()> {
    let known = |snapshot: &Snapshot<'_>| teller.session(snapshot);
    if kernel.read(known)?.is_none() {
        return Ok(());
    }
    kernel.write(|tx, _| known(tx)?.map_or(Ok(()), |known| session::go_on(tx, &known, Some(turn.unwrap_or_default()))))
}
