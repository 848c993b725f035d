//! Undoing rollbacks: what counts again, what is named, and what refuses it.

use ic_testkit::TestWorld;
use serde_json::json;

use crate::project::{Work as _, asked, assert_said_alike, in_git};
use crate::story::{story, story_with_rows};

/// Calls that must be refused with this code, changing nothing, and their previews likewise; returns the error line.
fn refused(world: &TestWorld, words: &[&str], code: &str) -> String {
    let (dump, before) = (world.cli.dump(), world.state());
    let preview = words.contains(&"undo").then(|| {
        let words = words.iter().map(|word| if *word == "--yes" { "--dry-run" } else { word });
        world.cli.run(words)
    });
    assert_eq!(world.cli.dump(), dump, "the preview of {words:?}");
    let outcome = world.cli.run(words);
    assert_eq!((outcome.code, outcome.error().as_str()), (Some(1), code), "{words:?}: {outcome:?}");
    assert_eq!(without_owners(&world.cli.dump()), without_owners(&dump), "{words:?}");
    world.state().assert_is(&before, &format!("{words:?}"));
    if let Some(preview) = preview {
        assert_said_alike(&preview, &outcome);
    }
    outcome.stderr
}

/// Who last had the run is no part of what a refusal may not change.
fn without_owners(dump: &str) -> String {
    dump.lines().filter(|line| !line.starts_with("run_owners|")).collect::<Vec<_>>().join("\n")
}

fn id_of(report: &serde_json::Value) -> String {
    report["rollback_id"].as_str().expect("an id").to_owned()
}

#[test]
fn the_preview_of_an_undo_is_the_undo() {
    let world = story_with_rows();
    let id = id_of(&world.roll_back("a", &[]));
    let undo = ["redo", &id, "--without-effects"];
    let (dump, before) = (world.cli.dump(), world.state());
    let preview = world.cli.json(undo.iter().chain(&["--dry-run"]));
    assert_eq!(world.cli.dump(), dump);
    world.state().assert_is(&before, "previewed");
    assert_eq!((&preview["dry_run"], &preview["status"]), (&json!(true), &json!("done")));
    let text = world.cli.ok(undo.iter().chain(&["--dry-run", "--format=text"]));
    // What it says to do does exactly that.
    let hash = preview["undo_plan_hash"].as_str().expect("a hash");
    assert!(
        text.contains("would undo") && text.contains(&format!("exactly this plan: --expect-plan {hash}")),
        "{text}"
    );
    let undone = world.cli.json(undo.iter().chain(&["--yes", "--expect-plan", hash]));
    assert_eq!(undone["dry_run"], false);
    for part in ["data", "effects_left", "dispatches_left", "agents_left", "resume"] {
        assert_eq!(preview[part], undone[part], "{part}");
    }
    let changes = |report: &serde_json::Value| -> Vec<serde_json::Value> {
        report["files"].as_array().expect("reports").iter().map(|one| one["changes"].clone()).collect()
    };
    assert!(changes(&undone).iter().any(|one| one.as_array().is_some_and(|all| !all.is_empty())), "{undone}");
    assert_eq!(changes(&preview), changes(&undone));
    let again = world.cli.refused(undo.iter().chain(&["--dry-run"]));
    assert_eq!(again, (Some(1), "nothing_to_undo".to_owned()));
}

#[test]
fn undone_the_run_counts_again_and_what_stays_undone_is_named() {
    let world = story();
    let before = world.state();
    let id = id_of(&world.roll_back("a", &["--reason", "wrong"]));
    let line = refused(&world, &["redo", &id, "--yes", "--json"], "effects_undone");
    assert!(line.contains("mail, pay, book") || line.contains("book, pay, mail"), "{line}");
    let report = world.cli.json(["redo", &id, "--without-effects", "--yes", "--json"]);
    assert_eq!(report["status"], "undone");
    assert_eq!(report["effects_left"].as_array().map(Vec::len), Some(3));
    assert_eq!(report["dispatches_left"].as_array().map(Vec::len), Some(1));
    assert_eq!(report["agents_left"].as_array().map(Vec::len), Some(1));
    world.state().assert_outside_is(&before, "undone");
    assert_eq!(world.status(), "active@d");
    for table in ["dispatches", "run_artifacts", "run_agents", "run_skips", "compensations"] {
        let marked = asked(&world.cli, &format!("SELECT count(*) FROM {table} WHERE rolled_back_by IS NOT NULL"));
        assert_eq!(marked, 0, "{table}");
    }
    refused(&world, &["redo", &id, "--without-effects", "--yes", "--json"], "nothing_to_undo");
}

