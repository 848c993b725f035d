//! Tool calls that may change files: each is looked at as it begins and as it ends, so that what several agents do in one tree at the same
//! time can be told apart.

use std::path::{Path, PathBuf};

use ic_base::{CallId, DispatchId, Result};
use ic_checkpoint::git;
use ic_checkpoint::record::CheckpointLink;
use ic_dispatch::dispatch;
use ic_kernel::Kernel;
use ic_ledger::Snapshot;
use ic_phase::run;
use ic_session::outside_files;
use ic_session::{self as session, NewCall, Prompt, call};
use ic_worktree::auto::TakenTree;
use ic_worktree::{CaptureSettings, Warning, root_of};

use super::caller::{Teller, link_of, prompt_of_work};
use super::commits::{self, Since};
use super::guard::{Danger, StoredPaths};
use super::undone_work::refusal;
use super::{first_look, queued_prompts, subagents, uncaptured_files, unseen_prompts};

pub use super::tool_call::{GuardedCall, ToldCall};

/// What became of the beginning of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// It is refused, and why.
    Refused(String),
    /// It would destroy what cannot be undone: what does it, and what would be lost; and what went less well.
    Doubtful(String, Vec<Warning>),
    /// It may be made; what went less well.
    Goes(Vec<Warning>),
}

/// Says whether a call may be made, and records that it begins.
///
/// Errors: whatever the ledger says; a look that fails is a warning.
pub fn begin(
    kernel: &Kernel,
    teller: Teller<'_>,
    told: &ToldCall<'_>,
    kept: Option<&CaptureSettings>,
) -> Result<Begun> {
    // A prompt whose hook came late or never must be on record before the call that belongs to it.
    let mut warnings = queued_prompts::begin(kernel, teller, told.prompt_id, kept)?;
    warnings.extend(unseen_prompts::begin(kernel, teller, told, kept)?);
    // This comes before any look: a refused call is not made, so there is nothing to capture and nothing to record.
    if let Some(why) = refusal(kernel, teller, told.prompt_id, told.agent_id)? {
        return Ok(Begun::Refused(why));
    }
    if let Some((doubt, taken)) = begin_with_look(kernel, teller, told, kept, &mut warnings)? {
        warnings.extend(taken.warnings.iter().cloned());
        return Ok(begun(doubt, warnings));
    }
    let found = kernel.read(|snapshot| {
        let Some(prompt) = prompt_of(snapshot, teller, told.prompt_id)? else { return Ok(None) };
        Ok(Some((maker(snapshot, &prompt, told.agent_id)?, link(snapshot, &prompt)?, prompt)))
    })?;
    let Some((maker, (run, link), prompt)) = found else {
        // No look at the tree was taken before the call, so what it would destroy cannot be restored.
        let doubt = told.guarded.and_then(|guarded| guarded.doubt(&kernel.project.root));
        return Ok(begun(doubt, warnings));
    };
    let root = root_of(&run.project_dir);
    let danger = told.guarded.map(|guarded| guarded.danger()).unwrap_or_default();
    let is_first = maker.is_none() && may_begin(&run);
    // The first call of a subagent begins its work: its look becomes a point, which needs git's state. Any other call
    // needs git's state only if it may destroy what git alone knows (`git stash drop`).
    let taken = if is_first {
        TakenTree::look_for_subagent(kernel, kept, root.clone(), link)
    } else {
        let link = CheckpointLink { dispatch_id: maker.clone().or(link.dispatch_id.clone()), ..link };
        TakenTree::look_for_call(kernel, kept, root.clone(), link, danger.takes_git())
    };
    let outside = uncaptured_files::of_call(kernel, kept, &root, told, &mut warnings);
    // Where git stood tells later which commits the call made.
    let (head, head_log_start) = (git::head(&root), git::log_size(&root));
    let (id, own): (CallId, DispatchId) = (kernel.context.new_id(), kernel.context.new_id());
    // Accepted from undone work too: the call is made anyway, and an undo must know what it changed.
    kernel.write_late_too(|tx, now| {
        // Calls may come at the same time, so the answer from before the look may be old. `record_news` adds a
        // checkpoint only for what is new; the point of a subagent has recorded its own already.
        let (work, seen) = if let Some(work) = maker_now(tx, &prompt, told.agent_id, is_first)? {
            (work, taken.record_news(tx, now, &root, run.epoch)?)
        } else {
            let begun = subagents::begin(tx, now, (&own, &prompt), told, &taken)?;
            (begun.id, taken.recorded(tx, &root)?)
        };
        let new = NewCall {
            head: head.as_deref(),
            head_log_start,
            ..told.call((&id, &work, &prompt.session_id), (seen.seq, seen.end()))
        };
        call::begin(tx, now, &new)?;
        outside.iter().try_for_each(|(path, was)| outside_files::begin(tx, now, (&id, &work), path, was))
    })?;
    // The call is on record by now. Whether it is made depends on an answer that this process does not see.
    let doubt = if danger.is_none() { None } else { doubt(kernel, &danger, &taken, kept, &root)? };
    warnings.extend(taken.warnings.iter().cloned());
    Ok(begun(doubt, warnings))
}

