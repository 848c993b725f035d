//! Coding agents and their hooks: a prompt is recorded and can be undone, and the agent may not continue undone work.

use std::io::Write;
use std::process::{Child, Stdio};

use ic_testkit::CliOutcome;
use serde_json::{Value, json};

use crate::support::Project;

fn git(project: &Project, words: &[&str]) -> String {
    ic_testkit::git_in(project.root(), words)
}

/// What a client says.
pub(crate) struct Said {
    client: String,
    event: String,
    pub(crate) payload: Value,
}

impl Said {
    pub(crate) fn new(client: &str, session: &str, event: &str) -> Self {
        let payload =
            json!({ "session_id": session, "hook_event_name": event, "transcript_path": "/home/ann/t.jsonl" });
        Self { client: client.to_owned(), event: event.to_owned(), payload }
    }

    pub(crate) fn prompt(mut self, id: &str, text: &str) -> Self {
        self.payload["prompt"] = json!(text);
        self.payload["prompt_id"] = json!(id);
        self
    }

    fn without(mut self, key: &str) -> Self {
        self.payload.as_object_mut().expect("an object").remove(key);
        self
    }

    pub(crate) fn with(mut self, key: &str, value: &str) -> Self {
        self.payload[key] = json!(value);
        self
    }
}

pub(crate) fn begin(project: &Project, said: &Said, environment: &[(&str, &str)]) -> Child {
    let mut payload = said.payload.clone();
    if payload["cwd"].is_null() {
        payload["cwd"] = json!(project.root());
    }
    let mut command = project.command(["hook", &said.client, &said.event]);
    command.envs(environment.iter().copied());
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start ic");
    child.stdin.take().expect("its input").write_all(payload.to_string().as_bytes()).expect("tell it");
    child
}

pub(crate) fn end(child: Child) -> Value {
    let output = child.wait_with_output().expect("its end");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!((output.status.code(), stderr.as_ref()), (Some(0), ""), "a hook is never in the way: {stdout}");
    if stdout.is_empty() { Value::Null } else { serde_json::from_str(&stdout).expect("JSON") }
}

/// Tells it, and returns what the client is answered.
pub(crate) fn say(project: &Project, said: &Said) -> Value {
    say_with(project, said, &[])
}

/// As [`say`], with more in the environment of the hook.
pub(crate) fn say_with(project: &Project, said: &Said, environment: &[(&str, &str)]) -> Value {
    end(begin(project, said, environment))
}

fn work(project: &Project, client: &str, session: &str, prompt: &str, file: &str) {
    say(project, &Said::new(client, session, names(client)[0]).prompt(prompt, prompt));
    in_call(project, client, session, || project.write(file, prompt));
    say(project, &Said::new(client, session, names(client)[2]));
}

/// Does something within a tool call of an agent.
pub(crate) fn in_call(project: &Project, client: &str, session: &str, what: impl FnOnce()) {
    let [_, before, _] = names(client);
    let after = before.replace("Pre", "Post").replace("BeforeTool", "AfterTool").replace(".before", ".after");
    let tell = |event: &str| {
        let said = Said::new(client, session, event).with("tool_name", "make").with("tool_use_id", "call");
        assert_eq!(say(project, &said), Value::Null, "{event} is let through");
    };
    tell(before);
    what();
    tell(&after);
}

/// What a client calls a prompt, the moment before a tool, and a stop.
fn names(client: &str) -> [&'static str; 3] {
    match client {
        "gemini" => ["BeforeAgent", "BeforeTool", "AfterAgent"],
        "opencode" => ["chat.message", "tool.execute.before", "session.idle"],
        _ => ["UserPromptSubmit", "PreToolUse", "Stop"],
    }
}

pub(crate) fn logged(project: &Project) -> Vec<Value> {
    let path = project.cli.beside("hooks.log");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("a line of the log")).collect()
}

/// A project in which checkpoints are taken.
pub(crate) fn captured() -> Project {
    let project = Project::new();
    std::fs::remove_file(project.root().join(".ic.yaml")).expect("the configuration");
    project
}

pub(crate) fn in_git() -> Project {
    let project = captured();
    project.write("README.md", "read me\n");
    git(&project, &["init", "-q"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "base"]);
    project
}

