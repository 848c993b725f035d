//! Every statement of every verb finds its rows by an index, however many rows there are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ic_testkit::{CliOutcome, verb_calls};
use rusqlite::Connection;

use crate::agents::{Said, say};
use crate::support::{Project, chain, story, verbs};
use crate::verbs::rewind::fill;

/// Tables that grow with use: no statement may walk one from end to end.
pub(crate) const GROWING: &[&str] = &[
    "events", "runs", "dispatches", "dispatch_commits", "dispatch_files", "run_artifacts", "run_agents", "run_skips",
    "rollbacks", "rollback_steps", "sessions", "prompts", "calls", "state_marks", "checkpoints", "compensations",
    "workflows", "workflow_steps", "restores", "rewinds", "objects",
];

/// Verbs that look at every checkpoint, or at every object.
const WHOLE: &[&str] = &["health", "checkpoint prune", "checkpoint delete", "checkpoint purge", "checkpoint verify"];

/// The calls that run all statements of the verbs that are not in [`verb_calls::CALLS`], in an order that lets each succeed.
const CALLS: &[&str] = &[
    "init",
    "health",
    "backup copy.db",
    "migrate",
    "run create --goal other --phases a,b,c --project sub --scope-id other",
    "run list",
    "run list --active --limit 1",
    "run list --project .",
    "run list --project . --active --before {other}",
    "run status @",
    "run status {run}",
    "run status scope:sprint-12",
    "run phase {short}",
    "run current",
    "run current --project sub",
    "run events @",
    "run history @",
    "run set @ --complexity 2 --metadata-merge '{\"k\":1}'",
    "run skip @ reflect --reason r",
    "run agent list @",
    "run artifact list @",
    "run artifact list @ --phase planned --status active",
    "run artifact add @ --path kept.md",
    "dispatch create @ --name second --dispatch {builder}",
    "dispatch start {second} --dispatch {builder}",
    "dispatch record {second} --commit ccccccc3 --file a.rs",
    "dispatch beat {second} --ttl 5m",
    "dispatch tokens {second} --in 1 --out 2",
    "dispatch show {second}",
    "dispatch list",
    "dispatch list @",
    "dispatch list @ --phase executing --status running",
    "dispatch list --status running",
    "dispatch fail {second} --error e",
    "undo --only {second} --dry-run",
    "dispatch cancel {builder}",
    "wait {planner}",
    "wait --timeout 0s",
    "checkpoint create --run @ --message m",
    "checkpoint create --name first",
    "checkpoint create --conversation chat --dispatch {planner}",
    "checkpoint list",
    "checkpoint list --run @",
    "checkpoint list --conversation chat",
    "checkpoint list --workflow none --pruned",
    "checkpoint show {first}",
    "checkpoint list --tree",
    "checkpoint diff {first}",
    "checkpoint diff @",
    "checkpoint diff @ first",
    "show",
    "show {first}",
    "restore --before {first} a.md --dry-run",
    "diff",
    "diff @",
    "checkpoint cat {first} a.md",
    "checkpoint restore {first} --yes --force",
    "checkpoint restore --name first --dry-run",
    "checkpoint restore --latest --dry-run --mine --dispatch {planner}",
    "redo {restore} --yes",
    "undo phase:planned --layer=workflow --dry-run",
    "undo {restore} --yes",
    "run artifact cat {artifact}",
    "checkpoint prune --older-than 0s --keep-last 0 --grace 0s",
    "checkpoint delete {first} --force --grace 0s",
    "checkpoint purge a.md --yes",
    "checkpoint verify --read-data",
    "compensation add @ --step queue --exec --dispatch {planner} -- true",
    "compensation add @ --step settings --restore-file kept.md",
    "compensation list @",
    "compensation coverage @",
    "compensation run @ --to-phase planned --dry-run",
    "compensation run @ --step queue --yes",
    "compensation run @ --yes",
    "workflow validate work/flow.yaml",
    "workflow run flow.yaml -C work --on-failure continue",
    "workflow show @ -C work",
    "workflow resume @ -C work --on-failure rollback --yes",
    "workflow resume @ -C work --on-failure stop",
    "workflow checkpoints -C work",
    "workflow rollback -C work --latest --dry-run",
    "workflow rollback -C work --dry-run",
    "workflow rollback -C work --yes",
    "rewind init --profile devs",
    "rewind inspect tasks.db",
    "rewind targets",
    "rewind to T1 --dry-run",
    "rewind to T1 --yes",
    "rewind resume {rewind} --yes",
    "undo {rewind} --dry-run",
    "undo {rewind} --yes",
    "rewind status",
    "rewind status {rewind}",
    "rewind list",
    "run agent add @ --type codex --dispatch {planner}",
    "run agent update {agent} --status completed",
    "run artifact add @ --path a.md --dispatch {planner}",
    "hooks install claude-code",
    "hooks doctor",
    "hook claude-code SessionStart",
    "install claude-code",
    "uninstall claude-code",
    "session list",
    "session show {session} --calls",
    "session attach @ --session {session}",
    "blame a.md",
    "checkpoint list --calls",
    "gate rules @",
    "gate check @",
    "run rollback @ --layer=code",
    "run rollback @ --layer=code --phase planned",
    "run rollback @ --layer=code --to-phase planned",
    "run rollback @ --to-phase planned --dry-run",
    "compensation add @ --step bill --exec -- true",
    "run rollback @ --to-phase planned --include-target --reason r",
    "redo --dry-run",
    "rollback list",
    "rollback list @",
    "rollback show {rollback}",
    "status",
    "status {run}",
    "log",
    "log {run} --all -n 3",
    "log -n 2 --stat",
    "log --json -- a.md",
    "redo {rollback} --dry-run",
    "redo {rollback} --yes",
    "compensation add @ --step lost --exec -- false",
    "run rollback @ --to-phase planned --layer=workflow,effects --include-target --yes",
    "rollback resume @ --skip-step --yes",
    "compensation add @ --step lost --exec -- false",
    "run rollback @ --to-phase planned --layer=workflow,effects --include-target --reason r --yes",
    "rollback abort @ --dry-run",
    "rollback abort @ --yes",
    "run advance {run} --priority 4",
    "run advance {gated}",
    "gate override {other} --reason r",
    "dispatch complete {third} --verdict pass --summary s",
    "events tail",
    "events tail @",
    "events tail --since 3",
    "events tail {run} --since 3 --limit 2",
    "events tail --cursor c",
    "events tail @ --cursor d --peek",
    "events tail --cursor c --each true --limit 1",
    "events cursor list",
    "events cursor commit c 1 --back",
    "events cursor reset c",
    "events redact 4 --reason r",
    "events verify",
    "run cancel {other}",
    "run reopen {other} --reason r",
];

