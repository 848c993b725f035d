//! An open ledger: in a file, or on a server.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ic_base::{Code, Context, Diagnosis, Result};

use crate::connection::OpenOptions;
use crate::faults::{self, FaultMode};
use crate::file::FileLedger;
use crate::log_upkeep::{Behind, said};
use crate::server::Server;
use crate::server_url::{ServerUrl, nominal_file};
use crate::transaction::{Snapshot, Transaction};

/// Whether this process has committed a write; read once, as the process ends.
static WRITTEN: AtomicBool = AtomicBool::new(false);

/// Whether a write to a ledger was committed by this process.
pub fn has_written() -> bool {
    WRITTEN.load(Relaxed)
}

/// An open ledger of the newest schema.
pub struct Ledger {
    backend: Backend,
    path: PathBuf,
}

enum Backend {
    File(Box<FileLedger>),
    Server(Box<Server>),
}

impl Ledger {
    /// Opens the ledger at `path`, and migrates it first if it is of an older schema (after a backup).
    ///
    /// Errors: `no_ledger`, `newer_schema`, `foreign_database`, `busy`, `corrupt`, `permission_denied`, `migration_failed`,
    /// `foreign_log`.
    pub fn open(path: &Path, options: OpenOptions, context: &Context) -> Result<Self> {
        FileLedger::open(path, options, context).map(|file| Self::of_file(file, path))
    }

    /// Opens the ledger at `path` for reading alone: it is never migrated, and refuses writes.
    ///
    /// `None` if it is of an older schema. Errors: as of [`Ledger::open`].
    pub fn open_to_look(path: &Path, options: OpenOptions) -> Result<Option<Self>> {
        Ok(FileLedger::open_to_look(path, options)?.map(|file| Self::of_file(file, path)))
    }

    /// A ledger on a server. `store`: the local directory for what stays on this machine. It connects when it is first asked something.
    ///
    /// Errors of what is asked: `unreachable`, `no_ledger`, `newer_schema`, `migration_needed`, `permission_denied`.
    pub fn on_server(url: &ServerUrl, store: &Path, options: OpenOptions) -> Result<Self> {
        let server = Server::new(url, options)?;
        Ok(Self { backend: Backend::Server(Box::new(server)), path: nominal_file(store) })
    }

    /// A ledger in memory, for tests of the crates above.
    pub fn in_memory() -> Result<Self> {
        FileLedger::in_memory().map(|file| Self::of_file(file, Path::new(":memory:")))
    }

    fn of_file(file: FileLedger, path: &Path) -> Self {
        Self { backend: Backend::File(Box::new(file)), path: path.to_owned() }
    }

    /// The ledger's file. Of one on a server: the file that it would have in the local store, whose neighbours are this machine's part of
    /// it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What names the ledger to a person, and to `--db` and `IC_DB`: its file, or its URL.
    pub fn name(&self) -> PathBuf {
        match &self.backend {
            Backend::File(_) => self.path.clone(),
            Backend::Server(server) => PathBuf::from(server.url().to_string()),
        }
    }

    /// The server that it is on; `None`: it is a file.
    pub fn server(&self) -> Option<&ServerUrl> {
        match &self.backend {
            Backend::File(_) => None,
            Backend::Server(server) => Some(server.url()),
        }
    }

    /// Whether one machine has the ledger for itself, so that what lies on that machine may be recorded in it: trees, processes, locks.
    pub fn is_of_one_host(&self) -> bool {
        self.server().is_none() || faults::is_on(FaultMode::OneHost)
    }

    /// Errors: `not_on_server` for a ledger that several machines may share; `what` begins the sentence: "A workflow".
    pub fn require_one_host(&self, what: &str) -> Result<()> {
        match self.server() {
            Some(url) if !self.is_of_one_host() => Err(not_on_server(what, url)),
            _ => Ok(()),
        }
    }