/// Begins a call of a prompt whose work waits for its look; `None`: it does not wait.
fn begin_with_look(
    kernel: &Kernel,
    teller: Teller<'_>,
    told: &ToldCall<'_>,
    kept: Option<&CaptureSettings>,
    warnings: &mut Vec<Warning>,
) -> Result<Option<(Option<String>, TakenTree)>> {
    let waiting = kernel.read(|snapshot| {
        let Some(prompt) = prompt_of(snapshot, teller, told.prompt_id)? else { return Ok(None) };
        let work = dispatch::get(snapshot, &prompt.dispatch_id)?;
        let root = root_of(&run::get(snapshot, &work.run_id)?.project_dir);
        Ok(first_look::is_missing(&work).then_some((prompt, root)))
    })?;
    let Some((prompt, root)) = waiting else { return Ok(None) };
    let taken = first_look::take_with_call(kernel, &prompt, told, kept, warnings)?;
    let danger = told.guarded.map(|guarded| guarded.danger()).unwrap_or_default();
    let doubt = if danger.is_none() { None } else { doubt(kernel, &danger, &taken, kept, &root)? };
    Ok(Some((doubt, taken)))
}

fn begun(doubt: Option<String>, warnings: Vec<Warning>) -> Begun {
    match doubt {
        Some(why) => Begun::Doubtful(why, warnings),
        None => Begun::Goes(warnings),
    }
}

/// The work that a call belongs to: the prompt's, a subagent's own, or a continuation; `None`: it begins that.
fn maker(snapshot: &Snapshot<'_>, prompt: &Prompt, agent_id: Option<&str>) -> Result<Option<DispatchId>> {
    let Some(agent) = agent_id else {
        // What an agent does after it stopped, and before a person types again, is a continuation of the prompt.
        return match prompt.ended_at {
            None => Ok(Some(prompt.dispatch_id.clone())),
            Some(_) => Ok(subagents::continuation(snapshot, prompt)?.map(|work| work.id)),
        };
    };
    let session = session::get(snapshot, &prompt.session_id)?;
    Ok(subagents::unfinished(snapshot, &session, agent)?.map(|work| work.id))
}

/// As [`maker`], in the transaction that records the call: by now another call of the subagent may have begun its work, and a run that was
/// closed takes no new work.
fn maker_now(tx: &Snapshot<'_>, prompt: &Prompt, agent_id: Option<&str>, is_first: bool) -> Result<Option<DispatchId>> {
    let found = maker(tx, prompt, agent_id)?;
    let run = run::get(tx, &dispatch::get(tx, &prompt.dispatch_id)?.run_id)?;
    let is_begun = found.is_none() && is_first && may_begin(&run);
    Ok(if is_begun { None } else { found.or_else(|| Some(prompt.dispatch_id.clone())) })
}