#[test]
fn what_was_changed_since_is_named_and_the_hint_leads_on() {
    let world = story();
    let before = world.state();
    let id = id_of(&world.roll_back("a", &[]));
    world.write("kept/plan.md", "untouched by the rollback\n");
    world.write("README", "mine\n");
    let undo = ["redo", &id, "--without-effects", "--yes", "--json"];
    let line = refused(&world, &undo, "file_conflict");
    assert!(line.contains("README") && !line.contains("kept/plan.md"), "{line}");
    world.write("src/a.rs", "mine\n");
    let line = refused(&world, &undo, "file_conflict");
    assert!(line.contains("changed since: README, and 1 more"), "{line}");
    world.remove("src/a.rs");
    let hint = line.split("ic checkpoint restore ").nth(1).expect("a command");
    let restored = hint.split(' ').next().expect("an id");
    world.write("kept/plan.md", "plan\n");
    world.ic(&["checkpoint", "restore", restored, "--yes"]);
    world.ic(&undo);
    world.state().assert_outside_is(&before, "undone");
}

#[test]
fn a_refused_redo_shows_what_it_would_restore_with_all_that_refuses_it() {
    let world = story();
    world.roll_back("a", &[]);
    world.write("README", "mine\n");
    let (dump, before) = (world.cli.dump(), world.state());
    let preview = world.cli.run(["redo", "--dry-run", "--json"]);
    assert_eq!(preview.code, Some(1), "{preview:?}");
    let plan = preview.json();
    let told = |key: &str| -> Vec<serde_json::Value> {
        plan["refusals"].as_array().expect("a list").iter().map(|one| one[key].clone()).collect()
    };
    assert_eq!(told("code"), ["effects_undone", "file_conflict"], "{plan}");
    assert_eq!(told("flag"), [json!("--without-effects"), json!(null)]);
    assert_eq!((&plan["refusal"]["code"], &plan["undo_plan_hash"]), (&told("code")[0], &json!(null)));
    let paths: Vec<&str> = plan["files"][0]["changes"]
        .as_array()
        .expect("changes")
        .iter()
        .map(|one| one["path"].as_str().expect("a path"))
        .collect();
    assert!(paths.contains(&"README") && paths.len() > 1, "{plan}");
    let shown = world.cli.run(["redo", "--dry-run", "--format=text"]);
    assert_eq!(shown.code, Some(1));
    for part in ["would undo", "README", "(effects_undone, exit 1)", "(file_conflict, exit 1)"] {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }
    assert!(!shown.stdout.contains("--expect-plan"), "{}", shown.stdout);
    assert_eq!(world.cli.dump(), dump);
    world.state().assert_is(&before, "previewed");
}

#[test]
fn a_commit_since_stands_against_it() {
    let world = story();
    let id = id_of(&world.roll_back("a", &[]));
    let undo = ["redo", &id, "--without-effects", "--yes", "--json"];
    let short = |sha: &str| sha[..8].to_owned();
    let branch = world.git(&["branch", "--show-current"]);
    let left = short(&world.git(&["rev-parse", "HEAD"]));
    let sha = world.commit("mine");
    let line = refused(&world, &undo, "file_conflict");
    let moved = format!("HEAD, which is at {branch} ({}) and was at {branch} ({left}).", short(&sha));
    assert!(line.contains(&moved) && line.contains("\"paths\":[\".git\"]"), "{moved}: {line}");
    assert_eq!(world.git(&["rev-parse", "HEAD"]), sha);
    world.git(&["reset", "-q", "--hard", "HEAD~1"]);
    world.git(&["switch", "-q", "-c", "other"]);
    let line = refused(&world, &undo, "branch_switched");
    assert!(line.contains(&format!("moved {branch}, and other is checked out")), "{line}");
    world.git(&["switch", "-q", &branch]);
    world.write("README", "for later\n");
    world.git(&["stash", "-q"]);
    let line = refused(&world, &undo, "file_conflict");
    assert!(line.contains("changed since: the stash."), "{line}");
}

