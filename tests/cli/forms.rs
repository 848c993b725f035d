//! The form of the output: which flags and variables decide it, and which one wins.

use serde_json::Value;

use crate::support::{Project, chain, story};

/// Verbs that print just a value, each with where the value stands in its record.
fn scalars() -> Vec<(&'static str, &'static str)> {
    vec![
        ("run create --goal More --phases a,b", "id"),
        ("run phase scope:sprint-12", "phase"),
        ("run current --project sub", "id"),
        ("run agent add scope:sprint-12 --type codex", "id"),
        ("run artifact add scope:sprint-12 --path a.md", "id"),
        ("dispatch create scope:sprint-12", "id"),
        ("where", "db"),
    ]
}

fn with_two_projects() -> Project {
    let project = Project::new();
    story(&project);
    std::fs::create_dir(project.root().join("sub")).expect("a directory");
    project.ok("run create --goal Sub --project sub --phases a,b");
    project
}

#[test]
fn scalar_verbs_print_just_the_value_unless_json_is_asked_for() {
    let project = with_two_projects();
    for (line, key) in scalars() {
        for form in ["", "--format text", "--format auto", "--pretty"] {
            let outcome = project.run(&format!("{line} {form}"));
            assert_eq!(outcome.code, Some(0), "{outcome:?}");
            assert!(outcome.stdout.lines().count() == 1 && !outcome.stdout.contains('{'), "{line} {form}: {outcome:?}");
        }
        // A script that reads an id must not break where the environment asks for JSON: only a flag of the call asks for the record.
        for default in ["json", "jsonl", "text", "auto"] {
            let outcome = project.run_with("IC_FORMAT", default, line);
            assert!(!outcome.stdout.contains('{'), "{line} with IC_FORMAT={default}: {outcome:?}");
        }
        for form in ["--json", "--format json", "--format=jsonl"] {
            let record = project.run(&format!("{line} {form}")).json();
            assert!(record[key].is_string(), "{line} {form}: {record}");
        }
    }
}

#[test]
fn the_value_is_that_of_the_record() {
    let project = with_two_projects();
    for (line, key) in scalars().into_iter().filter(|(line, _)| !line.contains("add") && !line.contains("create")) {
        assert_eq!(project.json(line)[key], project.ok(line), "{line}");
    }
}

#[test]
fn a_pipe_gets_json_unless_something_else_is_said() {
    let project = with_two_projects();
    let line = "run status scope:sprint-12";
    let is_json = |text: &str| serde_json::from_str::<Value>(text).is_ok();
    assert!(is_json(&project.run(line).stdout));
    assert!(is_json(&project.run(&format!("{line} --format auto")).stdout));
    assert!(!is_json(&project.run_with("IC_FORMAT", "text", line).stdout));
    assert!(is_json(&project.run_with("IC_FORMAT", "text", &format!("{line} --json")).stdout));
    assert!(is_json(&project.run_with("IC_FORMAT", "text", &format!("{line} --format auto")).stdout));
    assert!(!is_json(&project.run_with("IC_FORMAT", "json", &format!("{line} --format text")).stdout));
    assert!(is_json(&project.run_with("IC_FORMAT", "", line).stdout));
}

#[test]
fn a_bad_default_format_is_refused() {
    let project = with_two_projects();
    for bad in ["yaml", "JSON", " json"] {
        let outcome = project.run_with("IC_FORMAT", bad, "run status scope:sprint-12");
        assert_eq!((outcome.code, outcome.error().as_str()), (Some(3), "invalid_value"), "{bad}");
    }
}

#[test]
fn json_lines_are_one_record_a_line() {
    let project = Project::new();
    for list in ["run list", "events tail", "dispatch list", "events cursor list"] {
        assert_eq!(project.ok(&format!("{list} --json")), "[]", "{list}");
        assert_eq!(project.ok(&format!("{list} --format jsonl")), "", "{list}");
    }
    story(&project);
    for list in ["run list", "run events @", "run agent list @", "run artifact list @", "dispatch list", "gate rules"] {
        let array = project.json(list);
        let lines: Vec<Value> = project
            .ok(&format!("{list} --format jsonl"))
            .lines()
            .map(|line| serde_json::from_str(line).expect("a record"))
            .collect();
        assert_eq!(array.as_array(), Some(&lines), "{list}");
        assert!(!lines.is_empty(), "{list}");
    }
    let record: Value = serde_json::from_str(&project.ok("run status @ --format jsonl")).expect("a record");
    assert_eq!(record, project.json("run status @"));
}

#[test]
fn pretty_indents_and_changes_nothing() {
    let project = Project::new();
    story(&project);
    for line in ["run status @", "run list", "gate rules", "run rollback @ --to-phase planned --dry-run"] {
        let pretty = project.run(&format!("{line} --json --pretty"));
        assert!(pretty.stdout.lines().count() > 3, "{line}: {pretty:?}");
        assert_eq!(pretty.json(), project.json(line));
        assert_eq!(project.ok(&format!("{line} --json")).lines().count(), 1, "{line}");
    }
    // Lists that are printed record by record.
    for line in ["run events @", "events tail", "events tail --limit 1", "dispatch list"] {
        let pretty = project.run(&format!("{line} --json --pretty"));
        assert_eq!(pretty.json(), project.json(line));
        assert!(pretty.stdout.starts_with("[\n  {\n    \""), "{line}: {pretty:?}");
        assert!(pretty.stdout.ends_with("\n  }\n]\n"), "{line}: {pretty:?}");
    }
    assert_eq!(Project::new().ok("events tail --json --pretty"), "[]");
}

#[test]
fn errors_take_the_form_of_the_output() {
    let project = Project::new();
    for (line, message) in [
        ("run status 99999999", "There is no run 99999999."),
        ("run status", ""),
        ("run statsu", ""),
        ("run rollback @ --dryrun", ""),
    ] {
        let text = project.run(&format!("{line} --format text"));
        assert!(text.stderr.starts_with(&format!("error: {message}")), "{line}: {text:?}");
        assert!(text.stderr.contains("\nhint: "), "{line}: {text:?}");
        for form in ["", "--json", "--format=jsonl", "--format json"] {
            let outcome = project.run(&format!("{line} {form}"));
            assert_eq!(outcome.stderr.lines().count(), 1, "{line} {form}: {outcome:?}");
            assert!(!outcome.error().is_empty());
        }
        let text = project.run_with("IC_FORMAT", "text", line);
        assert!(text.stderr.starts_with("error: "), "{line}: {text:?}");
    }
}

#[test]
fn quiet_leaves_out_hints_and_warnings() {
    let project = Project::new();
    story(&project);
    let loud = project.run("run status 99999999 --format text");
    let quiet = project.run("run status 99999999 --format text --quiet");
    assert!(loud.stderr.contains("hint:") && !quiet.stderr.contains("hint:"));
    assert!(quiet.stderr.starts_with("error:"), "an error is always said");
    let quiet = project.run("run advance @ --priority 2 --format text --quiet");
    assert_eq!((quiet.code, quiet.stderr.as_str()), (Some(0), ""));
}

#[test]
fn verbose_names_the_ledger_on_stderr() {
    let project = Project::new();
    chain(&project, "a,b", "a");
    let outcome = project.run("run status @ -v");
    assert!(outcome.stderr.contains(&project.cli.name_of_ledger()), "{outcome:?}");
    assert_eq!(outcome.json(), project.json("run status @"));
}
