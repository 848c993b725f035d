//! Conditions for rows and their parents by a foreign key.

use super::ForeignKey;
use crate::session::quote;

/// SQL that is true for rows that refer to anything by `key`: no part of it is NULL. `name` gives the SQL of a column.
pub(crate) fn is_reference(key: &ForeignKey, name: impl Fn(&str) -> Option<String>) -> Option<String> {
    let parts: Option<Vec<String>> =
        key.columns.iter().map(|(from, _)| name(from).map(|sql| format!("{sql} IS NOT NULL"))).collect();
    parts.map(|parts| parts.join(" AND "))
}

/// SQL that is true for rows whose parent by `key` is in the database.
pub(crate) fn has_parent(key: &ForeignKey, name: impl Fn(&str) -> Option<String>) -> Option<String> {
    let same = same_parent(key, name)?;
    Some(format!("EXISTS (SELECT 1 FROM main.{} AS p WHERE {same})", quote(&key.parent)))
}

/// SQL that is true for the parent `p` of a row by `key`.
pub(crate) fn same_parent(key: &ForeignKey, name: impl Fn(&str) -> Option<String>) -> Option<String> {
    // The parent's column is on the left: its collation decides.
    let parts: Option<Vec<String>> =
        key.columns.iter().map(|(from, to)| name(from).map(|sql| format!("p.{} = {sql}", quote(to)))).collect();
    parts.map(|parts| parts.join(" AND "))
}
