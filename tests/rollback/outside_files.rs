//! Files outside of the project that a tool call names go back and come again with its work; what cannot is named, and the exit says so.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use ic_testkit::{git_in, read_in, write_in};
use serde_json::{Value, json};

use ic_testkit::TestWorld;

/// A project, and a directory beside it with a file.
fn project() -> (TestWorld, PathBuf) {
    let mut world = TestWorld::of_a_repository(env!("CARGO_BIN_EXE_ic"));
    let home = world.cli.home().to_owned();
    world.cli = world.cli.with_env("HOME", home);
    let beside = world.cli.home().join("beside");
    write_in(&beside, "notes", "of a person\n");
    let beside = beside.canonicalize().expect("its real path");
    (world, beside)
}

fn say(world: &TestWorld, session: &str, event: &str, more: &Value) {
    let mut said = json!({ "session_id": session, "cwd": world.root(), "hook_event_name": event,
        "prompt": session, "transcript_path": "/none" });
    for (key, value) in more.as_object().expect("an object") {
        said[key] = value.clone();
    }
    let answer = world.cli.run_with_input(["hook", "claude-code", event], said.to_string().as_bytes());
    assert_eq!(answer.code, Some(0), "{answer:?}");
}

/// A tool call with this input, and what it does.
fn call(world: &TestWorld, session: &str, (tool, id): (&str, &str), input: &Value, does: impl FnOnce()) {
    let told = json!({ "tool_name": tool, "tool_use_id": id, "tool_input": input });
    say(world, session, "PreToolUse", &told);
    does();
    say(world, session, "PostToolUse", &told);
}

/// A prompt with one edit of a file.
fn edit(world: &TestWorld, path: &Path, does: impl FnOnce()) {
    say(world, "A", "UserPromptSubmit", &json!({}));
    call(world, "A", ("Edit", "1"), &json!({ "file_path": path }), does);
    say(world, "A", "Stop", &json!({}));
}

/// The exit and the report of an undo; its preview ends alike and says the same of what is outside.
fn undo(world: &TestWorld, more: &[&str]) -> (Option<i32>, Value) {
    let run = |flag: &str| {
        let outcome = world.cli.run([&["undo", flag, "--json"], more].concat());
        (outcome.code, outcome.json())
    };
    let planned = run("--dry-run");
    let done = run("--yes");
    assert_eq!((planned.0, &planned.1["outside"]), (done.0, &done.1["outside"]), "{planned:?} {done:?}");
    done
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("its state").permissions().mode() & 0o777
}

#[test]
fn an_edit_outside_goes_back_and_comes_again() {
    let (world, beside) = project();
    let notes = beside.join("notes");
    say(&world, "A", "UserPromptSubmit", &json!({}));
    call(&world, "A", ("Edit", "1"), &json!({ "file_path": notes }), || {
        fs::write(&notes, "of an agent\n").expect("write it");
    });
    call(&world, "A", ("Write", "2"), &json!({ "file_path": notes }), || {
        fs::write(&notes, "twice\n").expect("write it");
        fs::set_permissions(&notes, fs::Permissions::from_mode(0o600)).expect("its mode");
    });
    let new = beside.join("a/b/new");
    call(&world, "A", ("Write", "3"), &json!({ "file_path": new }), || {
        drop(write_in(&beside, "a/b/new", "new"));
    });
    say(&world, "A", "Stop", &json!({}));
    let log = world.cli.json(["log", "--json"]);
    let named = json!([new, notes]);
    assert_eq!(log[0]["outside"], named, "{log}");
    let (code, report) = undo(&world, &[]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["outside"][0]["path"], json!(new), "{report}");
    assert_eq!(read_in(&beside, "notes").as_deref(), Some("of a person\n"));
    assert_eq!(mode(&notes), 0o644);
    assert!(!beside.join("a").exists(), "the directories that were made for it go, too");
    world.ic(&["redo", "--yes"]);
    assert_eq!((read_in(&beside, "notes").as_deref(), mode(&notes)), (Some("twice\n"), 0o600));
    assert_eq!(read_in(&beside, "a/b/new").as_deref(), Some("new"));
    assert_eq!(undo(&world, &[]).0, Some(0));
    assert_eq!(read_in(&beside, "notes").as_deref(), Some("of a person\n"));
}

