//! A server for the ledgers of tests: where `IC_TEST_SERVER` names one, every project has its ledger there.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ic_store::{Ledger, OpenOptions, ServerUrl};

/// The URL of a server's database, without a ledger's name: `scripts/postgres.sh start` prints one.
const SERVER: &str = "IC_TEST_SERVER";

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
    let url = format!("{server}&ledger={ledger}");
    // One machine has the ledger for itself: what needs that is not refused.
    (
        vec![("IC_DB".into(), url.into()), ("IC_TEST_ONE_HOST".into(), "1".into())],
        Lent(Some((server, ledger))),
    )
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some((server, ledger)) = self.0.take() else { return };
        let sql = format!("DROP SCHEMA IF EXISTS {ledger} CASCADE");
        let mut psql = std::process::Command::new("psql");
        // What stays goes with the server.
        let _ = psql.args([&server, "-qXc", &sql]).stderr(std::process::Stdio::null()).status();
    }
}

/// Whether this is the URL of a ledger.
pub(crate) fn is_meant(db: &Path) -> bool {
    db.to_str().is_some_and(ServerUrl::is_meant)
}

/// What psql prints for statements in the ledger of this URL.
pub(crate) fn sql(url: &Path, sql: &str) -> String {
    let (server, ledger) = url.to_str().and_then(|url| url.split_once("&ledger=")).expect("a URL of lend");
    let mut psql = std::process::Command::new("psql");
    psql.args([
        server,
        "-qXAt",
        "-v",
        "ON_ERROR_STOP=1",
        "-c",
        &format!("SET search_path TO {ledger}; {sql}"),
    ]);
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
