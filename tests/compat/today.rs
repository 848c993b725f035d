//! Stores that this program makes: for the harness itself, and for a release to keep.

use std::path::Path;
use std::process::Command;

use crate::maker::{Moments, make};
use crate::stores::directory;

/// Runs every other test of this program over the stores in a directory, and returns what it printed.
fn run_harness(stores: &Path) -> (bool, String) {
    let mut tests = Command::new(std::env::current_exe().expect("this program"));
    tests.args(["--skip", "today::"]).env("IC_TEST_STORES", stores).env_remove("IC_TEST_OLD");
    let outcome = tests.output().expect("run the tests");
    (outcome.status.success(), String::from_utf8_lossy(&outcome.stdout).into_owned())
}

#[test]
fn harness_passes_on_stores_of_today_and_fails_on_damaged_ones() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let archive = directory.path().join("today/stores.tar.zst");
    make(&archive, Moments::Few);
    let (passed, printed) = run_harness(directory.path());
    assert!(passed && !printed.contains(" 0 passed"), "{printed}");
    // Without its stores no test may pass unseen.
    std::fs::write(&archive, "no archive").expect("damage the archive");
    let (passed, printed) = run_harness(directory.path());
    assert!(!passed && printed.contains("a_rollback_is_resumed ... FAILED"), "{printed}");
}

/// For a release: `IC_KEEP_STORES=VERSION` names the directory of `tests/compat/stores` that it adds.
#[test]
fn keep_stores_of_a_release() {
    let Some(version) = std::env::var_os("IC_KEEP_STORES") else { return };
    let archive = directory().join(version).join("stores.tar.zst");
    assert!(!archive.exists(), "{} is kept already; it is never made again", archive.display());
    make(&archive, Moments::All);
}
