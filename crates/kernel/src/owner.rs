//! Which process compensates or executes a run: it holds a lock that the operating system ends with it, and a token that every write of the
//! journal must match. Process numbers decide nothing.
//!
//! The lock says whether the owner lives; the token stops an owner that was thought dead and was not.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use ic_base::{Code, Diagnose, Diagnosis, Result, RunId, Timestamp};
use ic_ledger::lock::{self, FileLock, LockMode, Rank};
use ic_ledger::{Snapshot, Transaction, private};

use ic_dispatch::process::ProcessIdentity;

/// A run's lock, held until it is dropped.
#[derive(Debug)]
pub struct OwnerLock {
    _lock: FileLock,
}

impl OwnerLock {
    /// Takes the lock of a run; `store` is the directory of the ledger.
    ///
    /// Errors: `work_running` while another process holds it.
    pub fn take(store: &Path, run: &RunId) -> Result<Self> {
        let directory = store.join("owners");
        let doing = || format!("locking the run {}", run.short());
        private::directory(&directory).while_doing(doing)?;
        // A process that only checks holds the lock for a moment; an owner keeps it for hours, so a longer wait is useless.
        let path = directory.join(run.as_str());
        // The file stays when the lock ends. If it were removed, two processes could each lock a file of this name.
        let taken = FileLock::take(&path, Rank::Owner, LockMode::Exclusive, LOOK).while_doing(doing)?;
        taken.map(|lock| Self { _lock: lock }).ok_or_else(|| is_held(run))
    }

    /// Whether a run's lock could be taken now; nothing is made or kept. Errors: `work_running` while another process holds it.
    pub fn require_free(store: &Path, run: &RunId) -> Result<()> {
        let doing = || format!("looking who has the run {}", run.short());
        let file = match File::open(store.join("owners").join(run.as_str())) {
            // No process has ever owned the run.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            file => file.while_doing(doing)?,
        };
        // The lock is shared: two processes that look at once do not take each other for an owner.
        let is_free = lock::wait(&file, LockMode::Shared, Duration::ZERO).while_doing(doing)?;
        if is_free { Ok(()) } else { Err(is_held(run)) }
    }
}

/// How long a lock is waited for that another process only checks.
const LOOK: Duration = Duration::from_millis(20);

fn is_held(run: &RunId) -> Diagnosis {
    Diagnosis::new(
        Code::WorkRunning,
        format!("Another process executes or compensates the run {} right now.", run.short()),
    )
    .hint("wait for it, or end it; what it leaves can be resumed")
    .detail("run_id", run.as_str())
}

/// Makes `token` the one whose writes count, and records the calling process. The caller holds the lock.
pub fn claim(tx: &Transaction<'_>, now: Timestamp, run: &RunId, token: &str) -> Result<()> {
    // The process is recorded for people alone: one that cannot be looked up owns the run anyway.
    let own = ProcessIdentity::of(std::process::id()).ok().flatten();
    let process = own.and_then(|own| serde_json::to_string(&own).ok());
    // `status_before` is not touched: the next owner of a run that a dead process closed needs it to open the run.
    tx.execute_one(
        "INSERT INTO run_owners (run_id, token, taken_at, process) VALUES ($1, $2, $3, $4) ON CONFLICT (run_id) \
         DO UPDATE SET token = excluded.token, taken_at = excluded.taken_at, process = excluded.process",
        &[&run.as_str(), &token, &now.millis(), &process],
    )
}

/// The process that has a run, or had it last; `None` if none is on record. The lock says whether it still has it.
pub fn holder(snapshot: &Snapshot<'_>, run: &RunId) -> Result<Option<ProcessIdentity>> {
    let sql = "SELECT process FROM run_owners WHERE run_id = $1 AND process IS NOT NULL";
    snapshot.query_opt(sql, &[&run.as_str()], |row| row.parse(0, "run_owners", |text| serde_json::from_str(text).ok()))
}

/// Errors: `work_running` if another process has claimed the run since.
pub fn require(snapshot: &Snapshot<'_>, run: &RunId, token: &str) -> Result<()> {
    // The caller asks in the transaction of its write: no claim can come between this and the commit.
    let sql = "SELECT token FROM run_owners WHERE run_id = $1";
    let current: Option<String> = snapshot.query_opt(sql, &[&run.as_str()], |row| row.get(0))?;
    if current.as_deref() == Some(token) {
        return Ok(());
    }
    Err(Diagnosis::new(
        Code::WorkRunning,
        format!("Another process took over the run {}; this one stops writing.", run.short()),
    )
    .hint(format!("see where it is: ic run status {}", run.short()))
    .detail("run_id", run.as_str()))
}

/// The processes of undos of a run whose end was not recorded.
pub fn undo_workers(snapshot: &Snapshot<'_>, run: &RunId) -> Result<Vec<ProcessIdentity>> {
    let sql = "SELECT child FROM compensations WHERE run_id = $1 AND child IS NOT NULL";
    snapshot
        .query_all(sql, &[&run.as_str()], |row| row.parse(0, "compensations", |text| serde_json::from_str(text).ok()))
}

/// Remembers the run's status from before it was closed for the rollback of its effects.
pub fn remember_status(tx: &Transaction<'_>, run: &RunId, status: Option<&str>) -> Result<()> {
    // The row is there: only an owner closes or opens a run, and its claim made one.
    tx.execute_one("UPDATE run_owners SET status_before = $1 WHERE run_id = $2", &[&status, &run.as_str()])
}

/// The status that [`remember_status`] remembered, as `parse` reads it. Errors: `corrupt` for a text that it does not know.
pub fn status_before<T>(snapshot: &Snapshot<'_>, run: &RunId, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>> {
    let sql = "SELECT status_before FROM run_owners WHERE run_id = $1 AND status_before IS NOT NULL";
    snapshot.query_opt(sql, &[&run.as_str()], |row| row.parse(0, "run_owners", &parse))
}
