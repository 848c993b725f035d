//! Every verb that reads answers on a store that was brought forward, and says what the older version said; every verb that writes
//! still does.

use std::path::Path;

use ic_testkit::TestWorld;
use rusqlite::Connection;
use serde_json::{Deserializer, Value};

use crate::project::call;
use crate::stores::{Stores, versions};

/// What the contract changed since: a verb and the path of keys to a value that is not compared, without positions in lists.
const CHANGED: [(&str, &str); 1] = [
    // Moving the rows to another place leaves a log beside the ledger.
    ("where", ".log"),
];

/// Answers that are about the program and the machine; they must be given, whatever they say.
const OF_THE_PROGRAM: [&str; 3] = ["version", "health", "config show"];

/// Keys whose values depend on the machine, such as whether a process has the number of an old worker. Only their type must be the same.
const OF_THE_MACHINE: [&str; 1] = ["alive"];

/// One question and what the older version answered.
struct Answer {
    words: Vec<String>,
    exit: i64,
    said: String,
}

fn answers(stores: &Stores) -> Vec<Answer> {
    let read = |name: String| -> Answer {
        let text = std::fs::read(stores.path("life/answers").join(name)).expect("an answer");
        let answer: Value = serde_json::from_slice(&text).expect("an answer");
        Answer {
            words: serde_json::from_value(answer["words"].clone()).expect("words"),
            exit: answer["exit"].as_i64().expect("an exit code"),
            said: answer["said"].as_str().expect("what it said").to_owned(),
        }
    };
    let all: Vec<Answer> = stores.names("life/answers").into_iter().map(read).collect();
    assert!(all.len() > 100, "only {} answers were kept", all.len());
    all
}

/// The values of a document, or of one a line.
fn values(text: &str) -> Vec<Value> {
    Deserializer::from_str(text).into_iter().map(|value| value.expect("JSON")).collect()
}

/// Where `now` does not say what `then` said; what is new in an object is no difference.
fn differences(verb: &str, at: &str, then: &Value, now: &Value, found: &mut Vec<String>) {
    if CHANGED.contains(&(verb, at)) {
        return;
    }
    match (then, now) {
        (Value::Object(then), Value::Object(now)) => {
            for (key, value) in then {
                let at = format!("{at}.{key}");
                let now = now.get(key).unwrap_or(&Value::Null);
                if !(OF_THE_MACHINE.contains(&key.as_str()) && value.is_boolean() && now.is_boolean()) {
                    differences(verb, &at, value, now, found);
                }
            }
        }
        (Value::Array(then), Value::Array(now)) if then.len() == now.len() => {
            for (then, now) in then.iter().zip(now) {
                differences(verb, at, then, now, found);
            }
        }
        _ if then == now => {}
        _ => found.push(format!("{verb}{at}: {then} is now {now}")),
    }
}

#[test]
fn reading_verbs_answer_as_the_older_version_did() {
    for stores in versions("life") {
        let world = stores.world("life");
        let home = std::fs::canonicalize(world.cli.home()).expect("its path");
        let mut found = Vec::new();
        for answer in answers(&stores) {
            let outcome = world.cli.run(&answer.words);
            let verb: Vec<&str> = answer.words.iter().map(String::as_str).take_while(|word| word.len() < 20).collect();
            let verb = verb.join(" ").replace(" --json", "");
            if OF_THE_PROGRAM.contains(&verb.as_str()) {
                assert_eq!(outcome.code, Some(0), "{}: {verb}: {outcome:?}", stores.name);
                continue;
            }
            if outcome.code.map(i64::from) != Some(answer.exit) {
                found.push(format!("{:?}: {outcome:?}, not {}", answer.words, answer.exit));
                continue;
            }
            // The paths in the answers are those of where the older version worked.
            let said = answer.said.replace(&stores.made_in, home.to_str().expect("a plain path"));
            // Events stay as they were recorded, and so do the paths in them.
            let now = outcome.stdout.replace(&stores.made_in, home.to_str().expect("a plain path"));
            let then = Value::Array(values(&said));
            let now = Value::Array(values(&now));
            differences(&verb, "", &then, &now, &mut found);
        }
        assert!(found.is_empty(), "{}: {} differences:\n{}", stores.name, found.len(), found.join("\n"));
        world.cli.assert_sound(&stores.name);
    }
}

