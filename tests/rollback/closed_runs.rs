//! A run that something closed: each refusal names the command that opens it again, and what can never be undone is left by an
//! explicit decision, with its reason on record.

use std::process::Stdio;
use std::time::{Duration, Instant};

use ic_testkit::TestWorld;
use serde_json::{Value, json};

use crate::project::{Work as _, asked, in_git};
use crate::story::story_with_rows;

/// What an advance of the closed run is told: the hint's command, which must be the `resume` of the details.
fn way_out(world: &TestWorld) -> String {
    let outcome = world.cli.run(["run", "advance", &world.run, "--json"]);
    assert_eq!((outcome.code, outcome.error().as_str()), (Some(1), "rolling_back"), "{outcome:?}");
    let error: Value = serde_json::from_str(&outcome.stderr).expect("JSON");
    let command = error["error"]["details"]["resume"].as_str().expect("a command").to_owned();
    assert!(error["error"]["hint"].as_str().expect("a hint").ends_with(&command), "{error}");
    // Who wants to roll it back is told the same.
    let outcome = world.cli.run(["run", "rollback", &world.run, "--to-phase", "a", "--dry-run", "--json"]);
    assert!(outcome.error() == "rolling_back" && outcome.stderr.contains(&command), "{outcome:?}");
    command
}

fn go(world: &TestWorld, command: &str) -> (Option<i32>, String) {
    let outcome = world.cli.run(command.split(' ').skip(1));
    (outcome.code, format!("{}{}", outcome.stdout, outcome.stderr))
}

/// The reasons of the events of a type.
fn reasons(world: &TestWorld, event_type: &str) -> Vec<String> {
    let events = world.cli.json(["run", "events", &world.run, "--json"]);
    let all = events.as_array().expect("events").iter().filter(|event| event["kind"] == event_type);
    all.map(|event| event["reason"].as_str().unwrap_or_default().to_owned()).collect()
}

/// A run with three effects, the second of which can never be undone.
fn hopeless() -> TestWorld {
    let world = in_git().begun();
    world.advance();
    world.effect("first", &[]);
    world.ic(&["compensation", "add", &world.run, "--step", "hope less", "--shell", "exit 3"]);
    world.effect("last", &[]);
    world
}

#[test]
fn an_effect_that_can_never_be_undone_is_left_by_decision() {
    let world = hopeless();
    let run = ["compensation", "run", &world.run, "--yes", "--json"];
    assert_eq!(world.cli.run(run).code, Some(4));
    assert_eq!(world.status(), "rolling_back@b");
    let command = way_out(&world);
    assert_eq!(command, format!("ic compensation run {} --yes", &world.run[world.run.len() - 8..]));
    assert_eq!(go(&world, &command).0, Some(4), "it is no way out yet");
    let text = world.cli.run(["compensation", "run", &world.run, "--yes", "--format", "text"]);
    assert!(text.stdout.contains("--skip 'hope less' --reason WHY --yes"), "{}", text.stdout);
    // A decision has a reason, and is about something that is open.
    let skip = ["compensation", "run", &world.run, "--yes", "--json", "--skip"];
    assert_eq!(world.cli.refused([&skip[..], &["hope less"]].concat()), (Some(3), "usage".to_owned()));
    let wrong = [&skip[..], &["last", "--reason", "why not"]].concat();
    assert_eq!(world.cli.refused(wrong), (Some(3), "compensation_not_found".to_owned()));
    let report = world.cli.json([&skip[..], &["hope less", "--reason", "refunded by hand"]].concat());
    assert_eq!(report["status"], "done", "{report}");
    assert_eq!((world.status().as_str(), world.effects().join(" ").as_str()), ("active@b", "last first"));
    assert_eq!(reasons(&world, "compensation_skipped"), ["refunded by hand"]);
    let list = world.cli.json(["compensation", "list", &world.run, "--json"]);
    assert_eq!(list[1]["status"], "skipped", "{list}");
    world.advance();
}

