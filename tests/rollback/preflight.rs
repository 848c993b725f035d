//! What a rollback refuses before anything is changed, and what it does not mind.

use std::process::Stdio;

use ic_testkit::{CliOutcome, TestWorld};
use serde_json::Value;

use crate::project::{Work as _, in_git, without_git};
use crate::story::story;

/// A rollback of everything that must be refused before anything is changed.
fn refused(world: &TestWorld, words: &[&str], code: &str) -> String {
    let (dump, before) = (world.cli.dump(), world.state());
    let outcome = world.cli.run(words);
    assert!(matches!(outcome.code, Some(1..=3)), "{words:?}: {outcome:?}");
    assert_eq!(outcome.error(), code, "{words:?}: {outcome:?}");
    let kept = |dump: &str| dump.lines().filter(|line| !line.starts_with("run_owners|")).collect::<Vec<_>>().join("\n");
    assert_eq!(kept(&world.cli.dump()), kept(&dump), "{words:?} wrote something");
    assert_eq!(world.state().ledger, before.ledger, "{words:?}");
    outcome.stderr
}

fn refused_all(world: &TestWorld, to: &str, more: &[&str], code: &str) -> String {
    let mut dry = world.all(to, more);
    dry.push("--dry-run");
    refused(world, &dry, code);
    let mut real = world.all(to, more);
    real.push("--yes");
    refused(world, &real, code)
}

#[test]
fn without_a_checkpoint_at_the_cut_nothing_is_taken_back() {
    let world = in_git().begun();
    world.ic(&["run", "advance", &world.run, "--no-checkpoint"]);
    world.ic(&["checkpoint", "create"]);
    world.write("x", "x\n");
    let line = refused_all(&world, "a", &[], "no_checkpoint");
    assert!(line.contains("--layer=workflow"), "{line}");
}

#[test]
fn a_checkpoint_that_was_given_up_is_not_replaced_by_another() {
    let world = in_git().begun();
    world.write("kept", "kept\n");
    for _ in 0..5 {
        world.advance();
        world.write("x", &format!("{}\n", world.status()));
    }
    assert_eq!(world.status(), "completed@f");
    world.ic(&["checkpoint", "prune", "--older-than", "0s", "--keep-last", "1", "--grace", "0s"]);
    let line = refused_all(&world, "a", &[], "checkpoint_not_found");
    assert!(line.contains("was pruned"), "{line}");
    world.cli.ok(["run", "rollback", &world.run, "--to-phase", "a"]);
}

#[test]
fn conflicts_are_refused_forced_or_kept() {
    let conflict = || {
        let world = story();
        let other = world.cli.ok(["run", "create", "--goal", "other", "--phases", "x,y"]);
        let dispatch = world.cli.ok(["dispatch", "create", &other]);
        world.ic(&["dispatch", "record", &dispatch, "--file", "src/a.rs"]);
        world
    };
    let world = conflict();
    let words = world.all("a", &["--yes"]);
    let line = refused(&world, &words, "file_conflict");
    assert!(line.contains("src/a.rs") && line.contains("--keep-theirs"), "{line}");
    let looked = world.cli.run(world.all("a", &["--dry-run"]));
    let listed = looked.json();
    assert_eq!((looked.code, listed["refusal"]["code"].as_str()), (Some(1), Some("file_conflict")));
    assert_eq!(listed["files"]["conflicts"][0]["path"], "src/a.rs");
    world.roll_back("a", &["--force"]);
    assert_eq!(world.read("src/a.rs"), None);
    let world = conflict();
    world.roll_back("a", &["--keep-theirs"]);
    assert_eq!(world.read("src/a.rs").as_deref(), Some("not committed\n"));
    assert_eq!(world.read("notes/todo"), None);
    let world = conflict();
    let files =
        ["run", "rollback", &world.run, "--to-phase", "a", "--layer=workflow,files", "--mine", "--yes", "--json"];
    let line = refused(&world, &files, "file_conflict");
    assert!(line.contains("src/a.rs"), "{line}");
}

