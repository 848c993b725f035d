//! Payloads that the programs of coding agents really sent (`payloads/`; paths and ids are neutral), the answers to them, and payloads that
//! no client sends.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;

use ic_session::clients::Client;
use serde_json::{Value, json};

use crate::support::{Project, snapshot};

/// The clients, each with what it sent: `payloads/CLIENT.jsonl`, and `payloads/CLIENT.FORMAT.jsonl` for a second format that a person may have
/// configured by hand. A new client needs nothing but its file there.
fn clients() -> Vec<(String, String)> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cli/payloads");
    let entries = std::fs::read_dir(directory).expect("the payloads");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let read = |file: std::path::PathBuf| {
        let name = file.file_name().and_then(|name| name.to_str()).expect("a name");
        let client = name.split('.').next().expect("a client").to_owned();
        (client, std::fs::read_to_string(&file).expect("payloads"))
    };
    files.into_iter().map(read).collect()
}

#[test]
fn each_client_has_payloads() {
    let known: BTreeSet<String> = clients().into_iter().map(|(client, _)| client).collect();
    assert_eq!(known, Client::WORDS.map(str::to_owned).into());
}

struct Line {
    event: String,
    payload: Value,
}

fn lines(text: &str, project: &Project) -> Vec<Line> {
    let root = project.root().to_str().expect("a plain path");
    let read = |line: &str| -> Line {
        let value: Value = serde_json::from_str(&line.replace("@ROOT@", root)).expect("JSON");
        Line { event: value["event"].as_str().expect("an event").to_owned(), payload: value["payload"].clone() }
    };
    text.lines().map(read).collect()
}

/// Sends bytes to a hook: it ends with 0, says nothing on stderr, and nothing or JSON on stdout.
fn send(project: &Project, client: &str, event: &str, bytes: &[u8]) -> Value {
    let mut child = project
        .command(["hook", client, event])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start ic");
    // It may have ended before it read all.
    let _ = child.stdin.take().expect("its input").write_all(bytes);
    let output = child.wait_with_output().expect("its end");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()), "{client} {event}");
    if output.stdout.is_empty() { Value::Null } else { serde_json::from_slice(&output.stdout).expect("JSON") }
}

fn tell(project: &Project, client: &str, line: &Line) -> Value {
    send(project, client, &line.event, line.payload.to_string().as_bytes())
}

fn captured() -> Project {
    let project = Project::new();
    std::fs::remove_file(project.root().join(".ic.yaml")).expect("the configuration");
    project.write("README.md", "read me\n");
    project
}

/// The first prompt that a person typed.
fn prompt_of(lines: &[Line]) -> &Line {
    lines.iter().find(|line| line.payload["prompt"].is_string()).expect("a prompt")
}

fn is_of_tool(line: &Line) -> bool {
    ["tool_name", "toolName"].iter().any(|key| line.payload[*key].is_string())
}

/// The first tool call, before it is made.
fn call_of(lines: &[Line]) -> &Line {
    lines.iter().find(|line| is_of_tool(line)).expect("a call")
}

/// Whether a tool call was made.
fn is_result(line: &Line) -> bool {
    let event = line.event.to_lowercase();
    is_of_tool(line) && ["post", "after"].iter().any(|word| event.contains(word))
}

/// What is on record, without what a client cannot know.
fn recorded(project: &Project) -> String {
    let mut out = String::new();
    for session in project.json("session list").as_array().expect("sessions") {
        let id = session["id"].as_str().expect("an id");
        let shown = project.json(&format!("session show {id} --calls"));
        writeln!(out, "{} {} ended: {}", shown["client"], shown["client_session_id"], !shown["finished_at"].is_null())
            .expect("a line");
        for prompt in shown["prompts"].as_array().expect("prompts") {
            writeln!(out, "  prompt {} {} model {}", prompt["name"], prompt["status"], prompt["model"])
                .expect("a line");
        }
        for call in shown["calls"].as_array().into_iter().flatten() {
            writeln!(out, "  call {} {}", call["tool"], call["line"]).expect("a line");
        }
    }
    out
}

#[test]
fn what_clients_send_is_recorded_and_answered() {
    let mut out = String::new();
    for (client, text) in clients() {
        let (client, text) = (client.as_str(), text.as_str());
        let project = captured();
        writeln!(out, "# {client}").expect("a line");
        for (n, line) in lines(text, &project).iter().enumerate() {
            if is_result(line) {
                project.write(format!("made-{n}.txt"), "by a tool\n");
            }
            let answer = tell(&project, client, line);
            writeln!(out, "{} -> {answer}", line.event).expect("a line");
        }
        writeln!(out, "{}", recorded(&project)).expect("a line");
    }
    snapshot("payloads-recorded", &out);
}

