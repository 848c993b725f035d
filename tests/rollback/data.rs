//! The layer `data`: which rows are the run's, where they went back to, and how they come back.

use std::os::unix::process::ExitStatusExt;

use ic_testkit::TestWorld;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::project::{WHOLE, Work as _, in_git};
use crate::rows::Rows as _;
use crate::story::{story, story_with_rows};

/// A call that must be refused with this code, changing nothing; returns the error line.
fn refused(world: &TestWorld, words: &[&str], code: &str) -> String {
    let before = world.state();
    let outcome = world.cli.run(words);
    assert_eq!((outcome.code, outcome.error().as_str()), (Some(1), code), "{words:?}: {outcome:?}");
    world.state().assert_is(&before, &format!("{words:?}"));
    outcome.stderr
}

fn refused_all(world: &TestWorld, more: &[&str], code: &str) -> String {
    refused(world, &world.all("a", &[more, &["--dry-run"][..]].concat()), code);
    refused(world, &world.all("a", &[more, &["--yes"][..]].concat()), code)
}

/// The key of the task whose key begins so.
pub(crate) fn task_named(world: &TestWorld, task: &str) -> String {
    let sql = "SELECT task_id FROM tasks WHERE task_id LIKE ?1 || ' %'";
    world.connect().query_row(sql, [task], |row| row.get(0)).expect("a task")
}

/// A run at `b` with rows from before and after the cut.
fn moved(world: TestWorld) -> TestWorld {
    let world = world.begun();
    world.task("before");
    world.log("after the task, before the cut");
    world.ic(&["run", "advance", &world.run, "--no-checkpoint"]);
    world.task("since");
    world.log("since");
    world
}

const DATA: [&str; 3] = ["run", "rollback", "--layer=workflow,data"];

fn roll_back(world: &TestWorld, more: &[&str]) -> Value {
    let words: Vec<&str> = [&DATA[..], &[&world.run, "--to-phase", "a", "--yes", "--json"], more].concat();
    let report = world.cli.json(words);
    assert_eq!(report["status"], "rolled_back", "{report}");
    report
}

#[test]
fn every_advance_records_where_the_rows_are_also_without_a_checkpoint() {
    let world = moved(in_git().with_rows());
    let before = world.rows();
    let report = roll_back(&world, &[]);
    assert_eq!(report["data"]["affected_row_counts"], json!({ "requirements": 2, "tasks": 1, "logs": 1 }));
    let rows = world.rows();
    assert!(rows.contains("after the task, before the cut") && !rows.contains("since"), "{rows}");
    let id = report["rollback_id"].as_str().expect("an id");
    let undone = world.cli.json(["redo", id, "--yes", "--json"]);
    assert_eq!(undone["data"]["restored_row_counts"], json!({ "logs": 1, "tasks": 1, "requirements": 2 }));
    assert_eq!(world.rows(), before);

    // And where the configuration wants no checkpoints at all.
    let world = in_git().with_rows();
    let config = world.read(".ic.yaml").expect("the configuration");
    world.write(".ic.yaml", &format!("rollback: {{enabled: false}}\n{config}"));
    let world = moved(world);
    roll_back(&world, &[]);
    assert!(!world.rows().contains("since"), "{}", world.rows());
}

#[test]
fn a_run_that_began_without_rows_goes_back_to_none() {
    let world = in_git().with_rows().begun();
    world.task("first");
    roll_back(&world, &["--include-target"]);
    assert_eq!(world.rows(), "");
}

#[test]
fn rows_that_another_run_may_have_written_are_refused_or_forced() {
    let world = story_with_rows();
    let other = world.ic(&["run", "create", "--goal", "other", "--phases", "x,y"]);
    let line = refused_all(&world, &[], "row_conflict");
    assert!(line.contains(&other[other.len() - 8..]) && line.contains("--force-files"), "{line}");
    assert!(line.contains("leave the layer data out (--layer=workflow,effects,files,git);"), "{line}");
    let without = ["run", "rollback", &world.run, "--to-phase", "a", "--layer=workflow,effects,files,git"];
    world.ic(&[&without[..], &["--dry-run"]].concat());
    world.roll_back("a", &["--force"]);
    assert!(!world.rows().contains("built"), "{}", world.rows());

    // One that was over before the cut wrote nothing.
    let world = in_git().with_rows();
    let other = world.ic(&["run", "create", "--goal", "other", "--phases", "x,y"]);
    world.ic(&["run", "cancel", &other]);
    let world = world.begun();
    world.advance();
    world.task("since");
    world.roll_back("a", &[]);
    assert_eq!(world.rows(), "");
}

