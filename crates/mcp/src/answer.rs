//! Turns what a command printed into the answer of a tool.

use ic_base::Diagnosis;
use ic_base::display::escape_controls;
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, ErrorCode};
use serde_json::{Value, json};

use crate::commands::Said;

/// The answer of a call that succeeded. `page`: the most entries that a page of a list holds; `None` for what is no list.
///
/// Warnings become its field `notes`: some clients hand their model the structured answer alone, and no text beside it.
pub(crate) fn told(said: Said, page: Option<u32>) -> CallToolResult {
    // The command of every tool prints JSON. If one did not, its answer would be null.
    let mut value: Value = serde_json::from_str(&said.json).unwrap_or_default();
    let mut notes = said.notes;
    if said.is_partly {
        notes.push("It was done in part only: what is left is named in this answer.".to_owned());
    }
    if let Some(page) = page {
        let before = next_before(&mut value, page);
        value = json!({ "entries": value, "next_before": before });
    }
    // The command's own JSON, if nothing is added: in it every control character is escaped, so that whatever shows it shows no command to
    // a terminal.
    let is_whole = page.is_none() && notes.is_empty();
    if !notes.is_empty() {
        // The value is an object by now: each tool whose command prints a list has a page.
        value["notes"] = json!(notes);
    }
    let text = if is_whole { said.json.trim_end().to_owned() } else { escaped(&value) };
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(value);
    result
}

/// The answer of a call that failed: code, message and hint, as the command prints them on standard error.
pub(crate) fn failed(error: &Diagnosis) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(escaped(&error_json(error)))])
}

/// The same error for a resource or a prompt, whose answer cannot carry one: the request itself fails.
pub(crate) fn refused(error: &Diagnosis) -> ErrorData {
    // An error of the protocol has no hint, so the hint is in its data.
    let code = match error.kind() {
        ic_base::ErrorKind::Usage => ErrorCode::INVALID_PARAMS,
        ic_base::ErrorKind::No | ic_base::ErrorKind::Failure => ErrorCode::INTERNAL_ERROR,
    };
    ErrorData::new(code, error.message().to_owned(), Some(error_json(error)["error"].clone()))
}

fn error_json(error: &Diagnosis) -> Value {
    json!({ "error": {
        "code": error.code().as_str(),
        "message": error.message(),
        "hint": error.get_hint(),
        "details": error.details(),
    } })
}

/// JSON text in which the control characters that JSON does not escape (U+007F to U+009F) are escaped, too.
fn escaped(value: &Value) -> String {
    let mut text = value.to_string().into_bytes();
    escape_controls(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Cuts a list after its first page, and returns where the next one begins.
fn next_before(entries: &mut Value, page: u32) -> Option<i64> {
    // The command was asked for one entry more than a page has. Without that one this is the last page.
    let entries = entries.as_array_mut().filter(|entries| entries.len() > page as usize)?;
    let seq = |entry: &Value| entry["seq"].as_i64();
    let (first, cut) = (seq(&entries[0])?, seq(&entries[page as usize])?);
    // The reader asks for entries before a number, so an event whose points stood on both pages would lose the rest of them. One event that
    // fills a page alone is whole: the command cuts none.
    entries.retain(|entry| first == cut || seq(entry) > Some(cut));
    entries.last().and_then(seq)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(seqs: &[i64]) -> Value {
        seqs.iter().map(|seq| json!({ "seq": seq })).collect()
    }

    #[test]
    fn pages_meet() {
        for (all, at_most, wanted, next) in [
            (&[9, 8, 7][..], 4, &[9, 8, 7][..], None),
            (&[9, 8, 7], 3, &[9, 8, 7], None),
            (&[9, 8, 7, 6], 3, &[9, 8, 7], Some(7)),
            (&[9, 8, 7, 7], 3, &[9, 8], Some(8)),
            (&[7, 7, 7, 6], 3, &[7, 7, 7], Some(7)),
            (&[9, 8], 1, &[9], Some(9)),
            (&[9, 7, 7, 7], 1, &[9], Some(9)),
            (&[7, 7, 7], 1, &[7, 7, 7], Some(7)),
            (&[], 3, &[], None),
        ] {
            let mut entries = page(all);
            assert_eq!(next_before(&mut entries, at_most), next, "{all:?}");
            assert_eq!(entries, page(wanted), "{all:?}");
        }
    }

    #[test]
    fn no_control_character_is_left() {
        let text = escaped(&json!("a\u{1b}[31m\u{9b}\u{7f}b"));
        assert_eq!(text, "\"a\\u001b[31m\\u009b\\u007fb\"");
    }
}
