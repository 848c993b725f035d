//! One table that is cut.

use ic_base::Result;

use super::column::{AuditPlan, column, refuse_triggers, table};
use crate::config::{Anchor, Boundary, Follow, Order, TableConfig};
use crate::error::misfit;
use crate::schema::{Catalog, ForeignKey, Rowid, TableInfo, TableKind, module};

/// Modules whose tables keep rows of their own, which can be read, deleted and written again.
const ROW_MODULES: [&str; 4] = ["fts5", "rtree", "rtree_i32", "vec0"];

/// The rule by which rows are removed, with names as they were declared.
#[derive(Debug)]
pub(crate) enum CutOrder {
    Column(String),
    Follow {
        parent: String,
        on: Vec<(String, String)>,
        /// The column that repeats the parent's order, if there is one.
        order: Option<String>,
        /// With an inclusive boundary: the columns that find the last parent that stays.
        last: Option<LastParent>,
    },
}

/// The columns of a parent that find the last one.
#[derive(Debug)]
pub(crate) struct LastParent {
    pub(crate) order: String,
    /// The columns of its key beside the order: each of their values has a last parent.
    pub(crate) apart: Vec<String>,
}

/// A table that is cut, checked against the schema.
#[derive(Debug)]
pub(crate) struct CutTable {
    pub(crate) info: TableInfo,
    pub(crate) order: CutOrder,
    /// For each scope column of the anchor, the column of this table with the same value; `None`: it has none.
    pub(crate) scope: Vec<Option<String>>,
    /// The column that identifies audit rows, when this is the audit's table.
    pub(crate) exempt: Option<String>,
    pub(crate) boundary: Boundary,
    pub(crate) fires: bool,
}

impl CutTable {
    pub(super) fn new(
        given: &TableConfig,
        all: &[TableConfig],
        anchor: &Anchor,
        audit: Option<&AuditPlan>,
        catalog: &Catalog,
    ) -> Result<Self> {
        let info = table(catalog, &given.name)?;
        check_kind(info, catalog)?;
        refuse_triggers(info, given.triggers)?;
        let (order, scope) = match &given.order {
            Order::Column(name) => {
                if given.boundary == Boundary::Inclusive && info.name == anchor.table {
                    return Err(misfit(format!(
                        "The boundary of {} is inclusive: the target task would be removed too.",
                        info.name
                    )));
                }
                let order = CutOrder::Column(column(info, name)?.name.clone());
                (order, own_scope(info, anchor)?)
            }
            Order::FollowParent(follow) => follow_parent(info, follow, given.boundary, all, anchor, catalog)?,
        };
        let exempt = audit.filter(|a| a.table.name == info.name).map(|a| a.event.clone());
        let fires = !info.triggers.is_empty();
        Ok(Self { info: info.clone(), order, scope, exempt, boundary: given.boundary, fires })
    }
}

fn check_kind(info: &TableInfo, catalog: &Catalog) -> Result<()> {
    let name = &info.name;
    let refused = |why: String| Err(misfit(why).detail("table", name.as_str()));
    match &info.kind {
        TableKind::Table if info.rowid == Rowid::Unnamed => refused(format!(
            "The rowid of {name} has no name left, because columns are called rowid, _rowid_ and oid; its rows could not be restored."
        )),
        TableKind::View => refused(format!("{name} is a view; name the tables that it shows.")),
        TableKind::Shadow => refused(format!(
            "{name} is part of a virtual table{}; its rows are never cut directly.",
            owner(name, catalog).map(|owner| format!(", {owner}")).unwrap_or_default()
        )),
        TableKind::Virtual(module) if info.columns.is_empty() && module == "vec0" => {
            refused(format!("{name} is a table of vectors (vec0) in a form that is not known here."))
        }
        TableKind::Virtual(module) if info.columns.is_empty() => {
            refused(format!("{name} is a virtual table of the module {module}, which is not loaded here."))
        }
        TableKind::Virtual(module) if !ROW_MODULES.contains(&module.as_str()) => {
            refused(format!("{name} is a virtual table of the module {module}, whose rows cannot be copied exactly."))
        }
        TableKind::Virtual(module) if module == "fts5" && module::has_outside_content(&info.sql) => refused(format!(
            "{name} is an index without content of its own; cut the table that it indexes, with `triggers: fire`."
        )),
        TableKind::Table | TableKind::Virtual(_) => Ok(()),
    }
}

/// The virtual table to which a shadow table belongs: the longest name with which its own begins.
fn owner<'a>(shadow: &str, catalog: &'a Catalog) -> Option<&'a str> {
    let virtuals = catalog.tables.iter().filter(|t| matches!(t.kind, TableKind::Virtual(_)));
    let begins = |owner: &str| shadow.get(..owner.len()).is_some_and(|start| start.eq_ignore_ascii_case(owner));
    virtuals.map(|t| t.name.as_str()).filter(|name| begins(name)).max_by_key(|name| name.len())
}

