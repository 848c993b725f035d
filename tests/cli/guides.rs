//! The guides: every command in them is typed, and its output must be the one that they show.
//!
//! A block that is headed by a language and a file's name is that file. In a block of `console`, `$ ` begins a command and
//! `> ` continues it; the rest is its output, and `[exit N]` its exit code if that is not 0. A guide is one session in one
//! shell, which begins in an empty home directory. How long something took, the number of a process and digests may differ.
//! `IC_UPDATE=1 cargo test -p ic --test cli guides` writes the answers.

mod languages;
mod links;
mod page;
mod session;
mod undo;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use page::{Part, exchanges, parts};
use session::{Session, lasting};

/// A path from the top of the sources.
fn source(path: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path)
}

fn text_of(page: &str) -> String {
    std::fs::read_to_string(source(page)).unwrap_or_else(|e| panic!("{page}: {e}"))
}

/// The guide as it would be if it told the truth.
fn played(guide: &str) -> String {
    let mut session = Session::new();
    let mut out = String::new();
    for part in parts(guide) {
        match part {
            Part::Text(line) => {
                let _ = writeln!(out, "{line}");
            }
            Part::File { name, content } => {
                session.write(name, &content);
                out.push_str(&content);
            }
            Part::Dialogue(lines) => {
                for (command, shown) in exchanges(&lines) {
                    let _ = writeln!(out, "$ {}", command.join("\n> "));
                    let said = session.answer(&command.join("\n"));
                    let shown = shown.iter().fold(String::new(), |text, line| text + line + "\n");
                    // A difference only in parts that may differ is kept.
                    out.push_str(if lasting(&said) == lasting(&shown) { &shown } else { &said });
                }
            }
        }
    }
    out
}

/// Fails if the page shows something else than what happens.
fn holds(page: &str) {
    let guide = text_of(page);
    let played = played(&guide);
    if std::env::var_os("IC_UPDATE").is_some_and(|value| value == "1") {
        return std::fs::write(source(page), &played).expect("write the guide");
    }
    for (number, (shown, said)) in guide.lines().zip(played.lines()).enumerate() {
        assert_eq!(shown, said, "{page}, line {}; IC_UPDATE=1 writes it", number + 1);
    }
    assert_eq!(guide, played, "{page}");
}

/// One test for each page, so that they run side by side, and the list of them.
macro_rules! guides {
    ($($name:ident: $page:literal,)*) => {
        const GUIDES: &[&str] = &[$($page),*];
        $(#[test]
        fn $name() {
            holds($page);
        })*
    };
}

guides! {
    readme: "README.md",
    readme_zh_hant: "README.zh-Hant.md",
    readme_zh_hans: "README.zh-Hans.md",
    tour: "docs/TOUR.md",
    tour_zh_hant: "docs/TOUR.zh-Hant.md",
    tour_zh_hans: "docs/TOUR.zh-Hans.md",
    undo: "docs/UNDO.md",
    workflows: "docs/WORKFLOWS.md",
}

/// Pages whose answers are written or compared by another test, or come from circumstances that are not at hand.
fn is_shown_elsewhere(page: &str) -> bool {
    page.starts_with("docs/errors/")
}

#[test]
fn every_page_that_shows_an_answer_is_checked() {
    for page in links::pages() {
        if GUIDES.contains(&page.as_str()) || is_shown_elsewhere(&page) {
            continue;
        }
        for part in parts(&text_of(&page)) {
            if let Part::Dialogue(lines) = part {
                for (command, shown) in exchanges(&lines) {
                    assert_eq!(shown, Vec::<&str>::new(), "{page} shows an answer to {command:?}");
                }
            }
        }
    }
}

#[test]
fn every_command_of_every_other_page_is_one() {
    for page in links::pages() {
        if GUIDES.contains(&page.as_str()) || is_shown_elsewhere(&page) {
            continue;
        }
        let mut session = Session::new();
        for part in parts(&text_of(&page)) {
            let Part::Dialogue(lines) = part else { continue };
            for (command, _) in exchanges(&lines) {
                let command = command.join("\n");
                if command.starts_with("ic ") && !command.contains("--follow") {
                    let said = session.answer(&format!("IC_FORMAT=json {command}"));
                    assert!(!said.contains(r#""code":"usage""#), "{page}: {command}\n{said}");
                }
            }
        }
    }
}

#[test]
fn a_guide_that_lies_is_noticed() {
    let guide = "# A\n\n```yaml a.yaml\nname: a\n```\n\n```console\n$ cat a.yaml\nname: b\n$ false\n```\n";
    let truth = "# A\n\n```yaml a.yaml\nname: a\n```\n\n```console\n$ cat a.yaml\nname: a\n$ false\n[exit 1]\n```\n";
    assert_eq!(played(guide), truth);
    assert_eq!(played(truth), truth);
}

#[test]
fn a_session_is_one_shell_on_a_terminal() {
    let guide = "```console\n$ mkdir shop && cd shop\n$ pwd\n/home/ann/shop\n$ it=tea\n$ echo \"$it\"\ntea\n$ ic init\n\
                 Created the ledger /home/ann/shop/.ic/ic.db\n$ ic run current\nerror: /home/ann/shop has no active run.\n\
                 hint: create one: ic run create --goal TEXT\n[exit 1]\n$ ic run list | cat\n[]\n$ echo out; echo err >&2; echo out\n\
                 out\nerr\nout\n```\n";
    assert_eq!(played(guide), guide);
}