#[test]
fn every_way_to_name_a_file_is_understood() {
    let (world, beside) = project();
    let notes = beside.join("notes");
    symlink(&beside, world.root().join("link")).expect("a link");
    symlink(&notes, world.root().join("file-link")).expect("a link");
    let patch = format!("*** Begin Patch\n*** Update File: {}\n*** End Patch", notes.display());
    let inputs = [
        ("Edit", json!({ "file_path": world.root().join("link/notes") })),
        ("Edit", json!({ "file_path": "file-link" })),
        ("MultiEdit", json!({ "file_path": notes, "edits": [] })),
        ("NotebookEdit", json!({ "notebook_path": notes })),
        ("apply_patch", json!({ "command": patch })),
        ("write_file", json!({ "file_path": notes })),
        ("edit", json!({ "filePath": notes })),
        ("Edit", json!({ "file_path": world.root().join("../beside/notes") })),
    ];
    for (at, (tool, input)) in inputs.iter().enumerate() {
        let session = format!("S{at}");
        say(&world, &session, "UserPromptSubmit", &json!({}));
        call(&world, &session, (tool, "1"), input, || fs::write(&notes, format!("{at}")).expect("write it"));
        say(&world, &session, "Stop", &json!({}));
        let run = world.cli.json(["session", "show", &session])["run_id"].as_str().expect("a run").to_owned();
        let (code, report) = undo(&world, &["--run", &run]);
        assert_eq!(code, Some(0), "{tool} {input}: {report}");
        assert_eq!(read_in(&beside, "notes").as_deref(), Some("of a person\n"), "{tool} {input}: {report}");
    }
}

#[test]
fn what_others_changed_since_stays_and_is_named() {
    let (world, beside) = project();
    let notes = beside.join("notes");
    edit(&world, &notes, || fs::write(&notes, "of an agent\n").expect("write it"));
    fs::write(&notes, "of a person again\n").expect("write it");
    let (code, report) = undo(&world, &[]);
    assert_eq!(code, Some(4), "{report}");
    assert_eq!(report["outside"][0]["reason"], "it was changed since", "{report}");
    assert_eq!(read_in(&beside, "notes").as_deref(), Some("of a person again\n"));
    let text = world.cli.run(["redo", "--yes", "--format", "text"]);
    // The undo left it, so there is nothing to redo.
    assert_eq!(text.code, Some(0), "{text:?}");
    assert!(!text.stdout.contains("changed since"), "{text:?}");
    assert_eq!(read_in(&beside, "notes").as_deref(), Some("of a person again\n"));
}

/// What is forced is kept first: the redo brings it back, also after a prune.
#[test]
fn a_forced_file_outside_comes_back_with_the_redo() {
    for is_alone in [true, false] {
        for since in [Some("of a person again\n"), None] {
            let (world, beside) = project();
            let notes = beside.join("notes");
            edit(&world, &notes, || fs::write(&notes, "of an agent\n").expect("write it"));
            match since {
                Some(text) => fs::write(&notes, text).expect("write it"),
                None => fs::remove_file(&notes).expect("remove it"),
            }
            let prompts = world.cli.json(["session", "show", "A"])["prompts"].clone();
            let work = prompts[0]["id"].as_str().expect("an id").to_owned();
            let alone: &[&str] = if is_alone { &["--only", &work] } else { &[] };
            let (code, report) = undo(&world, &[alone, &["--force-files"]].concat());
            assert_eq!((code, &report["status"]), (Some(0), &json!("rolled_back")), "{report}");
            assert_eq!(report["outside"][0]["reason"], Value::Null, "{report}");
            assert_eq!(read_in(&beside, "notes").as_deref(), Some("of a person\n"), "{report}");
            world.ic(&["checkpoint", "prune", "--grace", "0s"]);
            let redo = world.cli.run(["redo", "--yes", "--json"]);
            assert_eq!(redo.code, Some(0), "{redo:?}");
            assert_eq!(read_in(&beside, "notes").as_deref(), since, "{redo:?}");
        }
    }
}

