//! Shows a plan: what each layer would do, what would stay, and what is in the way.
//!
//! The plan is made by [`ic_undo`]; nothing is decided here.

use ic_checkpoint::manifest::PathText;
use ic_checkpoint::restore::plan::RestoreAction;
use ic_dispatch::Dispatch;
use ic_effects::Compensation;
use ic_kernel::journal::table::named_works;
use ic_runtrack::{Agent, Artifact};
use ic_undo::{Effects, LayeredRollback, LeavingCommit, OwnCommit, RollbackPlan, UndoneRollback};
use ic_worktree::{GitRestore, RestoreReport};
use maud::{Markup, html};

use crate::text::{EMPTY, PageLine, ShownText, counted, of_path, path};

/// The most entries of a list that are shown; the rest is counted. A plan of 5,000 files would be too large for a page.
const SHOWN: usize = 200;

/// The plan of an undo, layer by layer.
pub(crate) fn layers(whole: &LayeredRollback) -> Markup {
    let parts = &whole.parts;
    html! {
        div.plan {
            (record(&whole.rollback.plan))
            @if let Some(effects) = &parts.effects { (self::effects(effects)) }
            @if let Some(report) = &parts.tree {
                @if let Some(git) = &report.git { (self::git(git, parts.commits.as_deref().unwrap_or_default())) }
                (files(report))
            }
            @if let Some(commits) = parts.own_commits.as_deref().filter(|all| !all.is_empty()) { (own_commits(commits)) }
            @if let Some(data) = &parts.data { (rows("Rows", "would be deleted", data)) }
        }
        (what_stays(whole))
    }
}

/// The plan of the redo of a rollback.
pub(crate) fn redo(undone: &UndoneRollback) -> Markup {
    let rollback = &undone.remembered;
    html! {
        div.plan {
            section.layer aria-label="The record" {
                h2 { "The record" }
                @if rollback.is_of_works() { p { "This work counts again." } }
                @else { p { "The run is at " strong { (ShownText(&rollback.from_phase)) } " again, and what was marked counts again." } }
            }
            @for report in &undone.tree {
                @if let Some(git) = &report.git { (self::git(git, &[])) }
                (files(report))
            }
            @if let Some(data) = &undone.data { (rows("Rows", "come back", data)) }
        }
        (left_undone(undone))
    }
}

/// What a redo does not restore.
fn left_undone(undone: &UndoneRollback) -> Markup {
    let rollback = &undone.remembered;
    let work = rollback.cancelled("cancelled_dispatches").len();
    let agents = rollback.cancelled("failed_agents").len();
    let skipped = undone.tree.iter().flat_map(|report| &report.plan.skipped);
    let skipped: Vec<&(PathText, String)> = skipped.collect();
    if undone.effects.is_empty() && work == 0 && agents == 0 && skipped.is_empty() {
        return EMPTY;
    }
    html! {
        section.stays aria-label="What will not come back" {
            h2 { "What will not come back" }
            ul {
                @for one in undone.effects.iter().take(SHOWN) {
                    li { "The effect of " strong { (ShownText(&one.step)) } " stays undone: it is not made again." }
                }
                @if work > 0 { li { (counted(work, "dispatch")) " that the undo cancelled: cancelled they stay." } }
                @if agents > 0 { li { (counted(agents, "agent")) " that the undo failed: failed they stay." } }
                @for (path, why) in skipped.into_iter().take(SHOWN) { (left(path, why)) }
            }
        }
    }
}

