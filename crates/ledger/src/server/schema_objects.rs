//! What the migrations make, for the check whether it is still there.

use std::collections::BTreeSet;

use super::schema::statements;

/// The columns of all tables, as `table.column`.
pub(crate) fn columns() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for sql in statements() {
        let mut table = None;
        for line in sql.lines().map(str::trim) {
            let words: Vec<&str> = line.split_whitespace().collect();
            // Migrations have each column on a line of its own, as in `seq BIGINT PRIMARY KEY,`.
            match (words.as_slice(), table) {
                (["CREATE", "TABLE", name, ..], _) => table = Some(*name),
                (["ALTER", "TABLE", name, "ADD", "COLUMN", column, ..], _) => {
                    found.insert(format!("{name}.{column}"));
                }
                ([");" | ")", ..], _) => table = None,
                ([column, "TEXT" | "TEXT," | "BIGINT" | "BIGINT," | "BYTEA" | "BYTEA,", ..], Some(name)) => {
                    found.insert(format!("{name}.{column}"));
                }
                _ => {}
            }
        }
    }
    found
}

/// The triggers of all tables.
pub(crate) fn triggers() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for sql in statements() {
        for line in sql.lines() {
            match line.split_whitespace().collect::<Vec<_>>().as_slice() {
                ["CREATE", "TRIGGER", name, ..] => {
                    found.insert((*name).to_owned());
                }
                // A later migration may drop what an earlier one made.
                ["DROP", "TRIGGER", name, ..] => {
                    found.remove(*name);
                }
                _ => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{columns, triggers};

    #[test]
    fn what_is_made_is_read() {
        for column in ["events.seq", "events.hash", "runs.goal", "dispatches.parent_id", "ledger.id"] {
            assert!(columns().contains(column), "{column}");
        }
        assert!(columns().len() > 200, "{:?}", columns().len());
        assert!(triggers().contains("events_are_not_deleted"));
    }
}
