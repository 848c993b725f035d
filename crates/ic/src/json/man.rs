//! The manual.

use std::path::Path;

use serde::Serialize;

use super::exact;

/// The manual in a directory (`man`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ManJson {
    directory: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    directory_b64: Option<String>,
    /// How many pages there are.
    page_count: usize,
    /// The written files: those that were missing or different.
    written: Vec<String>,
}

impl ManJson {
    pub(crate) fn new(directory: &Path, pages: usize, written: Vec<String>) -> Self {
        Self {
            directory: directory.to_string_lossy().into_owned(),
            directory_b64: exact(directory),
            page_count: pages,
            written,
        }
    }
}
