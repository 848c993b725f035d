//! Settings with hooks are in the project's tree, and no agent wrote them.

use crate::agents::{Said, say};
use crate::support::Project;

const OF_A_PERSON: &str = "{ \"permissions\": {} }\n";
const EXCLUDED: &str = "# of a person\n*.log";

fn git(project: &Project, words: &[&str]) -> String {
    ic_testkit::git_in(project.root(), words)
}

fn in_git() -> Project {
    let project = Project::new();
    std::fs::remove_file(project.root().join(".ic.yaml")).expect("the configuration");
    project.write("README.md", "read me\n");
    git(&project, &["init", "-q"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "base"]);
    project.write(".git/info/exclude", EXCLUDED);
    project
}

fn prompt(project: &Project, file: &str) {
    say(project, &Said::new("claude-code", "s-1", "UserPromptSubmit").prompt(file, file));
    crate::agents::in_call(project, "claude-code", "s-1", || project.write(file, "1"));
    say(project, &Said::new("claude-code", "s-1", "Stop"));
}

fn read(project: &Project, path: &str) -> Option<String> {
    std::fs::read_to_string(project.root().join(path)).ok()
}

#[test]
fn an_undo_over_an_uninstall_brings_no_hook_back_and_takes_no_settings_away() {
    for (client, settings) in [
        ("claude-code", ".claude/settings.local.json"),
        ("codex", ".codex/hooks.json"),
        ("gemini", ".gemini/settings.json"),
        ("copilot", ".github/hooks/ic.json"),
        ("opencode", ".opencode/plugins/ic.js"),
    ] {
        for before in [None, Some(OF_A_PERSON)] {
            if client == "opencode" && before.is_some() {
                continue;
            }
            let project = in_git();
            if let Some(text) = before {
                project.write(settings, text);
            }
            assert_eq!(project.json(&format!("hooks install {client}"))["excluded"], true);
            project.ok(&format!("hooks install {client}"));
            let lines = read(&project, ".git/info/exclude").expect("the file");
            assert_eq!(lines.matches(settings).count(), 2, "the settings and their copy, once: {lines}");
            assert_eq!(git(&project, &["status", "--short"]), "", "git leaves them out");
            prompt(&project, "new.txt");
            let installed = read(&project, settings);
            project.ok("undo --yes");
            assert_eq!(read(&project, settings), installed, "{client}: an undo leaves the hooks");
            project.ok("redo --yes");
            project.ok(&format!("uninstall {client}"));
            let left = read(&project, ".git/info/exclude").expect("the file");
            assert_eq!(left.trim_end(), EXCLUDED, "{client}: exactly our lines are gone");
            project.ok("undo --yes");
            assert!(read(&project, "new.txt").is_none());
            assert_eq!(read(&project, settings).as_deref(), before, "{client}: the settings stay as they are");
        }
    }
}

#[test]
fn of_what_git_tracks_the_copy_alone_is_excluded() {
    let project = in_git();
    project.write(".gemini/settings.json", OF_A_PERSON);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "settings"]);
    for _ in 0..2 {
        assert_eq!(project.json("hooks install gemini")["excluded"], false);
        let lines = read(&project, ".git/info/exclude").expect("the file");
        let added = "\n# ic hooks install gemini\n/.gemini/settings.json.before-ic\n";
        assert_eq!(lines, format!("{EXCLUDED}{added}"));
        assert_eq!(git(&project, &["status", "--short"]).trim(), "M .gemini/settings.json");
    }
    project.ok("uninstall gemini");
    assert_eq!(read(&project, ".git/info/exclude").expect("the file").trim_end(), EXCLUDED);
    assert_eq!(git(&project, &["status", "--short"]), "");
}

#[test]
fn settings_that_were_removed_leave_nothing_behind() {
    let project = in_git();
    project.write(".claude/settings.local.json", OF_A_PERSON);
    project.ok("hooks install claude-code");
    std::fs::remove_file(project.root().join(".claude/settings.local.json")).expect("it is removed");
    project.ok("uninstall claude-code");
    assert_eq!(git(&project, &["status", "--short"]), "");
    assert_eq!(read(&project, ".claude/settings.local.json.before-ic"), None);
}

#[test]
fn a_dry_run_excludes_nothing() {
    let project = in_git();
    assert_eq!(project.json("hooks install codex --dry-run")["excluded"], true);
    assert_eq!(read(&project, ".git/info/exclude").as_deref(), Some(EXCLUDED));
}

#[test]
fn a_store_that_cannot_be_written_is_named_by_the_doctor() {
    use std::os::unix::fs::PermissionsExt as _;

    let project = in_git();
    project.ok("hooks install claude-code");
    let store = project.cli.db().parent().expect("its directory").to_owned();
    let set = |mode| std::fs::set_permissions(&store, std::fs::Permissions::from_mode(mode)).expect("its mode");
    set(0o500);
    // Who may do anything has no such store.
    let is_closed = std::fs::write(store.join("probe"), "").is_err();
    let shown = project.json("hooks doctor claude-code");
    set(0o700);
    let failures = &shown[0]["failures"];
    assert_eq!(failures.as_array().map(Vec::len), Some(usize::from(is_closed)), "{shown}");
    if is_closed {
        assert_eq!(failures[0]["code"], "permission_denied", "{shown}");
    }
}

