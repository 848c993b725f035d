//! The main job, end to end, and what is said on the way.

use ic_testkit::{Cli, CliOutcome, Cluster};
use serde_json::Value;

use crate::cluster::{cluster, project_at, role_of_every_day};

/// A run with something of everything that a rollback marks.
pub(crate) fn sprint(cli: &Cli) -> String {
    let run = cli.ok(["run", "create", "--goal", "Port", "--phases", "plan,build,check,ship"]);
    cli.ok(["run", "advance", &run]);
    let dispatch = cli.ok(["dispatch", "create", &run, "--name", "parser"]);
    cli.ok(["dispatch", "start", &dispatch]);
    cli.ok(["dispatch", "record", &dispatch, "--commit", "abcdef1", "--file", "src/a.rs"]);
    cli.ok(["dispatch", "complete", &dispatch, "--verdict", "pass"]);
    cli.ok(["run", "artifact", "add", &run, "--path", "plan.md"]);
    cli.ok(["run", "agent", "add", &run, "--type", "codex"]);
    cli.ok(["run", "skip", &run, "check", "--reason", "not now"]);
    run
}

#[test]
fn a_sprint_is_recorded_rolled_back_and_verified_on_a_server() {
    let Some(cluster) = cluster(&[]) else { return };
    let url = cluster.url("shop");
    let cli = project_at(&url);
    let made: Value = cli.json(["init", "--json"]);
    assert_eq!(
        (made["created"].as_bool(), made["db"].as_str().map(str::to_owned)),
        (Some(true), Some(cli.ok(["where"])))
    );
    assert_eq!(cli.json(["init", "--json"])["created"], false, "it is kept");
    let run = sprint(&cli);
    let plan = cli.json(["run", "rollback", &run, "--to-phase", "plan", "--dry-run", "--json"]);
    let before = cli.dump();
    assert_eq!(cli.json(["run", "status", &run, "--json"])["phase"], "build");
    assert_eq!(cli.dump(), before, "a preview changes nothing");
    let hash = plan["plan_hash"].as_str().expect("a hash");
    cli.ok(["run", "rollback", &run, "--to-phase", "plan", "--expect-plan", hash]);
    assert_eq!(cli.json(["run", "status", &run, "--json"])["phase"], "plan");
    assert_eq!(cli.json(["run", "artifact", "list", &run, "--json"])[0]["status"], "rolled_back");
    cli.ok(["redo", "@", "--yes"]);
    assert_eq!(cli.json(["run", "status", &run, "--json"])["phase"], "build");
    cli.assert_sound("after the undo");
    let log = cluster.log();
    let complaints: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("ERROR") || line.contains("unexpected EOF") || line.contains("could not"))
        .collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
}

#[test]
fn a_project_finds_its_server_again_and_no_other_ledger_hides_it() {
    let Some(cluster) = cluster(&[]) else { return };
    let url = cluster.url("shop");
    let cli = Cli::without_ledger(env!("CARGO_BIN_EXE_ic"));
    let with_url = |more: &[&str]| {
        let words: Vec<&str> = more.iter().copied().chain(["--db", &url]).collect();
        cli.run(words)
    };
    assert_eq!(with_url(&["init"]).code, Some(0));
    // From now on without being told, also from below.
    let run = cli.ok(["run", "create", "--goal", "Port"]);
    std::fs::create_dir(cli.root().join("src")).expect("a directory");
    assert_eq!(cli.json(["run", "status", "@", "--json", "-C", "src"])["id"], run.as_str());
    assert_eq!(cli.ok(["where"]), cli.ok(["where", "-C", "src"]));
    assert!(!cli.root().join("src/.ic").exists());
    // Another one is refused, in a file and on the server.
    let other = cluster.url("other");
    assert_eq!(cli.refused(["init", "--db", &other]), (Some(1), "ledger_exists".to_owned()));
    assert_eq!(cli.json(["init", "--json"])["created"], false);
    // Where nothing leads to it, looking leaves nothing behind.
    let elsewhere = Cli::without_ledger(env!("CARGO_BIN_EXE_ic"));
    assert_eq!(elsewhere.json(["run", "list", "--json", "--db", &url]).as_array().map(Vec::len), Some(1));
    assert!(!elsewhere.root().join(".ic").exists());
}