#[test]
fn with_mine_only_what_the_run_recorded_is_put_back() {
    let world = story();
    let report = world.cli.json([
        "run", "rollback", &world.run, "--to-phase", "a", "--layer=workflow,files", "--mine", "--yes", "--json",
    ]);
    assert_eq!(report["status"], "rolled_back");
    assert_eq!((world.read("src/a.rs"), world.read("notes/todo").as_deref()), (None, Some("not tracked\n")));
    assert_eq!(world.read("README").as_deref(), Some("changed\n"));
}

#[test]
fn with_mine_the_files_of_the_run_are_meant_also_from_inside_a_dispatch() {
    let story = || {
        let world = in_git().begun();
        world.advance();
        let dispatch = |name: &str| {
            let id = world.cli.ok(["dispatch", "create", &world.run, "--name", name]);
            world.write(name, "new\n");
            world.ic(&["dispatch", "record", &id, "--file", name]);
            id
        };
        dispatch("first");
        let second = dispatch("second");
        world.write("neither", "new\n");
        (world, second)
    };
    let (world, second) = story();
    let words = |more: &'static str| {
        ["run", "rollback", &world.run, "--to-phase", "a", "--layer=workflow,files", "--mine", more, "--json"]
            .map(str::to_owned)
    };
    let inside = |more| CliOutcome::of(world.cli.command(words(more)).env("IC_DISPATCH", &second)).json();
    let paths = |report: &Value| {
        let all = report["files"]["changes"].as_array().expect("changes").iter();
        all.map(|change| change["path"].as_str().expect("a path").to_owned()).collect::<Vec<_>>()
    };
    let outside = world.cli.json(words("--dry-run"));
    assert_eq!(paths(&outside), ["first", "second"]);
    assert_eq!(inside("--dry-run")["plan_hash"], outside["plan_hash"]);
    assert_eq!(paths(&inside("--yes")), ["first", "second"]);
    assert_eq!(world.read("neither").as_deref(), Some("new\n"));
}

#[test]
fn what_cannot_be_undone_holds_what_came_before_it() {
    let world = story();
    world.ic(&["compensation", "add", &world.run, "--step", "publish", "--pivot"]);
    let words = world.all("a", &["--yes"]);
    let line = refused(&world, &words, "pivot");
    assert!(line.contains("--past-pivot"), "{line}");
    world.roll_back("a", &["--past-pivot"]);
    assert_eq!(world.effects(), ["mail", "pay", "book"]);
}

#[test]
fn a_project_that_is_gone_is_refused() {
    let world = without_git();
    let elsewhere = world.cli.home().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a directory");
    let run = world.cli.ok([
        "run",
        "create",
        "--goal",
        "g",
        "--phases",
        "a,b,c",
        "--project",
        elsewhere.to_str().expect("text"),
    ]);
    let world = world.with_run(run);
    std::fs::write(elsewhere.join("x"), "x").expect("a file");
    world.advance();
    std::fs::write(elsewhere.join("x"), "since").expect("a file");
    let into_another_directory = |line: &str| {
        assert!(line.contains("elsewhere, is gone or has moved"), "{line}");
        let command = line.split("ic checkpoint restore ").nth(1).expect("a command");
        let checkpoint = command.split(' ').next().expect("an id");
        world.ic(&["checkpoint", "restore", checkpoint, "--into", "--dry-run"]);
    };
    let moved = world.cli.home().join("moved");
    std::fs::rename(&elsewhere, &moved).expect("move the project");
    for last in ["--yes", "--dry-run"] {
        let line = refused(&world, &world.all("a", &[last]), "foreign_root");
        assert!(line.contains("--layer=workflow"), "{line}");
        into_another_directory(&line);
    }
    std::fs::rename(&moved, &elsewhere).expect("move it back");
    let report = world.roll_back("a", &[]);
    std::fs::rename(&elsewhere, &moved).expect("move it again");
    let undo = ["redo", report["rollback_id"].as_str().expect("an id"), "--yes", "--json"];
    into_another_directory(&refused(&world, &undo, "foreign_root"));
    std::fs::rename(&moved, &elsewhere).expect("put it back, as the hint says");
    world.ic(&undo);
    assert_eq!(std::fs::read_to_string(elsewhere.join("x")).expect("a file"), "since");
}

