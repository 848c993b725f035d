//! The title and the state of a rollback.

use ic_kernel::journal::table::{RollbackRecord, RollbackStatus};
use maud::{Markup, html};

use crate::text::ShownText;

/// What a rollback did, in one line.
pub(crate) fn went_back(rollback: &RollbackRecord) -> Markup {
    match (rollback.point(), rollback.alone()) {
        (_, Some(works)) => html! { "Undid " (works) @if rollback.chosen().len() == 1 { " alone" } },
        (Some(point), _) => html! { "Went back to before " (ShownText(point)) },
        (None, None) if rollback.include_target => {
            html! { "Went back to the start of " (ShownText(&rollback.to_phase)) }
        }
        (None, None) => html! { "Went back to " (ShownText(&rollback.to_phase)) },
    }
}

/// The state of a rollback: the kind of its badge, and the word in it.
pub(crate) fn state_of(rollback: &RollbackRecord, is_at_work: bool) -> (&'static str, &'static str) {
    match rollback.status {
        RollbackStatus::Done => ("good", "done"),
        RollbackStatus::InProgress | RollbackStatus::Stopped if is_at_work => ("live", "under way"),
        RollbackStatus::InProgress => ("warn", "interrupted"),
        RollbackStatus::Stopped => ("bad", "stopped"),
        RollbackStatus::Aborted => ("quiet", "aborted"),
        RollbackStatus::Undone => ("quiet", "redone"),
    }
}