#[test]
fn a_project_with_a_ledger_in_a_file_keeps_it() {
    let Some(cluster) = cluster(&[]) else { return };
    let cli = Cli::without_ledger(env!("CARGO_BIN_EXE_ic"));
    let env_free = |words: &[&str]| {
        let mut command = cli.command(words);
        command.env_remove("IC_DB");
        ic_testkit::CliOutcome::of(&mut command)
    };
    assert_eq!(env_free(&["init"]).code, Some(0));
    assert_eq!(cli.refused(["init", "--db", &cluster.url("shop")]), (Some(1), "ledger_exists".to_owned()));
    assert_eq!(cluster.psql("SELECT count(*) FROM pg_namespace WHERE nspname = 'shop'"), "0", "nothing was made");
    // Beside it, for one call.
    cluster.project("shop");
    assert_eq!(cli.json(["run", "list", "--json", "--db", &cluster.url("shop")]).as_array().map(Vec::len), Some(0));
}

#[test]
fn who_follows_the_events_sees_each_once_and_holds_nothing_open() {
    let Some(cluster) = cluster(&[]) else { return };
    let cli = cluster.project("shop");
    let mut follower = cli.command(["events", "tail", "--all", "--follow", "--cursor", "c", "--format", "jsonl"]);
    let mut follower = follower.stdout(std::process::Stdio::piped()).spawn().expect("a follower");
    for n in 0..5 {
        cli.ok(["run", "create", "--goal", &format!("g{n}")]);
    }
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(follower.stdout.take().expect("its output")));
    for seq in 1..=5 {
        let line: Value = serde_json::from_str(&lines.next().expect("a line").expect("text")).expect("json");
        assert_eq!(line["seq"], seq);
    }
    std::thread::sleep(std::time::Duration::from_millis(400));
    let open = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ic' AND state LIKE 'idle in%'";
    assert_eq!(cluster.psql(open), "0", "a follower that waits is in no transaction");
    follower.kill().expect("end it");
    follower.wait().expect("its end");
}

#[test]
fn a_redaction_leaves_nothing_in_the_tables() {
    let Some(cluster) = cluster(&[]) else { return };
    let cli = cluster.project("shop");
    let run = cli.ok(["run", "create", "--goal", "Port"]);
    cli.ok(["run", "cancel", &run, "--reason", "SECRETWORD"]);
    assert!(in_files(&cluster, "SECRETWORD"), "it is there before");
    let events = cli.json(["events", "tail", "--all", "--json"]);
    let seq = events.as_array().and_then(|all| all.last()).expect("an event")["seq"].to_string();
    cli.ok(["events", "redact", &seq, "--reason", "a secret"]);
    assert!(!cli.dump().contains("SECRETWORD"));
    assert!(!in_files(&cluster, "SECRETWORD"));
    cli.assert_sound("after the redaction");
}

/// Whether a file of the ledger's tables holds a text.
fn in_files(cluster: &Cluster, text: &str) -> bool {
    cluster.psql("CHECKPOINT");
    let files = cluster.psql(
        "SELECT pg_relation_filepath(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE n.nspname = 'shop' AND c.relkind IN ('r', 'i')",
    );
    files.lines().any(|file| {
        let bytes = std::fs::read(cluster.root().join("data").join(file)).unwrap_or_default();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    })
}

#[test]
fn prompts_of_agents_are_recorded_and_nothing_is_offered_that_is_refused() {
    let Some(cluster) = cluster(&[]) else { return };
    let cli = cluster.project("shop").with_checkpoints();
    let installed = cli.ok(["hooks", "install", "claude-code", "--format", "text"]);
    assert!(installed.contains("ic log") && !installed.contains("ic undo"), "{installed}");
    let tell = |event: &str| {
        let payload = serde_json::json!({
            "session_id": "s-1", "hook_event_name": event, "prompt": "Add it", "prompt_id": "p-1",
            "cwd": cli.root(), "tool_name": "Write", "tool_use_id": "t-1",
        });
        let said = cli.run_with_input(["hook", "claude-code", event], payload.to_string().as_bytes());
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{event}: {said:?}");
        said.stdout
    };
    let welcome = tell("SessionStart");
    assert!(welcome.contains("ic log") && !welcome.contains("ic undo"), "{welcome}");
    for event in ["UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"] {
        tell(event);
    }
    let log = cli.json(["log", "--json"]);
    assert_eq!(log[0]["title"], "Add it", "{log}");
    for verb in ["status", "log"] {
        let said = cli.ok([verb, "--format", "text"]);
        assert!(said.contains("Add it") && said.contains("ic run rollback"), "{verb}: {said}");
        assert!(!said.contains("ic undo"), "{verb}: {said}");
    }
    let doctor = cli.json(["hooks", "doctor", "claude-code", "--json"]);
    assert!(!doctor.to_string().contains("cannot be written"), "{doctor}");
    // What is offered works.
    let (run, prompt) = (log[0]["run_id"].as_str(), log[0]["reference"].as_str());
    let (run, prompt) = (run.expect("a run"), prompt.expect("a reference"));
    cli.ok(["run", "rollback", run, "--to", prompt]);
    let hint = cli.run(["undo", "created", "--run", run, "--yes"]);
    assert_eq!(hint.error(), "not_on_server");
    assert!(hint.stderr.contains("ic run rollback"), "{hint:?}");
    cli.assert_sound("after it");
}

