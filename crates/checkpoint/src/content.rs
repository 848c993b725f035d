//! What keeps content by its hash.

use std::io::{Read, Write};

use ic_base::Result;
use ic_events::Hash;

/// A place that keeps content by its SHA-256.
pub trait Content {
    /// Keeps everything that `source` gives and returns its SHA-256.
    fn put(&self, source: &mut dyn Read) -> Result<Hash>;

    /// Writes the content with this hash into `sink`, verified.
    ///
    /// Errors: `corrupt` if it is missing or damaged; whatever was written into `sink` by then is not to be used.
    fn get(&self, hash: &Hash, sink: &mut dyn Write) -> Result<()>;
}