#[test]
fn a_rollback_goes_on_past_an_effect_that_can_never_be_undone() {
    let world = hopeless();
    world.write("since", "since\n");
    let mut words = world.all("a", &[]);
    words.push("--yes");
    assert_eq!(world.cli.run(words).code, Some(4));
    let command = way_out(&world);
    assert!(command.starts_with("ic rollback resume "), "{command}");
    assert_eq!(go(&world, &command).0, Some(4), "it is no way out yet");
    let short = command.split(' ').nth(3).expect("an id").to_owned();
    let text = world.cli.ok(["rollback", "show", &short, "--format", "text"]);
    assert!(text.contains("--skip-effect 'hope less' --reason WHY") && text.contains("--skip-step"), "{text}");
    let resume = ["rollback", "resume", &short, "--yes", "--json", "--skip-effect"];
    assert_eq!(world.cli.refused([&resume[..], &["hope less"]].concat()), (Some(3), "usage".to_owned()));
    let done = world.cli.json([&resume[..], &["hope less", "--reason", "refunded by hand"]].concat());
    assert_eq!(done["status"], "done", "{done}");
    assert_eq!((world.status().as_str(), world.read("since")), ("active@a", None));
    assert_eq!(world.effects(), ["last", "first"], "the others are undone anyway");
    assert_eq!(reasons(&world, "compensation_skipped"), ["refunded by hand"]);
    // What the first call had undone is counted with the rest, and what was skipped is named and not counted.
    let text = world.cli.ok(["rollback", "show", &short, "--format", "text"]);
    assert!(text.contains("2 effects undone; skipped: hope less"), "{text}");
    assert_eq!(done["steps"][0]["made"]["skipped_steps"], json!(["hope less"]), "{done}");
}

#[test]
fn only_effects_of_the_rollback_are_left_and_only_as_long_as_it_stands() {
    let world = in_git().begun();
    world.effect("old", &[]);
    world.advance();
    world.effect("bad", &["exit 3"]);
    let mut words = world.all("a", &[]);
    words.push("--yes");
    assert_eq!(world.cli.run(&words).code, Some(4));
    let resume = ["rollback", "resume", &world.run, "--reason", "by hand", "--yes", "--json", "--skip-effect"];
    for step in ["old", "unknown"] {
        let outcome = world.cli.run([&resume[..], &[step]].concat());
        assert_eq!((outcome.code, outcome.error().as_str()), (Some(3), "compensation_not_found"), "{outcome:?}");
    }
    let states = || -> Vec<Value> {
        let list = world.cli.json(["compensation", "list", &world.run, "--json"]);
        list.as_array().expect("a list").iter().map(|one| one["status"].clone()).collect()
    };
    assert_eq!(states(), ["armed", "failed"]);
    // A look at it is refused as the call is, and leaves the effect out.
    let look = |step: &str| {
        let words = ["rollback", "resume", &world.run, "--reason", "by hand", "--dry-run", "--json", "--skip-effect"];
        world.cli.run([&words[..], &[step]].concat())
    };
    for step in ["old", "unknown"] {
        assert_eq!(look(step).error(), "compensation_not_found");
    }
    let looked: Value = serde_json::from_str(&look("bad").stdout).expect("JSON");
    assert_eq!((&looked["effects"]["results"], states()), (&json!([]), vec![json!("armed"), json!("failed")]));
    // Named twice it is left once.
    let done = world.cli.json([&resume[..], &["bad", "--skip-effect", "bad"]].concat());
    assert_eq!((&done["status"], states()), (&json!("done"), vec![json!("armed"), json!("skipped")]));
    let id = done["id"].as_str().expect("an id");
    world.ic(&["redo", id, "--yes"]);
    assert_eq!(states(), ["armed", "armed"], "the decision ended with the rollback");
    assert_eq!(world.cli.run(&words).code, Some(4), "and is asked for again");
}

