//! SQL for the rows of a table to be removed.

use super::column::column_or_rowid;
use super::table::{CutOrder, CutTable, LastParent};
use super::{COMPLETED, CutBound, CutPlan, PlanLine, UNDONE};
use crate::config::Boundary;
use crate::lineage::LineageRows;
use crate::session::quote;
use crate::value::SqlScalar;

/// SQL that is true for some rows of a table, and the values of its numbered parameters.
#[derive(Debug, Clone)]
pub(crate) struct SqlCondition {
    pub(crate) sql: String,
    pub(crate) params: Vec<SqlScalar>,
}

impl CutTable {
    /// The SQL operator between the order of a row to be removed and the target's.
    pub(crate) fn comparison(&self) -> &'static str {
        match self.boundary {
            Boundary::Exclusive => ">",
            Boundary::Inclusive => ">=",
        }
    }
}

impl CutPlan {
    /// The rows of `cut` to be removed. `c` is the name of the table in the condition.
    pub(crate) fn doomed(&self, cut: &CutTable, line: &PlanLine) -> SqlCondition {
        // ?1 is the bound, if there is one. Then come the values of the scope, and finally the lists of a lineage as one JSON text.
        let mut params = Vec::new();
        if let CutBound::After(order) = &line.bound {
            params.push(order.clone());
        }
        params.extend(line.scope.iter().cloned());
        params.extend(line.rows.as_ref().map(LineageRows::parameter));
        let sql = self.doomed_sql(cut, line, "c", 0);
        // Only the parameters that the SQL has: SQLite refuses more.
        SqlCondition { sql, params }
    }

    /// The same where the table is named `alias`, for a query with the parameters of [`doomed`](Self::doomed).
    pub(crate) fn doomed_as(&self, cut: &CutTable, line: &PlanLine, alias: &str) -> String {
        self.doomed_sql(cut, line, alias, 0)
    }

    fn doomed_sql(&self, cut: &CutTable, line: &PlanLine, alias: &str, depth: usize) -> String {
        let sql = match &cut.order {
            CutOrder::Column(_) if self.is_by_rows(cut, line) => among(line, alias, "doomed"),
            CutOrder::Column(column) => after(line, alias, column, cut.comparison()),
            CutOrder::Follow { parent, on, order, last } => {
                // A parent may follow another table: each level has a name of its own.
                let inner = format!("p{depth}");
                let joined: Vec<String> = on
                    .iter()
                    .map(|(child, up)| format!("{inner}.{} = {alias}.{}", quote(up), column_or_rowid(child)))
                    .collect();
                // A parent that is not cut was refused when the plan was made (`follow_parent`).
                let Some(parent) = self.cut(parent) else { return "FALSE".to_owned() };
                let above = self.doomed_sql(parent, line, &inner, depth + 1);
                let at_the_end = last.as_ref().and_then(|last| Self::is_last_sql(parent, last, line, &inner));
                // Where rows are listed, ids do not sort by time, and a copy of the parent's id sorts no better.
                let order = order.as_ref().filter(|_| line.rows.is_none());
                let (own, goes) = match (order, at_the_end) {
                    // The row's own copies of the parent's columns are compared too: their index finds the rows at once.
                    (Some(column), None) => {
                        (format!("{} AND ", after(line, alias, column, parent.comparison())), above)
                    }
                    (None, None) => (String::new(), above),
                    (_, Some(at_the_end)) => (String::new(), format!("({above} OR {at_the_end})")),
                };
                // For rows of `logs` that follow `tasks`:
                // EXISTS (SELECT 1 FROM main."tasks" AS p0 WHERE p0."id" = c."task_id" AND p0."created_at" > ?1)
                let (parent, joined) = (quote(&parent.info.name), joined.join(" AND "));
                format!("{own}EXISTS (SELECT 1 FROM main.{parent} AS {inner} WHERE {joined} AND {goes})")
            }
        };
        let scope = in_scope(cut, line, alias);
        match &cut.exempt {
            Some(event) => format!("{sql}{scope}{}", exempt_sql(alias, event)),
            None => format!("{sql}{scope}"),
        }
    }

    /// SQL that is true for the last rows of `parent` that stay; `None` when none stays.
    fn is_last_sql(parent: &CutTable, last: &LastParent, line: &PlanLine, alias: &str) -> Option<String> {
        let CutBound::After(_) = line.bound else { return None };
        if line.rows.is_some() {
            return Some(among(line, alias, "last"));
        }
        let (later, order) = (format!("{alias}l"), quote(&last.order));
        // The inverse is written out: SQLite uses no index for `NOT a > b`.
        let stays = match parent.boundary {
            Boundary::Exclusive => "<=",
            Boundary::Inclusive => "<",
        };
        let stays = |alias: &str| format!("{alias}.{order} {stays} ?1{}", in_scope(parent, line, alias));
        // `IS`, because a part of a key may be NULL, and `=` would take two of them for different.
        let apart: String =
            last.apart.iter().map(|column| format!("{later}.{0} IS {alias}.{0} AND ", quote(column))).collect();
        // The row is not beyond the bound, and no other parent of the same group is between it and the bound.
        Some(format!(
            "({} AND NOT EXISTS (SELECT 1 FROM main.{} AS {later} WHERE {apart}{later}.{order} > {alias}.{order} AND {}))",
            stays(alias),
            quote(&parent.info.name),
            stays(&later),
        ))
    }

    /// Whether the rows of this table are removed by their parents, and not by their order.
    pub(crate) fn is_by_rows(&self, cut: &CutTable, line: &PlanLine) -> bool {
        line.rows.is_some() && cut.info.name == self.anchor.table
    }

    /// The rows of `cut` whose order counts: those of the line's scope, without audit rows.
    pub(crate) fn compared(cut: &CutTable, line: &PlanLine) -> SqlCondition {
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
        SqlCondition { sql, params }
    }
}

fn after(line: &PlanLine, alias: &str, column: &str, comparison: &str) -> String {
    match line.bound {
        // A row without an order is not left behind unseen: `order::check` refuses the rewind before anything is removed.
        CutBound::After(_) => format!("{alias}.{} {comparison} ?1", quote(column)),
        CutBound::Everything => format!("{alias}.{} IS NOT NULL", quote(column)),
    }
}

/// The rows of this list, which is in the parameter after those of the scope.
fn among(line: &PlanLine, alias: &str, list: &str) -> String {
    let n = usize::from(matches!(line.bound, CutBound::After(_))) + line.scope.len() + 1;
    format!("{alias}.rowid IN (SELECT value FROM json_each(?{n}, '$.{list}'))")
}

fn in_scope(cut: &CutTable, line: &PlanLine, alias: &str) -> String {
    let first = if matches!(line.bound, CutBound::After(_)) { 2 } else { 1 };
    let numbered = cut.scope.iter().enumerate();
    numbered
        .filter_map(|(n, column)| Some((n + first, column.as_ref()?)))
        .map(|(n, column)| format!(" AND {alias}.{} IS ?{n}", quote(column)))
        .collect()
}

/// Excludes audit rows, which rewinds wrote.
fn exempt_sql(alias: &str, event: &str) -> String {
    let event = quote(event);
    // `IS NOT`, because a row whose event is NULL is not an audit row: `<>` would keep it.
    format!(" AND {alias}.{event} IS NOT '{COMPLETED}' AND {alias}.{event} IS NOT '{UNDONE}'")
}