/// Whether a subagent's work can begin in a run: not in one that has been completed, or is being rolled back. Its calls are the prompt's
/// then.
fn may_begin(run: &ic_phase::Run) -> bool {
    run.require_active().is_ok()
}

/// What a call would destroy for good, after what was seen of the tree.
fn doubt(
    kernel: &Kernel,
    danger: &Danger,
    taken: &TakenTree,
    kept: Option<&CaptureSettings>,
    root: &Path,
) -> Result<Option<String>> {
    // Without automatic checkpoints nothing holds what the call destroys.
    let kept = kept.filter(|kept| kept.checkpointing.auto);
    let left_out = kept.map(|kept| taken.left_out(kernel, kept, root)).transpose()?.flatten();
    Ok(danger.doubt(root, left_out.as_deref().map_or(StoredPaths::Nothing, StoredPaths::AllBut)))
}

/// Records that a call has ended. A call whose beginning was not told is ignored.
///
/// Errors: whatever the ledger says; a look that fails is a warning.
pub fn end(
    kernel: &Kernel,
    teller: Teller<'_>,
    told: &ToldCall<'_>,
    kept: Option<&CaptureSettings>,
) -> Result<Vec<Warning>> {
    let open = kernel.read(|snapshot| {
        let Some(session) = teller.session(snapshot)? else {
            return Ok(None);
        };
        let names = (told.call_id, told.agent_id);
        let Some(call) = call::unfinished(snapshot, &session.id, names, told.tool)? else {
            return Ok(None);
        };
        let work = dispatch::get(snapshot, &call.dispatch_id)?;
        let run = run::get(snapshot, &work.run_id)?;
        let link = link_of(&run, &call.dispatch_id);
        let prompt = prompt_of_work(snapshot, &work)?;
        Ok(Some((call, run, link, prompt)))
    })?;
    let Some((call, run, link, prompt)) = open else { return Ok(Vec::new()) };
    let root = root_of(&run.project_dir);
    let taken = TakenTree::look_for_call(kernel, kept, root.clone(), link, false);
    let mut warnings = taken.warnings.clone();
    // These are the paths that the beginning recorded, whatever the end names: an undo needs both states of each.
    let named = kernel.read(|snapshot| outside_files::of_call(snapshot, &call.id))?;
    let named = named.into_iter().map(|file| PathBuf::from(file.path));
    let outside = uncaptured_files::look(kernel, kept, &root, named, &mut warnings);
    let is_beside = kernel.read(|snapshot| commits::may_be_of_another(snapshot, &call, &root))?;
    let prompt = prompt.filter(|_| !is_beside);
    let made = prompt.map(|prompt| commits::made(kernel, &root, &prompt, &Since::call(&call)));
    // Accepted from undone work too: what the call committed must be on record.
    kernel.write_late_too(|tx, now| {
        let seen = taken.record_news(tx, now, &root, run.epoch)?;
        if let Some(made) = &made {
            commits::record(tx, now, &dispatch::get(tx, &call.dispatch_id)?, made)?;
        }
        outside.iter().try_for_each(|(path, became)| outside_files::end(tx, &call.id, path, became))?;
        call::end(tx, now, &call.id, seen.end())
    })?;
    Ok(warnings)
}

/// The prompt that a call is made for: the one that the client names, else the newest of the session.
pub(super) fn prompt_of(
    snapshot: &Snapshot<'_>,
    teller: Teller<'_>,
    prompt_id: Option<&str>,
) -> Result<Option<Prompt>> {
    let Some(session) = teller.session(snapshot)? else {
        return Ok(None);
    };
    if let Some(id) = prompt_id
        && let Some(named) = session::by_prompt_id(snapshot, &session.id, id)?
    {
        return Ok(Some(named));
    }
    session::latest(snapshot, &session.id)
}

fn link(snapshot: &Snapshot<'_>, prompt: &Prompt) -> Result<(ic_phase::Run, CheckpointLink)> {
    let work = dispatch::get(snapshot, &prompt.dispatch_id)?;
    let run = run::get(snapshot, &work.run_id)?;
    let link = link_of(&run, &work.id);
    Ok((run, link))
}
