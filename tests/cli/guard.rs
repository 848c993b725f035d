//! Commands of agents that destroy content that no checkpoint has: the person is asked, and decides.

use serde_json::{Value, json};

use crate::agents::{Said, in_git, logged, say, say_with};
use crate::support::Project;

/// A project with a secret, ignored data and what a build makes again.
fn project(client: &str) -> Project {
    let project = in_git();
    project.write(".gitignore", "data/\nnode_modules/\n");
    project.write("data/rows", "1\n");
    project.write("node_modules/x.js", "x\n");
    project.write(".env", "KEY=1\n");
    project.write("src/a.rs", "a\n");
    let event = if client == "gemini" { "BeforeAgent" } else { "UserPromptSubmit" };
    say(&project, &Said::new(client, "s-1", event).prompt("p-1", "Clean up"));
    project
}

fn before(project: &Project, client: &str, command: &str) -> Value {
    say_with(project, &call(client, command), &[("HOME", project.cli.home().to_str().expect("a path"))])
}

fn call(client: &str, command: &str) -> Said {
    let (event, tool) = if client == "gemini" { ("BeforeTool", "run_shell_command") } else { ("PreToolUse", "Bash") };
    let mut said = Said::new(client, "s-1", event).prompt("p-1", "").with("tool_name", tool);
    said.payload["tool_input"] = json!({ "command": command });
    said
}

fn decision(answer: &Value) -> (&str, &str) {
    let own = &answer["hookSpecificOutput"];
    match answer["decision"].as_str() {
        Some(decision) => (decision, answer["reason"].as_str().expect("a reason")),
        None => (
            own["permissionDecision"].as_str().unwrap_or_default(),
            own["permissionDecisionReason"].as_str().unwrap_or_default(),
        ),
    }
}

#[test]
fn what_no_checkpoint_holds_is_asked_about_and_the_rest_goes_through() {
    let project = project("claude-code");
    let answer = before(&project, "claude-code", "rm -rf data .env src");
    assert_eq!(
        decision(&answer),
        ("ask", "`rm -r` would destroy what `ic` cannot restore: data (ignored), .env (secret). Is this intended?")
    );
    for command in ["rm -rf src node_modules", "git reset --hard", "ls", "rm README.md"] {
        assert_eq!(before(&project, "claude-code", command), Value::Null, "{command}");
    }
    // And what goes through comes back.
    std::fs::remove_dir_all(project.root().join("src")).expect("as the command does");
    say(&project, &Said::new("claude-code", "s-1", "Stop"));
    project.json("undo --yes");
    assert!(project.root().join("src/a.rs").exists());
}

#[test]
fn a_client_that_asks_nobody_refuses_and_names_the_setting() {
    for client in ["codex", "gemini"] {
        let project = project(client);
        let answer = before(&project, client, "git push --force origin main");
        let (decision, reason) = decision(&answer);
        assert_eq!(decision, "deny", "{client}");
        assert!(reason.contains("what the remote has") && reason.contains("guard: allow"), "{reason}");
        assert_eq!(reason.ends_with('.'), client != "codex", "Codex puts its own full stop there");
    }
}

#[test]
fn the_user_decides_and_a_project_only_tightens() {
    let project = project("claude-code");
    let own = project.cli.home().join(".config/ic/config.yaml");
    std::fs::create_dir_all(own.parent().expect("a directory")).expect("made");
    let now = || decision(&before(&project, "claude-code", "rm -rf data")).0.to_owned();
    project.write(".ic.yaml", "hooks: {guard: allow}\n");
    assert_eq!(now(), "ask", "a repository cannot switch it off");
    project.write(".ic.yaml", "hooks: {guard: deny}\n");
    assert_eq!(now(), "deny");
    std::fs::write(&own, "hooks: {guard: allow}\n").expect("the user's file");
    assert_eq!(now(), "deny");
    project.write(".ic.yaml", "");
    assert_eq!(now(), "", "the user may");
    std::fs::write(&own, "hooks: {guard: perhaps}\n").expect("the user's file");
    assert_eq!(now(), "ask", "what cannot be read switches nothing off");
    assert_eq!(project.json("config show")["hooks.guard"]["value"], "ask");
}

