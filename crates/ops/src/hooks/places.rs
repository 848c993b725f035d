//! A prompt whose calls work in several places: another work tree of the repository has captures of its own, so the prompt is recorded there too,
//! with the first call that works there.

use std::path::PathBuf;

use ic_base::Result;
use ic_dispatch::dispatch;
use ic_kernel::Kernel;
use ic_session::places::{self, key_of};
use ic_session::{self as session};
use ic_worktree::{CaptureSettings, Warning};

use super::caller::Teller;
use super::prompts::{AskedPrompt, prompt};

/// The other places of a session, each with the name that it has there. One may be gone: clients remove the work trees of subagents.
///
/// Errors: whatever the ledger says.
pub fn elsewhere(kernel: &Kernel, teller: Teller<'_>) -> Result<Vec<(String, PathBuf)>> {
    let all = kernel.read(|snapshot| places::elsewhere(snapshot, teller.client, teller.client_id))?;
    let there = all.into_iter().filter(|one| one.ended_at.is_none());
    Ok(there.map(|one| (one.client_id, one.project_dir)).collect())
}

/// What the prompt that a call is made for is called in each of its places; `None`: no prompt is known.
///
/// Errors: whatever the ledger says.
pub fn key(kernel: &Kernel, teller: Teller<'_>, prompt_id: Option<&str>) -> Result<Option<String>> {
    kernel.read(|snapshot| Ok(super::calls::prompt_of(snapshot, teller, prompt_id)?.map(|prompt| key_of(&prompt))))
}

/// Whether a session has the prompt of this key.
///
/// Errors: whatever the ledger says.
pub fn has_prompt(kernel: &Kernel, there: Teller<'_>, key: &str) -> Result<bool> {
    kernel.read(|snapshot| {
        let latest = super::caller::latest_of(snapshot, there)?;
        Ok(latest.is_some_and(|latest| latest.prompt_id.as_deref() == Some(key)))
    })
}

/// Records the prompt of a call in the place of `kernel`, unless it is there already. `there`: what the session is called in that place.
///
/// Errors: whatever the ledger says; a capture that fails is a warning.
pub fn begin(
    kernel: &Kernel,
    (teller, there): (Teller<'_>, Teller<'_>),
    prompt_id: Option<&str>,
    kept: Option<&CaptureSettings>,
) -> Result<Vec<Warning>> {
    let found = kernel.read(|snapshot| {
        // If there is no prompt in the place where the session began, there is none here, either.
        let Some(own) = super::calls::prompt_of(snapshot, teller, prompt_id)? else { return Ok(None) };
        let key = key_of(&own);
        if let Some(known) = there.session(snapshot)?
            && session::by_prompt_id(snapshot, &known.id, &key)?.is_some()
        {
            return Ok(None);
        }
        let name = dispatch::get(snapshot, &own.dispatch_id)?.work.name.unwrap_or_default();
        let transcript = session::get(snapshot, &own.session_id)?.transcript;
        Ok(Some((key, name, transcript)))
    })?;
    let Some((key, name, transcript)) = found else { return Ok(Vec::new()) };
    // The size of the transcript is left out: tokens are counted only in the place where the session began.
    let asked = AskedPrompt {
        prompt_id: Some(&key),
        text: &name,
        model: None,
        transcript: transcript.as_deref(),
        transcript_size: None,
        parent: None,
        run: None,
        is_heard: false,
        is_unseen: false,
    };
    Ok(prompt(kernel, there, &asked, kept)?.warnings)
}