#[test]
fn a_project_whose_root_has_changed_is_refused() {
    let world = without_git();
    std::fs::create_dir(world.cli.root().join("sub")).expect("a directory");
    let sub = world.cli.root().join("sub").display().to_string();
    let run = world.cli.ok(["run", "create", "--goal", "g", "--phases", "a,b,c", "--project", &sub]);
    let world = world.with_run(run);
    world.write("sub/x", "x\n");
    world.advance();
    world.write("sub/y", "y\n");
    world.write("beside", "beside\n");
    world.git(&["init", "-q"]);
    world.commit("base");
    let words = world.all("a", &["--yes"]);
    refused(&world, &words, "foreign_root");
    assert_eq!(world.read("beside").as_deref(), Some("beside\n"));
}

#[test]
fn it_works_from_another_directory_and_without_git() {
    let world = without_git();
    let elsewhere = world.cli.home().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a directory");
    let run = world.cli.ok([
        "run",
        "create",
        "--goal",
        "g",
        "--phases",
        "a,b,c",
        "--project",
        elsewhere.to_str().expect("text"),
    ]);
    let world = world.with_run(run);
    world.write("here", "here\n");
    std::fs::write(elsewhere.join("x"), "x").expect("a file");
    world.advance();
    std::fs::write(elsewhere.join("x"), "changed").expect("a file");
    std::fs::write(elsewhere.join("y"), "y").expect("a file");
    let report = world.roll_back("a", &[]);
    assert_eq!(report["files"]["git"], Value::Null);
    assert_eq!(std::fs::read_to_string(elsewhere.join("x")).expect("x"), "x");
    assert!(!elsewhere.join("y").exists());
    assert_eq!(world.read("here").as_deref(), Some("here\n"));
}

#[test]
fn the_first_phase_with_its_own_work_goes_back_to_how_the_run_began() {
    let world = story();
    world.roll_back("a", &["--include-target"]);
    assert_eq!((world.read("kept/plan.md"), world.read("README").as_deref()), (None, Some("base\n")));
    assert_eq!(world.effects(), ["mail", "pay", "book", "reserve"]);
    assert_eq!(world.status(), "active@a");
}

#[test]
fn a_dispatch_can_roll_back_the_run_that_it_belongs_to() {
    let world = story();
    let own = world.cli.ok(["dispatch", "create", &world.run, "--name", "own"]);
    world.ic(&["dispatch", "start", &own, "--pid", &std::process::id().to_string()]);
    let mut words = world.all("a", &[]);
    words.push("--yes");
    let outcome = CliOutcome::of(world.cli.command(words).env("IC_DISPATCH", &own));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!((world.status().as_str(), world.read("src/a.rs")), ("active@a", None));

    // Where it stops, the commands that are named are for the same caller.
    for verb in ["resume", "abort"] {
        let world = story();
        let home = world.cli.home().display().to_string();
        world.effect("last", &[&format!("test -e {home}/repaired || exit 3")]);
        let own = world.cli.ok(["dispatch", "create", &world.run, "--name", "own"]);
        let call = |words: Vec<&str>| CliOutcome::of(world.cli.command(words).env("IC_DISPATCH", &own));
        assert_eq!(call(world.all("a", &["--yes"])).code, Some(4));
        std::fs::write(world.cli.home().join("repaired"), "").expect("a file");
        let outcome = call(vec!["rollback", verb, &world.run, "--yes"]);
        assert_eq!(outcome.code, Some(0), "{verb}: {outcome:?}");
        assert_eq!(world.status(), if verb == "resume" { "active@a" } else { "active@d" });
        let late = call(vec!["run", "advance", &world.run]);
        let is_stale = late.stderr.contains("stale_dispatch");
        assert_eq!(is_stale, verb == "resume", "{late:?}");
    }
}

