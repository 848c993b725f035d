//! Changes of a person between prompts, and those of others' commits, are no agent's: an undo leaves them, or asks.

use serde_json::{Value, json};

use crate::agents::{Said, in_git, say};
use crate::blame::{after, before, prompt, read, stop, while_both_call, work_of};
use crate::support::Project;

/// A prompt that writes a file by a tool call, and its end.
fn writes(project: &Project, session: &str, text: &str, file: &str, content: &str) {
    ask(project, session, text);
    before(project, session, text, "Bash", json!({ "command": "make" }));
    project.write(file, content);
    after(project, session, text, "Bash");
    stop(project, session);
}

/// A prompt that is answered, and nothing more.
fn asks(project: &Project, session: &str, text: &str) {
    ask(project, session, text);
    stop(project, session);
}

/// A call of `make`, as a client tells of it.
fn makes(session: &str, event: &str) -> Said {
    let mut said = Said::new("claude-code", session, event).with("tool_name", "Bash");
    said.payload["tool_input"] = json!({ "command": "make" });
    said
}

fn ask(project: &Project, session: &str, text: &str) {
    say(project, &Said::new("claude-code", session, "UserPromptSubmit").prompt(text, text));
}

/// A preview, refused or not.
fn preview(project: &Project, words: &str) -> Value {
    serde_json::from_str(&project.run(&format!("{words} --dry-run --json")).stdout).expect("JSON")
}

/// The names of the work that a plan marks.
fn marked(plan: &Value) -> Vec<&str> {
    let all = plan["marked_dispatches"].as_array().expect("a list");
    all.iter().map(|one| one["name"].as_str().expect("a name")).collect()
}

#[test]
fn a_question_is_never_the_last_prompt_whatever_a_person_did_before_it() {
    for session in ["A", "B"] {
        let project = in_git();
        writes(&project, "A", "write", "a.txt", "by the agent\n");
        project.write("notes.txt", "mine\n");
        asks(&project, session, "what is this?");
        let plan = preview(&project, "undo");
        assert!(marked(&plan).contains(&"write"), "{plan}");
    }
}

fn git(project: &Project, words: &[&str]) -> String {
    ic_testkit::git_in(project.root(), words).trim().to_owned()
}

/// The paths that an undo is refused for.
fn clashes(plan: &Value) -> Vec<&str> {
    let all = plan["files"]["conflicts"].as_array().expect("a list");
    all.iter().map(|one| one["path"].as_str().expect("a path")).collect()
}

/// A repository with one committed file.
fn with_file(name: &str, text: &str) -> Project {
    let project = in_git();
    project.write(name, text);
    git(&project, &["add", name]);
    git(&project, &["commit", "-qm", "the file"]);
    project
}

/// Eight lines, of which the second and the last are far enough from each other to be changed by two.
fn eight(second: &str, last: &str) -> String {
    format!("1\n{second}\n3\n4\n5\n6\n7\n{last}\n")
}

/// A tool call that runs git.
fn runs(project: &Project, session: &str, call: &str, deed: impl Fn()) {
    before(project, session, call, "Bash", json!({ "command": call }));
    deed();
    after(project, session, call, "Bash");
}

/// The next capture takes a person's change into a checkpoint; the change is the person's anyway.
#[test]
fn what_a_person_did_after_the_agent_had_stopped_stays_after_any_later_look() {
    let look = |project: &Project, when: &str| match when {
        "a question" => asks(project, "A", "what is this?"),
        "another prompt" => writes(project, "A", "more", "more.txt", "more\n"),
        "a prompt of another session" => asks(project, "B", "what is this?"),
        "a checkpoint" => drop(project.json("checkpoint create")),
        _ => {
            project.json(&format!("undo --only {} --yes", work_of(project, "A")));
            project.json("redo --yes");
        }
    };
    let all = ["a question", "another prompt", "a prompt of another session", "a checkpoint", "an undo and its redo"];
    for when in all {
        let project = in_git();
        project.write("kept.txt", "1\n2\n3\n");
        writes(&project, "A", "write", "a.txt", "by the agent\n");
        let first = work_of(&project, "A");
        project.write("notes.txt", "mine\n");
        project.write("kept.txt", "mine\n2\n3\n");
        look(&project, when);
        let words = format!("undo prompt:{first}");
        let plan = preview(&project, &words);
        assert_eq!(clashes(&plan), Vec::<&str>::new(), "{when}: {plan}");
        project.json(&format!("{words} --yes"));
        assert_eq!(
            (read(&project, "notes.txt").as_str(), read(&project, "kept.txt").as_str()),
            ("mine\n", "mine\n2\n3\n"),
            "{when}"
        );
        assert!(!project.root().join("a.txt").exists(), "{when}");
    }
}

#[test]
fn an_undo_leaves_all_that_others_changed() {
    let project = in_git();
    writes(&project, "A", "write", "a.txt", "by the agent\n");
    let first = work_of(&project, "A");
    writes(&project, "B", "other", "b.txt", "by another\n");
    project.write("notes.txt", "mine\n");
    asks(&project, "A", "what is this?");
    project.write("late.txt", "mine\n");
    project.json(&format!("undo prompt:{first} --yes"));
    let is_there = ["a.txt", "b.txt", "late.txt", "notes.txt"].map(|file| project.root().join(file).exists());
    assert_eq!(is_there, [false, true, true, true]);
}

#[test]
fn what_a_pull_or_a_merge_brought_is_no_work_of_the_prompt() {
    let project = in_git();
    let far = project.root().join("far.git");
    project.write(".git/info/exclude", "far.git\nbob\n");
    git(&project, &["clone", "-q", "--bare", ".", "far.git"]);
    git(&project, &["remote", "add", "origin", far.to_str().expect("a path")]);
    git(&project, &["clone", "-q", "far.git", "bob"]);
    let bob = project.root().join("bob");
    let push = |file: &str| {
        std::fs::write(bob.join(file), "of Bob\n").expect("a file");
        for words in [&["add", "-A"][..], &["commit", "-qm", file], &["push", "-q", "origin", "HEAD"]] {
            ic_testkit::git_in(&bob, words);
        }
    };
    let branch = git(&project, &["branch", "--show-current"]);
    let ways = [
        ("pulled.txt", vec![format!("pull -q --ff-only origin {branch}")]),
        ("merged.txt", vec![format!("fetch -q origin {branch}"), "merge -q --ff-only FETCH_HEAD".to_owned()]),
        ("rebased.txt", vec![format!("pull -q --rebase origin {branch}")]),
    ];
    for (file, calls) in ways {
        push(file);
        ask(&project, "A", file);
        for line in calls {
            let words: Vec<&str> = line.split(' ').collect();
            runs(&project, "A", &line, || drop(git(&project, &words)));
        }
        let own = format!("own-{file}");
        runs(&project, "A", "make", || project.write(&own, "of the agent\n"));
        stop(&project, "A");
        let id = work_of(&project, "A");
        assert_eq!(project.json(&format!("dispatch show {id}"))["commits"], json!([]), "{file}");
        let report = project.json(&format!("undo --only {id} --yes"));
        assert_eq!(read(&project, file), "of Bob\n", "{report}");
        assert!(!project.root().join(&own).exists(), "{report}");
        assert_eq!(report["own_commits"], json!([]), "it made none: {report}");
        project.json("redo --yes");
        assert!(project.root().join(&own).exists() && project.root().join(file).exists());
    }
}

/// A person commits what there is while the prompt goes on.
#[test]
fn what_the_work_had_made_before_others_committed_it_is_its_work() {
    let project = in_git();
    ask(&project, "A", "make it");
    runs(&project, "A", "make", || {
        project.write("made.txt", "of the agent\n");
        project.write("README.md", "read me\nof the agent\n");
    });
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "what it has so far"]);
    runs(&project, "A", "more", || project.write("more.txt", "of the agent\n"));
    stop(&project, "A");
    let head = git(&project, &["rev-parse", "HEAD"]);
    let id = work_of(&project, "A");
    let report = project.json(&format!("undo --only {id} --yes"));
    assert_eq!(read(&project, "README.md"), "read me\n", "{report}");
    assert!(!project.root().join("made.txt").exists() && !project.root().join("more.txt").exists(), "{report}");
    assert_eq!(git(&project, &["rev-parse", "HEAD"]), head, "commits stay");
    project.json("redo --yes");
    assert_eq!(
        (read(&project, "made.txt"), git(&project, &["status", "--porcelain", "made.txt", "README.md"])),
        ("of the agent\n".to_owned(), String::new())
    );
}

