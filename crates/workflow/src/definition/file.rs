//! The file's form: which keys and values are where, before it is checked.

use std::fmt;
use std::marker::PhantomData;

use ic_kernel::config::scalar::ConfigScalar;
use ic_kernel::config::units::{Flag, Given};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

/// More steps than this are a mistake, not a plan.
pub(super) const MAX_STEPS: usize = 10_000;

/// A text and its place in the file.
pub(super) type FileText = Spanned<String>;

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct DefinitionFile {
    pub(super) name: Given<FileText>,
    pub(super) goal: Given<FileText>,
    pub(super) on_failure: Given<FileText>,
    pub(super) strategy: Given<FileText>,
    pub(super) shell: Given<Spanned<Loose<IgnoredAny>>>,
    pub(super) steps: Given<Spanned<Steps>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct StepFields {
    pub(super) id: Given<FileText>,
    pub(super) phase: Given<FileText>,
    pub(super) needs: Given<Vec<FileText>>,
    pub(super) run: Given<Spanned<Loose<IgnoredAny>>>,
    pub(super) shell: Given<Spanned<Loose<IgnoredAny>>>,
    pub(super) cwd: Given<FileText>,
    pub(super) env: Given<Pairs>,
    pub(super) timeout: Given<Spanned<ConfigScalar>>,
    pub(super) retries: Given<Spanned<Loose<RetriesFields>>>,
    pub(super) compensate: Given<Spanned<Loose<Box<CompensateFields>>>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RetriesFields {
    pub(super) max: Given<Spanned<ConfigScalar>>,
    pub(super) backoff: Given<Spanned<ConfigScalar>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct CompensateFields {
    pub(super) exec: Given<Spanned<Vec<FileText>>>,
    pub(super) shell: Given<FileText>,
    pub(super) restore_file: Given<Spanned<Loose<IgnoredAny>>>,
    pub(super) kill_process: Given<Spanned<ConfigScalar>>,
    pub(super) skip: Given<FileText>,
    pub(super) pivot: Given<FileText>,
    pub(super) retry: Given<FileText>,
    pub(super) cwd: Given<FileText>,
    pub(super) env: Given<Pairs>,
    pub(super) timeout: Given<Spanned<ConfigScalar>>,
    pub(super) retries: Given<Spanned<Loose<RetriesFields>>>,
    pub(super) on_failure: Given<Spanned<Flag>>,
}

/// The steps; only one beyond the limit is kept, so that a long list takes no memory.
pub(super) struct Steps(pub(super) Vec<Spanned<StepFields>>);

/// The pairs of a mapping, in order.
#[derive(Default)]
pub(super) struct Pairs(pub(super) Vec<(FileText, FileText)>);

/// A value that may be written in more than one way.
pub(super) enum Loose<M> {
    Scalar(ConfigScalar),
    List(Vec<FileText>),
    Mapping(M),
}

impl<'de> Deserialize<'de> for Steps {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;

        impl<'de> Visitor<'de> for List {
            type Value = Steps;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of steps")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Steps, A::Error> {
                let mut steps = Vec::new();
                while steps.len() <= MAX_STEPS {
                    match list.next_element()? {
                        Some(step) => steps.push(step),
                        None => return Ok(Steps(steps)),
                    }
                }
                // The rest is read and dropped, because the parser must reach the end of the list.
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Steps(steps))
            }
        }

        deserializer.deserialize_seq(List)
    }
}

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Mapping;

        impl<'de> Visitor<'de> for Mapping {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping of names to texts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut mapping: A) -> Result<Pairs, A::Error> {
                // This is a list and not a map: each name and each value keeps its place in the file, which errors name.
                let mut pairs = Vec::new();
                while let Some(pair) = mapping.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(Mapping)
    }
}

impl<'de, M: Deserialize<'de>> Deserialize<'de> for Loose<M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(PhantomData))
    }
}

struct Any<M>(PhantomData<M>);

impl<'de, M: Deserialize<'de>> Visitor<'de> for Any<M> {
    type Value = Loose<M>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Loose<M>, E> {
        Ok(Loose::Scalar(ConfigScalar::Flag(flag)))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Loose<M>, E> {
        Ok(Loose::Scalar(ConfigScalar::Whole(number)))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Loose<M>, E> {
        Ok(Loose::Scalar(u64::try_from(number).map_or(ConfigScalar::Negative(number), ConfigScalar::Whole)))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Loose<M>, E> {
        Ok(Loose::Scalar(ConfigScalar::Fraction(number)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Loose<M>, E> {
        Ok(Loose::Scalar(ConfigScalar::Text(text.to_owned())))
    }

    fn visit_unit<E: Error>(self) -> Result<Loose<M>, E> {
        Ok(Loose::Scalar(ConfigScalar::Nothing))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Loose<M>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Loose::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mapping: A) -> Result<Loose<M>, A::Error> {
        M::deserialize(MapAccessDeserializer::new(mapping)).map(Loose::Mapping)
    }
}