/// A workflow that fails, with every kind of undo.
const FLOW: &str = "name: flow
steps:
  - {id: one, phase: first, run: 'true', compensate: {exec: ['true']}}
  - {id: two, run: 'true', compensate: {restore-file: settings}}
  - {id: three, run: 'true', compensate: {kill-process: server.pid}}
  - {id: four, phase: second, needs: [two], run: 'false', retries: {max: 1, backoff: 1ms}}
  - {id: five, needs: [four], run: 'true', compensate: skip}
";

/// A ledger with enough in it that SQLite would rather walk a small table than not.
fn populated() -> (Project, BTreeMap<&'static str, String>) {
    let project = Project::new();
    std::fs::create_dir(project.root().join("sub")).expect("a directory");
    project.write("work/flow.yaml", FLOW);
    for name in ["a.md", "kept.md"] {
        std::fs::write(project.root().join(name), name).expect("a file");
    }
    let rules = r#"{"a→b": [{"check":"artifact_exists"},{"check":"agents_complete"},{"check":"dispatches_complete"},{"check":"verdict_exists"},{"check":"verdict_clean","phase":"a"}]}"#;
    let words = ["run", "create", "--goal", "gated", "--phases", "a,b", "--gates", rules, "--project", "/"];
    let gated = project.run_words(words).stdout.trim().to_owned();
    let third = project.ok(&format!("dispatch create {gated}"));
    let old = chain(&project, "a,b,c", "c");
    project.ok(&format!("run rollback {old} --to-phase a"));
    project.ok(&format!("run cancel {old}"));
    let story = story(&project);
    let ids = BTreeMap::from([
        ("{gated}", gated),
        ("{third}", third),
        ("{short}", story.run[28..].to_owned()),
        ("{run}", story.run),
        ("{planner}", story.planner),
        ("{builder}", story.builder),
        ("{agent}", story.agent),
        ("{session}", with_a_session(&project)),
    ]);
    (project, ids)
}

