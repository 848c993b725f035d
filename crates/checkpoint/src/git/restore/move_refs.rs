//! Branches and HEAD.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use ic_base::Result;

use super::super::program::Git;
use super::super::reflog::REFLOG;
use super::super::state::GitState;
use super::change::{GitRestorePlan, Moved, busy};

/// The moves that are still to be made. Errors: `git_busy` if a branch is where it neither was nor goes.
pub(super) fn pending<'p>(git: &Git<'_>, plan: &'p GitRestorePlan) -> Result<Vec<&'p Moved>> {
    if plan.refs.is_empty() {
        return Ok(Vec::new());
    }
    let list = ["for-each-ref", "--format=%(objectname) %(refname)", "refs/heads"].map(OsStr::new);
    let others = plan.refs.iter().map(|moved| OsStr::from_bytes(&moved.name));
    let text = git.run(&list.into_iter().chain(others).collect::<Vec<_>>())?;
    let at: BTreeMap<&[u8], &str> = text
        .split(|b| *b == b'\n')
        .filter_map(|line| {
            let space = line.iter().position(|b| *b == b' ')?;
            Some((&line[space + 1..], std::str::from_utf8(&line[..space]).ok()?))
        })
        .collect();
    let mut pending = Vec::new();
    for moved in &plan.refs {
        let found = at.get(&moved.name[..]).copied();
        // A restore that was interrupted has moved it.
        if found == moved.to.as_deref() {
            continue;
        }
        if found != moved.from.as_deref() {
            let name = String::from_utf8_lossy(&moved.name);
            return Err(busy(&format!("another git command has moved {name}")).detail("ref", name.into_owned()));
        }
        pending.push(moved);
    }
    Ok(pending)
}

/// The refs that keep what is moved or removed, below `prefix`.
pub(super) fn kept<'s>(
    plan: &'s GitRestorePlan,
    target: &GitState,
    current: &'s GitState,
    prefix: &str,
) -> Vec<(Vec<u8>, &'s str)> {
    let mut kept = Vec::new();
    for moved in &plan.refs {
        if let Some(from) = &moved.from {
            let name = moved.name.strip_prefix(b"refs/").unwrap_or(&moved.name);
            kept.push(([prefix.as_bytes(), name].concat(), from.as_str()));
        }
    }
    if plan.head
        && let Some(head) = &current.head
    {
        kept.push((format!("{prefix}HEAD").into_bytes(), head));
    }
    if plan.stash {
        let dropped = current.stash.iter().enumerate().filter(|(_, entry)| !target.stash.contains(entry));
        kept.extend(dropped.map(|(i, entry)| (format!("{prefix}stash/{i}").into_bytes(), &*entry.commit)));
    }
    kept
}

/// Moves branches, each from its old value; refs that keep what goes come first. After an error none has moved, unless `done` has `refs`.
///
/// Git cannot make `a/b` while it removes `a`: such ones are removed ahead of the others, and are gone if the rest fails.
pub(super) fn apply(git: &Git<'_>, refs: &[&Moved], kept: &[(Vec<u8>, &str)], done: &mut Vec<&str>) -> Result<()> {
    // `feat` is to go and `feat/login` to be made: `refs/heads/feat` cannot be a file and a directory.
    let is_in_the_way = |removed: &Moved| {
        removed.to.is_none() && refs.iter().any(|made| made.from.is_none() && are_nested(&made.name, &removed.name))
    };
    let (ahead, rest): (Vec<&Moved>, Vec<&Moved>) = refs.iter().copied().partition(|moved| is_in_the_way(moved));
    let mut commands = Commands::default();
    // They come first in the first transaction: no ref leaves a commit that no other ref keeps.
    for (name, oid) in kept {
        commands.set(name, oid);
    }
    if !ahead.is_empty() {
        for moved in &ahead {
            commands.change(moved);
        }
        // The first transaction checks the rest too, so that the second one does not fail once branches are removed.
        for moved in rest.iter().filter(|moved| moved.from.is_some()) {
            commands.verify(moved);
        }
        commands.run(git)?;
        done.push("refs");
        commands = Commands::default();
    }
    for moved in rest {
        commands.change(moved);
    }
    commands.run(git)?;
    if ahead.is_empty() {
        done.push("refs");
    }
    Ok(())
}

