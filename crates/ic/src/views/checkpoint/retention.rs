//! The outcomes of pruning, purging and verifying.

use std::path::Path;

use ic_base::shell_word;
use ic_checkpoint::git::Unreachable;
use ic_checkpoint::retention::Damage;
use ic_ledger::events::hex;
use ic_ledger::path_from_bytes;
use ic_worktree::purge::Purged;
use ic_worktree::repair::Repaired;
use ic_worktree::retention::{Pruned, Verified};

use crate::text::{counted, path_text, plain, second, style, styled};
use crate::views::PathJson;
use crate::views::checkpoint::bytes;
use crate::views::common_shapes::WarningJson;

shape! {
    /// The checkpoints that were pruned, and the space that it freed.
    pub(crate) struct PruneJson from pruned: &Pruned {
        dry_run: bool = pruned.dry_run,
        /// The ids of the checkpoints that were pruned, or would be.
        checkpoint_ids: Vec<String> =
            pruned.checkpoints.iter().map(|checkpoint| checkpoint.id.to_string()).collect(),
        /// The number of checkpoints that stay.
        kept_count: u64 = pruned.kept as u64,
        /// The number of objects that nothing needed any more.
        swept_objects: u64 = pruned.swept.objects,
        /// The bytes by which the store's file shrank.
        freed_bytes: u64 = pruned.swept.bytes,
        /// The reason why no space was freed, if it could not be.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<WarningJson> = pruned.warnings.iter().map(WarningJson::from).collect(),
    }

    /// What a purge removed.
    pub(crate) struct PurgeJson from purged: &Purged {
        #[serde(flatten)]
        path: PathJson = path_from_bytes(&purged.path).as_path().into(),
        /// The number of objects that were removed.
        purged_objects: u64 = purged.objects,
        /// Their size in bytes, uncompressed. Objects that were pruned earlier, and removed only now, may be among them.
        unneeded_bytes: u64 = purged.unneeded_bytes,
        /// The ids of the checkpoints that had the path.
        checkpoint_ids: Vec<String> = purged.checkpoints.iter().map(ToString::to_string).collect(),
        /// Other paths with the same content, which they lose, too; absolute if they are in another root.
        shared: Vec<PathJson> =
            purged.shared.iter().map(|path| path_from_bytes(path).as_path().into()).collect(),
        /// The number of git objects that were removed from the content of checkpoints.
        git_objects: Vec<String> = purged.git_objects.clone(),
        /// The number of git packs that were rewritten without them.
        git_packs: u64 = purged.packs as u64,
        /// Refs below refs/ic/ that led to them, and were removed.
        removed_refs: Vec<String> = purged.refs.clone(),
        /// Places that still have the content, which a purge does not reach.
        left: Vec<LeftJson> = purged.left.iter().map(LeftJson::from).collect(),
    }

    /// A place that still has the content.
    struct LeftJson from left: &Unreachable {
        /// The kind of the place.
        #[cfg_attr(test, schemars(extend("enum" = ["work_tree", "index", "refs", "reflog", "objects", "remote", "other_paths", "copies", "set_aside", "links", "gone_root", "store"])))]
        place: &'static str = left.place,
        message: String = left.message.clone(),
        /// The command that shows the content there.
        command: String = left.command.clone(),
    }

    /// Whether the content of all checkpoints can be read.
    pub(crate) struct VerifyObjectsJson from verified: &Verified {
        ok: bool = verified.damaged.is_empty() && verified.file.is_empty(),
        /// The number of checkpoints that were checked.
        checkpoint_count: u64 = verified.checkpoints as u64,
        /// The number of objects that were checked.
        object_count: u64 = verified.objects,
        damaged: Vec<DamageJson> = verified.damaged.iter().map(DamageJson::from).collect(),
        /// The errors that SQLite finds in the store's file.
        file: Vec<String> = verified.file.clone(),
        /// The outcome of `--repair`; left out without it.
        #[serde(skip_serializing_if = "Option::is_none")]
        repaired: Option<RepairedJson> = None,
    }

    /// The outcome of a repair.
    struct RepairedJson from repaired: &Repaired {
        /// Checkpoints that were removed because their content is gone.
        lost_checkpoint_ids: Vec<String> = repaired.lost.iter().map(ToString::to_string).collect(),
        /// Checkpoints that stay without some of their files.
        partial_checkpoint_ids: Vec<String> = repaired.partly.iter().map(ToString::to_string).collect(),
        /// The number of objects that are lost.
        lost_objects: u64 = repaired.objects.len() as u64,
        /// The number of objects that the working tree still had, and that were stored again.
        kept_again: u64 = repaired.kept_again as u64,
        /// Restores that cannot be finished or undone any more.
        restore_ids: Vec<String> = repaired.restores.iter().map(ToString::to_string).collect(),
        /// The path to which the damaged file was moved; null if it was not.
        set_aside: Option<String> =
            repaired.set_aside.as_ref().map(|path| path.to_string_lossy().into_owned()),
        /// Paths that were purged and whose marks may be lost: unless they are purged again, checkpoints store their content again.
        purge_again: Vec<PathJson> = repaired.purge_again.iter().map(|path| Path::new(path).into()).collect(),
    }

    /// An object that cannot be read.
    struct DamageJson from damage: &Damage {
        object: String = hex(&damage.object),
        problem: String = damage.problem.clone(),
        /// The checkpoints that need it.
        checkpoint_ids: Vec<String> = damage.checkpoints.iter().map(ToString::to_string).collect(),
    }
}

