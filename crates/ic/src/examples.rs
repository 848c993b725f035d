//! What stands after the arguments of a verb: examples first, then notes. Help and the manual lay them out, each in its own way.

use clap::Command;

/// The examples of a verb, a line each, and the notes after them.
pub(crate) fn parts(verb: &Command) -> (Vec<String>, String) {
    let after = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
    // The first line is the heading. Examples are indented, and the first line that is not begins the notes.
    let mut lines = after.lines().skip(1).peekable();
    let mut examples = Vec::new();
    while let Some(line) = lines.next_if(|line| line.is_empty() || line.starts_with("  ")) {
        examples.push(line.strip_prefix("  ").unwrap_or(line).to_owned());
    }
    while examples.last().is_some_and(String::is_empty) {
        examples.pop();
    }
    (examples, lines.collect::<Vec<_>>().join("\n"))
}
