//! The gate: a process that is there, but becomes the command only when it is told to.
//!
//! `sh -s` reads its script from the pipe that is its standard input. The script is one compound command, so that
//! any part of it, written by a parent that died on the way, is a syntax error and runs nothing. It replaces the
//! shell by `env`, which replaces itself by the command:
//!
//! - some shells (dash) drop variables whose names they cannot hold, such as `npm_config_//host/:_authToken` or
//!   bash's exported functions; `env` puts them back. They come through the pipe, not in the shell's arguments,
//!   which every user of the machine can read while the gate is closed;
//! - a process that ended with 125 to 127 while it still was called `env` never became the command, whereas a
//!   command that itself ends with 127 has another name by then.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, PipeWriter, Write, pipe};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};

use ic_base::Result;

use super::ChildCommand;
use ic_dispatch::process::ProcessIdentity;

/// The program that becomes the command, and the name of the process until then.
const ENV: &str = "/usr/bin/env";
const ENV_NAME: &[u8] = b"env";
// By its full path: the PATH of the command may lead to another `sh`.
pub(super) const SHELL: &str = "/bin/sh";

pub(super) type ChildEnvironment = BTreeMap<OsString, OsString>;

/// The environment that the command gets, whole.
pub(super) fn environment(command: &ChildCommand<'_>) -> ChildEnvironment {
    let mut environment: ChildEnvironment = std::env::vars_os().collect();
    for name in &command.removed {
        environment.remove(name);
    }
    environment.extend(command.environment.iter().cloned());
    environment
}

/// A process that waits. If it is dropped closed, nothing has run and no process is left.
pub(super) struct Gate {
    child: Child,
    /// None once it is open.
    opener: Option<PipeWriter>,
    script: Vec<u8>,
}

impl Gate {
    /// Starts the process, in a group of its own; its output and errors go to `output`.
    pub(super) fn close(
        argv: &[OsString],
        directory: &Path,
        environment: &ChildEnvironment,
        output: PipeWriter,
    ) -> io::Result<Self> {
        // Both ends close on exec, so no other child of this process holds the writer open. When this process dies, the
        // shell reads the end of the pipe.
        let (input, opener) = pipe()?;
        let child = std::process::Command::new(SHELL)
            // After `--`, the shell does not take a word that begins with a minus for one of its options.
            .args(["-s", "--"])
            .args(argv)
            .current_dir(directory)
            .env_clear()
            .envs(environment)
            .stdin(input)
            .stdout(Stdio::from(output.try_clone()?))
            .stderr(output)
            // Its own group: it is ended with all that it started, and Ctrl-C at the terminal reaches `ic`
            // alone.
            .process_group(0)
            .spawn()?;
        Ok(Self { child, opener: Some(opener), script: script(environment) })
    }

    /// Who waits behind the gate; none if it was killed.
    pub(super) fn identity(&self) -> Result<Option<ProcessIdentity>> {
        ProcessIdentity::of(self.child.id())
    }

    /// Lets the process become the command.
    pub(super) fn open(&mut self) {
        if let Some(mut opener) = self.opener.take() {
            // A process that was killed since does not read it; its status tells that.
            let _ = opener.write_all(&self.script);
        }
    }

    /// Waits for the end of the command, and collects it.
    pub(super) fn collect(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        if self.opener.is_some() {
            // Killed at the gate it has run nothing, and waited for it leaves no zombie.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Whether a process that ended by itself with this code, under this name, never became the command.
pub(super) fn is_failure(code: i32, name: &[u8]) -> bool {
    // env(1): 125 it failed itself, 126 the program cannot be run, 127 the program was not found.
    (125..=127).contains(&code) && name == ENV_NAME
}

// For a command with one variable that no shell holds:
//
//     { exec /usr/bin/env 'a.b=it'\''s' "$@" </dev/null; }
fn script(environment: &ChildEnvironment) -> Vec<u8> {
    let mut script = format!("{{ exec {ENV}").into_bytes();
    for (name, value) in environment {
        // Other names the shell keeps by itself, and `env` cannot be given one that is empty or has a `=`.
        if !is_shell_name(name) && !name.is_empty() && !name.as_bytes().contains(&b'=') {
            script.push(b' ');
            let mut assignment = name.clone();
            assignment.push("=");
            assignment.push(value);
            push_quoted(&mut script, &assignment);
        }
    }
    // The script was the standard input: the command must not read what is left of it.
    script.extend_from_slice(b" \"$@\" </dev/null; }\n");
    script
}

/// Whether every shell can hold a variable of this name.
fn is_shell_name(name: &OsStr) -> bool {
    let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    name.as_bytes().iter().all(word) && name.as_bytes().first().is_some_and(|b| !b.is_ascii_digit())
}

// Between single quotes a shell changes no byte. Only the quote itself has to be written outside of them.
fn push_quoted(script: &mut Vec<u8>, text: &OsStr) {
    script.push(b'\'');
    for &byte in text.as_bytes() {
        match byte {
            b'\'' => script.extend_from_slice(br"'\''"),
            _ => script.push(byte),
        }
    }
    script.push(b'\'');
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::io::{Write, pipe};
    use std::path::Path;

    use super::{ChildEnvironment, Gate, is_shell_name, script};

    fn touching(directory: &Path) -> (Gate, std::io::PipeReader) {
        let (reader, writer) = pipe().unwrap();
        let argv = ["touch", "ran"].map(OsString::from);
        let environment = std::env::vars_os().collect();
        (Gate::close(&argv, directory, &environment, writer).unwrap(), reader)
    }

    #[test]
    fn nothing_runs_when_the_parent_dies_before_it_opens_the_gate() {
        let directory = tempfile::tempdir().unwrap();
        let (mut gate, _output) = touching(directory.path());
        gate.opener = None;
        gate.collect().unwrap();
        assert!(!directory.path().join("ran").exists());
    }

    #[test]
    fn nothing_runs_when_the_parent_dies_while_it_opens_the_gate() {
        let directory = tempfile::tempdir().unwrap();
        let odd = ChildEnvironment::from([("a.b".into(), "it's\n}\n".into())]);
        for script in [script(&ChildEnvironment::new()), script(&odd)] {
            let whole = script.iter().rposition(|&b| b == b'}').unwrap();
            for length in 0..=whole {
                let (mut gate, _output) = touching(directory.path());
                gate.opener.take().unwrap().write_all(&script[..length]).unwrap();
                gate.collect().unwrap();
                assert!(!directory.path().join("ran").exists(), "{length}");
            }
        }
    }

    #[test]
    fn a_dropped_gate_leaves_no_process() {
        let directory = tempfile::tempdir().unwrap();
        let (gate, _output) = touching(directory.path());
        let identity = gate.identity().unwrap().unwrap();
        drop(gate);
        assert!(!identity.is_alive());
        assert!(!directory.path().join("ran").exists());
    }

    #[test]
    fn names_that_every_shell_holds() {
        assert!(["A", "_", "a1", "_1"].iter().all(|name| is_shell_name(name.as_ref())));
        assert!(!["", "1a", "a.b", "a%%", "ä", "a b", "a="].iter().any(|name| is_shell_name(name.as_ref())));
    }
}
