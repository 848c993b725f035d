//! What an agent committed on a branch, or put onto the stash, and git brought into the tree later, is still the agent's: an undo takes it out
//! by what it did, and what came with it stays.

use serde_json::{Value, json};

use crate::agents::{Said, in_git, say};
use crate::blame::{after, before, prompt, read, stop, work_of};
use crate::support::Project;

const BASE: &str = "1\n2\n3\n4\n5\n6\n7\n8\n";

fn git(project: &Project, line: &str) -> String {
    ic_testkit::git_in(project.root(), &line.split(' ').collect::<Vec<_>>()).trim().to_owned()
}

/// A line of git, or after `sh:` one of a shell; either may fail, as a merge with a conflict does.
fn line(project: &Project, line: &str) {
    let mut call;
    if let Some(line) = line.strip_prefix("sh:") {
        call = std::process::Command::new("sh");
        call.args(["-c", line]);
    } else {
        call = std::process::Command::new("git");
        call.args(["-c", "user.name=n", "-c", "user.email=n@example.org"]).args(line.split(' '));
    }
    call.current_dir(project.root()).output().expect("a program");
}

/// `BASE` with the agent's second line, or a person's last, or both.
fn lines(agents: bool, mine: bool) -> String {
    let base = if agents { BASE.replace("2\n", "agent\n") } else { BASE.to_owned() };
    if mine { base.replace("8\n", "mine\n") } else { base }
}

/// A prompt in calls of a shell, in a project where a person may have changed a line before it and not committed it.
fn works(is_mine_before: bool, calls: &[&[&str]]) -> Project {
    let project = in_git();
    project.write("a.txt", BASE);
    git(&project, "add a.txt");
    git(&project, "commit -qm base");
    project.write("a.txt", &lines(false, is_mine_before));
    say(&project, &Said::new("claude-code", "A", "SessionStart"));
    prompt(&project, "A", "write");
    in_calls(&project, is_mine_before, calls);
    project
}

/// The calls of a prompt, and its end.
fn in_calls(project: &Project, is_mine_before: bool, calls: &[&[&str]]) {
    for (at, lines_of_call) in calls.iter().enumerate() {
        let call = format!("call {at}");
        // What a call of the agent's shell says of itself.
        let stashes = lines_of_call.iter().any(|given| given.starts_with("stash -"));
        let command = if stashes { "make && git stash" } else { "make" };
        before(project, "A", &call, "Bash", json!({ "command": command }));
        for given in *lines_of_call {
            match *given {
                "edit" => {
                    project.write("a.txt", &lines(true, is_mine_before));
                    project.write("new.txt", "agent\n");
                }
                "other" => project.write("other.txt", "agent\n"),
                given => line(project, given),
            }
        }
        after(project, "A", &call, "Bash");
    }
    stop(project, "A");
}

/// What a person does after the prompt: lines of git, or edits.
fn does(project: &Project, deeds: &[&str]) {
    for deed in deeds {
        match *deed {
            "my line" => project.write("a.txt", &read(project, "a.txt").replace("8\n", "mine\n")),
            "my line in the agent's file" => project.write("new.txt", "agent\nmine\n"),
            given => line(project, given),
        }
    }
}

const BRANCHED: &[&[&str]] = &[&["switch -qc side", "edit", "add .", "commit -qm agent's", "switch -q main"]];
const BRANCHED_IN_CALLS: &[&[&str]] =
    &[&["switch -qc side"], &["edit"], &["add .", "commit -qm agent's"], &["switch -q main"]];
const STASHED: &[&[&str]] = &[&["edit", "stash -qu"]];
const STASHED_IN_CALLS: &[&[&str]] = &[&["edit"], &["stash -qu"]];
const REMOVED: &str = "branch -qD side";

