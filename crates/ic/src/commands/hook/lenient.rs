//! Reads JSON of clients that cut texts anywhere: `JSON.stringify` writes half an emoji as `\ud83d`, which is no text, and a cut stream
//! may end within a character. The half is lost, and the rest of the payload must be obeyed anyway. A zero character is replaced, too,
//! because PostgreSQL stores none.

use std::borrow::Cow;

use serde_json::Value;

/// The escape that replaces half a character, or a zero character.
const REPLACEMENT: &str = "\\ufffd";

/// Reads a payload. Errors: the bytes are no JSON even with such characters replaced.
pub(crate) fn read(bytes: &[u8]) -> serde_json::Result<Value> {
    // JSON allows no byte order mark, so one at the beginning is skipped.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = String::from_utf8_lossy(bytes);
    // A zero is valid JSON: the parser below would accept it, and the search for what to replace would not run.
    if text.contains("\\u0000") {
        return serde_json::from_str(&whole(&text));
    }
    // The text is read unchanged first: only a payload that fails is searched for halves.
    serde_json::from_str(&text).or_else(|_| serde_json::from_str(&whole(&text)))
}

/// The text with each escape replaced that is half a character, or a zero.
fn whole(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match (half_or_zero(rest), rest.get(6..).and_then(half_or_zero)) {
            // Two halves in the right order are one character, as in `\ud83d\ude00`: both escapes stay.
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(_), _) => {
                out.push_str(REPLACEMENT);
                rest = &rest[6..];
                continue;
            }
            // The backslash and what it escapes, which may be a backslash.
            (None, _) => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    // No backslash was found, so there is nothing to replace.
    if out.is_empty() {
        return Cow::Borrowed(text);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The half of a character, or the zero, that an escape at the beginning of a text stands for; `None`: it stands for neither.
fn half_or_zero(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    // `from_str_radix` takes a sign, as in `+123`, which is not an escape.
    let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
    u32::from_str_radix(digits, 16).ok().filter(|code| is_hex && (*code == 0 || (0xD800..=0xDFFF).contains(code)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn half_a_character_is_replaced_and_the_rest_is_read() {
        for (bytes, value) in [
            (&br#"{"a":"x\ud83d"}"#[..], json!({"a": "x\u{fffd}"})),
            (br#"{"a":"\ud83d\ude00 \ud83d\ud83d\ude00\ude00"}"#, json!({"a": "😀 \u{fffd}😀\u{fffd}"})),
            (br#"{"a":"\\ud83d \\\ud83d \u00e4"}"#, json!({"a": "\\ud83d \\\u{fffd} ä"})),
            (b"{\"a\":\"\xff\xf0\x9f\"}", json!({"a": "\u{fffd}\u{fffd}"})),
            (b"\xef\xbb\xbf{}", json!({})),
            (br#"{"a":"x\u0000\\u0000"}"#, json!({"a": "x\u{fffd}\\u0000"})),
        ] {
            assert_eq!(read(bytes).unwrap(), value, "{}", String::from_utf8_lossy(bytes));
        }
        for bytes in [&br#"{"a":"\ud83d"#[..], br#"{"a":"\"#, br#"{"a":"\ud8"}"#, b"\\", b"", br#"["\u{1}"]"#] {
            assert!(read(bytes).is_err());
        }
    }
}