#[test]
fn a_prompt_whose_file_stays_counts_as_undone_in_part() {
    for is_alone in [true, false] {
        let (world, beside) = project();
        let notes = beside.join("notes");
        say(&world, "A", "UserPromptSubmit", &json!({}));
        call(&world, "A", ("Edit", "1"), &json!({ "file_path": notes }), || {
            fs::write(&notes, "of an agent\n").expect("write it");
        });
        let make = json!({ "command": "make" });
        call(&world, "A", ("Bash", "2"), &make, || drop(write_in(world.root(), "made", "made\n")));
        say(&world, "A", "Stop", &json!({}));
        fs::write(&notes, "of a person again\n").expect("write it");
        let prompts = world.cli.json(["session", "show", "A"])["prompts"].clone();
        let work = prompts[0]["id"].as_str().expect("an id").to_owned();
        let words: &[&str] = if is_alone { &["--only", &work] } else { &[] };
        let (code, report) = undo(&world, words);
        assert_eq!((code, &report["status"]), (Some(4), &json!("rolled_back_in_part")), "{report}");
        assert_eq!(report["outside"][0]["reason"], "it was changed since", "{report}");
        assert_eq!(world.cli.json(["dispatch", "show", &work])["rolled_back_by"], Value::Null);
        assert_eq!(world.cli.json(["log", "--json"])[1]["undone_in_part"], true);
        assert_eq!((world.read("made"), read_in(&beside, "notes").as_deref()), (None, Some("of a person again\n")));
        let redo = world.cli.run(["redo", "--yes", "--json"]);
        assert_eq!(redo.code, Some(0), "{redo:?}");
        assert_eq!((world.read("made").as_deref(), redo.json()["outside"].clone()), (Some("made\n"), Value::Null));
        assert_eq!(read_in(&beside, "notes").as_deref(), Some("of a person again\n"));
        // The rest goes as soon as it can.
        assert_eq!(undo(&world, words).0, Some(4));
        fs::write(&notes, "of an agent\n").expect("write it");
        let (code, report) = undo(&world, words);
        assert_eq!((code, &report["status"]), (Some(0), &json!("rolled_back")), "{report}");
        assert_eq!(read_in(&beside, "notes").as_deref(), Some("of a person\n"));
    }
}

