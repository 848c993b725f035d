//! The kind of value by which rows are ordered.

use ic_base::{Code, Diagnosis, Result};

use crate::value::SqlScalar;

/// The unit of a number that is a time between 2001 and 2103; other numbers are counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    Millis,
    Micros,
    Nanos,
}

impl Unit {
    const ALL: [Self; 4] = [Self::Seconds, Self::Millis, Self::Micros, Self::Nanos];

    /// The number of these units in a second.
    pub(crate) fn per_second(self) -> i64 {
        match self {
            Self::Seconds => 1,
            Self::Millis => 1_000,
            Self::Micros => 1_000_000,
            Self::Nanos => 1_000_000_000,
        }
    }

    /// SQL for the range of numbers that are times in this unit, for BETWEEN.
    pub(crate) fn usual(self) -> String {
        let (first, end) = self.range();
        format!("{first} AND {}", end - 1)
    }

    /// The first number beyond the times in this unit.
    pub(crate) fn end(self) -> i64 {
        self.range().1
    }

    fn range(self) -> (i64, i64) {
        // This is from 2001-09-09 until 2103-02-04. The ranges of two units do not meet, so no number is a time in both.
        //   counters │ 1e9 s 4.2e9 │ counters │ 1e12 ms 4.2e12 │ counters │ 1e15 us 4.2e15 │ counters │ 1e18 ns 4.2e18
        (1_000_000_000 * self.per_second(), 4_200_000_000 * self.per_second())
    }

    pub(crate) fn of(value: &SqlScalar) -> Option<Self> {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "a fraction makes no difference, and what is too large saturates"
        )]
        let number = match value {
            SqlScalar::Integer(n) => *n,
            SqlScalar::Real(r) => *r as i64,
            _ => return None,
        };
        Self::ALL.into_iter().find(|unit| {
            let (first, end) = unit.range();
            (first..end).contains(&number)
        })
    }

    /// SQL that is also true for numbers that are times in another unit.
    pub(crate) fn others(self, column: &str) -> String {
        let others = Self::ALL.into_iter().filter(|unit| *unit != self);
        others
            .map(|unit| {
                let (first, end) = unit.range();
                format!(" OR ({column} >= {first} AND {column} < {end})")
            })
            .collect()
    }
}

/// The form that a value must have to be compared with a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OrderFormat {
    Number { unit: Option<Unit> },
    Text { glob: String },
}

impl OrderFormat {
    /// The format of a target's order. Errors: `no_order` for a text that does not sort by time.
    pub(crate) fn of(value: &SqlScalar) -> Result<Self> {
        match value {
            SqlScalar::Text(text) => Ok(Self::Text { glob: glob_of(text)? }),
            number => Ok(Self::Number { unit: Unit::of(number) }),
        }
    }
}

/// The pattern (for SQL's GLOB) of all texts in the format of `text`: digits where it has digits, and everything else unchanged, also the
/// offset of a time zone. Ids that sort by time may have any of their letters.
fn glob_of(text: &str) -> Result<String> {
    if let Some(class) = uuid_class(text) {
        // Versions 6 and 7 count time in different units: the version is part of the format.
        let digit = |(at, c): (usize, char)| match at {
            8 | 13 | 14 | 18 | 23 => c.to_string(),
            _ => class.to_owned(),
        };
        return Ok(text.char_indices().map(digit).collect());
    }
    // This is a ULID: 26 digits of Crockford's base 32.
    if text.len() == 26 && text.bytes().all(is_crockford) {
        return Ok("[0-9A-HJKMNP-TV-Z]".repeat(26));
    }
    refuse_unsortable(text)?;
    let zone = zone_start(text);
    let in_place = |(at, c): (usize, char)| match c {
        '0'..='9' if at < zone => "[0-9]".to_owned(),
        // These are special in GLOB, and a class of one character is that character.
        '*' | '?' | '[' => format!("[{c}]"),
        other => other.to_string(),
    };
    Ok(text.char_indices().map(in_place).collect())
}

/// Names of months as RFC 2822 and `ctime` write them.
const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// The class of the hex digits of a UUID of version 6 or 7, which are those that sort by time.
fn uuid_class(text: &str) -> Option<&'static str> {
    let bytes = text.as_bytes();
    let hyphens = [8, 13, 18, 23];
    let is_uuid = bytes.len() == 36
        && bytes.iter().enumerate().all(|(i, b)| if hyphens.contains(&i) { *b == b'-' } else { b.is_ascii_hexdigit() })
        && matches!(bytes[14], b'6' | b'7');
    match (is_uuid, bytes.iter().any(u8::is_ascii_uppercase), bytes.iter().any(u8::is_ascii_lowercase)) {
        (false, ..) | (true, true, true) => None,
        (true, true, false) => Some("[0-9A-F]"),
        (true, false, _) => Some("[0-9a-f]"),
    }
}

