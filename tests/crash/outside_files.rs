//! Files outside of the project: the capture of a call that names one, and its undo, aborted before their statements.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;

use ic_testkit::{Cli, read_in, write_in};
use serde_json::json;

use crate::campaign::assert_sound;

/// More statements than any of these calls has.
const TOO_MANY: usize = 600;

/// How far apart the statements are before which a call is aborted.
fn step() -> usize {
    if ic_testkit::long() { 1 } else { 7 }
}

struct Scene {
    cli: Cli,
    beside: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let cli = Cli::new(env!("CARGO_BIN_EXE_ic")).with_checkpoints();
        let home = cli.home().to_owned();
        let cli = cli.with_env("HOME", home);
        let beside = cli.home().join("beside");
        write_in(&beside, "notes", "of a person\n");
        write_in(cli.root(), "inside", "of a person\n");
        let beside = beside.canonicalize().expect("its real path");
        Self { cli, beside }
    }

    /// Tells of an event; whether the hook was aborted before its `n`-th statement.
    fn say(&self, event: &str, (id, name): (&str, &str), abort_before: Option<usize>) -> bool {
        let said = json!({ "session_id": "A", "cwd": self.cli.root(), "hook_event_name": event, "prompt": "p",
            "prompt_id": "p", "transcript_path": "/none", "tool_name": "Write", "tool_use_id": id,
            "tool_input": { "file_path": self.beside.join(name) } });
        let input = write_in(self.cli.home(), "said", said.to_string());
        let mut hook = self.cli.command(["hook", "claude-code", event]);
        hook.stdin(std::fs::File::open(input).expect("what is said"));
        if let Some(n) = abort_before {
            hook.env("IC_TEST_ABORT_BEFORE", n.to_string());
        }
        let output = hook.output().expect("start ic");
        assert!(output.status.success() || output.status.signal().is_some(), "{event}: {output:?}");
        output.status.signal().is_some()
    }

    fn work(&self) {
        write_in(&self.beside, "notes", "of an agent\n");
        write_in(self.cli.root(), "inside", "of an agent\n");
    }

    /// A prompt that changes a file outside, makes another, and changes one inside.
    fn worked() -> Self {
        let scene = Self::new();
        scene.say("UserPromptSubmit", ("", ""), None);
        for (id, name) in [("1", "notes"), ("2", "made")] {
            scene.say("PreToolUse", (id, name), None);
            if id == "1" {
                scene.work();
            } else {
                drop(write_in(&scene.beside, "made", "made\n"));
            }
            scene.say("PostToolUse", (id, name), None);
        }
        scene.say("Stop", ("", ""), None);
        scene
    }

    fn files(&self) -> [Option<String>; 3] {
        [read_in(&self.beside, "notes"), read_in(&self.beside, "made"), read_in(self.cli.root(), "inside")]
    }
}

fn before() -> [Option<String>; 3] {
    [Some("of a person\n".to_owned()), None, Some("of a person\n".to_owned())]
}

fn after() -> [Option<String>; 3] {
    ["of an agent\n", "made\n", "of an agent\n"].map(|text| Some(text.to_owned()))
}

#[test]
fn an_aborted_undo_of_files_outside_is_finished_or_undone_exactly() {
    for (round, n) in (1..TOO_MANY).step_by(step()).enumerate() {
        let scene = Scene::worked();
        assert_eq!(scene.files(), after());
        let mut undo = scene.cli.command(["undo", "--yes"]);
        let output = undo.env("IC_TEST_ABORT_BEFORE", n.to_string()).output().expect("start ic");
        if output.status.signal().is_none() {
            assert!(output.status.success() && n > 30, "an undo has only {n} statements: {output:?}");
            assert_eq!(scene.files(), before());
            return;
        }
        assert_sound(&scene.cli);
        let listed = scene.cli.json(["rollback", "list", "--json"]);
        let open = listed
            .as_array()
            .expect("a list")
            .iter()
            .find(|one| !matches!(one["status"].as_str(), Some("done" | "undone" | "aborted")));
        let id = open.map(|one| one["id"].as_str().expect("an id").to_owned());
        let is_done = listed.as_array().is_some_and(|all| all.iter().any(|one| one["status"] == "done"));
        let wanted = match (&id, round % 2) {
            (Some(id), 0) => {
                scene.cli.ok(["rollback", "resume", id, "--yes"]);
                before()
            }
            (Some(id), _) => {
                scene.cli.ok(["rollback", "abort", id, "--yes"]);
                after()
            }
            (None, _) if is_done => before(),
            (None, _) => after(),
        };
        assert_eq!(scene.files(), wanted, "before statement {n}: {listed}");
        // And both ways from there.
        if wanted == after() {
            scene.cli.ok(["undo", "--yes"]);
            assert_eq!(scene.files(), before(), "before statement {n}");
        }
        scene.cli.ok(["redo", "--yes"]);
        assert_eq!(scene.files(), after(), "before statement {n}");
    }
    panic!("an undo has more than {TOO_MANY} statements");
}

#[test]
fn an_aborted_capture_of_a_file_outside_is_made_by_the_next_hook_of_the_call() {
    for event in ["PreToolUse", "PostToolUse"] {
        let mut is_whole = false;
        for n in (1..TOO_MANY).step_by(step()) {
            let scene = Scene::new();
            scene.say("UserPromptSubmit", ("", ""), None);
            let tell = |one: &str| {
                let aborted = one == event && scene.say(one, ("1", "notes"), Some(n));
                if one == event && aborted {
                    assert_sound(&scene.cli);
                }
                // A client with two installations tells of each event twice.
                if one != event || aborted {
                    scene.say(one, ("1", "notes"), None);
                }
                one == event && !aborted
            };
            let begun_whole = tell("PreToolUse");
            scene.work();
            let ended_whole = tell("PostToolUse");
            scene.say("Stop", ("", ""), None);
            scene.cli.ok(["undo", "--yes"]);
            assert_eq!(scene.files(), before(), "{event}, before statement {n}");
            scene.cli.ok(["redo", "--yes"]);
            let [notes, _, inside] = after();
            assert_eq!(scene.files(), [notes, None, inside], "{event}, before statement {n}");
            is_whole = begun_whole || ended_whole;
            if is_whole {
                assert!(n > 10, "{event} has only {n} statements");
                break;
            }
        }
        assert!(is_whole, "{event} has more than {TOO_MANY} statements");
    }
}