#[test]
fn commits_of_a_call_are_its_own_on_whichever_branch_they_are() {
    let ways = [
        ["checkout -q -b fix", "commit -q --allow-empty -m fix", "checkout -q -"],
        ["checkout -q other", "commit -q --allow-empty -m other", "checkout -q -"],
        ["commit -q --allow-empty -m one", "commit -q --allow-empty --amend -m two", "status"],
    ];
    for deeds in ways {
        for at_once in [true, false] {
            let project = in_git();
            git(&project, &["branch", "other"]);
            let does = |line: &str| drop(git(&project, &line.split(' ').collect::<Vec<_>>()));
            let branches = || git(&project, &["for-each-ref", "--format=%(refname) %(objectname)", "refs/heads"]);
            let before = (branches(), git(&project, &["rev-parse", "HEAD"]));
            ask(&project, "A", "fix it");
            if at_once {
                runs(&project, "A", "all", || deeds.iter().copied().for_each(does));
            } else {
                for line in deeds {
                    runs(&project, "A", line, || does(line));
                }
            }
            stop(&project, "A");
            let id = work_of(&project, "A");
            let made = project.json(&format!("dispatch show {id}"))["commits"].as_array().map(Vec::len);
            // What one call commits and a later one amends is recorded with both.
            let amended = usize::from(!at_once && deeds[2] == "status");
            assert_eq!(made, Some(1 + amended), "{deeds:?}");
            project.json("undo --yes");
            let after = (branches(), git(&project, &["rev-parse", "HEAD"]));
            assert_eq!(after, before, "{deeds:?}, at once: {at_once}");
        }
    }
}

#[test]
fn one_prompt_is_undone_alone_where_its_branch_is_checked_out_and_nowhere_else() {
    let project = in_git();
    git(&project, &["checkout", "-q", "-b", "feature"]);
    ask(&project, "A", "on the feature");
    runs(&project, "A", "commit", || {
        project.write("three.txt", "three\n");
        git(&project, &["add", "three.txt"]);
        git(&project, &["commit", "-qm", "three"]);
    });
    stop(&project, "A");
    let id = work_of(&project, "A");
    git(&project, &["checkout", "-q", "-"]);
    let words = format!("undo --only {id} --yes");
    // Without the layer of git nothing is to be changed in this tree, and the work is not undone by that.
    for words in [&words, "undo --yes", "undo --layer=workflow,effects,files --yes"] {
        let refused = project.run(words);
        assert_eq!(refused.error(), "file_conflict", "{words}");
        assert!(refused.stderr.contains("it is on the branch feature"), "{refused:?}");
    }
    assert_eq!(project.json(&format!("dispatch show {id}"))["rolled_back_by"], Value::Null);
    // The same where another work tree has that branch.
    let wt = project.cli.home().join("wt");
    git(&project, &["worktree", "add", "-q", wt.to_str().expect("text"), "feature"]);
    let refused = project.run("undo --yes");
    assert!(refused.stderr.contains("on the branch feature: undo it in the work tree of that"), "{refused:?}");
    git(&project, &["worktree", "remove", wt.to_str().expect("text")]);
    // A branch that has its commit has its files.
    git(&project, &["merge", "-q", "feature"]);
    project.json(&words);
    assert!(!project.root().join("three.txt").exists());
}

#[test]
fn work_of_which_nothing_can_be_told_apart_is_not_said_to_be_undone() {
    let project = in_git();
    prompt(&project, "A", "A works");
    prompt(&project, "B", "B works");
    while_both_call(&project, "1", || project.write("out.txt", "of one of them\n"));
    stop(&project, "A");
    stop(&project, "B");
    let id = work_of(&project, "A");
    let plan = preview(&project, &format!("undo --only {id}"));
    assert_eq!(clashes(&plan), ["out.txt"], "{plan}");
    assert_eq!(plan["refusals"][0]["flag"], "--keep-theirs", "the other flag may take what is of B: {plan}");
    assert_eq!(project.refused(&format!("undo --only {id} --yes")).1, "file_conflict");
    assert_eq!(project.json(&format!("dispatch show {id}"))["rolled_back_by"], Value::Null);
    let kept = project.run(&format!("undo --only {id} --keep-theirs --yes"));
    assert_eq!((kept.code, &kept.json()["status"]), (Some(4), &json!("rolled_back_in_part")), "{kept:?}");
    assert!(project.root().join("out.txt").exists());
    assert_eq!(project.json(&format!("dispatch show {id}"))["rolled_back_by"], Value::Null);
}

#[test]
fn what_was_undone_in_part_is_said_to_be_so_wherever_it_is_told_of() {
    let project = in_git();
    project.write("a.txt", "one\ntwo\n");
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "a"]);
    prompt(&project, "A", "s1");
    runs(&project, "A", "1", || project.write("a.txt", "agent\ntwo\n"));
    stop(&project, "A");
    project.write("a.txt", " agent\n two\n");
    let id = work_of(&project, "A");
    let kept = project.run(&format!("undo --only {id} --keep-theirs --yes"));
    assert_eq!((kept.code, &kept.json()["status"]), (Some(4), &json!("rolled_back_in_part")), "{kept:?}");
    let rest = format!("ic undo --only {} --dry-run", &id[28..]);
    for words in ["log --format text", "status --format text"] {
        let text = project.ok(words);
        assert!(text.contains("undone in part") && text.contains(&rest), "{words}: {text}");
    }
    let log = project.json("log");
    let entry = log.as_array().expect("a list").iter().find(|one| one["kind"] == "prompt").expect("the prompt");
    let said = json!({ "undone": false, "undone_in_part": true, "rest": rest });
    for (key, value) in said.as_object().expect("an object") {
        assert_eq!(&entry[key], value, "{key}: {log}");
    }
    assert_eq!(project.json("status")["last_point"]["rest"], json!(rest));
    // What counts is what the next undo means; it asks, because a person changed the lines.
    assert_eq!(project.refused("undo --yes").1, "file_conflict");
    assert_eq!(std::fs::read_to_string(project.root().join("a.txt")).expect("a file"), " agent\n two\n");
    // The command that was named finishes it, and then all of it is undone.
    project.json(&format!("undo --only {id} --force-files --yes"));
    assert_eq!(std::fs::read_to_string(project.root().join("a.txt")).expect("a file"), "one\n two\n");
    let text = project.ok("log --format text");
    assert!(text.contains("undone") && !text.contains("in part"), "{text}");
    assert!(!project.ok("status --format text").contains("in part"));
}

#[test]
fn a_secret_that_the_work_changed_is_named_by_either_undo_and_by_the_exit() {
    for (is_alone, is_new) in [(true, false), (false, false), (true, true), (false, true)] {
        let project = in_git();
        if !is_new {
            project.write(".env", "KEY=one\n");
        }
        prompt(&project, "A", "A works");
        runs(&project, "A", "1", || {
            project.write("a.txt", "of the agent\n");
            project.write(".env", "KEY=another\n");
        });
        stop(&project, "A");
        let alone = if is_alone { format!(" --only {}", work_of(&project, "A")) } else { String::new() };
        for flag in ["--dry-run", "--yes"] {
            let undone = project.run(&format!("undo{alone} {flag} --json"));
            assert_eq!(undone.code, Some(4), "{alone} {is_new}: {undone:?}");
            let stays = json!({ "path": ".env", "reason": "secret" });
            assert_eq!(undone.json()["files"]["skipped"], json!([stays]), "{alone} {is_new}: {undone:?}");
        }
        assert!(!project.root().join("a.txt").exists());
        assert_eq!(std::fs::read_to_string(project.root().join(".env")).expect("a file"), "KEY=another\n");
    }
}

#[test]
fn what_the_work_did_to_git_and_stays_is_named_by_either_undo_and_by_the_exit() {
    for is_alone in [true, false] {
        let project = in_git();
        project.write("c.txt", "committed\n");
        git(&project, &["add", "-A"]);
        git(&project, &["commit", "-q", "-m", "c"]);
        git(&project, &["tag", "v1", "HEAD~1"]);
        git(&project, &["tag", "theirs"]);
        prompt(&project, "A", "A works");
        runs(&project, "A", "1", || {
            git(&project, &["tag", "t"]);
            if is_alone {
                git(&project, &["tag", "-f", "v1"]);
                git(&project, &["branch", "nb"]);
                project.write("c.txt", "stashed\n");
                git(&project, &["stash"]);
            }
            project.write("d.txt", "of the agent\n");
        });
        stop(&project, "A");
        let alone = if is_alone { format!(" --only {}", work_of(&project, "A")) } else { String::new() };
        let was = git(&project, &["rev-parse", "HEAD~1"]);
        let (made, moved) = ("git tag -d t".to_owned(), format!("git tag -f v1 {was}"));
        let branch = "git branch -D nb".to_owned();
        for flag in ["--dry-run", "--yes"] {
            let undone = project.run(&format!("undo{alone} {flag} --json"));
            assert_eq!(undone.code, Some(4), "{alone}: {undone:?}");
            let warnings = undone.json()["warnings"].to_string();
            assert!(warnings.contains("git_remains") && warnings.contains(&made), "{alone}: {warnings}");
            let is_named = |text: &str| warnings.contains(text);
            let others = [is_named(&moved), is_named(&branch), is_named("git stash show")];
            assert_eq!(others, [is_alone; 3], "{alone}: {warnings}");
            assert!(!is_named("theirs"), "{warnings}");
        }
        assert!(!project.root().join("d.txt").exists());
        assert_eq!(git(&project, &["tag", "--list"]), "t\ntheirs\nv1");
        assert_eq!(git(&project, &["branch", "--list", "nb"]).is_empty(), !is_alone);
        assert_eq!(git(&project, &["rev-parse", "v1"]) == was, !is_alone);
    }
}