#[test]
fn each_prompt_is_recorded_and_the_last_one_is_undone() {
    for client in ["claude-code", "codex", "gemini", "copilot", "opencode"] {
        let project = captured();
        project.write("README.md", "read me\n");
        work(&project, client, "s-1", "Add a login", "login.txt");
        work(&project, client, "s-1", "Add a logout", "logout.txt");
        std::fs::remove_file(project.root().join("README.md")).expect("an accident");
        let log = project.json("log");
        let titles: Vec<&Value> = log.as_array().expect("entries").iter().map(|one| &one["title"]).collect();
        assert_eq!(titles[..2], [&json!("Add a logout"), &json!("Add a login")], "{client}: {log}");
        assert_eq!(log[0]["kind"], "prompt");
        project.ok("undo --yes");
        let is_there = |file: &str| project.root().join(file).exists();
        assert_eq!(
            ["login.txt", "logout.txt", "README.md"].map(is_there),
            [true, false, false],
            "{client}: what the last prompt did is undone, and a person's accident is not"
        );
        project.ok("undo --yes");
        assert!(!is_there("login.txt"), "{client}: and the one before");
        project.ok("redo --yes");
        assert!(is_there("login.txt"), "{client}");
        assert!(logged(&project).iter().all(|line| line["code"].is_null()), "{:?}", logged(&project));
    }
}

#[test]
fn what_was_undone_goes_no_further_and_the_next_prompt_hears_of_it() {
    for client in ["claude-code", "codex", "gemini"] {
        let project = captured();
        let [prompt, call, stop] = names(client);
        let reason = |answer: &Value| {
            let of_claude = &answer["hookSpecificOutput"]["permissionDecisionReason"];
            let is_denied =
                answer["decision"] == "deny" || answer["hookSpecificOutput"]["permissionDecision"] == "deny";
            is_denied.then(|| of_claude.as_str().or_else(|| answer["reason"].as_str()).expect("a reason").to_owned())
        };
        say(&project, &Said::new(client, "s-1", prompt).prompt("p-1", "Add a \"login\"\n\u{1b}[31mplease"));
        assert_eq!(say(&project, &Said::new(client, "s-1", call)), Value::Null, "it may");
        project.write("login.txt", "1");
        project.ok("undo --reason 'the wrong file' --force-files --yes");
        let refused = reason(&say(&project, &Said::new(client, "s-1", call))).expect("it is refused");
        assert!(
            refused.contains("undone") && refused.contains("login") && refused.contains("the wrong file"),
            "{refused}"
        );
        assert!(!refused.contains('\u{1b}') && !refused.contains('\n'), "{refused:?}");
        assert!(reason(&say(&project, &Said::new(client, "s-1", call))).is_some(), "again");
        say(&project, &Said::new(client, "s-1", stop));
        let answer = say(&project, &Said::new(client, "s-1", prompt).prompt("p-2", "Once more"));
        let told = answer["hookSpecificOutput"]["additionalContext"].as_str().expect("a context");
        assert!(told.starts_with("Since your last answer") && told.contains("1 file"), "{told}");
        assert_eq!(say(&project, &Said::new(client, "s-1", call)), Value::Null, "a new prompt may");
        say(&project, &Said::new(client, "s-1", stop));
        let answer = say(&project, &Said::new(client, "s-1", prompt).prompt("p-3", "And more"));
        assert_eq!(answer, Value::Null, "it is told once");
    }
}

#[test]
fn a_new_prompt_ends_the_one_before_and_a_repeated_hook_changes_nothing() {
    let project = captured();
    let said = |id: &str, text: &str| Said::new("claude-code", "s-1", "UserPromptSubmit").prompt(id, text);
    say(&project, &said("p-1", "First"));
    say(&project, &said("p-1", "First"));
    // A client with two installations calls at once.
    for child in [(), (), ()].map(|()| begin(&project, &said("p-2", "Second"), &[])) {
        assert_eq!(end(child), Value::Null);
    }
    let id = project.json("session list")[0]["id"].as_str().expect("an id").to_owned();
    let prompts = project.json(&format!("session show {id}"))["prompts"].clone();
    let shown: Vec<Value> =
        prompts.as_array().expect("prompts").iter().map(|one| json!([one["name"], one["status"]])).collect();
    assert_eq!(shown, [json!(["First", "cancelled"]), json!(["Second", "running"])]);
}

#[test]
fn what_no_person_typed_is_no_prompt() {
    let project = captured();
    let said = |text: &str| Said::new("claude-code", "s-1", "UserPromptSubmit").prompt("p", text);
    for text in ["", "  ", "<task-notification>done", "/ic:undo now", "ic undo"] {
        say(&project, &said(text));
    }
    say(&project, &said("a subagent's task").with("agent_id", "a-1"));
    say(&project, &Said::new("claude-code", "s-1", "SessionStart"));
    say(&project, &Said::new("claude-code", "s-1", "Stop"));
    assert_eq!((project.json("session list"), project.json("run list")), (json!([]), json!([])));
    say(
        &project,
        &Said::new("gemini", "g-1", "BeforeAgent").prompt("p", "<hook_context>told</hook_context>\n\nAdd it"),
    );
    assert_eq!(project.json("log")[0]["title"], "Add it");
}

