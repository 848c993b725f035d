//! The page with the plan of an undo, before it is done.

use axum::http::StatusCode;
use ic_base::{Code, Diagnosis, Result};
use ic_dispatch::dispatch;
use ic_phase::Run;
use ic_undo::compensation::Unwatched;
use ic_undo::{LayeredRollback, Refusal};
use ic_worktree::RestoreWatch;
use maud::{Markup, html};

use crate::flags::{UndoGoal, WantedUndo, decisions, short};
use crate::layout::{PageLayout, notice, said, token, trail};
use crate::page_request::Ask;
use crate::plan;
use crate::rollback;
use crate::runs::address;
use crate::text::ShownText;

/// The page of the plan that the address asks for.
pub(crate) fn page(ask: &Ask<'_>) -> Result<PageLayout> {
    let run = ask.run()?;
    let wanted = WantedUndo::of(run.id.as_str(), ask.params)?;
    shown(ask, &run, &wanted, None)
}

/// The page after an undo that was refused: the reason, and the present plan.
pub(crate) fn refused(ask: &Ask<'_>, wanted: &WantedUndo, error: &Diagnosis) -> Result<PageLayout> {
    let run = ask.read(|snapshot| ask.kernel.run(snapshot, &wanted.run))?;
    // An undo that stopped half-way has closed the run: a new plan would be refused, so the open rollback is shown.
    if let Some(page) = rollback::left_unfinished(ask, &run, error)? {
        return Ok(page);
    }
    Ok(shown(ask, &run, wanted, Some(error))?.with(StatusCode::CONFLICT))
}

fn shown(ask: &Ask<'_>, run: &Run, wanted: &WantedUndo, refused: Option<&Diagnosis>) -> Result<PageLayout> {
    let settings = ask.app.project.settings(ask.kernel, &run.project_dir)?;
    let planned =
        ic_undo::roll_back(ask.kernel, &settings, &wanted.request(None), &mut Unwatched, &RestoreWatch::default());
    let title = match &wanted.goal {
        UndoGoal::To(point) => format!("Undo from {point}"),
        UndoGoal::Only(dispatch) => format!("Undo only the dispatch {}", short(dispatch)),
    };
    let body = html! {
        (trail(&[("Runs", "/runs".to_owned()), (&ic_base::title(&run.goal), address(run))]))
        h1 { (ShownText(&title)) }
        @if let Some(name) = called(ask, wanted) { p.lead { (ShownText(&name)) } }
        @if let Some(error) = refused { (changed(error)) }
        @match &planned {
            Ok(whole) => { (whole_plan(ask, run, wanted, whole)) }
            Err(error) => { (notice("bad", "It cannot be undone now", &html! { (said(error)) })) }
        }
        p.quiet { "The same on the command line: " code.command { (ShownText(&wanted.command())) } }
    };
    // A plan with refusals is still a plan: the person can decide about them here.
    let status = planned.as_ref().err().map_or(StatusCode::OK, crate::fail::status);
    Ok(PageLayout::new(title, body).with(status))
}

/// The name of the dispatch that is undone, or before which the run goes back.
fn called(ask: &Ask<'_>, wanted: &WantedUndo) -> Option<String> {
    let id = match &wanted.goal {
        UndoGoal::Only(dispatch) => dispatch.as_str(),
        UndoGoal::To(point) => ["dispatch:", "prompt:"].iter().find_map(|kind| point.strip_prefix(kind))?,
    };
    // The name only helps: if it cannot be read, the plan itself says why.
    ask.read(|snapshot| dispatch::resolve(snapshot, id)).ok().map(|work| crate::dispatch::name(&work))
}

/// The notice above a new plan, after the old one was refused.
fn changed(error: &Diagnosis) -> Markup {
    if error.code() == Code::PlanChanged {
        return notice(
            "warn",
            "The plan has changed",
            &html! {
                p { "Something happened since you looked, so nothing was done. This is the new plan: look at it, and confirm again." }
            },
        );
    }
    notice("bad", "Nothing was undone", &html! { (said(error)) })
}

fn whole_plan(ask: &Ask<'_>, run: &Run, wanted: &WantedUndo, whole: &LayeredRollback) -> Markup {
    html! {
        p.lead { "This is what would be done. Nothing has been changed yet." }
        @let decided = wanted.decided();
        @if !decided.is_empty() {
            ul.decided {
                @for (name, what) in &decided {
                    li { "Decided: " (what) " " a href=(wanted.address_without(name)) { "Decide otherwise" } }
                }
            }
        }
        @for refusal in &whole.refusals { (self::refusal(wanted, refusal)) }
        (plan::layers(whole))
        @if whole.refusals.is_empty() { (confirm(ask, run, wanted, &whole.rollback.plan_hash)) }
        @else { p.quiet { "The plan can be carried out once what stands in the way is decided." } }
    }
}

/// A refusal, and what each decision about it would do.
fn refusal(wanted: &WantedUndo, refusal: &Refusal) -> Markup {
    let flags = refusal.flag.map(decisions).unwrap_or_default();
    notice(
        "bad",
        "In the way",
        &html! {
            (said(&refusal.error))
            @if !flags.is_empty() {
                ul.choices {
                    @for (flag, name, what) in flags {
                        li { a.button href=(wanted.address_with(name)) { (what) } " " code { (flag) } }
                    }
                }
            } @else { p { "No decision changes that." } }
        },
    )
}

fn confirm(ask: &Ask<'_>, run: &Run, wanted: &WantedUndo, hash: &str) -> Markup {
    if ask.app.read_only {
        return html! { p.quiet { "This page is read-only. To do it: " code.command { (ShownText(&wanted.command())) " --expect-plan " (hash) " --yes" } } };
    }
    // The form has the request and the hash of its plan, and not the plan: the undo plans again, and does what this hash
    // names or nothing.
    html! {
        form.confirm method="post" action={ (address(run)) "/undo" } {
            (token(ask.app))
            (wanted.hidden())
            input type="hidden" name="plan" value=(hash);
            label for="reason" { "Why " span.quiet { "(kept with the undo)" } }
            input #reason type="text" name="reason" maxlength="400" autocomplete="off" value=[wanted.reason.as_deref()];
            div.buttons {
                button.primary.danger type="submit" { "Undo" }
                a.button href=(address(run)) { "Cancel" }
            }
            p.quiet { "Exactly this plan: " code.hash { (hash) } }
        }
    }
}
