//! The page of a rollback: its outcome, its steps, and its redo.

use axum::http::StatusCode;
use ic_base::{Code, Diagnosis, Result, RollbackId};
use ic_effects::compensation::CompensationState;
use ic_kernel::journal::steps::{self, Course, RollbackStep, RollbackStepState, StepKind};
use ic_kernel::journal::table::{self, RollbackRecord, RollbackStatus};
use ic_phase::Run;
use ic_undo::UndoneRollback;
use ic_worktree::RestoreWatch;
use maud::{Markup, html};

use crate::acts::redo_of;
use crate::layout::{PageLayout, notice, said, token, trail};
use crate::page_request::Ask;
use crate::plan;
use crate::rollback_name::{state_of, went_back};
use crate::runs::address;
use crate::text::{EMPTY, ShownText, counted, grouped, when};

/// A rollback with its steps and its run.
struct Found {
    rollback: RollbackRecord,
    steps: Vec<RollbackStep>,
    run: Run,
}

fn find(ask: &Ask<'_>, reference: &str) -> Result<Found> {
    let (rollback, steps) = ic_undo::named(ask.kernel, reference)?;
    let run = ask.read(|snapshot| ic_phase::run::get(snapshot, &rollback.run_id))?;
    Ok(Found { rollback, steps, run })
}

fn crumbs(run: &Run) -> Markup {
    trail(&[("Runs", "/runs".to_owned()), (&ic_base::title(&run.goal), address(run))])
}

/// The page of a rollback.
pub(crate) fn page(ask: &Ask<'_>) -> Result<PageLayout> {
    let found = find(ask, ask.id())?;
    Ok(of(ask, &found, &EMPTY))
}

fn of(ask: &Ask<'_>, found: &Found, before: &Markup) -> PageLayout {
    let Found { rollback, run, .. } = found;
    let is_at_work = ic_undo::is_at_work(ask.kernel, rollback);
    let body = html! {
        (crumbs(run))
        div.heading {
            h1 { (went_back(rollback)) }
            (badge(rollback, is_at_work))
        }
        (before)
        p.facts {
            code { (rollback.id.short()) }
            span { (when(ask.now, rollback.created_at)) }
            @if !rollback.is_of_works() { span { (ShownText(&rollback.from_phase)) " → " (ShownText(&rollback.to_phase)) } }
            span { "epoch " (grouped(rollback.epoch)) }
        }
        @if let Some(reason) = &rollback.reason { blockquote { (ShownText(reason)) } }
        (outcome(ask, found, is_at_work))
        (progress(found))
    };
    let page = PageLayout::new("Undo", body).following(run.id.as_str());
    // Reloaded every second while a process works on it, so that a person sees its progress, with or without a script.
    PageLayout { asks_again: is_at_work, ..page }
}

fn badge(rollback: &RollbackRecord, is_at_work: bool) -> Markup {
    let (kind, word) = state_of(rollback, is_at_work);
    html! { span class={ "badge " (kind) } { (word) } }
}

/// The outcome of a rollback, and what can be done next.
fn outcome(ask: &Ask<'_>, found: &Found, is_at_work: bool) -> Markup {
    let Found { rollback, run, .. } = found;
    match rollback.status {
        // This comes before the status: one that was interrupted and one that is at work have the same word on record.
        _ if is_at_work => html! { p.lead aria-live="polite" { "It is being done." } },
        RollbackStatus::Done => html! {
            p.lead { "It is done. What it replaced or removed was saved first." }
            p.buttons {
                a.button.primary href={ "/rollbacks/" (rollback.id) "/redo" } data-redo { "Redo" }
                a.button href=(address(run)) { "To the run" }
            }
        },
        RollbackStatus::InProgress | RollbackStatus::Stopped => unfinished(ask, found),
        RollbackStatus::Undone => html! {
            p.lead { "It was undone itself: what it undid is there again." }
            p.buttons { a.button href=(address(run)) { "To the run" } }
        },
        RollbackStatus::Aborted => html! {
            p.lead { "It was aborted: the run is where it was." }
            p.buttons { a.button href=(address(run)) { "To the run" } }
        },
    }
}

