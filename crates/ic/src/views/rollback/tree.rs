//! The changes of files and git's state by a rollback.

use ic_base::{CheckpointId, shell_word};
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::restore::plan::{RestoreAction as FileAction, RestoreStep};
use ic_ledger::path_from_bytes;
use ic_undo::{LeavingCommit, OutsideChange};
use ic_worktree::{Conflict, GitRestore, RestoreReport, RestoreStatus, Warning};

use crate::text::{TextTable, counted, path_text, plain, style, styled};
use crate::views;
use crate::views::rollback::commits::{SHOWN, commits_of, more};
use crate::views::rollback::layers_plan::section;

/// The changes of a restore in git's state and in files, planned or done.
///
/// `is_back`: whether it restores what an undo changed, as a redo does.
pub(crate) fn tree(report: &RestoreReport, commits: &[LeavingCommit], is_back: bool) -> String {
    // Unchanged, beside files, it says nothing.
    let git = report.git.as_ref().filter(|git| !git.plan.is_empty() || !report.strategy.has_files());
    let git = git.map(|git| section("Git", &(git_of(git, commits) + &git_alone(report))));
    let files = report.strategy.has_files().then(|| section("Files", &files(report, is_back)));
    git.unwrap_or_default() + &files.unwrap_or_default()
}

fn git_of(git: &GitRestore, commits: &[LeavingCommit]) -> String {
    if git.plan.is_empty() {
        return ": unchanged\n".to_owned();
    }
    let mut out = "\n".to_owned();
    let mut table = TextTable::headless();
    for (what, how) in git.moves() {
        table.row(vec!["".into(), what.as_str().into(), how.as_str().into()]);
    }
    out += &table.render("");
    out += &commits_of(commits);
    out += &views::checkpoint::git::kept(git);
    out
}

/// The differences that are left in git's state, if no files are listed.
fn git_alone(report: &RestoreReport) -> String {
    if report.strategy.has_files() {
        return String::new();
    }
    let line = |(path, why): &(PathText, String)| {
        format!("  {}  {}  {}\n", styled(style::BAD, "differs"), text(path), plain(why))
    };
    report.differs.iter().map(line).collect::<String>() + &warnings(report)
}

/// Files outside of the project, each with its absolute path.
pub(crate) fn outside(changes: &[OutsideChange]) -> String {
    if changes.is_empty() {
        return String::new();
    }
    let line = |change: &OutsideChange| match &change.left {
        None => format!("  {:<7}  {}\n", change.action, path_text(&change.path)),
        Some(why) => {
            let word =
                if change.is_incomplete() { styled(style::BAD, "stays  ") } else { styled(style::DIM, "stays  ") };
            format!("  {word}  {}  {}\n", path_text(&change.path), styled(style::DIM, &plain(why)))
        }
    };
    section("Outside the captured tree", &format!("\n{}", changes.iter().map(line).collect::<String>()))
}

pub(crate) fn files(tree: &RestoreReport, is_back: bool) -> String {
    let steps = &tree.plan.steps;
    let is_planned = tree.status == RestoreStatus::Planned;
    let mut out = headline(tree, is_back);
    let width = 8;
    for step in steps.iter().take(SHOWN) {
        let colour = match step.action {
            FileAction::Delete | FileAction::Replace => style::BAD,
            FileAction::Create => style::GOOD,
            FileAction::Modify | FileAction::Chmod | FileAction::Attributes | FileAction::Link => style::WARN,
        };
        let action = styled(colour, &format!("{:<width$}", step.action.as_str()));
        // Afterwards the safety checkpoint has it.
        let note = if step.uncaptured && is_planned { "  in no checkpoint yet" } else { "" };
        out += &format!("  {action}  {}{}\n", text(&step.path), styled(style::DIM, note));
    }
    out += &more(steps.len());
    let mut list = |word: &str, colour, pairs: &mut dyn Iterator<Item = (&PathText, &String)>| {
        for (path, why) in pairs {
            let word = styled(colour, &format!("{word:<width$}"));
            out += &format!("  {word}  {}  {}\n", text(path), styled(style::DIM, &plain(why)));
        }
    };
    list("CONFLICT", style::BAD, &mut tree.conflicts.iter().map(|c| (&c.path, &c.reason)));
    list("stays", style::DIM, &mut tree.plan.skipped.iter().map(|(path, why)| (path, why)));
    list("unknown", style::DIM, &mut tree.not_compared.iter().map(|(path, why)| (path, why)));
    list("is lost", style::BAD, &mut tree.plan.not_kept.iter().map(|(path, what)| (path, what)));
    list("differs", style::BAD, &mut tree.differs.iter().map(|(path, what)| (path, what)));
    list("history", style::BAD, &mut tree.repositories.iter().map(|(path, why)| (path, why)));
    let staged = if is_back { "staged as this work left it" } else { "staged as before this work" }.to_owned();
    list("index", style::WARN, &mut tree.index.iter().map(|path| (path, &staged)));
    list("place", style::DIM, &mut tree.work_trees.iter().map(|(path, why)| (path, why)));
    list("failed", style::BAD, &mut tree.failed.iter().map(|(path, why)| (path, why)));
    out += &warnings(tree);
    match &tree.safety_id {
        Some(safety) => {
            out += &format!("  the old content is kept in checkpoint {}\n", safety.short());
            out += &replaced(tree, safety);
        }
        None if is_planned && !steps.is_empty() => {
            out += "  the current content is saved in a checkpoint first\n";
        }
        None => {}
    }
    out
}