/// The undo of one prompt moves nothing of git, and no undo moves notes.
#[test]
fn what_was_unstaged_or_noted_is_named_with_its_command() {
    for is_alone in [true, false] {
        let project = in_git();
        project.write("staged.txt", "mine, and staged\n");
        git(&project, &["add", "staged.txt"]);
        prompt(&project, "A", "A works");
        runs(&project, "A", "1", || {
            project.write("d.txt", "of the agent\n");
            git(&project, &["reset", "-q"]);
            git(&project, &["notes", "add", "-m", "of the agent"]);
        });
        stop(&project, "A");
        let alone = if is_alone { format!(" --only {}", work_of(&project, "A")) } else { String::new() };
        let mut said = Vec::new();
        for flag in ["--dry-run", "--yes"] {
            let undone = project.run(&format!("undo{alone} {flag} --json"));
            assert_eq!(undone.code, Some(4), "{alone}: {undone:?}");
            let warnings = undone.json()["warnings"].as_array().expect("warnings").clone();
            said = warnings.iter().map(|one| one["message"].as_str().expect("a text").to_owned()).collect();
            let is_named = |what: &str| said.iter().any(|one| one.contains(what));
            assert!(is_named("git update-ref -d refs/notes/commits"), "{alone}: {said:?}");
            assert_eq!(is_named("git update-index --add --cacheinfo"), is_alone, "{alone}: {said:?}");
        }
        // The commands revert what they name.
        for one in &said {
            let command = one.rsplit_once(": git ").expect("a command").1;
            git(&project, &crate::support::args(command).iter().map(String::as_str).collect::<Vec<_>>());
        }
        assert_eq!(git(&project, &["diff", "--cached", "--name-only"]), "staged.txt", "{alone}");
        assert_eq!(git(&project, &["notes", "list"]), "", "{alone}");
    }
}

#[test]
fn one_prompt_that_was_undone_comes_back_after_its_client_was_closed() {
    let project = in_git();
    writes(&project, "A", "write", "a.txt", "by the agent\n");
    let id = work_of(&project, "A");
    writes(&project, "A", "more", "b.txt", "by the agent\n");
    project.json(&format!("undo --only {id} --yes"));
    say(&project, &Said::new("claude-code", "A", "SessionEnd"));
    project.json("redo --yes");
    assert!(project.root().join("a.txt").exists() && project.root().join("b.txt").exists());
}

/// A session that is resumed has a run for each time.
#[test]
fn what_undone_work_recorded_is_in_nobodys_way() {
    let project = in_git();
    writes(&project, "A", "write", "a.txt", "one\n");
    say(&project, &Said::new("claude-code", "A", "SessionEnd"));
    say(&project, &Said::new("claude-code", "A", "SessionStart"));
    ask(&project, "A", "commit it");
    runs(&project, "A", "commit", || {
        project.write("a.txt", "two\n");
        git(&project, &["add", "-A"]);
        git(&project, &["commit", "-qm", "all"]);
    });
    stop(&project, "A");
    project.json("undo --yes");
    assert_eq!(read(&project, "a.txt"), "one\n");
    project.json("undo --yes");
    assert!(!project.root().join("a.txt").exists());
    project.json("redo --yes");
    project.json("redo --yes");
    assert_eq!(read(&project, "a.txt"), "two\n");
}

#[test]
fn a_redo_takes_the_newest_undo_whichever_session_it_was_of_and_whatever_it_changed() {
    let project = in_git();
    writes(&project, "A", "write a", "a.txt", "a\n");
    writes(&project, "B", "write b", "b.txt", "b\n");
    let (a, b) = (work_of(&project, "A"), work_of(&project, "B"));
    project.json("undo --yes");
    assert!(!project.root().join("b.txt").exists());
    // No file changes by it.
    project.json(&format!("undo prompt:{a} --layer=workflow --yes"));
    let undone = |id: &str| !project.json(&format!("dispatch show {id}"))["rolled_back_by"].is_null();
    project.json("redo --yes");
    assert_eq!((undone(&a), undone(&b), project.root().join("b.txt").exists()), (false, true, false));
    project.json("redo --yes");
    assert_eq!((undone(&a), undone(&b), project.root().join("b.txt").exists()), (false, false, true));
}

/// Said to the agent, to the next one, and where a person looks first.
#[test]
fn an_undo_that_stopped_half_way_is_said_to_be_unfinished() {
    let project = in_git();
    writes(&project, "A", "write", "a.txt", "by the agent\n");
    let run = project.json("session show A")["run_id"].as_str().expect("its run").to_owned();
    let words =
        ["compensation", "add", &run, "--step", "never", "--dispatch", &work_of(&project, "A"), "--shell", "exit 3"];
    assert_eq!(project.run_words(words).code, Some(0));
    assert_eq!(project.run("undo --yes").code, Some(4));
    let refused = say(&project, &makes("A", "PreToolUse")).to_string();
    assert!(refused.contains("stopped half-way") && !refused.contains("was undone"), "{refused}");
    let again = Said::new("claude-code", "A", "UserPromptSubmit").prompt("next", "next");
    let told = say(&project, &again).to_string();
    assert!(told.contains("stopped half-way") && !told.contains("went back"), "{told}");
    stop(&project, "A");
    writes(&project, "B", "other", "b.txt", "b\n");
    assert!(project.ok("status --format text").contains("ic rollback resume"), "status says what to type");
    assert_eq!(project.refused("undo --yes").1, "rolling_back");
}

/// Names of calls with signs in them, as some model servers give them.
#[test]
fn calls_are_told_apart_whatever_their_client_calls_them() {
    let project = in_git();
    ask(&project, "A", "work");
    let tell = |event: &str, agent: &str| {
        let mut said = makes("A", event);
        said.payload["tool_use_id"] = json!(format!("call_{agent}|fc_{agent}"));
        for key in ["agent_id", "agent_type"] {
            said.payload[key] = json!(agent);
        }
        said.payload["prompt_id"] = json!("work");
        say(&project, &said);
    };
    tell("PreToolUse", "X");
    tell("PreToolUse", "Y");
    project.write("x.txt", "x\n");
    tell("PostToolUse", "X");
    project.write("y.txt", "y\n");
    tell("PostToolUse", "Y");
    stop(&project, "A");
    let made = |file: &str| project.json(&format!("blame {file}"))["changes"][0]["dispatches"].clone();
    let of_y = made("y.txt");
    assert_eq!(of_y.as_array().map(Vec::len), Some(1), "{of_y}");
    assert!(of_y[0]["name"].as_str().expect("a name").starts_with('Y'), "{of_y}");
}

#[test]
fn an_undo_beside_a_call_that_runs_says_what_it_cannot_stop() {
    let project = in_git();
    ask(&project, "A", "slow work");
    say(&project, &makes("A", "PreToolUse"));
    project.write("first.txt", "first\n");
    let plan = project.ok("undo --dry-run --force-files --format text");
    assert!(plan.contains("a tool call of this work may still run (Bash)"), "{plan}");
    let id = work_of(&project, "A");
    assert!(plan.contains(&format!("ic undo prompt:{} --dry-run", &id[28..])), "{plan}");
    // Who says yes at once sees no plan before it.
    let done = project.ok("undo --yes --force-files --format text");
    assert!(done.contains("a tool call of this work may still run (Bash)"), "{done}");
    // It goes on writing; the command that was named takes that, too.
    project.write("second.txt", "second\n");
    say(&project, &makes("A", "PostToolUse"));
    stop(&project, "A");
    let undone = project.run(&format!("undo prompt:{} --yes", &id[28..]));
    assert_eq!((undone.code, project.root().join("second.txt").exists()), (Some(0), false), "{undone:?}");
}

