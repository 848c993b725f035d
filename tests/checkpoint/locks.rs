//! Locks: a root that is held holds up nothing elsewhere, no wait is without a limit, and a crowd beside prune loses nothing.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ic_testkit::{Cli, CliOutcome, rounds, tell};
use rusqlite::Connection;
use serde_json::Value;

use crate::project::{create, list, project};

/// Longer than any wait that has a limit here.
const LONG: Duration = Duration::from_mins(1);

/// Runs a call that is ended if it waits without a limit.
fn within_limits(command: &mut Command) -> CliOutcome {
    let started = Instant::now();
    let mut child: Child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start ic");
    while child.try_wait().expect("look at ic").is_none() {
        if started.elapsed() > LONG {
            let _ = child.kill();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().expect("its output");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    CliOutcome { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

/// A call in another root of the same store.
fn elsewhere(cli: &Cli, root: &Path, arguments: &[&str]) -> Command {
    let mut command = cli.command(arguments);
    command.current_dir(root).env("IC_DB", cli.db());
    command
}

fn caches(cli: &Cli) -> PathBuf {
    cli.beside("objects.cache")
}

/// The files of the cache directory with this ending, or without any.
fn files(cli: &Cli, ending: Option<&str>) -> Vec<PathBuf> {
    let all = fs::read_dir(caches(cli)).expect("the cache directory").map(|entry| entry.expect("an entry").path());
    all.filter(|path| path.extension().and_then(|e| e.to_str()) == ending).collect()
}

/// Another root of the same store, with a file in it.
fn second_root(cli: &Cli, name: &str) -> PathBuf {
    let root = fs::canonicalize(cli.home()).expect("the home").join(name);
    fs::create_dir(&root).expect("a directory");
    for i in 0..20 {
        fs::write(root.join(format!("f{i}")), format!("{name} {i}")).expect("a file");
    }
    root
}

#[test]
fn a_root_that_is_held_holds_up_no_prune_and_no_capture_elsewhere() {
    let cli = project();
    fs::write(cli.root().join("a"), "a").expect("a file");
    create(&cli);
    // As a long restore holds them.
    let locks = files(&cli, Some("lock"));
    assert_eq!(locks.len(), 1, "{locks:?}");
    let held: Vec<File> = [locks[0].clone(), locks[0].with_extension("lock.turn")]
        .iter()
        .map(|path| File::options().write(true).open(path).expect("the lock's file"))
        .collect();
    for file in &held {
        file.lock().expect("lock it");
    }
    let other = second_root(&cli, "other");
    let prune = ["checkpoint", "prune", "--older-than", "0s", "--keep-last", "0", "--busy-timeout", "1s"];
    let pruned = within_limits(&mut cli.command(prune));
    assert_eq!(pruned.code, Some(0), "{pruned:?}");
    let captured =
        within_limits(&mut elsewhere(&cli, &other, &["checkpoint", "create", "--busy-timeout", "1s", "--json"]));
    assert_eq!(captured.code, Some(0), "{captured:?}");
    let run = CliOutcome::of(&mut elsewhere(&cli, &other, &["run", "create", "--goal", "g", "--phases", "a,b,c"]));
    let run = run.stdout.trim().to_owned();
    let advanced = within_limits(&mut elsewhere(&cli, &other, &["run", "advance", &run, "--json"]));
    assert!(advanced.json()["checkpoint_id"].is_string(), "{advanced:?}");
    // In the root itself the wait has its limit.
    let here = within_limits(&mut cli.command(["checkpoint", "create", "--busy-timeout", "100ms"]));
    assert_eq!((here.code, here.error().as_str()), (Some(2), "busy"), "{here:?}");
    drop(held);
    create(&cli);
}

#[test]
fn a_stat_cache_that_is_held_is_done_without() {
    let cli = project();
    fs::write(cli.root().join("a"), "one").expect("a file");
    create(&cli);
    let caches = files(&cli, None);
    let cache = caches.iter().find(|path| path.file_name().is_some_and(|name| name.len() == 32));
    let held = File::options().write(true).open(cache.expect("the stat cache")).expect("open it");
    held.lock().expect("lock it");
    fs::write(cli.root().join("a"), "two").expect("a file");
    let call = ["checkpoint", "create", "--busy-timeout", "100ms", "--format", "text"];
    let captured = within_limits(&mut cli.command(call));
    assert_eq!(captured.code, Some(0), "{captured:?}");
    assert_eq!(cli.ok(["checkpoint", "cat", captured.stdout.trim(), "a"]), "two");
    let pruned = within_limits(&mut cli.command(["checkpoint", "prune", "--busy-timeout", "100ms"]));
    assert_eq!(pruned.code, Some(0), "{pruned:?}");
}

/// What one of the crowd does in its turn.
fn turn(cli: &Cli, who: usize, turn: usize, roots: &[PathBuf], restored: &str) -> Option<String> {
    let wait = ["--busy-timeout", "60s"];
    match who % 8 {
        // One that restores, in the project's own root.
        0 if who == 0 => {
            fs::write(cli.root().join("f"), format!("{turn}")).expect("a file");
            let call = ["checkpoint", "restore", restored, "--yes", "--json"];
            let outcome = cli.run(call.iter().chain(&wait));
            assert_eq!(outcome.code, Some(0), "{outcome:?}");
            None
        }
        // One that prunes.
        1 if who == 1 => {
            let call = ["checkpoint", "prune", "--older-than", "0s", "--keep-last", "2", "--grace", "0s"];
            let outcome = cli.run(call.iter().chain(&wait));
            assert_eq!(outcome.code, Some(0), "{outcome:?}");
            None
        }
        _ => {
            let root = &roots[who % roots.len()];
            fs::write(root.join(format!("f{who}")), format!("{who} {turn}")).expect("a file");
            let call: Vec<&str> = ["checkpoint", "create", "--json"].into_iter().chain(wait).collect();
            let outcome = CliOutcome::of(&mut elsewhere(cli, root, &call));
            assert_eq!(outcome.code, Some(0), "{outcome:?}");
            Some(outcome.json()["id"].as_str().expect("an id").to_owned())
        }
    }
}

#[test]
fn a_crowd_beside_prune_and_restores_is_never_busy_and_loses_nothing() {
    let cli = project();
    fs::write(cli.root().join("f"), "first").expect("a file");
    let restored = create(&cli);
    let roots: Vec<PathBuf> = ["one", "two", "three"].iter().map(|name| second_root(&cli, name)).collect();
    let mut taken: Vec<String> = Vec::new();
    for _ in rounds(2) {
        taken.extend(std::thread::scope(|scope| {
            let (cli, roots, restored) = (&cli, &roots, restored.as_str());
            let work = move |who| (0..2).filter_map(|at| turn(cli, who, at, roots, restored)).collect::<Vec<_>>();
            let crowd: Vec<_> = (0..32).map(|who| scope.spawn(move || work(who))).collect();
            crowd.into_iter().flat_map(|one| one.join().expect("one of the crowd")).collect::<Vec<_>>()
        }));
    }
    tell(&format!("{} captures beside prunes and restores", taken.len()));
    // They were asked for by name: no prune gives them up, and everything in them can be read.
    let kept: Vec<Value> = list(&cli).into_iter().map(|checkpoint| checkpoint["id"].clone()).collect();
    for root in &roots {
        let there = CliOutcome::of(&mut elsewhere(&cli, root, &["checkpoint", "list", "--json"])).json();
        assert!(there.as_array().is_some_and(|all| !all.is_empty()), "{there}");
    }
    assert!(kept.contains(&Value::from(restored)), "{kept:?}");
    for id in &taken {
        let shown = cli.json(["checkpoint", "show", id, "--files", "--json"]);
        assert_eq!(shown["counts"]["files"], Value::from(shown["files"].as_array().map_or(0, Vec::len)), "{shown}");
    }
    cli.ok(["checkpoint", "verify", "--read-data"]);
    cli.ok(["events", "verify"]);
}

/// How a call about a checkpoint ends that waits for its turn while the checkpoint is pruned. The file `f` is `new` then.
fn pruned_while_it_waits(cli: &Cli, before: &[&str], after: &[&str]) -> CliOutcome {
    fs::write(cli.root().join("f"), "old").expect("a file");
    let old = cli.ok(["checkpoint", "create", "--auto", "--format", "text"]);
    fs::write(cli.root().join("f"), "new").expect("a file");
    cli.ok(["checkpoint", "create", "--auto"]);
    let root = files(cli, Some("lock")).pop().expect("the root's lock");
    let held = File::options().write(true).open(root).expect("its file");
    held.lock().expect("hold it");
    let words = [before, &[old.as_str(), "--busy-timeout", "30s", "--json"], after].concat();
    let mut call = cli.command(words);
    let waits = call.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start ic");
    // It waits by then; if it does not, it finds the same.
    std::thread::sleep(Duration::from_millis(500));
    let pruned = ["checkpoint", "prune", "--older-than", "0s", "--keep-last", "1", "--grace", "0s", "--json"];
    assert_eq!(cli.json(pruned)["checkpoint_ids"].as_array().expect("a list").len(), 1);
    held.unlock().expect("let it go");
    CliOutcome::from(&waits.wait_with_output().expect("its end"))
}

#[test]
fn a_checkpoint_that_is_pruned_while_a_diff_with_the_tree_waits_is_not_called_damaged() {
    let outcome = pruned_while_it_waits(&project(), &["checkpoint", "diff"], &[]);
    assert_eq!((outcome.code, outcome.error().as_str()), (Some(3), "checkpoint_not_found"), "{outcome:?}");
}

#[test]
fn a_checkpoint_that_is_pruned_while_its_restore_waits_is_not_called_damaged() {
    let cli = project();
    let outcome = pruned_while_it_waits(&cli, &["checkpoint", "restore"], &["--yes"]);
    assert_eq!((outcome.code, outcome.error().as_str()), (Some(3), "checkpoint_not_found"), "{outcome:?}");
    assert_eq!(fs::read_to_string(cli.root().join("f")).expect("a file"), "new");
}

/// A tool that copies the store, or a shell that was left in the middle of a transaction.
#[test]
fn a_prune_waits_for_nobody_who_reads_the_store() {
    let cli = project();
    let noise = |seed: usize| -> Vec<u8> {
        let digits = (0..).map(|at: usize| (at * at * (seed + 7) / 3 % 251).to_le_bytes()[0]);
        digits.take(400_000).collect()
    };
    for seed in 0..6 {
        fs::write(cli.root().join("f"), noise(seed)).expect("a file");
        cli.ok(["checkpoint", "create", "--auto"]);
    }
    let store = cli.beside("objects.db");
    let reader = Connection::open(&store).expect("the store");
    reader.execute_batch("BEGIN; SELECT count(*) FROM objects;").expect("a reader");
    fs::write(cli.root().join("f"), noise(9)).expect("a file");
    cli.ok(["checkpoint", "create", "--auto"]);
    let prune =
        ["checkpoint", "prune", "--older-than", "0s", "--keep-last", "1", "--grace", "0s", "--busy-timeout", "10m"];
    let pruned = within_limits(&mut cli.command(prune));
    assert_eq!(
        (pruned.code, pruned.json()["checkpoint_ids"].as_array().map(Vec::len)),
        (Some(0), Some(6)),
        "{pruned:?}"
    );
    // With its log, which grows while a reader has the file open.
    let size = || {
        let part = |end| fs::metadata(store.with_file_name(format!("objects.db{end}"))).map_or(0, |part| part.len());
        part("") + part("-wal")
    };
    let beside = size();
    drop(reader);
    cli.ok(["checkpoint", "prune", "--older-than", "0s", "--keep-last", "1", "--grace", "0s"]);
    let after = size();
    assert!(after < beside, "what was left is given back another time: {beside} {after}");
    cli.ok(["checkpoint", "verify", "--read-data"]);
}
