//! Retention acts by itself after every kind of checkpoint: rows at once, content soon after.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use ic_testkit::{Cli, TestDatabase, wait_for};

use crate::project::{list, project};

/// When the first is taken: long enough ago for anything to be old.
const LONG_AGO: u64 = 1_600_000_000_000;

fn configured(retention: &str) -> Cli {
    let cli = project();
    fs::write(cli.root().join(".ic.yaml"), format!("rollback: {{retention: {{{retention}}}}}\n"))
        .expect("a configuration");
    cli
}

/// Takes a checkpoint of a tree that no other has; its content does not compress.
fn take(cli: &Cli, turn: u64, arguments: &[&str]) -> String {
    let mut random = turn.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random.to_be_bytes()[0]
    })
    .take(40_000)
    .collect();
    fs::write(cli.root().join("work"), noise).expect("a file");
    take_as_it_is(cli, turn, arguments)
}

/// Takes a checkpoint of the tree.
fn take_as_it_is(cli: &Cli, turn: u64, arguments: &[&str]) -> String {
    let call = [["checkpoint", "create", "--format", "text"].as_slice(), arguments].concat();
    let mut call = cli.command(call);
    call.env("IC_TEST_CLOCK", (LONG_AGO + turn).to_string());
    let outcome = ic_testkit::CliOutcome::of(&mut call);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
    outcome.stdout.trim().to_owned()
}

fn ids(cli: &Cli) -> Vec<String> {
    list(cli).iter().map(|one| one["id"].as_str().expect("an id").to_owned()).collect()
}

fn age(stamp: &Path) {
    let file = fs::File::open(stamp).expect("the stamp");
    let made = file.metadata().and_then(|meta| meta.modified()).expect("a time");
    file.set_modified(made - Duration::from_hours(2)).expect("an older stamp");
}

#[test]
fn a_chat_that_only_takes_checkpoints_keeps_as_many_as_it_is_told() {
    let cli = configured("max-age: 1ms, keep-last: 2");
    let taken: Vec<String> =
        (0..6).map(|turn| take(&cli, turn * 1000, &["--auto", "--conversation", "chat"])).collect();
    assert_eq!(ids(&cli), taken[4..], "the newest two stay, without any other call");
}

#[test]
fn those_that_a_person_took_stay_and_let_old_ones_of_hooks_go() {
    let cli = configured("max-age: 1ms, keep-last: 1");
    let of_hook = take(&cli, 0, &["--auto"]);
    let of_person = [take(&cli, 1000, &[]), take(&cli, 2000, &["--name", "mine"])];
    assert_eq!(ids(&cli), of_person, "{of_hook} is old, and not among the newest of its line");
}

#[test]
fn the_content_of_what_was_pruned_goes_without_a_further_call() {
    let cli = configured("max-age: 1ms, keep-last: 1");
    let caches = cli.beside("objects.cache");
    let store = TestDatabase::open(&cli.beside("objects.db"));
    let objects = || store.first_row("SELECT count(*) FROM objects");
    take(&cli, 0, &["--auto"]);
    let of_one = objects();
    take(&cli, 1000, &["--auto"]);
    wait_for("the first sweep", || caches.join("pruned").exists() && !caches.join("unswept").exists());
    take(&cli, 3_600_000, &["--auto"]);
    assert!(caches.join("unswept").exists(), "it waits: there was a sweep within the hour");
    assert_ne!(objects(), of_one);
    age(&caches.join("pruned"));
    // Content that is younger than a minute stays, so the last one is taken later than that.
    take(&cli, 3_800_000, &["--auto"]);
    wait_for("the old content is gone", || objects() == of_one);
    assert_eq!(cli.json(["checkpoint", "verify", "--read-data", "--json"])["damaged"], serde_json::json!([]));
}

#[test]
fn a_store_beyond_its_size_prunes_the_oldest_whatever_their_age() {
    let cli = configured("keep-last: 1, max-size: 100KB");
    for turn in 0..6 {
        take(&cli, turn, &["--auto"]);
    }
    wait_for("the newest alone is kept", || ids(&cli).len() < 6);
}

/// The bytes that the store takes.
fn size(cli: &Cli) -> u64 {
    let of = |name: &str| fs::metadata(cli.beside(name)).map_or(0, |meta| meta.len());
    of("objects.db") + of("objects.db-wal")
}

#[test]
fn a_store_beyond_its_size_prunes_no_more_than_it_must() {
    const MOST: u64 = 400_000;
    const TAKEN: u64 = 12;
    let cli = configured("keep-last: 1");
    for turn in 0..TAKEN {
        take(&cli, turn * 100_000, &["--auto"]);
    }
    assert!(size(&cli) > MOST);
    let limited = format!("rollback: {{retention: {{keep-last: 1, max-size: {MOST}}}}}\n");
    fs::write(cli.root().join(".ic.yaml"), limited).expect("a configuration");
    // Content that is younger than a minute stays, so this one is taken later than that.
    take(&cli, TAKEN * 100_000, &["--auto"]);
    wait_for_sweep(&cli);
    let (left, size) = (ids(&cli).len() as u64, size(&cli));
    assert!(size <= MOST, "{size} bytes");
    assert!((TAKEN / 3..TAKEN).contains(&left), "{left} of {TAKEN} are left, in {size} bytes");
}

