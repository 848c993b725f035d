//! What killed calls left behind, for `ic health`. None of it is unsound, so each check is well; each names what ends it.

use ic_base::Result;
use ic_checkpoint::restore::journal::{self, Progress};
use ic_checkpoint::scratch;
use ic_store::health::Check;

use super::objects_path;
use crate::Kernel;

/// Looks for copies of killed captures and for interrupted restores; nothing is changed.
pub fn examine(kernel: &Kernel) -> Result<Vec<Check>> {
    Ok(vec![leftovers(kernel), restores(kernel)?])
}

fn leftovers(kernel: &Kernel) -> Check {
    let found = scratch::leftovers(&objects_path(kernel.ledger.path()));
    let detail = match found.count {
        0 => "none".to_owned(),
        count => format!(
            "{count} {} of killed captures, {} KiB; the next capture removes them, or: ic checkpoint prune",
            if count == 1 { "copy" } else { "copies" },
            found.bytes.div_ceil(1024)
        ),
    };
    Check { name: "leftovers", ok: true, detail }
}

fn restores(kernel: &Kernel) -> Result<Check> {
    let unfinished: Vec<_> = kernel
        .read(journal::all)?
        .into_iter()
        .filter(|restore| restore.progress != Progress::Applied)
        .map(|restore| {
            format!(
                "that of checkpoint {} in {} was interrupted; the next restore, undo or redo there finishes it",
                restore.target_id.short(),
                restore.root.display()
            )
        })
        .collect();
    let detail = if unfinished.is_empty() { "none is unfinished".to_owned() } else { unfinished.join("; ") };
    Ok(Check { name: "restores", ok: true, detail })
}
