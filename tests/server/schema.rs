//! The schema: made once, brought up to date by its own command, and the same as that of a file.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use ic_testkit::{Cli, Cluster, Random, rounds};

use crate::cluster::{cluster, project_at};
use crate::story::sprint;

/// Takes the newest migration back, as if an older program had made the ledger.
fn make_older(cluster: &Cluster, ledger: &str) {
    cluster.psql(&format!(
        "SET search_path TO {ledger}; DROP TABLE outside_files, calls, prompts, sessions; \
         DELETE FROM refinery_schema_history WHERE version = 11"
    ));
}

/// Every column and index of a ledger.
fn shape(cluster: &Cluster, ledger: &str) -> String {
    let columns = cluster.psql(&format!(
        "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns \
         WHERE table_schema = '{ledger}' ORDER BY 1, ordinal_position"
    ));
    let indexes = cluster.psql(&format!("SELECT indexdef FROM pg_indexes WHERE schemaname = '{ledger}' ORDER BY 1"));
    format!("{columns}\n{}", indexes.replace(&format!("{ledger}."), ""))
}

#[test]
fn an_older_ledger_waits_for_its_migration_and_a_newer_one_for_its_program() {
    let Some(cluster) = cluster(&[]) else { return };
    let cli = cluster.project("shop");
    cluster.project("fresh");
    cli.ok(["run", "create", "--goal", "Port"]);
    let nothing = cli.json(["migrate", "--json"]);
    assert_eq!((&nothing["migrated"], &nothing["schema_version"]), (&false.into(), &11.into()));
    make_older(&cluster, "shop");
    for words in [&["run", "list"][..], &["run", "create", "--goal", "x"], &["init"], &["health"]] {
        assert_eq!(cli.refused(words), (Some(2), "migration_needed".to_owned()), "{words:?}");
    }
    let migrated = cli.json(["migrate", "--json"]);
    assert_eq!((&migrated["migrated"], &migrated["earlier_schema_version"]), (&true.into(), &10.into()));
    assert_eq!(shape(&cluster, "shop"), shape(&cluster, "fresh"));
    assert_eq!(cli.json(["run", "list", "--json"]).as_array().map(Vec::len), Some(1));
    cli.assert_sound("after the migration");
    cluster.psql("UPDATE shop.refinery_schema_history SET version = 1000 WHERE version = 11");
    for words in [&["run", "list"][..], &["migrate"]] {
        assert_eq!(cli.refused(words), (Some(2), "newer_schema".to_owned()), "{words:?}");
    }
}

#[test]
fn of_many_that_migrate_or_create_at_once_one_does_and_all_succeed() {
    let Some(cluster) = cluster(&[]) else { return };
    let projects: Vec<Cli> = (0..20).map(|_| project_at(&cluster.url("shop"))).collect();
    let made = |words: &'static [&'static str], key: &str| -> usize {
        std::thread::scope(|scope| {
            let calls: Vec<_> = projects.iter().map(|cli| scope.spawn(move || cli.json(words))).collect();
            calls.into_iter().map(|call| call.join().expect("a call")).filter(|said| said[key] == true).count()
        })
    };
    assert_eq!(made(&["init", "--json"], "created"), 1);
    for _ in rounds(3) {
        make_older(&cluster, "shop");
        assert_eq!(made(&["migrate", "--json"], "migrated"), 1);
    }
    projects[0].assert_sound("after all");
}

#[test]
fn an_empty_schema_is_used_by_a_role_that_may_make_none_and_another_is_left_alone() {
    let Some(cluster) = cluster(&[]) else { return };
    cluster.psql(
        "CREATE ROLE ann LOGIN; REVOKE CREATE ON DATABASE postgres FROM PUBLIC; CREATE SCHEMA shop AUTHORIZATION ann",
    );
    let url = |ledger: &str| cluster.url(ledger).replace("ic@", "ann@");
    let projects: Vec<Cli> = (0..6).map(|_| project_at(&url("shop"))).collect();
    let made = std::thread::scope(|scope| {
        let calls: Vec<_> = projects.iter().map(|cli| scope.spawn(|| cli.json(["init", "--json"]))).collect();
        calls.into_iter().map(|call| call.join().expect("a call")).filter(|said| said["created"] == true).count()
    });
    assert_eq!(made, 1);
    let run = projects[0].ok(["run", "create", "--goal", "Port", "--phases", "a,b"]);
    projects[5].ok(["run", "advance", &run]);
    projects[3].assert_sound("after all");
    for taken in
        ["TABLE taken.t ()", "FUNCTION taken.f() RETURNS int LANGUAGE sql AS 'SELECT 1'", "TYPE taken.e AS ENUM ()"]
    {
        cluster.psql(&format!("CREATE SCHEMA taken AUTHORIZATION ann; CREATE {taken}"));
        assert_eq!(project_at(&url("taken")).refused(["init"]).1, "foreign_database", "{taken}");
        cluster.psql("DROP SCHEMA taken CASCADE");
    }
    // And one that is not the role's.
    cluster.psql("CREATE SCHEMA other; GRANT USAGE ON SCHEMA other TO ann");
    assert_eq!(project_at(&url("other")).refused(["init"]).1, "foreign_database");
    assert_eq!(project_at(&url("none")).refused(["init"]).1, "permission_denied");
}

