//! A rollback over several layers as one plan: the run, then each layer in the order in which it is rolled back.

use std::collections::BTreeSet;

use ic_base::Code;
use ic_effects::{Compensation, CompensationState};
use ic_kernel::journal::steps::{self as journal, Course, RollbackStep};
use ic_undo::{Effects, LayeredRollback, LayeredStatus, Refusal, Resuming, command_alone};

use crate::text::{self, Cell, TextTable, plain, refused, style, styled};
use crate::views;
use crate::views::rollback::commits::own_commits;
use crate::views::rollback::data::rows;
use crate::views::rollback::steps::{purged, steps, ways_on};
use crate::views::rollback::tree::{outside, tree};
use crate::views::rollback::{head, next, record};

/// A rollback over several layers, planned, done or stopped, and the commands that can follow.
///
/// `files_alone`: the former files, if git's former state cannot be restored.
pub(crate) fn layered(whole: &LayeredRollback, files_alone: Option<&ic_undo::FilesAlone>) -> String {
    let mut out = plan(whole);
    out += &match whole.status {
        LayeredStatus::Planned if whole.refusals.is_empty() => next(&whole.rollback),
        LayeredStatus::Planned => would_be_refused(&whole.refusals, whole.rollback.plan.point_of_one()),
        LayeredStatus::RolledBack | LayeredStatus::RolledBackInPart | LayeredStatus::AlreadyThere => {
            let id = whole.rollback.done.as_ref().map_or("", |(id, _)| id.short());
            let way_back = files_alone.map_or_else(|| way_back(id, whole.parts.effects.as_ref()), purged);
            let in_part = whole.status == LayeredStatus::RolledBackInPart;
            let in_part = if in_part { in_part_of(whole) } else { String::new() };
            in_part + &styled(style::DIM, &way_back) + "\n"
        }
        LayeredStatus::RollingBack => format!(
            "{}\n{}\n{}",
            steps(&told_once(&whole.steps, whole.parts.effects.as_ref())),
            styled(style::BAD, "The rollback is not finished; the run stays closed."),
            whole.rollback.done.as_ref().map(|(id, _)| ways_on(id, &whole.steps, files_alone)).unwrap_or_default()
        ),
    };
    out
}

/// A sentence about a rollback that left a part of the work. A run that goes back counts as undone, so only works have a rest to name.
fn in_part_of(whole: &LayeredRollback) -> String {
    let paths = whole.parts.tree.as_ref().map_or(0, |tree| tree.parts_left.len());
    let paths = paths + whole.parts.outside.iter().filter(|change| change.is_incomplete()).count();
    let stays = format!("undone in part: something of it stays at {}", text::counted(paths, "path"));
    let rest = whole.rollback.plan.chosen.first().map(|only| {
        let rest = format!("the work does not count as undone; the rest: ic undo --only {} --dry-run", only.short());
        styled(style::DIM, &rest) + "\n"
    });
    format!("{}\n{}", styled(style::BAD, &stays), rest.unwrap_or_default())
}

/// All refusals of a plan, and how to override each. The undo of the work alone, which `point` names, comes first, because it forces
/// nothing.
pub(crate) fn would_be_refused(refusals: &[Refusal], point: Option<&str>) -> String {
    let mut out: String = refusals.iter().map(|refusal| refused(&refusal.error)).collect();
    let is_of_others = |refusal: &Refusal| matches!(refusal.error.code(), Code::FileConflict | Code::ForeignCommits);
    // Suggested only where others are in the way: undoing this work alone would leave theirs.
    let alone = command_alone(point).filter(|_| refusals.iter().any(is_of_others));
    let alone = alone.map(|command| format!("; this work alone: {command}")).unwrap_or_default();
    // `None` as soon as one refusal has no flag: then no call can do it anyway. A set, because several refusals may need the same flag.
    let flags: Option<BTreeSet<&str>> = refusals.iter().map(|refusal| refusal.flag).collect();
    if let Some(flags) = flags {
        let flags = flags.into_iter().collect::<Vec<_>>().join(" ");
        let hint = format!("nothing was changed{alone}; to do it anyway: the same call with {flags}");
        out += &(styled(style::DIM, &hint) + "\n");
    }
    out
}

/// The steps, without the errors that the list of effects has already.
fn told_once(steps: &[RollbackStep], effects: Option<&Effects>) -> Vec<RollbackStep> {
    let told: Vec<String> = effects
        .iter()
        .flat_map(|effects| &effects.compensations)
        .filter(|one| one.state == CompensationState::Failed)
        .filter_map(|one| one.last_error.as_ref().map(|why| format!(": {why}")))
        .collect();
    let mut steps = steps.to_vec();
    for error in steps.iter_mut().filter_map(|step| step.error.as_mut()) {
        // The step's error ends with that of the effect, which the table of effects shows already.
        if let Some(said) = told.iter().find_map(|why| error.strip_suffix(why.as_str())) {
            *error = said.to_owned();
        }
    }
    steps
}

