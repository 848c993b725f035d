//! Browsers that listen are told of every event, once, in order, also after a lost connection.

use std::io::{BufRead, BufReader, Write};

use ic_testkit::TestWorld;
use serde_json::Value;

use crate::served::{Served, work, world};

/// Listens from after `last`, until `wanted` events came: their numbers.
fn listen(page: &Served, last: &str, wanted: usize) -> Vec<i64> {
    let mut stream = page.connect();
    write!(
        stream,
        "GET /live HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\nLast-Event-ID: {last}\r\n\r\n",
        page.host(),
        page.cookie
    )
    .expect("send");
    let mut seen = Vec::new();
    let mut is_event_stream = false;
    for line in BufReader::new(stream).lines() {
        let line = line.expect("a line");
        is_event_stream |= line.to_lowercase().starts_with("content-type: text/event-stream");
        if let Some(data) = line.strip_prefix("data: ") {
            let data: Value = serde_json::from_str(data).expect("JSON");
            seen.push(data["seq"].as_i64().expect("a number"));
            if seen.len() >= wanted {
                break;
            }
        }
    }
    assert!(is_event_stream);
    seen
}

fn head(world: &TestWorld) -> i64 {
    world.cli.json(["events", "verify", "--json"])["event_count"].as_i64().expect("a number")
}

#[test]
fn every_event_comes_once_also_after_a_break() {
    let world = world();
    let page = Served::of_world(&world);
    let before = head(&world);
    let wanted = usize::try_from(before).expect("a number");
    assert_eq!(listen(&page, "0", wanted), (1..=before).collect::<Vec<_>>());
    // Others write while a browser listens, breaks off, and comes back.
    let seen = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 0..12 {
                work(&world, &format!("work {n}"), || {});
            }
        });
        let mut seen = Vec::new();
        let mut last = before;
        for _ in 0..6 {
            let some = listen(&page, &last.to_string(), 5);
            last = *some.last().expect("an event");
            seen.extend(some);
        }
        writer.join().expect("its end");
        seen
    });
    let first = before + 1;
    assert_eq!(seen, (first..first + i64::try_from(seen.len()).expect("a number")).collect::<Vec<_>>());
    let now = head(&world);
    let rest = usize::try_from(now - seen.last().expect("an event")).expect("a number");
    let last = *seen.last().expect("an event");
    assert_eq!(listen(&page, &last.to_string(), rest), (last + 1..=now).collect::<Vec<_>>());
}

#[test]
fn more_listeners_than_there_is_room_for_are_told_so() {
    let world = world();
    let page = Served::of_world(&world);
    let request = format!("GET /live HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\n\r\n", page.host(), page.cookie);
    let mut listeners = Vec::new();
    for _ in 0..32 {
        let mut stream = page.connect();
        stream.write_all(request.as_bytes()).expect("send");
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).expect("an answer");
        assert!(line.contains(" 200 "), "{line}");
        listeners.push(stream);
    }
    let full = page.ask(&format!("GET /live HTTP/1.1\r\nCookie: {}\r\n", page.cookie), "");
    assert_eq!(full.status, 503, "{}", full.head);
    assert_eq!(page.get("/").status, 200, "pages are shown all the time");
    drop(listeners);
}

#[test]
fn a_page_knows_of_no_event_that_it_does_not_show() {
    let world = world();
    let page = Served::of_world(&world);
    for n in 0..12 {
        let name = format!("during {n}");
        let shown = std::thread::scope(|scope| {
            let writer = scope.spawn(|| world.ic(&["dispatch", "create", &world.run, "--name", &name]));
            let mut last = page.page(&format!("/runs/{}", world.run));
            while !writer.is_finished() {
                last = page.page(&format!("/runs/{}", world.run));
            }
            writer.join().expect("its end");
            last
        });
        let text = shown.text();
        let seq = text.split("data-seq=\"").nth(1).and_then(|rest| rest.split('"').next());
        let seq: i64 = seq.and_then(|seq| seq.parse().ok()).expect("its event");
        let now = head(&world);
        assert!(seq < now || shown.main().contains(&name), "it knows of event {seq}, and does not show it");
        // What it does not show is told to who listens from there.
        let rest = usize::try_from(now - seq).expect("a number");
        if rest > 0 {
            assert_eq!(listen(&page, &seq.to_string(), rest), (seq + 1..=now).collect::<Vec<_>>());
        }
    }
}