#[test]
fn a_subagent_that_ends_does_not_end_the_prompt() {
    let project = captured();
    say(&project, &Said::new("claude-code", "s-1", "UserPromptSubmit").prompt("p-1", "Add it"));
    say(&project, &Said::new("claude-code", "s-1", "Stop").with("agent_id", "a-1"));
    assert_eq!(project.json("dispatch list")[0]["status"], "running");
    say(&project, &Said::new("claude-code", "s-1", "Stop"));
    assert_eq!(project.json("dispatch list")[0]["status"], "completed");
}

#[test]
fn a_session_that_is_resumed_after_its_end_goes_on_in_its_run() {
    let project = captured();
    work(&project, "claude-code", "s-1", "First", "a");
    say(&project, &Said::new("claude-code", "s-1", "SessionEnd").with("reason", "other"));
    let first = project.json("session list")[0].clone();
    assert!(first["finished_at"].is_string(), "{first}");
    let run = first["run_id"].as_str().expect("a run").to_owned();
    assert_eq!(project.json(&format!("run status {run}"))["status"], "completed");
    work(&project, "claude-code", "s-1", "Second", "b");
    let all = project.json("session list");
    assert_eq!(all.as_array().map(Vec::len), Some(1));
    assert_eq!(all[0]["run_id"], first["run_id"], "a conversation has one run");
    assert!(all[0]["finished_at"].is_null());
    let shown = project.json(&format!("run status {run}"));
    assert_eq!((&shown["status"], &shown["phase"]), (&json!("active"), &json!("work")), "{shown}");
    say(&project, &Said::new("claude-code", "s-1", "SessionEnd"));
    assert_eq!(project.json(&format!("run status {run}"))["status"], "completed", "until it ends again");
}

#[test]
fn the_middle_prompt_of_a_session_that_was_resumed_is_undone_with_what_came_after_it() {
    let project = in_git();
    let mut trees = vec![ic_testkit::tree(project.root())];
    for n in 1..=3 {
        work(&project, "claude-code", "s-1", &format!("prompt {n}"), &format!("file{n}.txt"));
        say(&project, &Said::new("claude-code", "s-1", "SessionEnd"));
        say(&project, &Said::new("claude-code", "s-1", "SessionStart").with("source", "resume"));
        trees.push(ic_testkit::tree(project.root()));
    }
    let prompts = project.json("session show s-1")["prompts"].clone();
    let middle = prompts[1]["id"].as_str().expect("an id").to_owned();
    let runs: std::collections::BTreeSet<String> =
        prompts.as_array().expect("a list").iter().map(|one| one["run_id"].to_string()).collect();
    assert_eq!(runs.len(), 1, "{prompts}");
    // One list has them all: what a person chooses from.
    let log = project.json("log");
    let titles: Vec<&str> = log.as_array().expect("a list").iter().filter_map(|one| one["title"].as_str()).collect();
    assert_eq!(titles, ["prompt 3", "prompt 2", "prompt 1"]);
    project.json(&format!("undo prompt:{middle} --yes"));
    assert_eq!(ic_testkit::tree(project.root()), trees[1]);
    project.json("redo --yes");
    assert_eq!(ic_testkit::tree(project.root()), trees[3]);
    // A conversation that is begun anew has a run of its own.
    say(&project, &Said::new("claude-code", "s-1", "SessionEnd").with("reason", "clear"));
    work(&project, "claude-code", "s-2", "another", "another.txt");
    let all = project.json("session list");
    assert_ne!(all[0]["run_id"], all[1]["run_id"]);
}

#[test]
fn what_was_undone_is_told_though_the_session_had_ended_meanwhile() {
    let project = captured();
    work(&project, "claude-code", "s-1", "First", "a");
    say(&project, &Said::new("claude-code", "s-1", "SessionEnd"));
    project.ok("undo --yes");
    let answer = say(&project, &Said::new("claude-code", "s-1", "UserPromptSubmit").prompt("p-2", "Second"));
    let told = answer["hookSpecificOutput"]["additionalContext"].as_str().expect("a context");
    assert!(told.contains("First") && told.contains("1 file"), "{told}");
}

