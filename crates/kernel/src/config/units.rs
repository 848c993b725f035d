//! Values as people write them: flags, numbers, sizes, durations.

use std::time::Duration;

use ic_checkpoint::capture::Flush;
use serde::de::{Deserialize, Deserializer};

use super::Guard;
use super::scalar::{ConfigScalar, brief, read};

/// What a key was given; `None` if the key is absent. A null is left to `T`, which mostly refuses it.
pub struct Given<T>(pub Option<T>);

impl<T> Default for Given<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Given<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(|value| Self(Some(value)))
    }
}

/// `true` or `false`, and no word that only some versions of YAML take for one.
pub struct Flag(pub bool);

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer, |scalar| match scalar {
            ConfigScalar::Flag(flag) => Ok(Self(flag)),
            // `yes` and `on` are texts here: YAML 1.1 takes them for flags, and YAML 1.2 does not.
            other => Err(other.instead_of("true or false")),
        })
    }
}

/// A setting that is one of a few words. `form`: these words, for people.
fn word<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    form: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, D::Error> {
    read(deserializer, |scalar| match scalar {
        ConfigScalar::Text(text) => parse(&text).ok_or_else(|| format!("{} is not one of {form}", brief(&text))),
        other => Err(other.instead_of(form)),
    })
}

/// `auto`, `always` or `never`.
pub(super) struct When(pub(super) Flush);

impl<'de> Deserialize<'de> for When {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let all = [Flush::Auto, Flush::Always, Flush::Never];
        let parse = |text: &str| all.into_iter().find(|flush| flush.as_str() == text);
        word(deserializer, "auto, always or never", parse).map(Self)
    }
}

/// `allow`, `ask` or `deny`.
pub(super) struct GuardSetting(pub(super) Guard);

impl<'de> Deserialize<'de> for GuardSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        word(deserializer, "allow, ask or deny", Guard::parse).map(Self)
    }
}

/// A whole number that is `LEAST` or more.
pub(super) struct Whole<T, const LEAST: u64>(pub(super) T);

impl<'de, T: TryFrom<u64>, const LEAST: u64> Deserialize<'de> for Whole<T, LEAST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let too_small = |number: &dyn std::fmt::Display| format!("{number} is too small; the least is {LEAST}");
        read(deserializer, |scalar| match scalar {
            ConfigScalar::Whole(number) if number < LEAST => Err(too_small(&number)),
            ConfigScalar::Whole(number) => T::try_from(number).map(Self).map_err(|_| format!("{number} is too large")),
            ConfigScalar::Negative(number) => Err(too_small(&number)),
            other => Err(other.instead_of(&format!("a whole number, {LEAST} or more,"))),
        })
    }
}

/// A number of bytes, at least one: `10MB`, `64 KiB`, `4096`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size(pub(super) u64);

impl Size {
    /// Errors: what is wrong with the text.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        const FORM: &str = "is not a size; write 10MB, 64KiB or a number of bytes";
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        // Only plain blanks are trimmed: other white space, such as U+00A0, is refused like any wrong unit.
        let factor: u64 = match unit.trim_start_matches(' ') {
            "" | "B" => 1,
            "KB" => 1_000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            _ => return Err(FORM),
        };
        if number.is_empty() {
            return Err(FORM);
        }
        match number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor)) {
            None => Err("is too large for a size"),
            Some(0) => Err("is too small for a size; the least is 1 byte"),
            Some(bytes) => Ok(Self(bytes)),
        }
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer, |scalar| {
            let text = match scalar {
                // A plain number takes the same path as a text, so that 0 is refused for both.
                ConfigScalar::Whole(bytes) => bytes.to_string(),
                ConfigScalar::Text(text) => text,
                other => return Err(other.instead_of("a size, as in 10MB or 64KiB,")),
            };
            Self::parse(&text).map_err(|wrong| format!("{} {wrong}", brief(&text)))
        })
    }
}

/// A span of time: `7d`, `2w`, `36h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer, |scalar| match scalar {
            ConfigScalar::Text(text) => humantime::parse_duration(&text)
                .map(Self)
                .map_err(|_| format!("{} is not a duration; write 7d, 2w or 36h", brief(&text))),
            other => Err(other.instead_of("a duration with its unit, as in 7d or 36h,")),
        })
    }
}

/// A duration in the form that the file takes: `7d`, `1d 12h`, `0s`.
pub(super) fn written(duration: Duration) -> String {
    let (seconds, nanos) = (duration.as_secs(), duration.subsec_nanos());
    let parts = [
        (seconds / 86_400, "d"),
        (seconds / 3_600 % 24, "h"),
        (seconds / 60 % 60, "m"),
        (seconds % 60, "s"),
        (u64::from(nanos / 1_000_000), "ms"),
        (u64::from(nanos / 1_000 % 1_000), "us"),
        (u64::from(nanos % 1_000), "ns"),
    ];
    let parts: Vec<String> =
        parts.into_iter().filter(|(number, _)| *number > 0).map(|(number, unit)| format!("{number}{unit}")).collect();
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}
