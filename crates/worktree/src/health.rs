//! What killed calls left behind, for `ic health`. None of it is unsound, so each check is well; each names what ends it.

use ic_base::display::counted;
use ic_base::{Result, shell_word};
use ic_checkpoint::git;
use ic_checkpoint::restore::journal::{self, RestoreProgress};
use ic_checkpoint::scratch;
use ic_kernel::Kernel;
use ic_ledger::health::HealthCheck;

use super::store_location::objects_path;
use super::{repair, store_location};

/// Looks for what killed captures and restores left, for stores that were set aside and for interrupted restores; nothing is changed.
pub fn examine(kernel: &Kernel) -> Result<Vec<HealthCheck>> {
    Ok(vec![leftovers(kernel)?, restores(kernel)?])
}

fn leftovers(kernel: &Kernel) -> Result<HealthCheck> {
    let store = objects_path(kernel.ledger.path());
    let copies = scratch::leftovers(&store);
    let mut found = Vec::new();
    if copies.count > 0 {
        found.push(format!(
            "{} of killed captures, {} KiB; the next capture removes them, or: ic checkpoint prune",
            counted(copies.count, "copy"),
            copies.bytes.div_ceil(1024)
        ));
    }
    // Copies of the index are in the repositories, wherever restores were made, and not beside the store.
    let indexes: usize =
        store_location::restored_roots(kernel)?.iter().map(|root| git::indexes_left_behind(root).len()).sum();
    if indexes > 0 {
        found.push(format!(
            "{} of git's index that killed restores left; the next restore removes them, or: ic checkpoint prune",
            counted(indexes, "copy")
        ));
    }
    // It may be the last copy of some content: no command removes it, a person decides.
    found.extend(repair::set_aside_files(&store).into_iter().map(|path| {
        let path = path.display().to_string();
        format!("a damaged store that was set aside; when you no longer need it: rm {}", shell_word(&path))
    }));
    let detail = if found.is_empty() { "none".to_owned() } else { found.join("; ") };
    Ok(HealthCheck { name: "leftovers", ok: true, detail })
}

fn restores(kernel: &Kernel) -> Result<HealthCheck> {
    let unfinished: Vec<_> = kernel
        .read(journal::all)?
        .into_iter()
        .filter(|restore| restore.progress != RestoreProgress::Applied)
        .map(|restore| {
            let locks = git::locks_of(&restore.root, restore.id.as_str(), None);
            let locks = match locks.first().filter(|_| restore.strategy.has_git()) {
                Some(lock) => format!(", and removes {}, which is in its way, unless git may hold it", lock.display()),
                None => String::new(),
            };
            format!(
                "that of checkpoint {} in {} was interrupted; the next restore, undo or redo there finishes it{locks}",
                restore.target_id.short(),
                restore.root.display()
            )
        })
        .collect();
    let detail = if unfinished.is_empty() { "none is unfinished".to_owned() } else { unfinished.join("; ") };
    Ok(HealthCheck { name: "restores", ok: true, detail })
}