/// Whether a migration that died was before its commit, or after it.
fn is_migrated(cli: &Cli) -> bool {
    let outcome = cli.run(["run", "list"]);
    if outcome.code == Some(0) {
        return true;
    }
    assert_eq!((outcome.code, outcome.error().as_str()), (Some(2), "migration_needed"), "{outcome:?}");
    false
}

#[test]
fn a_migration_that_dies_at_any_moment_leaves_the_old_schema_or_the_new() {
    let Some(cluster) = cluster(&[]) else { return };
    let cli = cluster.project("shop");
    cluster.project("old");
    make_older(&cluster, "old");
    let (old, new) = (shape(&cluster, "old"), shape(&cluster, "shop"));
    let died = |how: &str| {
        let is_new = is_migrated(&cli);
        assert_eq!(shape(&cluster, "shop"), *if is_new { &new } else { &old }, "{how}");
        let migrated = cli.json(["migrate", "--json"]);
        assert_eq!(migrated["migrated"], !is_new, "{how}");
        assert_eq!(shape(&cluster, "shop"), new, "{how}");
        is_new
    };
    let mut ended = (0, 0);
    for n in 1.. {
        make_older(&cluster, "shop");
        let mut call = cli.command(["migrate"]);
        let status = call.env("IC_TEST_ABORT_BEFORE", n.to_string()).output().expect("start ic").status;
        let is_new = died(&format!("before statement {n}"));
        if status.success() {
            assert!(n > 3, "a migration has statements");
            break;
        }
        *if is_new { &mut ended.1 } else { &mut ended.0 } += 1;
    }
    assert!(ended.0 > 0 && ended.1 > 0, "before and after the commit: {ended:?}");
    let mut random = Random::seeded();
    for round in rounds(10) {
        make_older(&cluster, "shop");
        let mut call = cli.command(["migrate"]);
        let mut call = call.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("start ic");
        std::thread::sleep(Duration::from_micros(random.below(25_000)));
        call.kill().expect("kill it");
        call.wait().expect("its end");
        died(&format!("killed in round {round}"));
    }
    cli.assert_sound("after all");
}

/// What relatives of PostgreSQL lack, and what does not outlast one transaction of a pooler.
#[test]
fn neither_the_schema_nor_the_statements_of_a_day_depend_on_what_poolers_and_relatives_lack() {
    let Some(cluster) = cluster(&[]) else { return };
    let log = tempfile::NamedTempFile::new().expect("a log");
    let cli = cluster.project("shop").with_env("IC_TEST_SQL_LOG", log.path());
    let run = sprint(&cli);
    cli.ok(["run", "rollback", &run, "--to-phase", "plan", "--reason", "again", "--yes"]);
    cli.ok(["events", "tail", "--all", "--cursor", "c"]);
    cli.assert_sound("after it");
    let log = std::fs::read_to_string(log.path()).expect("the log");
    assert!(log.lines().count() > 50 && log.contains("FOR UPDATE"), "{log}");
    let migrations = concat!(env!("CARGO_MANIFEST_DIR"), "/../../migrations/postgres");
    let files = std::fs::read_dir(migrations).expect("migrations").map(|entry| entry.expect("a file").path());
    let schema = files.map(|path| std::fs::read_to_string(path).expect("a migration"));
    let schema: String = schema
        .flat_map(|text| text.lines().map(|line| format!("{line}\n")).collect::<Vec<_>>())
        .filter(|line| !line.trim_start().starts_with("--"))
        .collect();
    for text in [log.to_uppercase(), schema.to_uppercase()] {
        for lacking in [
            "LISTEN ", "NOTIFY ", "ADVISORY", "LOCK TABLE", "DO $", "DEFERRABLE", "FOR EACH STATEMENT", "UNLOGGED",
            "INHERITS", "CREATE RULE", "PREPARE ", "CREATE TEMP", "WITH HOLD", "NEXTVAL", "SERIAL ",
            "GENERATED ALWAYS",
        ] {
            let line = text.lines().find(|line| line.contains(lacking));
            assert_eq!(line, None, "{lacking}");
        }
        // Session settings would be another client's in a pooler's next transaction.
        let setting = text
            .lines()
            .flat_map(|line| line.split(';'))
            .find(|part| part.trim_start().starts_with("SET ") && !part.trim_start().starts_with("SET LOCAL "));
        assert_eq!(setting, None);
    }
    let changes = ["INSERT INTO", "UPDATE ", "DELETE FROM"];
    for line in log.to_uppercase().lines().filter(|line| line.starts_with("WITH ")) {
        let count: usize = changes.iter().map(|change| line.matches(change).count()).sum();
        assert!(count <= 1, "two changes in one statement: {line}");
    }
}

