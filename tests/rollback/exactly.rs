//! A rollback can be undone by the command that it offers, and its undo leaves nothing that it brought: neither files that rules hide
//! by now, nor a database beside a log that is not its own.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use ic_testkit::TestWorld;
use rusqlite::Connection;
use serde_json::Value;

use crate::project::{Work as _, in_git, without_git};
use crate::story::story;

/// The words of a rollback of the run's files to `a`.
fn files_to_a(world: &TestWorld) -> Vec<&str> {
    vec!["run", "rollback", &world.run, "--to-phase", "a", "--layer=workflow,files", "--json", "--yes"]
}

fn id_of(report: &Value) -> String {
    report["rollback_id"].as_str().expect("an id").to_owned()
}

#[test]
fn the_undo_takes_away_what_the_rollback_brought_though_rules_hide_it_now() {
    let world = in_git().begun();
    world.write("certs/server.pem", "a key");
    world.write("gen/out", "made");
    world.commit("both are tracked");
    world.write(".gitignore", ".ic/\ndata/\ngen/\n");
    world.commit("one is ignored");
    world.advance();
    world.git(&["rm", "-qr", "--cached", "certs", "gen"]);
    fs::remove_dir_all(world.cli.root().join("certs")).expect("remove it");
    fs::remove_dir_all(world.cli.root().join("gen")).expect("remove it");
    world.commit("none is tracked");
    world.write("new", "new");
    let before = world.state();
    let id = id_of(&world.cli.json(files_to_a(&world)));
    assert_eq!((world.read("certs/server.pem"), world.read("gen/out")), (Some("a key".into()), Some("made".into())));
    world.cli.ok(["redo", &id, "--yes"]);
    world.state().assert_is(&before, "undone");
}

#[test]
fn what_the_undo_leaves_is_named() {
    let world = in_git().begun();
    world.write("gen/out", "made");
    world.commit("it is tracked");
    world.advance();
    world.git(&["rm", "-qr", "--cached", "gen"]);
    fs::remove_dir_all(world.cli.root().join("gen")).expect("remove it");
    world.write(".gitignore", ".ic/\ndata/\ngen/\n");
    world.commit("it is not");
    let id = id_of(&world.cli.json(files_to_a(&world)));
    world.write("gen/mine", "not the rollback's");
    let report = world.cli.json(["redo", &id, "--yes", "--json"]);
    assert_eq!(world.read("gen/out"), None, "{report}");
    assert!(world.read("gen/mine").is_some(), "{report}");
    let skipped = &report["files"][0]["skipped"];
    assert_eq!(skipped[0]["path"], "gen", "{report}");
}

/// The command that a report in text offers to undo the rollback.
fn offered(text: &str) -> Vec<String> {
    let line = text.lines().find_map(|line| line.split_once("ic redo ")).expect("an undo").1;
    ["redo"].into_iter().chain(line.split_whitespace()).map(str::to_owned).collect()
}

#[test]
fn the_way_back_that_a_rollback_offers_works_where_it_brought_commits_of_another_run() {
    let world = in_git().begun();
    let other = world.cli.ok(["run", "create", "--goal", "other", "--phases", "a,b,c"]);
    let theirs = world.cli.ok(["dispatch", "create", &other, "--name", "theirs"]);
    world.write("b", "b");
    let sha = world.commit("another run's work");
    world.ic(&["dispatch", "record", &theirs, "--commit", &sha]);
    world.advance();
    // An agent of the run takes it off its branch.
    world.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let before = world.state();
    let words = ["run", "rollback", &world.run, "--to-phase", "a", "--layer=all", "--yes", "--format=text"];
    let text = world.cli.ok(words);
    assert_eq!(world.git(&["rev-parse", "HEAD"]), sha);
    let mut undo = offered(&text);
    undo.push("--yes".to_owned());
    world.cli.ok(&undo);
    world.state().assert_is(&before, "undone");
    let kept = world.git(&["for-each-ref", "--contains", &sha, "refs/ic"]);
    assert!(!kept.is_empty(), "the commit is kept");
}

#[test]
fn commits_that_another_run_made_since_still_refuse_the_undo() {
    let world = in_git().begun();
    world.write("own", "own");
    world.commit("own work");
    world.advance();
    world.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let other = world.cli.ok(["run", "create", "--goal", "other", "--phases", "a,b,c"]);
    let words = ["run", "rollback", &world.run, "--to-phase", "a", "--layer=all", "--yes", "--json"];
    let id = id_of(&world.cli.json(words));
    let theirs = world.cli.ok(["dispatch", "create", &other, "--name", "theirs"]);
    world.write("b", "b");
    let sha = world.commit("another run's work");
    world.ic(&["dispatch", "record", &theirs, "--commit", &sha]);
    let refused = world.cli.refused(["redo", &id, "--yes"]);
    assert_eq!(refused.0, Some(1), "{refused:?}");
    assert_eq!(world.git(&["rev-parse", "HEAD"]), sha);
}