#[test]
fn whatever_the_run_did_since_stands_against_it() {
    for words in [
        vec!["run", "advance"],
        vec!["run", "cancel"],
        vec!["dispatch", "create"],
        vec!["run", "rollback", "--to-phase", "a", "--include-target"],
    ] {
        let world = story();
        let id = id_of(&world.cli.json(["run", "rollback", &world.run, "--to-phase", "b", "--json"]));
        let call: Vec<&str> =
            words[..2].iter().copied().chain([world.run.as_str()]).chain(words[2..].iter().copied()).collect();
        world.ic(&call);
        let line = refused(&world, &["redo", &id, "--yes", "--json"], "run_changed");
        assert!(line.contains("changed since the rollback"), "{words:?}: {line}");
    }
}

#[test]
fn what_another_run_recorded_since_is_named_and_the_hint_leads_on() {
    for is_changed in [false, true] {
        let world = story();
        let before = world.state();
        let id = id_of(&world.roll_back("a", &[]));
        let other = world.cli.ok(["run", "create", "--goal", "other", "--phases", "x,y"]);
        let dispatch = world.cli.ok(["dispatch", "create", &other]);
        if is_changed {
            world.write("README", "theirs\n");
        }
        world.ic(&["dispatch", "record", &dispatch, "--file", "README"]);
        let undo = ["redo", &id, "--without-effects", "--yes", "--json"];
        let line = refused(&world, &undo, "file_conflict");
        assert!(line.contains("README"), "{line}");
        let hint = line.split("ic checkpoint restore ").nth(1).expect("a command");
        let safety = hint.split(' ').next().expect("an id");
        assert!(hint.contains("--force --yes"), "{line}");
        world.ic(&["checkpoint", "restore", safety, "--force", "--yes"]);
        world.ic(&undo);
        world.state().assert_outside_is(&before, "undone");
        assert_eq!(world.status(), "active@d");
    }
}

#[test]
fn rollbacks_are_undone_newest_first() {
    let world = story();
    let start = world.state();
    let first = id_of(&world.roll_back("c", &[]));
    let between = world.state();
    let second = id_of(&world.roll_back("a", &[]));
    let line = refused(&world, &["redo", &first, "--without-effects", "--yes", "--json"], "run_changed");
    let named = format!("undo that first: ic redo {} --yes", &second[second.len() - 8..]);
    assert!(line.contains(&named), "{line}");
    world.ic(&["redo", &second, "--without-effects", "--yes"]);
    world.state().assert_outside_is(&between, "the second undone");
    assert_eq!(world.status(), "active@c");
    world.ic(&["redo", &first, "--without-effects", "--yes"]);
    world.state().assert_outside_is(&start, "both undone");
    assert_eq!(world.status(), "active@d");
}

#[test]
fn what_a_later_rollback_did_counts_as_nothing_once_it_is_undone_and_what_was_done_since_counts() {
    let world = story();
    let repaired = world.cli.home().join("repaired").display().to_string();
    // The later one stops at an effect and is resumed: others are undone before and after that.
    world.effect("stays", &[]);
    world.effect("fails", &[&format!("test -e {repaired} || exit 3")]);
    world.effect("last", &[]);
    let first = id_of(&world.cli.json(["run", "rollback", &world.run, "--to-phase", "c", "--json"]));
    let stopped = world.cli.run(world.all("b", &["--yes"]));
    assert_eq!(stopped.code, Some(4), "{stopped:?}");
    let later = id_of(&stopped.json());
    std::fs::write(&repaired, "").expect("repair");
    world.ic(&["rollback", "resume", &world.run, "--yes"]);
    world.ic(&["redo", &later, "--without-effects", "--yes"]);
    let undo = ["redo", &first, "--yes", "--json"];
    world.ic(&["redo", &first, "--dry-run"]);
    world.effect("declared since", &[]);
    let line = refused(&world, &undo, "run_changed");
    assert!(line.contains("changed since the rollback: compensation_registered"), "{line}");
}

