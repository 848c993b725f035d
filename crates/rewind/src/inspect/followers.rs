//! Tables whose rows have no time of their own, but belong to rows that have one.

use crate::config::{Follow, TableConfig};
use crate::schema::{Catalog, ForeignKey, TableInfo, TableKind, module};

/// Adds the tables that have exactly one foreign key to a chosen one.
pub(super) fn add(catalog: &Catalog, chosen: &mut Vec<TableConfig>) {
    loop {
        let is_chosen = |name: &str| chosen.iter().any(|t| t.name == name);
        // Tables are added one at a time: one that was added may be the parent of the next one.
        let next = catalog.tables.iter().find_map(|info| {
            let keys: Vec<&ForeignKey> = catalog
                .foreign_keys
                .iter()
                .filter(|key| key.child == info.name && key.parent != info.name && is_chosen(&key.parent))
                .collect();
            match keys.as_slice() {
                [key] if !is_chosen(&info.name) => {
                    let follow = Follow::Columns { table: key.parent.clone(), on: key.columns.clone() };
                    Some(TableConfig::following(&info.name, follow))
                }
                _ => None,
            }
        });
        match next {
            Some(table) => chosen.push(table),
            None => return,
        }
    }
}

/// Adds the tables of vectors and of words whose key appears to be that of exactly one chosen table. Notes tell that, and name the others.
pub(super) fn add_virtual(catalog: &Catalog, chosen: &mut Vec<TableConfig>, notes: &mut Vec<String>) {
    let parents: Vec<&TableInfo> = chosen.iter().filter_map(|table| catalog.table(&table.name)).collect();
    let mut found = Vec::new();
    for info in &catalog.tables {
        let TableKind::Virtual(module) = &info.kind else { continue };
        let keeps_rows = module == "vec0" || (module == "fts5" && !module::has_outside_content(&info.sql));
        if !keeps_rows || info.columns.is_empty() {
            continue;
        }
        let pairs: Vec<(&str, (String, String))> =
            parents.iter().filter_map(|parent| Some((parent.name.as_str(), pair(info, parent)?))).collect();
        match pairs.as_slice() {
            [(parent, on)] => {
                notes.push(format!(
                    "{} ({module}) is taken to belong to {parent}, by {} = {}: check whether it does.",
                    info.name, on.0, on.1
                ));
                let follow = Follow::Columns { table: (*parent).to_owned(), on: vec![on.clone()] };
                found.push(TableConfig::following(&info.name, follow));
            }
            _ => notes.push(format!(
                "{} ({module}) is left out: its parent is not clear. To include it: follow: {{table: PARENT, on: [[rowid, id]]}}.",
                info.name
            )),
        }
    }
    chosen.extend(found);
}

/// The column here and the key there, if the names suggest that rows of `parent` are in `info`.
fn pair(info: &TableInfo, parent: &TableInfo) -> Option<(String, String)> {
    let lower = |text: &str| text.to_ascii_lowercase();
    let own = info.columns.iter().find(|column| column.key_place > 0).map_or("rowid", |column| &column.name);
    let [up] = parent.columns.iter().filter(|c| c.key_place > 0).collect::<Vec<_>>()[..] else { return None };
    let is_number = own == "rowid" || info.column(own).is_some_and(|c| lower(&c.declared) == "integer");
    // A number can only refer to a parent that has its rowid as the key. Any other value can only refer to another parent.
    if is_number != (parent.rowid_sql() == Some(crate::session::quote(&up.name))) {
        return None;
    }
    let name = lower(&parent.name);
    // `entries` and `entry`, `notes` and `note`; another plural is compared unchanged.
    let single = match (name.strip_suffix("ies"), name.strip_suffix('s')) {
        (Some(stem), _) => format!("{stem}y"),
        (None, Some(stem)) => stem.to_owned(),
        (None, None) => name.clone(),
    };
    let own_name = lower(own);
    let is_named = own_name == format!("{single}_id")
        || own_name == format!("{name}_id")
        || (own_name == lower(&up.name) && own_name != "id")
        || lower(&info.name).split(['_', ' ', '-']).any(|word| word == name || word == single);
    is_named.then(|| (own.to_owned(), up.name.clone()))
}
