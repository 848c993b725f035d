//! Calling the `git` program so that it changes nothing by the way and says the same everywhere.

use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use ic_base::{Code, Diagnose, Diagnosis, Result};

/// The `git` program, in one work tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Git<'r> {
    pub(crate) root: &'r Path,
    /// Another index than the work tree's own.
    pub(crate) index: Option<&'r Path>,
}

impl<'r> Git<'r> {
    pub(crate) fn new(root: &'r Path) -> Self {
        Self { root, index: None }
    }

    /// Runs a command and returns what it prints; `None` if there is no `git` on PATH.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Result<Option<Vec<u8>>> {
        match self.command(arguments).output() {
            Ok(output) if output.status.success() => Ok(Some(output.stdout)),
            Ok(output) => Err(failed(arguments, &output.stderr)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e).while_doing(|| format!("running git {}", arguments.join(" "))),
        }
    }

    /// Runs a command and returns what it prints. Errors: `git_failed` with what it said.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<Vec<u8>> {
        self.run_with(arguments, &[])
    }

    /// Runs a command with this standard input.
    pub(crate) fn run_with(&self, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>> {
        let doing = || format!("running git {}", arguments.join(" "));
        let mut child = self.start(arguments)?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (output, error) = std::thread::scope(|scope| {
            scope.spawn(move || {
                // A command that reads no more of it says why by its status.
                let _ = stdin.map(|mut stdin| stdin.write_all(input));
            });
            let error = scope.spawn(move || read(stderr));
            (read(stdout), error.join().unwrap_or_default())
        });
        let status = child.wait().while_doing(doing)?;
        if status.success() { Ok(output) } else { Err(failed(arguments, &error)) }
    }

    /// Starts a command whose output is read by the caller.
    pub(crate) fn start(&self, arguments: &[&str]) -> Result<Child> {
        self.command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .while_doing(|| format!("running git {}", arguments.join(" ")))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        // Somebody who calls from a hook of git's would make it work elsewhere.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_"))
        {
            command.env_remove(name);
        }
        if let Some(index) = self.index {
            command.env("GIT_INDEX_FILE", index);
        }
        command
            .envs([("GIT_OPTIONAL_LOCKS", "0"), ("GIT_TERMINAL_PROMPT", "0"), ("LC_ALL", "C")])
            .arg("-C")
            .arg(self.root)
            .args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"])
            .args(["-c", "gc.auto=0", "-c", "maintenance.auto=false"])
            .args(arguments)
            .stdin(Stdio::null());
        command
    }
}

fn read(stream: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What could not be read is missed by whoever parses it.
    let _ = stream.map(|mut stream| stream.read_to_end(&mut bytes));
    bytes
}

/// What a failed command said, as an error.
pub(crate) fn failed(arguments: &[&str], stderr: &[u8]) -> Diagnosis {
    let said = String::from_utf8_lossy(stderr);
    let said =
        said.lines().next().unwrap_or("it said nothing").trim_start_matches("fatal: ").trim_end_matches('.');
    let is_lock = said.contains(".lock") || said.contains("cannot lock ref");
    let code = if is_lock { Code::GitBusy } else { Code::GitFailed };
    Diagnosis::new(code, format!("git {}: {said}.", arguments.first().unwrap_or(&"")))
        .hint("the files alone can be restored: --strategy files-only")
        .detail("command", arguments.join(" "))
}