fn record(plan: &RollbackPlan) -> Markup {
    let counts = plan.counts();
    let is_empty = counts.dispatches + counts.artifacts + counts.agents + counts.skips == 0;
    let said = |n: usize, noun: &str| (n > 0).then(|| counted(n, noun));
    let counted: Vec<String> = [
        said(counts.phases, "phase"),
        said(counts.dispatches, "dispatch"),
        said(counts.artifacts, "artifact"),
        said(counts.agents, "agent"),
        said(counts.skips, "skip"),
    ]
    .into_iter()
    .flatten()
    .collect();
    html! {
        section.layer aria-label="The record" {
            h2 { "The record" @if !counted.is_empty() { span.count { (counted.join(", ")) } } }
            p.route { (route(plan)) }
            @if plan.reopens() { p { "The run is completed: it becomes active again." } }
            @if is_empty && counts.phases == 0 { p.quiet { "Nothing in the record is marked." } }
            ul.items {
                @for one in plan.cancelled_dispatches.iter().take(SHOWN) { (dispatch("cancel", "bad", one)) }
                @for one in plan.marked_dispatches.iter().take(SHOWN) { (dispatch("undo", "warn", one)) }
                @for one in plan.artifacts.iter().take(SHOWN) { (artifact(one)) }
                @for one in plan.failed_agents.iter().take(SHOWN) { (agent("fail", "bad", one)) }
                @for one in plan.marked_agents.iter().take(SHOWN) { (agent("undo", "warn", one)) }
                @for one in plan.skips.iter().take(SHOWN) {
                    li { span.verb.warn { "clear" } span { "the skip of " (ShownText(&one.phase)) } }
                }
                @for one in plan.reinstated.iter().take(SHOWN) {
                    li { span.verb.warn { "lift" } span { "the undo " code { (one.short()) } " of one dispatch: its work counts again" } }
                }
            }
            // Each list is cut at the same number, so the longest one tells how many are missing.
            (more(counts.dispatches.max(counts.artifacts).max(counts.agents)))
        }
    }
}

/// The phases that the run moves between.
fn route(plan: &RollbackPlan) -> Markup {
    if plan.cut.is_of_works() {
        let alone = named_works(&plan.chosen);
        return html! { "The run stays at " strong { (ShownText(&plan.run.phase)) } "; only " code { (alone) } " is undone." };
    }
    let moves = plan.run.phase != plan.to_phase;
    html! {
        @if moves { "From " strong { (ShownText(&plan.run.phase)) } " back to " strong { (ShownText(&plan.to_phase)) } }
        @else { "The run stays at " strong { (ShownText(&plan.to_phase)) } }
        @if let Some(point) = &plan.point { ", to before " code { (ShownText(point)) } }
        "."
    }
}

fn dispatch(verb: &str, kind: &str, one: &Dispatch) -> Markup {
    let name = one.work.name.as_deref().or(one.work.agent_type.as_deref()).unwrap_or_default();
    html! {
        li {
            span.verb.(kind) { (verb) }
            span { "dispatch " a href={ "/dispatches/" (one.id) } { code { (one.id.short()) } } " " (ShownText(&ic_base::title(name))) }
            span.quiet { (one.status.as_str()) " in " (ShownText(&one.phase)) }
        }
    }
}

fn artifact(one: &Artifact) -> Markup {
    html! {
        li {
            span.verb.warn { "undo" }
            span { "artifact " code { (one.id.short()) } " " span.path { (PageLine(&of_path(&one.path))) } }
            span.quiet { "in " (ShownText(&one.phase)) }
        }
    }
}

fn agent(verb: &str, kind: &str, one: &Agent) -> Markup {
    html! {
        li {
            span.verb.(kind) { (verb) }
            span { "agent " code { (one.id.short()) } " " (ShownText(one.name.as_deref().unwrap_or_default())) }
            span.quiet { "in " (ShownText(&one.phase)) }
        }
    }
}

fn effects(effects: &Effects) -> Markup {
    let all = &effects.compensations;
    html! {
        section.layer aria-label="Outside effects" {
            h2 { "Outside effects" @if !all.is_empty() { span.count { (counted(all.len(), "effect")) } } }
            @if all.is_empty() { p.quiet { "None to be undone." } }
            @else { p { "Undone in this order:" } }
            ol.items {
                @for one in all.iter().take(SHOWN) { (effect(one)) }
            }
            (more(all.len()))
        }
    }
}