#[test]
fn what_is_not_done_cannot_be_undone_and_the_hint_leads_on() {
    let world = story();
    world.effect("fails", &["exit 3"]);
    let stopped = world.cli.run(world.all("a", &["--yes"]));
    assert_eq!(stopped.code, Some(4), "{stopped:?}");
    let id = id_of(&stopped.json());
    let undo = ["redo", &id, "--yes", "--json"];
    let line = refused(&world, &undo, "rolling_back");
    let command = format!("abort it: ic rollback abort {} --yes", &id[id.len() - 8..]);
    assert!(line.contains(" is stopped; ") && line.contains(&command), "{line}");
    world.ic(&["rollback", "abort", &id[id.len() - 8..], "--yes"]);
    let line = refused(&world, &undo, "nothing_to_undo");
    assert!(line.contains(" is aborted; ") && line.contains("see: ic rollback list"), "{line}");
}

#[test]
fn where_the_run_went_on_the_hint_names_what_still_can_be_done() {
    let world = story();
    let undo = |id: &str| {
        let words = ["redo", id, "--without-effects", "--yes", "--json"];
        refused(&world, &words, "run_changed")
    };
    let id = id_of(&world.roll_back("b", &[]));
    world.advance();
    world.roll_back("b", &[]);
    // To roll the advance back is no way: it happened.
    let line = undo(&id);
    assert!(line.contains("cannot be undone any more") && !line.contains("ic rollback"), "{line}");
    let command = line.split("ic checkpoint restore ").nth(1).expect("a command");
    let safety = command.split(' ').next().expect("an id");
    world.ic(&["checkpoint", "restore", safety, "--dry-run"]);
    world.ic(&["checkpoint", "restore", safety, "--yes"]);
    assert_eq!(world.read("src/a.rs").as_deref(), Some("not committed\n"));
}

#[test]
fn late_reports_do_not_stand_against_it() {
    let world = story();
    let pending = world.cli.json(["dispatch", "list", &world.run, "--status", "pending", "--json"])[0]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let id = id_of(&world.roll_back("a", &[]));
    world.ic(&["dispatch", "record", &pending, "--commit", "abcdef1"]);
    world.ic(&["dispatch", "tokens", &pending, "--in", "1", "--out", "2"]);
    world.ic(&["checkpoint", "create"]);
    world.ic(&["redo", &id, "--without-effects", "--yes"]);
    assert_eq!(world.status(), "active@d");
}

#[test]
fn a_rollback_of_the_ledger_alone_leaves_the_tree_alone() {
    let world = story();
    let before = world.state();
    let id = id_of(&world.cli.json(["run", "rollback", &world.run, "--to-phase", "a", "--json"]));
    world.write("README", "mine\n");
    let report = world.cli.json(["redo", &id, "--yes", "--json"]);
    assert_eq!((&report["files"], &report["effects_left"]), (&json!([]), &json!([])));
    assert_eq!(world.read("README").as_deref(), Some("mine\n"));
    world.write("README", "changed\n");
    world.state().assert_outside_is(&before, "undone");
    assert_eq!(world.status(), "active@d");
}

#[test]
fn a_completed_run_is_completed_again() {
    let world = in_git().begun();
    world.advance();
    world.write("x", "x\n");
    for _ in 0..4 {
        world.advance();
    }
    assert_eq!(world.status(), "completed@f");
    let before = world.state();
    let id = id_of(&world.roll_back("a", &[]));
    assert_eq!((world.status(), world.read("x")), ("active@a".to_owned(), None));
    world.ic(&["redo", &id, "--yes"]);
    world.state().assert_is(&before, "undone");
}

