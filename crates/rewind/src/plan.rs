//! A target checked against the schema: which rows of which tables go, in which order.

use ic_base::Result;

use crate::config::{Anchor, Audit, Target, Triggers};
use crate::error::misfit;
use crate::schema::{Catalog, Column, ForeignKey, Rowid, TableInfo, TableKind};
use crate::session::quote;
use crate::value::Scalar;

mod sort;
mod table;

pub(crate) use table::{CutOrder, CutTable};

/// What the audit writes when rows were taken back, and when they were put back.
pub(crate) const COMPLETED: &str = "ROLLBACK_COMPLETED";
pub(crate) const UNDONE: &str = "ROLLBACK_UNDONE";

/// What is taken back: rows with an order above this.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Bound {
    After(Scalar),
    /// All rows: there was none yet at the moment that is gone back to.
    Everything,
}

/// Where a cut goes through: the bound, and the values of the anchor's scope columns.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) bound: Bound,
    pub(crate) scope: Vec<Scalar>,
}

/// SQL that is true for some rows of a table, and what its numbered parameters stand for.
#[derive(Debug, Clone)]
pub(crate) struct Condition {
    pub(crate) sql: String,
    pub(crate) params: Vec<Scalar>,
}

/// The audit's table and columns, as they are declared.
pub(crate) struct AuditPlan {
    pub(crate) table: TableInfo,
    pub(crate) event: String,
    pub(crate) payload: String,
    pub(crate) order: Option<String>,
    pub(crate) task: Option<String>,
    pub(crate) id: Option<String>,
}

/// A target that fits its database.
pub(crate) struct Plan {
    pub(crate) anchor: Anchor,
    /// The tables that are cut, children before parents.
    pub(crate) cuts: Vec<CutTable>,
    pub(crate) audit: Option<AuditPlan>,
    /// All foreign keys.
    pub(crate) keys: Vec<ForeignKey>,
}

impl Plan {
    /// Errors: `invalid_config`, which says what does not fit.
    pub(crate) fn new(target: &Target, catalog: &Catalog) -> Result<Self> {
        let anchor = check_anchor(&target.anchor, catalog)?;
        let audit = target.audit.as_ref().map(|audit| check_audit(audit, catalog)).transpose()?;
        let mut cuts = Vec::new();
        for table in &target.tables {
            let cut = CutTable::new(table, &target.tables, &anchor, audit.as_ref(), catalog)?;
            if cuts.iter().any(|other: &CutTable| other.info.name == cut.info.name) {
                return Err(misfit(format!(
                    "The table {} stands twice in the configuration.",
                    cut.info.name
                )));
            }
            cuts.push(cut);
        }
        let cuts = sort::children_first(cuts, &catalog.foreign_keys)?;
        Ok(Self { anchor, cuts, audit, keys: catalog.foreign_keys.clone() })
    }

    pub(crate) fn cut(&self, table: &str) -> Option<&CutTable> {
        self.cuts.iter().find(|cut| cut.info.name == table)
    }

    /// The rows of `cut` that go. `c` is the name of the table in the condition.
    pub(crate) fn doomed(&self, cut: &CutTable, line: &Line) -> Condition {
        let mut params = Vec::new();
        if let Bound::After(order) = &line.bound {
            params.push(order.clone());
        }
        params.extend(line.scope.iter().cloned());
        let sql = self.doomed_sql(cut, line, "c", 0);
        // A statement must not be given parameters that it does not have.
        Condition { sql, params }
    }