#[test]
fn the_database_of_the_cut_or_none() {
    let world = story_with_rows();
    let config = world.read(".ic.yaml").expect("the configuration");
    std::fs::copy(world.cli.root().join("data/app.db"), world.cli.root().join("data/new.db")).expect("a copy");
    world.write(".ic.yaml", &config.replace("data/app.db", "data/new.db"));
    let line = refused_all(&world, &["--force"], "no_checkpoint");
    assert!(line.contains("data/app.db, not") && line.contains("data/new.db"), "{line}");

    let world = story();
    let world = world.with_rows();
    let line = refused_all(&world, &["--force"], "no_checkpoint");
    assert!(line.contains("The position of the state database was not recorded"), "{line}");
    assert!(line.contains("(--layer=workflow,effects,files,git)"), "{line}");

    // Where nothing says any more that there is one, its rows stay, which is said.
    let world = story_with_rows();
    world.remove(".ic.yaml");
    let plan = world.cli.json(world.all("a", &["--dry-run"]));
    assert_eq!(plan["warnings"][0]["code"], "rows_stay", "{plan}");
    let named = world.cli.run([&DATA[..], &[&world.run, "--to-phase", "a", "--dry-run", "--json"]].concat());
    assert!(named.stderr.contains("or leave the layer data out (--layer=workflow)"), "{named:?}");
}

#[test]
fn while_a_rewind_of_the_database_is_unfinished_it_is_refused() {
    let world = story_with_rows();
    let config = world.read(".ic.yaml").expect("the configuration");
    world.write(".ic.yaml", &format!("{config}  vectors: {{exec: [sh, -c, exit 3]}}\n"));
    let task = task_named(&world, "planned");
    let outcome = world.cli.run(["rewind", "to", &task, "--no-git", "--yes"]);
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    world.write(".ic.yaml", &config);
    let line = refused_all(&world, &[], "not_finished");
    assert!(line.contains("ic rewind resume"), "{line}");
}

/// Going back, the tree takes the configuration with it.
#[test]
fn the_configuration_of_the_beginning_serves_to_the_end() {
    let world = in_git().with_rows().begun();
    world.task("before");
    world.advance();
    world.task("since");
    let before = world.state();
    world.effect("flaky", &["test -e .ic.yaml || exit 3"]);
    let id = roll_back_all(&world);
    world.remove(".ic.yaml");
    let undone = world.cli.run(["redo", &id, "--without-effects", "--yes", "--json"]);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    world.write(".ic.yaml", before.tree[std::path::Path::new(".ic.yaml")].split_once(": ").expect("a file").1);
    world.state().assert_outside_is(&before, "undone without a configuration");
}

fn roll_back_all(world: &TestWorld) -> String {
    world.roll_back("a", &[])["rollback_id"].as_str().expect("an id").to_owned()
}

#[test]
fn a_row_that_was_written_since_stands_against_an_undo_and_nothing_is_changed() {
    let world = story_with_rows();
    let key = task_named(&world, "built");
    let id = roll_back_all(&world);
    let row = (&key, 1_800_000_000_000_i64);
    world.connect().execute("INSERT INTO tasks VALUES (?1, 'mine', ?2)", row).expect("a row");
    let undo = ["redo", &id, "--without-effects", "--yes", "--json"];
    let line = refused(&world, &undo, "row_conflict");
    assert!(line.contains(&key), "{line}");
    assert_eq!(world.status(), "active@a");
    world.ic(&["rollback", "show", &id]);
    world.connect().execute("DELETE FROM tasks WHERE title = 'mine'", []).expect("it goes");
    world.ic(&undo);
    assert_eq!(world.status(), "active@d");
    assert_eq!(task_named(&world, "built"), key);
}