fn wait_for_sweep(cli: &Cli) {
    let caches = cli.beside("objects.cache");
    wait_for("a sweep", || caches.join("pruned").exists() && !caches.join("unswept").exists());
}

fn hook(cli: &Cli, turn: u64, event: &str, prompt: &str) {
    let said = serde_json::json!({"session_id": "s-1", "cwd": cli.root(), "prompt": prompt, "prompt_id": prompt});
    let mut call = cli.command(["hook", "claude-code", event]);
    call.env("IC_TEST_CLOCK", (LONG_AGO + turn).to_string()).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = call.spawn().expect("a hook");
    child.stdin.take().expect("its input").write_all(said.to_string().as_bytes()).expect("what it is told");
    assert!(child.wait().expect("its end").success(), "{event}");
}

#[test]
fn what_the_newest_prompts_need_stays_however_large_the_store_is() {
    let cli = configured("max-age: 1ms, keep-last: 1, max-size: 50KB");
    take(&cli, 0, &["--auto"]);
    let mut before = Vec::new();
    for number in 1..=5_u8 {
        before.push(fs::read(cli.root().join("work")).expect("the file"));
        let (prompt, at) = (format!("p-{number}"), u64::from(number) * 200_000);
        hook(&cli, at, "UserPromptSubmit", &prompt);
        fs::write(cli.root().join("work"), before[0].iter().map(|b| b ^ number).collect::<Vec<_>>())
            .expect("what the agent writes");
        hook(&cli, at + 100_000, "Stop", &prompt);
    }
    wait_for("the first sweep", || cli.beside("objects.cache/pruned").exists());
    age(&cli.beside("objects.cache/pruned"));
    take_as_it_is(&cli, 2_000_000, &["--auto"]);
    wait_for_sweep(&cli);
    assert!(size(&cli) > 50_000, "all of it is needed");
    for content in before.iter().rev() {
        cli.json(["undo", "--yes", "--json"]);
        assert!(fs::read(cli.root().join("work")).expect("the file") == *content, "as before the prompt");
    }
}

#[test]
fn deleting_keeps_the_points_that_a_prune_keeps() {
    let cli = configured("points: 2");
    let run = cli.ok(["run", "create", "--goal", "g", "--phases", "a,b"]);
    let mut before = Vec::new();
    for n in 0..4 {
        fs::write(cli.root().join("work"), n.to_string()).expect("a file");
        let work = cli.ok(["dispatch", "create", &run, "--no-checkpoint"]);
        cli.ok(["dispatch", "start", &work]);
        before.push(ids(&cli).pop().expect("the look before it"));
        cli.ok(["dispatch", "complete", &work, "--no-checkpoint"]);
    }
    cli.ok(["checkpoint", "delete", &before[1]]);
    for id in &before[2..] {
        assert_eq!(cli.refused(["checkpoint", "delete", id]), (Some(1), "checkpoint_needed".to_owned()));
    }
}

#[test]
fn the_size_of_a_store_and_its_limit_are_told() {
    let cli = configured("max-size: 50KB, keep-last: 5");
    take(&cli, 0, &["--auto"]);
    take(&cli, 1000, &["--auto"]);
    let said = |words: &[&str]| {
        let outcome = ic_testkit::CliOutcome::of(&mut cli.command(words));
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        outcome.stdout
    };
    let health = said(&["health", "--format", "text"]);
    assert!(health.contains("less than 1 MB, more than 50.0 kB (rollback.retention.max-size)"), "{health}");
    let listed = said(&["checkpoint", "list", "--format", "text"]);
    assert!(listed.contains("\nstore: less than 1 MB, more than 50.0 kB "), "{listed}");
    cli.ok(["run", "create", "--goal", "a run", "--phases", "a,b,c"]);
    let status = said(&["status", "--format", "text"]);
    assert!(status.contains("  store       less than 1 MB, more than 50.0 kB "), "{status}");
}

#[test]
fn a_look_that_fails_is_a_warning_and_the_checkpoint_stands() {
    let cli = configured("max-age: 1ms, keep-last: 1");
    take(&cli, 0, &["--auto"]);
    let stamp = cli.beside("objects.cache/looked");
    fs::remove_file(&stamp).expect("no stamp");
    fs::create_dir(&stamp).expect("what cannot be written");
    let record = cli.json(["checkpoint", "create", "--auto", "--json"]);
    assert_eq!(record["warnings"][0]["code"], "retention_failed", "{record}");
    assert!(ids(&cli).contains(&record["id"].as_str().expect("an id").to_owned()));
}
