//! The commands that restore by hand what others changed since a rollback. They name what is lost with it, and lose nothing else.

use std::collections::BTreeSet;

use ic_base::{CheckpointId, Code, Diagnosis, Result};
use ic_checkpoint::record;
use ic_checkpoint::restore::Strategy;
use ic_checkpoint::restore::journal::RestoreRecord;
use ic_kernel::journal::Force;
use ic_ledger::path_from_bytes;
use ic_worktree::{RestoreDeed, RestoreRequest, RestoreWatch, Which, Workspace, restore_into};

/// The path by which a conflict names git's state.
pub(super) const GIT: &[u8] = b".git";
/// A longer command line could not be read or copied.
const MOST_PATHS: usize = 20;

/// The command that restores these paths as a checkpoint has them, and nothing else.
pub(super) fn of_paths(checkpoint: &CheckpointId, paths: &[&[u8]]) -> String {
    let option = |path: &&[u8]| ic_worktree::path_option(&path_from_bytes(path).display().to_string());
    let options: String = paths.iter().map(option).collect();
    format!("ic checkpoint restore {}{options} --strategy files-only --force --yes", checkpoint.short())
}

/// The hint that restores what a rollback left: only these paths, if git's state is not among them.
pub(super) fn hint(
    workspace: &Workspace<'_>,
    left: &CheckpointId,
    changed: &[&[u8]],
    watch: &RestoreWatch,
) -> Result<String> {
    // No `--path` can name git's state: if it changed, the whole checkpoint has to be restored.
    if !changed.contains(&GIT) && changed.len() <= MOST_PATHS {
        let command = of_paths(left, changed);
        return Ok(format!("this restores it (and keeps your changes in a checkpoint): {command}"));
    }
    let discarded = discarded(workspace, left, changed, watch)?;
    Ok(format!(
        "this restores it{discarded} (and keeps your changes in a checkpoint, your commits below refs/ic/rolled-back/): \
         ic checkpoint restore {} --force --yes",
        left.short()
    ))
}

/// What else a restore of the whole tree and of git's state removes: commits from their branch, and changes in other files.
fn discarded(
    workspace: &Workspace<'_>,
    left: &CheckpointId,
    changed: &[&[u8]],
    watch: &RestoreWatch,
) -> Result<String> {
    const NAMED: usize = 5;
    let target = workspace.kernel.read(|snapshot| record::get(snapshot, left))?;
    let request = RestoreRequest {
        which: Which::Id(left.as_str()),
        strategy: Some(Strategy::Full),
        dry_run: true,
        force: Force::ALL,
        compares_all: true,
        ..RestoreRequest::default()
    };
    let deed = RestoreDeed::default();
    // This is the hint of a refusal, which must not fail because no plan can be made.
    let Ok(report) = restore_into(workspace, target, deed, &request, watch) else { return Ok(String::new()) };
    let commits = report.git.as_ref().map_or(0, |git| git.plan.new_commits.len());
    let other = report.plan.steps.iter().map(|step| step.path.0.as_slice());
    let other: Vec<String> = other
        .filter(|path| !path.is_empty() && !changed.contains(path))
        .map(|path| path_from_bytes(path).display().to_string())
        .collect();
    let mut said = Vec::new();
    match commits {
        0 => {}
        1 => said.push("takes 1 commit off its branch".to_owned()),
        n => said.push(format!("takes {n} commits off their branches")),
    }
    if !other.is_empty() {
        let more = match other.len().saturating_sub(NAMED) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        said.push(format!("undoes what you changed in {}{more}", other[..other.len().min(NAMED)].join(", ")));
    }
    Ok(said.iter().map(|one| format!(", {one}")).collect())
}

/// The hint that leaves commits where they are: only the files are restored, and the undo stands. Empty where git's state did not change.
pub(super) fn beside_commits(
    workspace: &Workspace<'_>,
    restores: &[RestoreRecord],
    refused: &Diagnosis,
) -> Result<String> {
    let paths = refused.details().get("paths").and_then(|paths| paths.as_array());
    let has_git = paths.is_some_and(|paths| paths.iter().any(|path| path.as_str().map(str::as_bytes) == Some(GIT)));
    let Some(first) = restores.first().filter(|_| has_git) else { return Ok(String::new()) };
    // These are all paths that the rollback restored, and not only those that the refusal names: the command replaces
    // the whole undo.
    let mut touched = BTreeSet::new();
    for restore in restores {
        touched.extend(ic_worktree::steps_of(workspace, restore)?.into_iter().map(|step| step.path.0));
    }
    let paths: Vec<&[u8]> = touched.iter().map(Vec::as_slice).filter(|path| !path.is_empty()).collect();
    if paths.is_empty() || paths.len() > MOST_PATHS {
        return Ok(String::new());
    }
    // The first safety checkpoint has the files from before all restores of the rollback.
    let command = of_paths(&first.safety_id, &paths);
    Ok(format!("; to bring back these files alone, and leave commits where they are: {command}"))
}

/// The hint for a restore by hand, where the whole restore is refused.
pub(super) fn whole(back_to: &CheckpointId, error: Diagnosis) -> Diagnosis {
    let loss = match error.code() {
        Code::ForeignCommits => " (it takes those commits off their branch, and keeps them below refs/ic/rolled-back/)",
        _ => "",
    };
    error.hint(format!(
        "look at what it would restore: ic checkpoint restore {back} --dry-run; restore it by hand{loss}: \
         ic checkpoint restore {back} --force --yes",
        back = back_to.short()
    ))
}
