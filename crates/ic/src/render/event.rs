//! Events and cursors.

use ic_events::cursor::Cursor;
use ic_events::{Event, Report, hex};

use super::{Cell, Table, counted, plain, style, styled};

/// One event on one line.
pub(crate) fn line(event: &Event, is_rolled_back: bool) -> String {
    let time = styled(style::DIM, &event.created_at.to_string());
    let subject = match (&event.subject_id, &event.run_id) {
        (Some(id), _) => short(id),
        (None, Some(run)) => run.short().to_owned(),
        (None, None) => String::new(),
    };
    let change = match (&event.from, &event.to) {
        (Some(from), Some(to)) => format!("  {} → {}", plain(from), plain(to)),
        (None, Some(to)) => format!("  {}", plain(to)),
        _ => String::new(),
    };
    let reason = event.reason.as_deref().map(|r| format!("  {}", plain(r))).unwrap_or_default();
    let mark = if is_rolled_back { styled(style::WARN, "  (rolled back)") } else { String::new() };
    let kind = styled(style_of(&event.event_type), &format!("{:<23}", event.event_type));
    format!("{:>6}  {time}  {kind}  {subject:<8}{change}{mark}{reason}\n", event.seq)
}

fn style_of(event_type: &str) -> anstyle::Style {
    match event_type {
        "advance" | "dispatch_completed" | "agent_completed" | "compensation_done" => style::GOOD,
        "rollback"
        | "dispatch_failed"
        | "dispatch_timed_out"
        | "dispatch_cancelled"
        | "agent_failed"
        | "run_cancelled"
        | "compensation_failed" => style::BAD,
        "block" | "pause" | "override" | "skip" | "redacted" | "compensation_skipped" => style::WARN,
        _ => style::NONE,
    }
}

fn short(id: &str) -> String {
    let start = id.char_indices().rev().nth(7).map_or(0, |(i, _)| i);
    plain(&id[start..])
}

/// Cursors, one a line.
pub(crate) fn cursors(cursors: &[Cursor]) -> String {
    let mut table = Table::new(&["CURSOR", "FOLLOWS", "AFTER EVENT", "MOVED"]);
    for c in cursors {
        table.row(vec![
            Cell::new(style::STRONG, &c.name),
            c.run_id.as_ref().map_or("all runs", |id| id.short()).into(),
            c.seq.to_string().as_str().into(),
            Cell::new(style::DIM, &c.updated_at.to_string()),
        ]);
    }
    table.render("No cursors.")
}

/// What verification found.
pub(crate) fn verified(report: &Report) -> String {
    let events = usize::try_from(report.events).unwrap_or(0);
    match report.first_bad {
        None => format!(
            "{} {}; head {}:{}\n",
            styled(style::GOOD, "verified"),
            counted(events, "event"),
            report.head.0,
            hex(&report.head.1)
        ),
        Some(_) => format!("{} after {}\n", styled(style::BAD, "broken"), counted(events, "good event")),
    }
}
