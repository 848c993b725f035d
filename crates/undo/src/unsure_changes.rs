//! Changes that go back with a run and may be a person's, because they were made between the tool calls of its agent. A plan names them.

use std::collections::BTreeSet;

use ic_base::{Result, Seq};
use ic_checkpoint::diff::{self, Finder};
use ic_checkpoint::record::CheckpointRecord;
use ic_checkpoint::restore::plan::{RestoreNode, RestoreStep as PlanStep};
use ic_session::attribution::Attribution;
use ic_worktree::{Warning, Workspace};

/// Whether the content that a step replaces differs from what the last checkpoint has, whose tree this is.
pub(super) fn is_changed_since(last: &mut Finder<'_>, step: &PlanStep) -> Result<bool> {
    let seen = last.find(&step.path.0)?;
    Ok(seen.as_ref().and_then(RestoreNode::of).map(RestoreNode::plain) != step.before.clone().map(RestoreNode::plain))
}

/// The code of the warning about paths that changed between the tool calls of an agent.
pub(super) const BETWEEN_CALLS: &str = "changed_between_calls";

/// The code of the warning about paths that changed while a prompt was under way that told no tool call.
pub(super) const UNTOLD: &str = "no_call_told";

/// Names the paths that changed between the tool calls of an agent: a process that a call left behind may have changed them, or a person.
/// `alone`: the command that undoes only this work.
pub(super) fn between_calls(
    workspace: &Workspace<'_>,
    target: &CheckpointRecord,
    steps: &[PlanStep],
    alone: Option<&str>,
) -> Result<Vec<Warning>> {
    let attribution = workspace
        .kernel
        .read(|snapshot| Attribution::between(snapshot, &target.root, (target.seq, Seq::MAX), target.created_at))?;
    let run = target.link.run_id.as_ref();
    //   between   work was under way, and none of it was in a call
    //   untold    the same, and some of this run told no call at all
    let (mut between, mut untold) = (BTreeSet::new(), BTreeSet::new());
    for window in attribution.windows().filter(|window| !window.is_idle()) {
        diff::diff(&workspace.objects, Some(&window.from.tree), Some(&window.to.tree), &mut |difference| {
            if difference.change().is_some() && window.makers(&difference.path).is_empty() {
                let all = if attribution.has_untold_work(run, &window) { &mut untold } else { &mut between };
                all.insert(difference.path);
            }
            Ok(())
        })?;
    }
    // No checkpoint was taken since the last call.
    if let Some((last, now)) = attribution.until_now(workspace.kernel.context.now()) {
        let window = attribution.window(last, &now);
        let mut last = Finder::new(&workspace.objects, &last.tree)?;
        for step in steps.iter().filter(|step| !step.is_of_directory() && !window.is_idle()) {
            let path = step.path.0.as_slice();
            if window.makers(path).is_empty() && is_changed_since(&mut last, step)? {
                let all = if attribution.has_untold_work(run, &window) { &mut untold } else { &mut between };
                all.insert(path.to_vec());
            }
        }
    }
    let named = |changed: &BTreeSet<Vec<u8>>| {
        let paths = steps.iter().map(|step| step.path.0.as_slice()).filter(|path| changed.contains(*path));
        first_named(paths)
    };
    let alone = alone.map_or_else(String::new, |command| format!("; an undo of this work alone leaves it: {command}"));
    let warning = |code, when: &str, changed| {
        named(changed).map(|paths| Warning {
            code,
            message: format!("changed {when}, so it may be yours, and goes back too: {paths}{alone}"),
        })
    };
    let between = warning(BETWEEN_CALLS, "between the tool calls of this work", &between);
    let untold = warning(UNTOLD, "while a prompt was under way that told no tool call", &untold);
    Ok(between.into_iter().chain(untold).collect())
}

/// The first three of these paths, and how many more there are; `None`: there is none.
pub(super) fn first_named<'p>(paths: impl Iterator<Item = &'p [u8]>) -> Option<String> {
    const NAMED: usize = 3;
    let name = |path: &[u8]| if path.is_empty() { ".".into() } else { String::from_utf8_lossy(path).into_owned() };
    let all: Vec<String> = paths.map(name).collect();
    let more = match all.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!all.is_empty()).then(|| all.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ") + &more)
}
