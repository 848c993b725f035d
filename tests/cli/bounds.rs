//! Texts that are too long, steer a terminal or are no UTF-8, and files in a broken repository.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use ic_testkit::{Cli, CliOutcome};

fn project() -> Cli {
    Cli::new(env!("CARGO_BIN_EXE_ic"))
}

fn run_of(cli: &Cli) -> String {
    cli.ok(["run", "create", "--goal", "g", "--phases", "a,b"])
}

#[test]
fn an_error_repeats_no_argument_that_is_too_long_to_read() {
    let cli = project();
    let run = run_of(&cli);
    let long = "x".repeat(120_000);
    let calls: [&[&str]; 5] = [
        &["run", "status", &long],
        &["run", "rollback", &run, "--to-phase", &long, "--dry-run"],
        &["run", "create", "--goal", "g", "--phases", "a,b", "--complexity", &long],
        &[&long],
        &["--db", &long, "run", "list"],
    ];
    for call in calls {
        for format in ["json", "text"] {
            let outcome = cli.run(call.iter().copied().chain(["--format", format]));
            assert!(matches!(outcome.code, Some(1..=3)), "{:?}", outcome.code);
            let length = outcome.stderr.len();
            assert!((20..20_000).contains(&length), "{} {format}: {length} bytes", &call[0][..call[0].len().min(9)]);
        }
    }
}

#[test]
fn a_line_of_a_report_has_a_bound_and_what_is_refused_is_not_recorded() {
    let cli = project();
    let run = run_of(&cli);
    let dispatch = cli.ok(["dispatch", "create", &run]);
    let commit = "a".repeat(40);
    let line = |files: &str| format!("{{\"commit\":\"{commit}\",\"files\":[{files}]}}\n");
    let (many, one) = (vec!["\"f\""; 1_500_000].join(","), format!("\"{}\"", "f".repeat(3_000_000)));
    let before = cli.dump();
    for files in [&many, &one] {
        let outcome = cli.run_with_input(["dispatch", "record", &dispatch, "--stdin"], line(files).as_bytes());
        assert_eq!((outcome.code, outcome.error().as_str()), (Some(3), "invalid_value"));
        assert!(outcome.stderr.contains("Line 1") && outcome.stderr.len() < 20_000, "{} bytes", outcome.stderr.len());
        assert_eq!(cli.dump(), before);
    }
    // The way that the hint names.
    let parts = line("\"f1\"") + &line("\"f2\"");
    let outcome = cli.run_with_input(["dispatch", "record", &dispatch, "--stdin"], parts.as_bytes());
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let shown = cli.json(["dispatch", "show", &dispatch, "--json"]);
    assert_eq!(shown["files"].as_array().map(Vec::len), Some(2), "{shown}");
    assert_eq!(shown["commits"].as_array().map(Vec::len), Some(1), "{shown}");
}

#[test]
fn metadata_has_one_bound_however_many_merges_made_it() {
    let cli = project();
    let run = run_of(&cli);
    let merge = |key: usize| {
        let value = format!("{{\"k{key}\":\"{}\"}}", "x".repeat(90_000));
        cli.run(["run", "set", &run, "--metadata-merge", &value])
    };
    let refused = (0..30).map(merge).find(|outcome| outcome.code != Some(0)).expect("one is refused");
    assert_eq!((refused.code, refused.error().as_str()), (Some(3), "invalid_value"), "{}", refused.stderr);
    let metadata = || cli.json(["run", "status", &run, "--json"])["metadata"].to_string().len();
    assert!(metadata() <= 1 << 20, "{} bytes", metadata());
    // What is too much can be taken out again.
    cli.ok(["run", "set", &run, "--metadata-merge", "{\"k0\":null}"]);
    assert!(metadata() < 1_000_000, "{} bytes", metadata());
}

