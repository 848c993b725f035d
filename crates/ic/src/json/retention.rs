//! What pruning removed, what a purge took out, and what verifying found.

use ic_base::CheckpointId;
use ic_events::hex;
use ic_store::path_from_bytes;
use ic_worktree::purge::Purged;
use ic_worktree::repair::Repaired;
use ic_worktree::retention::{Pruned, Verified};
use serde::Serialize;

use super::{PathJson, WarningJson};

/// What was pruned.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PruneJson {
    dry_run: bool,
    /// The checkpoints that were (or would be) pruned.
    checkpoint_ids: Vec<String>,
    /// How many checkpoints are kept.
    kept_count: u64,
    /// Objects that nothing needed any more.
    swept_objects: u64,
    /// How much smaller the store is, in bytes.
    freed_bytes: u64,
    /// Why no space was freed, if it could not be.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<WarningJson>,
}

impl From<&Pruned> for PruneJson {
    fn from(pruned: &Pruned) -> Self {
        Self {
            dry_run: pruned.dry_run,
            checkpoint_ids: pruned.checkpoints.iter().map(|checkpoint| checkpoint.id.to_string()).collect(),
            kept_count: pruned.kept as u64,
            swept_objects: pruned.swept.objects,
            freed_bytes: pruned.swept.bytes,
            warnings: pruned.warnings.iter().map(WarningJson::from).collect(),
        }
    }
}

/// What a purge removed.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PurgeJson {
    #[serde(flatten)]
    path: PathJson,
    /// How many objects are gone.
    purged_objects: u64,
    /// How many bytes went with them, uncompressed, because no checkpoint needs them; what was pruned before may be among them.
    unneeded_bytes: u64,
    /// The checkpoints that held the path.
    checkpoint_ids: Vec<String>,
    /// Other paths with the same content, whole where they lie in another root: it is gone there, too.
    shared: Vec<PathJson>,
    /// Git objects that were removed from the content of checkpoints.
    git_objects: Vec<String>,
    /// How many git packs were rewritten without them.
    git_packs: u64,
    /// Refs below refs/ic/ that reached them; they were removed.
    removed_refs: Vec<String>,
    /// Where the content still is, out of reach of a purge.
    left: Vec<LeftJson>,
}

/// Content that a purge does not reach.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct LeftJson {
    /// What has it.
    #[cfg_attr(test, schemars(extend("enum" = ["work_tree", "index", "refs", "reflog", "objects", "remote", "other_paths", "copies", "set_aside", "links", "gone_root", "store"])))]
    place: &'static str,
    message: String,
    /// What shows it.
    command: String,
}

impl From<&Purged> for PurgeJson {
    fn from(purged: &Purged) -> Self {
        Self {
            path: path_from_bytes(&purged.path).as_path().into(),
            purged_objects: purged.objects,
            unneeded_bytes: purged.unneeded_bytes,
            checkpoint_ids: purged.checkpoints.iter().map(ToString::to_string).collect(),
            shared: purged.shared.iter().map(|path| path_from_bytes(path).as_path().into()).collect(),
            git_objects: purged.git_objects.clone(),
            git_packs: purged.packs as u64,
            removed_refs: purged.refs.clone(),
            left: purged
                .left
                .iter()
                .map(|left| LeftJson {
                    place: left.place,
                    message: left.message.clone(),
                    command: left.command.clone(),
                })
                .collect(),
        }
    }
}

/// Whether what checkpoints need can be read.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct VerifyObjectsJson {
    ok: bool,
    /// How many checkpoints were looked at.
    checkpoint_count: u64,
    /// How many objects.
    object_count: u64,
    damaged: Vec<DamageJson>,
    /// What SQLite finds wrong with the store's file.
    file: Vec<String>,
    /// What `--repair` did.
    #[serde(skip_serializing_if = "Option::is_none")]
    repaired: Option<RepairedJson>,
}

/// What a repair did.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RepairedJson {
    /// Checkpoints whose content is gone: they are removed.
    lost_checkpoint_ids: Vec<String>,
    /// Checkpoints that stay without some of their files.
    partial_checkpoint_ids: Vec<String>,
    /// Objects that are gone.
    lost_objects: u64,
    /// Objects that the working tree still had, and that are stored again.
    kept_again: u64,
    /// Restores that cannot be finished or undone any more.
    restore_ids: Vec<String>,
    /// Where the damaged file is now.
    set_aside: Option<String>,
    /// Paths that were purged earlier and whose marks may be lost: until they are purged again, checkpoints keep that content again.
    purge_again: Vec<PathJson>,
}

/// An object that cannot be read.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DamageJson {
    object: String,
    problem: String,
    /// The checkpoints that need it.
    checkpoint_ids: Vec<String>,
}

impl From<&Verified> for VerifyObjectsJson {
    fn from(verified: &Verified) -> Self {
        Self {
            ok: verified.damaged.is_empty() && verified.file.is_empty(),
            checkpoint_count: verified.checkpoints as u64,
            object_count: verified.objects,
            damaged: verified
                .damaged
                .iter()
                .map(|damage| DamageJson {
                    object: hex(&damage.object),
                    problem: damage.problem.clone(),
                    checkpoint_ids: damage.checkpoints.iter().map(ToString::to_string).collect(),
                })
                .collect(),
            file: verified.file.clone(),
            repaired: None,
        }
    }
}

impl VerifyObjectsJson {
    /// What is so after a repair, and what that did.
    pub(crate) fn repaired(repaired: &Repaired) -> Self {
        let ids = |ids: &[CheckpointId]| ids.iter().map(ToString::to_string).collect();
        let repair = RepairedJson {
            lost_checkpoint_ids: ids(&repaired.lost),
            partial_checkpoint_ids: ids(&repaired.partly),
            lost_objects: repaired.objects.len() as u64,
            kept_again: repaired.kept_again as u64,
            restore_ids: repaired.restores.iter().map(ToString::to_string).collect(),
            set_aside: repaired.set_aside.as_ref().map(|path| path.to_string_lossy().into_owned()),
            purge_again: repaired.purge_again.iter().map(|path| std::path::Path::new(path).into()).collect(),
        };
        Self { repaired: Some(repair), ..Self::from(&repaired.verified) }
    }
}