#[test]
fn work_that_was_undone_is_refused_in_each_clients_own_words() {
    let mut out = String::new();
    for (client, text) in clients() {
        let (client, text) = (client.as_str(), text.as_str());
        let project = captured();
        writeln!(out, "# {client}").expect("a line");
        let all = lines(text, &project);
        let prompt = prompt_of(&all);
        let call = call_of(&all);
        tell(&project, client, prompt);
        project.write("login.txt", "1");
        project.ok("undo --reason 'the wrong file' --yes");
        writeln!(out, "call -> {}", tell(&project, client, call)).expect("a line");
        let mut next = Line { event: prompt.event.clone(), payload: prompt.payload.clone() };
        for key in ["prompt_id", "turn_id", "timestamp"] {
            if !next.payload[key].is_null() {
                next.payload[key] = json!("the next");
            }
        }
        next.payload["prompt"] = json!("Another try");
        writeln!(out, "next prompt -> {}", tell(&project, client, &next)).expect("a line");
        let mut call = Line { event: call.event.clone(), payload: call.payload.clone() };
        for key in ["prompt_id", "turn_id"] {
            if !call.payload[key].is_null() {
                call.payload[key] = json!("the next");
            }
        }
        writeln!(out, "its call -> {}", tell(&project, client, &call)).expect("a line");
        writeln!(out, "its next call -> {}\n", tell(&project, client, &call)).expect("a line");
    }
    snapshot("payloads-refused", &out);
}

#[test]
fn what_is_cut_says_nothing_and_records_nothing() {
    for (client, text) in clients() {
        let (client, text) = (client.as_str(), text.as_str());
        let project = captured();
        let all = lines(text, &project);
        let line = prompt_of(&all);
        let whole = line.payload.to_string();
        for end in [0, 1, whole.len() / 3, whole.len() / 2, whole.len() - 1] {
            let answer = send(&project, client, &line.event, &whole.as_bytes()[..end]);
            assert_eq!(answer, Value::Null, "{client}: {end} bytes");
        }
        assert_eq!(project.json("session list"), json!([]), "{client}");
    }
}

#[test]
fn fields_that_are_unknown_or_of_another_kind_are_let_through() {
    for (client, text) in clients() {
        let (client, text) = (client.as_str(), text.as_str());
        let project = captured();
        let all = lines(text, &project);
        for value in [json!(null), json!(7), json!([1]), json!({ "a": "b" })] {
            for line in [prompt_of(&all), call_of(&all)] {
                for key in line.payload.as_object().expect("an object").keys() {
                    // Without its directory and its session a payload says nothing: that is tried elsewhere.
                    if ["cwd", "session_id", "sessionId"].contains(&key.as_str()) {
                        continue;
                    }
                    let mut payload = line.payload.clone();
                    payload[key] = value.clone();
                    payload["of_a_later_version"] = value.clone();
                    tell(&project, client, &Line { event: line.event.clone(), payload });
                }
            }
        }
        assert!(!project.json("session list").to_string().contains("of_a_later_version"));
        assert_eq!(project.run("events verify").code, Some(0), "{client}");
    }
}

