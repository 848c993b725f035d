//! Moments that have no task of their own: where the anchor's tables were when somebody asked.

use ic_base::{Code, Diagnosis, Result};
use serde::{Deserialize, Serialize};

use super::{Moment, Named, RelationalRollbackEngine, Rewind, RollbackResult, RollbackSnapshot};
use crate::archive::Archive;
use crate::order;
use crate::plan::{Bound, Line, Plan};
use crate::session::quote;
use crate::value::Scalar;

/// The last task of every scope at one moment. It can be kept as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// One for each scope that had a task; without scope columns at most one.
    pub scopes: Vec<ScopeMark>,
}

/// The last task of one scope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScopeMark {
    /// The values of the scope columns.
    pub scope: Vec<Named>,
    /// The greatest order.
    pub order: Scalar,
    /// The key of a row that has it.
    pub key: Scalar,
}

impl RelationalRollbackEngine {
    /// The greatest order and its key in every scope of the anchor. Nothing is changed.
    ///
    /// Errors: `conflict` when the greatest is nothing that can be compared.
    pub fn mark(&self) -> Result<Mark> {
        self.session.reading(|| {
            let (_, plan) = self.plan()?;
            let anchor = &plan.anchor;
            let scope: Vec<String> = anchor.scope.iter().map(|c| quote(c)).collect();
            let (order, key, table) = (quote(&anchor.order), quote(&anchor.key), quote(&anchor.table));
            let selected: String = scope.iter().map(|c| format!(", {c}")).collect();
            let grouped =
                if scope.is_empty() { String::new() } else { format!(" GROUP BY {}", scope.join(", ")) };
            // SQLite takes the other columns from the row that has the maximum.
            let sql = format!(
                "SELECT max({order}), {key}, count(*){selected} FROM main.{table}{grouped} HAVING count(*) > 0"
            );
            let scopes = self.session.query_all(&sql, &[], |row| {
                let scope = anchor.scope.iter().enumerate().map(|(n, c)| Ok((c.clone(), row.get(3 + n)?)));
                let scope = scope.collect::<rusqlite::Result<_>>()?;
                Ok(ScopeMark { order: row.get(0)?, key: row.get(1)?, scope })
            })?;
            for mark in &scopes {
                order::check_target(&mark.key.to_string(), &anchor.order, &mark.order)?;
            }
            Ok(Mark { scopes })
        })
    }

    /// What [`rollback_to_mark`](Self::rollback_to_mark) would take away now. Nothing is changed.
    pub fn get_mark_snapshot(&self, mark: &Mark, scope: &[(String, Scalar)]) -> Result<RollbackSnapshot> {
        self.preview(|plan| moment_of_mark(plan, mark, scope))
    }

    /// Takes the tables back to a mark, as [`rollback_to_task`](Self::rollback_to_task) does to a task.
    ///
    /// `scope` gives every scope column of the anchor; it is empty when there is none. A scope that had no task when
    /// the mark was made loses all of its rows. Errors: also `invalid_value` for another scope.
    pub fn rollback_to_mark(
        &mut self,
        mark: &Mark,
        scope: &[(String, Scalar)],
        rewind: &Rewind<'_>,
        archive: &mut Archive,
    ) -> Result<RollbackResult> {
        self.rewind(rewind, archive, &|plan| moment_of_mark(plan, mark, scope))
    }
}

fn moment_of_mark(plan: &Plan, mark: &Mark, scope: &[Named]) -> Result<Moment> {
    let columns = &plan.anchor.scope;
    let value = |column: &String| {
        scope.iter().find(|(name, _)| name.eq_ignore_ascii_case(column)).map(|(_, v)| v.clone())
    };
    let values: Option<Vec<Scalar>> = columns.iter().map(value).collect();
    let Some(values) = values.filter(|values| values.len() == scope.len()) else {
        return Err(Diagnosis::new(
            Code::InvalidValue,
            format!("The scope of {} has other columns than those that were given.", plan.anchor.table),
        )
        .hint(match columns.as_slice() {
            [] => "give none".to_owned(),
            columns => format!("give each of: {}", columns.join(", ")),
        }));
    };
    let is_it = |mark: &&ScopeMark| {
        mark.scope.len() == values.len() && mark.scope.iter().zip(&values).all(|((_, a), b)| a == b)
    };
    let found = mark.scopes.iter().find(is_it);
    if let Some(found) = found {
        order::check_target(&found.key.to_string(), &plan.anchor.order, &found.order)?;
    }
    Ok(Moment {
        task_id: found.map(|mark| mark.key.to_string()),
        line: Line {
            bound: found.map_or(Bound::Everything, |mark| Bound::After(mark.order.clone())),
            scope: values,
        },
    })
}
