//! The health of the ledger.

use ic_store::health::Check;

use super::{Cell, Table, style};

/// The checks, each with what was found.
pub(crate) fn checks(checks: &[Check]) -> String {
    let mut table = Table::new(&["CHECK", "", "FOUND"]);
    for check in checks {
        let mark = if check.ok { Cell::new(style::GOOD, "ok") } else { Cell::new(style::BAD, "BAD") };
        table.row(vec![check.name.into(), mark, check.detail.as_str().into()]);
    }
    table.render("Nothing was checked.")
}