#[test]
fn what_another_session_did_stays_in_a_run_of_ones_own_too() {
    let project = in_git();
    asks(&project, "A", "hello");
    let run = project.json("run create --goal feature --phases plan,done")["id"].as_str().expect("an id").to_owned();
    project.ok(&format!("session attach {run} --session A"));
    writes(&project, "A", "of a", "a.txt", "a\n");
    writes(&project, "B", "of b", "b.txt", "b\n");
    let words = format!("undo prompt:{}", work_of(&project, "A"));
    project.json(&format!("{words} --yes"));
    assert!(!project.root().join("a.txt").exists() && project.root().join("b.txt").exists());
}

#[test]
fn what_another_session_did_stays_whatever_was_undone_and_redone_of_it() {
    let project = in_git();
    writes(&project, "A", "of a", "a.txt", "a\n");
    writes(&project, "B", "of b", "b.txt", "b\n");
    let (a, b) = (work_of(&project, "A"), work_of(&project, "B"));
    let a_alone_goes = |when: &str| {
        let undone = project.json(&format!("undo prompt:{a} --yes"));
        let is_there = ["a.txt", "b.txt"].map(|file| project.root().join(file).exists());
        assert_eq!(is_there, [false, true], "{when}: {undone}");
        project.json("redo --yes");
    };
    a_alone_goes("both stand");
    // The record goes back alone: its files stay.
    project.json(&format!("undo --only {b} --layer=workflow --yes"));
    a_alone_goes("the record of the other was undone");
    project.json("redo --yes");
    project.json(&format!("undo prompt:{b} --yes"));
    project.json("redo --yes");
    a_alone_goes("the other was undone and redone");
}

#[test]
fn one_prompt_is_undone_alone_on_no_other_commit_and_where_its_branch_is_gone() {
    let project = in_git();
    let main = git(&project, &["branch", "--show-current"]);
    git(&project, &["checkout", "-q", "--detach"]);
    let commits = |file: &str| {
        ask(&project, "A", file);
        runs(&project, "A", file, || {
            project.write(file, "by the agent\n");
            git(&project, &["add", file]);
            git(&project, &["commit", "-qm", file]);
        });
        stop(&project, "A");
        format!("undo --only {} --yes", work_of(&project, "A"))
    };
    let detached = commits("one.txt");
    let there = git(&project, &["rev-parse", "HEAD"]);
    git(&project, &["checkout", "-q", &main]);
    git(&project, &["checkout", "-q", "--detach"]);
    let refused = project.run(&detached);
    assert_eq!(refused.error(), "file_conflict");
    assert!(refused.stderr.contains(&format!("it is in the commit {}: check that out", &there[..12])), "{refused:?}");
    git(&project, &["checkout", "-q", &there]);
    project.json(&detached);
    assert!(!project.root().join("one.txt").exists());
    git(&project, &["checkout", "-q", "-f", &main]);
    // Squashed, and thrown away: its files are here.
    git(&project, &["checkout", "-q", "-b", "feature"]);
    let squashed = commits("two.txt");
    git(&project, &["checkout", "-q", &main]);
    git(&project, &["merge", "-q", "--squash", "feature"]);
    git(&project, &["commit", "-qm", "squashed"]);
    git(&project, &["branch", "-q", "-D", "feature"]);
    project.json(&squashed);
    assert!(!project.root().join("two.txt").exists());
}

/// What A made and what B made were undone, B's first; with A's work.
fn two_sessions_undone() -> (Project, String) {
    let project = in_git();
    writes(&project, "A", "of a", "a.txt", "a\n");
    writes(&project, "B", "of b", "b.txt", "b\n");
    let (a, b) = (work_of(&project, "A"), work_of(&project, "B"));
    // With git it is a rollback of the run, which no later prompt lets come back.
    for prompt in [&b, &a] {
        project.json(&format!("undo prompt:{prompt} --layer=workflow,effects,files,git --yes"));
    }
    (project, a)
}

#[test]
fn an_agents_own_redo_brings_nothing_of_another_session_back() {
    let (project, a) = two_sessions_undone();
    let redone = project.run_with("CLAUDE_CODE_SESSION_ID", "B", "redo --yes");
    assert_eq!(redone.code, Some(0), "{redone:?}");
    assert!(!project.root().join("a.txt").exists() && project.root().join("b.txt").exists(), "{redone:?}");
    project.json("redo --yes");
    // Work that a redo restored beside a later undo is not undone by the next one.
    for session in ["A", "B"] {
        let again = project.run_with("CLAUDE_CODE_SESSION_ID", session, "redo --yes");
        assert_eq!((again.code, again.error().as_str()), (Some(1), "nothing_to_undo"), "{again:?}");
    }
    assert_eq!(project.refused("redo --yes").1, "nothing_to_undo");
    assert!(project.root().join("a.txt").exists() && project.root().join("b.txt").exists());
    // Nor where nothing of its own was ever undone.
    writes(&project, "C", "of c", "c.txt", "c\n");
    project.json(&format!("undo --only {a} --yes"));
    let none = project.run_with("CLAUDE_CODE_SESSION_ID", "C", "redo --yes");
    assert_eq!((none.code, none.error().as_str()), (Some(1), "nothing_to_undo"), "{none:?}");
    assert!(!project.root().join("a.txt").exists());
}

/// What a person staged may be nowhere but in the index.
#[test]
fn what_a_person_staged_after_the_agent_had_stopped_stays() {
    let project = in_git();
    project.write("kept.txt", "1\n");
    git(&project, &["add", "kept.txt"]);
    git(&project, &["commit", "-qm", "kept"]);
    writes(&project, "A", "write", "a.txt", "by the agent\n");
    project.write("kept.txt", "staged\n");
    git(&project, &["add", "kept.txt"]);
    project.write("kept.txt", "1\n");
    let staged = git(&project, &["rev-parse", ":kept.txt"]);
    project.json("undo --yes");
    assert_eq!(git(&project, &["rev-parse", ":kept.txt"]), staged);
    assert!(!project.root().join("a.txt").exists());
    // What was taken off the index is kept, as the hint says.
    project.json("redo --yes");
    project.json("undo --force-commits --yes");
    assert_ne!(git(&project, &["rev-parse", ":kept.txt"]), staged);
    project.json("redo --yes");
    assert_eq!(git(&project, &["rev-parse", ":kept.txt"]), staged);
}

#[test]
fn what_a_person_made_between_two_calls_comes_back_where_a_later_call_removed_it() {
    let project = in_git();
    project.write("f.txt", "1\n");
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "f"]);
    ask(&project, "A", "write");
    runs(&project, "A", "echo", || project.write("made.txt", "by the agent\n"));
    project.write("mine.txt", "mine\n");
    project.write("f.txt", "1\nmine\n");
    runs(&project, "A", "rm", || {
        std::fs::remove_file(project.root().join("mine.txt")).expect("a file");
        git(&project, &["checkout", "-q", "f.txt"]);
    });
    stop(&project, "A");
    project.json("undo --yes");
    assert!(!project.root().join("made.txt").exists());
    assert_eq!([read(&project, "mine.txt"), read(&project, "f.txt")], ["mine\n", "1\nmine\n"]);
}

#[test]
fn lines_that_a_person_wrote_below_those_of_the_work_stay_when_it_is_taken_out() {
    let project = in_git();
    project.write("f.txt", "1\n");
    writes(&project, "A", "append", "f.txt", "1\nagent\n");
    project.write("f.txt", "1\nagent\nmine\n");
    let id = work_of(&project, "A");
    assert_eq!(project.refused("undo --yes").1, "file_conflict");
    let undone = project.ok(&format!("undo {id} --force-files --yes --format text"));
    assert!(undone.contains("the same lines since: 2\n"), "{undone}");
    // Nothing of the person's was replaced, and the report does not say so.
    assert!(undone.contains("the very same lines or file, if anything"), "{undone}");
    assert_eq!(read(&project, "f.txt"), "1\nmine\n");
    project.json("redo --yes");
    assert_eq!(read(&project, "f.txt"), "1\nagent\nmine\n");
}

#[test]
fn stashed_work_that_later_work_changed_too_is_not_undone() {
    let project = with_file("f.txt", &eight("2", "8"));
    writes(&project, "A", "first", "f.txt", &eight("two", "8"));
    let first = work_of(&project, "A");
    writes(&project, "A", "second", "f.txt", &eight("two", "eight"));
    git(&project, &["stash", "-q"]);
    let refused = project.run(&format!("undo --only {first} --yes"));
    assert!(refused.code != Some(0) && format!("{refused:?}").contains("it is on the stash"), "{refused:?}");
    git(&project, &["stash", "pop", "-q"]);
    project.json(&format!("undo --only {first} --yes"));
    assert_eq!(read(&project, "f.txt"), eight("2", "eight"));
}

