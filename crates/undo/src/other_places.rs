//! What the prompts that are undone changed in other places. One undo changes one place, and names the command for each of the others.

use ic_base::display::path_text;
use ic_base::{Result, shell_word, title};
use ic_dispatch::dispatch;
use ic_ledger::Snapshot;
use ic_phase::run;
use ic_session::places;
use ic_worktree::Warning;

use super::plan::RollbackPlan;

/// A warning for each place in which a prompt of the plan changed something that stands.
pub(super) fn changed(snapshot: &Snapshot<'_>, plan: &RollbackPlan) -> Result<Vec<Warning>> {
    let mut found = Vec::new();
    for work in plan.cancelled_dispatches.iter().chain(&plan.marked_dispatches) {
        let Some(prompt) = ic_session::prompt_of(snapshot, &work.id)? else { continue };
        for (session, twin) in places::twins(snapshot, &prompt)? {
            let there = dispatch::get(snapshot, &twin.dispatch_id)?;
            let run = run::get(snapshot, &there.run_id)?;
            // No command can be given in a place that was removed.
            let is_undone = there.rolled_back_by.is_some();
            if is_undone || !session.project_dir.is_dir() || crate::points::is_idle(snapshot, &run, &there)? {
                continue;
            }
            let name = title(there.work.name.as_deref().unwrap_or_default());
            let message = format!(
                "the prompt {name:?} also worked in {}, where its work stays; undo it there: ic -C {} undo --only {} --yes",
                path_text(&session.project_dir),
                shell_word(&session.project_dir.to_string_lossy()),
                there.id.short(),
            );
            found.push(Warning { code: "other_place", message });
        }
    }
    Ok(found)
}
