//! `docs/errors/`: a page for every code, and no page without one.

use std::collections::BTreeSet;

use ic_base::Code;

use super::files::{docs, names};
use crate::exit::ExitStatus;

fn page(code: Code) -> String {
    std::fs::read_to_string(docs(&format!("errors/{}.md", code.as_str())))
        .unwrap_or_else(|e| panic!("docs/errors/{}.md: {e}", code.as_str()))
}

fn exit(code: Code) -> u8 {
    ExitStatus::from(code.kind()).code()
}

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let codes: BTreeSet<String> = Code::ALL.iter().map(|code| code.as_str().to_owned()).collect();
    let mut pages = names("errors", "md");
    pages.remove("README");
    assert_eq!(pages, codes);
}

#[test]
fn every_page_says_what_happened_what_it_looks_like_and_what_to_do() {
    for code in Code::ALL {
        let page = page(*code);
        let name = code.as_str();
        assert!(page.starts_with(&format!("# {name}\n\nExit {}. ", exit(*code))), "{name}: title and exit");
        let headings: Vec<&str> = page.lines().filter(|line| line.starts_with("## ")).collect();
        assert_eq!(headings, ["## What happened", "## What it looks like", "## What to do"], "{name}");
        let prose = page.split("```").step_by(2);
        assert!(prose.flat_map(str::lines).all(|l| l.chars().count() <= 120), "{name}: a line is too long");
        for section in page.split("\n## ").skip(1) {
            let (title, body) = section.split_once('\n').unwrap_or((section, ""));
            assert!(body.trim().len() > 20, "{name}: nothing is said under {title:?}");
        }
    }
}

#[test]
fn the_table_of_codes_is_complete() {
    let readme = std::fs::read_to_string(docs("errors/README.md")).expect("docs/errors/README.md");
    let rows: Vec<&str> = readme.lines().filter(|line| line.starts_with("| [`")).collect();
    assert_eq!(rows.len(), Code::ALL.len(), "one row a code");
    let mut before = 0;
    for row in rows {
        let (code, rest) = row["| [`".len()..].split_once('`').expect("a code");
        let known = Code::ALL.iter().find(|c| c.as_str() == code).unwrap_or_else(|| panic!("{code}"));
        assert!(rest.starts_with(&format!("]({code}.md) | {} | ", exit(*known))), "{row}");
        assert!(exit(*known) >= before, "{code} does not stand with its exit code");
        before = exit(*known);
        let line = rest.rsplit(" | ").next().unwrap_or_default();
        assert!(line.trim_end_matches(" |").len() > 10, "{row}");
    }
}
