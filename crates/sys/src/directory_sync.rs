//! SQLite syncs the directory of a write-ahead log with the first flush of every process that writes. That makes the name of a new
//! log durable. A log that an earlier process began has a durable name already, so the sync costs time and gains nothing.
//!
//! SQLite lets its system calls be replaced (`xSetSystemCall`), and tolerates that a directory cannot be opened: then it is not
//! synced. So the call that opens the directory fails if the log was begun before. A log is begun if it holds more than its
//! header: SQLite writes the header, syncs file and directory, and writes the first page after that
//! (`sqlite3WalFrames`, with any `synchronous` but OFF). Every other file, a rollback journal above all, is treated as always.

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

use rusqlite::ffi;

/// The length of a log that holds nothing but its header: <https://sqlite.org/fileformat.html#walformat>.
const HEADER: u64 = 32;

/// What SQLite's `openDirectory` is: it opens the directory of a file.
type OpenDirectory = unsafe extern "C" fn(*const c_char, *mut c_int) -> c_int;

/// SQLite's own; `None` where it could not be replaced.
static ORIGINAL: OnceLock<Option<OpenDirectory>> = OnceLock::new();

/// From now on no process syncs the directory of a log that another one began. To be called before a database is opened.
///
/// Where SQLite does not allow the replacement, it syncs as usual.
pub fn once_a_log() {
    ORIGINAL.get_or_init(replace);
}

#[allow(unsafe_code, reason = "system calls of SQLite are replaced by a C function")]
fn replace() -> Option<OpenDirectory> {
    const NAME: &CStr = c"openDirectory";
    // SAFETY: `sqlite3_vfs_find` initialises SQLite and returns its default VFS, which lives as long as the process, or NULL. The
    // methods are of version 3 of the VFS, which is asked for first, and take the name of a call. What is registered under this name
    // has the signature `int (*)(const char *, int *)` in os_unix.c. `ORIGINAL` is set once, and no other code replaces the call.
    unsafe {
        let vfs = ffi::sqlite3_vfs_find(std::ptr::null());
        if vfs.is_null() || (*vfs).iVersion < 3 {
            return None;
        }
        let (get, set) = ((*vfs).xGetSystemCall?, (*vfs).xSetSystemCall?);
        let original = get(vfs, NAME.as_ptr())?;
        let ours: OpenDirectory = open_directory;
        let ours = std::mem::transmute::<OpenDirectory, unsafe extern "C" fn()>(ours);
        if set(vfs, NAME.as_ptr(), Some(ours)) != ffi::SQLITE_OK {
            return None;
        }
        Some(std::mem::transmute::<unsafe extern "C" fn(), OpenDirectory>(original))
    }
}

/// In place of SQLite's: refuses for a log that was begun before.
#[allow(unsafe_code, reason = "SQLite calls it")]
unsafe extern "C" fn open_directory(path: *const c_char, directory: *mut c_int) -> c_int {
    // SAFETY: SQLite gives the name of an open file, and a place for the handle, which it reads only if the answer is SQLITE_OK.
    // Another thread may come here while `replace` still runs: then the original is not known yet, and the directory is not synced
    // by this call; `once_a_log` returns before any connection is opened, so that no file of ours is concerned.
    unsafe {
        let name = OsStr::from_bytes(CStr::from_ptr(path).to_bytes());
        *directory = -1;
        match ORIGINAL.get() {
            Some(Some(original)) if !is_begun_log(Path::new(name)) => original(path, directory),
            _ => ffi::SQLITE_CANTOPEN,
        }
    }
}

fn is_begun_log(path: &Path) -> bool {
    path.as_os_str().as_bytes().ends_with(b"-wal") && std::fs::metadata(path).is_ok_and(|meta| meta.len() > HEADER)
}