#[test]
fn write_through_a_link_of_the_project_is_undone() {
    let project = in_git();
    project.write("d/f.txt", "1\n");
    std::os::unix::fs::symlink("d/f.txt", project.root().join("link")).expect("a link");
    std::os::unix::fs::symlink("d", project.root().join("dir")).expect("a link");
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "links"]);
    ask(&project, "A", "write");
    for (n, file) in ["link", "dir/new.txt"].into_iter().enumerate() {
        let path = project.root().join(file);
        before(&project, "A", &n.to_string(), "Write", json!({ "file_path": &path, "content": "agent\n" }));
        std::fs::write(path, "agent\n").expect("write it");
        after(&project, "A", &n.to_string(), "Write");
    }
    stop(&project, "A");
    project.json("undo --yes");
    assert_eq!((read(&project, "d/f.txt").as_str(), project.root().join("d/new.txt").exists()), ("1\n", false));
}

#[test]
fn work_of_which_a_branch_has_a_part_is_undone_in_part() {
    let project = in_git();
    git(&project, &["switch", "-q", "-c", "feature"]);
    ask(&project, "A", "write");
    runs(&project, "A", "commit", || {
        project.write("a.txt", "a\n");
        project.write("b.txt", "b\n");
        git(&project, &["add", "."]);
        git(&project, &["commit", "-qm", "both"]);
    });
    stop(&project, "A");
    git(&project, &["switch", "-q", "-"]);
    git(&project, &["checkout", "-q", "feature", "--", "b.txt"]);
    let undone = project.run("undo --yes --json");
    assert_eq!(undone.code, Some(4), "{undone:?}");
    assert!(undone.stdout.contains("it is on the branch feature"), "{undone:?}");
    assert!(!project.root().join("b.txt").exists());
    assert_eq!(git(&project, &["show", "feature:a.txt"]), "a");
}

#[test]
fn redo_on_another_branch_is_refused() {
    let project = in_git();
    project.write("kept.txt", "1\n");
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "kept"]);
    let main = git(&project, &["branch", "--show-current"]);
    git(&project, &["switch", "-q", "-c", "theirs"]);
    project.write("b.txt", "theirs\n");
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "theirs"]);
    writes(&project, "A", "write", "a.txt", "by the agent\n");
    project.json("undo --yes");
    git(&project, &["switch", "-q", &main]);
    for dry in ["--dry-run", "--yes"] {
        let refused = project.run(&format!("redo {dry}"));
        assert_eq!(refused.error(), "branch_switched", "{refused:?}");
        assert!(refused.stderr.contains(&format!("was made on theirs, and {main} is checked out")), "{refused:?}");
        assert!(!project.root().join("a.txt").exists());
    }
    // A branch that has all that the other one had is as good.
    git(&project, &["switch", "-q", "-c", "more", "theirs"]);
    project.json("redo --yes");
    assert_eq!(read(&project, "a.txt"), "by the agent\n");
}

#[test]
fn redo_of_commits_on_another_branch_at_the_same_commit_is_refused() {
    let project = in_git();
    project.write("kept.txt", "1\n");
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "kept"]);
    let main = git(&project, &["branch", "--show-current"]);
    ask(&project, "A", "commit");
    runs(&project, "A", "commit", || {
        project.write("kept.txt", "agent\n");
        git(&project, &["commit", "-qam", "agent"]);
    });
    stop(&project, "A");
    let made = git(&project, &["rev-parse", "HEAD"]);
    project.json("undo --yes");
    git(&project, &["switch", "-q", "-c", "other"]);
    let refused = project.run("redo --yes");
    assert_eq!((refused.error().as_str(), read(&project, "kept.txt")), ("branch_switched", "1\n".to_owned()));
    assert!(refused.stderr.contains(&format!("moved {main}, and other is checked out")), "{refused:?}");
    git(&project, &["switch", "-q", &main]);
    project.json("redo --yes");
    assert_eq!((git(&project, &["rev-parse", "HEAD"]), git(&project, &["status", "--short"])), (made, String::new()));
}

#[test]
fn what_git_keeps_of_undone_work_because_of_a_person_is_named() {
    let undone = |then: &[&[&str]]| {
        let project = in_git();
        project.write("kept.txt", "1\n");
        git(&project, &["add", "kept.txt"]);
        git(&project, &["commit", "-qm", "kept"]);
        writes(&project, "A", "write", "a.txt", "by the agent\n");
        for words in then {
            git(&project, words);
        }
        let undone = project.run("undo --yes --format text");
        let stays = if then.is_empty() { 0 } else { 4 };
        assert_eq!((undone.code, project.root().join("a.txt").exists()), (Some(stays), false), "{undone:?}");
        (undone.stderr, project)
    };
    let (said, project) = undone(&[&["add", "-A"]]);
    assert!(said.contains("its content stays on the index: git restore --staged -- a.txt"), "{said}");
    assert!(git(&project, &["diff", "--cached", "--", "a.txt"]).contains("by the agent"));
    let (said, project) = undone(&[&["stash", "push", "-q", "-u"], &["stash", "apply", "-q"]]);
    let entry = git(&project, &["rev-parse", "stash@{0}"]);
    assert!(said.contains(&format!("and stays: git stash show -p {entry}")), "{said}");
    let (said, _) = undone(&[]);
    assert_eq!(said, "");
}

#[test]
fn staged_work_is_named_also_where_a_person_changed_its_file_since() {
    let project = with_file("f.txt", &eight("2", "8"));
    writes(&project, "A", "write", "f.txt", &eight("two", "8"));
    git(&project, &["add", "f.txt"]);
    project.write("f.txt", &eight("two", "mine"));
    let [preview, undone] = ["--dry-run", "--yes"].map(|flag| project.run(&format!("undo {flag} --json")));
    for outcome in [&preview, &undone] {
        assert!(outcome.code == Some(4) && outcome.stdout.contains("git restore --staged -- f.txt"), "{outcome:?}");
    }
    assert_eq!(read(&project, "f.txt"), eight("2", "mine"));
}

/// What a merge, a pull or a rebase in a call brings is merged with what stood there: both are of others.
#[test]
fn own_lines_stay_where_a_call_of_the_work_merged_something_into_their_file() {
    let ways: [(bool, &[&[&str]]); 4] = [
        (true, &[&["merge", "-q", "--no-edit", "other"]]),
        (true, &[&["rebase", "-q", "other"]]),
        (false, &[&["merge", "-q", "--autostash", "other"]]),
        (false, &[&["stash", "-q"], &["merge", "-q", "other"], &["stash", "pop", "-q"]]),
    ];
    for (is_committed, calls) in ways {
        let project = with_file("f.txt", &eight("2", "8"));
        git(&project, &["switch", "-q", "-c", "other"]);
        project.write("f.txt", &eight("theirs", "8"));
        git(&project, &["commit", "-qam", "theirs"]);
        git(&project, &["switch", "-q", "-"]);
        project.write("f.txt", &eight("2", "mine"));
        if is_committed {
            git(&project, &["commit", "-qam", "mine"]);
        }
        ask(&project, "A", "bring it in");
        runs(&project, "A", "bring", || {
            for words in calls {
                git(&project, words);
            }
            project.write("new.txt", "agent\n");
        });
        stop(&project, "A");
        project.write("own.txt", "mine\n");
        let undone = project.run("undo --yes");
        // A branch that was rewritten stays so, and is named.
        let code = if calls[0][0] == "rebase" { 4 } else { 0 };
        assert!(undone.code == Some(code) && !project.root().join("new.txt").exists(), "{calls:?}: {undone:?}");
        assert_eq!(read(&project, "f.txt"), eight("theirs", "mine"), "{calls:?}");
        project.json("redo --yes");
        assert_eq!(
            (read(&project, "f.txt"), read(&project, "new.txt")),
            (eight("theirs", "mine"), "agent\n".to_owned())
        );
    }
}

#[test]
fn redo_of_an_undo_that_undid_nothing_says_so() {
    let project = in_git();
    writes(&project, "A", "make", "greet.txt", "hi\n");
    std::fs::rename(project.root().join("greet.txt"), project.root().join("hello.txt")).expect("another name");
    assert_eq!(project.run("undo --yes").code, Some(4));
    let redone = project.ok("redo --yes --format text");
    assert!(redone.contains(" had not been undone.") && !redone.contains("is back"), "{redone}");
    assert_eq!(read(&project, "hello.txt"), "hi\n");
}

