//! Work that began before what a rollback goes back to, and worked on after it: where its files or commits went it counts no more.

use ic_testkit::TestWorld;
use serde_json::{Value, json};

use crate::project::in_git;

const GATES: &str = r#"{"c->d":[{"check":"verdict_clean"}]}"#;

/// A run in a repository that has no other file than its own, whose last gate asks for verdicts.
fn begun() -> TestWorld {
    let world = in_git();
    let run = world.ic(&["run", "create", "--goal", "g", "--phases", "a,b,c,d", "--gates", GATES]);
    world.with_run(run)
}

trait Straddling {
    fn started(&self, name: &str) -> String;
    fn advance(&self);
    /// Commits a file, and records the commit for a dispatch.
    fn committed(&self, dispatch: &str, file: &str);
    fn complete(&self, dispatch: &str);
    fn show(&self, dispatch: &str) -> Value;
    /// Whether the last gate is passed by what counts once the run is before it.
    fn gate(&self) -> Value;
}

impl Straddling for TestWorld {
    fn started(&self, name: &str) -> String {
        let id = self.ic(&["dispatch", "create", &self.run, "--name", name]);
        self.ic(&["dispatch", "start", &id]);
        id
    }

    fn advance(&self) {
        self.ic(&["run", "advance", &self.run]);
    }

    fn committed(&self, dispatch: &str, file: &str) {
        self.write(file, "work\n");
        let sha = self.commit(file);
        let report = format!("{}\n", json!({ "commit": sha, "files": [file] }));
        let recorded = self.cli.run_with_input(["dispatch", "record", dispatch, "--stdin"], report.as_bytes());
        assert_eq!(recorded.code, Some(0), "{recorded:?}");
    }

    fn complete(&self, dispatch: &str) {
        self.ic(&["dispatch", "complete", dispatch, "--verdict", "pass"]);
    }

    fn show(&self, dispatch: &str) -> Value {
        self.cli.json(["dispatch", "show", dispatch, "--json"])
    }

    fn gate(&self) -> Value {
        while self.status() != "active@c" {
            self.advance();
        }
        self.cli.run(["gate", "check", &self.run, "--json"]).json()["gate_result"].clone()
    }
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(|one| one["name"].as_str()).collect()
}

#[test]
fn work_whose_commit_goes_is_named_marked_and_counts_for_no_gate_until_that_is_undone() {
    let world = begun();
    let early = world.started("early");
    world.advance();
    world.committed(&early, "work.c");
    world.complete(&early);
    let words = ["run", "rollback", &world.run, "--to-phase", "a", "--layer=all"];
    let dry = world.cli.json([&words[..], &["--dry-run", "--json"]].concat());
    assert_eq!(names(&dry["marked_dispatches"]), ["early"], "{dry}");
    assert_eq!(dry["marked_dispatches"][0]["undone_from"], dry["cut_seq"], "{dry}");
    assert_eq!(dry["counts"]["dispatches"], 1, "{dry}");
    let text = world.ic(&[&words[..], &["--dry-run", "--format", "text"]].concat());
    assert!(text.contains("began before that and worked on after it"), "{text}");
    let hash = dry["plan_hash"].as_str().expect("a hash");
    let done = world.cli.json([&words[..], &["--yes", "--json", "--expect-plan", hash]].concat());
    assert_eq!((&done["status"], names(&done["marked_dispatches"])), (&json!("rolled_back"), vec!["early"]));
    assert_eq!(world.read("work.c"), None);
    let shown = world.show(&early);
    assert_eq!((&shown["rolled_back_by"], &shown["undone_from"]), (&done["rollback_id"], &done["cut_seq"]));
    world.ic(&["redo", done["rollback_id"].as_str().expect("an id"), "--yes"]);
    assert_eq!(world.read("work.c").as_deref(), Some("work\n"));
    assert_eq!(world.show(&early)["rolled_back_by"], Value::Null);
    assert_eq!(world.gate(), "pass");
    world.ic(&["run", "rollback", &world.run, "--to-phase", "a", "--layer=all", "--yes"]);
    assert_eq!(world.gate(), "fail");
}

