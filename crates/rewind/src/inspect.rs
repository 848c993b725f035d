//! Reads an unknown database, and proposes a first configuration for it.

use std::path::Path;

use ic_base::Result;
use serde::Serialize;

use crate::config::{Anchor, Profile, RewindTarget, TableConfig, Triggers};
use crate::engine::EngineOptions;
use crate::order::OrderFormat;
use crate::plan::CutPlan;
use crate::schema::{Catalog, ForeignKey, TableInfo, TableKind};
use crate::session::{DatabaseSession, quote};
use crate::value::SqlScalar;

mod followers;

/// The tables of a database, and how it could be rewound.
#[derive(Debug, Clone, Serialize)]
pub struct Inspection {
    /// The tables, in the order in which they were made.
    pub tables: Vec<InspectedTable>,
    /// The foreign keys of all tables.
    pub foreign_keys: Vec<ForeignKey>,
    /// A configuration that fits it; `None` if no table has a column to order its rows by.
    pub target: Option<RewindTarget>,
    /// Remarks about that configuration for a person.
    pub notes: Vec<String>,
}

/// A table, and the columns by which its rows could be ordered.
#[derive(Debug, Clone, Serialize)]
pub struct InspectedTable {
    /// The table as its schema describes it.
    #[serde(flatten)]
    pub info: TableInfo,
    /// Columns that look like the time at which a row was made, likeliest first.
    pub order_candidates: Vec<String>,
}

/// Names, or ends of names, of columns with a time, likeliest first.
const ORDER_NAMES: [&str; 15] = [
    "created_at", "createdat", "created", "inserted_at", "timestamp", "created_on", "ts", "recorded_at", "time",
    "datetime", "date", "started_at", "seq", "updated_at", "at",
];

/// Words in the names of tables whose rows are tasks, likeliest first.
const ANCHOR_NAMES: [&str; 9] =
    ["tasks", "task", "checkpoints", "steps", "jobs", "runs", "sessions", "messages", "events"];

/// Reads the tables, keys and triggers of the database at `path`. Nothing is written.
///
/// Errors: `invalid_config` when there is no database; `foreign_database`, `newer_schema`, `corrupt`, `busy`.
pub fn inspect(path: &Path) -> Result<Inspection> {
    let session = DatabaseSession::open(path, EngineOptions::default().busy_timeout)?;
    session.reading(|| {
        let catalog = Catalog::read(&session)?;
        let mut tables = Vec::new();
        for info in &catalog.tables {
            tables.push(InspectedTable { order_candidates: candidates(&session, info)?, info: info.clone() });
        }
        let mut notes = Vec::new();
        let target = propose(&session, path, &catalog, &tables, &mut notes)?;
        if target.is_none() {
            notes.push("No table has a column that orders its rows by time.".to_owned());
        }
        Ok(Inspection { tables, foreign_keys: catalog.foreign_keys, target, notes })
    })
}

/// The columns of a table that look like times and hold values that can be compared.
fn candidates(session: &DatabaseSession, info: &TableInfo) -> Result<Vec<String>> {
    if info.kind != TableKind::Table {
        return Ok(Vec::new());
    }
    let mut found: Vec<(usize, String)> = Vec::new();
    for column in &info.columns {
        let name = column.name.to_ascii_lowercase();
        let place = ORDER_NAMES.iter().position(|known| *known == name);
        let ends = name.ends_with("_at") || name.ends_with("_time") || name.ends_with("_ts");
        let Some(place) = place.or(ends.then_some(ORDER_NAMES.len())) else { continue };
        if sample(session, info, &column.name)?.is_some() {
            found.push((place, column.name.clone()));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, name)| name).collect())
}

/// The format of a column's values, by its lowest and highest value; [`Sample::Empty`] without rows. `None` when it has NULLs or values
/// that cannot be compared.
fn sample(session: &DatabaseSession, info: &TableInfo, column: &str) -> Result<Option<Sample>> {
    let (column, table) = (quote(column), quote(&info.name));
    // `count(column)` leaves out NULLs, and `count(*)` does not: the difference is their number.
    let sql = format!("SELECT count(*) - count({column}), min({column}), max({column}) FROM main.{table}");
    let (nulls, low, high) = session.query_one(&sql, &[], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, SqlScalar>(1)?, row.get::<_, SqlScalar>(2)?))
    })?;
    Ok(match (low, high) {
        _ if nulls > 0 => None,
        // No NULL was counted, so the table has no rows.
        (SqlScalar::Null, _) => Some(Sample::Empty),
        (SqlScalar::Blob { .. }, _) | (_, SqlScalar::Blob { .. }) => None,
        (low, high) => match (OrderFormat::of(&low), OrderFormat::of(&high)) {
            (Ok(low), Ok(high)) if low == high || is_counter(&low, &high) => Some(Sample::Of(high)),
            _ => None,
        },
    })
}

