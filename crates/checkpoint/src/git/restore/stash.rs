//! The stash: a ref whose reflog is its list of entries.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use ic_base::{Diagnosis, Result};

use super::super::program::Git;
use super::super::record;
use super::super::state::Stash;
use super::change::busy;

/// What is left to do about the stash: the entries that both have at its old end stay, with their times.
pub(super) struct Pending<'s> {
    /// The newest ones, which go.
    dropped: Vec<String>,
    /// Those that come, newest first.
    stored: &'s [Stash],
    /// The newest of those that stay.
    below: Option<String>,
    /// What the ref names though its list is empty: its reflog has expired.
    pub(super) unlisted: Option<String>,
}

/// Errors: `git_busy` if the stash is neither what it was, nor what a restore of it leaves on its way.
pub(super) fn pending<'s>(git: &Git<'_>, target: &'s [Stash], current: &[Stash]) -> Result<Pending<'s>> {
    let top = top(git)?;
    let found = if top.is_empty() { Vec::new() } else { record::stash(git)? };
    //   current   c2  c1 │ k1  k0      newest first; what both have at the old end stays
    //   found         c1 │ k1  k0      a killed restore had dropped c2: still on the way from `current`
    //   found     t1     │ k1  k0      it had stored t1: on the way to `target`
    //   target    t2  t1 │ k1  k0
    let kept = shared(target, current);
    let is_on_the_way =
        |whole: &[Stash]| found.len() >= kept && found.len() <= whole.len() && shared(&found, whole) == found.len();
    if !is_on_the_way(current) && !is_on_the_way(target) {
        return Err(changed());
    }
    let stays = shared(&found, target);
    let is_unlisted = found.is_empty() && !top.is_empty();
    Ok(Pending {
        unlisted: is_unlisted.then_some(top),
        dropped: found[..found.len() - stays].iter().map(|entry| entry.commit.clone()).collect(),
        stored: &target[..target.len() - stays],
        below: found.get(found.len() - stays).map(|entry| entry.commit.clone()),
    })
}

/// The commit of the newest entry; empty if there is none.
fn top(git: &Git<'_>) -> Result<String> {
    let top = git.run(&["for-each-ref", "--format=%(objectname)", "refs/stash"])?;
    Ok(String::from_utf8_lossy(&top).trim_end().to_owned())
}

fn changed() -> Diagnosis {
    busy("another git command has changed the stash").detail("ref", "refs/stash")
}

/// How many entries two lists share, from the oldest on.
fn shared(a: &[Stash], b: &[Stash]) -> usize {
    a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

impl Pending<'_> {
    pub(super) fn apply(&self, git: &Git<'_>) -> Result<()> {
        // Each drop moves the next entry to the top. Git drops whatever is there, and another process may have put its own on top. This
        // check leaves such a process a moment, and not the time since the plan.
        for commit in &self.dropped {
            if top(git)? != *commit {
                return Err(changed());
            }
            git.run(&["stash", "drop", "-q", "stash@{0}"])?;
        }
        if let Some(unlisted) = &self.unlisted {
            // A ref that is there already with this value gets no entry in its list.
            git.run(&["update-ref", "-d", "refs/stash", unlisted])?;
        }
        let mut below = self.below.as_deref();
        for Stash { commit, message } in self.stored.iter().rev() {
            // `git stash store` asks more of a commit than some versions of git once asked when they made it.
            let mut arguments = vec![OsStr::new("update-ref"), OsStr::new("--create-reflog")];
            // Git refuses an empty message.
            if !message.0.is_empty() {
                arguments.extend([OsStr::new("-m"), OsStr::from_bytes(&message.0)]);
            }
            arguments.extend(["refs/stash", commit].map(OsStr::new));
            // With the old value, git refuses if another process was faster.
            arguments.extend(below.map(OsStr::new));
            git.run(&arguments)?;
            below = Some(commit);
        }
        Ok(())
    }
}
