//! `ic undo` and `ic redo`: what a person types who does not want to think.

use ic_testkit::{Terminal, TestWorld, living_process};

use crate::project::{Work as _, in_git, without_git};

/// A dispatch that changes a file, and ends.
fn work(world: &TestWorld, name: &str) -> String {
    let id = world.ic(&["dispatch", "create", &world.run, "--name", name]);
    world.ic(&["dispatch", "start", &id]);
    world.write("file", &format!("{name}\n"));
    world.write(name, "new\n");
    world.ic(&["dispatch", "complete", &id]);
    id
}

fn code(world: &TestWorld, words: &[&str]) -> (Option<i32>, String) {
    world.cli.refused(words)
}

#[test]
fn each_undo_takes_one_piece_of_work_back_and_each_redo_brings_one_back() {
    let world = in_git().begun();
    world.write("file", "zero\n");
    let mut states = vec![world.state()];
    for name in ["one", "two", "three"] {
        work(&world, name);
        states.push(world.state());
    }
    for at in (0..3).rev() {
        let report = world.cli.json(["undo", "--yes", "--json"]);
        assert_eq!(report["status"], "rolled_back", "{report}");
        world.state().assert_outside_is(&states[at], "undone");
    }
    assert_eq!(code(&world, &["undo", "--yes"]), (Some(1), "nothing_to_undo".to_owned()));
    for state in &states[1..] {
        let report = world.cli.json(["redo", "--yes", "--json"]);
        assert_eq!(report["status"], "undone", "{report}");
        world.state().assert_outside_is(state, "redone");
    }
    assert_eq!(code(&world, &["redo", "--yes"]), (Some(1), "nothing_to_undo".to_owned()));
    // Undone, worked on, and undone again: what was undone first stays undone.
    world.ic(&["undo", "--yes"]);
    work(&world, "four");
    world.ic(&["undo", "--yes"]);
    world.state().assert_outside_is(&states[2], "three and four are undone");
}

#[test]
fn a_preview_is_the_plan_and_nothing_is_done_without_a_yes() {
    let world = in_git().begun();
    let first = work(&world, "one");
    work(&world, "two");
    let before = world.state();
    let planned = world.cli.json(["undo", &first, "--dry-run", "--json"]);
    assert_eq!((&planned["status"], &planned["dry_run"]), (&"planned".into(), &true.into()), "{planned}");
    assert_eq!(code(&world, &["undo", &first]), (Some(3), "confirmation_required".to_owned()));
    let hash = planned["plan_hash"].as_str().expect("a hash");
    assert_eq!(code(&world, &["undo", "--yes", "--expect-plan", hash]), (Some(1), "plan_changed".to_owned()));
    world.state().assert_is(&before, "nothing was done");
    world.ic(&["undo", &first, "--yes", "--expect-plan", hash]);
    assert_eq!((world.read("one"), world.read("two")), (None, None));
    let by = world.cli.json(["rollback", "list", "--json"]);
    assert_eq!(by[0]["layers"], serde_json::json!(["workflow", "effects", "files", "git"]));
}

#[test]
fn an_id_says_its_run_by_itself_and_a_run_that_ended_is_undone_too() {
    let world = in_git().begun();
    let id = work(&world, "one");
    let other = world.cli.ok(["run", "create", "--goal", "beside", "--phases", "a,b"]);
    for verb in ["undo", "redo"] {
        let refused = world.cli.run([verb, "--yes"]);
        assert_eq!((refused.code, refused.error().as_str()), (Some(3), "ambiguous_run"), "{refused:?}");
        assert!(refused.stderr.contains("--run RUN"), "{refused:?}");
    }
    // The name of a checkpoint says its run, too.
    world.ic(&["checkpoint", "create", "--run", &world.run, "--name", "here"]);
    let planned = world.cli.json(["undo", "checkpoint:here", "--dry-run", "--json"]);
    assert_eq!(planned["run_id"], world.run.as_str(), "{planned}");
    let wrong = ["undo", &id, "--run", &other, "--yes"];
    assert_eq!(code(&world, &wrong), (Some(3), "point_of_other_run".to_owned()));
    world.ic(&["undo", &format!("dispatch:{id}"), "--yes"]);
    assert_eq!(world.read("one"), None);
    world.ic(&["redo", "--run", &world.run, "--yes"]);
    world.ic(&["run", "cancel", &other, "--reason", "not needed"]);
    let log = world.ic(&["log", &other, "--format", "text"]);
    assert!(log.contains("ic run reopen") && !log.contains("ic undo"), "{log}");
    for _ in 0..5 {
        world.ic(&["run", "advance", &world.run]);
    }
    assert_eq!(world.status(), "completed@f");
    // No run is open, and the newest one was cancelled without any work: the newest work here is meant, of the run that ended.
    let planned = world.cli.json(["undo", "--dry-run", "--json"]);
    assert_eq!(planned["run_id"], world.run.as_str(), "{planned}");
    assert_eq!(code(&world, &["undo", "--run", &other, "--yes"]), (Some(1), "nothing_to_undo".to_owned()));
    world.ic(&["undo", "--yes"]);
    assert_eq!((world.status().as_str(), world.read("one")), ("active@a", None));
}

