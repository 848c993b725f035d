//! A private server, which may be stopped, killed and misconfigured.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::cli::{Cli, CliOutcome};

/// Who works in the projects of a cluster, and in which clone they all are.
pub const ONE_CLONE: &str = "ann@laptop:/home/ann/shop";

/// A private PostgreSQL server in a directory of its own, which listens on a socket alone.
#[derive(Debug)]
pub struct Cluster {
    directory: TempDir,
    binary: &'static str,
}

impl Cluster {
    /// A server with these settings, for calls of `binary`; `None`, and a word on standard error, where the programs are missing.
    ///
    /// # Panics
    /// If it cannot be started otherwise.
    pub fn start_with(binary: &'static str, settings: &[&str]) -> Option<Self> {
        let directory = tempfile::tempdir().expect("a directory");
        let cluster = Self { directory, binary };
        let started = cluster.script("start", settings);
        if started.code == Some(3) {
            eprintln!("skipped: {}", started.stderr);
            return None;
        }
        assert_eq!(started.code, Some(0), "{started:?}");
        Some(cluster)
    }

    fn script(&self, verb: &str, more: &[&str]) -> CliOutcome {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres.sh");
        let mut command = Command::new("bash");
        // What it starts must not keep the output of this test open.
        command.arg(script).arg(verb).arg(self.root()).args(more).stdin(std::process::Stdio::null());
        CliOutcome::of(&mut command)
    }

    /// The directory of the server, which any user may read.
    pub fn root(&self) -> PathBuf {
        self.directory.path().join("pg")
    }

    /// The directory of its socket.
    pub fn socket(&self) -> PathBuf {
        self.root().join("socket")
    }

    /// The URL of a ledger in it.
    pub fn url(&self, ledger: &str) -> String {
        format!("postgres://ic@/postgres?host={}&ledger={ledger}", self.socket().display())
    }

    /// Ends all connections at once, as a crash does, and starts again.
    pub fn crash_and_restart(&self) {
        self.stop("immediate");
        self.start();
    }

    /// Starts it again.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start(&self) {
        let started = self.script("start", &[]);
        assert_eq!(started.code, Some(0), "{started:?}");
    }

    /// Ends it, in a mode of `pg_ctl`.
    ///
    /// # Panics
    /// If it does not end.
    pub fn stop(&self, mode: &str) {
        let stopped = self.script("stop", &[mode]);
        assert_eq!(stopped.code, Some(0), "{stopped:?}");
    }

    /// What psql prints for a statement, as this user of the server.
    pub fn psql_as(&self, user: &str, sql: &str) -> CliOutcome {
        let mut psql = Command::new("psql");
        psql.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-U", user, "-d", "postgres", "-c", sql]);
        CliOutcome::of(psql.arg("-h").arg(self.socket()))
    }

    /// What psql prints for a statement.
    ///
    /// # Panics
    /// If it fails.
    pub fn psql(&self, sql: &str) -> String {
        let done = self.psql_as("ic", sql);
        assert_eq!(done.code, Some(0), "{sql}: {done:?}");
        done.stdout.trim_end().to_owned()
    }

    /// What the server has logged.
    ///
    /// # Panics
    /// If it has none.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.root().join("data/server.log")).expect("the server's log")
    }

    /// Adds settings, which a restart takes up.
    ///
    /// # Panics
    /// If they cannot be written.
    pub fn configure(&self, file: &str, lines: &str) {
        let path = self.root().join("data").join(file);
        let mut file = std::fs::File::options().append(true).open(path).expect("a file of the server");
        file.write_all(lines.as_bytes()).expect("its settings");
    }

    /// A project whose ledger is this one, and is there.
    pub fn project(&self, ledger: &str) -> Cli {
        // To the ledger all projects of a test are one clone, wherever they are.
        let cli = Cli::without_ledger(self.binary).with_db(self.url(ledger)).with_env("IC_TEST_ACTOR", ONE_CLONE);
        cli.ok(["init"]);
        cli
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.script("stop", &["immediate"]);
    }
}
