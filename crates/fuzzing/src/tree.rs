//! Directories of checkpoints: what is read is written as the same bytes, and names only possible paths.

use ic_base::Code;
use ic_checkpoint::tree::TreeObject;

/// Reads it.
pub fn tree(bytes: &[u8]) {
    match TreeObject::decode(bytes) {
        Ok(tree) => {
            let encoded = tree.encode();
            assert_eq!(encoded.bytes, bytes, "equal directories have equal bytes");
            assert!(encoded.cuts().all(|cut| cut < bytes.len()));
            for entry in &tree.entries {
                assert_eq!(tree.get(&entry.name), Some(entry));
                assert!(!entry.name.iter().any(|byte| matches!(byte, b'/' | 0)));
            }
        }
        Err(error) => assert_eq!(error.code(), Code::Corrupt),
    }
}