    fn doomed_sql(&self, cut: &CutTable, line: &Line, alias: &str, depth: usize) -> String {
        let after = |column: &str| match line.bound {
            Bound::After(_) => format!("{alias}.{} > ?1", quote(column)),
            Bound::Everything => format!("{alias}.{} IS NOT NULL", quote(column)),
        };
        let first_scope = if matches!(line.bound, Bound::After(_)) { 2 } else { 1 };
        let scope = |columns: &[Option<String>]| -> String {
            let numbered = columns.iter().enumerate();
            numbered
                .filter_map(|(n, column)| Some((n + first_scope, column.as_ref()?)))
                .map(|(n, column)| format!(" AND {alias}.{} IS ?{n}", quote(column)))
                .collect()
        };
        let sql = match &cut.order {
            CutOrder::Column(column) => format!("{}{}", after(column), scope(&cut.scope)),
            CutOrder::Follow { parent, on, order } => {
                let inner = format!("p{depth}");
                let joined: Vec<String> = on
                    .iter()
                    .map(|(child, up)| format!("{inner}.{} = {alias}.{}", quote(up), column_or_rowid(child)))
                    .collect();
                let above = self.cut(parent).map_or_else(
                    || "FALSE".to_owned(),
                    |parent| self.doomed_sql(parent, line, &inner, depth + 1),
                );
                // The row's own copies of the parent's columns are asked too: their index finds the rows at once.
                let own = order.as_ref().map(|column| format!("{} AND ", after(column))).unwrap_or_default();
                format!(
                    "{own}EXISTS (SELECT 1 FROM main.{} AS {inner} WHERE {} AND {above}){}",
                    quote(parent),
                    joined.join(" AND "),
                    scope(&cut.scope)
                )
            }
        };
        match &cut.exempt {
            Some(event) => format!("{sql}{}", exempt_sql(alias, event)),
            None => sql,
        }
    }

    /// The rows of `cut` whose order counts: those of the line's scope, audit rows aside.
    pub(crate) fn compared(cut: &CutTable, line: &Line) -> Condition {
        let mut sql = "TRUE".to_owned();
        let mut params = Vec::new();
        // A table with an order of its own has all scope columns.
        for (column, value) in cut.scope.iter().flatten().zip(&line.scope) {
            params.push(value.clone());
            sql.push_str(&format!(" AND c.{} IS ?{}", quote(column), params.len()));
        }
        if let Some(event) = &cut.exempt {
            sql.push_str(&exempt_sql("c", event));
        }
        Condition { sql, params }
    }
}

/// Excludes the rows that rewinds wrote.
fn exempt_sql(alias: &str, event: &str) -> String {
    let event = quote(event);
    format!(" AND {alias}.{event} IS NOT '{COMPLETED}' AND {alias}.{event} IS NOT '{UNDONE}'")
}

/// A column in SQL; `rowid` stays the rowid.
pub(crate) fn column_or_rowid(name: &str) -> String {
    if name == "rowid" { name.to_owned() } else { quote(name) }
}

/// The column of `table` with this name, as it is declared. Errors: `invalid_config`.
pub(crate) fn column<'a>(table: &'a TableInfo, name: &str) -> Result<&'a Column> {
    table.column(name).ok_or_else(|| {
        let names: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
        misfit(format!("The table {} has no column {name}; it has {}.", table.name, names.join(", ")))
            .detail("table", table.name.as_str())
            .detail("column", name)
    })
}

/// The table with this name. Errors: `invalid_config`.
pub(crate) fn table<'a>(catalog: &'a Catalog, name: &str) -> Result<&'a TableInfo> {
    catalog
        .table(name)
        .ok_or_else(|| misfit(format!("The state database has no table {name}.")).detail("table", name))
}

fn check_anchor(anchor: &Anchor, catalog: &Catalog) -> Result<Anchor> {
    let info = table(catalog, &anchor.table)?;
    if !matches!(info.kind, TableKind::Table | TableKind::View) {
        return Err(misfit(format!(
            "{} is no table with rows of its own; it cannot be the anchor.",
            info.name
        )));
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
        return Err(misfit(format!(
            "{} is no table with rows of its own; it cannot be the audit.",
            info.name
        )));
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
        // A rowid is a number, which is found when the row is written.
        id: optional(&audit.id)?.filter(|name| info.rowid != Rowid::Column(name.clone())),
        table: info.clone(),
    })
}

/// Errors: `invalid_config` when the table has triggers and they are not declared to fire.
pub(crate) fn refuse_triggers(info: &TableInfo, declared: Triggers) -> Result<()> {
    if info.triggers.is_empty() || declared == Triggers::Fire {
        return Ok(());
    }
    let names: Vec<&str> = info.triggers.iter().map(|t| t.name.as_str()).collect();
    Err(misfit(format!(
        "The table {} has triggers, which would run with a rewind: {}.",
        info.name,
        names.join(", ")
    ))
    .hint("if they may, give the table `triggers: fire`")
    .detail("triggers", names))
}
