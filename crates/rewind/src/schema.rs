//! The application's schema, by SQLite's own description of it.

use ic_base::Result;
use serde::Serialize;

use crate::session::{DatabaseSession, quote};

pub(crate) mod module;
pub(crate) mod parent;

/// The kind of a table, which decides whether its rows can be cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TableKind {
    /// An ordinary table with rows of its own.
    Table,
    /// A virtual table of the module with this name.
    Virtual(String),
    /// A table in which a virtual table keeps its data.
    Shadow,
    /// A view, whose rows belong to other tables.
    View,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Column {
    /// The name, as it was declared.
    pub name: String,
    /// Its declared type; empty if there is none.
    pub declared: String,
    /// Whether it is declared NOT NULL.
    pub not_null: bool,
    /// Whether its values are computed from others.
    pub generated: bool,
    /// Its place in the primary key, from 1; 0 if it is not part of it.
    pub key_place: i64,
}

/// A foreign key, with the columns of both sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ForeignKey {
    /// The table whose rows refer.
    pub child: String,
    /// The table whose rows are referred to.
    pub parent: String,
    /// Pairs of a column of the child and a column of the parent.
    pub columns: Vec<(String, String)>,
    /// Its place among all foreign keys of the child, also those to tables that do not exist.
    #[serde(skip)]
    pub(crate) place: usize,
}

/// A trigger of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Trigger {
    /// The name, as it was declared.
    pub name: String,
    /// The text of its CREATE TRIGGER statement.
    pub sql: String,
}

/// A table with its columns, triggers and unique keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableInfo {
    /// Its name, as it was declared.
    pub name: String,
    /// The kind of table, which decides whether its rows can be cut.
    pub kind: TableKind,
    /// Whether it was made WITHOUT ROWID.
    pub without_rowid: bool,
    /// Its columns, without hidden ones. Empty when the module of a virtual table does not exist here.
    pub columns: Vec<Column>,
    /// Its triggers, by name.
    pub triggers: Vec<Trigger>,
    /// Sets of columns that are unique together, except by a partial index or over expressions.
    pub unique: Vec<Vec<String>>,
    /// The text of its CREATE statement.
    pub sql: String,
    #[serde(skip)]
    pub(crate) rowid: Rowid,
}

/// The name of a table's rowid in SQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rowid {
    /// The rowid is this column.
    Column(String),
    /// The rowid is hidden, and has this name.
    Hidden(&'static str),
    /// The table has no rowid.
    None,
    /// There is a rowid, but columns have all of its names.
    Unnamed,
}

impl TableInfo {
    /// The column with this name. Case does not count, as in SQLite.
    pub(crate) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.name.eq_ignore_ascii_case(name))
    }

    /// The columns whose values are stored as given: what a copy must have.
    pub(crate) fn stored(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|c| !c.generated)
    }

    /// SQL for the columns that identify a row to a person, where the table is named `alias`: its primary key, else its rowid.
    pub(crate) fn key(&self, alias: &str) -> Vec<String> {
        let column = |name: &str| format!("{alias}.{}", quote(name));
        let mut key: Vec<&Column> = self.columns.iter().filter(|c| c.key_place > 0).collect();
        key.sort_by_key(|c| c.key_place);
        match (key.is_empty(), &self.rowid) {
            (true, Rowid::Hidden(name)) => vec![format!("{alias}.{name}")],
            (true, Rowid::Column(name)) => vec![column(name)],
            (true, _) => self.columns.iter().map(|c| column(&c.name)).collect(),
            (false, _) => key.iter().map(|c| column(&c.name)).collect(),
        }
    }

    /// Whether a primary key is declared. Without one only the rowid identifies a row.
    pub(crate) fn has_key(&self) -> bool {
        self.columns.iter().any(|c| c.key_place > 0)
    }

    /// Whether a module keeps its rows.
    pub(crate) fn is_virtual(&self) -> bool {
        matches!(self.kind, TableKind::Virtual(_))
    }

    /// SQL for the rowid, if the table has one that can be named.
    pub(crate) fn rowid_sql(&self) -> Option<String> {
        match &self.rowid {
            Rowid::Column(column) => Some(quote(column)),
            Rowid::Hidden(name) => Some((*name).to_owned()),
            Rowid::None | Rowid::Unnamed => None,
        }
    }
}

