//! A private server for a test, and projects whose ledger is there.

use ic_testkit::{Cli, Cluster};

const BINARY: &str = env!("CARGO_BIN_EXE_ic");

/// A server with these settings, or `None` where the programs are missing.
pub(crate) fn cluster(settings: &[&str]) -> Option<Cluster> {
    Cluster::start_with(BINARY, settings)
}

/// A project without a ledger, whose calls have this one.
pub(crate) fn project_at(url: &str) -> Cli {
    Cli::without_ledger(BINARY).with_db(url)
}