/// What a dead process left running ends before anything else is decided.
#[test]
fn an_undo_whose_process_died_is_ended_and_named() {
    for way in ["abort", "skip"] {
        let world = in_git().begun();
        let home = world.cli.home().to_owned();
        world.advance();
        let line = format!("touch {0}/begun; sleep 1; touch {0}/ended", home.display());
        world.ic(&["compensation", "add", &world.run, "--step", "slow", "--shell", &line]);
        let words = world.all("a", &["--yes"]);
        let mut command = world.cli.command(words);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("start ic");
        let started = Instant::now();
        while !home.join("begun").exists() {
            assert!(started.elapsed() < Duration::from_secs(10), "it never began");
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().expect("kill it");
        child.wait().expect("its end");
        if way == "abort" {
            let text = world.cli.ok(["rollback", "abort", &world.run, "--yes", "--format", "text"]);
            assert!(text.contains("perhaps undone, interrupted half way: slow"), "{text}");
        } else {
            world.ic(&["rollback", "resume", &world.run, "--skip-step", "--reason", "x", "--yes"]);
        }
        let list = world.cli.json(["compensation", "list", &world.run, "--json"]);
        assert_eq!(list[0]["status"], "failed", "{list}");
        std::thread::sleep(Duration::from_millis(1100).saturating_sub(started.elapsed()));
        assert!(!home.join("ended").exists(), "{way}: it went on behind everybody's back");
    }
}

#[test]
fn what_is_passed_over_or_given_up_has_its_reason_on_record() {
    let world = hopeless();
    let stop = |world: &TestWorld| {
        let mut words = world.all("a", &[]);
        words.push("--yes");
        assert_eq!(world.cli.run(words).code, Some(4));
    };
    stop(&world);
    world.ic(&["rollback", "abort", &world.run, "--reason", "not now", "--yes"]);
    assert_eq!(reasons(&world, "rollback_aborted"), ["not now"]);
    stop(&world);
    world.ic(&["rollback", "resume", &world.run, "--skip-step", "--reason", "by hand", "--yes"]);
    assert_eq!(reasons(&world, "rollback_step_skipped"), ["by hand"]);
    let list = world.cli.json(["rollback", "list", &world.run, "--json"]);
    let id = list[1]["id"].as_str().expect("an id");
    world.ic(&["redo", id, "--without-effects", "--reason", "a mistake", "--yes"]);
    assert_eq!(reasons(&world, "rollback_undone"), ["a mistake"]);
    let story = world.cli.json(["run", "history", &world.run, "--json"]);
    assert!(story.to_string().contains("a mistake"), "{story}");
}

#[test]
fn a_rollback_of_a_workflow_is_resumed_like_any_other() {
    let world = in_git();
    world.write(
        "flow.yaml",
        "name: w\nsteps:\n  - {id: one, phase: a, run: 'true', compensate: {shell: 'exit 3'}}\n  - {id: two, phase: b, run: 'exit 1', compensate: skip}\n",
    );
    world.commit("flow");
    let outcome = world.cli.run(["workflow", "run", "flow.yaml", "--on-failure", "rollback", "--json"]);
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    let run = outcome.json()["run_id"].as_str().expect("an id").to_owned();
    let world = world.with_run(run);
    let command = way_out(&world);
    let id = &outcome.json()["rollback"]["rollback_id"].as_str().expect("an id")[28..].to_owned();
    assert_eq!(command, format!("ic rollback resume {id} --yes"));
    assert_eq!(go(&world, &command).0, Some(4), "it is no way out yet");
    // The command of workflows leads to the same, and what it names works as typed.
    let short = &world.run[world.run.len() - 8..];
    let (code, said) = go(&world, &format!("ic workflow resume {short} --yes --json"));
    assert_eq!(code, Some(4), "{said}");
    let skip = format!("ic rollback resume {id} --skip-effect one --reason WHY --yes");
    assert!(said.contains(&skip), "{said}");
    let (code, said) = go(&world, &format!("{skip} --json"));
    assert_eq!(code, Some(0), "{said}");
    let (_, said) = go(&world, &format!("ic workflow show {short} --json"));
    assert!(said.contains("\"status\":\"rolled_back\""), "{said}");
    assert_eq!(world.status(), "active@a");
}

#[test]
fn while_an_undo_is_under_way_nobody_moves_the_run() {
    let world = story_with_rows();
    let report = world.roll_back("a", &[]);
    let id = report["rollback_id"].as_str().expect("an id").to_owned();
    let (sure, told) = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..6)
            .map(|who| {
                let world = &world;
                scope.spawn(move || {
                    let status = "SELECT count(*) FROM runs WHERE status = 'active' AND phase = 'a'";
                    while asked(&world.cli, status) > 0 {
                        std::thread::sleep(std::time::Duration::from_millis(1));
                    }
                    let mut told = Vec::new();
                    for n in 0..25 {
                        let path = format!("by-{who}-{n}");
                        let words = match who % 3 {
                            0 => vec!["run", "advance", &world.run, "--no-checkpoint"],
                            1 => vec!["run", "artifact", "add", &world.run, "--path", &path],
                            _ => vec!["dispatch", "create", &world.run, "--name", &path],
                        };
                        let outcome = world.cli.run(words);
                        told.push(if outcome.code == Some(0) { String::new() } else { outcome.error() });
                    }
                    told
                })
            })
            .collect();
        let undo = ["redo", &id, "--without-effects", "--yes", "--json"];
        let outcome = world.cli.run(undo);
        (outcome, workers.into_iter().flat_map(|worker| worker.join().expect("a worker")).collect::<Vec<_>>())
    });
    let typed = ["", "rolling_back", "terminal_phase", "run_not_active", "stale_phase", "busy"];
    assert!(told.iter().all(|code| typed.contains(&code.as_str())), "{told:?}");
    assert_eq!(sure.code, Some(0), "{sure:?}");
    let between = "SELECT count(*) FROM events WHERE \
        seq > (SELECT seq FROM events WHERE type = 'rollback_undo_begun') AND \
        seq < (SELECT seq FROM events WHERE type = 'rollback_undone') AND \
        type IN ('advance', 'artifact_added', 'dispatch_created')";
    assert_eq!(asked(&world.cli, between), 0, "a call got through");
    println!("{} refused", told.iter().filter(|code| *code == "rolling_back").count());
}