/// A rollback that is not finished and that no process works on: the run stays closed until it is resumed or aborted.
fn unfinished(ask: &Ask<'_>, found: &Found) -> Markup {
    let Found { rollback, steps, .. } = found;
    let next = steps::next_command(&rollback.id, steps);
    // Where the command has other flags, a person has to look first, so there is no button.
    let is_plain = next == format!("ic rollback resume {} --yes", rollback.id.short());
    let doing = match steps::course(steps) {
        Course::Forward => "It is not finished, and the run stays closed.",
        Course::Undo => "Its redo is not finished, and the run stays closed.",
        Course::Abort => "It is being aborted, and that is not finished. The run stays closed.",
        Course::Reapply => "Its redo was aborted, and that is not finished. The run stays closed.",
    };
    notice(
        "warn",
        "Unfinished",
        &html! {
            p { (doing) }
            @for step in steps.iter().filter(|step| step.state == RollbackStepState::Failed) {
                @if let Some(error) = &step.error { p.message { (layer(step)) ": " (ShownText(error)) } }
            }
            @if is_plain && !ask.app.read_only {
                form method="post" action={ "/rollbacks/" (rollback.id) "/resume" } {
                    (token(ask.app))
                    button.primary type="submit" { "Resume" }
                }
            }
            p { "To resume it on the command line: " code.command { (ShownText(&next)) } }
            p.quiet { "Other ways: " code { "ic rollback show " (rollback.id.short()) } }
        },
    )
}

/// The steps, with the state of each.
fn progress(found: &Found) -> Markup {
    let Found { rollback, steps, .. } = found;
    if steps.is_empty() {
        return html! { p.quiet { "Only the record changed: one transaction." } };
    }
    let course = steps::course(steps);
    html! {
        section aria-labelledby="steps" {
            h2 #steps { "Steps" }
            ol.steps {
                @for step in steps {
                    @let shown = step.shown(course, rollback.status.stands());
                    li class=(shown) {
                        span.name { (layer(step)) }
                        span.state { (state(shown)) }
                        span.quiet { (made(step)) }
                    }
                }
            }
        }
    }
}

fn layer(step: &RollbackStep) -> &'static str {
    match step.kind {
        steps::StepKind::Effects => "Outside effects",
        steps::StepKind::Tree => "Files and git",
        steps::StepKind::Data => "Rows",
        steps::StepKind::Settle => "The record",
    }
}

