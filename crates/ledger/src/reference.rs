//! Finding a row by its id, or by the last digits of it.

use ic_base::{Code, Diagnosis, Result, reversed_digits};

use crate::transaction::Snapshot;
use crate::values::LedgerRow;

// Among 100,000 rows, the chance that six digits fit another row stays below one in a hundred (docs/adr/0001).
/// The fewest digits that name something.
const MIN_DIGITS: usize = 6;

/// A kind of thing that can be referred to: its table and its words.
#[derive(Debug, Clone, Copy)]
pub struct Referent {
    /// The table; it has `id` and an indexed `reversed_id`.
    pub table: &'static str,
    /// What people call it: "run".
    pub noun: &'static str,
    /// The code when there is none.
    pub not_found: Code,
    /// A command that lists what there is.
    pub listed_by: &'static str,
}

/// The full id that `text` names: a whole id, or an unambiguous suffix of at least six hex digits.
///
/// Errors: `invalid_reference`, `ambiguous_id` (the candidates in `details.ids`), and the referent's own not-found code.
pub fn resolve(snapshot: &Snapshot<'_>, referent: Referent, text: &str) -> Result<String> {
    find(snapshot, referent, "id", text, |row| row.get(0))
}

/// As [`resolve`], and reads the row with it. `columns` begin with `id`.
pub fn find<T>(
    snapshot: &Snapshot<'_>,
    referent: Referent,
    columns: &str,
    text: &str,
    mut map: impl FnMut(&LedgerRow<'_>) -> Result<T>,
) -> Result<T> {
    let Referent { table, noun, not_found, listed_by } = referent;
    let digits = reversed_digits(&text.to_ascii_lowercase());
    // A whole id takes the same path as its end: without its hyphens, it has 32 digits.
    let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
    if !is_hex || digits.len() < MIN_DIGITS || digits.len() > 32 {
        return Err(Diagnosis::new(
            Code::InvalidReference,
            format!("{text:?} is neither the id of a {noun} nor at least {MIN_DIGITS} hex digits of its end."),
        )
        .hint(format!("see: {listed_by}"))
        .detail("reference", text));
    }
    // 'g' sorts after every hex digit: the range is "begins with these digits".
    let rows: Vec<(String, T)> = snapshot.query_all(
        // Ten are enough to show that more digits are needed.
        &format!("SELECT {columns} FROM {table} WHERE reversed_id >= $1 AND reversed_id < $2 LIMIT 10"),
        &[&digits, &format!("{digits}g")],
        |row| Ok((row.get(0)?, map(row)?)),
    )?;
    match <[(String, T); 1]>::try_from(rows) {
        Ok([(_, found)]) => Ok(found),
        Err(rows) if rows.is_empty() => Err(Diagnosis::new(not_found, format!("There is no {noun} {text}."))
            .hint(format!("see: {listed_by}"))
            .detail("reference", text)),
        Err(rows) => {
            let ids: Vec<String> = rows.into_iter().map(|(id, _)| id).collect();
            Err(Diagnosis::new(
                Code::AmbiguousId,
                format!("{text} is the end of several {noun} ids: {}.", ids.join(", ")),
            )
            .hint("give more digits")
            .detail("ids", ids))
        }
    }
}

/// The ids of the newest of a kind of thing, newest first, at most `limit`. Its table has an index on `seq`.
pub fn newest(snapshot: &Snapshot<'_>, referent: Referent, limit: i64) -> Result<Vec<String>> {
    snapshot.query_all(
        // True of each row: it lets the database follow the index from its end.
        &format!("SELECT id FROM {} WHERE seq > 0 ORDER BY seq DESC LIMIT $1", referent.table),
        &[&limit],
        |row| row.get(0),
    )
}
