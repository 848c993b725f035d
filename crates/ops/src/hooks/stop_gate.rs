//! The gate of a run at the moment when its agent stops: where the configuration says so, it goes on until the gate passes.
//!
//! Held is only who can be expected to satisfy it: an agent whose session was given this run, whose prompt changed something, and began in
//! the phase that the run is still at: of another phase it has done nothing. A stop is held three times at most, and never twice for the
//! same thing, so that an agent that cannot satisfy a gate comes to its end.

use ic_base::{Result, Timestamp, shell_word};
use ic_dispatch::dispatch;
use ic_kernel::Kernel;
use ic_ledger::Snapshot;
use ic_phase::gate::{GateCheck, GateCondition};
use ic_phase::{Run, run};
use ic_session::{self as session, Prompt};
use ic_worktree::auto::TakenTree;
use ic_worktree::{CaptureSettings, root_of};

use super::caller::{Teller, latest_of, link_of};
use crate::advance;

/// The number of times that one prompt's stop is blocked at most.
const MOST: i64 = 3;

/// Two hooks that tell of the same stop, of a client with two installations, come within this number of milliseconds; no model answers so
/// fast.
const TWICE_WITHIN: i64 = 1_000;

/// What an agent that stops is told to do first; `None`: it may stop. That it was held is recorded.
///
/// Errors: whatever the ledger says; a look that fails shows nothing new.
pub fn hold(kernel: &Kernel, teller: Teller<'_>, kept: Option<&CaptureSettings>) -> Result<Option<String>> {
    let now = kernel.context.now();
    let Some(found) = kernel.read(|snapshot| asked(snapshot, teller, now))? else { return Ok(None) };
    if found.is_repeated {
        return Ok(Some(said(&found.run, &found.missing)));
    }
    // A call whose end was not told may have failed, or been refused by a person: what it changed is found by a look at the tree.
    let root = root_of(&found.run.project_dir);
    let link = link_of(&found.run, &found.prompt.dispatch_id);
    let taken = TakenTree::look_for_call(kernel, kept, root.clone(), link, false);
    kernel.write(|tx, now| {
        // The hooks of one stop run at the same time, so another one may have recorded the block since the question above.
        let Some(found) = asked(tx, teller, now)? else { return Ok(None) };
        if !found.is_repeated {
            taken.record_news(tx, now, &root, found.run.epoch)?;
            let work = dispatch::get(tx, &found.prompt.dispatch_id)?;
            // An agent that only answered a question has done no work that the gate could wait for.
            if !ic_undo::points::has_changed(tx, &root, &work)? {
                return Ok(None);
            }
            session::hold(tx, now, &found.prompt, &facts(&found.missing))?;
        }
        Ok(Some(said(&found.run, &found.missing)))
    })
}

/// What the gate of a run asks of an agent that stops.
struct Asked {
    prompt: Prompt,
    run: Run,
    missing: Vec<GateCondition>,
    /// Another hook of this very stop has recorded it.
    is_repeated: bool,
}

fn asked(snapshot: &Snapshot<'_>, teller: Teller<'_>, now: Timestamp) -> Result<Option<Asked>> {
    let Some(known) = teller.session(snapshot)? else { return Ok(None) };
    let is_open = |prompt: &Prompt| prompt.ended_at.is_none();
    let Some(prompt) = latest_of(snapshot, teller)?.filter(is_open) else { return Ok(None) };
    let work = dispatch::get(snapshot, &prompt.dispatch_id)?;
    let run = run::get(snapshot, &work.run_id)?;
    // A run that was made for the session is moved by the session alone, so its gate asks nothing of the agent.
    let is_own = known.owns_run && known.run_id == run.id;
    if is_own || run.require_active().is_err() || work.require_current().is_err() {
        return Ok(None);
    }
    // The last phase of the chain has no gate to a next one.
    if run.phase != work.phase || run.phase == run.chain.last() {
        return Ok(None);
    }
    let verdict = advance::verdict_after(snapshot, &run, &work.id)?;
    if !verdict.blocks() {
        return Ok(None);
    }
    let missing: Vec<GateCondition> = verdict.conditions.into_iter().filter(|one| !one.holds).collect();
    let is_repeated = match &prompt.held {
        Some((at, same)) if *same == facts(&missing) => {
            // The agent stopped again with the same conditions missing: another block would not change that.
            if now.millis().saturating_sub(at.millis()) >= TWICE_WITHIN {
                return Ok(None);
            }
            true
        }
        _ if prompt.held_count >= MOST => return Ok(None),
        _ => false,
    };
    Ok(Some(Asked { prompt, run, missing, is_repeated }))
}

fn facts(missing: &[GateCondition]) -> String {
    let all: Vec<String> = missing.iter().map(|one| format!("{}: {}", one.check.as_str(), one.detail)).collect();
    all.join("; ")
}

/// For the agent: what is missing, and the command that provides it.
fn said(run: &Run, missing: &[GateCondition]) -> String {
    let id = run.id.short();
    let commands: Vec<String> = missing.iter().map(|one| command(id, one)).collect();
    format!(
        "Not done yet: the gate of the run {id} does not pass, so the run cannot leave the phase {}: {}. Do what is missing, then record it: {}. \
         If you cannot, say so and stop.",
        ic_base::title(&run.phase),
        facts(missing),
        commands.join("; ")
    )
}

/// The command that satisfies a condition.
fn command(run: &str, missing: &GateCondition) -> String {
    let phase =
        missing.phase.as_ref().map_or_else(String::new, |phase| format!(" --phase {}", shell_word(phase.as_str())));
    match missing.check {
        GateCheck::ArtifactExists => format!("ic run artifact add {run} --path FILE{phase}"),
        GateCheck::AgentsComplete | GateCheck::DispatchesComplete => {
            let first = missing.unfinished.first();
            first.map_or_else(|| format!("ic gate check {run}"), |work| work.command.clone())
        }
        GateCheck::VerdictExists | GateCheck::VerdictClean => {
            format!("ic dispatch create {run} --name review{phase}, then ic dispatch complete ID --verdict pass")
        }
    }
}
