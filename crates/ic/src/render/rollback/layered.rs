//! A rollback over several layers as one plan: the run, then each layer in the order in which it goes back.

use std::collections::BTreeSet;

use ic_base::CheckpointId;
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::restore::plan::Action as FileAction;
use ic_journal::steps::Step;
use ic_rollback::{Data, Effects, LayeredRollback, LayeredStatus, LeavingCommit, OwnCommit, Refusal};
use ic_saga::{Compensation, State};
use ic_store::path_from_bytes;
use ic_worktree::{GitRestore, Report, Status};

use super::state::{purged, steps, ways_on};
use super::{head, next};
use crate::render::{Cell, Table, compensation, git, path_text, plain, refused, style, styled};

/// More paths and commits than these are counted only.
const SHOWN: usize = 40;

/// A rollback over several layers, planned, done or stopped, and what can be done next.
///
/// `files_alone`: the checkpoint that has the files of before, where git's state of before was purged.
pub(crate) fn layered(whole: &LayeredRollback, files_alone: Option<&CheckpointId>) -> String {
    let mut out = plan(whole);
    out.push_str(&match whole.status {
        LayeredStatus::Planned if whole.refusals.is_empty() => next(&whole.rollback),
        LayeredStatus::Planned => would_be_refused(&whole.refusals),
        LayeredStatus::RolledBack => {
            let id = whole.rollback.done.as_ref().map_or("", |(id, _)| id.short());
            let way_back = files_alone.map_or_else(|| way_back(id, whole.parts.effects.as_ref()), purged);
            styled(style::DIM, &way_back) + "\n"
        }
        LayeredStatus::RollingBack => format!(
            "{}\n{}\n{}",
            steps(&told_once(&whole.steps, whole.parts.effects.as_ref())),
            styled(style::BAD, "The rollback is not finished; the run stays closed."),
            whole
                .rollback
                .done
                .as_ref()
                .map(|(id, _)| ways_on(id, &whole.steps, files_alone))
                .unwrap_or_default()
        ),
    });
    out
}

/// All the refusals of a plan, and the flags that decide them.
fn would_be_refused(refusals: &[Refusal]) -> String {
    let mut out: String = refusals.iter().map(|refusal| refused(&refusal.error)).collect();
    let flags: Option<BTreeSet<&str>> = refusals.iter().map(|refusal| refusal.flag).collect();
    if let Some(flags) = flags {
        let flags = flags.into_iter().collect::<Vec<_>>().join(" ");
        let hint = format!("nothing was changed; to do it anyway: the same call with {flags}");
        out.push_str(&(styled(style::DIM, &hint) + "\n"));
    }
    out
}

/// The steps without what the list of effects says already: why an effect failed stands beside it.
fn told_once(steps: &[Step], effects: Option<&Effects>) -> Vec<Step> {
    let told: Vec<String> = effects
        .iter()
        .flat_map(|effects| &effects.compensations)
        .filter(|one| one.state == State::Failed)
        .filter_map(|one| one.last_error.as_ref().map(|why| format!(": {why}")))
        .collect();
    let mut steps = steps.to_vec();
    for error in steps.iter_mut().filter_map(|step| step.error.as_mut()) {
        if let Some(said) = told.iter().find_map(|why| error.strip_suffix(why.as_str())) {
            *error = said.to_owned();
        }
    }
    steps
}

/// The command that undoes a rollback now. Without the flag it would be refused where effects were undone: they are not made again.
fn way_back(id: &str, effects: Option<&Effects>) -> String {
    let is_gone = |one: &Compensation| one.state == State::Done || one.is_cut_off();
    let effects = effects.is_some_and(|effects| effects.compensations.iter().any(is_gone));
    let flag = if effects { " --without-effects" } else { "" };
    format!("to bring it back: ic rollback undo {id}{flag}")
}

