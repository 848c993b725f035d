//! A value as the parser sees it, before a key says what it must be.
//!
//! The parser puts errors of type where the key stands, and errors of ours where the value stands.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A value of any kind; of lists and mappings only that they are ones.
pub enum ConfigScalar {
    /// A plain `true` or `false`.
    Flag(bool),
    /// A whole number, 0 or more.
    Whole(u64),
    /// A whole number below 0.
    Negative(i64),
    /// A number with a fraction or an exponent.
    Fraction(f64),
    /// Anything else that stands as one word or text, and all that is quoted.
    Text(String),
    /// An explicit null, or no value at all.
    Nothing,
    /// A list, whatever is in it.
    List,
    /// A mapping, whatever is in it.
    Mapping,
}

/// Reads a value and makes something of it. Errors: what is wrong with it, where it stands.
pub(super) fn read<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    make: impl FnOnce(ConfigScalar) -> Result<T, String>,
) -> Result<T, D::Error> {
    make(ConfigScalar::deserialize(deserializer)?).map_err(D::Error::custom)
}

impl ConfigScalar {
    /// Says that `expected` should stand in this value's place.
    pub fn instead_of(&self, expected: &str) -> String {
        let found = match self {
            Self::Flag(flag) => format!("`{flag}`"),
            Self::Whole(number) => format!("`{number}`"),
            Self::Negative(number) => format!("`{number}`"),
            Self::Fraction(number) => format!("`{number}`"),
            Self::Text(text) => format!("the text {}", brief(text)),
            Self::Nothing => "nothing".to_owned(),
            Self::List => "a list".to_owned(),
            Self::Mapping => "a mapping".to_owned(),
        };
        format!("{found} where {expected} is expected")
    }
}

impl<'de> Deserialize<'de> for ConfigScalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Scalars)
    }
}

struct Scalars;

impl<'de> Visitor<'de> for Scalars {
    type Value = ConfigScalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<ConfigScalar, E> {
        Ok(ConfigScalar::Flag(flag))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<ConfigScalar, E> {
        Ok(ConfigScalar::Whole(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<ConfigScalar, E> {
        Ok(u64::try_from(number).map_or(ConfigScalar::Negative(number), ConfigScalar::Whole))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<ConfigScalar, E> {
        Ok(ConfigScalar::Fraction(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ConfigScalar, E> {
        Ok(ConfigScalar::Text(text.to_owned()))
    }

    fn visit_unit<E: Error>(self) -> Result<ConfigScalar, E> {
        Ok(ConfigScalar::Nothing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<ConfigScalar, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(ConfigScalar::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut mapping: A) -> Result<ConfigScalar, A::Error> {
        while mapping.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(ConfigScalar::Mapping)
    }
}

/// Text from the file in quotes, cut where it would drown the sentence around it.
pub fn brief(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}
