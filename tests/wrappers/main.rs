//! The shell library's own tests, run with the real binary.

use std::process::Command;

#[test]
fn the_shell_library_passes_its_tests() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/wrappers/run.sh");
    let output = Command::new("bash").arg(script).env("IC_BIN", env!("CARGO_BIN_EXE_ic")).output().expect("bash runs");
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