#[test]
fn an_undo_names_all_whose_files_it_takes_and_none_beside_them() {
    let world = begun();
    let (form, idle, api) = (world.started("form"), world.started("idle"), world.started("api"));
    world.committed(&form, "form.c");
    world.committed(&api, "api.c");
    world.complete(&api);
    let done = world.cli.json(["undo", "--yes", "--json"]);
    assert_eq!((names(&done["marked_dispatches"]), names(&done["cancelled_dispatches"])), (vec!["api"], vec!["form"]));
    assert_eq!((world.read("form.c"), world.read("api.c")), (None, None));
    // It runs without a process that could be asked; what it reports is late.
    let late = world.cli.run(["dispatch", "complete", &form, "--verdict", "pass"]);
    assert_eq!((late.code, late.error().as_str()), (Some(1), "stale_dispatch"), "{late:?}");
    assert_eq!(world.show(&idle)["rolled_back_by"], Value::Null);
    world.ic(&["redo", "--yes"]);
    let back = world.show(&form);
    assert_eq!((&back["rolled_back_by"], &back["status"]), (&Value::Null, &json!("cancelled")));
    world.complete(&idle);
}

#[test]
fn work_that_tells_nothing_is_marked_where_the_tree_changed_while_it_was_under_way() {
    for is_seen in [true, false] {
        let world = begun();
        let early = world.started("early");
        world.advance();
        world.write("work.c", "work\n");
        if is_seen {
            world.complete(&early);
        }
        let done = world
            .cli
            .json(["run", "rollback", &world.run, "--to-phase", "a", "--layer=workflow,files", "--yes", "--json"]);
        let list = if is_seen { "marked_dispatches" } else { "cancelled_dispatches" };
        assert_eq!(names(&done[list]), ["early"], "{done}");
        assert_eq!(world.show(&early)["rolled_back_by"], done["rollback_id"]);
    }
}

#[test]
fn a_commit_that_nobody_recorded_is_of_who_was_at_work_as_it_was_made() {
    for is_seen in [true, false] {
        let world = begun();
        let early = world.started("early");
        world.advance();
        world.write("work.c", "work\n");
        world.commit("work");
        if is_seen {
            world.complete(&early);
        }
        let done = world
            .cli
            .json(["run", "rollback", &world.run, "--to-phase", "a", "--layer=workflow,git", "--yes", "--json"]);
        assert_eq!(world.show(&early)["rolled_back_by"], done["rollback_id"], "{done}");
    }
}

#[test]
fn work_that_did_nothing_after_the_cut_stays_as_it_is() {
    let world = begun();
    let (before, asleep) = (world.started("before"), world.started("asleep"));
    world.committed(&before, "before.c");
    world.complete(&before);
    world.advance();
    let after = world.started("after");
    world.committed(&after, "after.c");
    world.complete(&after);
    let done = world.cli.json(["run", "rollback", &world.run, "--to-phase", "a", "--layer=all", "--yes", "--json"]);
    assert_eq!(names(&done["marked_dispatches"]), ["after"], "{done}");
    assert_eq!(names(&done["cancelled_dispatches"]), Vec::<&str>::new(), "{done}");
    for one in [&before, &asleep] {
        assert_eq!(world.show(one)["rolled_back_by"], Value::Null);
    }
    assert_eq!(world.text("before.c"), "work\n");
    world.complete(&asleep);
}

#[test]
fn a_rollback_of_the_record_marks_work_whose_commits_are_to_be_reverted() {
    let world = begun();
    let (early, quiet) = (world.started("early"), world.started("quiet"));
    world.advance();
    world.committed(&early, "work.c");
    world.complete(&early);
    world.complete(&quiet);
    let done = world.cli.json(["run", "rollback", &world.run, "--to-phase", "a", "--json"]);
    assert_eq!(names(&done["marked_dispatches"]), ["early"], "{done}");
    assert_eq!(world.show(&quiet)["rolled_back_by"], Value::Null);
    assert_eq!(world.text("work.c"), "work\n");
}

#[test]
fn what_it_did_before_stays_its_work_and_can_be_undone_next() {
    let world = begun();
    let early = world.started("early");
    world.write("first.c", "first\n");
    let later = world.started("later");
    world.write("second.c", "second\n");
    world.complete(&early);
    world.complete(&later);
    let done = world.cli.json(["undo", "--yes", "--json"]);
    assert_eq!(names(&done["marked_dispatches"]), ["early", "later"], "{done}");
    assert_eq!((world.text("first.c").as_str(), world.read("second.c")), ("first\n", None));
    let again = world.cli.json(["undo", "--yes", "--json"]);
    assert_eq!(again["point"], format!("dispatch:{}", &early[early.len() - 8..]), "{again}");
    assert_eq!(world.read("first.c"), None);
    let nothing = world.cli.run(["undo", "--yes"]);
    assert_eq!((nothing.code, nothing.error().as_str()), (Some(1), "nothing_to_undo"), "{nothing:?}");
}