/// A path in conflict, and why it is one.
pub(crate) fn conflict_line(conflict: &Conflict) -> String {
    format!("{}  {}\n", text(&conflict.path), styled(style::DIM, &plain(&conflict.reason)))
}

/// How to restore what others changed, after a decision to replace it.
fn replaced(tree: &RestoreReport, safety: &CheckpointId) -> String {
    // A conflict at which nothing changed was decided for the others: theirs is still there.
    let is_step = |path: &PathText| tree.plan.steps.iter().any(|step| step.path == *path);
    let Some(first) = tree.conflicts.iter().map(|one| &one.path).find(|path| is_step(path)) else {
        return String::new();
    };
    let path = shell_word(&String::from_utf8_lossy(&first.0));
    format!(
        "  at CONFLICT, what others made of the very same lines or file, if anything, was replaced; ic redo brings it back, or of one file alone: \
         ic checkpoint restore {} --path {path} --yes\n",
        safety.short()
    )
}

/// The warnings of a plan, and those of its execution, because with --yes no plan is shown before.
fn warnings(tree: &RestoreReport) -> String {
    let line = |one: &Warning| format!("  {}  {}\n", styled(style::WARN, "warning"), plain(&one.message));
    tree.warnings.iter().map(line).collect()
}

/// A sentence about the files.
fn headline(tree: &RestoreReport, is_back: bool) -> String {
    let steps = &tree.plan.steps;
    let id = tree.target.id.short();
    let is_planned = tree.status == RestoreStatus::Planned;
    let is_exact = [&tree.plan.skipped, &tree.not_compared, &tree.failed, &tree.plan.not_kept, &tree.differs];
    let is_exact = is_exact.into_iter().all(Vec::is_empty);
    let but = if is_exact { "" } else { ", but for what is named below" };
    // `is_without`: only what works did is taken out, so the tree need not become as a checkpoint has it.
    match steps.len() {
        // What cannot be told from the work of others stays in the tree.
        0 if tree.is_without && !tree.plan.skipped.is_empty() => {
            let what = if is_back { "restored" } else { "undone" };
            format!(": none is {what}, and what is named below is not changed\n")
        }
        0 if tree.is_without && !tree.conflicts.is_empty() => ": none can be told from what others did\n".to_owned(),
        0 if tree.is_without => ": none changes\n".to_owned(),
        _ if tree.is_without => {
            let what = if is_back { "with what it did again" } else { "without what it did" };
            let planned = if is_planned { format!(": {}", tally(tree)) } else { String::new() };
            format!(", {what}{planned}\n")
        }
        0 if is_exact && !tree.is_whole && !is_back => {
            format!(": none that is to be restored differs from checkpoint {id}\n")
        }
        0 if is_exact => format!(": as checkpoint {id} has them\n"),
        0 => format!(": nothing to restore from checkpoint {id}{but}\n"),
        _ if is_planned => format!(", as checkpoint {id} has them{but}: {}\n", tally(tree)),
        _ => format!(", as checkpoint {id} has them{but}\n"),
    }
}

/// The numbers of changes, as in `2 created, 1 modified, 3 deleted, 1 directory deleted`; files and links are counted together.
fn tally(tree: &RestoreReport) -> String {
    let named = [
        (FileAction::Create, "created"),
        (FileAction::Modify, "modified"),
        (FileAction::Chmod, "with other modes"),
        (FileAction::Attributes, "with other owners or attributes"),
        (FileAction::Link, "with other links"),
        (FileAction::Replace, "replaced"),
        (FileAction::Delete, "deleted"),
    ];
    let mut parts = Vec::new();
    for of_directories in [false, true] {
        for (action, word) in named {
            let is_one = |step: &&RestoreStep| step.action == action && step.is_of_directory() == of_directories;
            match tree.plan.steps.iter().filter(is_one).count() {
                0 => {}
                n if of_directories => parts.push(format!("{} {word}", counted(n, "directory"))),
                n => parts.push(format!("{n} {word}")),
            }
        }
    }
    parts.join(", ")
}

pub(crate) fn text(path: &PathText) -> String {
    // The root itself has an empty path.
    if path.0.is_empty() { ".".to_owned() } else { path_text(&path_from_bytes(&path.0)) }
}
