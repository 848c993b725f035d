//! The changes of git's state by a restore.

use ic_checkpoint::git::Moved;
use ic_worktree::GitRestore;

use crate::text::{plain, style, styled};

shape! {
    /// The changes of git's state by a restore, planned or done.
    pub(crate) struct GitRestoreJson from git: &GitRestore where
        moved = git.plan.refs.iter().map(MovedJson::from);
    {
        branch: Option<String> =
            git.target.branch.as_ref().map(|name| String::from_utf8_lossy(&name.0).into_owned()),
        head: Option<String> = git.target.head.clone(),
        moved: Vec<MovedJson> = moved.collect(),
        /// Whether HEAD moves to another branch, or to a commit without one.
        moves_head: bool = git.plan.head,
        /// Whether the index changes.
        moves_index: bool = git.plan.index,
        /// Whether the stash changes.
        moves_stash: bool = git.plan.stash,
        /// The prefix of the refs that keep the former tips; null if none is kept.
        kept_below: Option<String> = git.kept_below.clone(),
    }

    /// A branch that is made, moved or removed.
    struct MovedJson from moved: &Moved {
        r#ref: String = String::from_utf8_lossy(&moved.name).into_owned(),
        /// Its commit before; null if it is created.
        from_sha: Option<String> = moved.from.clone(),
        /// Its commit afterwards; null if it is removed.
        to_sha: Option<String> = moved.to.clone(),
    }
}

pub(crate) fn git_lines(restore: &GitRestore) -> String {
    let mut out = String::new();
    for (what, how) in restore.moves() {
        out += &format!("  {}  {}\n", styled(style::WARN, &format!("{:<7}", plain(&what))), plain(&how));
    }
    out + &kept(restore)
}

/// A line about the refs that keep the former tips; empty if none is kept.
pub(crate) fn kept(git: &GitRestore) -> String {
    let what = match (git.keeps_branches(), git.keeps_stash()) {
        (true, true) => "the old branches and the stash are kept",
        (true, false) => "the old branches are kept",
        (false, _) => "the old stash is kept",
    };
    let kept = git.kept_below.as_deref();
    kept.map_or_else(String::new, |below| format!("  {what}: git for-each-ref {}\n", plain(below)))
}
