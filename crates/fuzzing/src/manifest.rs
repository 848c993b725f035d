//! Manifests of checkpoints and plans of restores, which are JSON in the object store: read, they are written the same.

use ic_checkpoint::manifest::{CheckpointManifest, PathText};
use ic_checkpoint::restore::plan::RestorePlan;

/// Reads it.
pub fn manifest(bytes: &[u8]) {
    if let Ok(manifest) = serde_json::from_slice::<CheckpointManifest>(bytes) {
        let text = serde_json::to_vec(&manifest).expect("a manifest can be written");
        assert_eq!(serde_json::from_slice::<CheckpointManifest>(&text).expect("a manifest"), manifest);
    }
    if let Ok(kept) = serde_json::from_slice::<RestorePlan>(bytes) {
        let text = serde_json::to_vec(&kept).expect("a plan can be written");
        assert_eq!(serde_json::from_slice::<RestorePlan>(&text).expect("a plan"), kept);
    }
    if let Ok(PathText(path)) = serde_json::from_slice(bytes) {
        let text = serde_json::to_vec(&PathText(path.clone())).expect("a path can be written");
        assert_eq!(serde_json::from_slice::<PathText>(&text).expect("a path").0, path);
    }
}
