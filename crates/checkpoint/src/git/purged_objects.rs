//! What of git's was purged: the store remembers the names of its objects.

use std::collections::BTreeSet;

use ic_base::Result;
use ic_ledger::events::Hash;

use crate::objects::{Objects, hash_of};

/// The name under which the store remembers that an object of git's was purged.
fn mark(oid: &str) -> Hash {
    hash_of(format!("an object of git's: {oid}").as_bytes())
}

/// The mark that there are others: who restores looks for it first.
const ANY: &str = "any";

/// Remembers objects of git's: no restore is to make them reachable again.
pub fn remember(objects: &Objects, blobs: &BTreeSet<String>) -> Result<()> {
    if blobs.is_empty() {
        return Ok(());
    }
    let marks: Vec<Hash> = blobs.iter().map(String::as_str).chain([ANY]).map(mark).collect();
    objects.remember_purged(&marks)
}

/// Whether any object of git's was ever purged.
pub fn is_any(objects: &Objects) -> Result<bool> {
    objects.is_purged(&mark(ANY))
}

/// Whether an object of git's was purged.
pub(super) fn is_purged(objects: &Objects, oid: &str) -> Result<bool> {
    objects.is_purged(&mark(oid))
}
