//! Warnings on standard error as JSON, and JSON that is safe on a terminal.

use std::io::{self, Write};

use ic_base::display::escape_controls;
use serde::Serialize;

#[derive(Serialize)]
struct WarningJson<'a> {
    warning: WarningBody<'a>,
}

#[derive(Serialize)]
struct WarningBody<'a> {
    code: &'a str,
    message: &'a str,
}

/// Prints a warning as one line of JSON. With standard error closed it is lost, and the call continues.
pub(super) fn print_warning(code: &str, message: &str) {
    let line = WarningJson { warning: WarningBody { code, message } };
    // Two texts can always be written as JSON.
    let mut line = serde_json::to_vec(&line).unwrap_or_default();
    escape_controls(&mut line);
    let _ = writeln!(io::stderr().lock(), "{}", String::from_utf8_lossy(&line));
}
