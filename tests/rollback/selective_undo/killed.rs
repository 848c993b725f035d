//! Killed before each statement, the undo of one dispatch is resumed or aborted, and ends as if undisturbed.

use std::os::unix::process::ExitStatusExt;

use ic_testkit::{ProjectState, TestWorld, long, tell};
use serde_json::Value;

use super::{SEVEN, did, did_outside, with_base};
use crate::project::WHOLE;

/// Two dispatches in one file, the first with an effect.
fn story() -> (TestWorld, String) {
    let world = with_base("b.txt", "b\n");
    let first = did_outside(&world, "first", || {
        world.write("a.txt", &SEVEN.replace("two", "TWO"));
        world.write("b.txt", "B\n");
    });
    did(&world, "second", || world.write("a.txt", &SEVEN.replace("two", "TWO").replace("six", "SIX")));
    (world, first)
}

pub(super) fn rollbacks(world: &TestWorld) -> Vec<Value> {
    let list = world.cli.json(["rollback", "list", &world.run, "--json"]);
    list.as_array().expect("a list").clone()
}

fn assert_ended(world: &TestWorld, wanted: &ProjectState, when: &str) {
    world.state().assert_is(wanted, when);
    assert_eq!(world.status(), "active@a", "{when}");
    assert_eq!(world.cli.json(["health"])["ok"], true, "{when}");
    world.cli.ok(["events", "verify"]);
}

/// Lets a call die before this statement, from the world that was saved; whether it has that many.
pub(super) fn dies_before(world: &TestWorld, words: &[&str], n: usize) -> bool {
    world.reset(&WHOLE);
    let mut command = world.cli.command(words);
    let output = command.env("IC_TEST_ABORT_BEFORE", n.to_string()).output().expect("start ic");
    output.status.signal().is_some()
}

#[test]
fn killed_before_any_statement_it_is_resumed_or_aborted() {
    let (world, first) = story();
    let words = ["undo", "--only", &first, "--yes", "--json"];
    world.save(&WHOLE);
    let before = world.state();
    world.cli.ok(words);
    let wanted = world.state();
    assert_eq!(world.read("a.txt").as_deref(), Some(SEVEN.replace("six", "SIX").as_str()));
    let (mut n, mut resumed, mut aborted) = (1, 0, 0);
    loop {
        if !dies_before(&world, &words, n) {
            break;
        }
        let when = format!("aborted before statement {n}");
        let open = rollbacks(&world).last().filter(|one| one["status"] == "in_progress").cloned();
        match open {
            Some(open) => {
                let id = open["id"].as_str().expect("an id");
                let status = world.cli.json(["status", "--json"]);
                let message = status["unfinished"][0]["message"].as_str().expect("a message");
                assert!(message.ends_with("alone is not finished"), "{when}: {message}");
                // What a killed restore has yet to write is still needed.
                world.cli.ok(["checkpoint", "prune", "--grace", "0s"]);
                if (resumed + aborted) % 3 == 2 {
                    world.cli.ok(["rollback", "abort", id, "--yes"]);
                    world.state().assert_outside_is(&before, &when);
                    world.cli.ok(words);
                    world.state().assert_outside_is(&wanted, &when);
                    aborted += 1;
                } else {
                    world.cli.ok(["rollback", "resume", id, "--yes"]);
                    assert_ended(&world, &wanted, &when);
                    resumed += 1;
                }
            }
            None if rollbacks(&world).is_empty() => {
                world.cli.ok(words);
                assert_ended(&world, &wanted, &when);
            }
            None => assert_ended(&world, &wanted, &when),
        }
        n += if long() { 1 } else { 13 };
    }
    tell(&format!("{n} statements, {resumed} resumed, {aborted} aborted"));
    assert!(resumed > 3 && aborted > 1, "{resumed} resumed, {aborted} aborted of {n}");
}

/// Whatever the undo had done by then: what a person writes after its death is never replaced unasked.
#[test]
fn what_a_person_wrote_after_it_was_killed_stays_whatever_is_called() {
    let (world, first) = story();
    let words = ["undo", "--only", &first, "--yes", "--json"];
    world.save(&WHOLE);
    let (mut n, mut open, mut refused) = (1, 0, 0);
    loop {
        if !dies_before(&world, &words, n) {
            break;
        }
        world.write("b.txt", "mine\n");
        if let Some(id) = rollbacks(&world).last().filter(|one| one["status"] == "in_progress") {
            let id = id["id"].as_str().expect("an id");
            let call = |how: &str| world.cli.run(["rollback", "abort", id, how, "--json"]);
            let (preview, deed) = (call("--dry-run"), call("--yes"));
            let when = format!("aborted before statement {n}: {preview:?}\n{deed:?}");
            assert_eq!(world.read("b.txt").as_deref(), Some("mine\n"), "{when}");
            assert_eq!(preview.code, deed.code, "{when}");
            open += 1;
            refused += usize::from(deed.code == Some(1));
        }
        n += if long() { 1 } else { 5 };
    }
    tell(&format!("{n} statements, {open} open, {refused} refused"));
    assert!(refused > 1, "{refused} refused of {open}");
}