#[test]
fn effects_that_were_undone_by_hand_before_are_not_the_rollbacks() {
    let world = story();
    world.ic(&["compensation", "run", &world.run, "--step", "reserve", "--yes"]);
    world.ic(&["compensation", "run", &world.run, "--to-phase", "a", "--yes"]);
    let id = id_of(&world.roll_back("a", &[]));
    // `reserve` was begun before the cut: it is no part of the rollback.
    let marked = "SELECT count(*) FROM compensations WHERE rolled_back_by IS NOT NULL";
    assert_eq!(asked(&world.cli, marked), 3);
    world.ic(&["redo", &id, "--yes"]);
    assert_eq!(asked(&world.cli, marked), 0);
}

#[test]
fn undoing_twice_at_once_happens_once() {
    let world = story();
    let id = id_of(&world.roll_back("a", &[]));
    let undo = ["redo", &id, "--without-effects", "--yes", "--json"];
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..4).map(|_| scope.spawn(|| world.cli.run(undo))).collect();
        calls.into_iter().map(|call| call.join().expect("a call")).collect()
    });
    let done = outcomes.iter().filter(|outcome| outcome.code == Some(0)).count();
    assert_eq!(done, 1, "{outcomes:?}");
    for outcome in outcomes.iter().filter(|outcome| outcome.code != Some(0)) {
        assert!(["work_running", "nothing_to_undo"].contains(&outcome.error().as_str()), "{outcome:?}");
    }
    assert_eq!(asked(&world.cli, "SELECT epoch FROM runs"), 2);
}

#[test]
fn a_second_rollback_is_undone_by_what_it_restored_itself_and_nothing_else_is_touched() {
    let world = story();
    let first = id_of(&world.roll_back("a", &[]));
    world.ic(&["redo", &first, "--without-effects", "--yes"]);
    world.write("src/a.rs", "newer\n");
    let before = world.state();
    let second = id_of(&world.roll_back("a", &[]));
    world.write("mine", "since\n");
    world.ic(&["redo", &second, "--without-effects", "--yes"]);
    assert_eq!(world.read("mine").as_deref(), Some("since\n"));
    world.remove("mine");
    world.state().assert_outside_is(&before, "the second undone");
    // To the checkpoints it is a restore that was undone, too.
    let nothing = (Some(1), "nothing_to_undo".to_owned());
    assert_eq!(world.cli.refused(["redo", "--dry-run"]), nothing);
    let again = world.cli.json(["undo", &world.cli.last_restore(), "--dry-run", "--json"]);
    assert_eq!(again["changes"].as_array().map(Vec::is_empty), Some(false), "{again}");
}

#[test]
fn what_is_at_work_in_the_tree_stands_against_it_and_the_hint_can_be_followed() {
    let world = story();
    let id = id_of(&world.roll_back("a", &[]));
    let dispatch = crate::interrupted::other_at_work(&world);
    let undo = ["redo", &id, "--without-effects", "--yes", "--json"];
    let line = refused(&world, &undo, "work_running");
    assert!(line.contains("end it first; then call again"), "{line}");
    world.ic(&["dispatch", "complete", &dispatch]);
    let lock = world.cli.root().join(".git/index.lock");
    std::fs::write(&lock, "").expect("a lock");
    let line = refused(&world, &undo, "git_busy");
    assert!(line.contains("wait until git is done"), "{line}");
    std::fs::remove_file(&lock).expect("no lock");
    world.ic(&undo);
    assert_eq!(world.status(), "active@d");
}

#[test]
fn every_verb_that_takes_a_rollback_takes_its_run() {
    let world = story();
    let id = id_of(&world.roll_back("a", &[]));
    let shown = world.cli.json(["rollback", "show", "@", "--json"]);
    assert_eq!(shown["id"], id.as_str());
    let preview = world.cli.json(["redo", "@", "--without-effects", "--dry-run", "--json"]);
    assert_eq!(preview["id"], id.as_str());
    let undone = world.cli.json(["redo", "@", "--without-effects", "--yes", "--json"]);
    assert_eq!((&undone["id"], &undone["status"]), (&json!(id), &json!("undone")));
    assert_eq!(world.status(), "active@d");
    // Where no run is open, that is what is said.
    world.ic(&["run", "cancel", &world.run]);
    for verb in ["rollback show", "redo", "rollback resume", "rollback abort"] {
        let outcome = world.cli.run(verb.split(' ').chain(["@"]));
        assert_eq!((outcome.code, outcome.error().as_str()), (Some(3), "run_not_found"), "{outcome:?}");
        assert!(outcome.stderr.contains("has no active run"), "{outcome:?}");
    }
}