#[test]
fn while_work_is_running_in_the_tree_it_is_refused() {
    let world = story();
    let own = world.cli.ok(["dispatch", "create", &world.run, "--name", "own"]);
    world.ic(&["dispatch", "start", &own, "--pid", &ic_testkit::living_process().to_string()]);
    refused_all(&world, "a", &[], "work_running");
    world.roll_back("a", &["--force"]);
}

#[test]
fn while_its_executor_lives_a_workflow_is_not_rolled_back() {
    let world = in_git();
    let home = world.cli.home().display().to_string();
    world.write(
        "flow.yaml",
        &format!("name: w\nsteps:\n  - {{id: one, phase: p, run: 'true'}}\n  - {{id: two, phase: q, run: 'echo up > {home}/up; sleep 30', compensate: skip}}\n"),
    );
    world.commit("flow");
    let mut executor = world
        .cli
        .command(["workflow", "run", "flow.yaml", "--on-failure", "stop"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("start ic");
    while !world.cli.home().join("up").exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let run = world.cli.ok(["run", "current"]);
    let world = world.with_run(run);
    let mut words = world.all("p", &["--force"]);
    words.push("--yes");
    assert_eq!(world.cli.refused(words), (Some(1), "work_running".to_owned()));
    for more in ["--dry-run", "--yes"] {
        // Also where the tree has no part in it.
        let words = ["run", "rollback", &world.run, "--to-phase", "p", "--layer=workflow,effects", "--force", more];
        assert_eq!(world.cli.refused(words), (Some(1), "work_running".to_owned()), "{more}");
    }
    assert_eq!(world.status(), "active@q");
    executor.kill().expect("end the executor");
    executor.wait().expect("wait for it");
    world.roll_back("p", &["--force"]);
    assert_eq!(world.status(), "active@p");
}

#[test]
fn a_rebase_or_a_git_under_way_is_refused_and_the_hint_leaves_git_out() {
    let world = story();
    let rebase = world.cli.root().join(".git/rebase-merge");
    std::fs::create_dir(&rebase).expect("a rebase");
    let rest = "leave git unchanged: --layer=workflow,effects,files";
    for (more, hint) in [(&[][..], format!("{rest}\"")), (&["--keep-theirs"], format!("{rest} --keep-theirs\""))] {
        let mut words = world.all("a", more);
        words.push("--yes");
        let line = refused(&world, &words, "git_in_progress");
        assert!(line.contains(&hint), "{line}");
    }
    std::fs::remove_dir(&rebase).expect("no rebase");
    let lock = world.cli.root().join(".git/index.lock");
    std::fs::write(&lock, "").expect("a lock");
    let line = refused_all(&world, "a", &[], "git_busy");
    let named = format!("when none runs here, remove what one left: rm {}; or {rest}\"", lock.display());
    assert!(line.contains(&format!("wait until git is done, or, {named}")), "{line}");
    std::fs::remove_file(&lock).expect("no lock");
    std::fs::create_dir(&rebase).expect("a rebase");
    // Who asks for git alone is not told to leave it.
    let words = ["run", "rollback", &world.run, "--to-phase", "a", "--layer=workflow,git", "--yes", "--json"];
    let line = refused(&world, &words, "git_in_progress");
    assert!(!line.contains("leave git unchanged"), "{line}");
}

#[test]
fn flags_that_would_have_no_effect_are_refused() {
    let world = story();
    let checkpoint = world.ic(&["checkpoint", "create"]);
    for words in [
        &["undo", "phase:a", "--layer=workflow", "--force", "--yes"][..],
        &["undo", "phase:a", "--layer=workflow", "--force-workers", "--yes"],
        &["undo", "phase:a", "--layer=workflow", "--keep-theirs", "--yes"],
        &["undo", &checkpoint, "--reason", "why", "--yes"],
    ] {
        assert_eq!(world.cli.refused(words), (Some(3), "usage".to_owned()), "{words:?}");
    }
}

#[test]
fn a_plan_that_the_caller_did_not_see_is_not_carried_out() {
    let world = story();
    let dry = world.cli.json(world.all("a", &["--dry-run"]));
    let hash = dry["plan_hash"].as_str().expect("a hash");
    world.write("notes/more", "since\n");
    let words = world.all("a", &["--expect-plan", hash, "--yes"]);
    refused(&world, &words, "plan_changed");
    world.effect("since", &[]);
    let words = world.all("a", &["--expect-plan", hash, "--yes"]);
    refused(&world, &words, "plan_changed");
}

#[test]
fn a_redacted_reason_is_nowhere() {
    let world = story();
    world.effect("last", &["echo the secret word >&2; exit 3"]);
    let mut words = world.all("a", &["--reason", "the secret word"]);
    words.push("--yes");
    assert_eq!(world.cli.run(words).code, Some(4));
    world.ic(&["rollback", "resume", &world.run, "--skip-step", "--yes"]);
    // One redaction takes the copies of a reason with it, so what is left is looked for again.
    let with_secret = || {
        let events = world.cli.json(["events", "tail", "--since", "0", "--limit", "500", "--json"]);
        let mut events = events.as_array().expect("events").clone().into_iter();
        events.find(|event| event.to_string().contains("secret word")).map(|event| event["seq"].to_string())
    };
    while let Some(seq) = with_secret() {
        world.ic(&["events", "redact", &seq, "--reason", "told"]);
    }
    let dump = world.cli.dump();
    for line in dump.lines().filter(|line| line.starts_with("events|") || line.starts_with("rollback")) {
        assert!(!line.contains("secret word"), "{line}");
    }
}

#[test]
fn a_backup_of_the_ledger_undoes_nothing_in_the_project_whose_ledger_it_is_a_copy_of() {
    let world = in_git().begun();
    world.write("a.txt", "one\n");
    world.advance();
    world.write("a.txt", "two\n");
    let copy = world.cli.home().join("copy.db");
    let copy = copy.to_str().expect("a plain path");
    world.ic(&["backup", "--content", copy]);
    let before = world.state();
    for last in ["--dry-run", "--yes"] {
        let outcome = world.cli.run(["undo", "phase:a", "--db", copy, last, "--json"]);
        assert_eq!(outcome.error(), "foreign_root", "{outcome:?}");
    }
    world.state().assert_is(&before, "refused");
    world.ic(&["undo", "phase:a", "--yes"]);
    assert_eq!(world.read("a.txt").as_deref(), Some("one\n"));
}

#[test]
fn where_a_project_was_moved_what_finds_nothing_says_where_it_was() {
    let world = in_git().begun();
    world.write("a.txt", "one\n");
    let id = world.ic(&["dispatch", "create", &world.run, "--name", "d"]);
    world.ic(&["dispatch", "start", &id]);
    world.write("a.txt", "two\n");
    world.ic(&["dispatch", "complete", &id]);
    let (here, there) = (world.cli.root().to_owned(), world.cli.home().join("moved"));
    std::fs::rename(&here, &there).expect("the project is moved");
    let call = |words: &[&str]| {
        let mut command = world.cli.command(words);
        CliOutcome::of(command.current_dir(&there))
    };
    for words in [&["status"][..], &["log"], &["undo", "--yes"]] {
        let outcome = call(words);
        assert!(outcome.code != Some(0), "{words:?}: {outcome:?}");
        let named = outcome.stderr.contains(here.to_str().expect("a plain path"));
        assert!(named && outcome.stderr.contains("ic checkpoint list --root"), "{words:?}: {outcome:?}");
    }
    // What it says leads on.
    let listed = call(&["run", "list", "--project", here.to_str().expect("a plain path"), "--json"]);
    assert!(listed.stdout.contains(&world.run), "{listed:?}");
    let listed = call(&["checkpoint", "list", "--root", here.to_str().expect("a plain path"), "--json"]);
    let checkpoint = listed.json()[0]["id"].as_str().expect("an id").to_owned();
    let restored = call(&["checkpoint", "restore", &checkpoint, "--into", "--yes"]);
    assert_eq!(restored.code, Some(0), "{restored:?}");
    std::fs::rename(&there, &here).expect("it is moved back");
    world.ic(&["undo", "--dry-run"]);
}
