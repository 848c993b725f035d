//! Whether the orders of rows can be compared with the target's at all.
//!
//! Numbers compare with numbers. Texts compare only in one fixed format, where every position has one meaning: as text `…00.5Z` is less
//! than `…00Z`, and `9` is more than `10`. Any other comparison would remove the wrong rows, and is refused.

use ic_base::{Code, Diagnosis, Result};

use crate::error::{RowNames, row_name};
use crate::plan::{CutBound, CutOrder, CutPlan, CutTable, PlanLine, SqlCondition};
use crate::session::{DatabaseSession, quote};
use crate::value::SqlScalar;
use rusqlite::types::FromSql as _;

mod format;

pub(crate) use format::{OrderFormat, Unit};

/// The number of rows of `cut` to be removed, with a check that costs little more than the count alone.
///
/// Errors: `no_order` when that finds a row that cannot be compared; [`check`] finds all of them.
pub(crate) fn count(session: &DatabaseSession, plan: &CutPlan, cut: &CutTable, line: &PlanLine) -> Result<u64> {
    // Rows that follow a parent or are listed are compared with nothing, so there is nothing to check.
    let by_order = match &cut.order {
        CutOrder::Column(column) if !plan.is_by_rows(cut, line) => Some(column),
        _ => None,
    };
    let Some(column) = by_order else {
        let doomed = plan.doomed(cut, line);
        let sql = format!("SELECT count(*) FROM main.{} AS c WHERE {}", quote(&cut.info.name), doomed.sql);
        return session.query_one(&sql, &doomed.params, |row| row.get::<_, i64>(0)).map(unsigned);
    };
    let (rows, sound) = match &line.bound {
        CutBound::After(order) => match OrderFormat::of(order)? {
            OrderFormat::Text { glob } => count_texts(session, cut, column, order, glob, line)?,
            OrderFormat::Number { .. } => count_numbers(session, cut, column, line)?,
        },
        CutBound::Everything => count_numbers(session, cut, column, line)?,
    };
    // The check names the rows, and reads all of them. It is left out where the count shows that each can be compared.
    if !sound {
        check(session, cut, line)?;
    }
    Ok(rows)
}

fn count_numbers(session: &DatabaseSession, cut: &CutTable, column: &str, line: &PlanLine) -> Result<(u64, bool)> {
    let SqlCondition { sql: compared, mut params } = CutPlan::compared(cut, line);
    let (table, order) = (quote(&cut.info.name), format!("c.{}", quote(column)));
    let may_be_null = cut.info.column(column).is_none_or(|c| !c.not_null);
    // A NULL is neither above nor below. It is counted only so that it is found among the suspects.
    let or_null = if may_be_null { format!(" OR {order} IS NULL") } else { String::new() };
    let (above, unit, suspect) = match &line.bound {
        CutBound::After(bound) => {
            params.push(bound.clone());
            let unit = Unit::of(bound);
            // Texts and blobs sort after all numbers, so a value below a limit is a number.
            // Without a unit the limit is `''`, the least of all texts.
            let limit = unit.map_or_else(|| "''".to_owned(), |unit| unit.end().to_string());
            (format!("{order} {} ?{}", cut.comparison(), params.len()), unit, format!("{order} >= {limit}{or_null}"))
        }
        CutBound::Everything => ("TRUE".to_owned(), None, format!("{order} IS NULL")),
    };
    let sql = format!(
        "SELECT count(*), count(*) FILTER (WHERE {suspect}) FROM main.{table} AS c WHERE ({above}{or_null}) AND {compared}"
    );
    let (rows, suspects) =
        session.query_one(&sql, &params, |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
    // Rows between the target and the end of its unit are of its unit. If there is none, the whole column may be of a smaller
    // one, which a single row tells.
    let sound = suspects == 0 && (unit.is_none() || rows > 0 || first_has_unit(session, cut, column, line, unit)?);
    Ok((unsigned(rows), sound))
}

/// Whether the first row has the unit of the target: a table in seconds has nothing above a target in milliseconds.
fn first_has_unit(
    session: &DatabaseSession,
    cut: &CutTable,
    column: &str,
    line: &PlanLine,
    unit: Option<Unit>,
) -> Result<bool> {
    let SqlCondition { sql: compared, params } = CutPlan::compared(cut, line);
    let (order, table) = (quote(column), quote(&cut.info.name));
    let sql = format!("SELECT c.{order} FROM main.{table} AS c WHERE {compared} LIMIT 1");
    let first = session.query_all(&sql, &params, |row| row.get::<_, SqlScalar>(0))?;
    let other = first.first().and_then(Unit::of);
    Ok(other.is_none() || other == unit)
}

fn count_texts(
    session: &DatabaseSession,
    cut: &CutTable,
    column: &str,
    bound: &SqlScalar,
    glob: String,
    line: &PlanLine,
) -> Result<(u64, bool)> {
    let SqlCondition { sql: compared, mut params } = CutPlan::compared(cut, line);
    let (order, table) = (quote(column), quote(&cut.info.name));
    params.extend([bound.clone(), SqlScalar::Text(glob)]);
    let n = params.len();
    // All rows are compared with the pattern, even those below the target: in another format a newer row may sort below it.
    let sql = format!(
        "SELECT count(*) FILTER (WHERE c.{order} {} ?{}), \
         count(*) FILTER (WHERE typeof(c.{order}) = 'text' AND c.{order} GLOB ?{n}), count(*) \
         FROM main.{table} AS c WHERE {compared}",
        cut.comparison(),
        n - 1
    );
    let (rows, sound, all) = session
        .query_one(&sql, &params, |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)))?;
    Ok((unsigned(rows), sound == all))
}

