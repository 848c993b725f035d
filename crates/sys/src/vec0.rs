//! The module `vec0` and the functions of [sqlite-vec](https://github.com/asg017/sqlite-vec), for one connection.
//!
//! SQLite's extensions are C functions that receive a connection, so the call to register one is unsafe. The library is compiled in, so that nothing which a configuration names is ever loaded as code. It costs 100 KB and about
//! ten microseconds for each connection.

use std::ffi::{CStr, c_char, c_int};
use std::ptr;

use rusqlite::{Connection, ffi};
// The function that is called is in the library that this crate builds and links; that library's own declaration has no parameters.
use sqlite_vec as _;

/// Registers the module and its functions with `connection`. Nothing is written, and other connections are not affected.
///
/// Errors: SQLite's, with its message.
pub fn register(connection: &Connection) -> rusqlite::Result<()> {
    let (code, message) = initialise(connection);
    if code == ffi::SQLITE_OK { Ok(()) } else { Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), message)) }
}

#[allow(unsafe_code, reason = "an extension of SQLite is a C function")]
fn initialise(connection: &Connection) -> (c_int, Option<String>) {
    // SAFETY: this is the signature of every SQLite extension's entry point (https://sqlite.org/loadext.html), and the
    // definition in sqlite-vec.c has it: `int sqlite3_vec_init(sqlite3 *, char **, const sqlite3_api_routines *)`.
    unsafe extern "C" {
        fn sqlite3_vec_init(
            db: *mut ffi::sqlite3,
            message: *mut *mut c_char,
            routines: *const ffi::sqlite3_api_routines,
        ) -> c_int;
    }
    let mut message: *mut c_char = ptr::null_mut();
    // SAFETY: the handle is open as long as `connection` is borrowed, which is of one thread alone. The library is compiled with
    // SQLITE_CORE and so uses no routines. The message is NULL or a text from sqlite3_mprintf, which is freed here once.
    unsafe {
        let code = sqlite3_vec_init(connection.handle(), &raw mut message, ptr::null());
        let text = (!message.is_null()).then(|| CStr::from_ptr(message).to_string_lossy().into_owned());
        // NULL where there is no message: then SQLite frees nothing.
        ffi::sqlite3_free(message.cast());
        (code, text)
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    #[test]
    fn vectors_are_found_by_their_distance() {
        let db = Connection::open_in_memory().expect("a database");
        assert!(db.execute_batch("CREATE VIRTUAL TABLE v USING vec0(e float[2])").is_err());
        for _ in 0..2 {
            super::register(&db).expect("register");
        }
        db.execute_batch("CREATE VIRTUAL TABLE v USING vec0(e float[2]); INSERT INTO v(rowid, e) VALUES (1, '[1, 0]'), (2, '[0, 1]')")
            .expect("a table of vectors");
        let nearest: i64 = db
            .query_row("SELECT rowid FROM v WHERE e MATCH '[0.1, 0.9]' AND k = 1", [], |row| row.get(0))
            .expect("the nearest");
        assert_eq!(nearest, 2);
    }
}