#[test]
fn the_way_back_that_a_rollback_offers_works_where_it_undid_effects() {
    let world = story();
    let words = ["run", "rollback", &world.run, "--to-phase", "a", "--layer=all", "--yes", "--format=text"];
    let mut undo = offered(&world.cli.ok(words));
    undo.push("--yes".to_owned());
    world.cli.ok(&undo);
}

/// A database of 300 rows at the cut, then what a killed program left of it: more rows, and a log.
fn with_killed_program() -> TestWorld {
    let world = without_git().begun();
    let path = world.cli.root().join("app.db");
    let rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
                INSERT INTO t (v) SELECT hex(randomblob(60)) FROM n;";
    let connection = Connection::open(&path).expect("a database");
    connection.execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);").expect("a table");
    connection.execute_batch(rows).expect("rows");
    connection.close().expect("close it");
    world.advance();
    let connection = Connection::open(&path).expect("the database");
    connection.execute_batch("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;").expect("a log");
    connection.execute_batch(rows).expect("more rows");
    connection
        .execute_batch("PRAGMA wal_checkpoint(RESTART); UPDATE t SET v = 'x' WHERE id < 200;")
        .expect("newer pages");
    let copies = ["", "-wal"].map(|end| {
        let name = world.cli.root().join(format!("app.db{end}"));
        (fs::read(&name).expect("a file"), name)
    });
    connection.close().expect("close it");
    for (content, name) in copies {
        fs::write(name, content).expect("what was left");
    }
    world
}

/// The rows of a copy, which is whole, and the names of what lies beside the database.
fn database(root: &Path) -> (i64, Vec<String>) {
    let place = tempfile::tempdir().expect("a directory");
    let mut sides = Vec::new();
    for end in ["", "-wal", "-journal"] {
        let name = format!("app.db{end}");
        if fs::copy(root.join(&name), place.path().join(&name)).is_ok() && !end.is_empty() {
            sides.push(name);
        }
    }
    let connection = Connection::open(place.path().join("app.db")).expect("the copy");
    let check: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap_or_else(|e| e.to_string());
    assert_eq!(check, "ok");
    (connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).expect("rows"), sides)
}

#[test]
fn a_rollback_takes_a_database_back_with_its_log_and_so_does_its_undo() {
    let world = with_killed_program();
    let log = fs::read(world.cli.root().join("app.db-wal")).expect("a log");
    let before = database(world.cli.root());
    assert_eq!(before, (600, vec!["app.db-wal".to_owned()]));
    let id = id_of(&world.cli.json(files_to_a(&world)));
    assert_eq!(database(world.cli.root()), (300, Vec::new()));
    world.cli.ok(["redo", &id, "--yes"]);
    assert_eq!(database(world.cli.root()), before);
    assert!(fs::read(world.cli.root().join("app.db-wal")).expect("a log") == log, "it is the log that was there");
}

/// A process that has a file open.
fn holder(path: &Path) -> Child {
    let file = fs::File::open(path).expect("the file");
    Command::new("sleep").arg("600").stdin(Stdio::from(file)).spawn().expect("a process")
}

fn end(mut process: Child) {
    process.kill().expect("end it");
    process.wait().expect("wait for it");
}

#[test]
fn a_rollback_that_stops_at_a_database_in_use_is_resumed_or_abandoned_when_it_is_free() {
    for way in ["resume", "abort"] {
        let world = with_killed_program();
        let before = database(world.cli.root());
        let process = holder(&world.cli.root().join("app.db"));
        let words = ["run", "rollback", &world.run, "--to-phase", "a", "--layer=workflow,files", "--dry-run"];
        let dry = world.cli.json([&words[..], &["--json"]].concat());
        assert_eq!(dry["files"]["warnings"][0]["code"], "database_in_use", "{way}: {dry}");
        let said = world.ic(&[&words[..], &["--format", "text"]].concat());
        assert!(said.contains("a program has the database app.db open now"), "{way}: {said}");
        let stopped = world.cli.run(files_to_a(&world));
        assert_eq!(stopped.code, Some(4), "{stopped:?}");
        assert_eq!(database(world.cli.root()), before, "{way}: in use");
        let id = id_of(&stopped.json());
        end(process);
        world.cli.ok(["rollback", way, &id, "--yes"]);
        let wanted = if way == "resume" { (300, Vec::new()) } else { before };
        assert_eq!(database(world.cli.root()), wanted, "{way}");
    }
}
