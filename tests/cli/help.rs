//! The help of the whole tree, and what help is not.

use std::fmt::Write;

use crate::support::{Project, args, snapshot, verbs};

#[test]
fn the_help_of_the_whole_tree() {
    let project = Project::without_ledger();
    let groups = [
        "",
        "run",
        "run agent",
        "run artifact",
        "dispatch",
        "compensation",
        "workflow",
        "gate",
        "events",
        "events cursor",
        "completions",
    ];
    let mut verbs: Vec<String> =
        verbs().into_iter().map(|(verb, _)| verb["ic ".len()..].to_owned()).collect();
    verbs.retain(|verb| !verb.contains("--"));
    let mut text = String::new();
    for name in groups.iter().map(ToString::to_string).chain(verbs) {
        let outcome = project.run(&format!("{name} --help"));
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{name}");
        let _ =
            writeln!(text, "$ ic {name}{}--help\n{}", if name.is_empty() { "" } else { " " }, outcome.stdout);
    }
    snapshot("help", text.trim_end());
}

#[test]
fn help_has_three_spellings() {
    let project = Project::without_ledger();
    let long = project.ok("run rollback --help");
    assert_eq!(project.ok("help run rollback"), long);
    assert!(long.contains("--dry-run") && long.contains("what came before it"), "{long}");
    let short = project.ok("run rollback -h");
    assert!(short.contains("--dry-run") && !short.contains("what came before it"), "{short}");
    assert_eq!(project.ok("help"), project.ok("--help"));
}

#[test]
fn the_global_options_are_named_on_every_page_and_explained_on_the_first() {
    let project = Project::without_ledger();
    for line in ["status -h", "run --help", "run rollback --help", "help events cursor reset"] {
        let page = project.ok(line);
        assert!(
            page.contains("Global options (--json, ") && page.trim_end().ends_with("): ic --help"),
            "{line}: {page}"
        );
        assert!(!page.contains("--busy-timeout"), "{line}: {page}");
    }
    assert!(project.ok("--help").contains("--busy-timeout <DUR>"));
    // A value that is the word `help` asks for none.
    let created = project.run("run create --goal help");
    assert_eq!(created.error(), "no_ledger");
    assert!(project.ok("run create --goal help -h").contains("--goal <TEXT>"));
}

#[test]
fn a_missing_verb_is_a_usage_error_and_no_help() {
    let project = Project::without_ledger();
    for line in ["", "run", "events cursor"] {
        let outcome = project.run(line);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(3), ""), "{line}");
        assert_eq!(outcome.error(), "usage", "{line}");
    }
}

#[test]
fn the_examples_can_be_parsed() {
    let project = Project::new();
    let manual = std::fs::read_to_string(crate::support::docs("CLI.md")).expect("docs/CLI.md");
    let mut seen = 0;
    for line in manual
        .lines()
        .filter(|line| line.starts_with("ic ") && !line.contains(['|', '"', '$', '\\', '~', '>']))
    {
        let line = line.split("   ").next().unwrap_or(line).trim();
        if line.contains("OPTIONS") || line.contains('<') || line.starts_with("ic init") {
            continue;
        }
        // A page is served until it is ended: where there is no ledger it is parsed, and there is nothing to serve.
        let nowhere = if line.starts_with("ic ui") { args("--db nowhere/ic.db") } else { Vec::new() };
        let outcome = project.run_words(args(line).into_iter().skip(1).chain(nowhere));
        if outcome.code == Some(3) {
            let error = outcome.error();
            assert!(!matches!(error.as_str(), "usage" | "invalid_value"), "{line}: {outcome:?}");
        }
        seen += 1;
    }
    assert!(seen > 20, "{seen} examples");
}
