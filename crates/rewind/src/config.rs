//! The rows that are rewound: the state database, its anchor, the tables that are cut, and the audit.

use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnosis};
use serde::{Deserialize, Serialize};

mod profile;

pub use profile::{DEVS_SQL, Profile};

/// A state database and what a rewind does to it: the section `rewind` of the configuration.
///
/// A profile fills in what is not given. At least an anchor and one table must result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Given", rename_all = "kebab-case")]
pub struct RewindTarget {
    /// The file of the database, absolute or from the project's root.
    pub database: PathBuf,
    /// The table in which tasks are recorded.
    pub anchor: Anchor,
    /// The tables whose rows are rewound.
    pub tables: Vec<TableConfig>,
    /// The table in which rewinds are recorded, in the application's own database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<Audit>,
    /// The profile that supplied the rest; `None`: everything is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
}

/// The table whose rows are tasks: the moments to which can be rewound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Anchor {
    /// The name of the table.
    pub table: String,
    /// The column whose value names a task.
    pub key: String,
    /// The column by which tasks are ordered: a time, a counter, or an id that sorts by time.
    pub order: String,
    /// The column with the git commit of a task; `None`: the tree is not moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The columns that separate what runs side by side (the threads of a checkpointer). Only the target's scope is cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<String>,
}

/// A table whose rows are rewound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "GivenTable", into = "GivenTable")]
pub struct TableConfig {
    /// The name of the table.
    pub name: String,
    /// The rule by which its rows are removed.
    pub order: Order,
    /// Whether its rows exactly at the target are removed.
    pub boundary: Boundary,
    /// Whether it may have triggers.
    pub triggers: Triggers,
}

/// The rule by which rows of a table are removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Those with more than the target's order in this column.
    Column(String),
    /// Those whose parent is removed.
    FollowParent(Follow),
}

/// Whether rows exactly at the target are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Boundary {
    /// They are part of the target and stay: rows with its order, and rows whose parent stays.
    #[default]
    Exclusive,
    /// They were written after the target and are removed: rows with its order, and rows of the last parent that stays. Where the parents'
    /// key has further columns beside their order, the last parent for each value of those.
    Inclusive,
}

impl Boundary {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    fn is_exclusive(&self) -> bool {
        *self == Self::Exclusive
    }
}

/// How a row finds its parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Follow {
    /// By its only foreign key to a table that is cut. The text is `parent`, or the name of that table.
    ForeignKey(String),
    /// By columns that are named here.
    Columns {
        /// The name of the parent's table.
        table: String,
        /// Pairs of a column here (or `rowid`) and a column there.
        on: Vec<(String, String)>,
    },
}

/// What happens if a table has triggers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Triggers {
    /// They fire as they do for the application. What they write elsewhere is not archived.
    Fire,
    /// A table with triggers is refused.
    #[default]
    Refuse,
}

/// The table that gets a row about each rewind and each undo. Such rows are never removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Audit {
    /// The name of the table.
    pub table: String,
    /// The column for `ROLLBACK_COMPLETED` or `ROLLBACK_UNDONE`.
    #[serde(default = "event_type")]
    pub event: String,
    /// The column for the result, as JSON.
    #[serde(default = "payload")]
    pub payload: String,
    /// The column for the time, in the unit of the anchor's order; `None`: none is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// The column for the task. It stays NULL when it is a foreign key, because the audit outlives the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The column for an id that is made from the rewind's; needed when the key does not fill itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Whether the table may have triggers.
    #[serde(default)]
    pub triggers: Triggers,
}

fn event_type() -> String {
    "event_type".to_owned()
}

fn payload() -> String {
    "payload".to_owned()
}

impl RewindTarget {
    /// The target that `profile` describes, in `database`.
    pub fn of_profile(profile: Profile, database: &Path) -> Self {
        Self {
            database: database.to_owned(),
            anchor: profile.anchor(),
            tables: profile.tables(),
            audit: profile.audit(),
            profile: Some(profile),
        }
    }
}

impl TableConfig {
    /// A table whose rows are ordered by a column of their own.
    pub fn by_column(name: &str, order: &str) -> Self {
        Self::new(name, Order::Column(order.to_owned()))
    }

    /// A table whose rows follow their parents.
    pub fn following(name: &str, follow: Follow) -> Self {
        Self::new(name, Order::FollowParent(follow))
    }

    fn new(name: &str, order: Order) -> Self {
        Self { name: name.to_owned(), order, boundary: Boundary::Exclusive, triggers: Triggers::Refuse }
    }

    /// The same table, with the rows at the target removed too.
    #[must_use]
    pub fn inclusive(mut self) -> Self {
        self.boundary = Boundary::Inclusive;
        self
    }

    /// The same table, with its triggers firing.
    #[must_use]
    pub fn firing(mut self) -> Self {
        self.triggers = Triggers::Fire;
        self
    }
}

/// A target in the form of the configuration, before the profile has completed it.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Given {
    database: PathBuf,
    anchor: Option<Anchor>,
    #[serde(default)]
    tables: Vec<TableConfig>,
    audit: Option<Audit>,
    profile: Option<Profile>,
}

impl TryFrom<Given> for RewindTarget {
    type Error = Diagnosis;

    fn try_from(given: Given) -> Result<Self, Diagnosis> {
        let missing = |what: &str| {
            Diagnosis::new(Code::InvalidConfig, format!("The rewind configuration names no {what}."))
                .hint("give it, or a profile: devs or langgraph")
        };
        let profile = given.profile;
        // What is given takes precedence over the profile, each part as a whole: a given list of tables is not added to the profile's.
        let anchor = given.anchor.or_else(|| profile.map(Profile::anchor)).ok_or_else(|| missing("anchor"))?;
        let tables = match (given.tables, profile) {
            // An empty list counts as not given: a rewind of no table would do nothing.
            (tables, Some(profile)) if tables.is_empty() => profile.tables(),
            (tables, _) => tables,
        };
        if tables.is_empty() {
            return Err(missing("table"));
        }
        let audit = given.audit.or_else(|| profile.and_then(Profile::audit));
        Ok(Self { database: given.database, anchor, tables, audit, profile })
    }
}

/// A table in the form of the configuration: with `order` or with `follow`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct GivenTable {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    follow: Option<Follow>,
    #[serde(default, skip_serializing_if = "Boundary::is_exclusive")]
    boundary: Boundary,
    #[serde(default)]
    triggers: Triggers,
}

impl TryFrom<GivenTable> for TableConfig {
    type Error = Diagnosis;

    fn try_from(given: GivenTable) -> Result<Self, Diagnosis> {
        let GivenTable { name, order, follow, boundary, triggers } = given;
        let order = match (order, follow) {
            (Some(column), None) => Order::Column(column),
            (None, Some(follow)) => Order::FollowParent(follow),
            _ => {
                return Err(Diagnosis::new(
                    Code::InvalidConfig,
                    format!("The table {name} needs either an order column or a parent to follow."),
                )
                .hint("give `order: COLUMN` or `follow: parent`"));
            }
        };
        Ok(Self { name, order, boundary, triggers })
    }
}

impl From<TableConfig> for GivenTable {
    fn from(table: TableConfig) -> Self {
        let (order, follow) = match table.order {
            Order::Column(column) => (Some(column), None),
            Order::FollowParent(follow) => (None, Some(follow)),
        };
        Self { name: table.name, order, follow, boundary: table.boundary, triggers: table.triggers }
    }
}