/// What a rollback over several layers takes back, or took.
pub(crate) fn plan(whole: &LayeredRollback) -> String {
    let effects = whole.parts.effects.as_ref();
    let has_effects = effects.is_some_and(|effects| !effects.compensations.is_empty());
    let mut out = head(&whole.rollback, whole.status != LayeredStatus::RollingBack, has_effects);
    let is_planned = whole.status == LayeredStatus::Planned;
    if let Some(effects) = &whole.parts.effects {
        out.push_str(&self::effects(effects, is_planned));
    }
    if let Some(report) = &whole.parts.tree {
        out.push_str(&tree(report, whole.parts.commits.as_deref().unwrap_or_default()));
    }
    if let Some(commits) = whole.parts.own_commits.as_ref().filter(|commits| !commits.is_empty()) {
        out.push_str(&section("Commits", &own_commits(commits)));
    }
    if let Some(data) = &whole.parts.data {
        out.push_str(&section("Rows", &rows(data, "rows that were updated since keep their new values")));
    }
    out.push('\n');
    out
}

/// What a restore does about git and files, or did.
pub(super) fn tree(report: &Report, commits: &[LeavingCommit]) -> String {
    let git = report.git.as_ref().map(|git| section("Git", &(git_of(git, commits) + &git_alone(report))));
    let files = report.strategy.has_files().then(|| section("Files", &files(report)));
    git.unwrap_or_default() + &files.unwrap_or_default()
}

/// Effects that are undone, in this order, or were.
fn effects(effects: &Effects, is_planned: bool) -> String {
    section("Effects", &effects_of(effects, is_planned))
}

fn section(title: &str, body: &str) -> String {
    format!("\n{}{body}", styled(style::STRONG, title))
}

fn effects_of(effects: &Effects, is_planned: bool) -> String {
    let all = &effects.compensations;
    let mut out = match (all.is_empty(), is_planned) {
        (true, _) => ": none to be undone\n".to_owned(),
        (false, true) => ", undone in this order\n".to_owned(),
        (false, false) => "\n".to_owned(),
    };
    let mut table = Table::headless();
    for (at, one) in all.iter().enumerate() {
        table.row(vec![
            Cell::new(style::DIM, &format!("{:>3}", at + 1)),
            Cell::new(style::STRONG, &one.step),
            effect(one, is_planned),
            Cell::new(style::DIM, one.description.as_deref().unwrap_or_default()),
        ]);
    }
    if !all.is_empty() {
        out.push_str(&table.render(""));
    }
    let pivot = effects.pivot.as_deref().map(|step| format!(": {} cannot be undone", plain(step)));
    // What was tried stands in the table already.
    let was_tried = |left: &Compensation| all.iter().any(|one| one.id == left.id);
    for left in effects.left.iter().filter(|left| !was_tried(left)) {
        let why = pivot.as_deref().unwrap_or_default();
        out.push_str(&format!("  {}  {}{why}\n", styled(style::BAD, "stays"), plain(&left.step)));
    }
    out
}

fn effect(one: &Compensation, is_planned: bool) -> Cell {
    let why = one.last_error.as_deref().unwrap_or_default();
    match one.state {
        State::Done => Cell::new(style::GOOD, "undone"),
        State::Skipped => Cell::new(style::DIM, &format!("left as it is: {why}")),
        State::Failed if !is_planned => Cell::new(style::BAD, &format!("not undone: {why}")),
        _ => compensation::action(&one.action).as_str().into(),
    }
}

fn git_of(git: &GitRestore, commits: &[LeavingCommit]) -> String {
    if git.plan.is_empty() {
        return ": as it is\n".to_owned();
    }
    let mut out = "\n".to_owned();
    let mut table = Table::headless();
    for (what, how) in git::moves(git) {
        table.row(vec!["".into(), what.as_str().into(), how.as_str().into()]);
    }
    out.push_str(&table.render(""));
    out.push_str(&commits_of(commits));
    out.push_str(&git::kept(git));
    out
}

/// What is not as it was of git's state, where no files are told of.
fn git_alone(report: &Report) -> String {
    if report.strategy.has_files() {
        return String::new();
    }
    let line = |(path, why): &(PathText, String)| {
        format!("  {}  {}  {}\n", styled(style::BAD, "differs"), text(path), plain(why))
    };
    report.differs.iter().map(line).collect()
}