fn own_scope(info: &TableInfo, anchor: &Anchor) -> Result<Vec<Option<String>>> {
    let find = |name: &String| match info.column(name) {
        Some(column) => Ok(Some(column.name.clone())),
        None => Err(misfit(format!(
            "The table {} has no column {name}, so that its rows could not be told apart by scope.",
            info.name
        ))
        .hint("let it follow its parent: `follow: parent`")),
    };
    anchor.scope.iter().map(find).collect()
}

/// The order and the scope of a table that follows another one.
fn follow_parent(
    info: &TableInfo,
    follow: &Follow,
    boundary: Boundary,
    all: &[TableConfig],
    anchor: &Anchor,
    catalog: &Catalog,
) -> Result<(CutOrder, Vec<Option<String>>)> {
    let (parent, on) = match follow {
        Follow::ForeignKey(name) => by_foreign_key(info, name, all, catalog)?,
        Follow::Columns { table: parent, on } => (table(catalog, parent)?, on.clone()),
    };
    let Some(given) = all.iter().find(|t| t.name.eq_ignore_ascii_case(&parent.name)) else {
        return Err(misfit(format!("{} follows {}, which is not cut.", info.name, parent.name)));
    };
    if on.is_empty() {
        return Err(misfit(format!("{} follows {} by no column.", info.name, parent.name)));
    }
    let mut pairs = Vec::new();
    for (child, up) in &on {
        let child = match info.column(child) {
            // This holds only where no column has that name: then `rowid` is the rowid itself.
            None if child == "rowid" && info.rowid_sql().is_some() => child.clone(),
            _ => column(info, child)?.name.clone(),
        };
        pairs.push((child, column(parent, up)?.name.clone()));
    }
    let is_named = |name: &String| pairs.iter().any(|(_, up)| up.eq_ignore_ascii_case(name));
    if !parent.unique.iter().any(|key| key.iter().all(is_named)) {
        return Err(misfit(format!(
            "{} follows {} by columns that are not unique there, so that a row could have several parents.",
            info.name, parent.name
        )));
    }
    let repeated = |name: &str| {
        let (child, up) = pairs.iter().find(|(_, up)| up.eq_ignore_ascii_case(name))?;
        let (child, up) = (info.column(child)?, parent.column(up)?);
        // By another type, SQLite might order the same values in another way.
        child.declared.eq_ignore_ascii_case(&up.declared).then(|| child.name.clone())
    };
    let order = match &given.order {
        Order::Column(name) => repeated(name),
        Order::FollowParent(_) => None,
    };
    let scope = match &given.order {
        Order::Column(_) => anchor.scope.iter().map(|name| repeated(name)).collect(),
        // The condition of the parent leads to a table that has the scope columns itself.
        Order::FollowParent(_) => vec![None; anchor.scope.len()],
    };
    let last = match boundary {
        Boundary::Exclusive => None,
        Boundary::Inclusive => Some(last_parent(info, parent, &given.order, &pairs)?),
    };
    Ok((CutOrder::Follow { parent: parent.name.clone(), on: pairs, order, last }, scope))
}

/// The columns that find the last parent that stays. Errors: `invalid_config` when parents have no order of their own.
fn last_parent(info: &TableInfo, parent: &TableInfo, order: &Order, on: &[(String, String)]) -> Result<LastParent> {
    let Order::Column(order) = order else {
        return Err(misfit(format!(
            "The boundary of {} is inclusive, but {} has no order of its own, so that none of its rows is the last.",
            info.name, parent.name
        )));
    };
    let order = column(parent, order)?.name.clone();
    let is_named = |name: &&String| on.iter().any(|(_, up)| up.eq_ignore_ascii_case(name));
    let is_order = |name: &String| name.eq_ignore_ascii_case(&order);
    let mut keys = parent.unique.iter().filter(|key| key.iter().all(|name| is_named(&name)));
    // A key without the order identifies one parent alone: then all parents are in one sequence.
    let apart = match (keys.clone().any(|key| !key.iter().any(is_order)), keys.next()) {
        (false, Some(key)) => key.iter().filter(|name| !is_order(name)).cloned().collect(),
        _ => Vec::new(),
    };
    Ok(LastParent { order, apart })
}

/// The parent by the only foreign key of `info` to a table that is cut and, unless `name` is `parent`, has this name.
fn by_foreign_key<'a>(
    info: &TableInfo,
    name: &str,
    all: &[TableConfig],
    catalog: &'a Catalog,
) -> Result<(&'a TableInfo, Vec<(String, String)>)> {
    let is_wanted = |key: &&ForeignKey| {
        key.child == info.name
            && key.parent != info.name
            && all.iter().any(|t| t.name.eq_ignore_ascii_case(&key.parent))
            && (name == "parent" || key.parent.eq_ignore_ascii_case(name))
    };
    let keys: Vec<&ForeignKey> = catalog.foreign_keys.iter().filter(is_wanted).collect();
    let [key] = keys.as_slice() else {
        return Err(misfit(format!(
            "{} has {} foreign keys to tables that are cut, so that its parent is not clear.",
            info.name,
            if keys.is_empty() { "no" } else { "several" }
        ))
        .hint("name them: follow: {table: PARENT, on: [[COLUMN, PARENT_COLUMN]]}"));
    };
    Ok((table(catalog, &key.parent)?, key.columns.clone()))
}