#[test]
fn an_undo_of_the_tree_alone_says_that_the_rollback_stands() {
    let world = story();
    let id = id_of(&world.roll_back("a", &[]));
    let warned = |report: &serde_json::Value| {
        let all = report["warnings"].as_array().expect("warnings");
        let found = all.iter().find(|one| one["code"] == "rollback_stands").expect("the warning");
        let message = found["message"].as_str().expect("a text").to_owned();
        let verb = format!("ic redo {} --yes", &id[id.len() - 8..]);
        assert!(message.contains("workflow, effects stay") && message.ends_with(&verb), "{message}");
    };
    let restore = world.cli.last_restore();
    warned(&world.cli.json(["redo", &restore, "--dry-run", "--json"]));
    warned(&world.cli.json(["redo", &restore, "--yes", "--json"]));
    assert_eq!(world.status(), "active@a", "the other layers stay");
}

#[test]
fn a_redo_of_the_tree_alone_says_that_the_rollback_was_undone() {
    let world = story();
    let id = id_of(&world.roll_back("a", &[]));
    world.ic(&["redo", &id, "--without-effects", "--yes"]);
    let before = world.status();
    let restore = world.cli.last_restore();
    for how in ["--dry-run", "--yes"] {
        let report = world.cli.json(["undo", &restore, how, "--json"]);
        let all = report["warnings"].as_array().expect("warnings");
        let found = all.iter().find(|one| one["code"] == "rollback_undone").expect("the warning");
        let message = found["message"].as_str().expect("a text");
        assert!(message.contains("was undone: workflow, effects stay as they are"), "{message}");
    }
    assert_eq!(world.status(), before, "the other layers stay");
}

/// After a crash a person has the rollback alone to look at.
#[test]
fn a_rollback_that_is_shown_names_the_command_that_brings_it_back() {
    let world = story();
    let before = world.state();
    world.roll_back("a", &[]);
    let way = |shown: &str| {
        let line = shown.lines().find_map(|line| line.strip_prefix("to bring it back: ic "));
        line.map(|words| words.split(' ').map(str::to_owned).collect::<Vec<_>>())
    };
    let words = way(&world.cli.ok(["rollback", "show", "@", "--format=text"])).expect("an undo");
    world.cli.ok(&words);
    world.state().assert_outside_is(&before, "restored");
    assert_eq!(world.status(), "active@d");
    let shown = || world.cli.ok(["rollback", "show", "@", "--format=text"]);
    assert_eq!(way(&shown()), None, "{}", shown());
    // Where the run went on since, the command would be refused.
    world.roll_back("a", &[]);
    assert!(way(&shown()).is_some(), "{}", shown());
    world.ic(&["run", "advance", &world.run]);
    assert_eq!(way(&shown()), None, "{}", shown());
}

/// As what is checked out and what lies in the stash.
#[test]
fn what_was_staged_since_refuses_a_redo() {
    let world = in_git().begun();
    world.write("b", "b\n");
    world.commit("base");
    world.advance();
    world.write("x", "x\n");
    world.git(&["add", "x"]);
    world.cli.ok(["undo", "created", "--yes"]);
    world.write("b", "staged\n");
    world.git(&["add", "b"]);
    world.write("b", "b\n");
    let error = refused(&world, &["redo", "--yes"], "file_conflict");
    assert!(error.contains("changed since: what is staged"), "{error}");
    assert_eq!(world.git(&["show", ":b"]), "staged");
    world.git(&["reset", "-q", "b"]);
    world.cli.ok(["redo", "--yes"]);
    assert_eq!(world.git(&["diff", "--cached", "--name-only"]), "x");
}
