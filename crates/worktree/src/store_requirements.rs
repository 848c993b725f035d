//! What a ledger needs of its object store.

use std::collections::HashSet;

use ic_base::Result;
use ic_checkpoint::objects::Objects;
use ic_checkpoint::record;
use ic_checkpoint::restore::journal;
use ic_checkpoint::restore::plan::{RestoreNode, RestorePlan};
use ic_checkpoint::retention;
use ic_effects::compensation;
use ic_ledger::Snapshot;
use ic_ledger::events::{Hash, parse_hex};
use ic_runtrack::artifact;

use ic_kernel::Kernel;

/// The objects that rows name, other than checkpoints: plans of restores and what unfinished ones have yet to write, content of artifacts,
/// files that undos write back.
pub(super) fn named(snapshot: &Snapshot<'_>, objects: &Objects) -> Result<Vec<Hash>> {
    let restores = journal::all(snapshot)?;
    let mut coming = Vec::new();
    // A merged text is in no checkpoint before the restore has written it: only the plan of the unfinished restore names it.
    for restore in restores.iter().filter(|restore| restore.restored_id.is_none()) {
        // A plan that cannot be read names nothing; a repair marks its restore as lost.
        let plan = retention::readable(objects.read(&restore.plan))?;
        let plan: Option<RestorePlan> = plan.and_then(|plan| serde_json::from_slice(&plan).ok());
        coming.extend(plan.iter().flat_map(|plan| &plan.steps).filter_map(|step| match step.after {
            Some(RestoreNode::File { hash, .. }) => Some(hash),
            _ => None,
        }));
    }
    let plans = restores.into_iter().map(|restore| restore.plan).chain(coming);
    let artifacts = artifact::content_hashes(snapshot)?;
    let files = compensation::contents(snapshot)?;
    let artifacts = artifacts.iter().filter_map(|hash| parse_hex(hash));
    let outside = ic_session::outside_files::contents(snapshot)?;
    let forced = ic_kernel::journal::kept_checkpoints::needed_contents(snapshot)?.into_iter().map(|(_, hash)| hash);
    Ok(plans.chain(artifacts).chain(files).chain(outside).chain(forced).collect())
}

/// Every object that the ledger needs and that this store has. What cannot be read is skipped, and with it what only that names.
pub(super) fn readable(kernel: &Kernel, objects: &Objects) -> Result<HashSet<Hash>> {
    let (checkpoints, named) = kernel.read(|snapshot| Ok((record::all_kept(snapshot)?, named(snapshot, objects)?)))?;
    let mut live = HashSet::new();
    retention::mark_readable(objects, &checkpoints, &named, &mut live)?;
    let mut found = HashSet::with_capacity(live.len());
    for hash in live {
        if objects.knows(&hash)? {
            found.insert(hash);
        }
    }
    Ok(found)
}