#[test]
fn where_there_is_no_run_the_tree_goes_back_and_comes_back() {
    let world = in_git();
    assert_eq!(code(&world, &["undo", "--yes"]), (Some(1), "no_checkpoint".to_owned()));
    world.write("file", "one\n");
    let first = world.ic(&["checkpoint", "create"]);
    world.write("file", "two\n");
    world.ic(&["checkpoint", "create"]);
    // The newest checkpoint is as the tree is: the one before it is meant.
    let report = world.cli.json(["undo", "--yes", "--json"]);
    assert_eq!((&report["status"], &report["checkpoint_id"]), (&"restored".into(), &first.as_str().into()));
    assert_eq!(world.read("file").as_deref(), Some("one\n"));
    world.ic(&["redo", "--yes"]);
    assert_eq!(world.read("file").as_deref(), Some("two\n"));
    world.ic(&["undo", &format!("checkpoint:{first}"), "--yes"]);
    assert_eq!(world.read("file").as_deref(), Some("one\n"));
    assert_eq!(code(&world, &["undo", "dispatch:0123456789", "--yes"]).0, Some(3));
}

#[test]
fn a_redo_takes_nothing_back_that_a_redo_brought() {
    let world = in_git().begun();
    world.commit("base");
    work(&world, "one");
    world.commit("one");
    let id = world.ic(&["dispatch", "create", &world.run, "--name", "two"]);
    world.ic(&["dispatch", "start", &id]);
    world.write("two", "new\n");
    let sha = world.commit("two");
    world.ic(&["dispatch", "complete", &id]);
    world.ic(&["undo", "--yes"]);
    world.write("own", "mine\n");
    world.commit("own");
    // The hint's first way, as it stands; its other one leaves commits where they are.
    let refused = world.cli.run(["redo", "--yes", "--json"]);
    let error: serde_json::Value = serde_json::from_str(&refused.stderr).expect("an error");
    let hint = error["error"]["hint"].as_str().expect("a hint");
    let (hint, _) = hint.split_once("; to bring back these files alone").expect("two ways");
    let calls = hint.split("ic ").skip(1).map(|rest| rest.split(';').next().unwrap_or_default().trim());
    let mut count = 0;
    for call in calls {
        world.ic(&call.split_whitespace().collect::<Vec<_>>());
        count += 1;
    }
    assert_eq!((count, world.git(&["rev-parse", "HEAD"])), (2, sha.clone()), "{hint}");
    let after = world.state();
    assert_eq!(code(&world, &["redo", "--yes"]), (Some(1), "nothing_to_undo".to_owned()));
    assert_eq!(code(&world, &["redo", "--dry-run"]), (Some(1), "nothing_to_undo".to_owned()));
    world.state().assert_outside_is(&after, "nothing is undone");
}

#[test]
fn where_there_is_no_run_only_the_layers_that_are_named_go_back() {
    let world = in_git();
    world.write("file", "one\n");
    let head = world.commit("one");
    let first = format!("checkpoint:{}", world.ic(&["checkpoint", "create"]));
    let work = || {
        world.write("file", "two\n");
        world.commit("two")
    };
    let stands = || (world.read("file").expect("the file"), world.git(&["rev-parse", "HEAD"]));
    let later = work();
    let dump = world.cli.dump();
    for layers in ["workflow", "effects", "workflow,effects", "data", "files,data"] {
        let words = ["undo", &first, "--layer", layers, "--yes"];
        assert_eq!(code(&world, &words), (Some(3), "usage".to_owned()), "{layers}");
    }
    assert_eq!(world.cli.dump(), dump);
    let undo = |rest: &[&str]| world.ic(&[&["undo", first.as_str(), "--yes"], rest].concat());
    undo(&["--layer=files"]);
    assert_eq!(stands(), ("one\n".to_owned(), later.clone()));
    world.git(&["reset", "-q", "--hard"]);
    // The layers may be named as for a run. Here the layer `workflow` has nothing to undo.
    undo(&["--layer=workflow,git"]);
    assert_eq!(stands(), ("two\n".to_owned(), head.clone()));
    world.git(&["reset", "-q", "--hard", &later]);
    undo(&["--layer=files,git"]);
    assert_eq!(stands(), ("one\n".to_owned(), head));
    // Each flag decides its own question.
    let run = world.ic(&["run", "create", "--goal", "Work", "--phases", "a,b"]);
    let worker = world.ic(&["dispatch", "create", &run, "--name", "worker"]);
    let pid = living_process().to_string();
    world.ic(&["dispatch", "start", &worker, "--pid", &pid]);
    world.write("file", "two\n");
    for flag in ["--force-files", "--force-commits", "--past-pivot"] {
        let words = ["undo", &first, "--yes", flag];
        assert_eq!(code(&world, &words), (Some(1), "work_running".to_owned()), "{flag}");
    }
    undo(&["--force-workers"]);
}

