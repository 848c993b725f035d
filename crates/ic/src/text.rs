//! Text for people: tables, cards, previews. Colours are removed where output is no terminal.

pub(crate) mod diff;
mod table;
mod wrap;

use ic_base::Diagnosis;
pub(crate) use ic_base::display::{age, counted, path_text, plain, second};
pub(crate) use table::{Cell, TextTable};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};
pub(crate) use wrap::wrapped;

use crate::exit::ExitStatus;

/// The styles of all text. There are few, so that each keeps its meaning.
pub(crate) mod style {
    use anstyle::{AnsiColor, Style};

    /// For errors, refusals, and what is removed.
    pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
    /// Success, and what is in order.
    pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
    /// Warnings, and what needs attention.
    pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
    /// The subject of a line.
    pub(crate) const STRONG: Style = Style::new().bold();
    /// Details that a reader can skip.
    pub(crate) const DIM: Style = Style::new().dimmed();
    /// Plain text, without colour or weight.
    pub(crate) const NONE: Style = Style::new();
}

/// `text` in a style, with escape sequences around it.
pub(crate) fn styled(style: anstyle::Style, text: &str) -> String {
    format!("{}{text}{}", style.render(), style.render_reset())
}

/// A file's content, safe for a terminal: line breaks and tabs stay, other control characters become escapes.
pub(crate) fn visible(content: &[u8]) -> String {
    String::from_utf8_lossy(content)
        .split_inclusive(['\n', '\t'])
        .map(|part| match part.strip_suffix(['\n', '\t']) {
            Some(body) => plain(body) + &part[body.len()..],
            None => plain(part),
        })
        .collect()
}

/// The end of a preview whose real call would be refused: the reason, the exit that both have, and the hint.
pub(crate) fn refused(refusal: &Diagnosis) -> String {
    let (code, exit) = (refusal.code().as_str(), ExitStatus::from(refusal.kind()).code());
    let head = styled(style::BAD, &format!("the real call would be refused ({code}, exit {exit})"));
    let hint = refusal.get_hint().map(|hint| format!("{}: {}\n", styled(style::GOOD, "hint"), plain(hint)));
    format!("{head}: {}\n{}", plain(refusal.message()), hint.unwrap_or_default())
}

/// The end of a preview: nothing was changed, and `--yes` does it.
pub(crate) fn to_do_it() -> String {
    styled(style::DIM, "nothing was changed; to do it: the same with --yes instead of --dry-run") + "\n"
}

/// As [`to_do_it`], where the plan has a hash that the caller can insist on.
pub(crate) fn exactly(plan_hash: &str) -> String {
    styled(style::DIM, &format!("nothing was changed; exactly this plan: --expect-plan {plan_hash}")) + "\n"
}

/// A value quoted for a shell, and safe for a terminal.
pub(crate) fn shell_word(text: &str) -> String {
    ic_base::shell_word(&plain(text))
}

/// The columns of the terminal; `None` if standard output is no terminal.
pub(crate) fn screen() -> Option<usize> {
    columns(&dialoguer::console::Term::stdout())
}

/// The columns of the terminal of standard error; `None` if it is no terminal.
pub(crate) fn error_screen() -> Option<usize> {
    columns(&dialoguer::console::Term::stderr())
}

fn columns(stream: &dialoguer::console::Term) -> Option<usize> {
    stream.size_checked().filter(|_| stream.is_term()).map(|(_, columns)| usize::from(columns))
}

/// A time in a table: on a terminal its age, with the time itself if there is room; else the time alone.
pub(crate) fn when(now: ic_base::Timestamp, at: ic_base::Timestamp) -> String {
    const ROOMY: usize = 100;
    match screen() {
        None => second(at),
        Some(columns) if columns < ROOMY => age(now, at),
        Some(_) => format!("{:<10}  {}", age(now, at), second(at)),
    }
}

/// The beginning of a text that fits into `columns` columns; a longer one ends in an ellipsis.
pub(crate) fn cut_to(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut cut = String::new();
    for c in text.chars() {
        // One column is for the ellipsis.
        if cut.width() + c.width().unwrap_or(0) + 1 > columns {
            break;
        }
        cut.push(c);
    }
    if columns == 0 { cut } else { format!("{}…", cut.trim_end()) }
}

#[cfg(test)]
mod tests {
    use super::{cut_to, shell_word};

    #[test]
    fn a_text_is_cut_to_columns_whatever_its_characters_are() {
        assert_eq!(cut_to("abc", 3), "abc");
        assert_eq!(cut_to("abcd", 3), "ab…");
        assert_eq!(cut_to("計劃書", 5), "計劃…");
        assert_eq!(cut_to("計劃書", 4), "計…");
        assert_eq!((cut_to("a", 0).as_str(), cut_to("ab", 1).as_str()), ("", "…"));
    }

    #[test]
    fn words_are_quoted_when_they_must_be() {
        assert_eq!(shell_word("brainstorm-reviewed"), "brainstorm-reviewed");
        assert_eq!(shell_word("a b"), "'a b'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(""), "''");
    }
}
