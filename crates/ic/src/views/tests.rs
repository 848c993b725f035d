//! What the schemas of the views need, which are made by a test.

pub(crate) mod schema_words;