/// The command that undoes a rollback. It needs a flag if effects were undone, because an undo does not make them again.
fn way_back(id: &str, effects: Option<&Effects>) -> String {
    let is_gone =
        // Files of the tree are restored with it, so they are no effects that would stay undone.
        |one: &Compensation| (one.state == CompensationState::Done && !one.goes_with_tree()) || one.is_cut_off();
    let effects = effects.is_some_and(|effects| effects.compensations.iter().any(is_gone));
    let flag = if effects { " --without-effects" } else { "" };
    format!("to bring it back: ic redo {id}{flag}")
}

/// A rollback over several layers, planned or done, without what follows it.
pub(crate) fn plan(whole: &LayeredRollback) -> String {
    let effects = whole.parts.effects.as_ref();
    let has_effects = effects.is_some_and(|effects| !effects.compensations.is_empty());
    let mut out = head(&whole.rollback, whole.status != LayeredStatus::RollingBack);
    // A person looks for works, files, commits, effects and rows first. The record comes last.
    let is_planned = whole.status == LayeredStatus::Planned;
    if let Some(report) = &whole.parts.tree {
        out += &tree(report, whole.parts.commits.as_deref().unwrap_or_default(), false);
    }
    out += &outside(&whole.parts.outside);
    if let Some(commits) = whole.parts.own_commits.as_ref().filter(|commits| !commits.is_empty()) {
        let has_changes = whole.parts.tree.as_ref().is_some_and(|tree| !tree.plan.steps.is_empty());
        out += &section("Commits", &own_commits(commits, has_changes, is_planned));
    }
    if let Some(effects) = whole.parts.effects.as_ref().filter(|effects| has_effects || !effects.left.is_empty()) {
        out += &self::effects(effects, is_planned);
    }
    if let Some(data) = &whole.parts.data {
        out += &section("Rows", &rows(data, "rows that were updated since keep their new values"));
    }
    out += &record(&whole.rollback, has_effects);
    out.push('\n');
    out
}

/// The plan of a resumed rollback.
pub(crate) fn resuming(resuming: &Resuming) -> String {
    let is_back = matches!(journal::course(&resuming.steps), Course::Undo | Course::Abort);
    let mut out = format!("{}\n", styled(style::WARN, "resuming it would do this"));
    out += &resuming.effects.as_ref().map(|all| effects(all, true)).unwrap_or_default();
    for report in &resuming.tree {
        out += &tree(report, &resuming.commits, is_back);
    }
    out += &resuming.data.as_ref().map(|data| section("Rows", &rows(data, ""))).unwrap_or_default();
    for refusal in &resuming.refusals {
        let flag = refusal.flag.map(|flag| format!("; to do it anyway: {flag}")).unwrap_or_default();
        let message = plain(refusal.error.message());
        // Without its full stop, because the sentence continues after a semicolon.
        let message = if flag.is_empty() { message.as_ref() } else { message.trim_end_matches('.') };
        out += &format!("{}: {message}{flag}\n", styled(style::BAD, "it would stop again"));
    }
    out + &text::to_do_it()
}

/// The effects that are undone, in this order, or were.
fn effects(effects: &Effects, is_planned: bool) -> String {
    section("Effects", &effects_of(effects, is_planned))
}

pub(crate) fn section(title: &str, body: &str) -> String {
    format!("\n{}{body}", styled(style::STRONG, title))
}

fn effects_of(effects: &Effects, is_planned: bool) -> String {
    let all = &effects.compensations;
    let mut out = match (all.is_empty(), is_planned) {
        (true, _) => ": none to be undone\n".to_owned(),
        (false, true) => ", undone in this order\n".to_owned(),
        (false, false) => "\n".to_owned(),
    };
    let mut table = TextTable::headless();
    for (at, one) in all.iter().enumerate() {
        table.row(vec![
            Cell::new(style::DIM, &format!("{:>3}", at + 1)),
            Cell::new(style::STRONG, &one.step),
            effect(one, is_planned),
            Cell::new(style::DIM, one.description.as_deref().unwrap_or_default()),
        ]);
    }
    if !all.is_empty() {
        out += &table.render("");
    }
    let pivot = effects.pivot.as_deref().map(|step| format!(": {} cannot be undone", plain(step)));
    // The table above has the compensations that were tried.
    let was_tried = |left: &Compensation| all.iter().any(|one| one.id == left.id);
    for left in effects.left.iter().filter(|left| !was_tried(left)) {
        let why = pivot.as_deref().unwrap_or_default();
        out += &format!("  {}  {}{why}\n", styled(style::BAD, "stays"), plain(&left.step));
    }
    out
}

fn effect(one: &Compensation, is_planned: bool) -> Cell {
    let why = one.last_error.as_deref().unwrap_or_default();
    match one.state {
        CompensationState::Done => Cell::new(style::GOOD, "undone"),
        CompensationState::Skipped => Cell::new(style::DIM, &format!("skipped: {why}")),
        CompensationState::Failed if !is_planned => Cell::new(style::BAD, &format!("not undone: {why}")),
        _ => views::compensation::action(&one.action).as_str().into(),
    }
}
