//! Keeps the numbers in a client's settings exactly: one that is too long for us, or that we would write differently, is carried through as
//! a text.

use serde_json::Value;

/// The mark at the beginning of such a text; a control character, which no settings contain.
const MARK: &str = "\u{1}ic number ";
/// The mark as JSON escapes it.
const WRITTEN: &str = "\"\\u0001ic number ";

/// The JSON, in which each number that we would write differently is a marked text. A text that is no JSON is returned unchanged.
pub(super) fn kept(json: &str) -> String {
    let mut out = String::new();
    let mut rest = json;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            // Digits within a text are no number.
            '"' => string(rest),
            '-' | '0'..='9' => {
                // Letters count, too: all of `1e5` is one number, and `1.2.3` or `0x1f` is not a number and stays unchanged.
                let is_digit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.');
                let length = rest.find(|c| !is_digit(c)).unwrap_or(rest.len());
                let number = &rest[..length];
                let read: Option<Value> = serde_json::from_str(number).ok();
                // What serde would write decides: `1.0` and `1e2` come back in another form though no value is lost.
                let ours = read.map(|read| read.to_string());
                // A number that is too large for a float is not read at all, so it is recognized by its form.
                if ours.is_some_and(|ours| ours != number) || is_too_large(number) {
                    out.extend([WRITTEN, number, "\""]);
                    rest = &rest[length..];
                    continue;
                }
                length
            }
            c => c.len_utf8(),
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out
}

/// The JSON with the marked texts as the numbers that they were.
pub(super) fn restored(json: &str) -> String {
    let mut out = String::new();
    let mut rest = json;
    while let Some((before, marked)) = rest.split_once(WRITTEN) {
        let (number, after) = marked.split_once('"').unwrap_or((marked, ""));
        out.extend([before, number]);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Whether the JSON already contains something that looks like our mark.
pub(super) fn is_marked(json: &str) -> bool {
    json.contains(MARK) || json.contains(WRITTEN)
}

/// Whether it is a number too large for a float, such as `1e999`.
fn is_too_large(number: &str) -> bool {
    number.parse::<f64>().is_ok_and(f64::is_infinite)
        && number.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b))
}

/// The length of the JSON string at the beginning of a text.
fn string(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_as_they_were_written() {
        for json in [
            r#"{"a":12345678901234567890123,"b":[1e3,1.50,-0,0.1,1,1E+999],"c":"1.50 \" 1e3","d":-12}"#,
            r#"[1.0,"\\",2.00]"#,
            "12345678901234567890123456789",
        ] {
            let value: Value = serde_json::from_str(&kept(json)).unwrap();
            assert_eq!(restored(&value.to_string()), json);
        }
        for json in ["{\"a\": 1.2.3}", "{\"a\": 01}", "\"abc", "{\"é\": -}"] {
            assert_eq!(kept(json), json, "it is no JSON");
        }
    }
}