#[test]
fn commits_of_a_prompt_are_recorded() {
    let project = in_git();
    say(&project, &Said::new("claude-code", "s-1", "UserPromptSubmit").prompt("p-1", "Commit it"));
    in_call(&project, "claude-code", "s-1", || {
        project.write("new.txt", "1");
        git(&project, &["add", "new.txt"]);
        git(&project, &["commit", "-q", "-m", "new"]);
    });
    say(&project, &Said::new("claude-code", "s-1", "Stop"));
    let id = project.json("dispatch list")[0]["id"].as_str().expect("an id").to_owned();
    let head = git(&project, &["rev-parse", "HEAD"]);
    assert_eq!(project.json(&format!("dispatch show {id}"))["commits"][0]["sha"], head.trim());
    assert_eq!(project.json("log")[0]["commit_count"], 1);
    project.ok("undo --yes");
    assert_eq!(git(&project, &["rev-list", "--count", "HEAD"]).trim(), "1");
}

#[test]
fn in_the_agents_own_shell_its_session_is_meant_and_a_sprint_elsewhere() {
    let project = captured();
    let sprint = project.ok("run create --goal sprint --phases a,b");
    say(&project, &Said::new("claude-code", "s-1", "UserPromptSubmit").prompt("p-1", "Add it"));
    say(&project, &Said::new("codex", "c-1", "UserPromptSubmit").prompt("p-1", "Other"));
    assert_eq!(project.json("run current")["id"], sprint.as_str(), "a session is never in the way of a run");
    let own = project.json("session list")[0]["run_id"].clone();
    let inside = |line: &str| project.run_with("CLAUDE_CODE_SESSION_ID", "s-1", line);
    assert_eq!(inside("run status @ --json").json()["id"], own);
    // The prompt that asks is never meant.
    assert_eq!(inside("undo --dry-run --json").error(), "nothing_to_undo");
    assert_eq!(
        project.run_with("CLAUDE_CODE_SESSION_ID", "unheard-of", "run status @ --json").json()["id"],
        sprint.as_str()
    );
    // What was undone while the agent is at work writes nothing more.
    project.ok(&format!("undo --run {} --yes", own.as_str().expect("a run")));
    assert_eq!(inside("run artifact add @ --path x --json").error(), "stale_dispatch");
    say(&project, &Said::new("claude-code", "s-1", "Stop"));
    assert_eq!(inside("redo --dry-run").code, Some(0), "between two prompts a person types there");
}

#[test]
fn a_run_that_the_environment_names_has_the_prompts() {
    let project = captured();
    let sprint = project.ok("run create --goal sprint --phases a,b");
    let said = Said::new("claude-code", "s-1", "UserPromptSubmit").prompt("p-1", "Add it");
    end(begin(&project, &said, &[("IC_RUN", &sprint)]));
    let session = project.json("session list")[0].clone();
    assert_eq!((&session["run_id"], &session["owns_run"]), (&json!(sprint), &json!(false)));
    say(&project, &Said::new("claude-code", "s-1", "SessionEnd"));
    assert_eq!(project.json(&format!("run status {sprint}"))["status"], "active", "it is not the session's to end");
    project.ok(&format!("run cancel {sprint}"));
    let said = Said::new("claude-code", "s-2", "UserPromptSubmit").prompt("p-1", "Add it");
    end(begin(&project, &said, &[("IC_RUN", &sprint)]));
    assert_eq!(project.json("session list")[1]["owns_run"], true, "a run that has ended has no owner");
}

