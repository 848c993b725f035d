//! The manual.

use std::path::Path;

use crate::views::exact;

shape! {
    /// The manual in a directory (`man`).
    pub(crate) struct ManJson from (directory: &Path, pages: usize, written: Vec<String>) {
        directory: String = directory.to_string_lossy().into_owned(),
        #[serde(skip_serializing_if = "Option::is_none")]
        directory_b64: Option<String> = exact(directory),
        /// How many pages there are.
        page_count: usize = pages,
        /// The written files: those that were missing or different.
        written: Vec<String> = written,
    }
}
