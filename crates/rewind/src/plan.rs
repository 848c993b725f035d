//! A target checked against the schema: which rows of which tables are removed, in which order.

use ic_base::Result;

use crate::config::{Anchor, Audit, RewindTarget};
use crate::error::misfit;
use crate::lineage::{self, LineageRows};
use crate::schema::{Catalog, ForeignKey, Rowid, TableKind};
use crate::value::SqlScalar;

mod column;
mod condition;
mod sort;
mod table;

pub(crate) use column::{AuditPlan, column, refuse_triggers, table};
pub(crate) use condition::SqlCondition;
pub(crate) use table::{CutOrder, CutTable};

/// The columns in which a checkpointer describes a checkpoint.
pub(crate) const DESCRIBED_BY: [&str; 4] = ["type", "checkpoint", "metadata", "checkpoint_ns"];

/// The event names in the audit for a rewind and for its undo.
pub(crate) const COMPLETED: &str = "ROLLBACK_COMPLETED";
pub(crate) const UNDONE: &str = "ROLLBACK_UNDONE";

/// The rows to be removed: those with an order above this.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CutBound {
    After(SqlScalar),
    /// All rows: there was none at the moment to which is rewound.
    Everything,
}

/// The line between rows that stay and rows that are removed: the bound, and the values of the anchor's scope columns.
#[derive(Debug, Clone)]
pub(crate) struct PlanLine {
    pub(crate) bound: CutBound,
    pub(crate) scope: Vec<SqlScalar>,
    /// The rows of the anchor to be removed, where their order does not tell it.
    pub(crate) rows: Option<LineageRows>,
}

/// A target that fits its database.
pub(crate) struct CutPlan {
    pub(crate) anchor: Anchor,
    /// The tables that are cut, children before parents.
    pub(crate) cuts: Vec<CutTable>,
    pub(crate) audit: Option<AuditPlan>,
    /// Whether the anchor's rows are a checkpointer's, with its description of each.
    pub(crate) is_described: bool,
    /// The foreign keys of the whole database, also of tables that are not cut.
    pub(crate) keys: Vec<ForeignKey>,
}

impl CutPlan {
    /// Errors: `invalid_config`, which says what does not fit.
    pub(crate) fn new(target: &RewindTarget, catalog: &Catalog) -> Result<Self> {
        let anchor = check_anchor(&target.anchor, catalog)?;
        let audit = target.audit.as_ref().map(|audit| check_audit(audit, catalog)).transpose()?;
        let mut cuts = Vec::new();
        for table in &target.tables {
            let cut = CutTable::new(table, &target.tables, &anchor, audit.as_ref(), catalog)?;
            // The declared names are compared: `Tasks` and `tasks` are one table.
            if cuts.iter().any(|other: &CutTable| other.info.name == cut.info.name) {
                return Err(misfit(format!("The table {} stands twice in the configuration.", cut.info.name)));
            }
            cuts.push(cut);
        }
        let cuts = sort::children_first(cuts, &catalog.foreign_keys)?;
        let is_described = lineage::is_checkpointer(target)
            && table(catalog, &anchor.table)
                .is_ok_and(|info| DESCRIBED_BY.iter().all(|name| info.column(name).is_some()));
        Ok(Self { anchor, is_described, cuts, audit, keys: catalog.foreign_keys.clone() })
    }

    pub(crate) fn cut(&self, table: &str) -> Option<&CutTable> {
        self.cuts.iter().find(|cut| cut.info.name == table)
    }
}

fn check_anchor(anchor: &Anchor, catalog: &Catalog) -> Result<Anchor> {
    let info = table(catalog, &anchor.table)?;
    // A view is good enough: the anchor is only read. `CutTable` refuses to cut it.
    if !matches!(info.kind, TableKind::Table | TableKind::View) {
        return Err(misfit(format!("{} is no table with rows of its own; it cannot be the anchor.", info.name)));
    }
    let named = |name: &String| column(info, name).map(|c| c.name.clone());
    Ok(Anchor {
        table: info.name.clone(),
        key: named(&anchor.key)?,
        order: named(&anchor.order)?,
        commit: anchor.commit.as_ref().map(named).transpose()?,
        scope: anchor.scope.iter().map(named).collect::<Result<_>>()?,
    })
}

fn check_audit(audit: &Audit, catalog: &Catalog) -> Result<AuditPlan> {
    let info = table(catalog, &audit.table)?;
    if info.kind != TableKind::Table {
        return Err(misfit(format!("{} is no table with rows of its own; it cannot be the audit.", info.name)));
    }
    let named = |name: &String| column(info, name).map(|c| c.name.clone());
    let optional = |name: &Option<String>| name.as_ref().map(named).transpose();
    let refers = |name: &str| {
        let own = catalog.foreign_keys.iter().filter(|key| key.child == info.name);
        own.flat_map(|key| &key.columns).any(|(from, _)| from.eq_ignore_ascii_case(name))
    };
    refuse_triggers(info, audit.triggers)?;
    Ok(AuditPlan {
        event: named(&audit.event)?,
        payload: named(&audit.payload)?,
        order: optional(&audit.order)?,
        task: optional(&audit.task)?.filter(|name| !refers(name)),
        // A rowid is a number, which is chosen when the row is written.
        id: optional(&audit.id)?.filter(|name| info.rowid != Rowid::Column(name.clone())),
        table: info.clone(),
    })
}