/// Whether a person changed a line before the prompt, its calls, what the person does then, and whether that has the line.
type Case = (bool, &'static [&'static [&'static str]], &'static [&'static str], bool);

#[test]
fn work_that_git_returned_is_taken_out_and_comes_back() {
    let cases: [Case; 14] = [
        (false, BRANCHED, &["merge -q side", REMOVED], false),
        (false, BRANCHED_IN_CALLS, &["merge -q side", REMOVED], false),
        (false, BRANCHED, &["merge -q side"], false),
        (false, BRANCHED, &["my line", "commit -qam mine", "merge -q --no-edit side", REMOVED], true),
        (
            false,
            BRANCHED,
            &["my line", "commit -qam mine", "merge -q --squash side", "commit -qm squashed", REMOVED],
            true,
        ),
        (false, BRANCHED, &["my line", "commit -qam mine", "cherry-pick side", REMOVED], true),
        (false, BRANCHED, &["cherry-pick -n side", "reset -q", REMOVED, "my line"], true),
        (false, BRANCHED, &["switch -q side"], false),
        (false, STASHED, &["stash pop -q"], false),
        (false, STASHED, &["stash pop -q", "my line"], true),
        (true, STASHED, &["stash pop -q"], true),
        (false, STASHED_IN_CALLS, &["stash pop -q"], false),
        (false, STASHED_IN_CALLS, &["stash pop -q", "my line"], true),
        (true, STASHED_IN_CALLS, &["stash pop -q"], true),
    ];
    for (at, (is_mine_before, calls, deeds, is_mine)) in cases.into_iter().enumerate() {
        // A checkpoint may show what git returned, or none yet.
        let is_seen = at % 2 == 0;
        let case = format!("{calls:?}, then {deeds:?}, seen {is_seen}");
        let project = works(is_mine_before, calls);
        does(&project, deeds);
        assert_eq!(read(&project, "a.txt"), lines(true, is_mine), "{case}: git brought it");
        if is_seen {
            project.json("checkpoint create");
        }
        let head = git(&project, "rev-parse HEAD");
        // A branch that the agent made and that stays is named.
        let stays = !git(&project, "branch --list side").is_empty();
        assert_eq!(project.run("undo --yes").code, Some(if stays { 4 } else { 0 }), "{case}");
        assert_eq!(read(&project, "a.txt"), lines(false, is_mine), "{case}");
        assert!(!project.root().join("new.txt").exists(), "{case}");
        assert_eq!(git(&project, "rev-parse HEAD"), head, "{case}: what others committed stays");
        project.json("redo --yes");
        assert_eq!(read(&project, "a.txt"), lines(true, is_mine), "{case}: the redo");
        assert_eq!(read(&project, "new.txt"), "agent\n", "{case}: the redo");
    }
}

#[test]
fn work_that_git_returned_is_asked_about_where_a_person_changed_it() {
    for calls in [STASHED, STASHED_IN_CALLS] {
        let project = works(false, calls);
        does(&project, &["stash pop -q", "my line in the agent's file"]);
        let refused = project.run("undo --yes --json");
        let error: Value = serde_json::from_str(&refused.stderr).expect("JSON");
        assert_eq!((refused.code, &error["error"]["code"]), (Some(1), &json!("file_conflict")), "{calls:?}: {error}");
        assert_eq!(error["error"]["details"]["conflicts"][0]["path"], "new.txt", "{error}");
        assert_eq!(read(&project, "a.txt"), lines(true, false), "{calls:?}: nothing was changed");
        assert_eq!(project.run("undo --yes --keep-theirs").code, Some(4), "{calls:?}");
        let has = [read(&project, "a.txt"), read(&project, "new.txt")];
        assert_eq!(has, [lines(false, false), "agent\nmine\n".to_owned()], "{calls:?}");
    }
}

#[test]
fn what_a_person_stashed_or_wrote_beside_an_abandoned_branch_is_not_the_agents() {
    // The agent's branch is thrown away, and a person changes the same line.
    let project = works(false, BRANCHED);
    does(&project, &[REMOVED]);
    project.write("a.txt", &BASE.replace("2\n", "mine\n"));
    project.run("undo --yes");
    assert_eq!(read(&project, "a.txt"), BASE.replace("2\n", "mine\n"));
    // A person's own lines that the agent put onto the stash, and that the person takes off again.
    let project = works(true, &[&["stash -q"]]);
    does(&project, &["stash pop -q"]);
    project.run("undo --yes");
    assert_eq!(read(&project, "a.txt"), lines(false, true));
}

#[test]
fn lines_of_the_agent_go_from_what_it_took_off_the_stash() {
    for calls in [&[&["stash pop -q", "edit"][..]][..], &[&["stash pop -q"], &["edit"]]] {
        let project = works(false, &[]);
        does(&project, &["my line", "stash -q"]);
        prompt(&project, "A", "pop");
        in_calls(&project, true, calls);
        let id = work_of(&project, "A");
        let undone = project.run(&format!("undo --only {id} --yes --json"));
        let warnings = undone.json()["warnings"].to_string();
        assert!(undone.code == Some(4) && warnings.contains("git stash store"), "{calls:?}: {undone:?}");
        assert_eq!(read(&project, "a.txt"), lines(false, true), "{calls:?}");
        project.json("redo --yes");
        assert_eq!(read(&project, "a.txt"), lines(true, true), "{calls:?}");
    }
}

#[test]
fn the_rest_of_work_on_a_branch_is_undone_after_the_merge() {
    let in_two_calls = [BRANCHED[0], &["other"][..]];
    for calls in
        [&in_two_calls[..], &[&["edit"], &["switch -qc side", "add .", "commit -qm a", "switch -q main"], &["other"]]]
    {
        let project = works(false, calls);
        let words = format!("undo --only {} --yes", work_of(&project, "A"));
        let undone = project.run(&format!("{words} --json"));
        assert_eq!((undone.code, &undone.json()["status"]), (Some(4), &json!("rolled_back_in_part")), "{undone:?}");
        assert!(undone.stdout.contains("it is on the branch side: check that out"), "{undone:?}");
        assert!(!project.root().join("other.txt").exists());
        does(&project, &["merge -q side", REMOVED]);
        project.json(&words);
        assert_eq!(read(&project, "a.txt"), BASE);
        assert!(!project.root().join("new.txt").exists());
        // Each redo brings back what its undo took.
        project.json("redo --yes");
        assert_eq!([read(&project, "a.txt"), read(&project, "new.txt")], [lines(true, false), "agent\n".to_owned()]);
        project.json("redo --yes");
        assert_eq!(read(&project, "other.txt"), "agent\n");
    }
}

#[test]
fn a_commit_that_a_redo_brought_back_is_no_commit_of_others() {
    let project = works(false, &[&["edit", "add -A", "commit -qm one"]]);
    let undo = project.json("undo --yes")["rollback_id"].as_str().expect("an id").to_owned();
    for (text, at) in [("two", "4\n"), ("three", "6\n")] {
        say(&project, &Said::new("claude-code", "A", "UserPromptSubmit").prompt(text, text));
        before(&project, "A", text, "Bash", json!({ "command": "make" }));
        project.write("a.txt", &read(&project, "a.txt").replace(at, &format!("{text}\n")));
        after(&project, "A", text, "Bash");
        stop(&project, "A");
        if text == "two" {
            project.json(&format!("redo {undo} --yes"));
            assert_eq!(git(&project, "log -1 --format=%s"), "one");
        }
    }
    assert_eq!(read(&project, "a.txt"), lines(true, false).replace("4\n", "two\n").replace("6\n", "three\n"));
    let two = {
        let log = project.json("log --json");
        let all = log.as_array().expect("a list").iter().find(|one| one["title"] == "two").cloned();
        all.expect("the prompt")["reference"].as_str().expect("a reference").to_owned()
    };
    project.json(&format!("undo {two} --yes"));
    assert_eq!(read(&project, "a.txt"), lines(true, false));
}

/// A prompt's calls, what a person does then, the exit of the undo, and what each file has in the end; `None`: nothing.
type Told =
    (&'static [&'static [&'static str]], &'static [&'static str], i32, &'static [(&'static str, Option<&'static str>)]);

/// Another commit of a person, so that no merge is a fast-forward.
const OTHER: &str = "sh:echo o >o && git add o && git commit -qm other";
const SQUASH: &str = "sh:git merge -q --squash side && git commit -qm squashed && git branch -qD side";

const EDIT: &str = "sh:sed -i -e s/2/agent/ -e s/7/agent/ a.txt";
const TWO_LINES: &[&[&str]] = &[&["switch -qc side", EDIT, "add .", "commit -qm agents", "switch -q main"]];
const TWICE: &[&[&str]] = &[&[
    "switch -qc side",
    EDIT,
    "commit -qam one",
    "sh:sed -i s/agent/more/ a.txt",
    "commit -qam two",
    "switch -q main",
]];
const MADE: &[&[&str]] = &[&["switch -qc side", "sh:echo n >new", "add .", "commit -qm agents", "switch -q main"]];
const MODE: &[&[&str]] = &[&["sh:chmod +x a.txt", "stash -q"]];
const MODE_ON_BRANCH: &[&[&str]] =
    &[&["switch -qc side", "sh:chmod +x a.txt", EDIT, "add .", "commit -qm agents", "switch -q main"]];
const LINK: &[&[&str]] = &[&["sh:ln -s a.txt link", "stash -qu"]];
const MINE: &str = "1\n2\n3\n4\n5\n6\n7\nmine\n";
const LINE_TWO: &str = "sh:sed -i s/2/mine/ a.txt";
const COMMIT: &str = "commit -qam mine";
const CASES: [Told; 21] = [
    (
        &[&["edit", "stash -qu"]],
        &["stash pop -q", "sh:mv new.txt mine.txt"],
        4,
        &[("a.txt", Some(BASE)), ("mine.txt", Some("agent\n"))],
    ),
    (
        TWO_LINES,
        &["mv a.txt z", "commit -qm renamed", "merge -q --no-edit side", "branch -qD side"],
        0,
        &[("z", Some(BASE))],
    ),
    (&[&[EDIT, "stash -q"]], &["stash pop -q", "mv a.txt z"], 0, &[("z", Some(BASE))]),
    (
        TWO_LINES,
        &[OTHER, SQUASH, "my line", "commit -qam mine"],
        1,
        &[("a.txt", Some("1\nagent\n3\n4\n5\n6\nagent\nmine\n"))],
    ),
    (
        TWO_LINES,
        &[OTHER, "merge -q --squash side", "reset -q", "branch -qD side", "sh:sed -i 4s/4/mine/ a.txt"],
        0,
        &[("a.txt", Some("1\n2\n3\nmine\n5\n6\n7\n8\n"))],
    ),
    (TWO_LINES, &[LINE_TWO, COMMIT, "merge -q side", REMOVED], 1, &[]),
    // Neither has the agent's commit, and no checkpoint shows the old name with it.
    (TWO_LINES, &[OTHER, SQUASH, "mv a.txt z", "commit -qm renamed"], 0, &[("z", Some(BASE)), ("a.txt", None)]),
    (TWO_LINES, &["cherry-pick side", REMOVED, "mv a.txt z", "commit -qm renamed"], 0, &[("z", Some(BASE))]),
    (TWICE, &[OTHER, "merge -q --no-edit side", REMOVED], 0, &[("a.txt", Some(BASE))]),
    // What the person had committed in the same lines is lost in each of these, before any checkpoint shows it.
    (TWO_LINES, &[LINE_TWO, COMMIT, "merge -q --no-edit -X theirs side", REMOVED], 1, &[]),
    (TWO_LINES, &[LINE_TWO, COMMIT, "cherry-pick -X theirs side", REMOVED], 1, &[]),
    (TWO_LINES, &[LINE_TWO, COMMIT, "checkout side -- a.txt", "reset -q", REMOVED], 1, &[]),
    (MADE, &[OTHER, "cherry-pick side", "branch -qD side", "sh:echo mine >>new"], 1, &[("new", Some("n\nmine\n"))]),
    (MADE, &[OTHER, "cherry-pick side", "branch -qD side"], 0, &[("new", None)]),
    (MODE, &["stash pop -q"], 0, &[("a.txt", Some(BASE))]),
    (MODE, &["stash pop -q", "my line"], 0, &[("a.txt", Some(MINE))]),
    (MODE_ON_BRANCH, &["merge -q side", "branch -qD side"], 0, &[("a.txt", Some(BASE))]),
    (MODE_ON_BRANCH, &[OTHER, SQUASH], 0, &[("a.txt", Some(BASE))]),
    (LINK, &["stash pop -q"], 0, &[("link", None)]),
    (&[&["stash drop -q", EDIT]], &[OTHER], 4, &[("a.txt", Some(BASE))]),
    (&[&["stash drop -q"], &[EDIT]], &[OTHER], 4, &[("a.txt", Some(BASE))]),
];

#[test]
fn what_git_returned_is_undone_or_asked_about_whatever_others_changed_beside() {
    for (calls, deeds, code, files) in CASES {
        let case = format!("{calls:?}, then {deeds:?}");
        let project = works(false, &[]);
        does(&project, &["my line", "stash -q"]);
        say(&project, &Said::new("claude-code", "A", "UserPromptSubmit").prompt("more", "more"));
        in_calls(&project, false, calls);
        let is_dropped = calls[0][0] == "stash drop -q";
        if !is_dropped && !calls[0].last().is_some_and(|last| last.starts_with("stash")) {
            // The person's entry is of no meaning here, and below the agent's it is not the one that is popped.
            git(&project, "stash drop -q");
        }
        does(&project, deeds);
        let has_mode = |project: &Project| {
            let file = std::fs::metadata(project.root().join("a.txt"));
            file.is_ok_and(|file| std::os::unix::fs::PermissionsExt::mode(&file.permissions()) & 0o111 != 0)
        };
        let before = ic_testkit::tree(project.root());
        let id = work_of(&project, "A");
        let undone = project.run(&format!("undo {id} --yes"));
        assert_eq!(undone.code, Some(code), "{case}: {undone:?}");
        for (file, text) in files {
            let has = std::fs::read_to_string(project.root().join(file)).ok();
            assert_eq!(has.as_deref(), *text, "{case}: {file}");
        }
        if code == 1 {
            assert_eq!(ic_testkit::tree(project.root()), before, "{case}");
            // The way that the hint names leads on.
            let forced = project.run(&format!("undo {id} --yes --force-files"));
            assert_eq!(forced.code, Some(0), "{case}: {forced:?}");
            let left =
                ["a.txt", "new"].map(|file| std::fs::read_to_string(project.root().join(file)).unwrap_or_default());
            assert!(!left.concat().contains("agent") && !left.concat().contains("n\nmine"), "{case}: {left:?}");
            let is_lost = deeds.starts_with(&[LINE_TWO, COMMIT]) && deeds.len() > 3;
            assert!(!is_lost || left[0].contains("mine"), "{case}: {left:?}");
        } else {
            assert!(!has_mode(&project), "{case}");
        }
        project.json("redo --yes");
        assert_eq!(ic_testkit::tree(project.root()), before, "{case}: the redo");
    }
}

#[test]
fn work_that_another_prompt_popped_or_merged_is_undone_with_the_one_that_made_it() {
    let both = [
        (&[&["sh:sed -i s/2/agent/ a.txt", "stash -q"][..]][..], &["stash pop -q", "sh:echo z >z"][..]),
        (BRANCHED, &["merge -q side", REMOVED, "sh:echo z >z"]),
    ];
    for (calls, then) in both {
        let project = works(false, calls);
        let first = work_of(&project, "A");
        say(&project, &Said::new("claude-code", "B", "UserPromptSubmit").prompt("second", "second"));
        before(&project, "B", "x", "Bash", json!({ "command": "make" }));
        for given in then {
            line(&project, given);
        }
        after(&project, "B", "x", "Bash");
        stop(&project, "B");
        project.run(&format!("undo {first} --only --yes"));
        assert_eq!((read(&project, "a.txt"), read(&project, "z")), (BASE.to_owned(), "z\n".to_owned()), "{calls:?}");
        project.json("redo --yes");
        project.run(&format!("undo {} --only --yes", work_of(&project, "B")));
        assert!(!project.root().join("z").exists() && read(&project, "a.txt").contains("agent"), "{calls:?}");
    }
}

#[test]
fn redos_bring_back_two_prompts_that_git_returned_in_one_file() {
    let project =
        works(false, &[&["switch -qc side", "sh:sed -i s/2/agent/ a.txt", "commit -qam one", "switch -q main"]]);
    say(&project, &Said::new("claude-code", "A", "UserPromptSubmit").prompt("two", "two"));
    in_calls(
        &project,
        false,
        &[&["switch -q side", "sh:sed -i s/7/agent/ a.txt", "commit -qam two", "switch -q main"]],
    );
    does(&project, &["merge -q side", REMOVED]);
    let merged = read(&project, "a.txt");
    for wanted in [BASE.replace('2', "agent"), BASE.to_owned()] {
        project.json("undo --yes");
        assert_eq!(read(&project, "a.txt"), wanted);
    }
    project.json("redo --yes");
    project.json("redo --yes");
    assert_eq!(read(&project, "a.txt"), merged);
}

/// The second prompt builds on what the first one committed to the branch, which the tree never had.
#[test]
fn two_prompts_on_one_branch_are_undone_in_turn_and_come_back() {
    const FIRST: &[&str] = &[
        "switch -qc side",
        "sh:sed -i s/2/agent/ a.txt",
        "sh:echo n >new",
        "add .",
        "commit -qm one",
        "switch -q main",
    ];
    let seconds = [
        "sh:sed -i s/5/second/ a.txt",
        "sh:sed -i s/3/second/ a.txt",
        "sh:sed -i s/agent/second/ a.txt",
        "sh:echo second >>new",
    ];
    for second in seconds {
        for merge in [&["merge -q --no-edit side", REMOVED][..], &[SQUASH]] {
            let case = format!("{second}, {merge:?}");
            let project = works(false, &[FIRST]);
            let first = work_of(&project, "A");
            say(&project, &Said::new("claude-code", "A", "UserPromptSubmit").prompt("two", "two"));
            in_calls(&project, false, &[&["switch -q side", second, "commit -qam two", "switch -q main"]]);
            does(&project, &["my line", "commit -qam mine"]);
            does(&project, merge);
            let both = ic_testkit::tree(project.root());
            let has = || ["a.txt", "new"].map(|file| std::fs::read_to_string(project.root().join(file)).ok());
            project.json(&format!("undo --only {} --yes", work_of(&project, "A")));
            assert_eq!(has(), [Some(lines(true, true)), Some("n\n".to_owned())], "{case}");
            project.json(&format!("undo --only {first} --yes"));
            assert_eq!(has(), [Some(lines(false, true)), None], "{case}");
            project.json("redo --yes");
            assert_eq!(has(), [Some(lines(true, true)), Some("n\n".to_owned())], "{case}");
            project.json("redo --yes");
            assert_eq!(ic_testkit::tree(project.root()), both, "{case}");
        }
    }
}

#[test]
fn what_a_person_stashed_while_a_prompt_was_under_way_stays_when_it_comes_off() {
    for is_between in [true, false] {
        let project = works(false, &[&["other"]]);
        say(&project, &Said::new("claude-code", "A", "UserPromptSubmit").prompt("more", "more"));
        if is_between {
            does(&project, &["my line", "stash -q"]);
        }
        in_calls(&project, false, &[&["sh:echo z >z"]]);
        if !is_between {
            does(&project, &["my line", "stash -q"]);
        }
        does(&project, &["stash pop -q"]);
        project.json(&format!("undo {} --yes", work_of(&project, "A")));
        assert_eq!(read(&project, "a.txt"), lines(false, true), "between: {is_between}");
        assert!(!project.root().join("z").exists());
    }
}

#[test]
fn what_comes_off_a_stash_that_both_used_is_asked_about() {
    let project = works(false, &[&["other"]]);
    say(&project, &Said::new("claude-code", "A", "UserPromptSubmit").prompt("more", "more"));
    does(&project, &["my line", "stash -q"]);
    in_calls(&project, false, &[&["sh:echo z >z", "stash -qu"]]);
    does(&project, &["stash pop -q", "stash pop -q"]);
    let undo = format!("undo {} --yes", work_of(&project, "A"));
    let refused = project.run(&format!("{undo} --json"));
    let error: Value = serde_json::from_str(&refused.stderr).expect("JSON");
    assert_eq!((refused.code, &error["error"]["code"]), (Some(1), &json!("file_conflict")), "{error}");
    assert!(error["error"]["details"]["conflicts"].to_string().contains("it may be yours"), "{error}");
    project.json(&format!("{undo} --force-files --keep-theirs=a.txt"));
    assert_eq!(read(&project, "a.txt"), lines(false, true));
    assert!(!project.root().join("z").exists());
}

/// A rebase by an agent makes other commits of a person's, and none of the agent's.
#[test]
fn a_revert_is_offered_for_what_an_agent_committed_and_not_for_what_it_rebased() {
    const DATED: &str = "sh:GIT_AUTHOR_DATE=2026-01-02T03:04:05Z git commit -qam mine";
    let project = works(false, &[]);
    does(&project, &["switch -qc mine", "my line", DATED, "switch -q main", OTHER, "switch -q mine"]);
    prompt(&project, "A", "rebase");
    in_calls(&project, false, &[&["rebase -q main", "sh:echo z >z", "add z", "commit -qm agents"]]);
    assert_eq!(git(&project, "log -2 --format=%s"), "agents\nmine");
    let plan = project.run(&format!("undo --only {} --dry-run", work_of(&project, "A"))).json();
    let commits = plan["own_commits"].as_array().expect("commits").iter();
    let told = commits.map(|one| (one["subject"].as_str(), one["status"].as_str(), one["revert"].is_string()));
    let wanted = [(Some("agents"), Some("tip"), true), (Some("mine"), Some("shared"), false)];
    assert_eq!(told.collect::<Vec<_>>(), wanted, "{plan}");
    // The branch that was rewritten is named, with the command that restores it.
    let undone = project.run(&format!("undo --only {} --yes --json", work_of(&project, "A")));
    let warning = undone.json()["warnings"][0]["message"].as_str().expect("a warning").to_owned();
    assert!(undone.code == Some(4) && warning.contains("the branch mine was rewritten"), "{undone:?}");
    let (_, way) = warning.split_once("stays so: git ").expect("a command");
    git(&project, way);
    assert_eq!(git(&project, "log -2 --format=%s mine-before"), "mine\nbase");
    // Where the undo changed no file, the branch itself can go back.
    let project = works(false, &[]);
    does(&project, &["switch -qc mine", "my line", DATED, "switch -q main", OTHER, "switch -q mine"]);
    prompt(&project, "A", "rebase");
    in_calls(&project, false, &[&["rebase -q main"]]);
    let undone = project.run(&format!("undo --only {} --yes --json", work_of(&project, "A")));
    let warning = undone.json()["warnings"][0]["message"].as_str().expect("a warning").to_owned();
    let (_, way) = warning.split_once("stays so: git ").expect("a command");
    assert!(undone.code == Some(4) && way.starts_with("reset --keep"), "{undone:?}");
    git(&project, way);
    assert_eq!(git(&project, "log -2 --format=%s"), "mine\nbase");
}

#[test]
fn no_revert_is_offered_of_a_commit_that_took_in_what_a_person_had_changed() {
    for is_mine_before in [true, false] {
        let project =
            works(is_mine_before, &[&["edit"], &["add -A", "commit -qm agents", "other", "add -A", "commit -qm more"]]);
        let plan = project.json(&format!("undo --only {} --dry-run", work_of(&project, "A")));
        let reverts = plan["own_commits"].as_array().expect("commits").iter().map(|one| one["revert"].is_string());
        assert_eq!(reverts.collect::<Vec<_>>(), [true, !is_mine_before], "{plan}");
    }
    // A line that came between two calls is in the commit; one that comes after it is not.
    for is_between in [true, false] {
        let project = works(false, &[]);
        prompt(&project, "A", "more");
        for words in [&[][..], &["add -A", "commit -qm agents"]] {
            before(&project, "A", "call", "Bash", json!({ "command": "make" }));
            if words.is_empty() {
                project.write("a.txt", &lines(true, false));
            }
            for given in words {
                line(&project, given);
            }
            after(&project, "A", "call", "Bash");
            if words.is_empty() == is_between {
                does(&project, &["my line"]);
            }
        }
        stop(&project, "A");
        let plan = project.run(&format!("undo --only {} --dry-run", work_of(&project, "A"))).json();
        assert_eq!(plan["own_commits"][0]["revert"].is_string(), !is_between, "{plan}");
        let shown = project.json(&format!("show {}", work_of(&project, "A")));
        assert_eq!(shown["commits"][0]["revert"], plan["own_commits"][0]["revert"], "{shown}");
    }
}

/// Calls check out a person's branch, or bring their commits below the agent's: that is none of the work, where no line is the same.
#[test]
fn what_a_call_checked_out_or_rebased_onto_is_a_persons() {
    let cases: [(&[&[&str]], &[&str]); 2] = [
        (
            &[&["switch -q side", "sh:echo agent >n"], &["add .", "commit -qm agents", "switch -q main"]],
            &["merge -q --no-edit side"],
        ),
        (&[&["switch -q side", "sh:echo agent >n", "add .", "commit -qm agents"], &["rebase -q main"]], &[]),
    ];
    for (calls, deeds) in cases {
        let project = works(false, &[]);
        does(
            &project,
            &["switch -qc side", "my line", "sh:echo mine >m", "add .", "commit -qm mine", "switch -q main"],
        );
        does(&project, &["sh:sed -i 4s/4/mine/ a.txt", COMMIT]);
        prompt(&project, "A", "more");
        in_calls(&project, false, calls);
        does(&project, deeds);
        let has = |file: &str| std::fs::read_to_string(project.root().join(file)).ok();
        let before = ["a.txt", "m"].map(has);
        assert_eq!(before[0].as_deref(), Some(&*lines(false, true).replace("4\n", "mine\n")), "{calls:?}");
        let undone = project.run(&format!("undo --only {} --yes", work_of(&project, "A")));
        assert!(matches!(undone.code, Some(0 | 4)), "{calls:?}: {undone:?}");
        if deeds.is_empty() {
            // Over the files that the undo has changed, git would refuse a reset.
            let warnings = undone.json()["warnings"].to_string();
            let way =
                warnings.split("rewritten by this work or beside it, and stays so: git ").nth(1).expect("a command");
            git(&project, way.split('"').next().expect("its end"));
            assert_eq!(git(&project, "log -1 --format=%s side-before"), "mine");
        }
        assert_eq!((["a.txt", "m"].map(has), has("n")), (before, None), "{calls:?}: {undone:?}");
    }
}

#[test]
fn what_came_off_the_stash_is_asked_about_where_not_all_of_a_call_is_known() {
    let long = format!("make {} && git stash -q", "x".repeat(80));
    for command in ["make\ngit stash -q", &long] {
        let project = works(false, &[]);
        prompt(&project, "A", "more");
        before(&project, "A", "call", "Bash", json!({ "command": command }));
        project.write("a.txt", &lines(true, false));
        line(&project, "stash -q");
        after(&project, "A", "call", "Bash");
        stop(&project, "A");
        does(&project, &["stash pop -q"]);
        let undo = format!("undo --only {} --yes", work_of(&project, "A"));
        let refused = project.run(&undo);
        assert_eq!((refused.code, refused.error().as_str()), (Some(1), "file_conflict"), "{refused:?}");
        project.json(&format!("{undo} --force-files"));
        assert_eq!(read(&project, "a.txt"), BASE);
    }
}

#[test]
fn a_single_path_is_kept_only_where_an_undo_asks_about_paths() {
    let project = works(false, &[&["edit"]]);
    let undo = project.json("undo --yes")["rollback_id"].as_str().expect("an id").to_owned();
    let refused = project.run(&format!("undo {undo} --keep-theirs=a.txt --yes"));
    assert_eq!((refused.code, refused.error().as_str()), (Some(3), "usage"), "{refused:?}");
    // Without a run, an undo restores a checkpoint.
    let project = Project::without_ledger();
    project.ok("init");
    project.write("a.txt", "1\n");
    project.ok("checkpoint create");
    project.write("a.txt", "2\n");
    let refused = project.run("undo --keep-theirs=a.txt --yes");
    assert_eq!((refused.code, refused.error().as_str()), (Some(3), "usage"), "{refused:?}");
    assert_eq!(read(&project, "a.txt"), "2\n");
}

/// The same permissions of a person say nothing of the lines that came with them.
#[test]
fn lines_that_git_returned_go_where_a_person_had_set_the_same_permissions() {
    let project = works(false, MODE_ON_BRANCH);
    does(&project, &["sh:chmod +x a.txt", "commit -qam mine"]);
    project.json("checkpoint create");
    does(&project, &["merge -q --no-edit side", REMOVED]);
    assert!(read(&project, "a.txt").contains("agent"));
    project.json("undo --yes");
    assert_eq!(read(&project, "a.txt"), BASE);
    let mode = std::fs::metadata(project.root().join("a.txt")).expect("the file").permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o111, 0o111, "a person set it, too");
}