/// A session of a coding agent with a prompt; returns its id.
fn with_a_session(project: &Project) -> String {
    say(project, &Said::new("claude-code", "s-1", "UserPromptSubmit").prompt("p-1", "Add it"));
    say(project, &Said::new("claude-code", "s-1", "SessionEnd"));
    project.json("session list")[0]["id"].as_str().expect("an id").to_owned()
}

/// Runs every call with a log of its statements; returns the statements, each with the call that ran it.
fn logged(project: &Project, mut ids: BTreeMap<&'static str, String>) -> BTreeMap<String, String> {
    let log = project.cli.home().join("sql.log");
    let mut statements = BTreeMap::new();
    for call in CALLS.iter().chain(verb_calls::CALLS) {
        let mut line = (*call).to_owned();
        for (name, id) in &ids {
            line = line.replace(name, id);
        }
        if line.contains("{restore}") {
            line = line.replace("{restore}", &project.cli.last_restore());
        }
        std::fs::write(&log, "").expect("an empty log");
        let outcome = project.run_with("IC_TEST_SQL_LOG", &log, &line);
        let may_stop = call.contains("--layer=workflow,effects");
        let may_be_no = ["gate check", "{gated}", "-C work"].iter().any(|part| call.contains(part));
        assert!(
            outcome.code == Some(0) || (may_be_no && outcome.code == Some(1)) || (may_stop && outcome.code == Some(4)),
            "{line}: {outcome:?}"
        );
        match *call {
            call if call.starts_with("run create") => ids.insert("{other}", outcome.stdout.trim().to_owned()),
            call if call.starts_with("dispatch create") => {
                // From here on the tree is captured along the way.
                std::fs::remove_file(project.root().join(".ic.yaml")).expect("the project's configuration");
                ids.insert("{second}", outcome.stdout.trim().to_owned())
            }
            call if call.ends_with("--path kept.md") => ids.insert("{artifact}", outcome.stdout.trim().to_owned()),
            "rewind init --profile devs" => {
                fill(&project.cli.beside("state.db"));
                std::fs::copy(project.cli.beside("state.db"), project.root().join("tasks.db"))
                    .expect("another database");
                None
            }
            "run rollback @ --to-phase planned --include-target --reason r" => {
                let id = outcome.json()["rollback_id"].as_str().expect("an id").to_owned();
                ids.insert("{rollback}", id)
            }
            "rewind to T1 --yes" => {
                let id = outcome.json()["id"].as_str().expect("an id").to_owned();
                ids.insert("{rewind}", id)
            }
            call if call.ends_with("--name first") => {
                std::fs::write(project.root().join("a.md"), "changed").expect("a change");
                ids.insert("{first}", outcome.stdout.trim().to_owned())
            }
            _ => None,
        };
        for sql in std::fs::read_to_string(&log).expect("the log").lines() {
            statements.entry(sql.to_owned()).or_insert_with(|| (*call).to_owned());
        }
    }
    hooked(project, &log, &mut statements);
    statements
}

