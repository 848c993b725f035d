//! The one line of a command's output that tells why it failed, for people.

use serde_json::Value;

/// The longest line that is shown whole, in characters; a longer one would hide what is beside it on a screen.
const LONGEST: usize = 300;

/// What happened, and the last line of output. An error of `ic` itself is shown as people see it: its code, its message and its hint.
pub fn with_tail(what: &str, tail: &[u8]) -> String {
    match last_line(tail) {
        Some(line) => format!("{what}: {line}"),
        None => what.to_owned(),
    }
}

fn last_line(tail: &[u8]) -> Option<String> {
    // No ledger on PostgreSQL can keep a NUL character.
    let text = String::from_utf8_lossy(tail).replace('\0', "\u{fffd}");
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(error_of(line).unwrap_or_else(|| match line.chars().count() {
        // Half an object says nothing to a person and misleads a program.
        length if length > LONGEST && is_json(line, tail.len()) => {
            format!("its last line is {length} characters of JSON, which its log has")
        }
        _ => shortened(line),
    }))
}

/// Whether a line is JSON, or its end: of the output only the last `kept` bytes are known, so it may begin anywhere.
fn is_json(line: &str, kept: usize) -> bool {
    // With its line end, the line fills all that was kept, so its beginning may be missing.
    line.starts_with(['{', '[']) || (line.ends_with(['}', ']']) && line.len() + 1 >= kept)
}

/// The error that a line of `ic` tells, if it is one.
fn error_of(line: &str) -> Option<String> {
    // A program may write something before it: `prefix: {"error":{"code":...}}`.
    let whole: Value = serde_json::from_str(line.get(line.find("{\"error\"")?..)?).ok()?;
    let error = whole.get("error")?;
    let (code, message) = (error.get("code")?.as_str()?, error.get("message")?.as_str()?);
    let told = format!("{code}: {}", shortened(message));
    Some(match error.get("hint").and_then(Value::as_str) {
        Some(hint) => format!("{told} (hint: {})", shortened(hint)),
        None => told,
    })
}

/// A text, cut between characters, with an ellipsis where something is missing.
fn shortened(text: &str) -> String {
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    // Cut at a word, if one ends near: half a path or number would be read as another one.
    let kept: String = text.chars().take(LONGEST).collect();
    let end = kept.rfind(char::is_whitespace).filter(|end| *end > kept.len() * 2 / 3).unwrap_or(kept.len());
    format!("{} …", kept[..end].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(tail: &str) -> String {
        with_tail("it ended with exit code 1", tail.as_bytes())
    }

    #[test]
    fn an_error_of_ic_is_told_and_not_quoted() {
        let line = r#"{"error":{"code":"conflict","message":"a.md would be overwritten.","hint":"add --force","details":{"n":[1]}}}"#;
        let expected = "it ended with exit code 1: conflict: a.md would be overwritten. (hint: add --force)";
        assert_eq!(told(&format!("begun\n{line}\n\n")), expected);
        assert_eq!(told(&format!("prefix: {line}")), expected);
        let without = line.replace(r#","hint":"add --force""#, "").replace(r#""hint":"add --force","#, "");
        assert_eq!(told(&without), "it ended with exit code 1: conflict: a.md would be overwritten.");
    }

    #[test]
    fn an_error_that_is_long_is_no_cut_json() {
        let details = "x".repeat(9_000);
        let line = format!(
            r#"{{"error":{{"code":"conflict","message":"a.md would be overwritten.","hint":"h","details":{{"p":"{details}"}}}}}}"#
        );
        assert_eq!(told(&line), "it ended with exit code 1: conflict: a.md would be overwritten. (hint: h)");
        for end in [&line[line.len() - 4096..], &line.replacen("{\"error\"", "{\"failed\"", 1)] {
            let end = told(end);
            assert!(!end.contains(['{', '}', '"']) && end.contains("characters of JSON"), "{end}");
        }
    }

    #[test]
    fn other_lines_are_cut_between_words_and_say_so() {
        assert_eq!(told("no network\n"), "it ended with exit code 1: no network");
        assert_eq!(told(" \n"), "it ended with exit code 1");
        assert_eq!(told("a\0b"), "it ended with exit code 1: a\u{fffd}b");
        let words = told(&"word ".repeat(100));
        assert!(words.ends_with("word …") && words.chars().count() < 340, "{words}");
        let wide = told(&"計".repeat(400));
        assert_eq!(wide.chars().filter(|c| *c == '計').count(), LONGEST);
        assert!(wide.ends_with(" …"), "{wide}");
        let json = told(r#"{"level":"error","message":"x"}"#);
        assert_eq!(
            json, r#"it ended with exit code 1: {"level":"error","message":"x"}"#,
            "another program's own words"
        );
    }
}