#[test]
fn rows_come_back_though_the_application_cleared_its_log() {
    for clear in ["DELETE FROM logs", "DELETE FROM logs WHERE event_type LIKE 'ROLLBACK_%'"] {
        let world = story_with_rows();
        let key = task_named(&world, "built");
        let id = roll_back_all(&world);
        world.connect().execute(clear, []).expect("it goes");
        let undone = world.cli.json(["redo", &id, "--without-effects", "--yes", "--json"]);
        assert_eq!(undone["data"]["restored_row_counts"]["tasks"], 2, "{undone}");
        assert_eq!(task_named(&world, "built"), key);
    }
}

#[test]
fn rows_that_an_undo_passed_over_are_named_and_kept_and_come_back_later() {
    let world = moved(in_git().with_rows());
    let config = world.read(".ic.yaml").expect("the configuration");
    world.write(".ic.yaml", &format!("rollback: {{retention: {{max-age: 0s, keep-last: 1}}}}\n{config}"));
    let (before, key) = (world.rows(), task_named(&world, "since"));
    let id = roll_back(&world, &[])["rollback_id"].as_str().expect("an id").to_owned();
    let undo = ["redo", &id, "--yes", "--json"];
    let mut killed = world.cli.command(undo);
    let killed = killed.env("IC_TEST_REWIND_ABORT_BEFORE", "20").output().expect("start ic");
    assert!(killed.status.signal().is_some(), "{killed:?}");
    let row = (&key, 1_800_000_000_000_i64);
    world.connect().execute("INSERT INTO tasks VALUES (?1, 'mine', ?2)", row).expect("a row");
    let resume = ["rollback", "resume", &id, "--yes", "--json"];
    assert_eq!(world.cli.run(resume).code, Some(4));
    let skip = ["rollback", "resume", &id, "--skip-step", "--reason", "later", "--yes", "--format", "text"];
    let text = world.cli.ok(skip);
    assert!(text.contains("not restored: rows") && text.contains("ic redo"), "{text}");
    assert_eq!(world.status(), "active@b");

    world.connect().execute("DELETE FROM tasks WHERE title = 'mine'", []).expect("it goes");
    // What no rollback needs is pruned by the next rewind.
    let task = task_named(&world, "before");
    world.task("newer");
    world.ic(&["rewind", "to", &task, "--no-git", "--yes"]);
    world.ic(&["run", "advance", &world.run, "--no-checkpoint"]);
    let undone = world.cli.json(undo);
    assert_eq!((&undone["status"], &undone["data"]["restored_row_counts"]["tasks"]), (&json!("undone"), &json!(1)));
    assert_eq!(world.status(), "active@c", "the run stays where it is");
    for line in before.lines().filter(|line| line.contains("since")) {
        assert!(world.rows().contains(line), "{line} is not back");
    }
    refused(&world, &undo, "nothing_to_undo");
}

#[test]
fn rows_that_would_stay_without_their_parents_are_refused_before_anything() {
    let world = story_with_rows();
    let key = task_named(&world, "built");
    world.connect().execute_batch("CREATE TABLE bills (task_id TEXT REFERENCES tasks (task_id))").expect("a table");
    world.connect().execute("INSERT INTO bills VALUES (?1)", [&key]).expect("a bill");
    let line = refused_all(&world, &[], "row_conflict");
    assert!(line.contains("bills"), "{line}");
    refused_all(&world, &["--force"], "row_conflict");
    world.connect().execute("DELETE FROM bills", []).expect("it goes");
    world.roll_back("a", &[]);
}

