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
    // Without AUTOINCREMENT the number of a removed pack can come again. Readers therefore verify what they remember
    // of a number (`Objects::load`).
    let id = tx.query_opt(
        "INSERT INTO packs (size, created_at, data) VALUES ($1, $2, $3) RETURNING id",
        &[&size, &now.millis(), &pack.data],
        |row| row.get(0),
    )?;
    // `RETURNING` gives one row for the row that was inserted, so there is an id.
    Ok(id.unwrap_or_default())
}

/// Says where an object lies. If another process kept it in the same time, that one stays; one that was lost, or
/// that is a piece of what was purged, has content again. No writer of a file's content comes so far with one that was
/// purged.
pub(super) fn index(tx: &Transaction<'_>, pack: i64, placed: &Placed) -> Result<()> {
    let PackPlace { form, pack, start, size } = place(pack, placed);
    // 2 is the form of a mark without content. A row of another form has content, and this copy stays unnamed in
    // its pack.
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
    // They are in the order of the index, as in the last transaction of a writer.
    let mut objects: Vec<_> = pack.objects.iter().collect();
    objects.sort_unstable_by_key(|object| object.hash);
    objects.into_iter().try_for_each(|placed| index(tx, id, placed))
}
