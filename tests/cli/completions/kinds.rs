//! The candidates of each kind in the ledger, described by what a person knows it by.

use super::{offered, short, values};
use crate::support::{Project, chain, story};
use crate::verbs::rewind::with_tasks;

fn pair(value: &str, about: &str) -> (String, String) {
    (value.to_owned(), about.to_owned())
}

#[test]
fn runs_by_their_goals_the_active_first() {
    let project = Project::new();
    let done = chain(&project, "a,b", "b");
    let story = story(&project);
    let all = [
        pair("@", "Add a login, executing"),
        pair(short(&story.run), "Add a login, executing"),
        pair(short(&done), "Short chain, completed"),
    ];
    for line in ["run status", "run advance", "gate check", "events tail", "workflow show", "rollback list"] {
        let words: Vec<&str> = line.split(' ').chain([""]).collect();
        assert_eq!(offered(&project, &words), all, "{line}");
    }
    assert_eq!(offered(&project, &["checkpoint", "create", "--run", ""]), all);
    // By the digits that people are shown, or by the whole id for who begins to type that.
    assert_eq!(values(&project, "run status 0a0000").len(), 2);
    assert_eq!(values(&project, &format!("run status {}", short(&done))), [short(&done)]);
    assert_eq!(values(&project, &format!("run status {}", &done)), [done.as_str()]);
    assert_eq!(values(&project, "run status scope:sp"), ["scope:sprint-12"]);
    assert_eq!(values(&project, "run status sc"), ["scope:sprint-12"]);
    // Options that take an id alone get no other name.
    assert_eq!(values(&project, "run list --before "), [short(&story.run), short(&done)]);
    // With two of them, `@` is ambiguous.
    project.ok("run create --goal other");
    assert_eq!(values(&project, "run status ").len(), 3);
}

#[test]
fn phases_of_the_run_on_the_line() {
    let project = Project::new();
    let other = chain(&project, "draft,in-review,done", "in-review");
    project.ok(&format!("run cancel {other}"));
    story(&project);
    let back = ["planned", "strategized", "brainstorm-reviewed", "brainstorm"];
    assert_eq!(values(&project, "run rollback @ --to-phase "), back);
    assert_eq!(values(&project, "run rollback --to-phase "), back);
    assert_eq!(values(&project, "compensation run @ --to-phase p"), ["planned"]);
    assert_eq!(values(&project, &format!("run rollback {other} --to-phase ")), ["draft"]);
    assert_eq!(values(&project, &format!("run rollback {} --to-phase=", short(&other))), ["--to-phase=draft"]);
    let with_target = values(&project, "run rollback @ --include-target --to-phase ");
    assert_eq!(with_target[..2], ["executing", "planned"]);
    // All of them, with where each is.
    let all = offered(&project, &["run", "artifact", "list", "scope:sprint-12", "--phase", ""]);
    assert_eq!(all.len(), 9);
    assert_eq!(all[3..6], [pair("planned", "behind"), pair("executing", "where the run is"), pair("review", "ahead")]);
    // The phases ahead, without the last one and those that are to be skipped already.
    assert_eq!(values(&project, "run skip @ "), ["review", "reflect"]);
    assert_eq!(values(&project, "run advance @ --expect-phase "), ["executing", "executing@0"]);
    assert_eq!(values(&project, "gate rules --phase r"), ["review", "reflect"]);
    assert_eq!(values(&project, &format!("gate rules {other} --phase ")), ["draft", "in-review", "done"]);
    assert!(values(&project, "run rollback 00000000 --to-phase ").is_empty());
}

#[test]
fn work_by_its_name_and_state() {
    let project = Project::new();
    let story = story(&project);
    let waiting = project.ok("dispatch create @ --name waiting");
    let all = [
        pair(short(&waiting), "waiting, pending, executing"),
        pair(short(&story.builder), "form, running, executing"),
        pair(short(&story.planner), "plan, completed, planned"),
    ];
    assert_eq!(offered(&project, &["dispatch", "show", ""]), all);
    assert_eq!(values(&project, "dispatch start "), [short(&waiting)]);
    assert_eq!(values(&project, "dispatch complete "), [short(&waiting), short(&story.builder)]);
    assert_eq!(values(&project, "run advance @ --dispatch "), [short(&waiting), short(&story.builder)]);
    assert_eq!(values(&project, "dispatch list --status r"), ["running"]);
    assert_eq!(
        offered(&project, &["run", "agent", "update", ""]),
        [pair(short(&story.agent), "builder, active, executing")]
    );
    let artifacts = offered(&project, &["run", "artifact", "cat", ""]);
    assert_eq!((artifacts.len(), artifacts[0].1.as_str()), (5, "src/login.rs, executing, active"));
    project.ok("run rollback @ --to-phase strategized --reason 'not this way'");
    assert_eq!(offered(&project, &["dispatch", "show", short(&story.planner)])[0].1, "plan, rolled back, planned");
}

