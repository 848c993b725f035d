//! Calling the `git` program: every call of the project goes through here, so that it changes nothing by the way, runs
//! nothing that the repository names ([`super::safe_settings`]), and says the same everywhere.

use std::ffi::OsStr;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, OnceLock};

use ic_base::{Code, Result};

use super::deadline;
use super::error::{GitError, GitResult};
use super::safe_settings::{self, Filters, NamedSettings, SettingOverride};
use super::settings;
use crate::limit::Limit;

/// The `git` program, in one work tree.
#[derive(Debug, Clone)]
pub(crate) struct Git<'r> {
    pub(crate) root: &'r Path,
    /// Another index than the work tree's own.
    pub(crate) index: Option<&'r Path>,
    /// Another place for objects, which names the repository's own as its alternate.
    pub(crate) objects: Option<&'r Path>,
    /// The repository, where `root` is a work tree that it does not know.
    pub(crate) repository: Option<&'r Path>,
    pub(crate) filters: Filters,
    /// What is switched off by its name; known before the first command that needs it.
    pub(crate) named: Arc<OnceLock<NamedSettings>>,
}

impl<'r> Git<'r> {
    /// Git that looks: it runs no filter.
    pub(crate) fn new(root: &'r Path) -> Self {
        Self::with(root, Filters::Nobodys)
    }

    /// Git that may run these filters.
    pub(crate) fn with(root: &'r Path, filters: Filters) -> Self {
        Self { root, index: None, objects: None, repository: None, filters, named: Arc::default() }
    }

    /// Whether filters were switched off, of which git would run some.
    pub(crate) fn is_without_filters(&self) -> GitResult<bool> {
        let is_filter = |(key, _): &SettingOverride| key.as_encoded_bytes().starts_with(b"filter.");
        Ok(self.named()?.overrides.iter().any(is_filter))
    }

    /// Whether a setting lets git's answers depend on more than its files and the content of the tree.
    pub(super) fn is_unusual(&self) -> GitResult<bool> {
        Ok(self.named()?.is_unusual)
    }

    /// Whether a setting says how refs are kept.
    pub(super) fn names_ref_storage(&self) -> GitResult<bool> {
        Ok(self.named()?.names_ref_storage)
    }

    /// Runs a command and returns what it prints; `None` if there is no `git` on PATH.
    pub(crate) fn ask(&self, arguments: &[&str]) -> GitResult<Option<Vec<u8>>> {
        let limit = deadline::limit();
        let mut command = self.command(arguments)?;
        let child = grouped(&mut command, limit.as_ref()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = match child {
            Ok(child) => child,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(GitError::not_run(arguments)(e)),
        };
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let ((found, said), over) = deadline::watching(&child, limit.as_ref(), || {
            std::thread::scope(|scope| {
                // Read at the same time: with a full pipe, git would wait for ever.
                let said = scope.spawn(move || read(stderr));
                (read(stdout), said.join().unwrap_or_default())
            })
        });
        // This comes after the watch has ended: until a child is waited for, no other process can get its number.
        let status = child.wait().map_err(GitError::not_run(arguments))?;
        match over {
            Some(over) => Err(over.into()),
            None if status.success() => Ok(Some(found)),
            None => Err(GitError::ended(arguments, status, &said)),
        }
    }

    /// Runs a command and returns what it prints. Errors: `git_failed` with what it said.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, arguments: &[A]) -> GitResult<Vec<u8>> {
        self.run_with(arguments, &[])
    }

    /// Runs a command with this standard input.
    pub(crate) fn run_with<A: AsRef<OsStr>>(&self, arguments: &[A], input: &[u8]) -> GitResult<Vec<u8>> {
        let write = move |mut stdin: ChildStdin| {
            // A command that reads no more of it says why by its status.
            let _ = stdin.write_all(input);
        };
        self.converse(arguments, write, |stdout| Ok(read(Some(stdout))))
    }

