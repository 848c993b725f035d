//! `docs/UNDO.md`: the commands in its tables exist with their flags, and the refusals in them are error codes.

use super::page::prose;
use super::session::Session;
use super::{source, text_of};

/// The words in backticks of a line.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The rows of the page's tables.
fn rows(page: &str) -> Vec<&str> {
    prose(page).into_iter().map(|(_, line)| line).filter(|line| line.starts_with("| ")).collect()
}

/// Fails if a command of the page is refused as wrong usage. The shell stands where no ledger is, so that nothing more is tried.
fn all_parse(page: &str) -> usize {
    let mut session = Session::new();
    let commands = rows(page).into_iter().flat_map(spans).filter(|span| span.starts_with("ic "));
    let mut seen = 0;
    for command in commands {
        let said = session.answer(&format!("IC_FORMAT=json {command}"));
        assert!(said.contains(r#""code":"no_ledger""#), "{command}\n{said}");
        seen += 1;
    }
    seen
}

#[test]
fn every_command_of_its_tables_is_one() {
    let seen = all_parse(&text_of("docs/UNDO.md"));
    assert!(seen > 30, "{seen} commands");
}

#[test]
#[should_panic(expected = "ic undo --no-such-flag")]
fn a_command_that_is_none_is_noticed() {
    all_parse("| a step | `ic undo --no-such-flag` |\n");
}

#[test]
fn every_flag_that_its_tables_name_alone_is_one() {
    let page = text_of("docs/UNDO.md");
    let mut session = Session::new();
    let help = session.answer("ic undo --help") + &session.answer("ic run rollback --help");
    let mut seen = 0;
    for span in rows(&page).into_iter().flat_map(spans).filter(|span| span.starts_with("--")) {
        for flag in span.split([' ', '=']).filter(|word| word.starts_with("--")) {
            let is_listed = help.split_whitespace().any(|word| word == flag);
            assert!(is_listed, "{span}: there is no {flag}");
            seen += 1;
        }
    }
    assert!(seen > 10, "{seen} flags");
}

#[test]
fn every_refusal_that_it_names_has_a_page() {
    let page = text_of("docs/UNDO.md");
    let refused = page.split_once("\n## When it is refused\n").expect("the section").1;
    let refused = refused.split_once("\n## ").expect("its end").0;
    let mut seen = 0;
    for row in rows(refused).into_iter().skip(1) {
        for code in spans(row.split('|').nth(1).expect("a first cell")) {
            assert!(source(&format!("docs/errors/{code}.md")).is_file(), "there is no code {code}");
            seen += 1;
        }
    }
    assert!(seen > 15, "{seen} codes");
}
