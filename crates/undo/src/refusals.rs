//! The refusals of a plan that could otherwise be carried out, and the flag that passes each.

use ic_base::{Code, Diagnosis, shell_word};
use ic_checkpoint::git::GitCommit;
use ic_checkpoint::manifest::PathText;
use serde_json::json;

use super::dispatch_changes::{is_unsure, may_be_yours};
use super::leaving_commits::LeavingCommit;
use super::outcome::{Effects, Parts, Refusal};
use super::request::{LayeredRequest, RollbackTarget, before};
use ic_worktree::{Conflict, RestoreReport};

/// The refusals of a plan: `pivot`, `foreign_commits`, `file_conflict`.
///
/// `point`: what it goes back to, where it is one.
pub(super) fn refusals(parts: &Parts, request: &LayeredRequest<'_>, point: Option<&str>) -> Vec<Refusal> {
    let effects = parts.effects.as_ref().filter(|effects| !effects.left.is_empty()).map(refused_effects);
    let open = parts.tree.as_ref().map(|tree| (tree, request.undecided(&tree.conflicts)));
    let open = open.filter(|(_, conflicts)| !conflicts.is_empty());
    let tree = open.map(|(tree, conflicts)| refused_files((tree, &conflicts), request, point));
    let pushed = parts.commits.as_deref().filter(|_| !request.force.commits);
    let pushed = pushed.and_then(|commits| refused_pushed(commits, point));
    effects.into_iter().chain(pushed).chain(tree).collect()
}

/// The command that undoes only the work before which a point lies: changes of others do not block that.
pub fn command_alone(point: Option<&str>) -> Option<String> {
    let work = point.and_then(|point| ["dispatch:", "prompt:"].iter().find_map(|kind| point.strip_prefix(kind)));
    work.map(|work| format!("ic undo --only {work} --yes"))
}

/// The beginning of a hint: the command that needs no force.
pub(super) fn alone_first(point: Option<&str>) -> String {
    let command = command_alone(point);
    command
        .map(|command| format!("undo this work alone, and leave what others did: {command}; or "))
        .unwrap_or_default()
}