fn is_crockford(byte: u8) -> bool {
    byte.is_ascii_digit() || (byte.is_ascii_uppercase() && !b"ILOU".contains(&byte))
}

/// The place where the offset of a time zone begins: at the last sign after the first colon; else at the end.
fn zone_start(text: &str) -> usize {
    let Some(colon) = text.find(':') else { return text.len() };
    text[colon..].rfind(['+', '-']).map_or(text.len(), |at| colon + at)
}

/// Errors: `no_order` for formats whose texts do not sort by time: days or months first, months by name, hours of twelve, random
/// ids.
fn refuse_unsortable(text: &str) -> Result<()> {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    // `20/02/2026`, `20.02.2026`, `01-02-2026`: the year comes last, so the order of texts is not that of time.
    let day_first = ["00/00/", "00.00.", "00-00-"].iter().any(|start| shape.starts_with(start));
    // `PM` or `am` at the end: `01:00 PM` sorts before `11:00 AM`.
    let twelve_hours = shape.contains(':') && (shape.ends_with('M') || shape.ends_with('m'));
    let no_digit = !shape.contains('0');
    let is_month = |word: &str| MONTHS.iter().any(|month| word.eq_ignore_ascii_case(month));
    let named_month = text.split(|c: char| !c.is_ascii_alphabetic()).any(is_month);
    // It looks like a UUID, and `uuid_class` refused it: other versions and mixed cases do not sort by time.
    let uuid = text.len() == 36 && text.bytes().filter(|b| *b == b'-').count() == 4;
    if day_first || twelve_hours || named_month || no_digit || uuid {
        return Err(Diagnosis::new(Code::NoOrder, format!("Texts like '{text}' do not sort by time."))
            .hint("order by a column with ISO 8601 times, numbers, or ids that sort by time (UUIDv6, UUIDv7, ULID)"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{OrderFormat, Unit, glob_of};
    use crate::value::SqlScalar;

    #[test]
    fn a_pattern_keeps_all_but_digits() {
        let d = "[0-9]";
        assert_eq!(glob_of("2026-02").unwrap(), format!("{}-{}", d.repeat(4), d.repeat(2)));
        assert_eq!(glob_of("1:2+01:00").unwrap(), format!("{d}:{d}+01:00"));
        assert_eq!(glob_of("a*[?1").unwrap(), format!("a[*][[][?]{d}"));
        assert!(glob_of("1ef4f797-8335-6428-8001-8a1503f9b875").unwrap().starts_with("[0-9a-f]"));
        assert!(glob_of("1EF4F797-8335-7428-8001-8A1503F9B875").unwrap().starts_with("[0-9A-F]"));
        assert_eq!(glob_of("01ARZ3NDEKTSV4RRFFQ69G5FAV").unwrap(), "[0-9A-HJKMNP-TV-Z]".repeat(26));
    }

    #[test]
    fn what_does_not_sort_by_time_is_refused() {
        for text in [
            "20/02/2026",
            "20.02.2026 10:00",
            "01-02-2026",
            "2026-02-20 10:00 PM",
            "Thu, 01 Jan 2026 00:00:00 GMT",
            "Sat Nov 21 13:36:46 2026",
            "today",
            "",
            "9b2f1c3e-8335-4428-8001-8a1503f9b875",
            "1ef4f797-8335-6428-8001-8A1503F9B875",
            "000000000-0000-0000-0000-00000000001",
        ] {
            assert!(glob_of(text).is_err(), "{text}");
        }
    }

    #[test]
    fn units_are_told_by_magnitude() {
        assert_eq!(Unit::of(&SqlScalar::Integer(1_771_606_515)), Some(Unit::Seconds));
        assert_eq!(Unit::of(&SqlScalar::Real(1_771_606_515.5)), Some(Unit::Seconds));
        assert_eq!(Unit::of(&SqlScalar::Integer(1_771_606_515_007)), Some(Unit::Millis));
        assert_eq!(Unit::of(&SqlScalar::Integer(1_771_606_515_007_000)), Some(Unit::Micros));
        assert_eq!(Unit::of(&SqlScalar::Integer(1_771_606_515_007_000_000)), Some(Unit::Nanos));
        assert_eq!(Unit::of(&SqlScalar::Integer(300)), None);
        assert_eq!(Unit::of(&SqlScalar::Text("300".into())), None);
        assert_eq!(OrderFormat::of(&SqlScalar::Integer(3)).unwrap(), OrderFormat::Number { unit: None });
    }
}
