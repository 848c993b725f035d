//! Warnings on standard error as JSON, and JSON that is safe on a terminal.

use std::io::{self, Write};

use serde::Serialize;

#[derive(Serialize)]
struct WarningJson<'a> {
    warning: WarningBody<'a>,
}

#[derive(Serialize)]
struct WarningBody<'a> {
    code: &'a str,
    message: &'a str,
}

/// Prints a warning as one line of JSON. With standard error closed it is lost, and the call continues.
pub(super) fn print_warning(code: &str, message: &str) {
    let line = WarningJson { warning: WarningBody { code, message } };
    // Two texts can always be written as JSON.
    let mut line = serde_json::to_vec(&line).unwrap_or_default();
    escape_controls(&mut line);
    let _ = writeln!(io::stderr().lock(), "{}", String::from_utf8_lossy(&line));
}

/// Escapes the control characters that JSON does not (U+007F to U+009F): some of them begin commands to a terminal.
pub(crate) fn escape_controls(json: &mut Vec<u8>) {
    // Most records contain neither, and are left untouched.
    if memchr::memchr2(0x7f, 0xc2, json).is_none() {
        return;
    }
    // In UTF-8, U+0080 to U+009F are 0xC2 and a second byte of the same number. 0xC2 also begins U+00A0 to U+00BF,
    // which are no control characters.
    let is_c1 = |pair: &[u8]| pair[0] == 0xc2 && (0x80..=0x9f).contains(&pair[1]);
    let mut escaped = Vec::with_capacity(json.len() + 64);
    let mut rest = json.as_slice();
    while let Some((&first, tail)) = rest.split_first() {
        let control = match tail.first() {
            _ if first == 0x7f => Some((first, tail)),
            Some(&second) if is_c1(&[first, second]) => Some((second, &tail[1..])),
            _ => None,
        };
        if let Some((control, _)) = control {
            escaped.extend_from_slice(format!("\\u{control:04x}").as_bytes());
        } else {
            escaped.push(first);
        }
        rest = control.map_or(tail, |(_, tail)| tail);
    }
    *json = escaped;
}