/// A commit that a remote has may be used by others.
fn refused_pushed(commits: &[LeavingCommit], point: Option<&str>) -> Option<Refusal> {
    let pushed: Vec<&GitCommit> = commits.iter().map(|leaving| &leaving.commit).filter(|one| one.is_pushed).collect();
    let first = pushed.first()?;
    let short = first.sha.get(..12).unwrap_or(&first.sha);
    let more = match pushed.len() - 1 {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let error = Diagnosis::new(
        Code::ForeignCommits,
        format!("The commit {short}{more} would leave its branch, and a remote has it. Nothing was changed."),
    )
    .hint(format!(
        "{}leave git unchanged: --layer=workflow,effects,files; --force-commits takes it off its branch here, and not there",
        alone_first(point)
    ))
    .detail("commits", pushed.iter().map(|commit| json!({ "commit": commit.sha })).collect::<Vec<_>>());
    Some(Refusal { error, flag: Some("--force-commits") })
}

pub(super) fn refused_effects(effects: &Effects) -> Refusal {
    let steps: Vec<&str> = effects.left.iter().map(|left| left.step.as_str()).collect();
    let (what, before): (String, Vec<&str>) = match effects.pivot.as_deref() {
        Some(pivot) => (format!("The step {pivot}"), steps.iter().copied().filter(|step| *step != pivot).collect()),
        None => ("A later step".to_owned(), steps),
    };
    let before = if before.is_empty() { String::new() } else { format!(": {}", before.join(", ")) };
    let error = Diagnosis::new(
        Code::Pivot,
        format!("{what} cannot be undone, so earlier effects are not undone either{before}. Nothing was changed."),
    )
    .hint("--past-pivot undoes the rest anyway; --dry-run shows them")
    .detail("left", effects.left.iter().map(|left| left.id.to_string()).collect::<Vec<_>>());
    Refusal { error, flag: Some("--past-pivot") }
}

fn refused_files(
    (tree, open): (&RestoreReport, &[&Conflict]),
    request: &LayeredRequest<'_>,
    point: Option<&str>,
) -> Refusal {
    let to = request.base.to;
    if let (Some(words), Some(dispatch)) = (to.words(), to.of_works()) {
        // What was decided with this call belongs to each command that leads on.
        let words = format!("{words}{}", kept_by_name(&request.decisions.leave));
        return refused_works((tree, open), (&words, to), dispatch);
    }
    let error = ic_worktree::refused(open).hint(format!(
        "{}leave these paths as they are: --keep-theirs; --force-files restores them anyway; --dry-run lists them",
        alone_first(point)
    ));
    Refusal { error, flag: Some("--force-files") }
}

/// The refusal of an undo of works: what a person has to decide, with a command for each answer.
fn refused_works(
    (tree, open): (&RestoreReport, &[&Conflict]),
    (words, to): (&str, RollbackTarget<'_>),
    dispatch: &str,
) -> Refusal {
    let left = format!(
        "leave these paths as they are (then the work does not count as undone): ic {words} --keep-theirs --yes"
    );
    let with_later = match to {
        RollbackTarget::Only(_) => {
            format!("; or undo it with all that came after it: ic undo {} --dry-run", before(dispatch))
        }
        _ => String::new(),
    };
    let without_step = open.iter().find(|one| !has_step(tree, one));
    let (hint, flag) = if open.iter().any(|one| may_be_yours(&one.reason)) {
        // Only the person can tell whose change it is.
        let hint = format!(
            "if the agent changed these paths: ic {words} --force-files --yes; if you did: ic {words}{} --yes; if some are yours, name those \
             and add --force-files",
            if open.len() > MOST_NAMED {
                " --keep-theirs".to_owned()
            } else {
                kept_by_name(open.iter().map(|one| &one.path))
            }
        );
        (hint, "--keep-theirs")
    } else if open.iter().any(|one| is_unsure(&one.reason)) {
        // The undo of one need not wait for the others: each would be refused for the same path.
        let hint = format!("{left}; or take out what may be of this work: ic {words} --force-files --yes{with_later}");
        (hint, "--keep-theirs")
    } else if tree.plan.steps.is_empty() {
        // Nothing of the work can be told from what others did, so there is nothing that a flag could restore.
        (format!("{left}{with_later}"), "--keep-theirs")
    } else if let Some(without) = without_step {
        // A file whose place is gone stays removed, whatever is decided.
        let hint = format!(
            "undo first what stands in the way of {}{with_later}; --keep-theirs leaves these paths as they are, and --force-files leaves only \
             those that have no place to come back into",
            String::from_utf8_lossy(&without.path.0),
        );
        (hint, "--keep-theirs")
    } else {
        let hint = format!(
            "{left}; or take this work out anyway, with what others made of the same lines: ic {words} --force-files --yes; --dry-run \
             lists them"
        );
        (hint, "--force-files")
    };
    Refusal { error: ic_worktree::refused(open).hint(hint), flag: Some(flag) }
}

/// The most paths that a command names; after the flag that keeps all, the work does not count as undone.
const MOST_NAMED: usize = 5;

/// The flags that keep these paths by their names, each after a space.
pub(super) fn kept_by_name<'p>(paths: impl IntoIterator<Item = &'p PathText>) -> String {
    let flag = |path: &PathText| format!(" --keep-theirs={}", shell_word(&String::from_utf8_lossy(&path.0)));
    paths.into_iter().map(flag).collect()
}

fn has_step(tree: &RestoreReport, conflict: &Conflict) -> bool {
    tree.plan.steps.iter().any(|step| step.path == conflict.path)
}

/// Whether a decision can take the work out of a path in conflict. Otherwise nothing can come back there.
pub fn can_be_taken(tree: &RestoreReport, conflict: &Conflict) -> bool {
    has_step(tree, conflict) || is_unsure(&conflict.reason)
}
