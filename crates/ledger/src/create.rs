//! Making a ledger, in a file or on a server, and the store that it has on this machine.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;

use ic_base::{Code, Context, Diagnose, Diagnosis, Result, shell_word};

use crate::connection::OpenOptions;
use crate::ledger::Ledger;
use crate::locate::{FILE_NAME, FoundBy, LedgerLocation, default_store, follow_pointer};
use crate::log::sibling;
use crate::server::{Server, schema};
use crate::server_url::ServerUrl;
use crate::values::path_bytes;
use crate::{faults, filesystem, migrate, private, remote, trust};

/// Makes the ledger at `place` (directory 0700, files 0600), or keeps the one that is there.
///
/// `pointed`: the store was named by `--store`, and a pointer to it is left at the usual place. Returns the open
/// ledger and whether it is new. Errors: `unsupported_fs`; `ledger_exists` when the project has its ledger elsewhere;
/// `permission_denied` for a directory that everybody may write in.
pub fn create(
    place: &LedgerLocation,
    pointed: bool,
    directory: &Path,
    options: OpenOptions,
    context: &Context,
) -> Result<(Ledger, bool)> {
    if let Some(url) = &place.server {
        return create_on_server(url, place, options, context);
    }
    let default = default_store(directory);
    if pointed
        && let Some(existing) = follow_pointer(&default)?
        && (existing.join(FILE_NAME).exists() || remote::path(&existing).exists())
        && !same_file(&existing, &place.store)
    {
        return Err(Diagnosis::new(
            Code::LedgerExists,
            format!("This project already has its ledger in {}.", existing.display()),
        )
        .hint("use that one, or move its directory and run init again"));
    }
    // The store may not exist yet: its file system is that of the nearest directory above it.
    let existing = place.store.ancestors().find(|p| p.exists()).unwrap_or(Path::new("/"));
    filesystem::check(existing)?;
    if place.store.exists() {
        // A store made under a umask that takes bits from the owner cannot be used until it has them.
        private::mend(&place.store).while_doing(|| format!("using {}", place.store.display()))?;
        if place.db.exists() {
            private::mend(&place.db).while_doing(|| format!("using {}", place.db.display()))?;
        } else {
            trust::require_closed(&place.store)?;
        }
    } else {
        make_store(&place.store)?;
    }
    // `--db FILE` means that file. A pointer beside it may be that of the project's own ledger.
    let is_named = matches!(place.found_by, FoundBy::Flag | FoundBy::Environment);
    let url = if is_named { None } else { remote::read(&place.store)? };
    let (ledger, created) = if let Some(url) = url {
        create_on_server(&url, place, options, context)?
    } else {
        let created = migrate::create(&place.db, options, context)?;
        (Ledger::open(&place.db, options, context)?, created)
    };
    if pointed && !same_file(&default, &place.store) && !default.exists() {
        // After the ledger was made: a pointer that leads to no ledger would make every later call fail.
        faults::statement("-- pointing to the store");
        let mut line = path_bytes(&place.store).to_vec();
        line.push(b'\n');
        write_private(&default, &line)?;
    }
    Ok((ledger, created))
}

/// Makes the ledger on its server, or keeps the one that is there, and leaves its URL in the store, so that it is found from now on.
///
/// A URL that leads to the ledger of before by another way, as another role or a pooler, takes the place of the old one.
///
/// Errors: `ledger_exists` when the project has another one, whose record would be hidden.
fn create_on_server(
    url: &ServerUrl,
    place: &LedgerLocation,
    options: OpenOptions,
    context: &Context,
) -> Result<(Ledger, bool)> {
    let pointer = remote::path(&place.store);
    let file = place.store.join(FILE_NAME);
    let exists =
        |there: String| Diagnosis::new(Code::LedgerExists, format!("This project already has its ledger: {there}."));
    match remote::read(&place.store)? {
        Some(other) if other != *url => {
            let path = shell_word(&pointer.display().to_string());
            require_same_ledger(url, &other, &place.store, options, &path)?;
        }
        None if file.exists() => {
            return Err(exists(file.display().to_string()).hint("use that one; to use the other one beside it: IC_DB"));
        }
        _ => {}
    }
    let server = Server::new(url, options)?;
    let created = schema::create(&server, context)?;
    // A crash from here on leaves a ledger without a pointer: the next `init` with this URL finds it and keeps it.
    make_store(&place.store)?;
    // After the ledger was made: a pointer that leads to no ledger would make every later call fail.
    faults::statement("-- pointing to the server");
    write_private(&pointer, format!("{url}\n").as_bytes())?;
    let ledger = Ledger::on_server(url, &place.store, options)?;
    // Fails for a ledger of an older schema: it is not used before it is migrated.
    ledger.identity()?;
    Ok((ledger, created))
}

