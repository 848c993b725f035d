//! Every error code, provoked; its page in `docs/errors/` shows exactly the output of the program.
//!
//! `IC_UPDATE=1 cargo test -p ic --test cli error_pages` writes the output into the pages.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::process::Stdio;

use ic_base::Code;
use ic_testkit::CliOutcome;

use crate::support::{Project, args, assert_shape, chain, docs, story};
use crate::verbs::checkpoint::{with_history, write};
use crate::verbs::rewind::{with_tasks, with_vectors};
use crate::verbs::workflow::completed as workflow_completed;

/// Codes that cannot be provoked everywhere: they need a file system or a user that is not at hand.
const BY_HAND: &[&str] = &[
    "unsupported_fs", "permission_denied", "foreign_commits", "git_in_progress", "git_busy", "git_unsupported",
    "git_failed", "file_conflict", "row_conflict", "effect_failed", "interrupted", "conflict",
    // They need a server: tests/server.
    "migration_needed", "untrusted_server", "nothing_to_skip", "archive_in_use", "checkpoint_needed", "steps_overlap",
    "branch_switched",
];

/// How a code comes about: what happened before, and the call.
struct Scene {
    code: &'static str,
    before: fn(&Project),
    call: &'static str,
}

fn nothing(_: &Project) {}

fn with_story(project: &Project) {
    story(project);
}

fn silent(project: &Project) {
    story(project);
    // Only where no process is on record a beat counts.
    project.cli.sql("UPDATE dispatches SET pid = NULL, pid_start_time = NULL, pid_boot_id = NULL");
    project.ok("dispatch beat 0a00000f --ttl 1ms");
}

fn short(project: &Project) {
    chain(project, "draft,edit,done", "edit");
}

/// Two restores, one after another.
fn restored_twice(project: &Project) {
    with_history(project);
    project.ok("checkpoint restore 0a000011 --yes");
    project.ok("checkpoint restore 0a000023 --yes");
}

fn rolled_back(project: &Project) {
    story(project);
    project.ok("run rollback @ --to-phase planned");
}

fn with_pivot(project: &Project) {
    short(project);
    for (step, undo) in [("order", "--shell true"), ("pay", "--pivot --reason paid")] {
        project.ok(&format!("compensation add @ --step {step} {undo}"));
    }
}

fn with_effect_undone(project: &Project) {
    short(project);
    project.ok("compensation add @ --step order --shell true");
    project.ok("run rollback @ --to-phase draft --layer=workflow,effects --yes");
}

fn rolled_back_and_on(project: &Project) {
    short(project);
    project.ok("run rollback @ --to-phase draft");
    project.ok("run advance @");
}

fn beside_another(project: &Project) {
    story(project);
    project.ok("run create --goal Port --scope-id port");
}

fn sql(project: &Project, statements: &str) {
    project.database().execute_batch(statements).expect("change the ledger");
}

