//! How things are said to people, on a terminal or on a page: texts from outside made safe, paths, counts, times.

use std::fmt::Write;
use std::path::Path;

use crate::clock::Timestamp;
use crate::text::is_unsafe_to_show;

/// Text from outside, safe for a terminal: on one line, control characters shown as escapes.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(' '),
            c if is_unsafe_to_show(c) => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// A path, safe for a terminal: quoted, as git quotes it, where it holds what cannot be shown, so that no two paths look alike.
pub fn path_text(path: &Path) -> String {
    let text = path.to_string_lossy();
    if !text.contains(is_unsafe_to_show) {
        return text.into_owned();
    }
    // The backslash is escaped first, because the escapes of the others add backslashes.
    let escaped = [('\\', r"\\"), ('"', r#"\""#), ('\n', r"\n"), ('\t', r"\t")];
    let text = escaped.iter().fold(text.into_owned(), |text, (c, escape)| text.replace(*c, escape));
    format!("\"{}\"", plain(&text))
}

/// `1 artifact`, `2 artifacts`, `3 dispatches`.
pub fn counted(n: usize, noun: &str) -> String {
    match (n, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{n} {stem}ies"),
        _ if noun.ends_with("ch") => format!("{n} {noun}es"),
        _ => format!("{n} {noun}s"),
    }
}

/// A time to the second, in UTC: what is done twice in a minute must not look like one.
pub fn second(at: Timestamp) -> String {
    let whole = at.to_string();
    // A number that no calendar has, as a damaged row may hold, is shown as milliseconds: nothing is cut from it.
    whole.rsplit_once('.').map_or_else(|| whole.clone(), |(second, _)| format!("{second}Z"))
}

/// How long ago something was: `just now`, `42 s ago`, `3 min ago`, `5 h ago`, `12 d ago`. A clock that was set back makes it `just now`.
pub fn age(now: Timestamp, at: Timestamp) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    match now.millis().saturating_sub(at.millis()) / 1000 {
        ..10 => "just now".to_owned(),
        seconds @ 10..MINUTE => format!("{seconds} s ago"),
        seconds @ MINUTE..HOUR => format!("{} min ago", seconds / MINUTE),
        // Up to two days: "1 d ago" would not tell yesterday morning from yesterday evening.
        seconds if seconds < 2 * DAY => format!("{} h ago", seconds / HOUR),
        seconds => format!("{} d ago", seconds / DAY),
    }
}

/// Escapes the control characters that JSON does not (U+007F to U+009F): some of them begin commands to a terminal.
pub fn escape_controls(json: &mut Vec<u8>) {
    // Most records contain neither, and are left untouched.
    if !json.iter().any(|byte| matches!(byte, 0x7f | 0xc2)) {
        return;
    }
    // In UTF-8, U+0080 to U+009F are 0xC2 and a second byte of the same number. 0xC2 also begins U+00A0 to U+00BF,
    // which are not control characters.
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

#[cfg(test)]
mod tests {
    use crate::clock::Timestamp;

    use super::{age, plain, second};

    #[test]
    fn a_time_beyond_the_calendar_is_shown_and_not_cut() {
        assert_eq!(second(Timestamp(0)), "1970-01-01T00:00:00Z");
        assert_eq!(second(Timestamp(9_000_000_000_000_000)), "9000000000000000ms");
        assert_eq!(second(Timestamp(100_000_000_000_000_000)), "100000000000000000ms");
        assert_eq!(second(Timestamp(253_402_300_800_000)), "+10000-01-01T00:00:00Z");
    }

    #[test]
    fn ages_are_counted_in_what_people_say() {
        const AGES: [(i64, &str); 9] = [
            (-5, "just now"),
            (9, "just now"),
            (10, "10 s ago"),
            (59, "59 s ago"),
            (60, "1 min ago"),
            (3599, "59 min ago"),
            (3600, "1 h ago"),
            (48 * 3600 - 1, "47 h ago"),
            (48 * 3600, "2 d ago"),
        ];
        for (seconds, said) in AGES {
            assert_eq!(age(Timestamp(1_000_000_000 + seconds * 1000), Timestamp(1_000_000_000)), said);
        }
    }

    #[test]
    fn text_from_outside_cannot_steer_a_terminal() {
        assert_eq!(plain("a\u{1b}[31mb\nc"), "a\\u{1b}[31mb c");
        assert_eq!(plain("x\u{202e}y\u{61c}"), "x\\u{202e}y\\u{61c}");
        assert_eq!(plain("計劃 é"), "計劃 é");
    }
}