/// Checks every row of `cut` that is compared with the target.
///
/// Errors: `no_order`, which names rows that have no order, or one that is not of the target's kind.
pub(crate) fn check(session: &DatabaseSession, cut: &CutTable, line: &PlanLine) -> Result<()> {
    let CutOrder::Column(column) = &cut.order else { return Ok(()) };
    if line.rows.is_some() {
        return Ok(());
    }
    let SqlCondition { sql: compared, mut params } = CutPlan::compared(cut, line);
    let order = format!("c.{}", quote(column));
    let wrong = match &line.bound {
        CutBound::Everything => format!("{order} IS NULL"),
        CutBound::After(bound) => match OrderFormat::of(bound)? {
            OrderFormat::Text { glob } => {
                params.push(SqlScalar::Text(glob));
                let n = params.len();
                format!("{order} IS NULL OR typeof({order}) <> 'text' OR {order} NOT GLOB ?{n}")
            }
            OrderFormat::Number { unit } => {
                let others = unit.map(|unit| unit.others(&order)).unwrap_or_default();
                // Without a unit every number is usual, and texts come after all numbers.
                let usual = unit.map_or_else(|| "-9e999 AND ''".to_owned(), Unit::usual);
                // Nearly all rows are in the usual range, which two comparisons tell.
                format!(
                    "({order} BETWEEN {usual}) IS NOT TRUE AND \
                     ({order} IS NULL OR typeof({order}) NOT IN ('integer', 'real'){others})"
                )
            }
        },
    };
    let key = cut.info.key("c");
    let sql = format!(
        "SELECT {order}, {} FROM main.{} AS c WHERE {compared} AND ({wrong}) LIMIT {}",
        key.join(", "),
        quote(&cut.info.name),
        RowNames::LIMIT + 1
    );
    let mut names = RowNames::default();
    for (order, key) in session.query_all(&sql, &params, |row| {
        let key = shown_key(row, 1, key.len())?;
        Ok((SqlScalar::shown(row.get_ref(0)?), key))
    })? {
        names.push(format!("{} ({column} {order})", row_name(&cut.info.name, &key)));
    }
    if names.is_empty() {
        return Ok(());
    }
    let what = match &line.bound {
        CutBound::Everything => "These rows have no place in time".to_owned(),
        CutBound::After(bound) => format!("These rows cannot be compared with the target's {bound}"),
    };
    Err(names
        .refuse(&what)
        .hint("give them a value of the same kind and format, or leave the table out of the configuration")
        .detail("table", cut.info.name.as_str()))
}

/// Checks the order of a target. Errors: `no_order` when no row could be compared with it.
pub(crate) fn check_target(task: &str, column: &str, order: &SqlScalar) -> Result<()> {
    let refused = |why: &str| {
        Err(Diagnosis::new(Code::NoOrder, format!("The task {task} has {why} in {column}."))
            .hint("nothing can be compared with it; give the task a time"))
    };
    match order {
        SqlScalar::Null => refused("no value"),
        SqlScalar::Blob { .. } => refused("a BLOB"),
        SqlScalar::Real(r) if !r.is_finite() => refused("an infinite value"),
        other => OrderFormat::of(other).map(|_| ()),
    }
}

/// The names of the rows of `table` that `sql` finds. `sql` selects a key, which has this number of `columns`.
pub(crate) fn names_of(
    session: &DatabaseSession,
    table: &str,
    columns: usize,
    sql: &str,
    params: &[SqlScalar],
) -> Result<RowNames> {
    let mut names = RowNames::default();
    for key in session.query_all(sql, params, |row| shown_key(row, 0, columns))? {
        names.push(row_name(table, &key));
    }
    Ok(names)
}

/// The `columns` values of a row after the first `skipped`, in the form for people, whatever their bytes are.
fn shown_key(row: &rusqlite::Row<'_>, skipped: usize, columns: usize) -> rusqlite::Result<Vec<SqlScalar>> {
    let shown = |value| SqlScalar::column_result(value).unwrap_or_else(|_| SqlScalar::Text(SqlScalar::shown(value)));
    (skipped..skipped + columns).map(|i| row.get_ref(i).map(shown)).collect()
}

pub(crate) fn unsigned(rows: i64) -> u64 {
    u64::try_from(rows).unwrap_or(0)
}