impl VerifyObjectsJson {
    /// The state after a repair, and its outcome.
    pub(crate) fn repaired(repaired: &Repaired) -> Self {
        Self { repaired: Some(repaired.into()), ..Self::from(&repaired.verified) }
    }
}

/// The outcome of pruning, as text.
pub(crate) fn pruned(pruned: &Pruned) -> String {
    let verb = if pruned.dry_run { "Would prune" } else { "Pruned" };
    let mut out = String::new();
    for checkpoint in &pruned.checkpoints {
        let created = styled(style::DIM, &second(checkpoint.created_at));
        out += &format!("  {}  {created}\n", styled(style::STRONG, checkpoint.id.short()));
    }
    let swept = pruned.swept;
    let freed = match (pruned.dry_run, swept.objects, swept.bytes) {
        (true, ..) | (_, 0, 0) => String::new(),
        // Removed objects leave free space inside packs that are still needed: none of it is returned to the disk yet.
        (_, objects, 0) => {
            format!(", {} removed, the store as large as before", counted(count(objects), "object"))
        }
        (_, objects, freed) => {
            format!(", {} removed, {} freed", counted(count(objects), "object"), bytes(freed))
        }
    };
    out += &format!("{verb} {}; {} kept{freed}.\n", counted(pruned.checkpoints.len(), "checkpoint"), pruned.kept);
    out
}

/// The outcome of a purge, as text.
pub(crate) fn purged(purged: &Purged) -> String {
    let name = path_text(&path_from_bytes(&purged.path));
    let held = counted(purged.checkpoints.len(), "checkpoint");
    let mut out = if purged.checkpoints.is_empty() && purged.packs == 0 && purged.refs.is_empty() {
        format!("No checkpoint of this tree holds {name}.\n")
    } else if purged.objects == 0 && purged.packs == 0 {
        // Checkpoints keep the names of purged objects, so a second purge reports the same ones.
        format!(
            "{name} is in {held} by name alone: its content was gone before, and nothing of it was left to take out of the store.\n"
        )
    } else {
        let objects = counted(count(purged.objects), "object");
        let packs = match purged.packs {
            0 => String::new(),
            packs => format!(", also from {} of git's objects", counted(packs, "pack")),
        };
        format!("{name} was in {held}; its content ({objects}) is gone from the store{packs}.\n")
    };
    // The checkpoints that named the object are gone, so its path is unknown.
    if purged.unneeded_bytes > 0 {
        out += &format!(
            "  {}  {} that no checkpoint needs, which may be of checkpoints that were pruned\n",
            styled(style::BAD, "taken out"),
            bytes(purged.unneeded_bytes)
        );
    } else if purged.checkpoints.is_empty() {
        out += "The store had nothing that no checkpoint needs.\n";
    }
    for name in &purged.refs {
        let name = plain(name);
        out += &format!("  {}  {name} led to it\n", styled(style::BAD, "removed"));
    }
    for path in &purged.shared {
        let path = path_text(&path_from_bytes(path));
        out += &format!("  {}  {path} had the same content\n", styled(style::BAD, "gone too"));
    }
    for left in &purged.left {
        out += &format!(
            "  {}  {}; see: {}\n",
            styled(style::WARN, "not reached"),
            plain(&left.message),
            plain(&left.command)
        );
    }
    out
}

/// The result of a verification, as text.
pub(crate) fn verified(verified: &Verified) -> String {
    let mut out = String::new();
    for line in &verified.file {
        out += &format!("  {}  {}\n", styled(style::BAD, "file"), plain(line));
    }
    for damage in &verified.damaged {
        let ids: Vec<&str> = damage.checkpoints.iter().map(ic_base::CheckpointId::short).collect();
        out +=
            &format!("  {}  {} needed by {}\n", styled(style::BAD, "damaged"), plain(&damage.problem), ids.join(", "));
    }
    let looked =
        format!("{} of {}", counted(count(verified.objects), "object"), counted(verified.checkpoints, "checkpoint"));
    if verified.damaged.is_empty() && verified.file.is_empty() {
        out += &format!("{} {looked}.\n", styled(style::GOOD, "Sound:"));
    } else {
        out += &format!("{} in {looked}.\n", counted(verified.damaged.len() + verified.file.len(), "problem"));
        out += "To remove what is lost and keep the rest: ic checkpoint verify --repair\n";
    }
    out
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The outcome of a repair, as text.
pub(crate) fn repaired(repaired: &Repaired) -> String {
    let mut out = String::new();
    let mut line = |what: &str, text: String| {
        out += &format!("  {}  {text}\n", styled(style::WARN, what));
    };
    for id in &repaired.lost {
        line("lost", format!("{}: its content is gone, it was removed", id.short()));
    }
    for id in &repaired.partly {
        line("partly", format!("{}: some of its files are gone, the rest can be restored", id.short()));
    }
    for id in &repaired.restores {
        line("restore", format!("{id}: what it needs is gone, nothing waits for it any more"));
    }
    if let Some(path) = &repaired.set_aside {
        line("aside", format!("the damaged file is {} now; remove it when you no longer need it", path_text(path)));
    }
    for path in &repaired.purge_again {
        let path = shell_word(path);
        line(
            "purge",
            format!("{path} was purged, and the store may have lost the mark of it: ic checkpoint purge {path}"),
        );
    }
    if repaired.kept_again > 0 {
        line("kept", format!("{} from the working tree again", counted(repaired.kept_again, "object")));
    }
    out += &verified(&repaired.verified);
    out
}