#[test]
fn format_controls_reach_no_text() {
    let cli = project();
    let bad = ['\u{61c}', '\u{200f}', '\u{202e}', '\u{2066}', '\u{feff}', '\u{e0041}'];
    let name: String = bad.iter().collect();
    let run = cli.ok(["run", "create", "--goal", &format!("g{name}"), "--phases", "a,b"]);
    cli.ok(["dispatch", "create", &run, "--name", &format!("n{name}")]);
    let database = cli.root().join("evil.db");
    let evil = rusqlite::Connection::open(&database).expect("a database");
    evil.execute_batch(&format!(
        "CREATE TABLE tasks (id TEXT PRIMARY KEY, created_at INTEGER); CREATE TABLE \"t{name}\" (id INTEGER PRIMARY KEY, \"c{name}\" TEXT, created_at INTEGER)"
    ))
    .expect("tables");
    let calls: [&[&str]; 7] = [
        &["run", "list"],
        &["run", "status", &run],
        &["run", "events", &run],
        &["dispatch", "list"],
        &["rewind", "inspect", "evil.db"],
        &["run", "status", &name],
        &["run", "rollback", &run, "--to-phase", &name, "--dry-run"],
    ];
    let mut escaped = 0;
    for call in calls {
        let outcome = cli.run(call.iter().copied().chain(["--format", "text"]));
        let text = outcome.stdout + &outcome.stderr;
        assert!(!text.contains(bad), "{call:?}: {text:?}");
        escaped += usize::from(text.contains("u{202e}"));
    }
    assert!(escaped >= 4, "{escaped} of them show it escaped");
}

#[test]
fn where_prints_the_exact_bytes_of_a_name_that_is_no_utf8() {
    let cli = Cli::without_ledger(env!("CARGO_BIN_EXE_ic"));
    let odd = cli.root().join(OsStr::from_bytes(b"od\xffd"));
    if std::fs::create_dir(&odd).is_err() {
        println!("skipped: this file system refuses names that are no UTF-8");
        return;
    }
    assert_eq!(CliOutcome::of(cli.command(["init"]).current_dir(&odd)).code, Some(0));
    let output = cli.command(["where"]).current_dir(&odd).output().expect("start ic");
    assert_eq!(output.status.code(), Some(0));
    let printed = output.stdout.strip_suffix(b"\n").expect("a line");
    assert_eq!(OsStr::from_bytes(printed), odd.join(".ic/ic.db").as_os_str());
}

#[test]
fn the_ledger_of_a_broken_repository_is_found_and_used() {
    let breaks: [fn(&std::path::Path); 4] = [
        |git| std::fs::remove_file(git.join("HEAD")).expect("break it"),
        |git| std::fs::write(git.join("HEAD"), "").expect("break it"),
        |git| std::fs::remove_dir_all(git.join("refs")).expect("break it"),
        |git| std::fs::write(git.join("config"), "[core").expect("break it"),
    ];
    for (at, break_it) in breaks.into_iter().enumerate() {
        let path = std::env::var_os("PATH").expect("a PATH");
        let cli = Cli::without_ledger(env!("CARGO_BIN_EXE_ic")).with_checkpoints().with_env("PATH", path);
        let made = Command::new("git").args(["init", "-q"]).current_dir(cli.root()).status().expect("start git");
        assert!(made.success());
        cli.ok(["init"]);
        let file = cli.root().join("sub/file");
        std::fs::create_dir(cli.root().join("sub")).expect("a directory");
        std::fs::write(&file, "one").expect("a file");
        let run = run_of(&cli);
        let checkpoint = cli.ok(["checkpoint", "create"]);
        break_it(&cli.root().join(".git"));
        std::fs::write(&file, "two").expect("a file");
        for directory in [cli.root().to_owned(), cli.root().join("sub")] {
            let call = |words: &[&str]| CliOutcome::of(cli.command(words).current_dir(&directory));
            let found = call(&["where"]);
            let wanted = cli.root().join(".git/ic/ic.db").display().to_string() + "\n";
            assert_eq!((found.code, found.stdout), (Some(0), wanted), "{at}: {}", found.stderr);
            assert_eq!(call(&["run", "status", &run]).code, Some(0), "{at}");
            let restored = call(&["checkpoint", "restore", &checkpoint, "--strategy", "files-only", "--yes"]);
            assert_eq!(restored.code, Some(0), "{at}: {restored:?}");
        }
        assert_eq!(std::fs::read_to_string(&file).expect("a file"), "one", "{at}");
        // Nothing is made beside it.
        cli.ok(["init"]);
        assert!(!cli.root().join(".ic").exists(), "{at}");
    }
}
