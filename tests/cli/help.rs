//! The help of the whole tree, and what is no help. The text of each verb is compared in `docs/CLI.md` alone.

use std::fmt::Write;

use crate::support::{Project, args, snapshot, verbs};

/// Every verb, without `ic` before it.
fn leaves() -> Vec<String> {
    let mut verbs: Vec<String> = verbs().into_iter().map(|(verb, _)| verb["ic ".len()..].to_owned()).collect();
    verbs.retain(|verb| !verb.contains("--"));
    verbs
}

#[test]
fn the_help_of_each_noun() {
    let project = Project::without_ledger();
    let groups = [
        "", "run", "run agent", "run artifact", "dispatch", "compensation", "workflow", "gate", "events",
        "events cursor", "completions",
    ];
    let mut text = String::new();
    for name in groups {
        let outcome = project.run(&format!("{name} --help"));
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{name}");
        let page = outcome.stdout;
        let _ = writeln!(text, "$ ic {name}{}--help\n{page}", if name.is_empty() { "" } else { " " });
    }
    snapshot("help", text.trim_end());
}

/// The words of a text, however its lines are broken. The manual shows `[OPTIONS]` where there are global ones only, too.
fn words(text: &str) -> String {
    text.split_whitespace().filter(|word| *word != "[OPTIONS]").collect::<Vec<_>>().join(" ")
}

/// What a line of a verb's section in `docs/CLI.md` says that its help must say: the flag and the meaning of an argument, a line of
/// usage or of an example, a paragraph.
fn said(line: &str) -> Vec<String> {
    if line.is_empty() || line.starts_with("```") || line.starts_with("| argument") || line.starts_with("|---") {
        return Vec::new();
    }
    let Some(row) = line.strip_prefix("| `") else { return vec![words(line.trim_end_matches('.'))] };
    let (argument, meaning) = row.split_once("` | ").expect("an argument and its meaning");
    let flag = argument.split_whitespace().find(|word| word.starts_with("--")).unwrap_or_default();
    let flag = flag.split('[').next().unwrap_or_default();
    // Defaults and possible values are laid out in another way.
    let ends = [" (required)", ": `", " [default: ", " |"];
    let end = ends.iter().filter_map(|end| meaning.find(end)).min().expect("the end of a row");
    let meaning = meaning[..end].replace("\\|", "|").replace("\\<", "<");
    vec![flag.trim_end_matches(',').to_owned(), words(&meaning)]
}

#[test]
fn the_help_of_a_verb_says_what_the_manual_says() {
    let project = Project::without_ledger();
    let manual = std::fs::read_to_string(crate::support::docs("CLI.md")).expect("docs/CLI.md");
    let (mut seen, verbs) = (0, leaves());
    for name in &verbs {
        let (_, section) = manual.split_once(&format!("\n## ic {name}\n")).expect("the section of a verb");
        let section = section.split("\n## ").next().unwrap_or_default();
        let outcome = project.run(&format!("{name} --help"));
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{name}");
        let page = words(&outcome.stdout);
        for part in section.lines().flat_map(said) {
            assert!(page.contains(&part), "ic {name} --help does not say {part:?}:\n{}", outcome.stdout);
            seen += 1;
        }
        // Usage and examples are copied, and stand on one line each.
        let is_broken = |line: &&str| !line.starts_with("Usage: ") && !section.contains(line.trim_start());
        let widest = outcome.stdout.lines().filter(is_broken).map(|line| line.chars().count()).max();
        assert!(widest <= Some(100), "{name}: {widest:?} columns");
    }
    assert!(verbs.len() > 80 && seen > 600, "{} verbs, {seen} parts", verbs.len());
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
fn ic_alone_on_a_terminal_is_the_status() {
    let project = Project::new();
    project.ok("run create --goal tea --phases a,b");
    let Some(terminal) = ic_testkit::Terminal::open(&project.command::<&str>([]), project.root()) else { return };
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("tea") && shown.contains("next"), "{shown}");
}

#[test]
fn the_examples_can_be_parsed() {
    let project = Project::new();
    let manual = std::fs::read_to_string(crate::support::docs("CLI.md")).expect("docs/CLI.md");
    let mut seen = 0;
    for line in manual.lines().filter(|line| line.starts_with("ic ") && !line.contains(['|', '"', '$', '\\', '~', '>']))
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