#[test]
fn checkpoints_and_what_they_are_called() {
    let project = Project::new();
    story(&project);
    let first = project.ok("checkpoint create --run @ --name before-form --message 'before the form'");
    let second = project.ok("checkpoint create --conversation chat");
    for line in ["checkpoint show", "checkpoint restore", "checkpoint diff", "checkpoint delete", "checkpoint cat"] {
        let words: Vec<&str> = line.split(' ').chain([""]).collect();
        let found = offered(&project, &words);
        assert_eq!(found.len(), 2, "{line}");
        assert_eq!(found[0], pair(short(&second), "manual, 2026-02-20T16:55:15Z"));
        assert_eq!(found[1], pair(short(&first), "before the form, executing, 2026-02-20T16:55:15Z"));
    }
    assert_eq!(values(&project, &format!("checkpoint diff {first} ")).len(), 2);
    assert_eq!(values(&project, "checkpoint restore --name b"), ["before-form"]);
    assert_eq!(values(&project, "checkpoint list --conversation "), ["chat"]);
    assert!(values(&project, "checkpoint create --name ").is_empty());
}

#[test]
fn what_was_taken_back() {
    let project = Project::new();
    story(&project);
    project.ok("compensation add @ --step queue --description 'the orders' --exec -- true");
    assert_eq!(offered(&project, &["compensation", "run", "@", "--step", ""]), [pair("queue", "armed, the orders")]);
    project.ok("run rollback @ --to-phase strategized --reason 'not this way'");
    let id = project.json("rollback list")[0]["id"].as_str().expect("an id").to_owned();
    let about = "done, executing to strategized, not this way";
    assert_eq!(offered(&project, &["redo", ""]), [pair(short(&id), about)]);
    assert_eq!(offered(&project, &["rollback", "show", ""]), [pair(short(&id), about)]);
    // Nothing is left to do about it.
    assert!(values(&project, "rollback resume ").is_empty());
    with_tasks(&project);
    let rewind = project.json("rewind to T1 --yes");
    let id = rewind["id"].as_str().expect("an id");
    let rewound = pair(short(id), "done, to T1, 2026-02-20T16:55:15Z");
    let stands = offered(&project, &["redo", ""]);
    assert_eq!((stands.len(), &stands[1]), (2, &rewound));
    // A restore has the name of what it replaced.
    let first = project.ok("checkpoint create --name first");
    project.write("a.md", "new\n");
    let restored = project.json(&format!("checkpoint restore {first} --yes"));
    let safety = restored["safety_checkpoint_id"].as_str().expect("an id");
    let about = format!("restored, checkpoint {}, 2026-02-20T16:55:15Z", short(&first));
    assert_eq!(offered(&project, &["redo", ""])[1..], [pair(short(safety), &about), rewound]);
    // What was undone is not offered.
    project.ok(&format!("redo {safety} --yes"));
    project.ok(&format!("undo {id} --yes"));
    assert_eq!(offered(&project, &["redo", ""]).len(), 1);
}

#[test]
fn events_and_cursors() {
    let project = Project::new();
    let other = chain(&project, "a,b", "a");
    project.ok(&format!("run cancel {other} --reason 'no need'"));
    story(&project);
    project.ok("events tail --cursor notifier");
    assert_eq!(values(&project, "events tail --cursor "), ["notifier"]);
    assert_eq!(values(&project, "events cursor reset n"), ["notifier"]);
    let events = offered(&project, &["events", "redact", ""]);
    let newest = project.json("events verify")["chain_head"]["seq"].as_i64().expect("a seq");
    assert_eq!(events[0].0, newest.to_string());
    assert!(events.contains(&pair("2", "run_cancelled, cancelled, no need")), "{events:?}");
    // Only those of the run on the line.
    assert!(!values(&project, "events tail @ --since ").contains(&"2".to_owned()));
}