/// That a URL leads to the ledger that the project has already, by another way. `pointer`: the file that names it, as a shell takes it.
///
/// Errors: `ledger_exists` where it is another one, or it cannot be told; those of asking the new one.
fn require_same_ledger(
    url: &ServerUrl,
    other: &ServerUrl,
    store: &Path,
    options: OpenOptions,
    pointer: &str,
) -> Result<()> {
    // The id is in the ledger itself, and the same by whichever way and role it is reached.
    let id = |url| Ledger::on_server(url, store, options).and_then(|ledger| ledger.identity()).map(|found| found.id);
    let is_same = match id(url) {
        // A ledger that does not exist yet is another one.
        Err(error) if error.code() == Code::NoLedger => Ok(false),
        Err(error) => return Err(error),
        Ok(new) => id(other).map(|old| old == new),
    };
    let exists = |why: &str| {
        Diagnosis::new(Code::LedgerExists, format!("This project already has its ledger: {other}{why}."))
            .detail("db", other.to_string())
    };
    match is_same {
        Ok(true) => Ok(()),
        Ok(false) => Err(exists("")
            .hint(format!("use that one; to begin a new record for this project: rm {pointer}, and init again"))),
        Err(error) => Err(exists(", which does not answer: whether this is the same one cannot be told")
            .hint(format!("if you know that it is the same: rm {pointer}, and init again"))
            .caused_by(error)),
    }
}

/// Brings a ledger on a server to the newest schema; returns the version that it had. A file is migrated when it is opened: `None`.
///
/// Errors: `newer_schema`, `migration_failed`, `no_ledger`, `unreachable`, `busy`.
pub fn migrate_on_server(place: &LedgerLocation, options: OpenOptions) -> Result<Option<i32>> {
    let Some(url) = &place.server else { return Ok(None) };
    schema::migrate(&Server::new(url, options)?).map(Some)
}

/// Makes the directory of a store, if it is not there.
pub fn make_store(store: &Path) -> Result<()> {
    if store.is_dir() {
        return Ok(());
    }
    private::directories(store).while_doing(|| format!("creating {}", store.display()))?;
    if store.file_name().is_some_and(|name| name == ".ic") {
        // In a repository made here later, `git add` must not add the ledger.
        write_private(&store.join(".gitignore"), b"*\n")?;
    }
    Ok(())
}

fn same_file(a: &Path, b: &Path) -> bool {
    match (fs::canonicalize(a), fs::canonicalize(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}

/// Writes a small file of mode 0600, whole or not at all.
fn write_private(path: &Path, content: &[u8]) -> Result<()> {
    // Other processes may write the same file: each has a temporary file of its own, and all write the same content.
    let temporary = sibling(path, &format!(".{}.new", std::process::id()));
    // A file of this name was left by a process of the same number, or is a link that another user put there to be written through.
    let cleared = match fs::remove_file(&temporary) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    };
    let made = cleared.and_then(|()| private::create_new(&temporary));
    // Synced before it gets its name: after a loss of power the name leads to the whole content, or to nothing.
    made.and_then(|mut file| file.write_all(content).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&temporary, path))
        .while_doing(|| format!("writing {}", path.display()))
}