fn effect(one: &Compensation) -> Markup {
    html! {
        li {
            span.verb.bad { "run" }
            span { strong { (ShownText(&one.step)) } " " code { (ShownText(&one.action.said())) }
                @if let Some(about) = &one.description { " " span.quiet { (ShownText(about)) } } }
        }
    }
}

fn git(git: &GitRestore, commits: &[LeavingCommit]) -> Markup {
    let moves = git.moves();
    html! {
        section.layer aria-label="Git" {
            h2 { "Git" @if !commits.is_empty() { span.count { (counted(commits.len(), "commit")) } } }
            @if moves.is_empty() { p.quiet { "Unchanged." } }
            ul.items {
                @for (what, how) in &moves { li { span.verb.warn { "move" } span { strong { (ShownText(what)) } " " (ShownText(how)) } } }
            }
            @if !commits.is_empty() {
                p { (counted(commits.len(), "commit")) @if commits.len() == 1 { " leaves its branch" } @else { " leave their branches, newest first" } "; kept below " code { "refs/ic/rolled-back/" } ":" }
                ul.items { @for one in commits.iter().take(SHOWN) { (leaving(one)) } }
                (more(commits.len()))
            }
        }
    }
}

fn leaving(one: &LeavingCommit) -> Markup {
    let commit = &one.commit;
    html! {
        li {
            code { (commit.sha.get(..8).unwrap_or(&commit.sha)) }
            span {
                @if commit.written_at.is_some() {
                    (ShownText(&ic_base::title(&commit.subject)))
                    " " span.quiet { (ShownText(&ic_base::title(&commit.author))) }
                    @if commit.is_pushed { " " span.tag.bad { "a remote has it" } }
                }
                @match (&one.dispatch, &one.other_run) {
                    (_, Some(run)) => { " " span.tag.bad { "recorded by the run " (run.short()) } }
                    (None, None) => { " " span.quiet { "recorded for no dispatch" } }
                    (Some(_), None) => {}
                }
            }
        }
    }
}

fn own_commits(commits: &[OwnCommit]) -> Markup {
    html! {
        section.layer aria-label="Commits" {
            h2 { "Commits" span.count { (counted(commits.len(), "commit")) } }
            p { "They stay on their branches; only the tree is undone." }
            ul.items {
                @for one in commits.iter().take(SHOWN) {
                    li {
                        code { (one.commit.sha.get(..8).unwrap_or(&one.commit.sha)) }
                        span { (ShownText(&ic_base::title(&one.commit.subject))) " " span.tag { (one.state().as_str()) }
                            @if let Some(revert) = one.revert() { br; "to revert it by a commit instead: " code.command { (ShownText(&revert)) } } }
                    }
                }
            }
            (more(commits.len()))
        }
    }
}

/// The changes of files by a restore.
fn files(report: &RestoreReport) -> Markup {
    if !report.strategy.has_files() {
        return EMPTY;
    }
    let steps = &report.plan.steps;
    html! {
        section.layer aria-label="Files" {
            h2 { "Files" @if !steps.is_empty() { span.count { (counted(steps.len(), "path")) } } }
            @if steps.is_empty() { p.quiet { (nothing_to_restore(report)) } }
            @else if report.is_without { p { "Only what this work did; the rest stays." } }
            @else { p { "As the checkpoint " code { (report.target.id.short()) } " has them. What is there now is saved in a checkpoint first." } }
            ul.items.files {
                @for step in steps.iter().take(SHOWN) {
                    li {
                        span.verb.(colour(step.action)) { (step.action.as_str()) }
                        span.path { (PageLine(&path(&step.path.0))) }
                        @if step.uncaptured { span.quiet { "in no checkpoint yet" } }
                    }
                }
                @for conflict in report.conflicts.iter().take(SHOWN) {
                    li.conflict {
                        span.verb.bad { "conflict" }
                        span.path { (PageLine(&path(&conflict.path.0))) }
                        span.quiet { (ShownText(&conflict.reason)) }
                    }
                }
            }
            (more(steps.len()))
            @for warning in report.warnings.iter().take(SHOWN) { p.warning { (ShownText(&warning.message)) } }
        }
    }
}

