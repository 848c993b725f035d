//! A change of a path that git took out of the tree.

use ic_checkpoint::attributes::Attributes;
use ic_checkpoint::diff::{DiffState, Difference};
use ic_checkpoint::objects::hash_of;
use ic_checkpoint::restore::reverse::{has_change, merged};
use ic_ledger::path_from_bytes;
use ic_worktree::Workspace;

/// What git has at a path.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct PathVersion {
    /// The content; of a symbolic link, where it points.
    pub(super) text: Vec<u8>,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File { is_executable: bool },
    Link,
}

/// A change that git took out of the tree; `None`: nothing stands there.
#[derive(Default)]
pub(super) struct Change {
    pub(super) from: Option<PathVersion>,
    pub(super) to: Option<PathVersion>,
    /// Whether what is checked out has its commit by now, or the stash has its entry no more.
    pub(super) is_returned: bool,
    /// What stood there where its branch began, if other commits of the branch changed it before.
    pub(super) branched: Option<Vec<u8>>,
    /// Whether a person may have made it, and put it onto the stash.
    pub(super) may_be_yours: bool,
    /// What a commit had there when git returned it. No checkpoint may show that.
    pub(super) met: Option<Vec<u8>>,
}

impl Change {
    /// `contents`: by the moves of HEAD, the last one first, what was there before each and after it.
    pub(super) fn find_met(&mut self, contents: &[Option<Vec<u8>>]) {
        let Some([from, to]) = self.texts().map(|texts| texts.map(|version| version.text.as_slice())) else { return };
        let has = |text: &Option<Vec<u8>>| has_change(text.as_deref(), (Some(from), Some(to))) == Some(true);
        // Where no commit brought it, as with `git checkout BRANCH -- FILE`, the commit that is checked out has what was there.
        let mut moves = contents.chunks(2);
        let came = moves.clone().find(|ends| !has(&ends[0]) && has(&ends[1])).or_else(|| moves.next());
        // A squash and a pick have another commit.
        let (met, is_there) = (came.map(|ends| &ends[0]).filter(|text| !has(text)), contents.iter().any(has));
        (self.met, self.is_returned) = (met.cloned().flatten(), self.is_returned || is_there);
    }

    /// What a commit had there in the same lines when git returned the change, though it is not there now.
    pub(super) fn conflict(&self, now: Option<&PathVersion>) -> Option<&[u8]> {
        let ([from, _], met) = self.texts().zip(self.met.as_deref())?;
        let stood = PathVersion { text: met.to_vec(), kind: from.kind };
        let stood = self.with_branch(Some(&stood)).unwrap_or(stood);
        let is_lost = now.is_none_or(|now| now.text != met) && self.onto(Some(stood)).is_err();
        is_lost.then_some(met)
    }

    /// What stands at a path with what the branch had before the change; `None`: the change fits without that, or still not with it.
    pub(super) fn with_branch(&self, version: Option<&PathVersion>) -> Option<PathVersion> {
        let (branched, ([from, _], version)) = self.branched.as_ref().zip(self.texts().zip(version))?;
        // To a merge, neighbouring lines are the same lines.
        //
        //   branched ── an earlier commit of the branch ── from ── to
        //   version  ── the same commit                 ── here ── this change fits
        if self.is_in(Some(version)).is_some() && self.onto(Some(version.clone())).is_ok() {
            return None;
        }
        Some(PathVersion { text: merged(branched, &version.text, &from.text)?, kind: version.kind })
    }

    /// The text before it and after it, where it is one of a file that stays.
    fn texts(&self) -> Option<[&PathVersion; 2]> {
        let is_file = |version: &&PathVersion| version.kind != Kind::Link;
        Some([self.from.as_ref().filter(is_file)?, self.to.as_ref().filter(is_file)?])
    }

