//! What is typed every day: `ic status` and `ic log`.

use crate::agents::Said;
use crate::support::{Page, Project, chain, story};

#[test]
fn log() {
    Page::of("ic log", |project| {
        chain(project, "draft,edit,print,done", "edit");
        let work = project.ok("dispatch create @ --name typeset");
        project.ok(&format!("dispatch start {work} --no-checkpoint"));
        project.ok(&format!("dispatch record {work} --commit aaaaaaa1"));
        project.ok(&format!("dispatch complete {work} --no-checkpoint"));
        project.ok("run advance @");
        project.ok("run rollback @ --to-phase draft --reason 'the wrong book'");
        project.ok("run advance @");
    })
    .does("log")
    .does("log @ --all -n 5")
    .refuses("log 99999999", 3, "run_not_found")
    .ends();
}

/// A prompt changed a file, and so did a person after it.
fn changed_by_a_prompt(project: &Project) {
    std::fs::remove_file(project.root().join(".ic.yaml")).expect("the configuration");
    project.write("login.rs", "fn login() {}\n");
    project.ok("checkpoint create");
    let say = |event: &str, id: &str| {
        let said = Said::new("claude-code", "s-1", event).prompt("p-1", "Add a login");
        let said = said.with("tool_name", "Bash").with("tool_use_id", id);
        crate::agents::say(project, &said);
    };
    say("UserPromptSubmit", "");
    say("PreToolUse", "c-1");
    project.write("login.rs", "fn login() -> bool { true }\n");
    say("PostToolUse", "c-1");
    say("Stop", "");
    project.write("login.rs", "by hand\n");
}

#[test]
fn show() {
    Page::of("ic show", changed_by_a_prompt)
        .does("show")
        .does("show @ --stat")
        .refuses("show 99999999", 3, "point_not_found")
        .ends();
}

#[test]
fn diff() {
    Page::of("ic diff", changed_by_a_prompt)
        .does("diff @")
        .does("diff @ --stat -- login.rs")
        .refuses("diff 99999999", 3, "checkpoint_not_found")
        .ends();
}

#[test]
fn restore() {
    Page::of("ic restore", changed_by_a_prompt)
        .does("restore login.rs --dry-run")
        .does("restore login.rs --yes")
        .refuses("restore nowhere.rs --yes", 3, "point_not_found")
        .ends();
}

#[test]
fn exec() {
    Page::of("ic exec", |project| drop(story(project)))
        .does("exec -- true")
        .says_no("exec --run @ -- false")
        .refuses("exec -- no-such-program", 3, "invalid_value")
        .ends();
}

#[test]
fn wait() {
    Page::of("ic wait", |project| drop(story(project)))
        .does("wait 0a00000a")
        .says_no("wait 0a00000a 0a00000f --timeout 0s")
        .refuses("wait 99999999", 3, "dispatch_not_found")
        .ends();
}

#[test]
fn fork() {
    Page::of("ic fork", |project| drop(story(project))).refuses("fork --name a/b", 3, "invalid_value").ends();
}

#[test]
fn compare() {
    Page::of("ic compare", |project| drop(story(project)))
        .does("compare")
        .refuses("compare none", 3, "fork_not_found")
        .ends();
}

#[test]
fn adopt() {
    Page::of("ic adopt", |project| drop(story(project))).refuses("adopt none", 3, "fork_not_found").ends();
}

#[test]
fn drop_fork() {
    Page::of("ic drop", |project| drop(story(project))).refuses("drop none", 3, "fork_not_found").ends();
}

#[test]
fn blame() {
    Page::of("ic blame", changed_by_a_prompt)
        .does("blame login.rs")
        .does("blame login.rs --limit 1")
        .refuses("blame nowhere.rs", 3, "path_not_found")
        .ends();
}

#[test]
fn status() {
    Page::of("ic status", |project| drop(story(project)))
        .does("status")
        .then(|project| {
            project.ok("compensation add @ --step bill --exec -- false");
            let stopped = project.run("run rollback @ --to-phase planned --layer=workflow,effects --yes");
            assert_eq!(stopped.code, Some(4), "{stopped:?}");
        })
        .does("status @")
        .refuses("status 99999999", 3, "run_not_found")
        .ends();
}

#[test]
fn where_no_run_is_open_the_newest_is_shown_and_named_as_such() {
    let project = Project::new();
    for line in ["log", "log @", "status", "status @"] {
        let outcome = project.run(&format!("{line} --json"));
        assert_eq!((outcome.code, outcome.error().as_str()), (Some(3), "run_not_found"), "{line}: {outcome:?}");
        assert!(outcome.stderr.contains("create one: ic run create --goal TEXT"), "{outcome:?}");
    }
    let first = chain(&project, "a,b", "a");
    project.ok("run cancel @");
    let newest = chain(&project, "a,b", "b");
    assert_ne!(first, newest);
    let glance = project.ok("status --format text");
    let head = glance.lines().next().expect("a line");
    assert!(head.starts_with(&newest[28..]), "{head}");
    assert!(head.contains("no run is open here, this is the newest"), "{head}");
    assert_eq!(project.json("status")["run"]["id"], newest.as_str());
    // The log of the place has both, the newest first.
    let listed = project.json("log");
    assert_eq!(listed[0]["run_id"], newest.as_str());
    assert!(listed.as_array().expect("a list").iter().any(|one| one["run_id"] == first.as_str()), "{listed}");
    // Who names a run is told nothing of others, and `@` names an open one.
    let named = project.ok(&format!("log {first} --format text"));
    assert!(named.starts_with(&first[28..]) && !named.contains("newest"), "{named}");
    assert_eq!(project.run("log @").code, Some(3));
    let open = chain(&project, "a,b", "a");
    assert_eq!(project.json("log")[0]["run_id"], open.as_str());
    assert!(
        project.ok(&format!("log {open} --format text")).ends_with(&format!("ic undo REFERENCE --run {}", &open[28..]))
    );
}

#[test]
fn a_list_and_its_lines_hold_the_same() {
    let project = Project::new();
    story(&project);
    let list = project.json("log");
    let lines = project.ok("log --format jsonl");
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
    assert_eq!(list.as_array().expect("a list"), &lines);
    assert_eq!(list.as_array().and_then(|all| all.last()).expect("one")["kind"], "created");
}