#[test]
fn where_there_is_no_git_files_and_git_are_the_files() {
    let world = without_git();
    world.write("file", "one\n");
    let first = world.ic(&["checkpoint", "create"]);
    world.write("file", "two\n");
    world.ic(&["undo", &format!("checkpoint:{first}"), "--layer=files,git", "--yes"]);
    assert_eq!(world.read("file").as_deref(), Some("one\n"));
}

#[test]
fn a_restore_after_a_rollback_is_brought_back_first() {
    let world = in_git().begun();
    world.write("file", "zero\n");
    let kept = world.ic(&["checkpoint", "create"]);
    work(&world, "one");
    let after = world.state();
    world.ic(&["undo", "--yes"]);
    let between = world.state();
    world.write("file", "by hand\n");
    world.ic(&["checkpoint", "restore", &kept, "--yes"]);
    world.ic(&["redo", "--yes"]);
    assert_eq!(world.read("file").as_deref(), Some("by hand\n"));
    world.write("file", "zero\n");
    world.state().assert_outside_is(&between, "as the rollback left it");
    world.ic(&["redo", "--yes"]);
    world.state().assert_outside_is(&after, "as before the rollback");
}

#[test]
fn a_rollback_that_is_not_finished_is_resumed_first() {
    let world = in_git().begun();
    let id = world.ic(&["dispatch", "create", &world.run]);
    world.ic(&["dispatch", "start", &id]);
    world.ic(&["compensation", "add", &world.run, "--step", "bill", "--exec", "--", "false"]);
    let stopped = world.cli.run(["undo", "--yes"]);
    assert_eq!(stopped.code, Some(4), "{stopped:?}");
    for verb in ["undo", "redo"] {
        assert_eq!(code(&world, &[verb, "--yes"]), (Some(1), "rolling_back".to_owned()), "{verb}");
    }
    world.ic(&["rollback", "resume", &world.run, "--skip-step", "--yes"]);
    assert_eq!(world.status(), "active@a");
}

#[test]
fn on_a_terminal_a_point_is_picked_from_a_list_and_then_asked_about() {
    let world = in_git().begun();
    work(&world, "one");
    work(&world, "two");
    let call = world.cli.command(["undo", "--format", "text"]);
    let Some(mut left) = Terminal::open(&call, world.cli.root()) else { return };
    left.sees("Go back to before which point?");
    left.sees("created");
    // Escape leaves it.
    left.types("\u{1b}");
    let (code, shown) = left.ends();
    assert_eq!((code, world.read("two").is_some()), (Some(1), true), "{shown}");
    // So does Ctrl-C, and leaves a cursor that can be seen.
    let Some(mut left) = Terminal::open(&call, world.cli.root()) else { return };
    left.sees("created");
    left.types("\u{3}");
    let (code, shown) = left.ends();
    assert_ne!(code, Some(0), "{shown}");
    let (hidden, back) = (shown.rfind("\u{1b}[?25l"), shown.rfind("\u{1b}[?25h"));
    assert!(hidden.is_some() && back > hidden, "{shown:?}");
    assert!(world.read("two").is_some());
    // At the question that follows it, too: the list was left with its own handler.
    let Some(mut left) = Terminal::open(&call, world.cli.root()) else { return };
    left.sees("created");
    left.types("\r");
    left.sees("Roll back? [y/N]");
    left.types("\u{3}");
    let (code, shown) = left.ends();
    assert!(code != Some(0) && world.read("two").is_some(), "{shown}");
    let Some(mut asked) = Terminal::open(&call, world.cli.root()) else { return };
    asked.sees("created");
    // The newest work is marked; one down is the work before it.
    asked.types("\u{1b}[B\r");
    asked.sees("Roll back? [y/N]");
    asked.types("y\r");
    let (code, shown) = asked.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!((world.read("one"), world.read("two")), (None, None), "{shown}");
}

