//! The part `rewind`: the application's own database, and which of its rows are rewound (seed 002).

use std::path::{Path, PathBuf};

use ic_rewind::journal::RewindJournalSetup;
use ic_rewind::{Anchor, Audit, Profile, RewindTarget, TableConfig};
use serde::Deserialize;
use serde_json::{Value, json};

/// The database of the profile `devs` where none is named, beside the ledger.
pub const DEVS_DATABASE: &str = "state.db";

/// What rewinds act on, before it is known where the project and its store are.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Given")]
pub struct Rewinding {
    /// The name of a known layout of tables, which supplies anchor, tables and audit.
    pub profile: Option<Profile>,
    /// The database, from the project's root; `None`: beside the ledger.
    pub database: Option<PathBuf>,
    /// Everything else; its database is not the one to be used.
    target: RewindTarget,
    /// The program that prunes an outside store of vectors, with its arguments.
    pub vectors: Option<Vec<String>>,
    /// The keys that the file sets: what a profile says is not of the file.
    pub(super) set: Vec<&'static str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Given {
    #[serde(default)]
    profile: Option<Profile>,
    #[serde(default)]
    database: Option<PathBuf>,
    #[serde(default)]
    anchor: Option<Anchor>,
    #[serde(default)]
    tables: Option<Vec<TableConfig>>,
    #[serde(default)]
    audit: Option<Audit>,
    #[serde(default)]
    vectors: Option<Vectors>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Vectors {
    exec: Vec<String>,
}

impl TryFrom<Given> for Rewinding {
    type Error = String;

    fn try_from(given: Given) -> Result<Self, String> {
        let Given { profile, database, anchor, tables, audit, vectors } = given;
        if database.as_ref().is_some_and(|path| path.as_os_str().is_empty()) {
            return Err("`rewind.database` is empty".to_owned());
        }
        if database.is_none() && profile != Some(Profile::Devs) {
            return Err("`rewind` names no `database`".to_owned());
        }
        if vectors.as_ref().is_some_and(|vectors| vectors.exec.first().is_none_or(String::is_empty)) {
            return Err("`rewind.vectors.exec` names no program".to_owned());
        }
        // Only `setup` knows where the database is. Until then the path is empty, here and below.
        let own = profile.map(|profile| RewindTarget::of_profile(profile, Path::new("")));
        let own = own.as_ref();
        let missing = |key: &str| format!("`rewind` has no `{key}`, and no `profile` (devs, langgraph)");
        // An empty list says nothing: the profile decides, or the setting is missing.
        let tables = tables.filter(|tables| !tables.is_empty());
        let given = [
            ("rewind.profile", profile.is_some()),
            ("rewind.database", database.is_some()),
            ("rewind.anchor", anchor.is_some()),
            ("rewind.tables", tables.is_some()),
            ("rewind.audit", audit.is_some()),
            ("rewind.vectors", vectors.is_some()),
        ];
        let set = given.into_iter().filter_map(|(key, is_given)| is_given.then_some(key)).collect();
        let target = RewindTarget {
            database: PathBuf::new(),
            anchor: anchor.or_else(|| own.map(|own| own.anchor.clone())).ok_or_else(|| missing("anchor"))?,
            tables: tables.or_else(|| own.map(|own| own.tables.clone())).ok_or_else(|| missing("tables"))?,
            audit: audit.or_else(|| own.and_then(|own| own.audit.clone())),
            profile,
        };
        Ok(Self { profile, database, target, vectors: vectors.map(|vectors| vectors.exec), set })
    }
}

impl Rewinding {
    /// What is acted on in the project with this root, whose ledger lies in `store`.
    pub fn setup(&self, root: &Path, store: &Path) -> RewindJournalSetup {
        let database = match &self.database {
            Some(path) => root.join(path),
            None => store.join(DEVS_DATABASE),
        };
        // A second name of the same file, through a link, would be a second database to the journal.
        let database = std::fs::canonicalize(&database).unwrap_or(database);
        RewindJournalSetup { target: RewindTarget { database, ..self.target.clone() }, vectors: self.vectors.clone() }
    }

    /// The settings by their flat keys.
    pub(super) fn settings(this: Option<&Self>) -> [(&'static str, Value); 6] {
        let of = |value: fn(&Self) -> Value| this.map_or(Value::Null, value);
        let tables = |this: &Self| {
            let names = this.target.tables.iter().map(|table| table.name.as_str());
            json!(names.collect::<Vec<_>>())
        };
        [
            ("rewind.profile", of(|this| json!(this.profile))),
            ("rewind.database", of(|this| json!(this.database.as_ref().map(|path| path.to_string_lossy())))),
            ("rewind.anchor", of(|this| json!(this.target.anchor))),
            ("rewind.tables", of(tables)),
            ("rewind.audit", of(|this| json!(this.target.audit))),
            ("rewind.vectors", of(|this| json!(this.vectors))),
        ]
    }

    /// What decides a setting that the file leaves out.
    pub(super) fn note(&self, key: &str) -> Option<&'static str> {
        match key {
            _ if self.set.contains(&key) => None,
            // Where the ledger lies is not known here.
            "rewind.database" => Some("state.db beside the ledger"),
            "rewind.anchor" | "rewind.tables" => Some("as the profile has it"),
            "rewind.audit" if self.target.audit.is_some() => Some("as the profile has it"),
            _ => None,
        }
    }
}