#[test]
fn work_that_a_person_stashed_is_not_undone_until_it_is_popped() {
    for stashed in ["stash push -q -u", "stash push -q -u -- a.txt"] {
        let project = in_git();
        project.write("kept.txt", "1\n");
        git(&project, &["add", "kept.txt"]);
        git(&project, &["commit", "-qm", "kept"]);
        ask(&project, "A", "write");
        runs(&project, "A", "write", || {
            project.write("a.txt", "by the agent\n");
            project.write("kept.txt", "by the agent\n");
        });
        stop(&project, "A");
        git(&project, &stashed.split(' ').collect::<Vec<_>>());
        let undone = project.run("undo --yes --json");
        let expected = if stashed.ends_with("a.txt") { Some(4) } else { Some(1) };
        assert_eq!(undone.code, expected, "{stashed}: {undone:?}");
        assert!(format!("{undone:?}").contains("git stash show"), "{stashed}: {undone:?}");
        // What a checkpoint shows as gone, and not yet as back, is still the agent's.
        project.json("checkpoint create");
        git(&project, &["stash", "pop", "-q"]);
        assert!(project.root().join("a.txt").exists());
        project.json("undo --yes");
        assert!(!project.root().join("a.txt").exists() && read(&project, "kept.txt") == "1\n", "{stashed}");
    }
}

#[test]
fn work_that_a_person_committed_on_a_branch_is_not_undone_on_another() {
    let commit: [&[&str]; 2] = [&["add", "-A"], &["commit", "-qm", "of the agent"]];
    let on_main: &[&[&str]] =
        &[commit[0], commit[1], &["branch", "theirs"], &["switch", "-q", "-c", "there", "HEAD~1"]];
    let on_new: &[&[&str]] = &[&["switch", "-q", "-c", "theirs"], commit[0], commit[1], &["switch", "-q", "-"]];
    let moved: &[&[&str]] = &[commit[0], commit[1], &["branch", "theirs"], &["reset", "-q", "--hard", "HEAD~1"]];
    for words in [on_main, on_new, moved] {
        let project = in_git();
        writes(&project, "A", "write", "a.txt", "by the agent\n");
        for words in words {
            git(&project, words);
        }
        let refused = project.run("undo --yes");
        assert_eq!((refused.code, refused.error().as_str()), (Some(1), "file_conflict"), "{words:?}: {refused:?}");
        assert!(refused.stderr.contains("it is on the branch"), "{words:?}: {refused:?}");
        git(&project, &["switch", "-q", "theirs"]);
        project.json("undo --yes");
        assert!(!project.root().join("a.txt").exists(), "{words:?}");
    }
}

#[test]
fn work_that_a_person_reverted_is_undone_whatever_a_branch_has_of_the_file() {
    for is_there in [false, true] {
        let project = in_git();
        let text = |second: &str, last: &str| format!("1\n{second}\n3\n4\n5\n6\n7\n{last}\n");
        project.write("kept.txt", &text("2", "8"));
        git(&project, &["add", "kept.txt"]);
        git(&project, &["commit", "-qm", "kept"]);
        writes(&project, "A", "write", "kept.txt", &text("two", "8"));
        // On the branch the file differs by a person's line, with the agent's or without it.
        git(&project, &["switch", "-q", "-c", "theirs"]);
        project.write("kept.txt", &text(if is_there { "two" } else { "2" }, "eight"));
        git(&project, &["commit", "-qam", "theirs"]);
        git(&project, &["switch", "-q", "-"]);
        let undone = project.run("undo --yes");
        assert_eq!(undone.stderr.contains("it is on the branch theirs"), is_there, "{undone:?}");
        assert_eq!(undone.code, Some(i32::from(is_there)), "{undone:?}");
        assert_eq!(read(&project, "kept.txt"), text("2", "8"));
    }
}

#[test]
fn redo_leaves_a_branch_that_a_person_made_since() {
    let project = in_git();
    ask(&project, "A", "branch");
    runs(&project, "A", "branch", || {
        git(&project, &["branch", "topic"]);
        project.write("a.txt", "by the agent\n");
    });
    stop(&project, "A");
    project.json("undo --yes");
    git(&project, &["switch", "-q", "-c", "topic"]);
    git(&project, &["commit", "-q", "--allow-empty", "-m", "mine"]);
    let mine = git(&project, &["rev-parse", "HEAD"]);
    project.json("redo --yes");
    assert_eq!((git(&project, &["rev-parse", "topic"]), read(&project, "a.txt").as_str()), (mine, "by the agent\n"));
}

#[test]
fn undo_leaves_the_branch_that_a_person_checked_out_since() {
    for is_committed in [false, true] {
        let project = in_git();
        ask(&project, "A", "write");
        runs(&project, "A", "write", || {
            project.write("a.txt", "by the agent\n");
            if is_committed {
                git(&project, &["add", "a.txt"]);
                git(&project, &["commit", "-qm", "a"]);
            }
        });
        stop(&project, "A");
        git(&project, &["switch", "-q", "-c", "mine"]);
        let head = git(&project, &["rev-parse", "HEAD"]);
        project.json("undo --yes");
        assert!(!project.root().join("a.txt").exists());
        let at = (git(&project, &["branch", "--show-current"]), git(&project, &["rev-parse", "HEAD"]));
        assert_eq!(at, ("mine".to_owned(), head));
    }
}

/// What a prompt took off the stash is on it no more: to take it out of the tree would lose it.
#[test]
fn what_a_prompt_took_off_the_stash_stays_where_it_is_undone_alone() {
    for more in [false, true] {
        let project = in_git();
        project.write("kept.txt", "1\n");
        git(&project, &["add", "kept.txt"]);
        git(&project, &["commit", "-qm", "kept"]);
        project.write("kept.txt", "mine\n");
        project.write("new.txt", "mine\n");
        git(&project, &["stash", "-q", "-u"]);
        ask(&project, "A", "pop");
        runs(&project, "A", "git stash pop", || {
            git(&project, &["stash", "pop", "-q"]);
            if more {
                project.write("a.txt", "by the agent\n");
            }
        });
        stop(&project, "A");
        let words = format!("undo --only {}", work_of(&project, "A"));
        // Its content is in the tree, and that the entry stays gone is named.
        let undone = project.run(&format!("{words} --yes --json"));
        assert_eq!(undone.code, Some(4), "{undone:?}");
        assert!(undone.json()["warnings"].to_string().contains("git stash store"), "{undone:?}");
        assert_eq!((read(&project, "kept.txt").as_str(), read(&project, "new.txt").as_str()), ("mine\n", "mine\n"));
        assert!(!project.root().join("a.txt").exists());
    }
}

#[test]
fn work_that_was_rebased_under_another_name_can_be_undone_alone() {
    let project = in_git();
    git(&project, &["checkout", "-q", "-b", "work"]);
    ask(&project, "A", "commit");
    runs(&project, "A", "git commit", || {
        project.write("a.txt", "by the agent\n");
        git(&project, &["add", "a.txt"]);
        git(&project, &["commit", "-qm", "a"]);
    });
    stop(&project, "A");
    let words = format!("undo --only {} --yes", work_of(&project, "A"));
    git(&project, &["checkout", "-q", "-b", "other", "HEAD~1"]);
    assert_eq!(project.refused(&words).1, "file_conflict");
    git(&project, &["commit", "-q", "--allow-empty", "-m", "more"]);
    git(&project, &["cherry-pick", "work"]);
    project.json(&words);
    assert!(!project.root().join("a.txt").exists());
}

/// Each command of a hint can be run as it stands, and the redo is done after the last one.
#[test]
fn the_hint_of_a_refused_redo_leads_on() {
    for is_committed in [false, true] {
        let project = in_git();
        project.write("kept.txt", "1\n2\n3\n4\n5\n6\n7\n");
        git(&project, &["add", "kept.txt"]);
        git(&project, &["commit", "-qm", "kept"]);
        writes(&project, "A", "write", "kept.txt", "1\n2\n3\n4\n5\n6\nseven\n");
        let done = ic_testkit::tree(project.root());
        project.json("undo --layer=workflow,effects,files,git --yes");
        project.write("kept.txt", "one\n2\n3\n4\n5\n6\n7\n");
        if is_committed {
            git(&project, &["commit", "-qam", "mine"]);
        }
        let refused = project.run("redo --yes --json");
        assert_eq!(refused.code, Some(1), "{refused:?}");
        let hint = refused.stderr.split("ic checkpoint restore ").nth(1).expect("a command").to_owned();
        let (restore, redo) = hint.split_once("; then: ic redo ").expect("a second command");
        project.json(&format!("checkpoint restore {restore}"));
        let redo = redo.split_once(" --yes").expect("a flag").0;
        assert_eq!(project.json(&format!("redo {redo} --yes"))["status"], "undone");
        assert_eq!(read(&project, "kept.txt"), "1\n2\n3\n4\n5\n6\nseven\n");
        assert_eq!(ic_testkit::tree(project.root()).len(), done.len());
    }
}