#[test]
fn half_a_character_is_no_reason_to_obey_nothing() {
    let project = captured();
    project.write(".env", "KEY=1\n");
    let say = |event: &str, fields: &str| {
        let cwd = json!(project.root());
        let text = format!(r#"{{"session_id":"s-1","transcript_path":"/h/t.jsonl","cwd":{cwd},{fields}}}"#);
        // What stands for a byte that no text has.
        let bytes: Vec<u8> = text.bytes().map(|byte| if byte == b'%' { 0xff } else { byte }).collect();
        send(&project, "claude-code", event, &bytes)
    };
    say("UserPromptSubmit", r#""prompt_id":"p-1","prompt":"half \ud83d and \\ud83d""#);
    assert_eq!(project.json("log")[0]["title"], "half \u{fffd} and \\ud83d");
    let guarded =
        r#""tool_name":"Bash","tool_use_id":"c-1","tool_input":{"command":"rm -rf .env","description":"\ud83d %"}"#;
    let answer = say("PreToolUse", guarded);
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "ask", "{answer}");
    project.write("a.txt", "1\n");
    project.ok("undo --yes --force-files");
    let answer = say("PreToolUse", r#""tool_name":"Write","tool_input":{"file_path":"x","content":"\ud83d"}"#);
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{answer}");
    let answer = say("PreToolUse", r#""tool_name":"Bash","tool_input":{"command":"rm -rf .env""#);
    assert_eq!(answer, Value::Null, "what cannot be read at all is let through");
}

#[test]
fn what_a_call_names_is_kept_without_its_secrets() {
    let project = captured();
    let said = |event: &str, fields: Value| {
        let mut payload = json!({ "session_id": "s-1", "transcript_path": "/h/t.jsonl", "cwd": project.root() });
        payload.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        send(&project, "claude-code", event, payload.to_string().as_bytes());
    };
    said("UserPromptSubmit", json!({ "prompt_id": "p-1", "prompt": "Fetch it" }));
    for (n, input) in [
        json!({ "path": "https://ann:hunter2pw@host/x" }),
        json!({ "file_path": "conf/api_key=k77secretk77" }),
        json!({ "file_path": "conf/plain.txt" }),
    ]
    .iter()
    .enumerate()
    {
        said("PreToolUse", json!({ "tool_name": "Write", "tool_use_id": format!("c-{n}"), "tool_input": input }));
    }
    let id = project.json("session list")[0]["id"].as_str().expect("an id").to_owned();
    let calls = project.json(&format!("session show {id} --calls"))["calls"].clone();
    let shown: Vec<Value> =
        calls.as_array().expect("calls").iter().map(|call| json!([call["line"], call["paths"]])).collect();
    assert_eq!(shown[2], json!(["conf/plain.txt", ["conf/plain.txt"]]));
    assert_eq!([&shown[0][1], &shown[1][1]], [&json!([]), &json!([])]);
    let ledger = project.cli.content();
    for secret in ["hunter2pw", "k77secretk77"] {
        assert!(!calls.to_string().contains(secret), "{calls}");
        assert!(!ledger.windows(secret.len()).any(|bytes| bytes == secret.as_bytes()), "{secret}");
    }
}

#[test]
fn a_hook_works_by_its_payload_whatever_surrounds_it() {
    let project = captured();
    let gone = tempfile::tempdir().expect("a directory");
    let said = |id: &str| {
        json!({ "session_id": "s-1", "transcript_path": "/h/t.jsonl", "cwd": project.root(), "prompt_id": id, "prompt": id })
            .to_string()
    };
    for (id, line) in
        [("format", "IC_FORMAT=yaml exec \"$@\""), ("place", "cd \"$GONE\" && rmdir \"$GONE\" && exec \"$@\"")]
    {
        let hook = project.command(["hook", "claude-code", "UserPromptSubmit"]);
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", line, "sh"]).arg(hook.get_program()).args(hook.get_args()).env("GONE", gone.path());
        shell.envs(hook.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("start a shell");
        child.stdin.take().expect("its input").write_all(said(id).as_bytes()).expect("tell it");
        assert!(child.wait_with_output().expect("its end").status.success(), "{id}");
        assert_eq!(project.json("log")[0]["title"], id);
    }
}

/// Bytes that steer a terminal, quote their way out of a shell, and pretend to be lines of our own.
const HOSTILE: &str =
    "\u{1b}[31m\u{1b}]0;title\u{7}'\"`touch PWNED`$(touch PWNED);touch PWNED\r\n\u{202e}\u{0}&& touch PWNED | \\";

#[test]
fn what_is_hostile_reaches_no_shell_and_no_terminal() {
    for (client, text) in clients() {
        let (client, text) = (client.as_str(), text.as_str());
        let project = captured();
        let all = lines(text, &project);
        for line in &all {
            let mut payload = line.payload.clone();
            for (key, value) in payload.as_object_mut().expect("an object") {
                let is_needed = ["cwd", "session_id", "sessionId", "parent_agent_id", "parentAgentId", "timestamp"];
                if is_needed.contains(&key.as_str()) {
                    continue;
                }
                match value {
                    Value::String(text) => *text = format!("x{HOSTILE}{text}"),
                    Value::Object(fields) => {
                        fields.values_mut().for_each(|field| *field = json!(format!("x{HOSTILE}")));
                    }
                    _ => {}
                }
            }
            tell(&project, client, &Line { event: line.event.clone(), payload });
            if is_result(line) {
                project.write("made.txt", &line.payload.to_string());
            }
        }
        send(&project, HOSTILE.replace('\0', "").as_str(), HOSTILE.replace('\0', "").as_str(), b"{}");
        let sessions = project.json("session list");
        let shown = sessions[0]["id"].as_str().map(|id| format!("session show {id} --calls")).expect("a session");
        for verb in [
            "log", "status", "session list", &shown, "hooks doctor", "dispatch list --all", "run list", "run history @",
        ] {
            let text = project.run(&format!("{verb} --format text"));
            let raw = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
            assert!(!text.stdout.contains(raw), "{client}: {verb}: {:?}", text.stdout);
            assert!(!text.stderr.contains(raw), "{client}: {verb}: {:?}", text.stderr);
        }
        project.run("undo --yes");
        assert!(!project.root().join("PWNED").exists(), "{client}");
    }
}