    /// Runs `read` over one consistent view of the ledger.
    pub fn read<T>(&self, read: impl FnOnce(&Snapshot<'_>) -> Result<T>) -> Result<T> {
        match &self.backend {
            Backend::File(file) => file.read(read),
            Backend::Server(server) => server.read(|open| read(&Snapshot::of_server(open))),
        }
    }

    /// Runs `write` in one transaction and commits it, durably, if it returns `Ok`; else nothing is changed.
    ///
    /// The closure is run again if a server rolled the transaction back for another one, so it has no effects outside the transaction.
    /// Errors: `busy` when other writers held the ledger past the timeout; `disk_full`; `ledger_behind`; `unreachable`.
    pub fn write<T>(&self, mut write: impl FnMut(&Transaction<'_>) -> Result<T>) -> Result<T> {
        if faults::is_on(FaultMode::Rerun) {
            // As a server that rolls the transaction back for another one.
            let in_vain = || Diagnosis::new(Code::Internal, "This transaction was run in vain.");
            // Its error is ignored: it is the one above, or one that the run which counts meets again.
            let _ = self.transaction(|tx| write(tx).and_then(|_| Err::<T, _>(in_vain())));
        }
        let written = self.transaction(write)?;
        WRITTEN.store(true, Relaxed);
        Ok(written)
    }

    fn transaction<T>(&self, mut write: impl FnMut(&Transaction<'_>) -> Result<T>) -> Result<T> {
        match &self.backend {
            Backend::File(file) => file.write(write),
            Backend::Server(server) => server.write(|open| write(&Transaction::of_server(open))),
        }
    }

    /// Runs `work` without waiting for other writers: a write that would have to wait is `busy` at once.
    pub fn at_once<T>(&self, work: impl FnOnce() -> T) -> T {
        match &self.backend {
            Backend::File(file) => file.at_once(work),
            Backend::Server(server) => server.at_once(work),
        }
    }

    /// Rebuilds the file and empties its log, so that nothing of what was overwritten is left in them.
    ///
    /// Errors: `busy` if a process reads the ledger past the timeout; what was committed stays committed.
    pub fn wipe(&self) -> Result<()> {
        match &self.backend {
            Backend::File(file) => file.wipe(),
            Backend::Server(server) => server.wipe(),
        }
    }

    /// A number that changes whenever another process has appended an event; cheap enough to poll.
    ///
    /// Errors: `disk_full` where the disk has no room to share the ledger: a process that waited there would lock all others out.
    pub fn data_version(&self) -> Result<i64> {
        match &self.backend {
            Backend::File(file) => file.data_version(),
            Backend::Server(server) => server.head_version(),
        }
    }

    /// The newest event of the ledger and of what its store remembers, if the store has held a newer one or another.
    pub fn behind(&self) -> Option<Behind> {
        match &self.backend {
            Backend::File(file) => file.behind(),
            // A server has no file with a note beside it. Lost events are told by their hashes: `events/history.rs`.
            Backend::Server(_) => None,
        }
    }

    /// The same in words, for a person: a ledger that is behind can still be read.
    pub fn behind_in_words(&self) -> Option<String> {
        self.behind().map(|behind| said(&self.path, &behind))
    }

    /// Errors: `ledger_behind` if the store remembers a newer event; nothing is written before the older ledger is accepted.
    pub fn require_newest(&self) -> Result<()> {
        match &self.backend {
            Backend::File(file) => file.require_newest(),
            Backend::Server(_) => Ok(()),
        }
    }

    /// What was just written is read by others from the file alone.
    pub(crate) fn keep_in_file(&self) {
        if let Backend::File(file) = &self.backend {
            file.keep_in_file();
        }
    }

    /// The file it is in. Errors: `not_on_server`; `what` as of [`Ledger::require_one_host`].
    pub(crate) fn file(&self, what: &str) -> Result<&FileLedger> {
        match &self.backend {
            Backend::File(file) => Ok(file),
            Backend::Server(server) => Err(not_on_server(what, server.url())),
        }
    }
}

fn not_on_server(what: &str, url: &ServerUrl) -> Diagnosis {
    Diagnosis::new(
        Code::NotOnServer,
        format!("{what} needs a ledger in a file, and this one is on a server: {url}. Nothing was changed."),
    )
    .hint("what a ledger on a server does, and what it does not yet: docs/FLEET.md")
    .detail("db", url.to_string())
}