fn commits_of(commits: &[LeavingCommit]) -> String {
    if commits.is_empty() {
        return String::new();
    }
    let mut out = match commits.len() {
        1 => "  1 commit leaves its branch; it is kept below refs/ic/rolled-back/\n".to_owned(),
        n => format!(
            "  {n} commits leave their branches, the newest first; they are kept below refs/ic/rolled-back/\n"
        ),
    };
    let mut table = Table::headless();
    for commit in commits.iter().take(SHOWN) {
        let dispatch = commit.dispatch.as_ref();
        table.row(vec![
            "   ".into(),
            Cell::new(style::STRONG, &commit.sha[..commit.sha.len().min(8)]),
            dispatch.map_or("", |dispatch| dispatch.phase.as_str()).into(),
            match (dispatch, &commit.other_run) {
                (Some(d), None) => d.work.name.as_deref().unwrap_or(d.id.short()).into(),
                (Some(d), Some(run)) => Cell::new(
                    style::BAD,
                    &format!(
                        "{}, and recorded by the run {} too",
                        d.work.name.as_deref().unwrap_or(d.id.short()),
                        run.short()
                    ),
                ),
                (None, Some(run)) => Cell::new(style::BAD, &format!("recorded by the run {}", run.short())),
                (None, None) => "recorded for no dispatch".into(),
            },
            described(commit),
        ]);
    }
    out.push_str(&table.render(""));
    out + &more(commits.len())
}

/// The commits of one dispatch, which no undo of it moves.
fn own_commits(commits: &[OwnCommit]) -> String {
    let mut out = ", which stay on their branches; what they changed is undone in the tree\n".to_owned();
    let mut table = Table::headless();
    for one in commits.iter().take(SHOWN) {
        let commit = &one.commit;
        table.row(vec![
            " ".into(),
            Cell::new(style::STRONG, commit.sha.get(..12).unwrap_or(&commit.sha)),
            Cell::new(style::WARN, one.state().as_str()),
            ic_base::title(&commit.subject).as_str().into(),
            Cell::new(style::DIM, &ic_base::title(&commit.author)),
        ]);
    }
    out.push_str(&table.render(""));
    let reverts = commits.iter().take(SHOWN).filter_map(OwnCommit::revert);
    let reverts: Vec<String> = reverts.map(|command| format!("    {command}\n")).collect();
    if !reverts.is_empty() {
        out.push_str("  to undo them by commits instead:\n");
        out.push_str(&reverts.concat());
    }
    out + &more(commits.len())
}

/// What a commit says, who made it, and whether a remote has it.
fn described(commit: &LeavingCommit) -> Cell {
    let Some(one) = &commit.described else { return "".into() };
    let text = format!("{} ({})", ic_base::title(&one.subject), ic_base::title(&one.author));
    if one.is_pushed {
        Cell::new(style::BAD, &format!("{text}, a remote has it"))
    } else {
        Cell::new(style::DIM, &text)
    }
}

fn more(count: usize) -> String {
    match count.saturating_sub(SHOWN) {
        0 => String::new(),
        n => format!("    and {n} more: --json\n"),
    }
}

