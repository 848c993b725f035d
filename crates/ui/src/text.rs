//! Renders texts from outside. Prompts, names, paths and contents are hostile. `maud` escapes HTML wherever a text is written; characters
//! that would hide or reorder the text around them are made visible here.

use ic_base::display::{age, plain};
use ic_base::{Timestamp, is_unsafe_to_show};
use ic_ledger::path_from_bytes;
use maud::{Markup, PreEscaped, Render, html};

/// A text on one line, with its control characters marked. Its direction does not affect the text around it.
pub(crate) struct ShownText<'a>(pub(crate) &'a str);

impl Render for ShownText<'_> {
    fn render_to(&self, out: &mut String) {
        out.push_str("<bdi>");
        visible(self.0, out);
        out.push_str("</bdi>");
    }
}

/// A line of a file: the same, without isolating its direction.
pub(crate) struct PageLine<'a>(pub(crate) &'a str);

impl Render for PageLine<'_> {
    fn render_to(&self, out: &mut String) {
        visible(self.0, out);
    }
}

fn visible(text: &str, out: &mut String) {
    // What `render_to` writes is not escaped by `maud`, so HTML is escaped here, too.
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' => out.push(if c == '\t' { '\t' } else { ' ' }),
            // Marked and not removed: a reader should see that something is hidden there.
            c if is_unsafe_to_show(c) => {
                let code = u32::from(c);
                out.push_str(&format!("<span class=\"ctl\" title=\"U+{code:04X}\">\\u{{{code:x}}}</span>"));
            }
            c => out.push(c),
        }
    }
}

/// A path for people; bytes that are not UTF-8 are escapes, so that no two paths look alike.
pub(crate) fn path(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                // Escaped as well: a name that contains a backslash and an n differs from one with a line break.
                '\\' => out.push_str("\\\\"),
                c => out.push(c),
            }
        }
        chunk.invalid().iter().for_each(|byte| out.push_str(&format!("\\x{byte:02x}")));
    }
    if out.is_empty() { ".".to_owned() } else { plain(&out) }
}

/// The age of something, with the exact time as its title.
pub(crate) fn when(now: Timestamp, at: Timestamp) -> Markup {
    let exact = at.to_string();
    html! { time datetime=(exact) title=(exact) { (age(now, at)) } }
}

/// A number with its digits in groups.
pub(crate) fn grouped(n: i64) -> String {
    let digits = n.unsigned_abs().to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            // A narrow no-break space: a comma or a point would be a decimal sign in some languages.
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    if n < 0 { format!("-{out}") } else { out }
}

/// A short form of a number: `950`, `12.4k`, `3.1M`.
pub(crate) fn rounded(n: i64) -> String {
    #[allow(clippy::cast_precision_loss, reason = "it is rounded")]
    let tenths = |unit: i64| format!("{:.1}", n as f64 / unit as f64);
    match n {
        1_000_000.. => format!("{}M", tenths(1_000_000)),
        10_000.. => format!("{}k", tenths(1_000)),
        n => grouped(n),
    }
}

/// The size of a content, with its unit.
pub(crate) fn size(bytes: u64) -> String {
    #[allow(clippy::cast_precision_loss, reason = "it is rounded")]
    let in_unit = |unit: u64| format!("{:.1}", bytes as f64 / unit as f64);
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} kB", in_unit(1_000)),
        1_000_000..1_000_000_000 => format!("{} MB", in_unit(1_000_000)),
        _ => format!("{} GB", in_unit(1_000_000_000)),
    }
}

/// The query of an address.
pub(crate) fn query(pairs: &[(&str, &str)]) -> String {
    let mut out = form_urlencoded::Serializer::new(String::new());
    out.extend_pairs(pairs);
    out.finish()
}

/// The bytes of a path, for an address.
pub(crate) fn in_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes that [`in_hex`] wrote; `None` for anything else.
pub(crate) fn of_hex(text: &str) -> Option<Vec<u8>> {
    const LONGEST: usize = 2 * 8192;
    // ASCII, so that the slices below cannot cut a character.
    if text.len() > LONGEST || !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

/// A path of this machine, for people.
pub(crate) fn of_path(path: &std::path::Path) -> String {
    self::path(ic_ledger::path_bytes(path))
}

/// The last part of a path, for a place without room for all of it.
pub(crate) fn file_name(bytes: &[u8]) -> String {
    let whole = path_from_bytes(bytes);
    whole.file_name().map_or_else(|| path(bytes), |name| of_path(std::path::Path::new(name)))
}

/// A number and a noun, as in `1 file` or `3 files`.
pub(crate) fn counted(n: usize, noun: &str) -> String {
    let text = ic_base::display::counted(n, noun);
    match text.split_once(' ') {
        Some((_, rest)) if n >= 10_000 => format!("{} {rest}", grouped(i64::try_from(n).unwrap_or(i64::MAX))),
        _ => text,
    }
}

/// No markup, for an optional part of a page.
pub(crate) const EMPTY: Markup = PreEscaped(String::new());

#[cfg(test)]
mod tests {
    use maud::html;

    use super::{ShownText, grouped, in_hex, of_hex, path, rounded, size};

    #[test]
    fn texts_from_outside_are_escaped_and_made_visible() {
        let bad = "<script>alert('x')</script>\" & \u{202e}x\u{1b}[31m\u{0}";
        let shown = html! { (ShownText(bad)) }.into_string();
        assert!(!shown.contains("<script") && !shown.contains('\u{202e}') && !shown.contains('\u{1b}'), "{shown}");
        assert!(shown.contains("&lt;script&gt;") && shown.contains("\\u{202e}") && shown.contains("U+001B"), "{shown}");
        assert!(!shown.contains('\u{0}'));
    }

    #[test]
    fn no_two_paths_look_alike() {
        let all: [&[u8]; 7] = [b"a\nb", b"a\\nb", b"a\xff", b"a\\xff", b"", b"a\tb", "a\u{202e}b".as_bytes()];
        let shown: std::collections::BTreeSet<String> = all.iter().map(|bytes| path(bytes)).collect();
        assert_eq!(shown.len(), all.len(), "{shown:?}");
        assert!(shown.iter().all(|text| text.chars().all(|c| !ic_base::is_unsafe_to_show(c))));
    }

    #[test]
    fn every_byte_comes_back_from_an_address() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(of_hex(&in_hex(&all)), Some(all));
        for bad in ["f", "zz", "€€", "-1"] {
            assert_eq!(of_hex(bad), None, "{bad}");
        }
    }

    #[test]
    fn numbers_are_read_at_a_glance() {
        assert_eq!([grouped(0), grouped(999), grouped(-1_234_567)], ["0", "999", "-1\u{202f}234\u{202f}567"]);
        assert_eq!([rounded(9_999), rounded(12_400), rounded(3_100_000)], ["9\u{202f}999", "12.4k", "3.1M"]);
        assert_eq!([size(0), size(1_500), size(2_000_000)], ["0 bytes", "1.5 kB", "2.0 MB"]);
    }
}
