//! Time as the ledger keeps it: Unix milliseconds, UTC, given by the program and never by SQL.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, Datelike, SecondsFormat, Timelike, Utc};

/// A moment in Unix milliseconds, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Milliseconds since the Unix epoch.
    pub fn millis(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339, UTC, milliseconds: `2026-02-20T16:55:15.000Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match DateTime::<Utc>::from_timestamp_millis(self.0) {
            // A list of events has one a line: four digits of a year, which is every year that matters, take no formatter.
            Some(time) if (0..=9999).contains(&time.year()) => {
                f.write_str(str::from_utf8(&digits(time)).unwrap_or_default())
            }
            Some(time) => f.write_str(&time.to_rfc3339_opts(SecondsFormat::Millis, true)),
            None => write!(f, "{}ms", self.0),
        }
    }
}

/// The form `2026-02-20T16:55:15.000Z`. The year must be from 0 to 9999: there is room for four digits.
fn digits(time: DateTime<Utc>) -> [u8; 24] {
    let mut text = *b"0000-00-00T00:00:00.000Z";
    let mut put = |end: usize, mut number: u32| {
        // It writes from the last digit of the field back to the sign or the letter before it.
        for digit in text[..end].iter_mut().rev().take_while(|digit| digit.is_ascii_digit()) {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
    };
    put(4, time.year().unsigned_abs());
    put(7, time.month());
    put(10, time.day());
    put(13, time.hour());
    put(16, time.minute());
    put(19, time.second());
    put(23, time.timestamp_subsec_millis());
    text
}

/// Where the time comes from.
pub trait Clock: Send + Sync {
    /// The time now, to the millisecond; two calls may get the same one, or an earlier one if the clock is set back.
    fn now(&self) -> Timestamp;

    /// The time now in nanoseconds since 1970, as fine as the clock has it: to compare moments of several processes, never to record them.
    fn nanos(&self) -> i128 {
        i128::from(self.now().millis()) * 1_000_000
    }
}

/// The machine's clock. It may step back; nothing in the ledger is ordered by it.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    fn now(&self) -> Timestamp {
        of_machine(SystemTime::now())
    }

    #[allow(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    fn nanos(&self) -> i128 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| i128::try_from(since.as_nanos()).unwrap_or(i128::MAX))
    }
}

/// A moment of the machine's clock. One that is set before 1970, or beyond what the calendar can name, is no reason to end: it is
/// the nearest moment that can be printed.
fn of_machine(time: SystemTime) -> Timestamp {
    let millis = |length: Duration| i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
    let since_epoch = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => millis(after),
        Err(before) => -millis(before.duration()),
    };
    let ends = (DateTime::<Utc>::MIN_UTC.timestamp_millis(), DateTime::<Utc>::MAX_UTC.timestamp_millis());
    Timestamp(since_epoch.clamp(ends.0, ends.1))
}

/// A clock that stands still, for tests.
#[derive(Debug, Clone, Copy)]
pub struct FixedClock(pub Timestamp);

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use chrono::{NaiveDate, SecondsFormat};

    use super::{Timestamp, of_machine};

    #[test]
    fn a_clock_before_1970_or_beyond_the_calendar_is_read() {
        let day = Duration::from_hours(24);
        assert_eq!(of_machine(UNIX_EPOCH - day), Timestamp(-86_400_000));
        assert_eq!(of_machine(UNIX_EPOCH + day), Timestamp(86_400_000));
        let far = Duration::from_hours(2_500_000_000_000);
        for beyond in [of_machine(UNIX_EPOCH - far), of_machine(UNIX_EPOCH + far)] {
            let printed = beyond.to_string();
            assert!(printed.ends_with('Z') && printed.len() > 16, "{printed}");
        }
    }

    #[test]
    fn prints_milliseconds_in_utc() {
        assert_eq!(Timestamp(1_771_606_515_007).to_string(), "2026-02-20T16:55:15.007Z");
        assert_eq!(Timestamp(-1).to_string(), "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn every_year_prints_as_the_calendar_says() {
        for year in [-1, 0, 1, 999, 1969, 1970, 2026, 9999, 10_000] {
            for (month, day) in [(1, 1), (2, 28), (12, 31)] {
                let date =
                    NaiveDate::from_ymd_opt(year, month, day).and_then(|date| date.and_hms_milli_opt(23, 9, 58, 40));
                let time = date.expect("a time").and_utc();
                let expected = time.to_rfc3339_opts(SecondsFormat::Millis, true);
                assert_eq!(Timestamp(time.timestamp_millis()).to_string(), expected);
            }
        }
    }

    #[test]
    fn a_time_beyond_the_calendar_is_still_printed() {
        assert_eq!(Timestamp(i64::MAX).to_string(), format!("{}ms", i64::MAX));
    }
}
