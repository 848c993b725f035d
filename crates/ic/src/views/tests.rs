//! What the schemas of the views need, which are made by a test.

pub(crate) mod schema_words;

/// A value as a database stores it.
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
pub(crate) enum ScalarJson {
    Number(f64),
    Text(String),
    /// The bytes of a BLOB.
    Bytes(Vec<u8>),
    Null(()),
}

/// A value as a configuration sets it.
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
pub(crate) enum ValueJson {
    Number(u64),
    Text(String),
    Truth(bool),
    Texts(Vec<String>),
    Null(()),
}