/// All tables and foreign keys of a database.
pub(crate) struct Catalog {
    pub(crate) tables: Vec<TableInfo>,
    pub(crate) foreign_keys: Vec<ForeignKey>,
}

impl Catalog {
    pub(crate) fn read(session: &DatabaseSession) -> Result<Self> {
        // The list has the kinds of tables. The schema has their texts and, by its rowids, the order in which they were made.
        let listed = session.query_all(
            "SELECT l.name, l.type, l.wr, coalesce(s.sql, '') FROM pragma_table_list AS l \
             JOIN main.sqlite_schema AS s ON s.name = l.name AND s.type IN ('table', 'view') \
             WHERE l.schema = 'main' AND l.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY s.rowid",
            &[],
            |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get(2)?, row.get::<_, String>(3)?)),
        )?;
        let mut tables = Vec::new();
        for (name, kind, without_rowid, sql) in listed {
            let kind = match kind.as_str() {
                "virtual" => TableKind::Virtual(module::name(&sql)),
                "shadow" => TableKind::Shadow,
                "view" => TableKind::View,
                _ => TableKind::Table,
            };
            tables.push(read_table(session, name, kind, without_rowid, sql)?);
        }
        hide_shadows(&mut tables);
        let foreign_keys = read_foreign_keys(session, &tables)?;
        Ok(Self { tables, foreign_keys })
    }

    /// The table with this name. Case does not count, as in SQLite.
    pub(crate) fn table(&self, name: &str) -> Option<&TableInfo> {
        self.tables.iter().find(|t| t.name.eq_ignore_ascii_case(name))
    }
}

fn read_table(
    session: &DatabaseSession,
    name: String,
    kind: TableKind,
    without_rowid: bool,
    sql: String,
) -> Result<TableInfo> {
    let mut columns = match read_columns(session, &name) {
        // The module does not exist here, or a view is broken: a rewind that needs the table finds no columns and reports that.
        Err(_) if kind != TableKind::Table => Vec::new(),
        columns => columns?,
    };
    if kind == TableKind::Virtual("vec0".to_owned()) {
        module::declare(&mut columns, &sql);
    }
    let triggers = session.query_all(
        "SELECT name, sql FROM main.sqlite_schema WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE ORDER BY name",
        &[name.as_str().into()],
        |row| Ok(Trigger { name: row.get(0)?, sql: row.get(1)? }),
    )?;
    let (unique, key_has_index) = match kind {
        TableKind::Table => read_unique(session, &name)?,
        _ => (Vec::new(), false),
    };
    let mut table = TableInfo { name, kind, without_rowid, columns, triggers, unique, sql, rowid: Rowid::None };
    table.rowid = find_rowid(&table, key_has_index);
    // An INTEGER PRIMARY KEY is unique without an index, so the list of indexes does not name it.
    match &table.rowid {
        Rowid::Column(column) => table.unique.push(vec![column.clone()]),
        Rowid::None if table.is_virtual() && table.has_key() => {
            let key = table.columns.iter().filter(|c| c.key_place > 0).map(|c| c.name.clone());
            table.unique.push(key.collect());
        }
        _ => {}
    }
    Ok(table)
}

fn read_columns(session: &DatabaseSession, table: &str) -> Result<Vec<Column>> {
    // `hidden` is 1 for what a virtual table hides, and 2 or 3 for generated columns.
    session.query_all(
        "SELECT name, type, \"notnull\", pk, hidden FROM pragma_table_xinfo(?1, 'main') WHERE hidden <> 1 ORDER BY cid",
        &[table.into()],
        |row| {
            Ok(Column {
                name: row.get(0)?,
                declared: row.get(1)?,
                not_null: row.get(2)?,
                key_place: row.get(3)?,
                generated: row.get::<_, i64>(4)? > 1,
            })
        },
    )
}

