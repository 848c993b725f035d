//! A server for the ledgers of tests: where `IC_TEST_SERVER` names one, every project has its ledger there.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use ic_ledger::{Ledger, OpenOptions, ServerUrl};

/// The URL of a server's database, without a ledger's name: `scripts/postgres.sh start` prints one.
const SERVER: &str = "IC_TEST_SERVER";

/// A role that may do what is done every day: calls are its own, but those of the ledger's owner.
const DAILY: &str = "IC_TEST_DAILY";

/// Whether ledgers are on a server.
pub fn is_in_use() -> bool {
    std::env::var_os(SERVER).is_some()
}

/// A ledger on the server that goes with the test that has it.
#[derive(Debug, Default)]
pub(crate) struct Lent(Option<(String, String)>);

/// What calls are told so that their ledger is a new one on the server; nothing where there is none.
pub(crate) fn lend() -> (Vec<(OsString, OsString)>, Lent) {
    let Ok(server) = std::env::var(SERVER) else { return (Vec::new(), Lent::default()) };
    let ledger = format!("t_{}", ic_base::Context::system().new_ledger_id().as_str().replace('-', ""));
    let url = ServerUrl::parse(&format!("{server}&ledger={ledger}")).expect("the URL of a server").to_string();
    // One machine has the ledger for itself: what needs that is not refused.
    (
        vec![
            ("IC_DB".into(), url.into()),
            ("IC_TEST_ONE_HOST".into(), "1".into()),
            ("IC_TEST_PATIENT".into(), "1".into()),
        ],
        Lent(Some((server, ledger))),
    )
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some((server, ledger)) = self.0.take() else { return };
        let sql = format!(
            "DO $$DECLARE s text; BEGIN FOR s IN SELECT nspname FROM pg_namespace WHERE nspname = '{ledger}' \
             OR nspname LIKE '{ledger}\\_%' LOOP EXECUTE 'DROP SCHEMA ' || s || ' CASCADE'; END LOOP; END$$"
        );
        let mut psql = std::process::Command::new("psql");
        // What stays goes with the server.
        let _ = psql.args([&server, "-qXc", &sql]).stderr(std::process::Stdio::null()).status();
    }
}

/// The URL of this ledger by the role that `IC_TEST_DAILY` names, for a call that is not its owner's alone; `None` where there is no such
/// role.
pub(crate) fn of_every_day<'w>(db: &Path, words: impl Iterator<Item = &'w OsStr>) -> Option<String> {
    let role = std::env::var(DAILY).ok().filter(|_| is_meant(db))?;
    let is_owners = |word: &OsStr| ["init", "migrate", "redact"].iter().any(|verb| word == *verb);
    let mut words = words;
    if words.any(is_owners) {
        return None;
    }
    let url = ServerUrl::parse(db.to_str()?).expect("the URL of a ledger");
    Some(ServerUrl { user: Some(role), ..url }.to_string())
}

/// Whether this is the URL of a ledger.
pub(crate) fn is_meant(db: &Path) -> bool {
    db.to_str().is_some_and(ServerUrl::is_meant)
}

/// What psql prints for statements in the ledger of this URL.
pub(crate) fn sql(url: &Path, sql: &str) -> String {
    let (server, ledger) = parts(url);
    // What is set for longer would be another client's where a pooler is in between.
    psql(server, &format!("BEGIN; SET LOCAL search_path TO {ledger}; {sql}; COMMIT"))
}

/// Keeps a copy of the rows of this ledger under a name.
pub(crate) fn keep(url: &Path, name: &str) {
    let (server, ledger) = parts(url);
    let kept = format!("{ledger}_{name}");
    let copies: String = tables(server, ledger)
        .iter()
        .map(|table| format!("CREATE TABLE {kept}.{table} AS TABLE {ledger}.{table};"))
        .collect();
    psql(server, &format!("BEGIN; DROP SCHEMA IF EXISTS {kept} CASCADE; CREATE SCHEMA {kept}; {copies} COMMIT"));
}