/// Prompts record no file: there is nothing that `--mine` could restore, and to mark them undone would be a lie.
#[test]
fn what_prompts_did_is_not_undone_with_mine() {
    let project = in_git();
    writes(&project, "A", "write", "a.txt", "by the agent\n");
    let first = work_of(&project, "A");
    let run = project.json(&format!("dispatch show {first}"))["run_id"].as_str().expect("an id").to_owned();
    let words = format!("run rollback {run} --to prompt:{first} --layer=all --mine");
    for more in ["--dry-run", "--yes"] {
        let refused = project.run(&format!("{words} {more} --json"));
        assert_eq!(refused.error(), "invalid_value", "{refused:?}");
        let hint = refused.stderr.split("ic undo --only ").nth(1).expect("a command");
        assert!(hint.contains(" --dry-run") && first.ends_with(hint.split(' ').next().expect("an id")), "{refused:?}");
    }
    assert!(project.root().join("a.txt").exists());
    project.json(&format!("undo --only {first} --yes"));
    assert!(!project.root().join("a.txt").exists());
}

/// The undo of one session that cannot be redone any more does not hide that of another which can.
#[test]
fn a_refused_redo_names_the_older_undo_that_can_be_redone() {
    let (project, _) = two_sessions_undone();
    writes(&project, "A", "more", "more.txt", "more\n");
    let refused = project.run("redo --yes --json");
    assert_eq!(refused.error(), "run_changed", "{refused:?}");
    let hint = refused.stderr.split("an older undo can be redone: ic ").nth(1).expect("a command");
    let words = hint.split_once(" --yes").expect("a flag").0;
    assert_eq!(project.json(&format!("{words} --yes"))["status"], "undone");
    assert!(project.root().join("b.txt").exists() && !project.root().join("a.txt").exists());
    // Nothing older is left.
    let refused = project.run("redo --yes --json");
    assert!(refused.error() == "run_changed" && !refused.stderr.contains("an older undo"), "{refused:?}");
}

/// Where the content is lost that would bring the files back, a redo does not say that it is done.
#[test]
fn a_redo_whose_content_is_lost_is_refused() {
    let project = in_git();
    writes(&project, "A", "write", "a.txt", "by the agent\n");
    let id = work_of(&project, "A");
    project.json("undo --yes");
    let content = project.cli.beside("objects.db");
    let name = content.file_name().expect("its name").to_string_lossy().into_owned();
    for entry in std::fs::read_dir(content.parent().expect("the store")).expect("the store") {
        let entry = entry.expect("an entry");
        if entry.file_name().to_string_lossy().starts_with(&name) && entry.path().is_file() {
            std::fs::remove_file(entry.path()).expect("the content");
        }
    }
    project.run("checkpoint verify --repair");
    for words in ["redo --dry-run", "redo --yes"] {
        assert_eq!(project.run(&format!("{words} --json")).error(), "checkpoint_not_found", "{words}");
    }
    assert_ne!(project.json(&format!("dispatch show {id}"))["rolled_back_by"], Value::Null);
    assert!(!project.root().join("a.txt").exists());
}

/// A prompt whose last call was stopped by a person, who then changed files by hand.
pub(crate) fn stopped(project: &Project, tool: &str, input: &Value) {
    project.write("notes.txt", "before\n");
    ask(project, "A", "do it");
    before(project, "A", "1", tool, input.clone());
    project.write("named.txt", "its\n");
    project.write("unnamed.txt", "its or mine\n");
    project.write("notes.txt", "mine\n");
}

#[test]
fn what_changed_after_a_call_that_was_stopped_is_unsure() {
    for (tool, input) in
        [("Edit", json!({ "file_path": "named.txt" })), ("Bash", json!({ "command": "echo its > named.txt; make" }))]
    {
        for then in ["", "a prompt", "the end of the session", "the hint"] {
            let project = in_git();
            stopped(&project, tool, &input);
            match then {
                "a prompt" => asks(&project, "A", "go on"),
                "the hint" => drop(project.json(&format!("dispatch fail {} --error stopped", work_of(&project, "A")))),
                "the end of the session" => drop(say(&project, &Said::new("claude-code", "A", "SessionEnd"))),
                _ => {}
            }
            let plan = preview(&project, "undo");
            let files = &plan["files"];
            let said: String = [&plan["warnings"], &files["warnings"], &files["conflicts"], &files["skipped"]]
                .map(ToString::to_string)
                .concat();
            let names = ["\"named.txt", "unnamed.txt", "notes.txt"];
            assert!(names.iter().all(|name| said.contains(name)), "{plan}");
            if then.is_empty() {
                // What runs is not undone alone. With all that came after it, a person is asked, too.
                let asked = project.run("undo --yes");
                assert_eq!(asked.error(), "file_conflict", "{asked:?}");
                let undone = project.run("undo --yes --keep-theirs");
                assert_eq!(undone.code, Some(4), "{undone:?}");
                assert_eq!(read(&project, "named.txt"), "its\n", "{tool}");
                assert!(project.ok("log --format text").contains("undone in part"));
                let kept = ["unnamed.txt", "notes.txt"].map(|name| read(&project, name));
                assert_eq!(kept, ["its or mine\n", "mine\n"], "{tool}");
                continue;
            }
            let log = project.json("log");
            let mut entries = log.as_array().expect("a list").iter();
            let entry = entries.find(|one| one["title"] == "do it").expect("the prompt's");
            let id = entry["reference"].as_str().and_then(|one| one.strip_prefix("prompt:")).expect("its id");
            // An edit changes what it names, and nothing else: the rest is a person's. It may not have run at all. What a shell names, a
            // person may have changed since.
            let refused = project.run(&format!("undo --only {id} --yes"));
            assert_eq!(refused.error(), "file_conflict", "{refused:?}");
            assert_eq!(refused.stderr.contains("unnamed.txt"), tool == "Bash", "{refused:?}");
            let undone = project.run(&format!("undo --only {id} --yes --keep-theirs"));
            assert_eq!(undone.code, Some(4), "{undone:?}");
            assert_eq!(read(&project, "named.txt"), "its\n", "{tool}");
            if tool == "Edit" {
                let undone = project.run(&format!("undo --only {id} --yes --force-files"));
                assert_eq!((undone.code, project.root().join("named.txt").exists()), (Some(0), false), "{undone:?}");
            }
            let kept = ["unnamed.txt", "notes.txt"].map(|name| read(&project, name));
            assert_eq!(kept, ["its or mine\n", "mine\n"], "{tool}");
        }
    }
}

#[test]
fn own_edit_of_a_file_that_a_stopped_shell_names_is_asked_about() {
    let project = in_git();
    ask(&project, "A", "do it");
    before(&project, "A", "1", "Bash", json!({ "command": "seq 9 > f.txt" }));
    project.write("f.txt", "1\n2\nmine\n3\n");
    assert_eq!(project.run("undo --yes").error(), "file_conflict");
    assert_eq!(read(&project, "f.txt"), "1\n2\nmine\n3\n");
    project.json("undo --yes --force-files");
    assert!(!project.root().join("f.txt").exists());
}

#[test]
fn file_that_the_work_renamed_after_an_edit_of_others_stays_with_its_new_name() {
    let nine = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    let mixed = nine.replace('5', "mine\n5");
    for renamed in [mixed.clone(), format!("agent\n{mixed}")] {
        let project = in_git();
        ask(&project, "A", "make it");
        runs(&project, "A", "make", || project.write("old.txt", nine));
        project.write("old.txt", &mixed);
        runs(&project, "A", "rename", || {
            std::fs::remove_file(project.root().join("old.txt")).expect("a file");
            project.write("new.txt", &renamed);
        });
        stop(&project, "A");
        assert_eq!(clashes(&preview(&project, "undo")), ["new.txt", "old.txt"]);
        let undone = project.run("undo --yes --keep-theirs");
        assert_eq!((undone.code, read(&project, "new.txt")), (Some(4), renamed), "{undone:?}");
        project.json("redo --yes");
        project.json("undo --yes --force-files");
        assert!(!project.root().join("new.txt").exists());
    }
}

#[test]
fn a_commit_after_a_call_that_was_stopped_is_recorded_for_no_work() {
    let project = in_git();
    stopped(&project, "Bash", &json!({ "command": "echo its > named.txt; make" }));
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "by hand"]);
    asks(&project, "A", "go on");
    let shown = project.ok("log --format text");
    assert!(!shown.contains("1 commit"), "{shown}");
    let (head, refused) = (git(&project, &["rev-parse", "HEAD"]), project.run("undo --yes"));
    assert_eq!(refused.error(), "file_conflict", "what no record tells is asked: {refused:?}");
    assert!(refused.stderr.contains("--force-files --yes; if you did"), "{refused:?}");
    assert_eq!(git(&project, &["rev-parse", "HEAD"]), head);
}