#[test]
fn no_project_and_no_variable_of_one_switches_it_off() {
    let project = project("claude-code");
    let home = project.cli.home().to_owned();
    let own = home.join(".config/ic/config.yaml");
    std::fs::create_dir_all(own.parent().expect("a directory")).expect("made");
    std::fs::write(&own, "hooks: {guard: deny}\n").expect("the user's file");
    let now = || decision(&before(&project, "claude-code", "rm -rf data")).0.to_owned();
    for text in ["rollback: {checkpointing: {auto: false}}\n", "rollback: {enabled: false}\n", "{{\n"] {
        project.write(".ic.yaml", text);
        assert_eq!(now(), "deny", "{text}");
        let answer = before(&project, "claude-code", "rm -rf src");
        assert!(decision(&answer).1.contains("src (not captured)"), "{text}: {answer}");
        assert_eq!(before(&project, "claude-code", "rm -rf node_modules; ls"), Value::Null, "{text}");
    }
    project.write(".ic.yaml", "");
    project.write("elsewhere.yaml", "rollback: {enabled: false}\n");
    project.write("home/.config/ic/config.yaml", "hooks: {guard: allow}\n");
    let config = project.root().join("elsewhere.yaml");
    let of_project = project.root().join("home");
    let text = |path: &std::path::Path| path.to_str().expect("a path").to_owned();
    for (variables, decided) in [
        ([("IC_CONFIG", text(&config)), ("HOME", text(&home))], "deny"),
        ([("IC_CONFIG", String::new()), ("HOME", text(&of_project))], "ask"),
        ([("IC_CONFIG", String::new()), ("HOME", ".".to_owned())], "ask"),
        ([("TMPDIR", text(project.root())), ("HOME", text(&home))], "deny"),
    ] {
        let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
        let answer = say_with(&project, &call("claude-code", "rm -rf data"), &variables);
        assert_eq!(decision(&answer).0, decided, "{variables:?}");
    }
    let said = logged(&project);
    assert!(said.iter().any(|line| line.to_string().contains("is not believed")), "{said:?}");
}

#[test]
fn it_needs_no_ledger_that_can_be_read_and_no_prompt() {
    let project = project("claude-code");
    let mut said = call("claude-code", "rm -rf src data");
    said.payload["session_id"] = json!("s-unknown");
    let answer = say(&project, &said);
    // Its first call begins its work, with a look at the tree: what that has can be restored.
    let why = decision(&answer).1;
    assert!(why.contains("data (ignored)") && !why.contains("src"), "{answer}");
    std::fs::write(project.cli.db(), "this is no ledger").expect("an accident");
    for command in ["rm -rf src", "git reset --hard", "rm a.txt .env"] {
        assert_eq!(decision(&before(&project, "claude-code", command)).0, "ask", "{command}");
    }
    assert_eq!(before(&project, "claude-code", "ls"), Value::Null);
    said.payload["session_id"] = Value::Null;
    assert_eq!(decision(&say(&project, &said)).0, "ask", "nor a session");
}

#[test]
fn a_single_file_is_guarded_where_no_checkpoint_holds_it() {
    let project = project("claude-code");
    let answer = before(&project, "claude-code", "rm -f src/a.rs .env data/rows");
    let why = "`rm` would destroy what `ic` cannot restore: .env (secret), data (ignored). Is this intended?";
    assert_eq!(decision(&answer), ("ask", why));
    for command in ["rm src/a.rs README.md", "rm -rf src/*", "cd src && rm -rf *"] {
        assert_eq!(before(&project, "claude-code", command), Value::Null, "{command}");
    }
}

#[test]
fn a_command_is_followed_to_where_it_runs() {
    let project = project("codex");
    let answer = |input: Value| {
        let mut said = call("codex", "");
        said.payload["tool_input"] = input;
        decision(&say(&project, &said)).0.to_owned()
    };
    assert_eq!(answer(json!({ "cmd": "rm -rf ../data", "workdir": "src" })), "deny");
    assert_eq!(answer(json!({ "command": ["bash", "-lc", "rm -rf data"] })), "deny");
    assert_eq!(answer(json!({ "command": ["bash", "-lc", "cd src && rm -rf data"] })), "");
}

#[test]
fn what_git_alone_knows_is_captured_before_it_goes() {
    let project = project("claude-code");
    let git = |words: &[&str]| ic_testkit::git_in(project.root(), words);
    project.write("README.md", "stashed\n");
    git(&["stash", "-q"]);
    assert_eq!(before(&project, "claude-code", "git stash drop"), Value::Null);
    git(&["stash", "drop", "-q"]);
    let all = project.json("checkpoint list --calls");
    let look = all.as_array().and_then(|all| all.last()).expect("the look before it")["id"].clone();
    let shown = project.json(&format!("checkpoint show {}", look.as_str().expect("an id")));
    assert!(!shown["git"].is_null(), "{shown}");
    project.json(&format!("checkpoint restore {} --yes --force", look.as_str().expect("an id")));
    assert!(git(&["stash", "list"]).contains("stash@{0}"), "the stash is back");
}