#[test]
fn a_url_that_leads_to_the_same_ledger_takes_the_place_of_the_one_before() {
    let Some(cluster) = cluster(&[]) else { return };
    let cli = ic_testkit::Cli::without_ledger(env!("CARGO_BIN_EXE_ic"));
    let at = |url: &str| cli.run(["--db", url, "init"]);
    assert_eq!(at(&cluster.url("shop")).code, Some(0));
    let run = cli.ok(["run", "create", "--goal", "Port"]);
    role_of_every_day(&cluster, "ann", "");
    let anns = cluster.url("shop").replace("ic@", "ann@");
    assert_eq!(at(&anns).code, Some(0));
    let remote = std::fs::read_to_string(cli.root().join(".ic/remote")).expect("the pointer");
    assert!(remote.contains("ann@"), "{remote}");
    assert!(cli.ok(["run", "status", &run]).contains("Port"));
    // Another ledger does not, and is not made either.
    let other = at(&cluster.url("other"));
    assert_eq!((other.code, other.error().as_str()), (Some(1), "ledger_exists"), "{other:?}");
    assert!(other.stderr.contains("rm ") && other.stderr.contains("remote"), "{other:?}");
    assert_eq!(cluster.psql("SELECT count(*) FROM pg_namespace WHERE nspname = 'other'"), "0");
}

#[test]
fn a_way_to_the_same_ledger_that_cannot_be_asked_is_named_and_changes_nothing() {
    let Some(cluster) = cluster(&[]) else { return };
    let cli = Cli::without_ledger(env!("CARGO_BIN_EXE_ic"));
    let at = |url: &str| cli.run(["--db", url, "init"]);
    let (live, dead) = (cluster.url("shop"), "postgres://ic@/postgres?host=/nowhere&ledger=shop");
    assert_eq!(at(&live).code, Some(0));
    let pointer = cli.root().join(".ic/remote");
    let before = std::fs::read_to_string(&pointer).expect("the pointer");
    assert_eq!(at(dead).error(), "unreachable");
    assert_eq!(at(&live.replace("ic@", "no_such_role@")).error(), "permission_denied");
    assert_eq!(std::fs::read_to_string(&pointer).expect("the pointer"), before);
    // The way of before is dead: then it is not known whether the new one leads to the same.
    std::fs::write(&pointer, format!("{dead}\n")).expect("a pointer");
    let unknown = at(&live);
    assert_eq!(unknown.error(), "ledger_exists", "{unknown:?}");
    assert!(unknown.stderr.contains("does not answer") && unknown.stderr.contains("if you know"), "{unknown:?}");
    std::fs::remove_file(&pointer).expect("as the hint says");
    assert!(at(&live).stdout.contains("\"created\":false"));
}

/// The pointer may have the owner's URL, who made the ledger, and the environment that of every day.
#[test]
fn the_same_ledger_as_another_role_is_of_the_same_project() {
    let Some(cluster) = cluster(&[]) else { return };
    let cli = cluster.project("shop");
    cli.ok(["run", "create", "--goal", "Port"]);
    role_of_every_day(&cluster, "ann", "");
    let below = cli.root().join("src/deep");
    std::fs::create_dir_all(&below).expect("a directory");
    let anns = cluster.url("shop").replace("ic@", "ann@");
    let call = |words: &[&str]| CliOutcome::of(cli.command(words).current_dir(&below).env("IC_DB", &anns));
    let found = call(&["run", "current"]);
    assert_eq!(found.code, Some(0), "{found:?}");
    let place = call(&["where", "--json"]);
    assert_eq!(place.json()["project_dir"], cli.root().to_str().expect("its path"), "{place:?}");
    assert!(!below.join(".ic").exists(), "and has no store of its own there");
}