#[derive(PartialEq)]
enum Sample {
    Empty,
    Of(OrderFormat),
}

/// Whether these are numbers of which not both are times: a counter may grow into the range of times.
fn is_counter(low: &OrderFormat, high: &OrderFormat) -> bool {
    matches!((low, high), (OrderFormat::Number { unit: None }, OrderFormat::Number { .. }))
}

fn propose(
    session: &DatabaseSession,
    path: &Path,
    catalog: &Catalog,
    tables: &[InspectedTable],
    notes: &mut Vec<String>,
) -> Result<Option<RewindTarget>> {
    for profile in [Profile::Langgraph, Profile::Devs] {
        let target = firing(RewindTarget::of_profile(profile, path), catalog, notes);
        if CutPlan::new(&target, catalog).is_ok() {
            return Ok(Some(target));
        }
        // The notes are about the tables of the profile that did not fit.
        notes.clear();
    }
    let Some((anchor, order)) = choose_anchor(catalog, tables) else { return Ok(None) };
    let format = sample(session, anchor, &order)?;
    let mut chosen: Vec<TableConfig> = Vec::new();
    for table in tables {
        for column in &table.order_candidates {
            let own = sample(session, &table.info, column)?;
            // A table without rows fits every format: nothing in it contradicts the anchor.
            if own == format || own == Some(Sample::Empty) || format == Some(Sample::Empty) {
                chosen.push(TableConfig::by_column(&table.info.name, column));
                break;
            }
        }
    }
    followers::add(catalog, &mut chosen);
    followers::add_virtual(catalog, &mut chosen, notes);
    for info in catalog.tables.iter().filter(|t| t.kind == TableKind::Table) {
        if !chosen.iter().any(|table| table.name == info.name) {
            notes.push(format!("{} is left out: its rows have no time, and no single parent that has.", info.name));
        }
    }
    let target = RewindTarget {
        database: path.to_owned(),
        anchor: Anchor {
            table: anchor.name.clone(),
            key: anchor_key(anchor),
            order,
            commit: anchor
                .columns
                .iter()
                .find(|c| c.name.to_ascii_lowercase().contains("commit"))
                .map(|c| c.name.clone()),
            scope: Vec::new(),
        },
        tables: chosen,
        audit: None,
        profile: None,
    };
    let target = firing(target, catalog, notes);
    // What `rewind` itself would refuse is not proposed.
    Ok(CutPlan::new(&target, catalog).is_ok().then_some(target))
}

/// Lets the triggers of all tables fire, and notes that.
fn firing(mut target: RewindTarget, catalog: &Catalog, notes: &mut Vec<String>) -> RewindTarget {
    for table in &mut target.tables {
        let Some(info) = catalog.table(&table.name).filter(|info| !info.triggers.is_empty()) else {
            continue;
        };
        let names: Vec<&str> = info.triggers.iter().map(|t| t.name.as_str()).collect();
        notes.push(format!("{} has triggers, which fire with a rewind: {}.", info.name, names.join(", ")));
        table.triggers = Triggers::Fire;
        // The audit may be in a table that is cut, as in the profile `devs`. It has a setting of its own.
        if let Some(audit) = target.audit.as_mut().filter(|a| a.table == info.name) {
            audit.triggers = Triggers::Fire;
        }
    }
    target
}

/// The table whose rows are the likeliest tasks: by its name, else the one with most foreign keys to it.
fn choose_anchor<'a>(catalog: &Catalog, tables: &'a [InspectedTable]) -> Option<(&'a TableInfo, String)> {
    let with_order = tables.iter().filter_map(|t| Some((&t.info, t.order_candidates.first()?.clone())));
    with_order.min_by_key(|(info, _)| {
        let name = info.name.to_ascii_lowercase();
        let by_name = ANCHOR_NAMES.iter().position(|known| *known == name).unwrap_or(ANCHOR_NAMES.len());
        let into = catalog.foreign_keys.iter().filter(|key| key.parent == info.name && key.child != info.name);
        // The least is chosen, and the table with the most keys to it is wanted.
        (by_name, usize::MAX - into.count())
    })
}

/// The column that names a row: its only key column, else a unique one, else its last key column.
fn anchor_key(info: &TableInfo) -> String {
    let keys: Vec<&str> = info.columns.iter().filter(|c| c.key_place > 0).map(|c| c.name.as_str()).collect();
    let unique = info.unique.iter().find(|columns| columns.len() == 1).and_then(|columns| columns.first());
    match (keys.as_slice(), unique) {
        ([only], _) => (*only).to_owned(),
        (_, Some(unique)) => unique.clone(),
        (keys, None) => {
            keys.last().copied().or(info.columns.first().map(|c| c.name.as_str())).unwrap_or_default().to_owned()
        }
    }
}
