//! The manual pages.

use std::path::Path;

use crate::views::exact;

shape! {
    /// The manual pages in a directory (`man`).
    pub(crate) struct ManJson from (directory: &Path, pages: usize, written: Vec<String>) {
        directory: String = directory.to_string_lossy().into_owned(),
        #[serde(skip_serializing_if = "Option::is_none")]
        directory_b64: Option<String> = exact(directory),
        /// The number of pages of the manual.
        page_count: usize = pages,
        /// The names of the files that were written: those that were missing or different.
        written: Vec<String> = written,
    }
}
