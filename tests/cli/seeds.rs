//! `docs/SEEDS.md` names commands, flags, paths and items; each of ours must be there.

use std::path::{Path, PathBuf};

use crate::support::{Project, docs};

/// The right side of every row of the page, and the left side too where the right one begins with "the same".
fn ours() -> Vec<String> {
    let page = std::fs::read_to_string(docs("SEEDS.md")).expect("docs/SEEDS.md");
    let mut cells = Vec::new();
    for row in page.lines().filter(|line| line.starts_with("| ")) {
        let row = row.trim_matches('|').trim();
        let (theirs, ours) = row.split_once(" | ").unwrap_or_else(|| panic!("{row} has one cell"));
        if ours.starts_with("the same") && theirs.starts_with("`ic ") {
            cells.push(theirs.to_owned());
        }
        cells.push(ours.to_owned());
    }
    assert!(cells.len() > 100, "{} rows", cells.len());
    cells
}

/// What stands in backticks.
fn spans() -> Vec<String> {
    let cells = ours();
    let spans = cells.iter().flat_map(|cell| cell.split('`').skip(1).step_by(2));
    spans.map(str::to_owned).collect()
}

/// The long flags of a text: `--to-phase=P` is `--to-phase`.
fn flags(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !(c.is_ascii_lowercase() || c == '-'));
    words.filter(|word| word.starts_with("--") && word.len() > 2).map(str::to_owned).collect()
}

/// The help of the verb with which the words begin, and that of the program, which has the global options.
fn help(project: &Project, span: &str) -> String {
    let is_verb = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-');
    let words: Vec<&str> = span.split_whitespace().skip(1).take_while(is_verb).collect();
    assert!(!words.is_empty(), "{span} names no verb");
    let outcome = project.run_words(words.iter().copied().chain(["--help"]));
    assert_eq!(outcome.code, Some(0), "{span}: there is no such verb: {}", outcome.stderr);
    outcome.stdout + &project.ok("--help")
}

/// Whether a help lists a flag, rather than one that it begins.
fn lists(help: &str, flag: &str) -> bool {
    flags(help).iter().any(|listed| listed == flag)
}

#[test]
fn each_command_and_flag_parses() {
    let project = Project::without_ledger();
    let manual = std::fs::read_to_string(docs("CLI.md")).expect("docs/CLI.md");
    let mut seen = 0;
    for span in spans() {
        let known = if span.starts_with("ic ") {
            help(&project, &span)
        } else if span.starts_with("--") {
            manual.clone()
        } else {
            continue;
        };
        for flag in flags(&span) {
            assert!(lists(&known, &flag), "{span}: there is no {flag}");
        }
        seen += 1;
    }
    assert!(seen > 40, "{seen} commands and flags");
}

/// The root of the sources.
fn root() -> PathBuf {
    docs("..")
}

#[test]
fn each_path_exists() {
    let mut seen = 0;
    for span in spans() {
        let is_path = ["crates/", "docs/", "tests/", "migrations/", "scripts/"].iter().any(|dir| span.starts_with(dir));
        if !is_path {
            continue;
        }
        // A test is named behind its file.
        let path = root().join(span.split("::").next().unwrap_or_default());
        assert!(path.exists(), "there is no {span}");
        seen += 1;
    }
    assert!(seen > 35, "{seen} paths");
}

#[test]
fn each_test_is_in_its_file() {
    let named: Vec<String> = spans().into_iter().filter(|span| span.contains(".rs::")).collect();
    for span in &named {
        let (file, test) = span.split_once("::").expect("a file and a test");
        let source = std::fs::read_to_string(root().join(file)).unwrap_or_else(|e| panic!("{span}: {e}"));
        let at = source.find(&format!("fn {test}(")).unwrap_or_else(|| panic!("{file} has no {test}"));
        // The attribute stands on a line before it, after those of a proptest too.
        let before: Vec<&str> = source[..at].lines().rev().take(4).collect();
        assert!(before.iter().any(|line| line.trim() == "#[test]"), "{span} is no test");
    }
    assert!(named.len() > 60, "{} tests", named.len());
}

#[test]
fn each_promise_has_a_test_or_says_why_not() {
    let page = std::fs::read_to_string(docs("SEEDS.md")).expect("docs/SEEDS.md");
    let parts: Vec<&str> = page.split("### Promise by promise").skip(1).collect();
    assert_eq!(parts.len(), 5, "one for each seed");
    let mut without = Vec::new();
    for part in parts {
        let rows = part.split("\n## ").next().unwrap_or_default().lines().filter(|line| line.starts_with("| "));
        let rows: Vec<&str> = rows.skip(1).collect();
        assert!(rows.len() >= 10, "{rows:?}");
        for row in rows {
            let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
            assert_eq!(cells.len(), 3, "{row}");
            if !cells[2].contains(".rs::") {
                without.push(cells[0].trim());
            }
        }
    }
    assert_eq!(without, ["discovery layer", "TypeScript compiles, jest passes, branch coverage of 95 %"]);
}

/// Every source of a crate, one after the other.
fn sources(directory: &Path, text: &mut String) {
    for entry in std::fs::read_dir(directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&std::fs::read_to_string(&path).expect("a source"));
        }
    }
}

#[test]
fn each_item_is_defined_in_its_crate() {
    let mut seen = 0;
    for span in spans().iter().filter(|span| span.starts_with("ic_") && span.contains("::")) {
        let (name, path) = span[3..].split_once("::").expect("a path");
        let mut text = String::new();
        sources(&root().join("crates").join(name).join("src"), &mut text);
        let last = path.rsplit("::").next().expect("an item");
        let items = match path.split_once('{') {
            Some((_, group)) => group.trim_end_matches('}').split(", ").collect(),
            None => vec![last],
        };
        for item in items {
            let is_there = ["fn", "struct", "enum", "trait", "type", "mod"].iter().any(|kind| {
                let start = format!("{kind} {item}");
                let mut ends = text.match_indices(&start).map(|(at, _)| text[at + start.len()..].chars().next());
                ends.any(|next| next.is_none_or(|c| !c.is_alphanumeric() && c != '_'))
            });
            assert!(is_there, "{span}: ic-{name} has no {item}");
            seen += 1;
        }
    }
    assert!(seen > 15, "{seen} items");
}

#[test]
fn the_binary_does_not_link_the_api_for_rust_programs() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).expect("Cargo.lock");
    let quoted = |line: &str| line.split('"').nth(1).unwrap_or_default().to_owned();
    let needs_of = |name: &str| -> Vec<String> {
        let start = format!("\nname = \"{name}\"\n");
        let package = lock.split("[[package]]").find(|package| package.contains(&start));
        let package = package.unwrap_or_else(|| panic!("no package {name}"));
        package.lines().filter(|line| line.starts_with(" \"ic-")).map(quoted).collect()
    };
    let mut linked = vec!["ic".to_owned()];
    let mut at = 0;
    while let Some(name) = linked.get(at) {
        for need in needs_of(name) {
            if !linked.contains(&need) {
                linked.push(need);
            }
        }
        at += 1;
    }
    assert!(linked.contains(&"ic-workflow".to_owned()), "{linked:?}");
    assert!(!linked.contains(&"ic-tasks".to_owned()), "{linked:?}");
    assert!(needs_of("ic-tasks").contains(&"ic-effects".to_owned()));
}
