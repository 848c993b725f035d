mod ending;
mod output;
mod start;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use super::{ChildCommand, ChildExit, CommandOutcome, Program, run};
use ic_dispatch::process::ProcessIdentity;

/// A directory to run in, and what was seen of the last run.
struct Stage {
    directory: tempfile::TempDir,
    log: PathBuf,
    live: Mutex<Vec<u8>>,
    born: Mutex<Option<ProcessIdentity>>,
}

impl Stage {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        Self { directory, log, live: Mutex::new(Vec::new()), born: Mutex::new(None) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command<'a>(&'a self, program: &'a Program, log: &'a Path) -> ChildCommand<'a> {
        ChildCommand {
            program,
            directory: self.directory.path(),
            environment: Vec::new(),
            removed: Vec::new(),
            timeout: Some(Duration::from_mins(1)),
            grace: Duration::from_millis(300),
            log,
            longest_log: 1 << 20,
        }
    }

    fn run<'a>(&'a self, program: &'a Program, change: impl FnOnce(&mut ChildCommand<'a>)) -> CommandOutcome {
        self.run_until(program, change, &|| false)
    }

    fn run_until<'a>(
        &'a self,
        program: &'a Program,
        change: impl FnOnce(&mut ChildCommand<'a>),
        cancelled: &(dyn Fn() -> bool + Sync),
    ) -> CommandOutcome {
        let mut command = self.command(program, &self.log);
        change(&mut command);
        *self.born.lock().unwrap() = None;
        self.live.lock().unwrap().clear();
        let outcome = run(
            &command,
            &mut |identity| {
                *self.born.lock().unwrap() = Some(identity.clone());
                Ok(())
            },
            &mut |bytes| self.live.lock().unwrap().extend_from_slice(bytes),
            cancelled,
        )
        .unwrap();
        if let Some(identity) = self.born.lock().unwrap().as_ref() {
            assert!(!identity.is_alive());
            assert_eq!(ic_dispatch::process::program_name(identity.pid), b"", "no zombie is left");
        }
        outcome
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }
}

fn argv(words: &[&str]) -> Program {
    Program::Argv(words.iter().map(OsString::from).collect())
}

fn shell(text: &str) -> Program {
    Program::Shell(text.to_owned())
}

/// What a command that printed a pid left running.
fn left_running(outcome: &CommandOutcome) -> ProcessIdentity {
    let printed = String::from_utf8_lossy(&outcome.tail);
    let pid = printed.lines().next().unwrap().parse().unwrap();
    ProcessIdentity::of(pid).unwrap().expect("it was left alone")
}