/// The commits that a tag leaves stay on their branch.
#[test]
fn a_tag_that_goes_back_takes_no_commit_and_no_work_with_it() {
    let project = in_git();
    git(&project, &["tag", "v1"]);
    let before = git(&project, &["rev-parse", "v1"]);
    ask(&project, "A", "commit");
    runs(&project, "A", "git commit", || {
        project.write("a.txt", "its\n");
        git(&project, &["add", "a.txt"]);
        git(&project, &["commit", "-qm", "its"]);
    });
    stop(&project, "A");
    // A person's, which the tag has as well.
    project.write("b.txt", "mine\n");
    git(&project, &["add", "b.txt"]);
    git(&project, &["commit", "-qm", "mine"]);
    let head = git(&project, &["rev-parse", "HEAD"]);
    ask(&project, "A", "tag it");
    runs(&project, "A", "git tag -f v1", || drop(git(&project, &["tag", "-f", "v1"])));
    stop(&project, "A");
    let plan = preview(&project, "undo");
    assert_eq!((marked(&plan), &plan["commits"]), (vec!["tag it"], &json!([])), "{plan}");
    project.json("undo --yes");
    assert_eq!([git(&project, &["rev-parse", "v1"]), git(&project, &["rev-parse", "HEAD"])], [before, head]);
}

/// An agent that ends has ended its calls, even if no hook told of that.
#[test]
fn what_a_call_did_whose_end_was_not_told_goes_with_work_that_came_to_its_end() {
    let project = in_git();
    ask(&project, "A", "do it");
    before(&project, "A", "1", "Bash", json!({ "command": "make" }));
    project.write("made.txt", "its\n");
    stop(&project, "A");
    project.json(&format!("undo --only {} --yes", work_of(&project, "A")));
    assert!(!project.root().join("made.txt").exists());
}

/// Of two calls at the same time, the one that speaks of git made the commit, whichever ends first.
#[test]
fn a_commit_is_of_the_call_that_speaks_of_git_though_another_ends_first() {
    let project = in_git();
    ask(&project, "A", "A");
    ask(&project, "B", "B");
    before(&project, "A", "A", "Bash", json!({ "command": "echo a > onlya; git add onlya; git commit -qm A" }));
    before(&project, "B", "B", "Bash", json!({ "command": "echo b > onlyb" }));
    project.write("onlya", "a\n");
    git(&project, &["add", "onlya"]);
    git(&project, &["commit", "-qm", "A"]);
    project.write("onlyb", "b\n");
    after(&project, "B", "B", "Bash");
    stop(&project, "B");
    after(&project, "A", "A", "Bash");
    stop(&project, "A");
    let commits = |session: &str| {
        let shown = project.json(&format!("dispatch show {}", work_of(&project, session)));
        shown["commits"].as_array().map(Vec::len)
    };
    assert_eq!([commits("A"), commits("B")], [Some(1), Some(0)]);
    project.json(&format!("undo --only {} --yes", work_of(&project, "B")));
    let is_there = |file: &str| project.root().join(file).exists();
    assert_eq!([is_there("onlya"), is_there("onlyb")], [true, false]);
}

/// A rule that changes does not change the files that it matches.
#[test]
fn files_that_a_rule_means_since_are_not_left_by_an_undo() {
    let project = in_git();
    project.write(".gitignore", "config.local\n");
    project.write("config.local", "mine\n");
    project.write("a.log", "mine\n");
    ask(&project, "A", "ignore logs");
    before(&project, "A", "1", "Bash", json!({ "command": "echo '*.log' > .gitignore" }));
    project.write(".gitignore", "*.log\n");
    after(&project, "A", "1", "Bash");
    stop(&project, "A");
    let undone = project.run(&format!("undo --only {} --yes", work_of(&project, "A")));
    assert_eq!(undone.code, Some(0), "{undone:?}");
    let files = [".gitignore", "config.local", "a.log"].map(|name| read(&project, name));
    assert_eq!(files, ["config.local\n", "mine\n", "mine\n"]);
}

#[test]
fn what_a_person_saves_while_an_edit_is_asked_for_is_no_work_of_the_prompt() {
    for is_new in [false, true] {
        let project = in_git();
        if !is_new {
            project.write("mine.txt", "one\n");
        }
        project.write("agent.txt", "one\n");
        say(&project, &Said::new("claude-code", "A", "UserPromptSubmit").prompt("edit", "edit"));
        let input = json!({ "file_path": project.root().join("agent.txt"), "old_string": "one", "new_string": "two" });
        before(&project, "A", "edit", "Edit", input);
        // The client asks for the permission, and a person saves another file before the answer.
        project.write("mine.txt", "of a person\n");
        project.write("agent.txt", "two\n");
        after(&project, "A", "edit", "Edit");
        stop(&project, "A");
        let undone = project.json("undo --yes");
        assert_eq!(undone["status"], "rolled_back", "{undone}");
        assert_eq!(
            (read(&project, "agent.txt").as_str(), read(&project, "mine.txt").as_str()),
            ("one\n", "of a person\n")
        );
        project.json("redo --yes");
        assert_eq!(
            (read(&project, "agent.txt").as_str(), read(&project, "mine.txt").as_str()),
            ("two\n", "of a person\n")
        );
    }
}

#[test]
fn beside_another_open_session_what_a_person_changed_after_the_last_call_stays() {
    let project = in_git();
    project.write("mine.txt", "one\n");
    for session in ["T", "S"] {
        ask(&project, session, session);
        before(&project, session, "call", "Bash", json!({ "command": "make" }));
        project.write(format!("{session}.txt"), "its\n");
        after(&project, session, "call", "Bash");
    }
    // Neither has stopped.
    project.write("mine.txt", "one\nof a person\n");
    project.write("new.txt", "of a person\n");
    project.json("undo --yes");
    assert!(!project.root().join("S.txt").exists() && project.root().join("T.txt").exists());
    let mine = ["mine.txt", "new.txt"].map(|name| read(&project, name));
    assert_eq!(mine, ["one\nof a person\n", "of a person\n"]);
}

#[test]
fn a_commit_from_before_the_prompt_changed_its_file_is_none_to_revert() {
    let project = in_git();
    for (path, content) in [("a.txt", "one\n"), ("r.txt", "1\n2\n3\n4\n5\n")] {
        project.write(path, content);
    }
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "files"]);
    let works = |text: &str, path: &str, content: &str| {
        ask(&project, "A", text);
        runs(&project, "A", "git commit", || {
            project.write(path, content);
            git(&project, &["commit", "-qam", text]);
        });
        stop(&project, "A");
    };
    works("first", "a.txt", "ONE\n");
    project.write("r.txt", "1\n2\n3\n4\n5 of a person\n");
    git(&project, &["commit", "-qam", "mine"]);
    works("second", "r.txt", "1 of the agent\n2\n3\n4\n5 of a person\n");
    let first =
        project.json("log --all").as_array().expect("a list").iter().find(|one| one["title"] == "first").cloned();
    let reference = first.expect("the prompt")["reference"].as_str().expect("its reference").to_owned();
    let plan = preview(&project, &format!("undo {reference}"));
    let subjects: Vec<&str> =
        plan["own_commits"].as_array().expect("a list").iter().filter_map(|one| one["subject"].as_str()).collect();
    assert_eq!(subjects, ["second", "first"], "newest first, as they can be reverted: {plan}");
}

#[test]
fn a_redo_brings_back_what_a_forced_undo_took_for_the_works_own() {
    let project = in_git();
    project.write("list.txt", "1\n2\n3\n");
    for (session, text) in [("A", "first"), ("B", "second")] {
        prompt(&project, session, text);
    }
    for (session, id) in [("A", "a"), ("B", "b")] {
        before(&project, session, id, "Bash", json!({ "command": "make" }));
    }
    // While both are in a call, so it may be of either.
    project.write("list.txt", "A\n1\n2\n3\n");
    after(&project, "A", "a", "Bash");
    project.write("list.txt", "A\n1\n2\n3\nB\n");
    after(&project, "B", "b", "Bash");
    stop(&project, "A");
    stop(&project, "B");
    let id = work_of(&project, "B");
    for undo in [format!("undo --only {id} --force-files --yes"), "undo --force-files --yes".to_owned()] {
        project.json(&undo);
        assert_eq!(read(&project, "list.txt"), "1\n2\n3\n", "{undo}");
        project.json("redo --yes");
        assert_eq!(read(&project, "list.txt"), "A\n1\n2\n3\nB\n", "{undo}");
    }
}