/// Whether one name is a directory of the other.
fn are_nested(a: &[u8], b: &[u8]) -> bool {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    long.strip_prefix(short).is_some_and(|rest| rest.starts_with(b"/"))
}

/// Where the restore puts HEAD.
pub(super) enum GitHead<'s> {
    /// On a ref, by its whole name.
    On(Vec<u8>),
    /// At a commit, from one that it is still at.
    Detached { to: &'s str, from: Option<&'s str> },
}

/// What is left to do about HEAD. Errors: `git_busy` if it is where it neither was nor goes.
pub(super) fn pending_head<'s>(
    git: &Git<'_>,
    target: &'s GitState,
    current: &'s GitState,
) -> Result<Option<GitHead<'s>>> {
    // Both exit with 1 where there is nothing of that kind.
    let symbolic = git.run(&["symbolic-ref", "-q", "HEAD"]).ok();
    let found = symbolic.as_deref().map(|name| name.strip_suffix(b"\n").unwrap_or(name));
    let at = git.run(&["rev-parse", "-q", "--verify", "HEAD"]).ok();
    let at = at.as_deref().and_then(|at| std::str::from_utf8(at).ok()).map(str::trim_end);
    let is_at = |state: &GitState| match (state.head_name(), found) {
        (Some(name), Some(found)) => found == name,
        (None, None) => at == state.head.as_deref(),
        _ => false,
    };
    if is_at(target) {
        return Ok(None);
    }
    if !is_at(current) {
        return Err(busy("another git command has moved HEAD").detail("ref", "HEAD"));
    }
    Ok(match (target.head_name(), &target.head) {
        (Some(name), _) => Some(GitHead::On(name)),
        (None, Some(to)) => {
            // While HEAD is on a branch, its old value is that of the branch, which this restore may just have moved.
            let from = current.head.as_deref().filter(|_| current.head_name().is_none());
            Some(GitHead::Detached { to, from })
        }
        (None, None) => None,
    })
}

impl GitHead<'_> {
    pub(super) fn apply(&self, git: &Git<'_>) -> Result<()> {
        match self {
            Self::On(name) => {
                let arguments = ["symbolic-ref", "-m", REFLOG, "HEAD"].map(OsStr::new);
                git.run(&[&arguments[..], &[OsStr::from_bytes(name)]].concat())
            }
            Self::Detached { to, from } => {
                // Without --no-deref, git would move the branch that HEAD is on.
                let mut arguments = vec!["update-ref", "--no-deref", "-m", REFLOG, "HEAD", to];
                arguments.extend(from);
                git.run(&arguments)
            }
        }?;
        Ok(())
    }
}

/// Input of `git update-ref --stdin -z`.
#[derive(Default)]
struct Commands(Vec<u8>);

impl Commands {
    fn set(&mut self, name: &[u8], to: &str) {
        // Without an old value: a repeated restore finds the ref there already, and sets it again.
        self.command(b"update ", name, &[to, ""]);
    }

    fn change(&mut self, moved: &Moved) {
        match (&moved.from, &moved.to) {
            (Some(from), Some(to)) => self.command(b"update ", &moved.name, &[to, from]),
            (None, Some(to)) => self.command(b"create ", &moved.name, &[to]),
            (Some(from), None) => self.command(b"delete ", &moved.name, &[from]),
            (None, None) => {}
        }
    }

    fn verify(&mut self, moved: &Moved) {
        self.command(b"verify ", &moved.name, &[moved.from.as_deref().unwrap_or("")]);
    }

    fn command(&mut self, verb: &[u8], name: &[u8], values: &[&str]) {
        // `VERB NAME`, NUL, and each value with a NUL after it; an empty old value means that any is right.
        self.0.extend_from_slice(verb);
        self.0.extend_from_slice(name);
        for value in values {
            self.0.push(0);
            self.0.extend_from_slice(value.as_bytes());
        }
        self.0.push(0);
    }

    fn run(&self, git: &Git<'_>) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        git.run_with(&["update-ref", "-m", REFLOG, "--stdin", "-z"], &self.0)?;
        Ok(())
    }
}