#[test]
fn a_schema_that_was_renamed_is_written_as_before() {
    let Some(cluster) = cluster(&[]) else { return };
    let old = cluster.project("shop");
    old.ok(["run", "create", "--goal", "Port"]);
    cluster.psql("ALTER SCHEMA shop RENAME TO moved");
    let moved = project_at(&cluster.url("moved"));
    moved.ok(["run", "create", "--goal", "Another"]);
    moved.assert_sound("after it was renamed");
    assert_eq!(old.refused(["run", "list"]), (Some(3), "no_ledger".to_owned()));
}

#[test]
fn a_reader_holds_a_redaction_up_no_longer_than_its_timeout() {
    let Some(cluster) = cluster(&[]) else { return };
    let cli = cluster.project("shop");
    let run = cli.ok(["run", "create", "--goal", "Port"]);
    cli.ok(["run", "cancel", &run, "--reason", "sesame"]);
    let events = cli.json(["events", "tail", "--all", "--json"]);
    let seq = events.as_array().and_then(|all| all.last()).expect("an event")["seq"].to_string();
    let socket = cluster.socket();
    let mut reader = std::process::Command::new("psql");
    let sql = "BEGIN; SELECT count(*) FROM shop.events; SELECT pg_sleep(60)";
    reader.args(["-XAtq", "-U", "ic", "-d", "postgres", "-c", sql, "-h"]).arg(&socket);
    let mut reader = reader.stdout(std::process::Stdio::null()).spawn().expect("a reader");
    ic_testkit::wait_for("the reader", || {
        cluster.psql("SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation WHERE c.relname = 'events' AND l.mode = 'AccessShareLock' AND l.pid <> pg_backend_pid()") != "0"
    });
    let began = std::time::Instant::now();
    let outcome = cli.run(["--busy-timeout", "300ms", "events", "redact", &seq, "--reason", "r"]);
    assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!((outcome.code, outcome.error().as_str()), (Some(2), "busy"), "{outcome:?}");
    assert!(outcome.stderr.contains("the event is redacted") && outcome.stderr.contains("VACUUM FULL"), "{outcome:?}");
    assert!(!cli.dump().contains("sesame"), "it is committed");
    let stop = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)%' AND pid <> pg_backend_pid()";
    cluster.psql(stop);
    reader.wait().expect("its end");
    // What it says the owner can do leaves nothing.
    cluster.psql_as("ic", "VACUUM FULL");
    assert!(!in_files(&cluster, "sesame"));
}

#[test]
fn a_run_of_another_clone_at_the_same_path_is_not_the_current_one() {
    let Some(cluster) = cluster(&[]) else { return };
    let cli = project_at(&cluster.url("seats"));
    cli.ok(["init"]);
    let on = |seat: &str, words: &[&str]| {
        let mut call = cli.command(words);
        CliOutcome::of(call.env("IC_TEST_ACTOR", format!("ann@{seat}:/home/ann/shop")))
    };
    let create = ["run", "create", "--goal", "g", "--phases", "a,b"];
    let (one, two) = (on("one", &create).stdout, on("two", &create).stdout);
    for (seat, own) in [("one", &one), ("two", &two)] {
        assert_eq!(&on(seat, &["run", "current"]).stdout, own, "{seat}");
    }
    assert_eq!(on("one", &["run", "advance", "@"]).code, Some(0));
    assert_eq!(on("two", &["run", "phase", "@"]).stdout.trim(), "a");
    assert_eq!(on("three", &["run", "current"]).code, Some(1));
    // Each clone reads all events with a cursor of the same name.
    let tail = ["events", "tail", "--all", "--cursor", "c", "--format", "jsonl"];
    let (first, again, other) = (on("one", &tail).stdout, on("one", &tail).stdout, on("two", &tail).stdout);
    assert_eq!((first.lines().count(), again.as_str()), (3, ""));
    assert_eq!(other, first);
    assert_eq!(on("one", &["events", "cursor", "reset", "c"]).code, Some(0));
    assert_eq!((on("one", &tail).stdout, on("two", &tail).stdout), (first, String::new()));
    // By its id every clone can name it.
    assert_eq!(on("three", &["run", "phase", one.trim()]).stdout.trim(), "b");
}
