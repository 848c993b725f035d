//! What `ic dispatch record --stdin` reads: written as git or a program writes it, a report is read the same.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ic_base::Code;
use ic_dispatch::report::{DispatchReport, parse};
use serde_json::json;

/// Reads it.
pub fn report(bytes: &[u8]) {
    match parse(bytes) {
        Ok(report) => {
            if let Some(lines) = as_json_lines(&report) {
                assert_eq!(parse(lines.as_bytes()).expect("our own lines"), report);
            }
            // A log says nothing of files without a commit, and short ids are not the log's.
            if report.files.is_empty() && report.commits.iter().all(|c| matches!(c.sha.len(), 40 | 64)) {
                assert_eq!(parse(&as_git_log(&report)).expect("git's own log"), report);
            }
        }
        Err(error) => {
            assert_eq!(error.code(), Code::InvalidValue);
            assert!(error.message().len() < 64 * 1024 + 2 * bytes.len().min(4096), "{}", error.message().len());
        }
    }
}

fn as_json_lines(report: &DispatchReport) -> Option<String> {
    let mut lines = String::new();
    let names = |files: &[std::path::PathBuf]| {
        files.iter().map(|file| file.to_str().map(str::to_owned)).collect::<Option<Vec<String>>>()
    };
    for commit in &report.commits {
        lines += &format!("{}\n", json!({"commit": commit.sha, "files": names(&commit.files)?}));
    }
    if !report.files.is_empty() {
        lines += &format!("{}\n", json!({"files": names(&report.files)?}));
    }
    Some(lines)
}

/// As `git log --name-only --format=%H%x09` prints it, newest first.
fn as_git_log(report: &DispatchReport) -> Vec<u8> {
    let mut log = Vec::new();
    for commit in report.commits.iter().rev() {
        log.extend_from_slice(format!("{}\t\n\n", commit.sha).as_bytes());
        for file in &commit.files {
            quote(file, &mut log);
            log.push(b'\n');
        }
    }
    log
}

/// As git's `quote_c_style` does.
fn quote(file: &Path, log: &mut Vec<u8>) {
    let bytes = file.as_os_str().as_bytes();
    let is_plain = |byte: &u8| (0x20..0x7f).contains(byte) && !matches!(byte, b'"' | b'\\');
    if bytes.iter().all(is_plain) {
        return log.extend_from_slice(bytes);
    }
    log.push(b'"');
    for byte in bytes {
        match byte {
            b'"' | b'\\' => log.extend_from_slice(&[b'\\', *byte]),
            b'\n' => log.extend_from_slice(b"\\n"),
            b'\t' => log.extend_from_slice(b"\\t"),
            byte if is_plain(byte) => log.push(*byte),
            byte => log.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
        }
    }
    log.push(b'"');
}