/// The reason why no file changes.
fn nothing_to_restore(report: &RestoreReport) -> &'static str {
    let is_left_alone = !report.plan.skipped.is_empty() || !report.not_compared.is_empty();
    match report.is_without {
        true if !report.plan.skipped.is_empty() => "None changes: what is named below is not changed.",
        true if !report.conflicts.is_empty() => "None can be told from what others did.",
        true => "No file changes.",
        false if is_left_alone => "None changes, but for what is named below.",
        false => "Already as they were.",
    }
}

fn colour(action: RestoreAction) -> &'static str {
    match action {
        RestoreAction::Delete | RestoreAction::Replace => "bad",
        RestoreAction::Create => "good",
        RestoreAction::Modify | RestoreAction::Chmod | RestoreAction::Attributes | RestoreAction::Link => "warn",
    }
}

fn rows(title: &str, what: &str, data: &ic_undo::Data) -> Markup {
    let all: u64 = data.rows.iter().map(|(_, rows)| rows).sum();
    html! {
        section.layer aria-label=(title) {
            h2 { (title) @if all > 0 { span.count { (all) } } }
            p.quiet { "In " span.path { (PageLine(&of_path(&data.database))) } }
            @if all == 0 { p.quiet { "None." } }
            ul.items {
                @for (table, rows) in data.rows.iter().filter(|(_, rows)| *rows > 0).take(SHOWN) {
                    li { span.verb.warn { (rows) } span { (ShownText(table)) " " (what) } }
                }
            }
        }
    }
}

/// What an undo does not restore, with the reason for each.
fn what_stays(whole: &LayeredRollback) -> Markup {
    let parts = &whole.parts;
    let report = parts.tree.as_ref();
    let skipped = report.map_or(&[][..], |report| &report.plan.skipped);
    let lost = report.map_or(&[][..], |report| &report.plan.not_kept);
    let unknown = report.map_or(&[][..], |report| &report.not_compared);
    let work_trees = report.map_or(&[][..], |report| &report.work_trees);
    let effects = parts.effects.as_ref().map_or(&[][..], |effects| &effects.left);
    let pivot = parts.effects.as_ref().and_then(|effects| effects.pivot.as_deref());
    if skipped.is_empty()
        && lost.is_empty()
        && unknown.is_empty()
        && work_trees.is_empty()
        && effects.is_empty()
        && whole.rows_stay.is_none()
        && whole.work_stays.is_empty()
    {
        return EMPTY;
    }
    html! {
        section.stays aria-label="What will not come back" {
            h2 { "What will not come back" }
            ul {
                @for one in effects.iter().take(SHOWN) {
                    li { "The effect of " strong { (ShownText(&one.step)) } " stays"
                        @if let Some(pivot) = pivot { ": " (ShownText(pivot)) " cannot be undone" } "." }
                }
                @for (path, why) in lost.iter().take(SHOWN) { (left(path, why)) }
                @for (path, why) in skipped.iter().take(SHOWN) { (left(path, why)) }
                @for (path, why) in unknown.iter().take(SHOWN) { (left(path, why)) }
                @for (path, why) in work_trees.iter().take(SHOWN) { (left(path, why)) }
                @if let Some(rows) = &whole.rows_stay { li { (ShownText(&rows.message)) } }
                @for work in whole.work_stays.iter().take(SHOWN) { li { (ShownText(&work.message)) } }
            }
            (more(skipped.len().max(lost.len()).max(unknown.len()).max(work_trees.len())))
        }
    }
}

fn left(at: &PathText, why: &str) -> Markup {
    html! { li { span.path { (PageLine(&path(&at.0))) } ": " (ShownText(why)) } }
}

fn more(count: usize) -> Markup {
    match count.saturating_sub(SHOWN) {
        0 => EMPTY,
        rest => {
            html! { p.cut { "and " (rest) " more, which the undo includes; all of them: " code { "ic undo --dry-run --json" } } }
        }
    }
}
