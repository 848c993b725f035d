//! What a project looks like to those who compare it before and after: its tree, git's state, rows, and what its ledger says of its runs.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ic_ledger::{Ledger, OpenOptions, Value};

use crate::cli::CliOutcome;
use crate::server;

/// Runs git in a directory, with nothing of the user's settings, and returns what it says.
///
/// # Panics
/// If it fails.
pub fn git_in(directory: &Path, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=n", "-c", "user.email=e@x", "-c", "init.defaultBranch=main"];
    let mut git = Command::new("git");
    git.args(identity).args(arguments).current_dir(directory);
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    let outcome = CliOutcome::of(&mut git);
    assert_eq!(outcome.code, Some(0), "git {arguments:?}: {outcome:?}");
    outcome.stdout.trim_end().to_owned()
}

/// Everything that a rollback is about, but for ids, events and times.
#[derive(Clone, PartialEq, Eq)]
pub struct ProjectState {
    /// As [`tree`] has it.
    pub tree: BTreeMap<PathBuf, String>,
    /// As [`git_state`] has it.
    pub git: String,
    /// Every row of the application's database but the audit's.
    pub rows: String,
    /// As [`ledger`] has it.
    pub ledger: String,
}

impl ProjectState {
    /// Asserts that both are the same, and shows what is not.
    ///
    /// # Panics
    /// If they are not.
    pub fn assert_is(&self, wanted: &Self, when: &str) {
        self.assert_outside_is(wanted, when);
        assert_eq!(self.ledger, wanted.ledger, "{when}: the ledger");
    }

    /// As [`ProjectState::assert_is`], the ledger aside.
    ///
    /// # Panics
    /// If they are not.
    pub fn assert_outside_is(&self, wanted: &Self, when: &str) {
        let differ = |path: &&PathBuf| self.tree.get(*path) != wanted.tree.get(*path);
        let paths: Vec<_> = self.tree.keys().chain(wanted.tree.keys()).filter(differ).collect();
        assert!(paths.is_empty(), "{when}: the tree differs at {paths:?}");
        assert_eq!(self.git, wanted.git, "{when}: git");
        assert_eq!(self.rows, wanted.rows, "{when}: rows");
    }
}

/// Every path of a tree with its kind, mode and content; the store, the state database and git's own files aside.
///
/// # Panics
/// If it cannot be read.
pub fn tree(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    add(root, Path::new(""), &mut all);
    all
}

fn add(root: &Path, below: &Path, all: &mut BTreeMap<PathBuf, String>) {
    for entry in std::fs::read_dir(root.join(below)).expect("list a directory") {
        let name = entry.expect("an entry").file_name();
        let path = below.join(&name);
        if name == ".git" || path == Path::new(".ic") || path == Path::new("data") {
            continue;
        }
        let at = root.join(&path);
        let meta = std::fs::symlink_metadata(&at).expect("look at a path");
        let mode = meta.mode() & 0o7777;
        let shown = if meta.is_dir() {
            add(root, &path, all);
            format!("directory {mode:o}")
        } else if meta.is_symlink() {
            format!("link to {}", std::fs::read_link(&at).expect("a link").display())
        } else {
            format!("file {mode:o}: {}", String::from_utf8_lossy(&std::fs::read(&at).expect("a file")))
        };
        all.insert(path, shown);
    }
}

/// HEAD, branches, index and stash, for comparing; nothing where there is no repository.
///
/// # Panics
/// If git fails.
pub fn git_state(root: &Path) -> String {
    if !root.join(".git").exists() {
        return String::new();
    }
    let mut text = String::new();
    let head = ["rev-parse", "HEAD"];
    let branch = ["rev-parse", "--abbrev-ref", "HEAD"];
    let refs = ["for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags"];
    let index = ["ls-files", "--stage"];
    let status = ["status", "--porcelain=v1", "-uall"];
    let stash = ["stash", "list", "--format=%H"];
    for arguments in [&head[..], &branch, &refs, &index, &status, &stash] {
        writeln!(text, "{}: {}", arguments[0], git_in(root, arguments)).expect("a line");
    }
    text
}

/// The rows that say where runs are and what counts, without ids, events and times.
///
/// # Panics
/// If the ledger at `db` cannot be read.
pub fn ledger(db: &Path) -> String {
    let ledger = match server::look(db) {
        Some(ledger) => ledger,
        None => Ledger::open_to_look(db, OpenOptions::default()).expect("open the ledger").expect("of this schema"),
    };
    let mut text = String::new();
    for (table, columns) in [
        ("runs", "goal, status, phase, scope_id, complexity, metadata, completed_at IS NULL"),
        ("run_skips", "phase, reason, rolled_back_by IS NULL"),
        ("run_artifacts", "phase, path, type, content_hash, status, rolled_back_by IS NULL"),
        ("run_agents", "phase, type, name, status, rolled_back_by IS NULL"),
        ("dispatches", "phase, name, status, verdict, rolled_back_by IS NULL"),
        ("compensations", "step, phase, ord, state, rolled_back_by IS NULL, child IS NULL"),
        ("rollbacks", "status, layers, from_phase, to_phase, include_target, reason, finished_at IS NULL"),
    ] {
        let filter = if table == "rollbacks" { "WHERE status NOT IN ('undone', 'aborted')" } else { "" };
        let sql = format!("SELECT {columns} FROM {table} {filter} ORDER BY seq");
        let rows = ledger.read(|snapshot| {
            snapshot.query_all(&sql, &[], |row| {
                let mut line = table.to_owned();
                for i in 0..row.width() {
                    let shown = match row.value(i).expect("a column") {
                        Value::Null(_) => "NULL".to_owned(),
                        Value::Int(n) => n.to_string(),
                        Value::Text(text) => text.to_owned(),
                        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                    };
                    write!(line, "|{shown}").expect("a column");
                }
                Ok(line + "\n")
            })
        });
        text.extend(rows.expect("read a table"));
    }
    text
}
