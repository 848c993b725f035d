//! Moments without a task of their own: the position of the tables when it was recorded.
//!
//! Rows of other tables may be newer than the last task and existed anyway, so the mark is behind them too.

use ic_base::{Code, Diagnosis, Result};
use serde::{Deserialize, Serialize};

use super::moment::{Moment, NamedMoment, RelationalRollbackEngine, Rewind, RollbackResult, RollbackSnapshot};
use crate::archive::Archive;
use crate::lineage::Lineage;
use crate::order::{self, OrderFormat};
use crate::plan::{CutBound, CutOrder, CutPlan, CutTable, PlanLine};
use crate::session::quote;
use crate::value::SqlScalar;

/// The last task, and the newest row, of every scope at one moment. A mark is stored as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StateMark {
    /// One for each scope that had rows; without scope columns at most one.
    pub scopes: Vec<ScopeMark>,
}

/// The last task, and the newest row, of one scope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScopeMark {
    /// The values of the scope columns.
    pub scope: Vec<NamedMoment>,
    /// The greatest order of all tables that are cut.
    pub order: SqlScalar,
    /// The key of the last task; NULL if there was none.
    pub key: SqlScalar,
}

impl RelationalRollbackEngine {
    /// The greatest order and the last task's key in every scope. Nothing is changed.
    ///
    /// Errors: `no_order` when the greatest order cannot be compared with others.
    pub fn mark(&self) -> Result<StateMark> {
        self.session.reading(|| {
            let (_, plan) = self.plan()?;
            let anchor = &plan.anchor;
            let scope: Vec<String> = anchor.scope.iter().map(|c| quote(c)).collect();
            let (order, key, table) = (quote(&anchor.order), quote(&anchor.key), quote(&anchor.table));
            let selected: String = scope.iter().map(|c| format!(", {c}")).collect();
            let grouped = if scope.is_empty() { String::new() } else { format!(" GROUP BY {}", scope.join(", ")) };
            // SQLite takes the other columns from the row with the maximum.
            // Without GROUP BY, an aggregate has one row even for an empty table: HAVING takes it out.
            let sql = format!(
                "SELECT max({order}), {key}, count(*){selected} FROM main.{table}{grouped} HAVING count(*) > 0"
            );
            let mut scopes = self.session.query_all(&sql, &[], |row| {
                let scope = anchor.scope.iter().enumerate().map(|(n, c)| Ok((c.clone(), row.get(3 + n)?)));
                let scope = scope.collect::<rusqlite::Result<_>>()?;
                Ok(ScopeMark { order: row.get(0)?, key: row.get(1)?, scope })
            })?;
            // It is refused now, because a rewind to this mark would be refused for the same order.
            for mark in &scopes {
                order::check_target(&mark.key.to_string(), &anchor.order, &mark.order)?;
            }
            for cut in &plan.cuts {
                for (scope, newest) in self.newest_rows(&plan, cut)? {
                    move_behind(&mut scopes, scope, newest);
                }
            }
            Ok(StateMark { scopes })
        })
    }

    /// The greatest order of a table in every scope; none for the anchor, or for a table without an order of its own. Audit rows are left
    /// out.
    fn newest_rows(&self, plan: &CutPlan, cut: &CutTable) -> Result<Vec<(Vec<NamedMoment>, SqlScalar)>> {
        let CutOrder::Column(order) = &cut.order else { return Ok(Vec::new()) };
        // The mark begins with the anchor's own greatest order.
        if cut.info.name == plan.anchor.table && *order == plan.anchor.order && cut.exempt.is_none() {
            return Ok(Vec::new());
        }
        let own: Vec<String> = cut.scope.iter().flatten().map(|c| quote(c)).collect();
        let selected: String = own.iter().map(|c| format!(", c.{c}")).collect();
        let grouped = if own.is_empty() { String::new() } else { format!(" GROUP BY c.{}", own.join(", c.")) };
        // Without values for the scope, `compared` leaves out audit rows and nothing else.
        let everything = PlanLine { bound: CutBound::Everything, scope: Vec::new(), rows: None };
        let counted = CutPlan::compared(cut, &everything).sql;
        let (order, table) = (quote(order), quote(&cut.info.name));
        let sql = format!(
            "SELECT max(c.{order}){selected} FROM main.{table} AS c WHERE {counted}{grouped} HAVING count(*) > 0"
        );
        self.session.query_all(&sql, &[], |row| {
            let names = plan.anchor.scope.iter().enumerate();
            let scope = names.map(|(n, c)| Ok((c.clone(), row.get(1 + n)?))).collect::<rusqlite::Result<_>>()?;
            Ok((scope, row.get(0)?))
        })
    }

    /// What [`rollback_to_mark`](Self::rollback_to_mark) would remove now. Nothing is changed.
    pub fn get_mark_snapshot(&self, mark: &StateMark, scope: &[(String, SqlScalar)]) -> Result<RollbackSnapshot> {
        self.preview(true, |plan| self.moment_of_mark(plan, mark, scope))
    }

    /// Rewinds the tables to a mark, as [`rollback_to_task`](Self::rollback_to_task) does to a task.
    ///
    /// `scope` gives every scope column of the anchor; it is empty when there is none. A scope that had no task when
    /// the mark was made loses all of its rows. Errors: also `invalid_value` for another scope, and `no_checkpoint` for a mark that was
    /// made with other scope columns.
    pub fn rollback_to_mark(
        &mut self,
        mark: &StateMark,
        scope: &[(String, SqlScalar)],
        rewind: &Rewind<'_>,
        archive: &mut Archive,
    ) -> Result<RollbackResult> {
        self.rewind(rewind, archive, &|plan| self.moment_of_mark(plan, mark, scope))
    }
}