/// Every column, as stored, of the events up to `up_to`.
fn events(ledger: &Path, up_to: i64) -> Vec<String> {
    let connection = Connection::open(ledger).expect("open the ledger");
    let sql = "SELECT seq, run_id, source, type, subject_id, from_state, to_state, epoch, reason, payload, created_at,
        hex(prev_hash), hex(hash) FROM events WHERE seq <= ?1 ORDER BY seq";
    let mut statement = connection.prepare(sql).expect("the events");
    let rows = statement
        .query_map([up_to], |row| Ok((0..13).map(|i| format!("{:?}", row.get_ref(i).expect("a column"))).collect()));
    rows.expect("the events").map(|row| row.expect("an event")).collect()
}

#[test]
fn events_are_read_and_never_rewritten() {
    for stores in versions("life") {
        let world = stores.world("life");
        let before = events(&world.cli.db(), i64::MAX);
        let count = i64::try_from(before.len()).expect("a number");
        assert!(count > 100, "{}: only {count} events", stores.name);
        world.cli.assert_sound(&stores.name);
        write_everything(&world, &stores.name);
        world.cli.assert_sound(&stores.name);
        assert_eq!(events(&world.cli.db(), count), before, "{}", stores.name);
        let now = events(&world.cli.db(), i64::MAX).len();
        assert!(now > before.len() + 15, "{}: what was written is recorded", stores.name);
        call(&world, &["events", "redact", "1", "--reason", "tried"], &[0], &stores.name);
        world.cli.assert_sound(&stores.name);
    }
}

/// Every verb that writes, once, on the runs of the older version and on a new one.
fn write_everything(world: &TestWorld, when: &str) {
    let run = world.cli.ok(["run", "create", "--goal", "new", "--phases", "a,b,c,d", "--format", "text"]);
    let old = "scope:docs";
    std::fs::write(world.cli.root().join("new.md"), "new\n").expect("a file");
    for run in [old, run.as_str()] {
        let call = |words: &[&str]| {
            call(world, words, &[0], when);
        };
        let id = |words: &[&str]| world.cli.ok(words.iter().chain(&["--format", "text"]));
        call(&["run", "set", run, "--metadata-merge", r#"{"since": 2}"#]);
        call(&["run", "artifact", "add", run, "--path", "new.md"]);
        let dispatch = id(&["dispatch", "create", run, "--name", "new"]);
        call(&["dispatch", "start", &dispatch]);
        call(&["dispatch", "record", &dispatch, "--file", "new.md"]);
        call(&["dispatch", "tokens", &dispatch, "--in", "1", "--out", "2"]);
        call(&["dispatch", "complete", &dispatch, "--verdict", "pass"]);
        let agent = id(&["run", "agent", "add", run, "--type", "codex"]);
        call(&["run", "agent", "update", &agent, "--status", "completed"]);
        call(&["compensation", "add", run, "--step", "new", "--shell", "true"]);
        call(&["compensation", "run", run, "--yes"]);
        call(&["checkpoint", "create", "--run", run]);
        call(&["gate", "override", run, "--reason", "looked at"]);
    }
    call(world, &["run", "advance", &run], &[0], when);
    call(world, &["run", "rollback", &run, "--to-phase", "a", "--reason", "tried"], &[0], when);
    call(world, &["run", "cancel", &run, "--reason", "tried"], &[0], when);
    // A secret is left alone, and named: partial.
    call(world, &["checkpoint", "restore", "--name", "with-a-stash", "--force", "--yes"], &[4], when);
    call(world, &["redo", &world.cli.last_restore(), "--yes"], &[0], when);
    call(world, &["undo", &world.cli.last_restore(), "--yes"], &[0, 4], when);
    call(world, &["checkpoint", "purge", "new.md", "--yes"], &[0], when);
    call(world, &["checkpoint", "prune", "--grace", "0s"], &[0], when);
    call(world, &["events", "tail", "--cursor", "reader", "--limit", "1"], &[0], when);
    call(world, &["events", "cursor", "reset", "other"], &[0], when);
}
