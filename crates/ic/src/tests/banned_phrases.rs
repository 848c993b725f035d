//! The words of our own: what is not said in help, messages, README and the English docs, because it needs a second reading.

use std::fs;
use std::path::{Path, PathBuf};

use super::hints::sources;
use super::verbs::tree;

/// A word, and what is said in its place. It is found where it stands alone, not within another one.
const WORDS: [(&str, &str); 44] = [
    ("somebody", "who it is: others, you, another user, a process"),
    ("someone", "who it is: others, you, another user, a process"),
    ("nobody", "what is not there: no process, no record, not known"),
    ("whoever", "who it is"),
    ("go on with", "resume, continue"),
    ("goes on with", "resumes, continues"),
    ("stands against", "refuses"),
    ("stand against", "refuse"),
    ("is said by", "a sentence with a subject: X says"),
    ("given up", "aborted, pruned, ended"),
    ("give up", "abort, prune, end"),
    ("gives up", "aborts, prunes, ends"),
    ("giving up", "aborting, pruning, ending"),
    ("taken back", "undone (what a person undoes), rolled back (a run), restored (files)"),
    ("take back", "undo, roll back, restore"),
    ("takes back", "undoes, rolls back, restores"),
    ("put back", "restored, undone"),
    ("called off", "cancelled"),
    ("call off", "cancel"),
    ("all the same", "anyway"),
    ("is not said", "what is missing: no checkpoint was named"),
    ("is no terminal", "is not a terminal"),
    ("no longer counts", "counts no longer; whose reports, whose work"),
    ("did not hold still", "changed"),
    ("look at the tree", "capture"),
    ("looks at the tree", "captures the tree"),
    ("of then", "of that time, as it was"),
    ("lies in place of", "is at the path of"),
    ("never told", "never reported"),
    ("at work on it", "executes it"),
    ("way back", "undo, abort"),
    ("held back", "blocked, kept"),
    ("passed over", "skipped, left out"),
    ("pass over", "skip, leave out"),
    ("hand out", "create (a dispatch)"),
    ("handed out", "created (a dispatch)"),
    ("was meant", "the right one, the other one"),
    ("goes on no more", "has ended"),
    ("to go on:", "to resume, to advance"),
    ("mend", "fix, repair"),
    ("mended", "fixed, repaired"),
    ("mends", "fixes, repairs"),
    ("cut off half way", "interrupted"),
    ("works outside of the ledger", "changes more than the ledger"),
];

/// `words | where | why`, a line each.
const EXCEPTIONS: &str = include_str!("words/exceptions.txt");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where a word stands in a line of prose.
fn found_in(line: &str) -> Option<&'static (&'static str, &'static str)> {
    let line = line.to_lowercase();
    WORDS.iter().find(|(word, _)| {
        line.match_indices(word).any(|(at, _)| {
            let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
            !is_letter(line[..at].chars().next_back()) && !is_letter(line[at + word.len()..].chars().next())
        })
    })
}

/// The string literals of a line of Rust, and text that goes on from the line before.
fn said(line: &str, is_help: bool) -> String {
    let trimmed = line.trim_start();
    if let Some(help) = trimmed.strip_prefix("///") {
        return if is_help { help.to_owned() } else { String::new() };
    }
    if trimmed.starts_with("//") {
        return String::new();
    }
    let literals: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
    if !literals.is_empty() {
        return literals.join(" ");
    }
    // A literal over several lines: no code has only words and a full stop.
    let is_prose = trimmed.contains(' ') && !trimmed.contains([';', '{', '}', '=', '(', ')']);
    if is_prose { trimmed.to_owned() } else { String::new() }
}

fn is_excepted(file: &str, word: &str, line: &str) -> bool {
    EXCEPTIONS.lines().filter(|one| !one.starts_with('#')).any(|one| {
        let mut parts = one.split('|').map(str::trim);
        let (words, place) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        words.contains(word) && line.to_lowercase().contains(words) && file.ends_with(place)
    })
}

fn look(file: &str, lines: impl Iterator<Item = String>, faults: &mut Vec<String>) {
    for (at, line) in lines.enumerate() {
        if let Some((word, instead)) = found_in(&line)
            && !is_excepted(file, word, &line)
        {
            faults.push(format!("{file}:{}: {word:?}; say: {instead}", at + 1));
        }
    }
}

fn look_at_docs(directory: &Path, faults: &mut Vec<String>) -> usize {
    let mut seen = 0;
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let is_page = path.is_file() && path.extension().is_some_and(|e| e == "md");
        if is_page && !name.contains(".zh-") {
            let text = fs::read_to_string(&path).expect("a page");
            look(&path.display().to_string(), text.lines().map(str::to_owned), faults);
            seen += 1;
        }
    }
    seen
}

#[test]
fn what_users_read_has_none_of_the_words_of_our_own() {
    let mut faults = Vec::new();
    let mut stack = vec![tree()];
    let mut verbs = 0;
    while let Some(mut command) = stack.pop() {
        let help = command.render_long_help().to_string();
        let name = format!("help of {}", command.get_bin_name().unwrap_or(command.get_name()));
        look(&name, help.lines().map(str::to_owned), &mut faults);
        stack.extend(command.get_subcommands().cloned());
        verbs += 1;
    }
    assert!(verbs > 80, "only {verbs} verbs were seen");

    let mut files = Vec::new();
    for part in fs::read_dir(root().join("crates")).expect("the crates") {
        let part = part.expect("an entry").path();
        let is_for_tests = ["testkit", "fuzzing"].iter().any(|name| part.ends_with(name));
        if !is_for_tests {
            sources(&part.join("src"), &mut files);
        }
    }
    assert!(files.len() > 300, "only {} files were seen", files.len());
    for path in files {
        let text = fs::read_to_string(&path).expect("a source");
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        // What clap shows stands in doc comments of these; `ic --help` was read above, and other comments are for us.
        let lines = text.lines().map(|line| said(line, false));
        look(&path.display().to_string(), lines, &mut faults);
    }

    let readme = fs::read_to_string(root().join("README.md")).expect("README.md");
    look("README.md", readme.lines().map(str::to_owned), &mut faults);
    let pages = look_at_docs(&root().join("docs/errors"), &mut faults);
    let docs = look_at_docs(&root().join("docs"), &mut faults);
    assert!(pages > 50 && docs > 10, "only {pages} pages and {docs} documents were seen");
    assert!(faults.is_empty(), "{} lines:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn every_exception_is_needed() {
    for one in EXCEPTIONS.lines().filter(|one| !one.starts_with('#') && !one.is_empty()) {
        let parts: Vec<&str> = one.split('|').map(str::trim).collect();
        let [words, place, why] = parts[..] else { panic!("not `words | where | why`: {one}") };
        assert!(!why.is_empty(), "{one}");
        let text = fs::read_to_string(root().join(place)).expect("the file of an exception").to_lowercase();
        assert!(text.contains(words), "nothing says {words:?} in {place} any more");
    }
}

#[test]
fn a_word_is_found_as_a_word_alone() {
    assert!(found_in("Nobody recorded it.").is_some());
    assert!(found_in("the run was taken back.").is_some());
    assert!(found_in("it was mistaken backwards").is_none());
    assert_eq!(said("    /// Given up.", true), " Given up.");
    assert_eq!(said("    // given up", true), "");
    assert_eq!(said("let taken = given(up);", false), "");
}
