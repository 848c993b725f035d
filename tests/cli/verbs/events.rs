//! `ic events ...`

use crate::support::{Page, Project, chain};

fn with_events(project: &Project) {
    chain(project, "a,b,c", "b");
}

fn with_cursor(project: &Project) {
    chain(project, "a,b,c", "b");
    project.ok("events tail --cursor notifier");
    project.ok("events tail @ --cursor notifier --limit 1");
}

#[test]
fn tail() {
    Page::of("ic events tail", with_events)
        .does("events tail @")
        .does("events tail --all --since 1 --limit 1")
        .refuses("events tail --since 1 --cursor notifier", 3, "usage")
        .ends();
}

#[test]
fn cursor_list() {
    Page::of("ic events cursor list", with_cursor)
        .does("events cursor list")
        .refuses("events cursor list notifier", 3, "usage")
        .ends();
}

#[test]
fn cursor_commit() {
    Page::of("ic events cursor commit", with_cursor)
        .does("events cursor commit notifier 2")
        .does("events cursor commit notifier 1 --back")
        .refuses("events cursor commit notifier 0", 3, "invalid_value")
        .refuses("events cursor commit notifier 99", 3, "invalid_value")
        .refuses("events cursor commit unknown 1", 3, "cursor_not_found")
        .ends();
}

#[test]
fn cursor_reset() {
    Page::of("ic events cursor reset", with_cursor)
        .does("events cursor reset notifier")
        .refuses("events cursor reset unknown", 3, "cursor_not_found")
        .ends();
}

#[test]
fn verify() {
    Page::of("ic events verify", with_events)
        .does("events verify")
        .refuses("events verify --expect-head 1:abc", 3, "invalid_value")
        .ends();
}

#[test]
fn redact() {
    Page::of("ic events redact", |project| {
        chain(project, "a,b,c", "a");
        project.ok("run skip @ b --reason 'the token is s3cr3t'");
    })
    .does("events redact 2 --reason 'a token was pasted'")
    .refuses("events redact 2 --reason again", 1, "nothing_to_redact")
    .refuses("events redact 99 --reason missing", 3, "event_not_found")
    .ends();
}
