//! Wraps long lines at spaces: a terminal would break them inside of words, and so of ids and commands.

use unicode_width::UnicodeWidthChar;

/// A narrower terminal breaks lines itself: there is no room for words.
const NARROWEST: usize = 30;

/// Wraps a text at `columns`; `None` if no terminal shows it: it is returned unchanged.
pub(crate) fn wrapped(text: String, columns: Option<usize>) -> String {
    match columns.filter(|columns| *columns >= NARROWEST) {
        Some(columns) if text.lines().any(|line| width(line) > columns) => {
            text.split_inclusive('\n').map(|line| line_wrapped(line, columns)).collect()
        }
        _ => text,
    }
}

/// Wraps one line; its continuations get the indentation of its beginning. A word that is wider than the terminal stays whole.
fn line_wrapped(line: &str, columns: usize) -> String {
    let indent = &line[..line.len() - line.trim_start_matches(' ').len()];
    let (mut out, mut rest) = (String::new(), line.to_owned());
    while width(rest.trim_end()) > columns {
        let Some(at) = break_of(&rest, indent.len(), columns) else { break };
        out.push_str(rest[..at].trim_end_matches(' '));
        out.push('\n');
        rest = format!("{indent}{}", rest[at..].trim_start_matches(' '));
    }
    out + &rest
}

/// The position at which a line is broken: after a part of a sentence if that is not too short, which keeps a command whole, else at the
/// last space.
fn break_of(line: &str, indent: usize, columns: usize) -> Option<usize> {
    let (mut wide, mut is_escape) = (0, false);
    // The ends of sentences, of their parts, and of words: the last one of each that fits.
    let mut ends: [Option<usize>; 3] = [None; 3];
    let best = |ends: [Option<usize>; 3]| ends.into_iter().flatten().next();
    for (at, c) in line.char_indices() {
        // A break within the indentation would leave an empty line.
        if c == ' ' && at > indent {
            if wide > columns {
                // A first word that does not fit stays on a line of its own.
                return best(ends).or(Some(at));
            }
            ends[2] = Some(at);
            // Not before a third of the line: a break after a short first part would waste it.
            let is_far = wide * 3 >= columns;
            if is_far && line[..at].ends_with([';', '.']) {
                ends[0] = Some(at);
            } else if is_far && line[..at].ends_with([':', ',']) {
                ends[1] = Some(at);
            }
        }
        wide += step(c, &mut is_escape);
    }
    if wide > columns { best(ends) } else { None }
}

/// The columns that a line takes; escape sequences take none.
fn width(line: &str) -> usize {
    let mut is_escape = false;
    line.chars().map(|c| step(c, &mut is_escape)).sum()
}

fn step(c: char, is_escape: &mut bool) -> usize {
    match (*is_escape, c) {
        (true, _) => {
            // Styles end with an `m`, and no other sequences are printed.
            *is_escape = c != 'm';
            0
        }
        (false, '\u{1b}') => {
            *is_escape = true;
            0
        }
        (false, c) => c.width().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::{width, wrapped};

    #[test]
    fn lines_break_at_spaces_and_between_parts_of_a_sentence_first() {
        let footer = "undo one, and what came after it in its session: ic undo ID; one alone: ic undo ID --only";
        for (text, columns, broken) in [
            ("short\n", 80, "short\n".to_owned()),
            (footer, 80, footer.replace("; ", ";\n")),
            (footer, 100, footer.to_owned()),
            (
                "  the old branches are kept: git for-each-ref refs/x/0123456789\nnext\n",
                50,
                "  the old branches are kept:\n  git for-each-ref refs/x/0123456789\nnext\n".to_owned(),
            ),
            ("one two three four five six seven eight", 30, "one two three four five six\nseven eight".to_owned()),
            (
                "0123456789012345678901234567890123456789 a b\n",
                30,
                "0123456789012345678901234567890123456789\na b\n".to_owned(),
            ),
            ("0123456789012345678901234567890123456789\n", 30, "0123456789012345678901234567890123456789\n".to_owned()),
            ("計劃書計劃書 計劃書計劃書 計劃書計劃書", 30, "計劃書計劃書 計劃書計劃書\n計劃書計劃書".to_owned()),
        ] {
            assert_eq!(wrapped(text.to_owned(), Some(columns)), broken);
            assert_eq!(wrapped(text.to_owned(), None), text);
            assert_eq!(wrapped(text.to_owned(), Some(5)), text, "there is no room for words");
        }
    }

    #[test]
    fn colours_take_no_room() {
        let text = "\u{1b}[1m0123456789\u{1b}[0m 0123456789 0123456";
        assert_eq!(width(text), 29);
        assert_eq!(wrapped(text.to_owned(), Some(30)), text);
    }
}