#[test]
fn rows_that_cannot_go_stop_it_and_the_named_command_goes_on() {
    let world = story_with_rows();
    // Only the transaction itself sees that the audit's table will not have the row.
    let refuse = "ALTER TABLE logs ADD COLUMN n CHECK (event_type IS NOT 'ROLLBACK_COMPLETED')";
    world.connect().execute(refuse, []).expect("a constraint");
    let words = world.all("a", &["--yes"]);
    let outcome = world.cli.run(&words);
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    let report = outcome.json();
    assert_eq!(report["steps"][2]["status"], "failed", "{report}");
    assert!(report["steps"][2]["error"].as_str().expect("why").starts_with("row_conflict: "), "{report}");
    let command = report["resume"].as_str().expect("a command").to_owned();
    assert!(!command.contains("--force"), "it decides nothing here: {command}");
    world.connect().execute("ALTER TABLE logs DROP COLUMN n", []).expect("it goes");
    let done = world.cli.json(command.split(' ').skip(1).chain(["--json"]));
    assert_eq!(done["status"], "done");
    assert!(!world.rows().contains("built"), "{}", world.rows());
}

/// A project whose rows are told apart by two columns: each pair of values is cut by itself.
fn divided(audit: bool) -> TestWorld {
    let world = in_git();
    std::fs::create_dir(world.cli.root().join("data")).expect("a directory");
    let audited = if audit { "  audit: {table: audits}\n" } else { "" };
    let config = format!(
        "rewind:\n  database: data/app.db\n  anchor: {{table: steps, key: id, order: at, scope: [thread, space]}}\n  \
         tables: [{{name: steps, order: at}}]\n{audited}"
    );
    world.write(".ic.yaml", &config);
    let tables = "CREATE TABLE steps (id TEXT PRIMARY KEY, thread TEXT, space TEXT, at INTEGER NOT NULL);
        CREATE TABLE audits (event_type TEXT, payload TEXT)";
    world.connect().execute_batch(tables).expect("tables");
    world.commit("a database");
    let run = world.ic(&["run", "create", "--goal", "g", "--phases", "a,b,c", "--scope-id", "mine"]);
    let world = world.with_run(run);
    let put = |database: &Connection, id: &str, thread: &str, space: &str, at: i64| {
        let row = (id, thread, space, at);
        database.execute("INSERT INTO steps VALUES (?1, ?2, ?3, ?4)", row).expect("a step");
    };
    put(&world.connect(), "m1", "mine", "main", 1);
    put(&world.connect(), "t1", "theirs", "main", 1);
    world.advance();
    // A space that is new since loses all of its rows, and is not found any more then.
    put(&world.connect(), "m2", "mine", "early", 2);
    put(&world.connect(), "m3", "mine", "main", 3);
    put(&world.connect(), "m4", "mine", "zones", 4);
    put(&world.connect(), "t2", "theirs", "main", 5);
    world
}

#[test]
fn rows_of_each_scope_of_the_run_go_and_come_back() {
    for audit in [true, false] {
        let world = divided(audit);
        let other = world.ic(&["run", "create", "--goal", "o", "--phases", "x,y", "--scope-id", "theirs"]);
        world.ic(&["run", "advance", &other]);
        let before = world.rows();
        let plan = &world.cli.json(world.all("a", &["--dry-run"]))["data"];
        assert_eq!(plan["affected_row_counts"], json!({ "steps": 3 }));
        let id = roll_back_all(&world);
        let rows = world.rows();
        assert!(["m1", "t1", "t2"].iter().all(|id| rows.contains(id)), "{rows}");
        assert!(["m2", "m3", "m4"].iter().all(|id| !rows.contains(id)), "{rows}");
        world.ic(&["redo", &id, "--yes"]);
        assert_eq!(sorted(&world.rows()), sorted(&before), "audit {audit}");
    }
}

#[test]
fn rows_whose_scope_columns_changed_since_are_refused_and_stay() {
    let world = divided(false);
    let before = world.rows();
    let config = std::fs::read_to_string(world.cli.root().join(".ic.yaml")).expect("the configuration");
    for (scope, code) in
        [("[space]", Some("no_checkpoint")), ("[space, at]", Some("no_checkpoint")), ("[thread, space]", None)]
    {
        world.write(".ic.yaml", &config.replace("[thread, space]", scope));
        let told = world.cli.run(world.all("a", &["--dry-run"]));
        assert_eq!(told.code == Some(0), code.is_none(), "{scope}: {told:?}");
        assert_eq!(code.map(|_| told.error()).as_deref(), code, "{scope}: {told:?}");
        assert_eq!(world.rows(), before, "{scope}");
        if code.is_some() && scope == "[space]" {
            assert_eq!(
                world.cli.run(["rewind", "to", "m1", "--dry-run", "--json"]).code,
                Some(0),
                "what the hint names"
            );
        }
    }
}

