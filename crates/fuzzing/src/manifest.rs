//! Manifests of checkpoints and plans of restores, which are JSON in the object store: read, they are written the same.

use ic_checkpoint::manifest::{Manifest, PathText};
use ic_checkpoint::restore::plan::Plan;

/// Reads it.
pub fn manifest(bytes: &[u8]) {
    if let Ok(manifest) = serde_json::from_slice::<Manifest>(bytes) {
        let text = serde_json::to_vec(&manifest).expect("a manifest can be written");
        assert_eq!(serde_json::from_slice::<Manifest>(&text).expect("a manifest"), manifest);
    }
    if let Ok(kept) = serde_json::from_slice::<Plan>(bytes) {
        let text = serde_json::to_vec(&kept).expect("a plan can be written");
        assert_eq!(serde_json::from_slice::<Plan>(&text).expect("a plan"), kept);
    }
    if let Ok(PathText(path)) = serde_json::from_slice(bytes) {
        let text = serde_json::to_vec(&PathText(path.clone())).expect("a path can be written");
        assert_eq!(serde_json::from_slice::<PathText>(&text).expect("a path").0, path);
    }
}