#[test]
fn nothing_that_is_told_wrongly_is_in_the_way() {
    let project = captured();
    let raw = |client: &str, event: &str, text: &[u8]| {
        let mut command = project.command(["hook", client, event]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start ic");
        drop(child.stdin.take().expect("its input").write_all(text));
        assert_eq!(end(child), Value::Null, "{client} {event}");
    };
    let good = json!({ "session_id": "s", "prompt": "p", "cwd": project.root() }).to_string();
    raw("cursor", "Stop", good.as_bytes());
    raw("claude-code", "Nope", good.as_bytes());
    raw("\u{1b}[31m", "\n", good.as_bytes());
    raw("claude-code", "UserPromptSubmit", b"");
    raw("claude-code", "UserPromptSubmit", &good.as_bytes()[..20]);
    raw("claude-code", "UserPromptSubmit", b"\xff\xfe");
    raw("claude-code", "UserPromptSubmit", b"[1, 2]");
    for id in ["", "../../x", "a b", "a'; DROP TABLE runs;--", "\u{1b}[31m", &"x".repeat(200)] {
        let said = json!({ "session_id": id, "prompt": "p", "cwd": project.root() }).to_string();
        raw("claude-code", "UserPromptSubmit", said.as_bytes());
    }
    let lines = logged(&project);
    assert!(lines.len() >= 12 && lines.iter().all(|line| line["code"] == "invalid_value"), "{lines:?}");
    assert!(lines.iter().all(|line| !line.to_string().contains("\\u001b")), "{lines:?}");
    assert_eq!(project.json("session list"), json!([]));
    let doctor = project.json("hooks doctor claude-code");
    assert_eq!(doctor[0]["failures"].as_array().map(Vec::len), Some(5), "{doctor}");
}

#[test]
fn a_ledger_that_is_not_there_is_not_made_and_one_that_is_held_is_waited_for_briefly() {
    let project = captured();
    let said = Said::new("claude-code", "s-1", "UserPromptSubmit").prompt("p-1", "Add it");
    {
        let _held = project.cli.hold_writers();
        assert_eq!(say(&project, &said), Value::Null);
    }
    assert_eq!(logged(&project)[0]["code"], "busy");
    assert_eq!(project.json("session list"), json!([]));
    say(&project, &said);
    assert_eq!(project.json("session list").as_array().map(Vec::len), Some(1));

    let elsewhere = tempfile::tempdir().expect("a directory");
    let said = said.with("cwd", elsewhere.path().to_str().expect("a plain path"));
    assert_eq!(end(begin(&project, &said, &[("IC_DB", "")])), Value::Null);
    assert_eq!(std::fs::read_dir(elsewhere.path()).expect("it").count(), 0);
}

#[test]
fn many_hooks_at_once_lose_nothing() {
    let project = captured();
    let sessions: Vec<String> = (0..25).map(|n| format!("s-{n}")).collect();
    for turn in ["p-1", "p-2"] {
        let told = |event: &str| -> Vec<Child> {
            let said = |session: &String| Said::new("claude-code", session, event).prompt(turn, turn);
            sessions.iter().map(|session| begin(&project, &said(session), &[])).collect()
        };
        for event in ["UserPromptSubmit", "PreToolUse", "Stop"] {
            for child in told(event) {
                assert_eq!(end(child), Value::Null, "{event}");
            }
        }
    }
    let failed: Vec<Value> = logged(&project).into_iter().filter(|line| !line["code"].is_null()).collect();
    assert_eq!(failed, Vec::<Value>::new());
    let all = project.json("dispatch list --limit 100");
    let done = all.as_array().expect("a list").iter().filter(|one| one["status"] == "completed").count();
    assert_eq!(done, 50, "{all}");
    let outcome: CliOutcome = project.run("events verify");
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
}

#[test]
fn secrets_in_a_prompt_are_masked_and_can_be_redacted() {
    let project = captured();
    let token = "ghp_0123456789abcdefghij0123456789abcdef";
    say(
        &project,
        &Said::new("claude-code", "s-1", "UserPromptSubmit").prompt("p-1", &format!("use {token} and sesame")),
    );
    let dump = project.dump();
    assert!(!dump.contains(token) && dump.contains("sesame"), "{dump}");
    let events = project.json("events tail");
    let created = events.as_array().expect("events").iter().find(|event| event["kind"] == "dispatch_created");
    project.ok(&format!("events redact {} --reason 'a password'", created.expect("the event")["seq"]));
    assert!(!project.dump().contains("sesame"), "{}", project.dump());
}

#[test]
fn at_a_glance_a_session_is_not_told_to_advance() {
    let project = captured();
    say(&project, &Said::new("claude-code", "s-1", "UserPromptSubmit").prompt("p-1", "Add it"));
    let seen = project.json("status");
    assert_eq!((&seen["gate"], &seen["working"][0]["name"]), (&Value::Null, &json!("Add it")), "{seen}");
    assert_eq!(seen["next"], "ic log", "{seen}");
    assert_eq!(seen["last_point"]["kind"], "prompt");
}

#[test]
fn of_two_agents_in_one_tree_one_is_undone_and_the_others_work_is_named_and_stays() {
    let project = captured();
    project.write("shared.txt", "one\ntwo\nthree\n");
    let prompt = |session: &str, text: &str| {
        say(&project, &Said::new("claude-code", session, "UserPromptSubmit").prompt(text, text));
    };
    let stop = |session: &str| say(&project, &Said::new("claude-code", session, "Stop"));
    prompt("s-1", "first agent");
    in_call(&project, "claude-code", "s-1", || project.write("early.txt", "of the first"));
    prompt("s-2", "second agent");
    let newest = project.run("undo --dry-run");
    assert!(
        newest.stdout.contains("\"name\":\"first agent\""),
        "both are at work, and the second did nothing yet: {newest:?}"
    );
    project.write("between.txt", "of one of them");
    stop("s-1");
    in_call(&project, "claude-code", "s-2", || project.write("late.txt", "of the second"));
    stop("s-2");
    let meant = project.run("undo --dry-run --force-files");
    assert!(meant.stdout.contains("\"name\":\"second agent\""), "the newest prompt of any agent: {meant:?}");
    let first = project.json("session list")[0]["run_id"].as_str().expect("a run").to_owned();
    let report = project.json(&format!("undo --run {first} --yes"));
    let is_there = ["early.txt", "between.txt", "late.txt"].map(|file| project.root().join(file).exists());
    assert_eq!(is_there, [false, true, true], "{report}");
    assert!(report["files"].to_string().contains("between.txt"), "what may be of both is named: {report}");
    project.ok(&format!("redo --run {first} --yes"));
    assert!(project.root().join("early.txt").exists());
}

#[test]
fn late_work_of_a_prompt_that_was_undone_is_refused_and_a_new_prompts_is_not() {
    let project = captured();
    let call = |id: &str| say(&project, &Said::new("claude-code", "s-1", "PreToolUse").prompt(id, ""));
    say(&project, &Said::new("claude-code", "s-1", "UserPromptSubmit").prompt("p-1", "\n first line \nsecond line"));
    project.write("a", "1");
    say(&project, &Said::new("claude-code", "s-1", "Stop"));
    assert_eq!(project.json("log")[0]["title"], "first line", "no more of a prompt is kept");
    project.ok("undo --yes");
    assert_ne!(call("p-1"), Value::Null, "a background task of what was undone");
    assert_ne!(call("p-2"), Value::Null, "what its client lets it do by itself");
    say(&project, &Said::new("claude-code", "s-1", "UserPromptSubmit").prompt("p-2", "/ic:log"));
    assert_eq!(call("p-2"), Value::Null, "a command that is no prompt");
    say(&project, &Said::new("claude-code", "s-1", "UserPromptSubmit").prompt("p-3", "Again"));
    assert_eq!(call("p-3"), Value::Null);
}

#[test]
fn an_older_prompt_is_named_by_itself_whatever_else_is_open() {
    let project = captured();
    work(&project, "claude-code", "s-1", "First", "a");
    let entry = project.json("log")[0].clone();
    say(&project, &Said::new("claude-code", "s-1", "SessionEnd"));
    work(&project, "claude-code", "s-1", "Second", "b");
    work(&project, "codex", "c-1", "Other", "c");
    let named = entry["reference"].as_str().expect("a reference");
    let plan = project.json(&format!("undo {named} --force-files --dry-run"));
    assert_eq!(plan["run_id"], entry["run_id"], "an id alone says its run");
    assert_eq!(project.json("session show s-1")["client_session_id"], "s-1");
}

#[test]
fn a_question_that_was_answered_is_no_work_to_undo_and_not_in_the_way_of_a_redo() {
    let project = in_git();
    let ask = |id: &str| {
        say(&project, &Said::new("claude-code", "s-1", "UserPromptSubmit").prompt(id, "What does it do?"));
        say(&project, &Said::new("claude-code", "s-1", "Stop"));
    };
    work(&project, "claude-code", "s-1", "Add a login", "login.rs");
    ask("p-2");
    ask("p-3");
    let before = ic_testkit::tree(project.root());
    let undone = project.json("undo --yes");
    assert_eq!(undone["counts"]["dispatches"], 3, "what was asked since goes along: {undone}");
    assert!(!project.root().join("login.rs").exists());
    ask("p-4");
    project.json("redo --yes");
    assert_eq!(ic_testkit::tree(project.root()), before);
    work(&project, "claude-code", "s-1", "Add a test", "test.rs");
    let prompts = project.json("session show s-1")["prompts"].clone();
    let newest = prompts.as_array().and_then(|all| all.last()).expect("the last")["short_id"].clone();
    project.json(&format!("undo --only prompt:{} --yes", newest.as_str().expect("an id")));
    assert!(!project.root().join("test.rs").exists() && project.root().join("login.rs").exists());
    // What changed something since stays beside it.
    let undone = project.json("undo --yes");
    assert!(!project.root().join("login.rs").exists(), "{undone}");
    work(&project, "claude-code", "s-1", "Add another", "other.rs");
    project.json("redo --yes");
    assert!(["login.rs", "other.rs"].iter().all(|file| project.root().join(file).exists()));
}

#[test]
fn one_plugin_serves_clients_that_read_the_same_format() {
    let project = captured();
    let of_codex = |event: &str| {
        Said::new("claude-code", "c-1", event)
            .with("turn_id", "t-1")
            .with("transcript_path", "/home/ann/.codex/sessions/2026/11/22/rollout-c-1.jsonl")
    };
    say(&project, &of_codex("SessionStart"));
    say(&project, &of_codex("UserPromptSubmit").with("prompt", "Add it"));
    say(&project, &of_codex("Stop"));
    assert_eq!(project.json("session list")[0]["client"], "codex");
    assert!(logged(&project).iter().all(|line| line["client"] == "codex"));
    let doctor = project.run("hooks doctor codex --format text");
    assert!(doctor.stdout.contains("what called is a plugin, or was uninstalled since"), "{doctor:?}");
    assert!(doctor.stdout.contains("last called "), "{doctor:?}");
}

#[test]
fn a_client_that_would_put_it_before_a_command_hears_of_us_with_its_first_prompt() {
    let project = captured();
    let prompt = |text: &str| say(&project, &Said::new("gemini", "g-1", "BeforeAgent").prompt(text, text));
    assert_eq!(say(&project, &Said::new("gemini", "g-1", "SessionStart")), Value::Null);
    assert_eq!(prompt("/ic:log says:\n\nnothing"), Value::Null, "a command is no prompt");
    let told = prompt("Add it")["hookSpecificOutput"]["additionalContext"].to_string();
    assert!(told.contains("recorded by `ic`"), "{told}");
    assert_eq!(prompt("More"), Value::Null);
    let said = say(&project, &Said::new("claude-code", "s-1", "SessionStart"));
    assert!(said.to_string().contains("recorded by `ic`"), "{said}");
}

#[test]
fn a_client_that_reads_nothing_with_a_prompt_is_refused_once_to_hear_what_was_undone() {
    for client in ["copilot", "opencode"] {
        let project = captured();
        let [prompt, call, stop] = names(client);
        let calls = || say(&project, &Said::new(client, "s-1", call));
        let reason = |answer: &Value| {
            let said = [&answer["refuse"], &answer["permissionDecisionReason"]].into_iter().find_map(Value::as_str);
            said.unwrap_or_default().to_owned()
        };
        work(&project, client, "s-1", "Add a login", "login.txt");
        project.ok("undo --yes");
        let answer = say(&project, &Said::new(client, "s-1", prompt).prompt("p-2", "Once more"));
        assert_eq!(answer, Value::Null, "{client}: no model would read it");
        let told = reason(&calls());
        assert!(told.starts_with("Since your last answer") && told.contains("1 file"), "{client}: {told}");
        assert_eq!(calls(), Value::Null, "{client}: it is told once");
        project.ok("undo --yes");
        let told = reason(&calls());
        assert!(told.contains("Stop here"), "{client}: its own work was undone: {told}");
        say(&project, &Said::new(client, "s-1", stop));
        // A session that ended, and was resumed in another run.
        say(&project, &Said::new(client, "s-1", prompt).prompt("p-3", "Third"));
        let run = project.json("session list")[0]["run_id"].as_str().expect("a run").to_owned();
        say(&project, &Said::new(client, "s-1", stop));
        project.ok("undo --yes");
        project.ok(&format!("run cancel {run}"));
        say(&project, &Said::new(client, "s-1", prompt).prompt("p-4", "Fourth"));
        assert!(reason(&calls()).contains("Third"), "{client}");
    }
}

#[test]
fn a_hook_that_is_installed_twice_records_a_prompt_once() {
    let project = captured();
    let at = |named: &str, event: &str| {
        Said::new(named, "s-1", event).with("timestamp", "2026-11-23T20:17:43.558Z").without("transcript_path")
    };
    for named in ["copilot", "claude-code"] {
        say(&project, &at(named, "UserPromptSubmit").with("prompt", "Add it"));
    }
    for named in ["copilot", "claude-code"] {
        say(&project, &at(named, "Stop"));
    }
    assert_eq!(project.json("dispatch list").as_array().map(Vec::len), Some(1));
    assert_eq!(project.json("session list")[0]["client"], "copilot");
    let extension = |id: &str| Said::new("gemini", "g-1", "BeforeAgent").with("timestamp", id).with("prompt", "Add it");
    for id in ["1", "1", "2"] {
        say(&project, &extension(id));
    }
    assert_eq!(project.json("session show g-1")["prompts"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_subagent_with_a_session_of_its_own_is_the_work_of_the_one_that_began_it() {
    let project = captured();
    let sub = |event: &str| Said::new("copilot", "sub", event).with("agent_id", "sub").with("parent_agent_id", "s-1");
    say(&project, &Said::new("copilot", "s-1", "UserPromptSubmit").prompt("p-1", "Add it"));
    for event in ["UserPromptSubmit", "Stop", "SessionEnd"] {
        say(&project, &sub(event).with("prompt", "a task"));
    }
    assert_eq!(project.json("dispatch list")[0]["status"], "running");
    project.ok("undo --yes");
    assert!(say(&project, &sub("PreToolUse")).to_string().contains("Stop here"));
    assert_eq!(project.json("session list").as_array().map(Vec::len), Some(1));
}

#[test]
fn a_script_is_written_whole_and_one_that_is_not_ours_stays() {
    let project = captured();
    let file = project.root().join(".opencode/plugins/ic.js");
    let text = || std::fs::read_to_string(&file).expect("the script");
    project.ok("hooks install opencode");
    let installed = text();
    assert!(installed.contains("const PROGRAM = \"/") && installed.contains("\"chat.message\""), "{installed}");
    assert_eq!(project.json("hooks install opencode")["changed"], false);
    assert_eq!(project.json("hooks doctor opencode")[0]["config_files"].as_array().map(Vec::len), Some(1));
    std::fs::write(&file, format!("{installed}// mine\n")).expect("an edit");
    let left = project.run("uninstall opencode --json");
    assert_eq!((left.code, &left.json()["hooks"]["events_left"]), (Some(1), &json!(["plugin"])), "{left:?}");
    assert_eq!(project.run("hooks install opencode").error(), "config_not_changed");
    assert!(text().ends_with("// mine\n"));
    std::fs::write(&file, &installed).expect("as it was");
    project.ok("uninstall opencode");
    assert!(!project.root().join(".opencode").exists(), "the directories that were made for it are gone");
    project.write(".opencode/keep", "");
    std::os::unix::fs::symlink("/tmp", project.root().join(".opencode/plugins")).expect("a link");
    assert_eq!(project.run("hooks install opencode").error(), "config_not_changed");
}

#[test]
fn a_session_that_was_resumed_is_undone_prompt_by_prompt_over_its_runs_and_redone_in_turn() {
    let project = in_git();
    let mut trees = vec![ic_testkit::tree(project.root())];
    for n in 1..=3 {
        // Each time the client ends, as one that is called for a single prompt does.
        work(&project, "claude-code", "s-1", &format!("prompt {n}"), &format!("file{n}.txt"));
        say(&project, &Said::new("claude-code", "s-1", "SessionEnd"));
        trees.push(ic_testkit::tree(project.root()));
    }
    for n in (0..3).rev() {
        project.json("undo --yes");
        assert_eq!(ic_testkit::tree(project.root()), trees[n], "undone to before prompt {}", n + 1);
    }
    assert_eq!(project.refused("undo --yes").1, "nothing_to_undo");
    for (n, tree) in trees.iter().enumerate().skip(1) {
        project.json("redo --yes");
        assert_eq!(&ic_testkit::tree(project.root()), tree, "prompt {n} is back");
    }
}

#[test]
fn a_sentence_that_begins_with_the_name_of_the_program_is_a_prompt_and_a_command_is_none() {
    let project = captured();
    let ask = |text: &str| {
        say(&project, &Said::new("claude-code", "s-1", "UserPromptSubmit").prompt(text, text));
        project.json("session list").as_array().map_or(0, Vec::len)
    };
    for text in ["ic", "ic log", "ic undo prompt:3f9a12c4 --yes", "/ic:undo", "/ic:undo the last one"] {
        assert_eq!(ask(text), 0, "{text}");
    }
    for text in ["ic is our tool: write its manual", "ic undo the login please"] {
        assert_eq!(ask(text), 1, "{text}");
    }
    assert_eq!(project.json("session show s-1")["prompts"].as_array().map(Vec::len), Some(2));
}

#[test]
fn what_lies_in_place_of_the_log_is_neither_waited_for_nor_followed() {
    let project = captured();
    let log = project.cli.beside("hooks.log");
    let elsewhere = project.cli.home().join("elsewhere");
    std::fs::write(&elsewhere, "mine\n").expect("a file of another kind");
    std::os::unix::fs::symlink(&elsewhere, &log).expect("a link");
    say(&project, &Said::new("claude-code", "s-1", "UserPromptSubmit").prompt("p-1", "Add"));
    assert_eq!(std::fs::read_to_string(&elsewhere).expect("it"), "mine\n");
    std::fs::remove_file(&log).expect("the link");
    let made = std::process::Command::new("mkfifo").arg(&log).status().expect("mkfifo");
    assert!(made.success());
    say(&project, &Said::new("claude-code", "s-1", "Stop"));
}