    /// Runs a command whose input is written by another thread while `take` reads its output.
    pub(crate) fn converse<A: AsRef<OsStr>, T>(
        &self,
        arguments: &[A],
        give: impl FnOnce(ChildStdin) + Send,
        take: impl FnOnce(ChildStdout) -> Result<T>,
    ) -> GitResult<T> {
        let limit = deadline::limit();
        let mut child = self.start(arguments, limit.as_ref())?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let ((taken, said), over) = deadline::watching(&child, limit.as_ref(), || {
            std::thread::scope(|scope| {
                scope.spawn(move || stdin.map(give));
                let said = scope.spawn(move || read(stderr));
                (stdout.map(take), said.join().unwrap_or_default())
            })
        });
        let status = child.wait().map_err(GitError::not_run(arguments))?;
        if let Some(over) = over {
            return Err(over.into());
        }
        if !status.success() {
            // First the error of the reader: git fails, too, when its output is not read to the end.
            taken.transpose()?;
            return Err(GitError::ended(arguments, status, &said));
        }
        let unread = || GitError::said(arguments, b"its output cannot be read");
        Ok(taken.ok_or_else(unread)??)
    }

    /// Runs a command whose input is written by the caller.
    pub(crate) fn feed(&self, arguments: &[&str], give: impl FnOnce(&mut dyn Write) -> Result<()>) -> GitResult<()> {
        let limit = deadline::limit();
        let mut child = self.start(arguments, limit.as_ref())?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let ((given, said), over) = deadline::watching(&child, limit.as_ref(), || {
            std::thread::scope(|scope| {
                // It is not needed, but has to be read: with a full pipe, git would wait for ever.
                scope.spawn(move || read(stdout));
                let said = scope.spawn(move || read(stderr));
                let given = stdin.map(|mut stdin| give(&mut stdin));
                (given, said.join().unwrap_or_default())
            })
        });
        let status = child.wait().map_err(GitError::not_run(arguments))?;
        if let Some(over) = over {
            return Err(over.into());
        }
        match given {
            // If git closed the pipe, its own error says more than our failed write.
            Some(Err(error)) if status.success() || error.code() != Code::Io => Err(error.into()),
            _ if status.success() => Ok(()),
            _ => Err(GitError::ended(arguments, status, &said)),
        }
    }

    fn start<A: AsRef<OsStr>>(&self, arguments: &[A], limit: Option<&Limit>) -> GitResult<Child> {
        grouped(&mut self.command(arguments)?, limit)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(GitError::not_run(arguments))
    }

    fn command<A: AsRef<OsStr>>(&self, arguments: &[A]) -> GitResult<Command> {
        let mut command = self.call();
        if safe_settings::runs_named(arguments) {
            safe_settings::apply(&mut command, &self.named()?.overrides);
        }
        command.args(arguments);
        Ok(command)
    }

    /// The program in its place, with what is switched off for every command.
    fn call(&self) -> Command {
        let mut command = safe_settings::command(self.filters);
        // Overrides `core.worktree`: the repository must not choose which directory is read and written.
        command.env("GIT_WORK_TREE", self.root);
        let places =
            [("GIT_DIR", self.repository), ("GIT_INDEX_FILE", self.index), ("GIT_OBJECT_DIRECTORY", self.objects)];
        command.envs(places.into_iter().filter_map(|(name, place)| Some((name, place?))));
        command.arg("-C").arg(self.root).stdin(Stdio::null());
        command
    }

    fn named(&self) -> GitResult<&NamedSettings> {
        if let Some(named) = self.named.get() {
            return Ok(named);
        }
        // `call` is used here, because `command` asks for these names itself, without an end. The list itself runs no filter.
        let listed = settings::names(self.root, || self.call().args(settings::LIST).output())?;
        let named = listed.map_or_else(NamedSettings::default, |listed| safe_settings::named(&listed, self.filters));
        // Another thread may have listed the same names first: its list is used.
        Ok(self.named.get_or_init(|| named))
    }
}

/// Where it may be ended early, it is the leader of its group, so that its own children end with it.
fn grouped<'c>(command: &'c mut Command, limit: Option<&Limit>) -> &'c mut Command {
    if limit.is_some() { command.process_group(0) } else { command }
}

fn read(stream: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    // An output that cannot be read to its end is too short, and the parser of it fails.
    let _ = stream.map(|mut stream| stream.read_to_end(&mut bytes));
    bytes
}