impl RelationalRollbackEngine {
    /// Refuses threads whose ids do not sort as their parents do: a mark has only the greatest id, which says nothing about a checkpoint
    /// whose id sorts below it.
    fn moment_of_mark(&self, plan: &CutPlan, mark: &StateMark, scope: &[NamedMoment]) -> Result<Moment> {
        let moment = moment_of_mark(plan, mark, scope)?;
        match Lineage::of(&self.session, &self.target, &moment.line.scope)? {
            Some(lineage) if moment.line.bound != CutBound::Everything && !lineage.sorts_by_id() => Err(Diagnosis::new(
                Code::NoOrder,
                "The ids of this thread do not sort as their parents do, and a position of tables is known by ids alone.",
            )
            .hint("take this thread back by itself: ic rewind targets, then: ic rewind to TASK --yes")),
            _ => Ok(moment),
        }
    }
}

/// Moves the mark of a scope behind a row that existed. A row that cannot be compared is left to the rewind, which names it.
fn move_behind(scopes: &mut Vec<ScopeMark>, scope: Vec<NamedMoment>, newest: SqlScalar) {
    match scopes.iter_mut().find(|mark| mark.scope == scope) {
        Some(mark) if is_after(&newest, &mark.order) => mark.order = newest,
        None if order::check_target("", "", &newest).is_ok() => {
            // The scope has rows, and no task yet.
            scopes.push(ScopeMark { scope, order: newest, key: SqlScalar::Null });
        }
        _ => {}
    }
}

/// Whether `a` comes after `b` in the same kind of order.
fn is_after(a: &SqlScalar, b: &SqlScalar) -> bool {
    let is_same_kind = matches!((OrderFormat::of(a), OrderFormat::of(b)), (Ok(a), Ok(b)) if a == b);
    is_same_kind
        && match (a, b) {
            (SqlScalar::Integer(a), SqlScalar::Integer(b)) => a > b,
            #[allow(clippy::cast_precision_loss, reason = "SQLite compares them so, too, but for the last digits")]
            (SqlScalar::Integer(a), SqlScalar::Real(b)) => *a as f64 > *b,
            #[allow(clippy::cast_precision_loss, reason = "SQLite compares them so, too, but for the last digits")]
            (SqlScalar::Real(a), SqlScalar::Integer(b)) => *a > *b as f64,
            (SqlScalar::Real(a), SqlScalar::Real(b)) => a > b,
            (SqlScalar::Text(a), SqlScalar::Text(b)) => a > b,
            _ => false,
        }
}

impl StateMark {
    /// Errors: `no_checkpoint` for a mark that was made by other scope columns than these. It has none of their scopes, and says nothing
    /// about their rows.
    pub fn require_columns(&self, columns: &[String]) -> Result<()> {
        let other = self.scopes.iter().find(|mark| values_of(columns, &mark.scope).is_none());
        other.map_or(Ok(()), |mark| Err(other_columns(columns, mark)))
    }
}

/// The values of these columns, found by name: after a change of the configuration, another column may be at the same place. `None` if
/// the scope has others.
fn values_of(columns: &[String], scope: &[NamedMoment]) -> Option<Vec<SqlScalar>> {
    let value = |column: &String| scope.iter().find(|(name, _)| name.eq_ignore_ascii_case(column));
    let values = columns.iter().map(|column| value(column).map(|(_, value)| value.clone())).collect();
    if scope.len() == columns.len() { values } else { None }
}

fn other_columns(columns: &[String], mark: &ScopeMark) -> Diagnosis {
    let listed = |names: &mut dyn Iterator<Item = &str>| match names.collect::<Vec<_>>() {
        names if names.is_empty() => "no columns".to_owned(),
        names => names.join(", "),
    };
    let then = listed(&mut mark.scope.iter().map(|(name, _)| name.as_str()));
    let now = listed(&mut columns.iter().map(String::as_str));
    Diagnosis::new(
        Code::NoCheckpoint,
        format!("When the position of the state database was recorded, rows were scoped by {then}, and now they are by {now}."),
    )
    .hint("configure `anchor: scope` as it was; or roll the rows back by themselves: ic rewind to TASK --yes")
}

fn moment_of_mark(plan: &CutPlan, mark: &StateMark, scope: &[NamedMoment]) -> Result<Moment> {
    let columns = &plan.anchor.scope;
    let Some(values) = values_of(columns, scope) else {
        return Err(Diagnosis::new(
            Code::InvalidValue,
            format!("The scope of {} has other columns than those that were given.", plan.anchor.table),
        )
        .hint(match columns.as_slice() {
            [] => "give none".to_owned(),
            columns => format!("give each of: {}", columns.join(", ")),
        }));
    };
    mark.require_columns(columns)?;
    // A scope that is not in the mark counts as one without a row at that moment: all of its rows are newer then.
    let found = mark.scopes.iter().find(|mark| values_of(columns, &mark.scope).as_ref() == Some(&values));
    if let Some(found) = found {
        order::check_target(&found.key.to_string(), &plan.anchor.order, &found.order)?;
    }
    let task = found.map(|mark| &mark.key).filter(|key| **key != SqlScalar::Null);
    Ok(Moment {
        task_id: task.map(ToString::to_string),
        line: PlanLine {
            bound: found.map_or(CutBound::Everything, |mark| CutBound::After(mark.order.clone())),
            scope: values,
            rows: None,
        },
    })
}
