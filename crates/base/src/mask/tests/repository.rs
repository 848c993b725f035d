//! The text of this repository, in which there are no secrets.

use std::path::Path;
use std::process::Command;

use super::super::mask;

/// At most one in this number of lines may be masked wrongly.
const LINES_A_MISTAKE: usize = 10_000;

/// Tests and their fixtures have what looks like secrets, on purpose.
fn is_about_secrets(path: &str) -> bool {
    ["tests/", "/tests/", "/tests.rs", "fixtures", "/mask/", "fuzz/seeds"].iter().any(|part| path.contains(part))
        || path.starts_with("tests/")
}

#[test]
fn ordinary_text_is_seldom_taken_for_a_secret() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(&root).output().expect("git");
    let listed = String::from_utf8(listed.stdout).expect("paths");
    let (mut lines, mut taken) = (0, Vec::new());
    for path in listed.split('\0').filter(|path| !path.is_empty() && !is_about_secrets(path)) {
        let Ok(text) = std::fs::read_to_string(root.join(path)) else { continue };
        for line in text.lines() {
            lines += 1;
            if mask(line) != line {
                taken.push(format!("{path}: {}", mask(line)));
            }
        }
    }
    assert!(lines > 100_000, "{lines} lines");
    assert!(taken.len() * LINES_A_MISTAKE <= lines, "{} of {lines}:\n{}", taken.len(), taken.join("\n"));
}