#[test]
fn migrating_a_ledger_in_a_file_says_that_there_is_nothing_to_do() {
    let cli = Cli::without_ledger(env!("CARGO_BIN_EXE_ic"));
    let db = cli.root().join("own.db");
    let db = db.to_str().expect("a path");
    cli.ok(["init", "--db", db]);
    let said = cli.json(["migrate", "--json", "--db", db]);
    assert_eq!((&said["migrated"], said["db"].as_str()), (&false.into(), Some(db)));
}

/// Tables, and of each its columns in order: name, kind and whether it must be there.
type Tables = BTreeMap<String, Vec<(String, String, bool)>>;

fn of_file(path: &std::path::Path) -> (Tables, Vec<String>) {
    let db = rusqlite::Connection::open(path).expect("the ledger");
    let names = |kind: &str| -> Vec<(String, String)> {
        let sql = "SELECT name, tbl_name FROM sqlite_schema WHERE type = $1 AND name NOT LIKE 'sqlite_%' ORDER BY name";
        let mut statement = db.prepare(sql).expect("a statement");
        let rows = statement.query_map([kind], |row| Ok((row.get(0)?, row.get(1)?))).expect("names");
        rows.collect::<Result<_, _>>().expect("names")
    };
    let mut tables = Tables::new();
    for (table, _) in names("table") {
        let sql = format!("SELECT name, type, \"notnull\" OR pk > 0 FROM pragma_table_info('{table}') ORDER BY cid");
        let mut statement = db.prepare(&sql).expect("a statement");
        let columns = statement.query_map([], |row| {
            let kind: String = row.get(1)?;
            let kind = match kind.as_str() {
                "INTEGER" | "INT4" | "int4" => "number",
                "BLOB" => "bytes",
                _ => "text",
            };
            Ok((row.get(0)?, kind.to_owned(), row.get(2)?))
        });
        tables.insert(table, columns.expect("columns").collect::<Result<_, _>>().expect("columns"));
    }
    let mut rest: Vec<String> =
        names("index").into_iter().chain(names("trigger")).chain(names("view")).map(|(name, _)| name).collect();
    rest.sort();
    (tables, rest)
}

fn of_server(cluster: &Cluster) -> (Tables, Vec<String>) {
    let mut tables = Tables::new();
    let columns = cluster.psql(
        "SELECT c.table_name, column_name, data_type, is_nullable FROM information_schema.columns c \
         JOIN information_schema.tables t USING (table_schema, table_name) \
         WHERE table_schema = 'shop' AND table_type = 'BASE TABLE' ORDER BY 1, ordinal_position",
    );
    for line in columns.lines() {
        let [table, column, kind, null] = line.split('|').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let kind = match kind {
            "bigint" | "integer" => "number",
            "bytea" => "bytes",
            _ => "text",
        };
        tables.entry(table.to_owned()).or_default().push((column.to_owned(), kind.to_owned(), null == "NO"));
    }
    let rest = cluster.psql(
        "SELECT indexname FROM pg_indexes WHERE schemaname = 'shop' AND indexname NOT LIKE '%_pkey' UNION ALL \
         SELECT t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE n.nspname = 'shop' AND NOT t.tgisinternal UNION ALL \
         SELECT viewname FROM pg_views WHERE schemaname = 'shop'",
    );
    let mut rest: Vec<String> = rest.lines().map(str::to_owned).collect();
    rest.sort();
    (tables, rest)
}

#[test]
fn a_ledger_on_a_server_is_made_of_what_one_in_a_file_is_made_of() {
    let Some(cluster) = cluster(&[]) else { return };
    let cli = cluster.project("shop");
    let db = cli.root().join("own.db");
    cli.ok(["init", "--db", db.to_str().expect("a path")]);
    let (mut file, file_rest) = of_file(&db);
    let (mut server, mut server_rest) = of_server(&cluster);
    // Refinery's own table, and the key of files, which is of the hash of a path there.
    for tables in [&mut file, &mut server] {
        tables.remove("refinery_schema_history");
    }
    server_rest.retain(|name| name != "dispatch_files_key");
    for (table, columns) in &file {
        assert_eq!(server.get(table), Some(columns), "{table}");
    }
    assert_eq!(file.keys().collect::<Vec<_>>(), server.keys().collect::<Vec<_>>());
    assert_eq!(file_rest, server_rest);
    let collations = "SELECT count(*) FROM information_schema.columns WHERE table_schema = 'shop' AND data_type = 'text' \
                      AND collation_name IS DISTINCT FROM 'C' AND table_name NOT IN ('phase_events', 'dispatch_events')";
    assert_eq!(cluster.psql(collations), "0", "text is ordered by its bytes");
}