fn newest_rollback(world: &TestWorld) -> String {
    let list = world.cli.json(["rollback", "list", &world.run, "--json"]);
    list.as_array().and_then(|all| all.last()).expect("a rollback")["id"].as_str().expect("an id").to_owned()
}

#[test]
fn killed_between_scopes_it_ends_as_if_undisturbed() {
    for audit in [true, false] {
        let world = divided(audit);
        let before = world.rows();
        world.save(&WHOLE);
        world.roll_back("a", &[]);
        let wanted = world.rows();
        let mut n = 1;
        loop {
            world.reset(&WHOLE);
            let words = world.all("a", &["--yes"]);
            let mut command = world.cli.command(words);
            let output = command.env("IC_TEST_REWIND_ABORT_BEFORE", n.to_string()).output().expect("start ic");
            if output.status.signal().is_none() {
                assert_eq!(output.status.code(), Some(0), "{output:?}");
                break;
            }
            let when = format!("audit {audit}: aborted before statement {n}");
            if world.status() == "active@b" {
                world.roll_back("a", &[]);
            } else if n % 2 == 0 {
                // There and back, and there again: archives of both goes.
                let gone = before.lines().count() - world.rows().lines().count();
                let given_up = world.cli.json(["rollback", "abort", &world.run, "--yes", "--json"]);
                let told = given_up["data"]["restored_row_counts"]["steps"].as_u64().unwrap_or(0);
                assert_eq!(told, gone as u64, "{when}");
                assert_eq!(sorted(&world.rows()), sorted(&before), "{when}");
                world.roll_back("a", &[]);
            } else {
                let resumed = world.cli.json(["rollback", "resume", &world.run, "--yes", "--json"]);
                let data = resumed["steps"].as_array().expect("steps").iter().find(|one| one["layer"] == "data");
                assert_eq!(data.expect("a step")["made"]["deleted_row_counts"], json!({ "steps": 3 }), "{when}");
            }
            assert_eq!(world.rows(), wanted, "{when}");
            world.ic(&["redo", &newest_rollback(&world), "--yes"]);
            assert_eq!(sorted(&world.rows()), sorted(&before), "{when}");
            n += if ic_testkit::long() { 1 } else { 9 };
        }
        ic_testkit::tell(&format!("audit {audit}: {n} statements"));
        assert!(n > 60, "{n}");
    }
}

fn sorted(rows: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = rows.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn the_configuration_is_that_of_the_project_of_the_run() {
    let world = in_git().with_rows();
    let side = world.cli.home().join("side");
    let side_text = side.to_str().expect("text").to_owned();
    world.git(&["worktree", "add", "-q", "-b", "side", &side_text]);
    std::fs::create_dir(side.join("data")).expect("a directory");
    let theirs = side.join("data/app.db");
    std::fs::copy(world.cli.root().join("data/app.db"), &theirs).expect("a copy");
    let other = world.ic(&["run", "create", "--goal", "o", "--phases", "x,y", "--project", &side_text]);
    world.ic(&["run", "advance", &other]);
    let row = "INSERT INTO tasks VALUES ('theirs', 't', 1800000000000)";
    Connection::open(&theirs).expect("their database").execute(row, []).expect("a row");
    world.task("mine");
    // Called from here, where another database is configured, or none.
    world.remove(".ic.yaml");
    let words = ["run", "rollback", &other, "--to-phase", "x", "--layer=all", "--yes", "--json"];
    let report = world.cli.json(words);
    assert_eq!(report["data"]["affected_row_counts"]["tasks"], 1, "{report}");
    assert!(!ic_testkit::dump(&theirs).contains("theirs|"));
    assert!(world.rows().contains("mine"));
    let id = report["rollback_id"].as_str().expect("an id");
    world.ic(&["redo", id, "--yes"]);
    assert!(ic_testkit::dump(&theirs).contains("\"theirs\""));
}