/// The statements of a prompt with two tool calls of which one has no end, beside those of every call.
fn hooked(project: &Project, log: &Path, statements: &mut BTreeMap<String, String>) {
    let call = |event: &str, id: &str| {
        Said::new("claude-code", "s-2", event).prompt("p-2", "").with("tool_name", "Bash").with("tool_use_id", id)
    };
    let prompt = |id: &str| Said::new("claude-code", "s-2", "UserPromptSubmit").prompt(id, "Add it");
    let stop = || Said::new("claude-code", "s-2", "Stop");
    let told = [
        prompt("p-2"),
        call("PreToolUse", "c-1"),
        call("PostToolUse", "c-1"),
        call("PreToolUse", "c-2"),
        stop(),
        prompt("p-3"),
        Said::new("claude-code", "s-2", "SessionEnd"),
    ];
    for (at, said) in told.iter().enumerate() {
        std::fs::write(log, "").expect("an empty log");
        project.write("hooked.txt", &at.to_string());
        let log_text = log.to_str().expect("a path");
        crate::agents::say_with(project, said, &[("IC_TEST_SQL_LOG", log_text)]);
        for sql in std::fs::read_to_string(log).expect("the log").lines() {
            statements.entry(sql.to_owned()).or_insert_with(|| format!("hook, {at}"));
        }
    }
    assert!(statements.keys().any(|sql| sql.contains("INSERT INTO calls")), "calls were recorded");
}

/// The lines of SQLite's plan for a statement.
pub(crate) fn plan(db: &Connection, sql: &str) -> Vec<String> {
    // Content lies in a database of its own.
    let beside;
    let is_content = sql.split([' ', '(']).any(|word| ["objects", "packs", "store", "writing"].contains(&word));
    let db = if is_content {
        let ledger = Path::new(db.path().expect("a file"));
        beside = Connection::open(ledger.with_file_name("objects.db")).expect("the object store");
        &beside
    } else {
        db
    };
    let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap_or_else(|e| panic!("{sql}: {e}"));
    let parameters = vec![rusqlite::types::Null; statement.parameter_count()];
    statement
        .query_map(rusqlite::params_from_iter(parameters), |row| row.get(3))
        .and_then(Iterator::collect)
        .unwrap_or_else(|e| panic!("{sql}: {e}"))
}

fn is_data(sql: &str) -> bool {
    ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH"].iter().any(|verb| sql.starts_with(verb))
}

#[test]
fn no_statement_walks_a_table_that_grows() {
    let (project, ids) = populated();
    let statements = logged(&project, ids);
    let db = project.database();
    let mut explained = 0;
    let mut wrong = Vec::new();
    for (sql, call) in statements.iter().filter(|(sql, _)| is_data(sql)) {
        explained += 1;
        for line in plan(&db, sql) {
            // Retention and verification look at everything there is; that is what they are asked for.
            let looks_at_all = WHOLE.iter().any(|verb| call.starts_with(verb));
            let scans = !looks_at_all
                && GROWING
                    .iter()
                    .any(|table| line.strip_prefix("SCAN ").and_then(|rest| rest.split(' ').next()) == Some(*table));
            let sorts = line.contains("USE TEMP B-TREE FOR") && line.contains("ORDER BY");
            if scans || sorts {
                wrong.push(format!("{line}\n    {sql}\n    (ic {call})"));
            }
        }
    }
    assert!(explained > 60, "only {explained} statements were logged");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The names of the parameters of a statement: `$1`, `$2`, ...
fn parameters(sql: &str) -> usize {
    let numbers = sql.split('$').skip(1).filter_map(|rest| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<usize>().ok()
    });
    numbers.max().unwrap_or(0)
}

/// Names of tables that are not the ledger's: of content, and of an application.
fn is_of_another_database(sql: &str) -> bool {
    let others = ["objects", "packs", "store", "writing", "sqlite_schema", "tasks", "pragma_table_info"];
    sql.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| others.contains(&word))
}