/// Sets of columns that are unique, and whether the primary key has an index (then it is not the rowid).
fn read_unique(session: &DatabaseSession, table: &str) -> Result<(Vec<Vec<String>>, bool)> {
    // SQLite lists the newest index first: from the end they come as they were declared.
    let indexes = session.query_all(
        "SELECT name, origin FROM pragma_index_list(?1, 'main') WHERE \"unique\" AND NOT partial ORDER BY seq DESC",
        &[table.into()],
        |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)),
    )?;
    let mut unique = Vec::new();
    for (index, _) in &indexes {
        let columns = session.query_all(
            "SELECT name FROM pragma_index_info(?1, 'main') ORDER BY seqno",
            &[index.as_str().into()],
            |row| row.get::<_, Option<String>>(0),
        )?;
        // A part that is an expression has no name, and such an index is left out.
        unique.extend(columns.into_iter().collect::<Option<Vec<_>>>());
    }
    Ok((unique, indexes.iter().any(|(_, origin)| origin == "pk")))
}

fn find_rowid(table: &TableInfo, key_has_index: bool) -> Rowid {
    if table.without_rowid || table.kind == TableKind::View {
        return Rowid::None;
    }
    if let TableKind::Virtual(module) = &table.kind {
        // The first column of an R*Tree is its key, whatever it is called.
        let own_key = match module.as_str() {
            "rtree" | "rtree_i32" => table.columns.first(),
            // Without a key of its own, `vec0` has the rowid as a column.
            "vec0" => table.column("rowid"),
            _ => table.columns.iter().find(|c| c.key_place > 0),
        };
        return own_key.map_or(Rowid::Hidden("rowid"), |column| Rowid::Column(column.name.clone()));
    }
    // A single key declared exactly INTEGER is the rowid, except with DESC, for which SQLite makes an index.
    let mut key = table.columns.iter().filter(|c| c.key_place > 0);
    if let (Some(column), None) = (key.next(), key.next())
        && column.declared.eq_ignore_ascii_case("INTEGER")
        && !key_has_index
    {
        return Rowid::Column(column.name.clone());
    }
    ["rowid", "_rowid_", "oid"]
        .into_iter()
        .find(|name| table.column(name).is_none())
        .map_or(Rowid::Unnamed, Rowid::Hidden)
}

/// SQLite knows the tables of a virtual table only if its module exists here, and for `vec0` not even then all of them. Otherwise their
/// names tell.
fn hide_shadows(tables: &mut [TableInfo]) {
    let prefixes: Vec<String> = tables
        .iter()
        .filter_map(|table| match &table.kind {
            TableKind::Virtual(_) if table.columns.is_empty() => Some(format!("{}_", table.name)),
            TableKind::Virtual(module) if module == "vec0" => Some(format!("{}_vector_chunks", table.name)),
            _ => None,
        })
        .map(|prefix| prefix.to_ascii_lowercase())
        .collect();
    for table in tables.iter_mut().filter(|t| t.kind == TableKind::Table) {
        let name = table.name.to_ascii_lowercase();
        if prefixes.iter().any(|prefix| name.starts_with(prefix)) {
            table.kind = TableKind::Shadow;
        }
    }
}

fn read_foreign_keys(session: &DatabaseSession, tables: &[TableInfo]) -> Result<Vec<ForeignKey>> {
    let mut keys = Vec::new();
    for child in tables.iter().filter(|t| t.kind == TableKind::Table) {
        let rows = session.query_all(
            "SELECT id, \"table\", \"from\", \"to\" FROM pragma_foreign_key_list(?1, 'main') ORDER BY id, seq",
            &[child.name.as_str().into()],
            |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?, row.get(3)?)),
        )?;
        for (place, parts) in rows.chunk_by(|(a, ..), (b, ..)| a == b).enumerate() {
            // A key to a table that does not exist cannot refer to a removed row.
            let named = |t: &&TableInfo| t.name.eq_ignore_ascii_case(&parts[0].1);
            let Some(parent) = tables.iter().find(named) else { continue };
            let column = |(place, (_, _, from, to)): (usize, &(i64, String, String, Option<String>))| {
                // A key that names no columns of the parent means its primary key, in the order of that key.
                let up = match to {
                    Some(to) => parent.column(to),
                    None => parent.columns.iter().find(|c| usize::try_from(c.key_place) == Ok(place + 1)),
                };
                up.map(|up| (from.clone(), up.name.clone()))
            };
            // Where a column is missing, SQLite calls the key a mismatch: no row can refer to anything by it.
            if let Some(columns) = parts.iter().enumerate().map(column).collect() {
                keys.push(ForeignKey { child: child.name.clone(), parent: parent.name.clone(), columns, place });
            }
        }
    }
    Ok(keys)
}