#[test]
fn a_secret_that_captures_leave_out_is_no_failure() {
    let project = in_git();
    say(&project, &Said::new("claude-code", "s-1", "UserPromptSubmit").prompt("one", "one"));
    project.write(".env", "KEY=1");
    say(&project, &Said::new("claude-code", "s-1", "Stop"));
    let doctor = project.json("hooks doctor claude-code")[0].clone();
    assert_eq!(doctor["failures"], serde_json::json!([]), "{doctor}");
    assert_eq!(doctor["left_out"][0]["message"], ".env (secret)", "{doctor}");
    let text = project.ok("hooks doctor claude-code --format text");
    assert!(!text.contains("failed"), "{text}");
    assert!(text.contains("left out") && text.contains(".env (secret), by a rule"), "{text}");
    // What it says to do takes the file.
    assert!(text.contains("rollback.checkpointing.include-secrets"), "{text}");
    project.write(".ic.yaml", "rollback: {checkpointing: {include-secrets: [.env]}}\n");
    say(&project, &Said::new("claude-code", "s-1", "UserPromptSubmit").prompt("two", "two"));
    crate::agents::in_call(&project, "claude-code", "s-1", || project.write(".env", "KEY=2"));
    say(&project, &Said::new("claude-code", "s-1", "Stop"));
    project.json("undo --yes");
    assert_eq!(read(&project, ".env").as_deref(), Some("KEY=1"));
}

#[test]
fn settings_that_a_person_wrote_later_stand_against_no_undo_where_there_is_no_git() {
    for settings in [".claude/settings.local.json", ".claude/settings.json", ".mcp.json", ".codex/config.toml"] {
        for was_there in [true, false] {
            let project = crate::agents::captured();
            if was_there {
                project.write(settings, "before\n");
            }
            say(&project, &Said::new("claude-code", "s-1", "UserPromptSubmit").prompt("p", "p"));
            crate::agents::in_call(&project, "claude-code", "s-1", || project.write("made", "1"));
            say(&project, &Said::new("claude-code", "s-1", "Stop"));
            project.write(settings, "after\n");
            let undone = project.json("undo --yes");
            let when = format!("{settings}, there before: {was_there}: {undone}");
            assert_eq!(
                (read(&project, "made"), read(&project, settings).as_deref()),
                (None, Some("after\n")),
                "{when}"
            );
            let skipped = undone["files"]["skipped"].as_array().expect("a list").clone();
            assert!(skipped.iter().any(|one| one["path"] == settings), "it is named: {when}");
            project.json("redo --yes");
            assert_eq!(
                (read(&project, "made").as_deref(), read(&project, settings).as_deref()),
                (Some("1"), Some("after\n"))
            );
        }
    }
}

#[test]
fn settings_that_the_agent_wrote_go_with_its_work() {
    let project = crate::agents::captured();
    let settings = ".claude/settings.json";
    say(&project, &Said::new("claude-code", "s-1", "UserPromptSubmit").prompt("p", "p"));
    crate::agents::in_call(&project, "claude-code", "s-1", || project.write(settings, "of the agent"));
    say(&project, &Said::new("claude-code", "s-1", "Stop"));
    project.json("undo --yes");
    assert_eq!(read(&project, settings), None);
}

/// `git clean -x` removes what git ignores, and the hooks with it: no hook can say so.
#[test]
fn hooks_that_a_clean_removed_are_named_as_missing() {
    for client in ["claude-code", "codex", "gemini", "copilot", "opencode"] {
        let project = in_git();
        prompt(&project, "new.txt");
        let said = || {
            let status = project.run("status --format text");
            assert_eq!(status.code, Some(0), "{client}: {status:?}");
            let doctor = project.json(&format!("hooks doctor {client}"));
            let failures = doctor[0]["failures"].as_array().expect("a list").len();
            (status.stderr.contains(&format!("ic hooks install {client}")), failures)
        };
        assert_eq!(said(), (false, 0), "{client}: none were installed");
        project.ok(&format!("hooks install {client}"));
        assert_eq!(said(), (false, 0), "{client}: installed");
        git(&project, &["clean", "-qfdx", "-e", ".ic"]);
        assert_eq!(said(), (true, 1), "{client}: removed");
        let text = project.ok(&format!("hooks doctor {client} --format text"));
        assert!(text.contains("are missing there") && !text.contains("uninstalled since"), "{text}");
        project.ok("undo --yes");
        assert_eq!(said(), (true, 1), "{client}: an undo does not bring them back");
        project.ok(&format!("hooks install {client}"));
        assert_eq!(said(), (false, 0), "{client}: installed again");
        project.ok(&format!("uninstall {client}"));
        assert_eq!(said(), (false, 0), "{client}: uninstalled");
    }
}