/// Makes the rows of this ledger what they were when it was kept under the name; what is still being written is waited for, and goes.
pub(crate) fn put_back(url: &Path, name: &str) {
    let (server, ledger) = parts(url);
    let tables = tables(server, ledger);
    let all = tables.iter().map(|table| format!("{ledger}.{table}")).collect::<Vec<_>>().join(", ");
    let copies: String = tables
        .iter()
        .map(|table| {
            format!("DELETE FROM {ledger}.{table}; INSERT INTO {ledger}.{table} TABLE {ledger}_{name}.{table};")
        })
        .collect();
    // As a replica does it: without the triggers that refuse changes of the record, and in any order of tables.
    psql(server, &format!("BEGIN; SET LOCAL session_replication_role = replica; LOCK TABLE {all}; {copies} COMMIT"));
}

/// A session of psql in which a transaction is open, until it is dropped.
#[derive(Debug)]
pub struct ServerSession(std::process::Child);

impl Drop for ServerSession {
    fn drop(&mut self) {
        // At the end of its input it goes, and the server takes its transaction back.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Holds the row that every writer locks first.
pub(crate) fn hold_writers(url: &Path) -> ServerSession {
    let (server, ledger) = parts(url);
    let mut psql = std::process::Command::new("psql");
    psql.args([server, "-qXAt"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut psql = psql.spawn().expect("psql");
    let stdin = psql.stdin.as_mut().expect("its input");
    writeln!(stdin, "BEGIN; SELECT 'held' FROM {ledger}.event_head FOR UPDATE;").expect("ask for it");
    let mut line = String::new();
    BufReader::new(psql.stdout.take().expect("its output")).read_line(&mut line).expect("an answer");
    assert_eq!(line.trim(), "held");
    ServerSession(psql)
}

/// Columns, indexes and triggers of this ledger, in a fixed order.
pub(crate) fn schema(url: &Path) -> String {
    let (server, ledger) = parts(url);
    let sql = format!(
        "SELECT table_name || ' ' || column_name || ' ' || data_type || ' ' || is_nullable \
           FROM information_schema.columns WHERE table_schema = '{ledger}' \
         UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = '{ledger}' \
         UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger \
           WHERE NOT tgisinternal AND tgrelid IN (SELECT oid FROM pg_class WHERE relnamespace = '{ledger}'::regnamespace) \
         ORDER BY 1"
    );
    psql(server, &sql).replace(&format!("{ledger}."), "")
}

fn tables(server: &str, ledger: &str) -> Vec<String> {
    let sql = format!("SELECT tablename FROM pg_tables WHERE schemaname = '{ledger}'");
    psql(server, &sql).lines().map(str::to_owned).collect()
}

/// The server of a URL of [`lend`], and the ledger in it.
fn parts(url: &Path) -> (&str, &str) {
    url.to_str().and_then(|url| url.split_once("&ledger=")).expect("a URL of lend")
}

/// What psql prints for statements.
fn psql(server: &str, sql: &str) -> String {
    let mut psql = std::process::Command::new("psql");
    psql.args([server, "-qXAt", "-v", "ON_ERROR_STOP=1", "-c", sql]);
    let said = psql.output().expect("psql");
    assert!(said.status.success(), "{sql}: {said:?}");
    String::from_utf8_lossy(&said.stdout).trim_end().to_owned()
}

/// The ledger that a path or a URL names, opened to look at it.
pub(crate) fn look(db: &Path) -> Option<Ledger> {
    let url = db.to_str().filter(|text| ServerUrl::is_meant(text))?;
    let url = ServerUrl::parse(url).expect("the URL of a ledger");
    Some(Ledger::on_server(&url, &PathBuf::from("/nonexistent"), OpenOptions::default()).expect("a session"))
}
