//! The rows of packs and of the objects in them.

use ic_base::{Result, Timestamp};
use ic_ledger::Transaction;

use super::super::pack::{ObjectPack, Placed};
use super::super::store::PackPlace;

pub(super) fn place(pack: i64, placed: &Placed) -> PackPlace {
    let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    PackPlace { form: placed.form, pack, start: number(placed.start), size: number(placed.size) }
}

pub(super) fn insert(tx: &Transaction<'_>, now: Timestamp, pack: &ObjectPack) -> Result<i64> {
    let size = i64::try_from(pack.size).unwrap_or(i64::MAX);
    let id = tx.query_opt(
        "INSERT INTO packs (size, created_at, data) VALUES ($1, $2, $3) RETURNING id",
        &[&size, &now.millis(), &pack.data],
        |row| row.get(0),
    )?;
    Ok(id.unwrap_or_default())
}

/// Says where an object lies. If another process kept it in the same time, that one stays; one that was lost, or
/// that is a piece of what was purged, has content again. No writer of a file's content comes so far with one that was
/// purged.
pub(super) fn index(tx: &Transaction<'_>, pack: i64, placed: &Placed) -> Result<()> {
    let PackPlace { form, pack, start, size } = place(pack, placed);
    tx.execute(
        "INSERT INTO objects (hash, form, pack, start, size) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (hash) \
         DO UPDATE SET form = excluded.form, pack = excluded.pack, start = excluded.start, size = excluded.size \
         WHERE objects.form = 2",
        &[&placed.hash.as_slice(), &form.number(), &pack, &start, &size],
    )
    .map(|_| ())
}

/// Writes a pack and the places of its objects at once.
pub(crate) fn keep(tx: &Transaction<'_>, now: Timestamp, pack: &ObjectPack) -> Result<()> {
    let id = insert(tx, now, pack)?;
    let mut objects: Vec<_> = pack.objects.iter().collect();
    objects.sort_unstable_by_key(|object| object.hash);
    objects.into_iter().try_for_each(|placed| index(tx, id, placed))
}