#[test]
fn files_from_where_the_line_acts() {
    let project = Project::new();
    for file in ["docs/plan.md", "docs/idea.md", "docs/odd\nname", "src/main.rs", "flow.yaml"] {
        project.write(file, "");
    }
    assert_eq!(values(&project, "run artifact add @ --path docs/"), ["docs/idea.md", "docs/plan.md"]);
    assert_eq!(values(&project, "run artifact add @ --path=d"), ["--path=docs/"]);
    assert_eq!(values(&project, "-C docs run artifact add @ --path p"), ["plan.md"]);
    assert_eq!(values(&project, "-C "), ["docs/", "src/"]);
    assert_eq!(values(&project, "-C docs -C "), ["docs/", "src/"]);
    assert_eq!(values(&project, "workflow run "), ["docs/", "flow.yaml", "src/"]);
    assert_eq!(values(&project, "run create --project "), ["docs/", "src/"]);
    assert_eq!(values(&project, "run create --gates @f"), ["@flow.yaml"]);
    assert_eq!(values(&project, "checkpoint diff 0a000001 -- s"), ["src/"]);
    assert_eq!(values(&project, "compensation add @ --exec -- s"), ["src/"]);
    assert_eq!(values(&project, "man d"), ["docs/"]);
}

#[test]
fn text_from_outside_is_shown_safely() {
    let project = Project::new();
    let words = ["run", "create", "--goal", "one\ntwo\tthree \u{202e}gpj", "--phases", "a b,'; rm --,計劃"];
    assert_eq!(project.run_words(words).code, Some(0));
    assert_eq!(offered(&project, &["run", "status", "@"]), [pair("@", r"one two three \u{202e}gpj, a b")]);
    assert_eq!(values(&project, "run artifact list @ --phase "), ["a b", "'; rm --", "計劃"]);
}

/// A shell prints a candidate unescaped: one that reorders the text around it, or steers the terminal, is left to be typed.
#[test]
fn names_that_hide_what_they_say_are_not_offered() {
    let project = Project::new();
    for scope in ["plain", "s\u{202e}gpj", "t\u{61c}", "v\u{e0041}"] {
        let words = ["run", "create", "--goal", "g", "--scope-id", scope];
        assert_eq!(project.run_words(words).code, Some(0), "{scope:?}");
    }
    assert_eq!(values(&project, "run status scope:"), ["scope:plain"]);
}

#[test]
fn tasks_of_the_state_database_the_newest_first() {
    let project = Project::new();
    assert!(values(&project, "rewind to ").is_empty(), "nothing is configured");
    with_tasks(&project);
    let targets = project.json("rewind targets");
    let newest: Vec<&str> =
        targets.as_array().expect("a list").iter().map(|task| task["task_id"].as_str().expect("an id")).collect();
    assert!(newest.len() > 1, "{targets}");
    assert_eq!(values(&project, "rewind to "), newest);
    assert_eq!(values(&project, &format!("rewind to {}", newest[0])), [newest[0]]);
    std::fs::remove_file(project.cli.beside("state.db")).expect("the database");
    assert!(values(&project, "rewind to ").is_empty());
}

#[test]
fn works_are_offered_by_what_a_log_prints() {
    let project = crate::agents::in_git();
    let one = crate::timeline::writes(&project, "A", "add a login", &[("a.txt", "1\n")]);
    let two = crate::timeline::writes(&project, "B", "test it", &[("b.txt", "2\n")]);
    project.ok("checkpoint create --name good");
    let about = |title: &str| format!("{title}, 2026-02-20T16:55:15Z");
    let works =
        [pair("@", &about("test it")), pair(short(&two), &about("test it")), pair(short(&one), &about("add a login"))];
    for words in [&["undo", ""][..], &["show", ""], &["diff", ""], &["diff", "@~1", ""], &["restore", "--before", ""]] {
        let found = offered(&project, words);
        assert_eq!(found[..3], works, "{words:?}");
        assert!(found.contains(&pair("good", "2026-02-20T16:55:15Z")), "{words:?}: {found:?}");
    }
    assert_eq!(values(&project, &format!("show {}", short(&one))), [short(&one)]);
}

#[test]
fn a_tilde_after_a_global_option_is_the_home_directory() {
    let mut project = Project::new();
    let story = story(&project);
    let home = project.root().parent().expect("a directory").to_owned();
    let name = project.root().file_name().and_then(|name| name.to_str()).expect("text").to_owned();
    let db = project.cli.db().strip_prefix(project.root()).expect("below it").display().to_string();
    project.cli = project.cli.with_env("HOME", home);
    for line in [
        format!("-C ~/{name} run status {}", short(&story.run)),
        format!("--db ~/{name}/{db} run status {}", short(&story.run)),
    ] {
        assert_eq!(values(&project, &line), [short(&story.run)], "{line}");
    }
    let root = project.root().to_owned();
    project.cli = project.cli.with_env("HOME", root);
    assert_eq!(values(&project, &format!("-C ~ run status {}", short(&story.run))), [short(&story.run)]);
}