const SCENES: &[Scene] = &[
    Scene { code: "usage", before: with_story, call: "run rollback @ --to-phase planned --dryrun" },
    Scene { code: "invalid_value", before: nothing, call: "run create --goal Port --phases build" },
    Scene { code: "invalid_reference", before: with_story, call: "run status 123" },
    Scene { code: "no_ledger", before: nothing, call: "run list -C .." },
    Scene { code: "run_not_found", before: with_story, call: "run status 7f3a9c21" },
    Scene { code: "dispatch_not_found", before: with_story, call: "dispatch show 7f3a9c21" },
    Scene { code: "agent_not_found", before: with_story, call: "run agent update 7f3a9c21 --status completed" },
    Scene { code: "event_not_found", before: short, call: "events redact 99 --reason 'a token was pasted'" },
    Scene { code: "cursor_not_found", before: short, call: "events cursor reset notifier" },
    Scene { code: "consumer_failed", before: short, call: "events tail --cursor notifier --each 'exit 7'" },
    Scene { code: "history_forked", before: read_further, call: "events tail --cursor notifier" },
    Scene { code: "ambiguous_id", before: same_end, call: "run status abcdef01" },
    Scene { code: "ambiguous_run", before: two_runs, call: "run status @" },
    Scene { code: "rollback_not_found", before: rolled_back, call: "rollback show 7f3a9c21" },
    Scene { code: "no_active_run", before: nothing, call: "run current" },
    Scene { code: "stale_phase", before: short, call: "run advance @ --expect-phase draft@0" },
    Scene { code: "stale_dispatch", before: rolled_back, call: "dispatch complete 0a00000f" },
    Scene { code: "dispatch_finished", before: with_story, call: "dispatch complete 0a00000a" },
    Scene { code: "dispatch_running", before: with_story, call: "dispatch start 0a00000f" },
    Scene { code: "agent_finished", before: agent_done, call: "run agent update 0a000012 --status failed" },
    Scene { code: "process_gone", before: abandoned, call: "wait 0a000015" },
    Scene { code: "no_conversation", before: with_story, call: "session continue 0a00000a" },
    Scene { code: "lost", before: silent, call: "wait 0a00000f" },
    Scene { code: "timed_out", before: with_story, call: "wait 0a00000f --timeout 0s" },
    Scene { code: "gate_blocked", before: with_story, call: "run advance @" },
    Scene { code: "paused", before: by_hand, call: "run advance @" },
    Scene { code: "file_exists", before: copied, call: "backup copy.db" },
    Scene { code: "ledger_behind", before: restored, call: "run advance @" },
    Scene { code: "foreign_log", before: replaced, call: "run status @" },
    Scene { code: "scope_taken", before: with_story, call: "run create --goal Port --scope-id sprint-12" },
    Scene { code: "run_not_active", before: cancelled, call: "run rollback 0a000002 --to-phase draft" },
    Scene { code: "rolling_back", before: rolling, call: "run advance @" },
    Scene { code: "unknown_phase", before: short, call: "run rollback @ --to-phase Draft" },
    Scene { code: "phase_ahead", before: short, call: "run rollback @ --to-phase done" },
    Scene { code: "phase_passed", before: short, call: "run skip @ draft --reason 'not needed'" },
    Scene { code: "already_at_phase", before: short, call: "run rollback @ --to-phase edit" },
    Scene { code: "terminal_phase", before: completed, call: "run advance 0a000002" },
    Scene { code: "plan_changed", before: short, call: "run rollback @ --to-phase draft --expect-plan 5d41402a" },
    Scene { code: "point_not_found", before: with_story, call: "run rollback @ --to dispach:0a00000f" },
    Scene {
        code: "point_of_other_run",
        before: beside_another,
        call: "run rollback scope:port --to dispatch:0a00000f",
    },
    Scene { code: "point_taken_back", before: rolled_back, call: "run rollback @ --to dispatch:0a00000f" },
    Scene { code: "point_before_run", before: with_history, call: "run rollback @ --to checkpoint:0a000011" },
    Scene { code: "nothing_to_redact", before: redacted, call: "events redact 1 --reason again" },
    Scene {
        code: "dispatch_of_other_run",
        before: beside_another,
        call: "run agent add scope:port --type claude --dispatch 0a00000f",
    },
    Scene { code: "ledger_exists", before: nothing, call: "init --store elsewhere" },
    Scene { code: "config_not_changed", before: with_tasks, call: "rewind init --profile devs" },
    Scene { code: "table_conflict", before: with_other_tasks, call: "rewind init --profile devs --database app.db" },
    Scene { code: "no_order", before: without_time, call: "rewind to T2 --dry-run" },
    Scene { code: "commit_unusable", before: without_git, call: "rewind to T2 --dry-run" },
    Scene { code: "not_finished", before: rewinding, call: "rewind to T1 --yes" },
    Scene { code: "no_workflow", before: short, call: "workflow show @" },
    Scene { code: "nothing_to_roll_back", before: taken_back, call: "workflow rollback --yes" },
    Scene { code: "pivot", before: with_pivot, call: "run rollback @ --to-phase draft --layer=workflow,effects --yes" },
    Scene { code: "effects_undone", before: with_effect_undone, call: "redo --yes" },
    Scene { code: "run_changed", before: rolled_back_and_on, call: "redo --yes" },
    Scene { code: "nothing_to_resume", before: rolled_back, call: "rollback resume @ --yes" },
    Scene { code: "artifact_not_found", before: nothing, call: "run artifact cat 7f3a9c21" },
    Scene { code: "checkpoint_not_found", before: nothing, call: "checkpoint show 7f3a9c21" },
    Scene { code: "fork_not_found", before: nothing, call: "adopt try" },
    Scene { code: "compensation_not_found", before: short, call: "compensation run @ --step deploy --yes" },
    Scene { code: "session_not_found", before: nothing, call: "session show 7f3a9c21" },
    Scene { code: "rewind_not_found", before: nothing, call: "rewind resume 7f3a9c21 --yes" },
    Scene { code: "unknown_task", before: with_tasks, call: "rewind to T9 --dry-run" },
    Scene { code: "path_not_found", before: with_history, call: "checkpoint cat 0a000011 no-such-file" },
    Scene {
        code: "confirmation_required",
        before: short,
        call: "run rollback @ --to-phase draft --layer=workflow,effects",
    },
    Scene { code: "invalid_config", before: misspelt, call: "config show" },
    Scene { code: "invalid_workflow", before: misnamed, call: "workflow validate release.yaml" },
    Scene { code: "no_checkpoint", before: nothing, call: "checkpoint restore --latest --yes" },
    Scene { code: "not_undoable", before: restored_twice, call: "redo 0a000033 --yes" },
    Scene { code: "nothing_to_undo", before: nothing, call: "redo --yes" },
    Scene { code: "work_running", before: working, call: "checkpoint restore 0a000011 --yes" },
    Scene { code: "unsafe_root", before: nothing, call: "checkpoint create" },
    Scene { code: "tree_too_large", before: small, call: "checkpoint create" },
    Scene {
        code: "foreign_root",
        before: with_history,
        call: "checkpoint restore 0a000011 --yes --db ../.ic/ic.db -C src",
    },
    Scene { code: "newer_schema", before: newer, call: "run list" },
    Scene { code: "foreign_database", before: foreign, call: "run list --db app.db" },
    Scene { code: "foreign_store", before: anothers, call: "checkpoint create" },
    Scene { code: "unreachable", before: nothing, call: "run list --db postgres://127.0.0.1:1/shop" },
    Scene { code: "not_on_server", before: nothing, call: "checkpoint create --db postgres://db.example/shop" },
    Scene { code: "busy", before: nothing, call: "run create --goal Port --busy-timeout 50ms" },
    Scene { code: "corrupt", before: headless, call: "run create --goal Port" },
    Scene { code: "chain_broken", before: tampered, call: "events verify" },
    Scene { code: "disk_full", before: nothing, call: "run list" },
    Scene { code: "migration_failed", before: half_migrated, call: "run list" },
    Scene { code: "io_error", before: unreadable, call: "run artifact add @ --path disk.img" },
    Scene { code: "internal", before: meddled, call: "run set @ --complexity 2" },
];

