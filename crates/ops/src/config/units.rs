//! Sizes and durations as people write them.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A number of bytes: `10MB`, `64 KiB`, `4096`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size(pub(super) u64);

/// A span of time: `7d`, `2w`, `36h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span(pub(super) Duration);

impl Size {
    fn parse(text: &str) -> Option<Self> {
        const UNITS: [(&str, u64); 8] = [
            ("KiB", 1 << 10),
            ("MiB", 1 << 20),
            ("GiB", 1 << 30),
            ("KB", 1_000),
            ("MB", 1_000_000),
            ("GB", 1_000_000_000),
            ("B", 1),
            ("", 1),
        ];
        UNITS.iter().find_map(|(unit, factor)| {
            let number = text.strip_suffix(unit)?.trim_end();
            number.parse::<u64>().ok()?.checked_mul(*factor).map(Self)
        })
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Sizes;
        impl Visitor<'_> for Sizes {
            type Value = Size;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size, as in 10MB or 64KiB")
            }

            fn visit_u64<E: Error>(self, bytes: u64) -> Result<Size, E> {
                self.visit_str(&bytes.to_string())
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Size, E> {
                match Size::parse(text) {
                    Some(Size(0)) => Err(E::custom("a size of 0 would leave out everything")),
                    Some(size) => Ok(size),
                    None => Err(E::custom(format!(
                        "{text:?} is not a size; write 10MB, 64KiB or a number of bytes"
                    ))),
                }
            }
        }
        deserializer.deserialize_str(Sizes)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        humantime::parse_duration(&text)
            .map(Self)
            .map_err(|_| D::Error::custom(format!("{text:?} is not a duration; write 7d, 2w or 36h")))
    }
}