#[test]
fn a_step_that_ran_beside_the_one_that_is_rolled_back_to_runs_again() {
    let world = in_git();
    world.write(
        "w.yaml",
        "name: w
steps:
  - {id: one, phase: p, run: 'touch ../one; until test -e ../two; do sleep 0.02; done; echo 1 > one.txt'}
  - {id: two, phase: p, needs: [], run: 'touch ../two; echo 2 > two.txt'}
",
    );
    world.commit("w");
    world.ic(&["workflow", "run", "w.yaml", "--jobs", "2"]);
    let run = world.newest_run();
    let world = world.with_run(run);
    let done = world.cli.json(["undo", "step:two", "--yes", "--json"]);
    assert_eq!(names(&done["marked_dispatches"]), ["one", "two"], "{done}");
    assert_eq!((world.read("one.txt"), world.read("two.txt")), (None, None));
    world.ic(&["workflow", "resume", "@", "--yes"]);
    assert_eq!((world.text("one.txt").as_str(), world.text("two.txt").as_str()), ("1\n", "2\n"));
}

#[test]
fn back_to_a_point_the_phases_that_are_left_are_told_everywhere() {
    let world = begun();
    let early = world.started("early");
    world.complete(&early);
    world.advance();
    world.advance();
    let point = format!("dispatch:{early}");
    let left = json!(["b", "c"]);
    for layers in [&[][..], &["--layer=all", "--yes"]] {
        let words = [&["run", "rollback", &world.run, "--to", &point, "--json"][..], layers].concat();
        let dry = world.cli.json([&words[..], &["--dry-run"]].concat());
        let done = world.cli.json(&words);
        for said in [&dry, &done] {
            assert_eq!((&said["rolled_back_phases"], &said["counts"]["phases"]), (&left, &json!(2)), "{said}");
        }
        let events = world.cli.json(["run", "events", &world.run, "--json"]);
        let event = events.as_array().into_iter().flatten().rfind(|event| event["kind"] == "rollback");
        let told = &event.expect("the rollback")["payload"];
        assert_eq!((&told["rolled_back_phases"], &told["counts"]["phases"]), (&left, &json!(2)), "{told}");
        world.ic(&["redo", done["rollback_id"].as_str().expect("an id"), "--yes"]);
    }
}

#[test]
fn the_code_of_a_phase_is_what_was_done_since_the_run_came_to_it() {
    let world = begun();
    let attempt = |name: &str| {
        let dispatch = world.started(name);
        world.committed(&dispatch, name);
        world.complete(&dispatch);
        world.head()
    };
    let stands = attempt("stands");
    world.advance();
    attempt("v1");
    world.ic(&["run", "rollback", &world.run, "--to-phase", "a"]);
    world.git(&["revert", "--no-edit", "HEAD"]);
    world.advance();
    let second = attempt("v2");
    world.ic(&["run", "rollback", &world.run, "--to-phase", "a"]);
    let code = |phase: &str| {
        let words = ["run", "rollback", &world.run, "--layer=code", "--phase", phase, "--json"];
        world.cli.json(words)["revert_order"].clone()
    };
    assert_eq!((code("b"), code("a")), (json!([second]), json!([stands])));
}

#[test]
fn where_git_is_in_no_checkpoint_its_layer_is_not_claimed() {
    let world = in_git();
    world.write(".ic.yaml", "rollback: {checkpointing: {include-git: false}}\n");
    world.commit("configured");
    let run = world.ic(&["run", "create", "--goal", "g", "--phases", "a,b"]);
    let world = world.with_run(run);
    world.write("z", "z\n");
    let head = world.commit("z");
    let refused = world.cli.run(["run", "rollback", &world.run, "--to", "created", "--layer=workflow,git", "--yes"]);
    assert_eq!((refused.code, refused.error().as_str()), (Some(1), "no_checkpoint"), "{refused:?}");
    let done = world.cli.json(["undo", "created", "--run", &world.run, "--yes", "--json"]);
    assert_eq!(done["layers"], json!(["workflow", "effects", "files"]), "{done}");
    assert_eq!(done["warnings"][0]["code"], "git_stays", "{done}");
    assert_eq!((world.head(), world.read("z")), (head, None));
}