fn files(tree: &Report) -> String {
    let steps = &tree.plan.steps;
    let id = tree.target.id.short();
    let is_planned = tree.status == Status::Planned;
    let is_exact = [&tree.plan.skipped, &tree.not_compared, &tree.failed, &tree.plan.not_kept, &tree.differs];
    let is_exact = is_exact.into_iter().all(Vec::is_empty);
    let but = if is_exact { "" } else { ", but for what is named below" };
    let mut out = match steps.len() {
        0 if tree.is_without => ": nothing of it is left to undo\n".to_owned(),
        _ if tree.is_without && is_planned => format!(", without what it did: {}\n", tally(tree)),
        _ if tree.is_without => ", without what it did\n".to_owned(),
        0 if is_exact => format!(": as checkpoint {id} has them\n"),
        0 => format!(": nothing to restore from checkpoint {id}{but}\n"),
        _ if is_planned => format!(", as checkpoint {id} has them{but}: {}\n", tally(tree)),
        _ => format!(", as checkpoint {id} has them{but}\n"),
    };
    let width = 7;
    for step in steps.iter().take(SHOWN) {
        let colour = match step.action {
            FileAction::Delete | FileAction::Replace => style::BAD,
            FileAction::Create => style::GOOD,
            FileAction::Modify | FileAction::Chmod | FileAction::Attributes | FileAction::Link => style::WARN,
        };
        let action = styled(colour, &format!("{:<width$}", step.action.as_str()));
        let note = if step.uncaptured && is_planned { "  in no checkpoint yet" } else { "" };
        out.push_str(&format!("  {action}  {}{}\n", text(&step.path), styled(style::DIM, note)));
    }
    out.push_str(&more(steps.len()));
    let mut list = |word: &str, colour, pairs: &mut dyn Iterator<Item = (&PathText, &String)>| {
        for (path, why) in pairs {
            let word = styled(colour, &format!("{word:<width$}"));
            out.push_str(&format!("  {word}  {}  {}\n", text(path), styled(style::DIM, &plain(why))));
        }
    };
    list("CLASH", style::BAD, &mut tree.conflicts.iter().map(|c| (&c.path, &c.reason)));
    list("stays", style::DIM, &mut tree.plan.skipped.iter().map(|(path, why)| (path, why)));
    list("unknown", style::DIM, &mut tree.not_compared.iter().map(|(path, why)| (path, why)));
    list("is lost", style::BAD, &mut tree.plan.not_kept.iter().map(|(path, what)| (path, what)));
    list("differs", style::BAD, &mut tree.differs.iter().map(|(path, what)| (path, what)));
    list("failed", style::BAD, &mut tree.failed.iter().map(|(path, why)| (path, why)));
    // Nothing else tells of them before the question: the real call finds them again.
    for warning in tree.warnings.iter().filter(|_| is_planned) {
        out.push_str(&format!("  {}  {}\n", styled(style::WARN, "warning"), plain(&warning.message)));
    }
    match &tree.safety_id {
        Some(safety) => {
            out.push_str(&format!("  the old content is kept in checkpoint {}\n", safety.short()));
        }
        None if is_planned && !steps.is_empty() => {
            out.push_str("  the current content is saved in a checkpoint first\n");
        }
        None => {}
    }
    out
}

/// `2 created, 1 modified, 3 deleted`
fn tally(tree: &Report) -> String {
    let named = [
        (FileAction::Create, "created"),
        (FileAction::Modify, "modified"),
        (FileAction::Chmod, "with other modes"),
        (FileAction::Attributes, "with other owners or attributes"),
        (FileAction::Link, "with other links"),
        (FileAction::Replace, "replaced"),
        (FileAction::Delete, "deleted"),
    ];
    let count = |action| tree.plan.steps.iter().filter(|step| step.action == action).count();
    let parts = named.into_iter().filter(|(action, _)| count(*action) > 0);
    parts.map(|(action, word)| format!("{} {word}", count(action))).collect::<Vec<_>>().join(", ")
}

fn text(path: &PathText) -> String {
    if path.0.is_empty() { ".".to_owned() } else { path_text(&path_from_bytes(&path.0)) }
}

/// Tables with their rows; `note` stands below.
pub(super) fn rows(data: &Data, note: &str) -> String {
    let database = path_text(&data.database);
    let all: u64 = data.rows.iter().map(|(_, rows)| rows).sum();
    if all == 0 {
        return format!(" of {database}: none\n");
    }
    let mut out = format!(" of {database}: {all}\n");
    for (table, rows) in data.rows.iter().filter(|(_, rows)| *rows > 0) {
        out.push_str(&format!("  {rows:>7}  {}\n", plain(table)));
    }
    if !note.is_empty() {
        out.push_str(&format!("  {note}\n"));
    }
    out
}