/// A database whose tables have the names of the profile `devs`, and mean something else.
fn with_other_tasks(project: &Project) {
    let db = rusqlite::Connection::open(project.root().join("app.db")).expect("make a database");
    db.execute_batch("CREATE TABLE tasks (n INTEGER)").expect("make a table");
}

fn in_the_application(project: &Project, statement: &str) {
    let db = rusqlite::Connection::open(project.cli.beside("state.db")).expect("the database");
    db.execute_batch(statement).expect("change it");
}

fn without_time(project: &Project) {
    with_tasks(project);
    in_the_application(project, "UPDATE tasks SET created_at = x'00' WHERE task_id = 'T2'");
}

fn without_git(project: &Project) {
    with_tasks(project);
    in_the_application(project, "UPDATE tasks SET git_commit_hash = '5d41402abc4b2a76b9719d911017c592deadbeef'");
}

/// A rewind that stopped before its last stage.
fn rewinding(project: &Project) {
    with_vectors(project);
    assert_eq!(project.run("rewind to T1 --yes").code, Some(4));
}

/// A workflow that was rolled back.
fn taken_back(project: &Project) {
    workflow_completed(project);
    project.ok("workflow rollback --yes");
}

fn misspelt(project: &Project) {
    write(project, ".ic.yaml", "rollback:\n  retention:\n    keep_last: 3\n");
}

fn misnamed(project: &Project) {
    write(project, "release.yaml", "name: release\nsteps:\n  - id: build\n    command: make\n");
}

fn working(project: &Project) {
    with_history(project);
    let dispatch = project.ok("dispatch create @ --name build");
    project.ok(&format!("dispatch start {dispatch} --pid {}", ic_testkit::living_process()));
}

/// A worker that ended without a word.
fn abandoned(project: &Project) {
    story(project);
    let dispatch = project.ok("dispatch create @ --name build");
    let mut worker = std::process::Command::new("sleep").arg("1000").spawn().expect("a worker");
    project.ok(&format!("dispatch start {dispatch} --pid {}", worker.id()));
    worker.kill().and_then(|()| worker.wait()).expect("end it");
}

