//! The ledger itself: its place, its schema, its health.

use std::path::Path;

use ic_kernel::Kernel;
use ic_ledger::LedgerLocation;
use ic_ledger::health::HealthCheck;
use ic_worktree::backup::BackupResult;

use crate::text::{Cell, TextTable, style};
use crate::views::event::HeadJson;
use crate::views::exact;

shape! {
    /// Where the ledger is (`where`).
    pub(crate) struct WhereJson from (place: &LedgerLocation, config: Option<&Path>) where
        usual = place.root.join(".ic.yaml");
        config = config.or_else(|| usual.exists().then_some(usual.as_path()));
    {
        /// The ledger's file, or the URL of the one on a server.
        db: String = place.name().to_string_lossy().into_owned(),
        #[serde(skip_serializing_if = "Option::is_none")]
        db_b64: Option<String> = exact(&place.name()),
        /// The log of the ledger's newest changes, beside its file; null if there is none. To copy both: `ic backup`.
        log: Option<String> = place.log().map(|path| path.to_string_lossy().into_owned()),
        store: String = place.store.to_string_lossy().into_owned(),
        #[serde(skip_serializing_if = "Option::is_none")]
        store_b64: Option<String> = exact(&place.store),
        /// The project's configuration file, if there is one.
        config_file: Option<String> = config.map(|path| path.to_string_lossy().into_owned()),
        #[serde(skip_serializing_if = "Option::is_none")]
        config_file_b64: Option<String> = config.and_then(exact),
        project_dir: String = place.root.to_string_lossy().into_owned(),
        #[serde(skip_serializing_if = "Option::is_none")]
        project_dir_b64: Option<String> = exact(&place.root),
    }

    /// A ledger that was created, or existed already (`init`).
    pub(crate) struct InitJson {
        #[serde(flatten)]
        pub(crate) place: WhereJson,
        /// False if it existed already.
        pub(crate) created: bool,
    }

    /// The outcome of a migration (`migrate`).
    pub(crate) struct MigrateJson {
        /// The ledger's file, or its URL.
        pub(crate) db: String,
        /// The schema version before.
        pub(crate) earlier_schema_version: i32,
        /// The schema version now.
        pub(crate) schema_version: i32,
        /// False if there was nothing to do.
        pub(crate) migrated: bool,
    }

    /// A copy of the ledger (`backup`).
    pub(crate) struct BackupJson from (kernel: &Kernel, file: &Path, made: &BackupResult) where
        content = made.content.as_ref();
    {
        db: String = kernel.ledger.path().to_string_lossy().into_owned(),
        path: String = file.to_string_lossy().into_owned(),
        #[serde(skip_serializing_if = "Option::is_none")]
        path_b64: Option<String> = exact(file),
        bytes: u64 = made.bytes,
        /// The newest event of the copy, as `events verify --expect-head` takes it.
        chain_head: HeadJson = HeadJson { seq: made.head.seq, hash: made.head.hash.clone() },
        /// The copy of the content of checkpoints; null if it was not asked for, or there is none.
        content_path: Option<String> = content.map(|(path, _)| path.to_string_lossy().into_owned()),
        content_bytes: Option<u64> = content.map(|(_, bytes)| *bytes),
    }

    /// The versions of the program and its parts (`version`).
    pub(crate) struct VersionJson {
        pub(crate) version: &'static str,
        /// The commit that a release was built from; null in any other build.
        pub(crate) commit: Option<&'static str>,
        /// The newest schema of a ledger that this program reads.
        pub(crate) schema_version: i32,
        pub(crate) sqlite: &'static str,
    }

    /// Whether the ledger and the object store are intact (`health`).
    pub(crate) struct HealthJson {
        pub(crate) ok: bool,
        pub(crate) db: String,
        pub(crate) schema_version: i32,
        pub(crate) checks: Vec<CheckJson>,
    }

    /// One check, with its result.
    pub(crate) struct CheckJson from check: &HealthCheck {
        name: &'static str = check.name,
        ok: bool = check.ok,
        detail: String = check.detail.clone(),
    }
}

/// The checks, one a line, each with its result.
pub(crate) fn checks(checks: &[HealthCheck]) -> String {
    let mut table = TextTable::new(&["CHECK", "", "FOUND"]);
    for check in checks {
        let mark = if check.ok { Cell::new(style::GOOD, "ok") } else { Cell::new(style::BAD, "BAD") };
        table.row(vec![check.name.into(), mark, check.detail.as_str().into()]);
    }
    table.render("Nothing was checked.")
}
