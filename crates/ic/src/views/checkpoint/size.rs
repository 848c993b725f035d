//! The space that the content of checkpoints takes on disk, in words.

use ic_kernel::Kernel;
use ic_kernel::config::MAX_SIZE;
use ic_worktree::CaptureSettings;

use crate::views::checkpoint::bytes;

/// From this number of bytes on, other commands mention the size.
const LARGE: u64 = 100_000_000;

/// The size of a project's store, and the size beyond which checkpoints are pruned.
pub(crate) struct StoreSize {
    bytes: u64,
    limit: Option<u64>,
}

impl StoreSize {
    /// The present size; the store is not opened. `settings`: `None` if the configuration cannot be read.
    pub(crate) fn of(kernel: &Kernel, settings: Option<&CaptureSettings>) -> Self {
        let path = ic_worktree::objects_path(kernel.ledger.path());
        let bytes = ic_checkpoint::objects::file_size(&path);
        // Where the configuration cannot be read, its limit is not known, and the default one is named.
        Self { bytes, limit: settings.map_or(Some(MAX_SIZE), |settings| settings.retention.max_size) }
    }

    /// `232.1 MB; beyond 5.0 GB the oldest checkpoints are pruned (rollback.retention.max-size)`
    pub(crate) fn words(&self) -> String {
        const KEY: &str = "rollback.retention.max-size";
        let size = if self.bytes < 1_000_000 { "less than 1 MB".to_owned() } else { bytes(self.bytes) };
        match self.limit {
            None => format!("{size}; no limit is set ({KEY})"),
            Some(limit) if self.bytes > limit => format!(
                "{size}, more than {} ({KEY}): the oldest checkpoints are pruned, but for what unfinished work and the newest prompts need",
                bytes(limit)
            ),
            Some(limit) => {
                format!("{size}; beyond {} the oldest checkpoints are pruned ({KEY})", bytes(limit))
            }
        }
    }

    /// The same text, for a store that is large, or larger than its limit.
    pub(crate) fn words_if_large(&self) -> Option<String> {
        let is_beyond = self.limit.is_some_and(|limit| self.bytes > limit);
        (self.bytes >= LARGE || is_beyond).then(|| self.words())
    }
}

#[cfg(test)]
mod tests {
    use super::StoreSize;

    #[test]
    fn the_size_and_its_limit_are_told() {
        let words = |bytes, limit| StoreSize { bytes, limit }.words();
        assert_eq!(
            words(232_100_000, Some(5_000_000_000)),
            "232.1 MB; beyond 5.0 GB the oldest checkpoints are pruned (rollback.retention.max-size)"
        );
        assert!(words(999_999, Some(5_000_000_000)).starts_with("less than 1 MB; beyond 5.0 GB "));
        assert!(words(6_000_000_000, Some(5_000_000_000)).starts_with("6.0 GB, more than 5.0 GB "));
        assert_eq!(words(1_000_000, None), "1.0 MB; no limit is set (rollback.retention.max-size)");
        let is_told = |bytes, limit| StoreSize { bytes, limit }.words_if_large().is_some();
        assert!(!is_told(99_999_999, None) && is_told(100_000_000, None) && is_told(2, Some(1)));
    }
}
