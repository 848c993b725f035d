//! A project, and what is looked at in it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ic_testkit::{Cli, CliOutcome};

/// Longer than any call here takes, shorter than for ever.
const PATIENCE: Duration = Duration::from_mins(1);

/// A project with a ledger, whose calls know the usual programs.
pub(crate) fn project() -> Cli {
    let cli = bare();
    cli.ok(["init"]);
    cli
}

/// A project without a ledger.
pub(crate) fn bare() -> Cli {
    let path = std::env::var_os("PATH").expect("a PATH");
    Cli::without_ledger(env!("CARGO_BIN_EXE_ic")).with_checkpoints().with_env("PATH", path)
}

/// Runs a call that must end by itself.
pub(crate) fn ends(cli: &Cli, arguments: &[&str]) -> CliOutcome {
    ends_with_input(cli, arguments, Stdio::null())
}

/// Runs a call with this input, which must end by itself.
pub(crate) fn ends_with_input(cli: &Cli, arguments: &[&str], input: Stdio) -> CliOutcome {
    let mut command = cli.command(arguments);
    let mut child = command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start ic");
    let begin = Instant::now();
    while child.try_wait().expect("its state").is_none() {
        if begin.elapsed() > PATIENCE {
            child.kill().expect("kill");
            panic!("{arguments:?} did not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    CliOutcome::from(&child.wait_with_output().expect("its output"))
}

pub(crate) fn pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().expect("run mkfifo");
    assert!(made.success());
}

/// Everything below a directory.
pub(crate) fn below(directory: &Path) -> Vec<PathBuf> {
    let mut all = vec![directory.to_owned()];
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let entry = entry.expect("an entry");
        if entry.file_type().expect("its type").is_dir() {
            all.extend(below(&entry.path()));
        } else {
            all.push(entry.path());
        }
    }
    all
}

/// The files below a directory in which these bytes stand.
pub(crate) fn holding(directory: &Path, bytes: &str) -> Vec<PathBuf> {
    let holds = |path: &PathBuf| {
        let content = std::fs::read(path).expect("a file");
        content.windows(bytes.len()).any(|window| window == bytes.as_bytes())
    };
    below(directory).into_iter().filter(|path| path.is_file() && holds(path)).collect()
}

/// Whether this process may give files to others.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Gives a file to another user.
pub(crate) fn give_away(path: impl AsRef<OsStr>) {
    let given = Command::new("chown").arg("-h").arg("12345").arg(path).status().expect("run chown");
    assert!(given.success());
}
