//! A private server for a test, and projects whose ledger is there.

use ic_testkit::{Cli, Cluster, ONE_CLONE};

const BINARY: &str = env!("CARGO_BIN_EXE_ic");

/// A server with these settings, or `None` where the programs are missing.
pub(crate) fn cluster(settings: &[&str]) -> Option<Cluster> {
    Cluster::start_with(BINARY, settings)
}

/// Makes a role that may do in the ledger `shop` what is done every day; `more` is said of it, too.
pub(crate) fn role_of_every_day(cluster: &Cluster, role: &str, more: &str) {
    cluster.psql(&format!(
        "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA shop TO {role}; \
         GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA shop TO {role}; {more}"
    ));
}

/// A project without a ledger, whose calls have this one.
pub(crate) fn project_at(url: &str) -> Cli {
    Cli::without_ledger(BINARY).with_db(url).with_env("IC_TEST_ACTOR", ONE_CLONE)
}
