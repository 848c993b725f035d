//! What a person types while the agent still works: it waits until the client takes it up.

use ic_base::{Result, title};
use ic_dispatch::dispatch;
use ic_kernel::Kernel;
use ic_ledger::Snapshot;
use ic_session as session;
use ic_worktree::{CaptureSettings, Warning};

use super::caller::{Teller, latest_of};
use super::prompts::{AskedPrompt, first_line, prompt};

/// Keeps what was typed if its turn has not come.
pub(super) fn keep(kernel: &Kernel, teller: Teller<'_>, asked: &AskedPrompt<'_>) -> Result<()> {
    if !kernel.read(|snapshot| is_queued(snapshot, teller, asked))? {
        return Ok(());
    }
    kernel.write(|tx, _| {
        let known = teller.session(tx)?;
        known.map_or(Ok(()), |known| session::queue(tx, &known, Some(first_line(asked.text))))
    })
}

/// Whether a person typed this while the agent still works on the prompt before: Claude Code tells of it with that prompt's name, and of no
/// prompt when its turn comes.
fn is_queued(snapshot: &Snapshot<'_>, teller: Teller<'_>, asked: &AskedPrompt<'_>) -> Result<bool> {
    let Some(prompt) = latest_of(snapshot, teller)?.filter(|prompt| prompt.ended_at.is_none()) else {
        return Ok(false);
    };
    if asked.prompt_id.is_none() || prompt.prompt_id.as_deref() != asked.prompt_id {
        return Ok(false);
    }
    // If the text is the same, it is the prompt at work, which a second installation of the hooks reports once more.
    let name = dispatch::get(snapshot, &prompt.dispatch_id)?.work.name;
    Ok(name.is_some_and(|name| name != title(first_line(asked.text))))
}

/// Begins the prompt that waited, with the first call of its turn: the client has another name for that. Where what was typed went into the
/// turn before, nothing waits for a name.
pub(super) fn begin(
    kernel: &Kernel,
    teller: Teller<'_>,
    prompt_id: Option<&str>,
    kept: Option<&CaptureSettings>,
) -> Result<Vec<Warning>> {
    // A call under a name that is not on record, after the prompt before has ended, shows that its turn has come:
    //
    //   typed while the agent works ─▶ queued ─▶ first call of its turn ─▶ a prompt with that call's name
    //                                     └── the next prompt of the person: it was a part of the turn before
    let Some(id) = prompt_id else { return Ok(Vec::new()) };
    let waiting = kernel.read(|snapshot| {
        let Some(known) = teller.session(snapshot)? else {
            return Ok(None);
        };
        let Some(text) = known.queued.clone() else { return Ok(None) };
        let is_known = session::by_prompt_id(snapshot, &known.id, id)?.is_some();
        let is_free = session::latest(snapshot, &known.id)?.is_some_and(|prompt| prompt.ended_at.is_some());
        Ok((is_free && !is_known).then_some((text, known)))
    })?;
    let Some((text, known)) = waiting else { return Ok(Vec::new()) };
    let asked = AskedPrompt {
        prompt_id: Some(id),
        text: &text,
        model: None,
        transcript: known.transcript.as_deref(),
        transcript_size: None,
        parent: None,
        run: None,
        is_heard: false,
        is_unseen: false,
    };
    Ok(prompt(kernel, teller, &asked, kept)?.warnings)
}