#[test]
fn one_of_two_sessions_alone_is_undone_where_it_was_last() {
    let (world, beside) = project();
    let notes = beside.join("notes");
    let input = json!({ "file_path": notes });
    for session in ["A", "B"] {
        say(&world, session, "UserPromptSubmit", &json!({}));
        call(&world, session, ("Edit", "1"), &input, || fs::write(&notes, session).expect("write it"));
    }
    for session in ["A", "B"] {
        say(&world, session, "Stop", &json!({}));
    }
    let log = world.cli.json(["log", "--json"]);
    let id = |title: &str| {
        let all = log.as_array().expect("a list");
        let one = all.iter().find(|one| one["title"] == title && one["kind"] == "prompt").expect("it");
        one["reference"].as_str().expect("a reference").trim_start_matches("prompt:").to_owned()
    };
    let (code, report) = undo(&world, &["--only", &id("A")]);
    assert_eq!(code, Some(4), "{report}");
    assert_eq!(read_in(&beside, "notes").as_deref(), Some("B"));
    let (code, report) = undo(&world, &["--only", &id("B")]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(read_in(&beside, "notes").as_deref(), Some("A"));
}

#[test]
fn what_is_not_the_projects_to_change_is_named_alone() {
    let (world, beside) = project();
    let of_client = world.cli.home().join(".claude/plans/plan.md");
    write_in(world.cli.home(), ".claude/plans/plan.md", "a plan");
    edit(&world, &of_client, || fs::write(&of_client, "another plan").expect("write it"));
    let (code, report) = undo(&world, &[]);
    assert_eq!(code, Some(0), "a client's own record holds nothing up: {report}");
    assert_eq!(report["outside"][0]["path"], json!(of_client.canonicalize().expect("its path")), "{report}");
    assert_eq!(fs::read_to_string(&of_client).expect("it stays"), "another plan");
    git_in(&beside, &["init", "-q"]);
    let large = vec![7; 10_000_001];
    write_in(world.cli.home(), "plain/large", &large);
    write_in(world.cli.home(), "plain/.env", "A=1");
    let plain = world.cli.home().join("plain");
    let left = [
        (beside.join("notes"), "belongs to another project: ic -C "),
        (beside.join(".git/config"), "belongs to a git repository"),
        (plain.join("large"), "oversize"),
        (plain.join(".env"), "secret"),
    ];
    for (path, why) in left {
        edit(&world, &path, || fs::write(&path, "of an agent\n").expect("write it"));
        let (code, report) = undo(&world, &[]);
        assert_eq!(code, Some(4), "{}: {report}", path.display());
        let said = report["outside"][0]["reason"].as_str().expect("why").to_owned();
        assert!(said.contains(why), "{}: {report}", path.display());
        assert_eq!(fs::read_to_string(&path).expect("it stays"), "of an agent\n");
    }
}

#[test]
fn a_call_whose_end_was_not_told_is_named_if_it_changed_something() {
    let (world, beside) = project();
    let notes = beside.join("notes");
    let told = json!({ "tool_name": "Edit", "tool_use_id": "1", "tool_input": { "file_path": notes } });
    say(&world, "A", "UserPromptSubmit", &json!({}));
    say(&world, "A", "PreToolUse", &told);
    fs::write(&notes, "of an agent\n").expect("write it");
    say(&world, "A", "Stop", &json!({}));
    let (code, report) = undo(&world, &[]);
    assert_eq!(code, Some(4), "{report}");
    assert_eq!(report["outside"][0]["reason"], "the end of the call was not told", "{report}");
}

#[test]
fn contents_outside_outlive_a_prune_that_keeps_their_checkpoints() {
    let (world, beside) = project();
    let notes = beside.join("notes");
    edit(&world, &notes, || fs::write(&notes, "of an agent\n").expect("write it"));
    world.ic(&["checkpoint", "prune", "--grace", "0s"]);
    assert_eq!(undo(&world, &[]).0, Some(0));
    assert_eq!(read_in(&beside, "notes").as_deref(), Some("of a person\n"));
}

#[test]
fn a_purge_takes_out_what_was_kept_of_a_file_outside() {
    let (world, beside) = project();
    let (notes, copy) = (beside.join("notes"), beside.join("copy"));
    let secret = "token hunter2-of-a-person\n";
    fs::write(&notes, secret).expect("write it");
    say(&world, "A", "UserPromptSubmit", &json!({}));
    call(&world, "A", ("Edit", "1"), &json!({ "file_path": notes }), || {
        fs::write(&notes, "clean\n").expect("write it");
    });
    call(&world, "A", ("Write", "2"), &json!({ "file_path": copy }), || {
        fs::write(&copy, secret).expect("write it");
    });
    say(&world, "A", "Stop", &json!({}));
    let stranger = world.cli.run(["checkpoint", "purge", "/nowhere/at/all", "--yes"]);
    assert_eq!(stranger.error(), "path_not_found");
    let purged = world.cli.json([
        "checkpoint".as_ref(),
        "purge".as_ref(),
        notes.as_os_str(),
        "--yes".as_ref(),
        "--json".as_ref(),
    ]);
    assert!(purged["purged_objects"].as_i64() > Some(0), "{purged}");
    assert!(purged.to_string().contains("copy"), "the other path with the content is named: {purged}");
    let store = fs::read(world.cli.beside("objects.db")).expect("the store");
    assert!(!store.windows(20).any(|part| part == &secret.as_bytes()[..20]), "the content is gone");
    world.cli.ok(["checkpoint", "verify"]);
    let (code, report) = undo(&world, &[]);
    assert_eq!(code, Some(4), "it cannot come back, and that is said: {report}");
    assert!(report["outside"].to_string().contains("not kept any more"), "{report}");
    assert_eq!(read_in(&beside, "notes").as_deref(), Some("clean\n"));
}

#[test]
fn a_last_prompt_that_changed_only_a_file_outside_is_the_one_that_is_meant() {
    for (tool, name, before) in [("Edit", "notes", Some("of a person\n")), ("Write", "new", None)] {
        let (world, beside) = project();
        say(&world, "A", "UserPromptSubmit", &json!({ "prompt_id": "p1", "prompt": "first" }));
        call(&world, "A", ("Bash", "1"), &json!({ "command": "make" }), || {
            world.write("a.txt", "first\n");
            git_in(world.root(), &["add", "-A"]);
            git_in(world.root(), &["commit", "-q", "-m", "first"]);
        });
        say(&world, "A", "Stop", &json!({}));
        let first = (ic_testkit::tree(world.root()), git_in(world.root(), &["rev-parse", "HEAD"]));
        say(&world, "A", "UserPromptSubmit", &json!({ "prompt_id": "p2", "prompt": "second" }));
        call(&world, "A", (tool, "2"), &json!({ "file_path": beside.join(name) }), || {
            fs::write(beside.join(name), "second\n").expect("write it");
        });
        say(&world, "A", "Stop", &json!({}));
        let (code, report) = undo(&world, &[]);
        assert_eq!(code, Some(0), "{report}");
        assert_eq!(read_in(&beside, name).as_deref(), before, "{report}");
        let now = (ic_testkit::tree(world.root()), git_in(world.root(), &["rev-parse", "HEAD"]));
        assert_eq!(now, first, "the prompt before it stays: {report}");
        world.ic(&["redo", "--yes"]);
        assert_eq!(read_in(&beside, name).as_deref(), Some("second\n"));
    }
}

#[test]
fn a_named_file_that_a_rule_ignores_goes_back_and_a_secret_is_named() {
    let (world, _) = project();
    write_in(world.root(), ".gitignore", "*.local\nout/\n.env\n");
    write_in(world.root(), "settings.local", "mine\n");
    write_in(world.root(), ".env", "KEY=mine\n");
    let path = |name: &str| world.root().join(name);
    edit(&world, &path("settings.local"), || drop(write_in(world.root(), "settings.local", "its\n")));
    let (code, plan) = undo(&world, &[]);
    assert_eq!(code, Some(0), "{plan}");
    assert_eq!(read_in(world.root(), "settings.local").as_deref(), Some("mine\n"));

    say(&world, "B", "UserPromptSubmit", &json!({}));
    call(&world, "B", ("Write", "1"), &json!({ "file_path": path("out/deep/new") }), || {
        drop(write_in(world.root(), "out/deep/new", "its\n"));
    });
    call(&world, "B", ("Write", "2"), &json!({ "file_path": path(".env") }), || {
        drop(write_in(world.root(), ".env", "KEY=its\n"));
    });
    say(&world, "B", "Stop", &json!({}));
    let (code, plan) = undo(&world, &[]);
    assert_eq!(code, Some(4), "{plan}");
    assert!(!path("out").exists(), "{plan}");
    let outside = plan["outside"].as_array().expect("a list");
    let secret = outside.iter().find(|one| one["path"] == json!(path(".env"))).expect("it is named");
    assert_eq!(secret["reason"], "secret", "{plan}");
    assert_eq!(read_in(world.root(), ".env").as_deref(), Some("KEY=its\n"));
}

/// A file that git tracks is captured, whatever a rule says of it.
#[test]
fn a_named_file_that_is_captured_is_no_file_outside() {
    let (world, _) = project();
    write_in(world.root(), "kept.log", "mine\n");
    git_in(world.root(), &["add", "kept.log"]);
    git_in(world.root(), &["commit", "-qm", "kept"]);
    write_in(world.root(), ".gitignore", "*.log\n");
    edit(&world, &world.root().join("kept.log"), || drop(write_in(world.root(), "kept.log", "its\n")));
    let (code, plan) = undo(&world, &[]);
    assert_eq!((code, &plan["outside"]), (Some(0), &Value::Null), "{plan}");
    assert_eq!(read_in(world.root(), "kept.log").as_deref(), Some("mine\n"));
}

/// One prompt alone: the file is named once, and nothing of the prompt is left.
#[test]
fn an_ignored_file_of_one_prompt_goes_with_it() {
    let (world, _) = project();
    write_in(world.root(), ".gitignore", "*.local\n");
    let path = world.root().join("new.local");
    edit(&world, &path, || drop(write_in(world.root(), "new.local", "its\n")));
    let log = world.cli.json(["log", "--json"]);
    let id = log[0]["reference"].as_str().and_then(|one| one.strip_prefix("prompt:")).expect("its id").to_owned();
    let (code, report) = undo(&world, &["--only", &id]);
    assert_eq!((code, &report["files"]["skipped"]), (Some(0), &json!([])), "{report}");
    assert!(!path.exists());
    assert_eq!(world.cli.json(["redo", "--yes", "--json"])["status"], "undone");
    assert_eq!(read_in(world.root(), "new.local").as_deref(), Some("its\n"));
}

/// Where a file was under its old name, no checkpoint has it: an undo that deleted the new name would leave it nowhere.
#[test]
fn a_file_moved_from_an_uncaptured_name_stays() {
    for (old, new) in [(".env", "config.txt"), ("ignored/data.csv", "in/data.csv"), ("../beside/notes", "notes.txt")] {
        for is_alone in [true, false] {
            let (world, _) = project();
            drop(write_in(world.root(), ".gitignore", "ignored/\n"));
            drop(write_in(world.root(), "README", "of a person, and tracked\n"));
            drop(write_in(world.root(), old, "of a person\n"));
            say(&world, "A", "UserPromptSubmit", &json!({}));
            let line = format!("mv {old} {new}");
            call(&world, "A", ("Bash", "1"), &json!({ "command": line }), || {
                drop(write_in(world.root(), "in/made", "made\n"));
                fs::rename(world.root().join(old), world.root().join(new)).expect("move it");
                fs::rename(world.root().join("README"), world.root().join("READ.me")).expect("move it");
            });
            say(&world, "A", "Stop", &json!({}));
            let prompts = world.cli.json(["session", "show", "A"])["prompts"].clone();
            let work = prompts[0]["id"].as_str().expect("an id").to_owned();
            let alone: &[&str] = if is_alone { &["--only", &work] } else { &[] };
            let (code, report) = undo(&world, alone);
            assert_eq!(code, Some(4), "{old}: {report}");
            let skipped = report["files"]["skipped"].as_array().expect("a list");
            let named =
                skipped.iter().find(|one| one["path"] == new).unwrap_or_else(|| panic!("{old} {is_alone}: {report}"));
            assert!(named["reason"].as_str().is_some_and(|why| why.contains("was moved here")), "{old}: {report}");
            assert_eq!((world.read(new).as_deref(), world.read(old)), (Some("of a person\n"), None), "{old}: {report}");
            // What a checkpoint has under its old name goes back as ever.
            assert_eq!(
                (world.read("READ.me"), world.read("README").is_some(), world.read("in/made")),
                (None, true, None)
            );
            let status = if is_alone { "rolled_back_in_part" } else { "rolled_back" };
            assert_eq!(report["status"], status, "{old}: {report}");
            world.ic(&["redo", "--yes"]);
            assert_eq!(
                (world.read(new).as_deref(), world.read("in/made").as_deref()),
                (Some("of a person\n"), Some("made\n"))
            );
        }
    }
}

#[test]
fn a_clients_record_stays_wherever_the_client_keeps_it() {
    let (mut world, beside) = project();
    world.cli = world.cli.with_env("CLAUDE_CONFIG_DIR", beside.join("cc"));
    // A person who keeps settings in one place links to them from the home directory.
    fs::create_dir_all(beside.join("dotfiles/gemini")).expect("a directory");
    symlink(beside.join("dotfiles/gemini"), world.cli.home().join(".gemini")).expect("a link");
    for record in ["cc/plans/plan.md", "dotfiles/gemini/history/log"] {
        edit(&world, &beside.join(record), || drop(write_in(&beside, record, "of the client")));
        let (code, report) = undo(&world, &[]);
        assert_eq!(code, Some(0), "{record}: {report}");
        assert_eq!(read_in(&beside, record).as_deref(), Some("of the client"), "{record}: {report}");
    }
}