fn state(shown: &'static str) -> &'static str {
    match shown {
        "pending" => "waits",
        "as_before" => "as before",
        other => other,
    }
}

fn made(step: &RollbackStep) -> String {
    if step.state == RollbackStepState::Pending {
        return String::new();
    }
    let detail = &step.detail;
    let undone = detail.undone(CompensationState::Done.as_str());
    match step.kind {
        StepKind::Effects if undone + detail.skipped.len() > 0 => {
            let skipped = detail.skipped.len();
            let skipped = if skipped == 0 { String::new() } else { format!(", {skipped} left") };
            format!("{} undone{skipped}", counted(undone, "effect"))
        }
        StepKind::Tree if detail.changes > 0 => format!("{} restored", counted(detail.changes, "path")),
        StepKind::Data if detail.rows.as_ref().is_some_and(|rows| !rows.is_empty()) => {
            format!("{} deleted", counted(detail.deleted(), "row"))
        }
        _ => String::new(),
    }
}

/// The page of a redo before it is done; `?without-effects=1`: undone effects stay undone.
pub(crate) fn redo(ask: &Ask<'_>) -> Result<PageLayout> {
    let found = find(ask, ask.id())?;
    Ok(redo_shown(ask, &found, ask.params.has("without-effects"), &EMPTY))
}

/// The page after a redo that was refused, with the present plan.
pub(crate) fn redo_refused(
    ask: &Ask<'_>,
    rollback: &RollbackId,
    without_effects: bool,
    error: &Diagnosis,
) -> Result<PageLayout> {
    let found = find(ask, rollback.as_str())?;
    // A redo that stopped half-way has changed something, and no new plan can be made until it is finished.
    if let Some(page) = left_unfinished(ask, &found.run, error)? {
        return Ok(page);
    }
    let why = if error.code() == Code::PlanChanged {
        notice(
            "warn",
            "The plan has changed",
            &html! {
                p { "Something happened since you looked, so nothing was done. This is what a redo would do now: look at it, and confirm again." }
            },
        )
    } else {
        notice("bad", "Nothing was redone", &html! { (said(error)) })
    };
    Ok(redo_shown(ask, &found, without_effects, &why).with(StatusCode::CONFLICT))
}

fn redo_shown(ask: &Ask<'_>, found: &Found, without_effects: bool, before: &Markup) -> PageLayout {
    let Found { rollback, run, .. } = found;
    // The redo is planned anew at each view, so the hash in the form is that of the plan which the person sees.
    let settings = ask.app.project.settings(ask.kernel, &run.project_dir);
    let request = redo_of(&rollback.id, without_effects, None);
    let preview =
        settings.and_then(|settings| ic_undo::preview_undo(ask.kernel, &settings, &request, &RestoreWatch::default()));
    let refusal = |undone: &UndoneRollback| undone.refusals.first().map(|refusal| crate::fail::status(&refusal.error));
    let status = match &preview {
        Ok(undone) => refusal(undone).unwrap_or(StatusCode::OK),
        Err(error) => crate::fail::status(error),
    };
    let body = html! {
        (crumbs(run))
        h1 { "Redo" }
        p.facts { span { (went_back(rollback)) } code { (rollback.id.short()) } (when(ask.now, rollback.created_at)) }
        (before)
        @match &preview {
            Ok(undone) => { (redo_plan(ask, run, undone, without_effects)) }
            Err(error) => { (redo_in_the_way(rollback, error)) }
        }
        p.quiet { "The same on the command line: " code.command { (redo_command(rollback, without_effects)) } }
    };
    PageLayout::new("Redo", body).with(status)
}

fn redo_command(rollback: &RollbackRecord, without_effects: bool) -> String {
    let effects = if without_effects { " --without-effects" } else { "" };
    format!("ic redo {}{effects}", rollback.id.short())
}

fn redo_plan(ask: &Ask<'_>, run: &Run, undone: &UndoneRollback, without_effects: bool) -> Markup {
    let (id, hash) = (&undone.remembered.id, undone.plan_hash.as_deref().unwrap_or_default());
    html! {
        p.lead { "This is what would come back. Nothing has been changed yet." }
        (plan::redo(undone))
        @if let Some(refusal) = undone.refusals.first() {
            (redo_in_the_way(&undone.remembered, &refusal.error))
        } @else if ask.app.read_only {
            p.quiet { "This page is read-only. To do it: " code.command { (redo_command(&undone.remembered, without_effects)) " --expect-plan " (hash) " --yes" } }
        } @else {
            form.confirm method="post" action={ "/rollbacks/" (id) "/redo" } {
                (token(ask.app))
                input type="hidden" name="plan" value=(hash);
                @if without_effects { input type="hidden" name="without-effects" value="1"; }
                div.buttons {
                    button.primary type="submit" { "Redo" }
                    a.button href=(address(run)) { "Cancel" }
                }
            }
        }
    }
}

fn redo_in_the_way(rollback: &RollbackRecord, error: &Diagnosis) -> Markup {
    notice(
        "bad",
        "It cannot be redone now",
        &html! {
            (said(error))
            @if error.code() == Code::EffectsUndone {
                p { a.button href={ "/rollbacks/" (rollback.id) "/redo?without-effects=1" } { "Redo the rest; effects stay undone" } " " code { "--without-effects" } }
            }
        },
    )
}

/// The page of the rollback after a resumption that failed.
pub(crate) fn resume_refused(ask: &Ask<'_>, rollback: &RollbackId, error: &Diagnosis) -> Result<PageLayout> {
    Ok(stopped(ask, &find(ask, rollback.as_str())?, error))
}

/// After an act that ended with an error: the page of the run's unfinished rollback. `None` if there is none, so that nothing was changed.
pub(crate) fn left_unfinished(ask: &Ask<'_>, run: &Run, error: &Diagnosis) -> Result<Option<PageLayout>> {
    let open = ask.read(|snapshot| table::unfinished_of(snapshot, &run.id))?;
    open.map(|open| Ok(stopped(ask, &find(ask, open.id.as_str())?, error))).transpose()
}

fn stopped(ask: &Ask<'_>, found: &Found, error: &Diagnosis) -> PageLayout {
    let why = notice("bad", "It is not finished", &html! { (said(error)) });
    of(ask, found, &why).with(StatusCode::CONFLICT)
}

/// The page of an act that is running: of its rollback, or of the unfinished one of its run.
pub(crate) fn under_way(ask: &Ask<'_>, run: Option<&str>, rollback: Option<&RollbackId>) -> Result<PageLayout> {
    let of_run = match run {
        Some(run) => ask.read(|snapshot| {
            let run = ask.kernel.run(snapshot, run)?;
            table::unfinished_of(snapshot, &run.id)
        })?,
        None => None,
    };
    // The id of a new undo is not known before it ends. Until then it is the one that is unfinished in its run.
    let id = rollback.cloned().or(of_run.map(|rollback| rollback.id));
    let page = match &id {
        Some(id) => of(ask, &find(ask, id.as_str())?, &EMPTY),
        // Before the rollback is recorded, the tree is captured.
        None => PageLayout::new("Undo", html! { h1 { "Undo" } p.lead aria-live="polite" { "It captures the tree." } }),
    };
    Ok(PageLayout { asks_again: true, ..page })
}

/// The page for a second act while one is running.
pub(crate) fn busy(error: &Diagnosis, running: &str) -> PageLayout {
    let body = html! {
        h1 { "One thing at a time" }
        div.notice.warn { (said(error)) }
        p { a.button href=(running) { "Look at it" } }
    };
    PageLayout::new("Busy", body).with(StatusCode::CONFLICT)
}