fn small(project: &Project) {
    write(project, ".ic.yaml", "rollback: {checkpointing: {max-files: 1}}\n");
    write(project, "a.md", "a\n");
}

fn same_end(project: &Project) {
    for seed in [0x1_abcd_ef01_u64, 0x2_abcd_ef01] {
        let mut command = project.command(["run", "create", "--goal", "Port", "--phases", "a,b"]);
        assert!(command.env("IC_TEST_IDS", seed.to_string()).output().expect("run ic").status.success());
    }
}

fn two_runs(project: &Project) {
    project.ok("run create --goal 'Add a login'");
    project.ok("run create --goal 'Write docs'");
}

fn agent_done(project: &Project) {
    story(project);
    project.ok("run agent update 0a000012 --status completed");
}

fn by_hand(project: &Project) {
    project.ok("run create --goal Port --phases draft,edit,done --auto-advance false");
}

fn cancelled(project: &Project) {
    short(project);
    project.ok("run cancel @");
}

fn rolling(project: &Project) {
    short(project);
    sql(project, "UPDATE runs SET status = 'rolling_back'");
}

fn completed(project: &Project) {
    chain(project, "draft,edit,done", "done");
}

fn redacted(project: &Project) {
    short(project);
    project.ok("events redact 1 --reason 'a token was pasted'");
}

fn copied(project: &Project) {
    short(project);
    project.ok("backup copy.db");
}

/// An older copy is in the ledger's place, without the log.
fn restored(project: &Project) {
    copied(project);
    project.ok("run advance @");
    let ledger = ledger_of(project);
    std::fs::rename(project.root().join("copy.db"), &ledger).expect("the copy, in its place");
    std::fs::remove_file(format!("{ledger}-wal")).expect("the log");
}

/// A consumer has read an event that is not there any more.
fn read_further(project: &Project) {
    short(project);
    project.ok("events tail --cursor notifier");
    let cursors = std::fs::read_dir(Path::new(&ledger_of(project)).with_file_name("cursors")).expect("cursors");
    let paths = cursors.map(|entry| entry.expect("an entry").path());
    let read = paths.into_iter().find(|path| path.extension().is_some_and(|end| end == "read"));
    std::fs::write(read.expect("what was read"), format!("9 {}\n", "4".repeat(64))).expect("a later event");
}

/// An older copy is in the ledger's place, beside a log that was begun later.
fn replaced(project: &Project) {
    copied(project);
    project.ok("run advance @");
    // Closing by the means of SQLite alone folds the log in; the next call begins another one.
    sql(project, "SELECT 1");
    project.ok("run create --goal Port");
    std::fs::rename(project.root().join("copy.db"), ledger_of(project)).expect("the copy, in its place");
}

fn ledger_of(project: &Project) -> String {
    project.database().path().expect("its path").to_owned()
}

fn newer(project: &Project) {
    sql(project, "PRAGMA user_version = 1000");
}

fn foreign(project: &Project) {
    let db = rusqlite::Connection::open(project.root().join("app.db")).expect("make a database");
    db.execute_batch("CREATE TABLE orders (id)").expect("make a table");
}

fn headless(project: &Project) {
    sql(project, "DROP TRIGGER event_head_is_not_deleted; DELETE FROM event_head;");
}

fn anothers(project: &Project) {
    project.ok("checkpoint create --allow-unsafe-root");
    let store = project.database().path().expect("its path").replace("ic.db", "objects.db");
    rusqlite::Connection::open(store)
        .and_then(|store| store.execute("UPDATE store SET ledger = '00000000-0000-7000-8000-0000000000b0'", []))
        .expect("another owner");
}

fn tampered(project: &Project) {
    short(project);
    sql(project, "DROP TRIGGER events_are_not_changed; UPDATE events SET to_state = 'done' WHERE seq = 2;");
}

fn half_migrated(project: &Project) {
    sql(project, "DELETE FROM refinery_schema_history; PRAGMA user_version = 0; PRAGMA application_id = 0;");
}

fn unreadable(project: &Project) {
    short(project);
    std::os::unix::fs::symlink("/proc/self/mem", project.root().join("disk.img")).expect("a link");
}

fn meddled(project: &Project) {
    short(project);
    sql(project, "CREATE TRIGGER t BEFORE UPDATE ON runs BEGIN SELECT RAISE(IGNORE); END;");
}