#[test]
fn a_server_understands_every_statement_and_walks_no_table_that_grows_either() {
    let Some(cluster) = ic_testkit::Cluster::start_with(env!("CARGO_BIN_EXE_ic"), &[]) else { return };
    cluster.project("twin");
    let (project, ids) = populated();
    let statements = logged(&project, ids);
    let mut script =
        "SET search_path TO twin; SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan;\n".to_owned();
    let mut asked = Vec::new();
    for (sql, call) in statements.iter().filter(|(sql, _)| is_data(sql) && !is_of_another_database(sql)) {
        let n = asked.len();
        let nulls = vec!["NULL"; parameters(sql)].join(", ");
        let (types, values) = match parameters(sql) {
            0 => (String::new(), String::new()),
            count => {
                // Where nothing tells the type of a parameter, the program does.
                let of = |n| match (sql.contains(&format!("${n} IS NULL")), sql.contains(&format!("root = ${n}"))) {
                    (true, true) => "bytea",
                    (true, false) => "text",
                    _ => "unknown",
                };
                (format!("({})", (1..=count).map(of).collect::<Vec<_>>().join(", ")), format!("({nulls})"))
            }
        };
        script += &format!("\\echo statement {n}\nPREPARE s{n}{types} AS {sql};\nEXPLAIN EXECUTE s{n}{values};\n");
        asked.push((sql, call));
    }
    assert!(asked.len() > 60, "only {} statements", asked.len());
    project.write("twin.sql", &script);
    let mut psql = std::process::Command::new("psql");
    psql.args(["-XAtq", "-U", "ic", "-d", "postgres", "-f"])
        .arg(project.root().join("twin.sql"))
        .arg("-h")
        .arg(cluster.socket());
    let said = CliOutcome::of(&mut psql);
    let mut wrong: Vec<String> = said.stderr.lines().map(str::to_owned).collect();
    for part in said.stdout.split("statement ").skip(1) {
        let (n, plan) = part.split_once('\n').expect("a plan");
        let (sql, call) = asked[n.parse::<usize>().expect("a number")];
        let looks_at_all = WHOLE.iter().any(|verb| call.starts_with(verb));
        for line in plan.lines().filter(|_| !looks_at_all) {
            let table = line.split("Seq Scan on ").nth(1).and_then(|rest| rest.split(' ').next());
            if table.is_some_and(|table| GROWING.contains(&table)) {
                wrong.push(format!("{line}\n    {sql}\n    (ic {call})"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_known_statements_are_no_data() {
    let (project, ids) = populated();
    let others: BTreeSet<String> = logged(&project, ids)
        .into_keys()
        .filter(|sql| !is_data(sql))
        .map(|sql| sql.split(' ').take(2).collect::<Vec<_>>().join(" "))
        .collect();
    let known = [
        "-- committed", "-- copying", "-- making", "-- naming", "BEGIN DEFERRED", "BEGIN IMMEDIATE", "COMMIT", "VACUUM",
    ];
    for sql in &others {
        assert!(known.contains(&sql.as_str()) || sql.starts_with("PRAGMA"), "{sql}");
    }
    assert!(others.contains("BEGIN IMMEDIATE") && others.contains("BEGIN DEFERRED"), "{others:?}");
}

#[test]
fn every_verb_is_asked_for_its_statements() {
    // The page has statements of its own, some of which read a whole table: a search (tests/ui).
    // Forks need a repository of git; their statements are those of checkpoints and of commands. A conversation needs a client's own record.
    let elsewhere = ["ic ui", "ic fork", "ic adopt", "ic drop", "ic session continue"];
    for (verb, _) in verbs().into_iter().filter(|(verb, _)| !elsewhere.contains(&verb.as_str())) {
        let words = verb["ic ".len()..].split(" --").next().expect("a verb").to_owned();
        let mut calls = CALLS.iter().chain(verb_calls::CALLS);
        let asked = calls.any(|line| *line == words || line.starts_with(&format!("{words} ")));
        assert!(asked, "{verb} is missing");
    }
}

#[test]
fn a_plan_that_walks_is_noticed() {
    let (project, _) = populated();
    let db = project.database();
    assert!(plan(&db, "SELECT * FROM events WHERE reason = $1")[0].starts_with("SCAN events"));
    assert!(plan(&db, "SELECT * FROM runs ORDER BY goal").iter().any(|line| line == "USE TEMP B-TREE FOR ORDER BY"));
}
