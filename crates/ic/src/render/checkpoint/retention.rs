//! What pruning removed, what a purge took out, and what verifying found.

use ic_base::shell_word;
use ic_store::path_from_bytes;
use ic_worktree::purge::Purged;
use ic_worktree::repair::Repaired;
use ic_worktree::retention::{Pruned, Verified};

use super::bytes;
use crate::render::{counted, path_text, plain, second, style, styled};

/// What was pruned.
pub(crate) fn pruned(pruned: &Pruned) -> String {
    let verb = if pruned.dry_run { "Would prune" } else { "Pruned" };
    let mut out = String::new();
    for checkpoint in &pruned.checkpoints {
        let created = styled(style::DIM, &second(checkpoint.created_at));
        out.push_str(&format!("  {}  {created}\n", styled(style::STRONG, checkpoint.id.short())));
    }
    let swept = pruned.swept;
    let freed = match (pruned.dry_run, swept.objects, swept.bytes) {
        (true, ..) | (_, 0, 0) => String::new(),
        // Objects leave their room in a pack that keeps most of the others: none of it is the disk's yet.
        (_, objects, 0) => {
            format!(", {} removed, the store as large as before", counted(count(objects), "object"))
        }
        (_, objects, freed) => {
            format!(", {} removed, {} freed", counted(count(objects), "object"), bytes(freed))
        }
    };
    out.push_str(&format!(
        "{verb} {}; {} kept{freed}.\n",
        counted(pruned.checkpoints.len(), "checkpoint"),
        pruned.kept
    ));
    out
}

/// What a purge took out.
pub(crate) fn purged(purged: &Purged) -> String {
    let name = path_text(&path_from_bytes(&purged.path));
    let held = counted(purged.checkpoints.len(), "checkpoint");
    let mut out = if purged.checkpoints.is_empty() && purged.packs == 0 && purged.refs.is_empty() {
        format!("No checkpoint of this tree holds {name}.\n")
    } else if purged.objects == 0 && purged.packs == 0 {
        // Objects that were purged keep their names in checkpoints, so who asks twice is told the same of those.
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
    // It cannot be told whose content it was: the checkpoints that named it are gone.
    if purged.unneeded_bytes > 0 {
        out.push_str(&format!(
            "  {}  {} that no checkpoint needs, which may be of checkpoints that were pruned\n",
            styled(style::BAD, "taken out"),
            bytes(purged.unneeded_bytes)
        ));
    } else if purged.checkpoints.is_empty() {
        out.push_str("The store had nothing that no checkpoint needs.\n");
    }
    for name in &purged.refs {
        let name = plain(name);
        out.push_str(&format!("  {}  {name} led to it\n", styled(style::BAD, "removed")));
    }
    for path in &purged.shared {
        let path = path_text(&path_from_bytes(path));
        out.push_str(&format!("  {}  {path} had the same content\n", styled(style::BAD, "gone too")));
    }
    for left in &purged.left {
        out.push_str(&format!(
            "  {}  {}; see: {}\n",
            styled(style::WARN, "not reached"),
            plain(&left.message),
            plain(&left.command)
        ));
    }
    out
}

/// Whether what checkpoints need can be read.
pub(crate) fn verified(verified: &Verified) -> String {
    let mut out = String::new();
    for line in &verified.file {
        out.push_str(&format!("  {}  {}\n", styled(style::BAD, "file"), plain(line)));
    }
    for damage in &verified.damaged {
        let ids: Vec<&str> = damage.checkpoints.iter().map(ic_base::CheckpointId::short).collect();
        out.push_str(&format!(
            "  {}  {} needed by {}\n",
            styled(style::BAD, "damaged"),
            plain(&damage.problem),
            ids.join(", ")
        ));
    }
    let looked = format!(
        "{} of {}",
        counted(count(verified.objects), "object"),
        counted(verified.checkpoints, "checkpoint")
    );
    if verified.damaged.is_empty() && verified.file.is_empty() {
        out.push_str(&format!("{} {looked}.\n", styled(style::GOOD, "Sound:")));
    } else {
        out.push_str(&format!(
            "{} in {looked}.\n",
            counted(verified.damaged.len() + verified.file.len(), "problem")
        ));
        out.push_str("To remove what is lost and keep the rest: ic checkpoint verify --repair\n");
    }
    out
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// What a repair did.
pub(crate) fn repaired(repaired: &Repaired) -> String {
    let mut out = String::new();
    let mut line = |what: &str, text: String| {
        out.push_str(&format!("  {}  {text}\n", styled(style::WARN, what)));
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
        line(
            "aside",
            format!("the damaged file is {} now; remove it when you no longer need it", path_text(path)),
        );
    }
    for path in &repaired.purge_again {
        let path = shell_word(path);
        line(
            "purge",
            format!(
                "{path} was purged, and the store may have lost the mark of it: ic checkpoint purge {path}"
            ),
        );
    }
    if repaired.kept_again > 0 {
        line("kept", format!("{} from the working tree again", counted(repaired.kept_again, "object")));
    }
    out.push_str(&verified(&repaired.verified));
    out
}