/// Runs the call of a scene in this form, in the circumstances that it needs.
fn call(project: &Project, scene: &Scene, form: &str) -> CliOutcome {
    let line = format!("{} --format {form}", scene.call);
    match scene.code {
        "busy" => {
            let db = project.database();
            db.execute_batch("BEGIN IMMEDIATE").expect("hold the ledger");
            project.run(&line)
        }
        "disk_full" => {
            let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
            let mut command = project.command(args(&line));
            let child = command.stdout(Stdio::from(full)).stderr(Stdio::piped()).spawn().expect("start ic");
            let output = child.wait_with_output().expect("its end");
            CliOutcome {
                code: output.status.code(),
                stdout: String::new(),
                stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            }
        }
        "unsafe_root" => project.run_with("HOME", project.root(), &line),
        _ => project.run(&line),
    }
}

/// The number of the worker that an error or a record names.
fn worker_of(line: &str) -> Option<String> {
    let said: serde_json::Value = serde_json::from_str(line).ok()?;
    let pid = said["error"]["details"]["dispatches"][0]["pid"].as_i64().or_else(|| said["pid"].as_i64());
    pid.map(|pid| pid.to_string())
}

/// What the page of a scene shows.
fn shown(scene: &Scene, code: Code) -> String {
    let project = Project::new();
    (scene.before)(&project);
    let (people, script) = (call(&project, scene, "text"), call(&project, scene, "json"));
    let exit = match code.kind() {
        ic_base::ErrorKind::No => 1,
        ic_base::ErrorKind::Failure => 2,
        ic_base::ErrorKind::Usage => 3,
    };
    assert_eq!((people.code, script.code), (Some(exit), Some(exit)), "{}: {people:?} {script:?}", scene.code);
    let mut text = String::from("```console\n");
    let arrow = if scene.code == "disk_full" { " > /dev/full" } else { "" };
    let _ = write!(text, "$ ic {}{arrow}\n{}{}", scene.call, people.stdout, people.stderr);
    if script.stderr.is_empty() {
        let record = script.json();
        let (code, path) =
            if record.is_array() { (&record[0]["code"], "'.[].code'") } else { (&record["code"], ".code") };
        assert_eq!(code, scene.code);
        let _ = write!(text, "$ ic {} --json | jq -r {path}\n{}\n", scene.call, scene.code);
    } else {
        let value = serde_json::from_str(&script.stderr).expect("one line of JSON");
        assert_shape("error", &value);
        assert_eq!(script.error(), scene.code, "{script:?}");
        let _ = write!(text, "$ ic {} --json{arrow}\n{}", scene.call, script.stderr);
    }
    text.push_str("```");
    // The worker of a page has another number each time.
    let pid = worker_of(if script.stderr.is_empty() { &script.stdout } else { &script.stderr });
    let text = pid.map_or(text.clone(), |pid| with_number(&text, &pid));
    project.plain(&text)
}

/// The text with 4321 for a number that stands alone: the same digits are also in ids.
fn with_number(text: &str, number: &str) -> String {
    let words = text.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    words
        .map(|word| match word.strip_prefix(number) {
            Some(end) if !end.starts_with(|c: char| c.is_ascii_alphanumeric()) => format!("4321{end}"),
            _ => word.to_owned(),
        })
        .collect()
}

#[test]
fn every_code_is_provoked() {
    let scenes: BTreeSet<&str> = SCENES.iter().map(|scene| scene.code).chain(BY_HAND.iter().copied()).collect();
    let codes: BTreeSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(scenes, codes);
}

#[test]
fn every_page_shows_what_the_program_says() {
    let update = std::env::var_os("IC_UPDATE").is_some_and(|value| value == "1");
    for scene in SCENES {
        let code = Code::ALL.iter().find(|code| code.as_str() == scene.code).expect("a code");
        let shown = shown(scene, *code);
        let path = docs(&format!("errors/{}.md", scene.code));
        let page = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let (before, rest) = page.split_once("## What it looks like\n\n").expect("a heading");
        let (found, after) = rest.split_once("\n\n## What to do\n").expect("a heading");
        if update {
            let page = format!("{before}## What it looks like\n\n{shown}\n\n## What to do\n{after}");
            std::fs::write(&path, page).expect("write the page");
        } else {
            assert_eq!(found, shown, "docs/errors/{}.md; IC_UPDATE=1 writes it", scene.code);
        }
    }
}