    /// Whether what stands at a path has this change. `None`: it cannot be told.
    pub(super) fn is_in(&self, version: Option<&PathVersion>) -> Option<bool> {
        if version == self.to.as_ref() || version == self.from.as_ref() {
            return Some(version == self.to.as_ref());
        }
        let Some(([from, to], version)) = self.texts().zip(version) else {
            // It came or went as a whole: where it came and nothing stands, or it went and something stands, it is not there.
            let is_none = version.is_none() == self.to.is_none();
            return if version.is_none() || self.to.is_none() { Some(is_none) } else { None };
        };
        // Where it changed both, the text decides: a person may have set the same permissions.
        if from.text == to.text {
            return Some(version.kind == to.kind);
        }
        has_change(Some(&version.text), (Some(&from.text), Some(&to.text)))
    }

    /// What stands at a path with this change. An error: others changed the same.
    pub(super) fn onto(&self, version: Option<PathVersion>) -> std::result::Result<Option<PathVersion>, ()> {
        if version == self.from {
            return Ok(self.to.clone());
        }
        let ([from, to], version) = self.texts().zip(version).ok_or(())?;
        let text = if from.text == to.text { Some(version.text) } else { merged(&from.text, &version.text, &to.text) };
        let text = text.ok_or(())?;
        Ok(Some(PathVersion { text, kind: if from.kind == to.kind { version.kind } else { to.kind } }))
    }
}

impl Kind {
    pub(super) fn of_git(mode: u32) -> Self {
        if mode == 0o120_000 { Self::Link } else { Self::File { is_executable: mode & 0o100 != 0 } }
    }
}

impl PathVersion {
    /// As a state of the tree; `beside`: what stood there, whose other bits it keeps.
    pub(super) fn state(&self, difference: &Difference, beside: Option<&DiffState>) -> DiffState {
        let Kind::File { is_executable } = self.kind else { return DiffState::Symlink(self.text.clone()) };
        let mut state = brought(difference, &self.text);
        if let DiffState::File { mode, .. } = &mut state {
            // Git knows of one bit alone; the others are those of the person's umask.
            if let Some(DiffState::File { mode: stood, .. }) = beside {
                *mode = *stood;
            }
            *mode = if is_executable { *mode | (*mode & 0o444) >> 2 } else { *mode & !0o111 };
        }
        state
    }
}

/// What stands at a path, `None` for nothing. An error: it is neither file nor link, or its text is not kept.
pub(super) fn version_of(
    workspace: &Workspace<'_>,
    path: &[u8],
    state: Option<&DiffState>,
    texts: &[Vec<u8>],
) -> std::result::Result<Option<PathVersion>, ()> {
    match state {
        None => Ok(None),
        Some(DiffState::Symlink(to)) => Ok(Some(PathVersion { text: to.clone(), kind: Kind::Link })),
        Some(DiffState::File { hash, mode, .. }) => {
            // Who only looks at the tree stores nothing of it.
            let in_tree = || std::fs::read(workspace.root.join(path_from_bytes(path))).ok();
            let known = || texts.iter().find(|text| hash_of(text) == *hash).cloned();
            let text = workspace.objects.read(hash).ok().or_else(known).or_else(in_tree);
            let kind = Kind::of_git(*mode);
            text.filter(|text| hash_of(text) == *hash).map(|text| Some(PathVersion { text, kind })).ok_or(())
        }
        Some(_) => Err(()),
    }
}

/// The state in which a commit brought this text to a path that the work then changed.
pub(crate) fn brought(change: &Difference, text: &[u8]) -> DiffState {
    let looks = change.after.as_ref().or(change.before.as_ref());
    let (mode, attributes) = match looks {
        Some(DiffState::File { mode, attributes, .. }) => (*mode, attributes.clone()),
        _ => (0o644, Attributes::default()),
    };
    DiffState::File { hash: hash_of(text), size: text.len() as u64, mode, attributes }
}

pub(super) fn part(path: &[u8], before: Option<DiffState>, after: Option<DiffState>) -> Difference {
    Difference { path: path.to_vec(), before, after }
}
