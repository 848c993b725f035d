//! A git that is killed in the midst of what it does, together with the program that called it.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

/// A search path on which git, called with arguments that hold `at`, runs `leaves` in the shell and kills its caller.
///
/// # Panics
/// If it cannot be made.
pub fn deadly_git(home: &Path, at: &str, leaves: &str) -> OsString {
    let usual = std::env::var_os("PATH").unwrap_or_default();
    let bin = home.join("deadly");
    std::fs::create_dir_all(&bin).expect("a directory");
    let git = bin.join("git");
    let script = format!(
        "#!/bin/sh\nPATH='{}'\ncase \" $* \" in *' {at} '*) {leaves}\nkill -9 $PPID; exit 137;; esac\nexec git \"$@\"\n",
        usual.display()
    );
    std::fs::write(&git, script).expect("a program");
    std::fs::set_permissions(&git, std::fs::Permissions::from_mode(0o755)).expect("it runs");
    let mut path = bin.into_os_string();
    path.push(":");
    path.push(usual);
    path
}

/// Runs a call with such a git, which must kill it.
///
/// # Panics
/// If it is not killed.
pub fn dies_with_its_git(command: &mut Command, home: &Path, at: &str, leaves: &str) {
    let output = command.env("PATH", deadly_git(home, at, leaves)).output().expect("start ic");
    assert_eq!(output.status.signal(), Some(9), "{at}: {output:?}");
}
