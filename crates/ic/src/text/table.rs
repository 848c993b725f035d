//! Tables whose columns line up, whatever the width of their characters.

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use super::{cut_to, plain, screen, style, styled};

/// One cell: its text is made safe for a terminal here.
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A cell in a style.
    pub(crate) fn new(style: Style, text: &str) -> Self {
        Self { text: plain(text), style }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::new(style::NONE, text)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::new(style::NONE, &text)
    }
}

/// The number of spaces between two columns.
const GAP: usize = 2;

/// No column is made narrower than this: an id, a status and a short name stay whole.
const NARROWEST: usize = 11;

/// Makes the widest column narrower, again and again, until a line fits the screen or no column can shrink.
fn fit(widths: &mut [usize], screen: usize) {
    let needed = |widths: &[usize]| widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
    // One column at a time, so that the widest columns end up equally wide.
    while needed(widths) > screen {
        let Some(widest) = widths.iter_mut().max().filter(|width| **width > NARROWEST) else { return };
        *widest -= 1;
    }
}

/// A table with a header line.
pub(crate) struct TextTable {
    rows: Vec<Vec<Cell>>,
}

impl TextTable {
    pub(crate) fn new(header: &[&str]) -> Self {
        Self { rows: vec![header.iter().map(|title| Cell::new(style::DIM, title)).collect()] }
    }

    /// A table without a header, for rows that explain themselves.
    pub(crate) fn headless() -> Self {
        // In the header's place, which `render` does not count as a row.
        Self { rows: vec![Vec::new()] }
    }

    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// The lines of the table; `nothing` if it has no rows.
    pub(crate) fn render(&self, nothing: &str) -> String {
        if self.rows.len() == 1 {
            return format!("{nothing}\n");
        }
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut widths: Vec<usize> = (0..columns)
            .map(|i| self.rows.iter().filter_map(|row| row.get(i)).map(|cell| cell.text.width()).max().unwrap_or(0))
            .collect();
        if let Some(screen) = screen() {
            fit(&mut widths, screen);
        }
        let mut out = String::new();
        for row in self.rows.iter().filter(|row| !row.is_empty()) {
            // No spaces are printed before empty cells at the end.
            let filled = row.iter().rposition(|cell| !cell.text.is_empty()).map_or(0, |last| last + 1);
            for (i, cell) in row[..filled].iter().enumerate() {
                let text = cut_to(&cell.text, widths[i]);
                out += &styled(cell.style, &text);
                if i + 1 < filled {
                    out.extend(std::iter::repeat_n(' ', widths[i] - text.width() + GAP));
                }
            }
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::{TextTable, fit};

    #[test]
    fn the_widest_column_is_cut_until_a_line_fits() {
        for (before, screen, after) in [
            (&[8, 6, 20][..], 80, &[8, 6, 20][..]),
            (&[8, 6, 20, 50], 80, &[8, 6, 20, 40]),
            (&[8, 60, 50], 60, &[8, 24, 24]),
            (&[8, 11, 11], 20, &[8, 11, 11]),
        ] {
            let mut widths = before.to_vec();
            fit(&mut widths, screen);
            assert_eq!(widths, after, "{before:?} on {screen}");
        }
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let mut table = TextTable::new(&["A", "B"]);
        table.row(vec!["計劃".into(), "x".into()]);
        table.row(vec!["abc".into(), "y".into()]);
        let text = anstream::adapter::strip_str(&table.render("none")).to_string();
        assert_eq!(text, "A     B\n計劃  x\nabc   y\n");
    }

    #[test]
    fn an_empty_table_says_so() {
        assert_eq!(TextTable::new(&["A"]).render("No runs."), "No runs.\n");
    }
}