#[test]
fn ctrl_c_at_the_question_of_a_redo_or_an_abort_ends_it() {
    let world = in_git().begun();
    world.ic(&["compensation", "add", &world.run, "--step", "bill", "--exec", "--", "false"]);
    work(&world, "one");
    let ends_at = |words: &[&str], question: &str| {
        let call = world.cli.command([words, &["--format", "text"]].concat());
        let Some(mut terminal) = Terminal::open(&call, world.cli.root()) else { return };
        terminal.sees(question);
        // The answer comes at once, because an answer after Ctrl-C must not count.
        terminal.types("\u{3}y\n");
        let (code, shown) = terminal.ends();
        assert_eq!(code, Some(130), "{shown}");
    };
    assert_eq!(world.cli.run(["undo", "--run", &world.run, "created", "--yes"]).code, Some(4));
    ends_at(&["rollback", "abort", &world.run], "Abort it? [y/N]");
    assert!(world.status().starts_with("rolling_back"), "{}", world.status());
    world.ic(&["rollback", "resume", &world.run, "--skip-step", "--yes"]);
    ends_at(&["redo", "--without-effects"], "Redo? [y/N]");
    assert_eq!(world.read("one"), None);
}

#[test]
fn a_redo_of_a_named_run_brings_nothing_of_another_run_back() {
    let world = in_git().begun();
    let dispatch = world.ic(&["dispatch", "create", &world.run, "--name", "d"]);
    world.ic(&["dispatch", "start", &dispatch]);
    world.write("b.txt", "b\n");
    world.ic(&["dispatch", "complete", &dispatch]);
    world.ic(&["undo", "--run", &world.run, "--yes"]);
    let other = world.ic(&["run", "create", "--goal", "other", "--phases", "a,b"]);
    let before = world.state();
    for flag in ["--dry-run", "--yes"] {
        let outcome = world.cli.run(["redo", "--run", &other, flag, "--json"]);
        assert_eq!((outcome.code, outcome.error().as_str()), (Some(1), "nothing_to_undo"), "{outcome:?}");
        assert!(outcome.stderr.contains(&format!("ic redo --run {}", &world.run[28..])), "{outcome:?}");
        world.state().assert_is(&before, flag);
    }
    world.ic(&["redo", "--run", &world.run, "--yes"]);
    assert_eq!(world.read("b.txt").as_deref(), Some("b\n"));
}

#[test]
fn a_redo_of_a_restore_refuses_flags_of_the_record() {
    let world = in_git();
    world.write("t", "one");
    world.ic(&["checkpoint", "create"]);
    world.write("t", "mess");
    world.ic(&["undo", "--yes"]);
    for flags in [&["--reason", "why"][..], &["--without-effects"]] {
        assert_eq!(code(&world, &[&["redo", "--yes"], flags].concat()).1, "usage", "{flags:?}");
    }
    assert_eq!(world.text("t"), "one");
}

#[test]
fn without_a_run_each_undo_goes_further_back_and_each_redo_forward() {
    let world = in_git();
    for name in ["one", "two", "three"] {
        world.write("t", name);
        world.ic(&["checkpoint", "create", "--name", name]);
    }
    world.write("t", "mess");
    for left in ["three", "two", "one"] {
        world.ic(&["undo", "--yes"]);
        assert_eq!(world.text("t"), left);
    }
    assert_eq!(world.cli.refused(["undo", "--yes"]).1, "nothing_to_undo");
    for left in ["two", "three", "mess"] {
        world.ic(&["redo", "--yes"]);
        assert_eq!(world.text("t"), left);
    }
    // What was captured since is gone back to first.
    world.ic(&["undo", "--yes"]);
    world.write("t", "four");
    world.ic(&["checkpoint", "create", "--name", "four"]);
    world.write("t", "mess again");
    world.ic(&["undo", "--yes"]);
    assert_eq!(world.text("t"), "four");
}

/// A rollback of nothing would use up the redo.
#[test]
fn the_same_undo_again_is_refused_and_the_redo_brings_the_work_back() {
    let world = in_git().begun();
    let first = work(&world, "one");
    work(&world, "two");
    let whole = world.state();
    let undo = format!("dispatch:{first}");
    world.ic(&["undo", &undo, "--yes"]);
    let undone = world.state();
    for how in ["--dry-run", "--yes"] {
        assert_eq!(code(&world, &["undo", &undo, how]), (Some(1), "nothing_to_undo".to_owned()));
    }
    world.state().assert_is(&undone, "refused");
    world.ic(&["redo", "--yes"]);
    world.state().assert_outside_is(&whole, "redone");
    // What is there again is undone again.
    world.ic(&["undo", &undo, "--yes"]);
    world.write("one", "by hand\n");
    world.ic(&["undo", &undo, "--yes", "--force"]);
    world.state().assert_outside_is(&undone, "undone again");
}
