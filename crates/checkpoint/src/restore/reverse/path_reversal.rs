//! One path of a tree, step by step back to where the work had not changed it.

use std::io::Read;

use ic_base::{Code, Diagnosis, Result};
use ic_ledger::events::Hash;

use super::merge::{MOST_MERGED, MergeSide, MergedText, lines_between, merge_taking};
use super::path_state::{Content, content, is_same, looks, own_looks, with};
use super::work_changes::{LookPair, Own};
use crate::diff::DiffState;
use crate::objects::{Objects, hash_of};
use crate::restore::plan::RestoreNode;
use crate::rootfs::RootDir;
use crate::tree::Reason;

/// What becomes of a path that the work changed.
pub(super) enum PathReversal {
    /// It can be so again.
    To {
        state: Option<DiffState>,
        /// Texts that were merged for it, and that no checkpoint holds.
        texts: Vec<Vec<u8>>,
        /// Something of it is as the work left it, and others made that so again.
        again: bool,
    },
    /// It cannot be looked into.
    Stays(String),
    Conflict(String),
}

/// What becomes of a path in one step.
pub(super) enum PathStep {
    To(Option<DiffState>),
    /// As [`PathStep::To`], with something that is as the work left it, and that others made so again.
    Again(Option<DiffState>),
    Merged(DiffState, MergedText),
    Stays(String),
    Conflict(String),
}

/// A change of the work: the `at`th at its path, from zero.
#[derive(Clone, Copy)]
pub(super) struct PathChange<'c> {
    pub(super) path: &'c [u8],
    pub(super) at: usize,
    pub(super) before: Option<&'c DiffState>,
    pub(super) after: Option<&'c DiffState>,
}

/// Takes the changes of a piece of work back.
#[derive(Clone, Copy)]
pub(super) struct Backwards<'o> {
    pub(super) objects: &'o Objects,
    /// Where the states stand that no checkpoint holds yet.
    pub(super) root: Option<&'o RootDir>,
    pub(super) own: &'o Own,
    /// Which side decides about lines that both sides of a merge changed; `None`: such lines are a conflict.
    pub(super) side: Option<MergeSide>,
}

/// The reason of a conflict of lines: it is the one kind of conflict that leaves the rest of its file to be merged.
pub(super) const SAME_LINES: &str = "others changed the same lines since";

/// What becomes of a path where only lines conflict.
pub(super) struct LineConflict {
    /// Without the work; in the conflicting regions, too, with what others made of neighbouring lines.
    pub(super) taken: Option<DiffState>,
    /// Without the work where that is no conflict; the conflicting regions stay as they are now. `None`: that cannot be told.
    pub(super) left: Option<DiffState>,
    /// Whether the two differ: otherwise there is nothing to decide.
    pub(super) is_open: bool,
    /// The lines that the first changes and the second does not, as people count them.
    pub(super) lines: String,
    /// Texts that were merged for both.
    pub(super) texts: Vec<Vec<u8>>,
}

impl Backwards<'_> {
    /// Both ways to decide a conflict of lines; `None` where something else of the path conflicts. `ways`: the changes of the work,
    /// to be reversed in the first way and in the second.
    pub(super) fn lines(
        &self,
        path: &[u8],
        ways: [&[LookPair]; 2],
        now: Option<&DiffState>,
    ) -> Result<Option<LineConflict>> {
        // Both ways take the same kind of steps. They differ only in the side that gives the lines in conflict.
        let way = |pairs: &[LookPair], side| Self { side: Some(side), ..*self }.back(path, pairs, now);
        let PathReversal::To { state: taken, mut texts, .. } = way(ways[0], MergeSide::TheirsByLines)? else {
            return Ok(None);
        };
        let PathReversal::To { state: left, texts: more, .. } = way(ways[1], MergeSide::Ours)? else { return Ok(None) };
        texts.extend(more);
        let text = |state: Option<&DiffState>| match state {
            Some(file @ DiffState::File { .. }) => self.text(path, content(file), &texts),
            _ => Ok(None),
        };
        let lines = match (text(now)?, text(taken.as_ref())?, text(left.as_ref())?) {
            (Some(now), Some(taken), Some(left)) => lines_between(&now, &taken, &left),
            _ => String::new(),
        };
        let is_open = !is_same(taken.as_ref(), left.as_ref());
        Ok(Some(LineConflict { taken, left, is_open, lines, texts }))
    }

    /// What is at a path without the changes of the work there, newest first. `now`: what is there.
    pub(super) fn back(&self, path: &[u8], pairs: &[LookPair], now: Option<&DiffState>) -> Result<PathReversal> {
        let (mut to, mut is_again) = (now.cloned(), false);
        // What was merged on the way, which the next merge may need.
        let mut texts: Vec<Vec<u8>> = Vec::new();
        for (at, (before, after)) in pairs.iter().enumerate().rev() {
            let change = PathChange { path, at, before: before.as_ref(), after: after.as_ref() };
            match self.step(change, to.as_ref(), &texts)? {
                PathStep::To(state) => to = state,
                PathStep::Again(state) => {
                    to = state;
                    is_again = true;
                }
                PathStep::Merged(state, merged) => {
                    to = Some(state);
                    texts.push(merged.text.into_bytes());
                }
                PathStep::Stays(why) => return Ok(PathReversal::Stays(why)),
                PathStep::Conflict(why) => return Ok(PathReversal::Conflict(why)),
            }
        }
        // Only the last of the merged texts is still needed: the others were steps on the way. A text that no merge
        // made may come from a commit.
        match &to {
            Some(DiffState::File { hash, .. }) => {
                texts.retain(|text| hash_of(text) == *hash);
                if texts.is_empty() {
                    texts.extend(self.own.texts.get(hash).cloned());
                }
            }
            _ => texts.clear(),
        }
        Ok(PathReversal::To { state: to, texts, again: is_again })
    }

    /// One change back. `texts`: what was merged before and no checkpoint holds.
    pub(super) fn step(&self, change: PathChange<'_>, now: Option<&DiffState>, texts: &[Vec<u8>]) -> Result<PathStep> {
        let PathChange { path, at, before, after } = change;
        let hidden = [now, before, after].into_iter().flatten().find_map(|state| match state {
            DiffState::Passed(reason) => Some(reason.as_str().to_owned()),
            _ => None,
        });
        if let Some(reason) = hidden {
            // What is in the log of a database is in the copy of it.
            let is_side = reason == Reason::Database.as_str();
            let is_any = !is_side && [now, before, after].into_iter().flatten().any(DiffState::is_content);
            return Ok(if is_any { PathStep::Stays(reason) } else { PathStep::To(now.cloned()) });
        }
        if is_same(now, before) {
            return Ok(PathStep::To(now.cloned()));
        }
        // Files come first, even those that are as the work left them: content and looks may be of different makers.
        if let (
            Some(was @ DiffState::File { .. }),
            Some(left @ DiffState::File { .. }),
            Some(is @ DiffState::File { .. }),
        ) = (before, after, now)
        {
            return self.merged(change, [was, left, is], texts);
        }
        if is_same(now, after) {
            let is_of_others = self.own.is_of_others(path, at, |state| state.and_then(RestoreNode::of));
            return Ok(if is_of_others { PathStep::Again(now.cloned()) } else { PathStep::To(before.cloned()) });
        }
        Ok(match (before, after, now) {
            (Some(_), Some(_), Some(_)) => PathStep::Conflict("others made something else of it since".to_owned()),
            // Under another name what the work changed may still be there.
            (Some(_), Some(_), None) => PathStep::Conflict("others removed or renamed it since".to_owned()),
            (None, _, Some(_)) => PathStep::Conflict("the work made it, and others changed it since".to_owned()),
            (Some(_), None, _) => {
                PathStep::Conflict("the work removed it, and others created it again since".to_owned())
            }
            (None, _, None) => PathStep::To(None),
        })
    }

    /// `states`: what stood there before, what the work left, and what stands there now: files.
    fn merged(&self, change: PathChange<'_>, states: [&DiffState; 3], texts: &[Vec<u8>]) -> Result<PathStep> {
        let conflict = |why: &str| Ok(PathStep::Conflict(why.to_owned()));
        let PathChange { path, at, .. } = change;
        let [before, after, now] = states;
        let looks_again = own_looks(now) == own_looks(after)
            && own_looks(before) != own_looks(after)
            && self.own.is_of_others(path, at, |state| state.map(own_looks));
        let looks = match (looks(before, after, now, looks_again), self.side) {
            (Some(looks), _) => looks,
            (None, Some(MergeSide::Ours | MergeSide::OursByLines)) => own_looks(now),
            (None, Some(_)) => own_looks(before),
            (None, None) => return conflict("the work changed its permissions or attributes, and so did others since"),
        };
        let (was, left, is) = (content(before), content(after), content(now));
        let again = is == left && was != left && self.own.is_of_others(path, at, |state| state.map(content));
        // The work changed looks alone, or its content is gone already, or others made it so again.
        if was == left || is == was || again {
            let state = Some(with(looks, is));
            return Ok(if again || looks_again { PathStep::Again(state) } else { PathStep::To(state) });
        }
        if is == left {
            return Ok(PathStep::To(Some(with(looks, was))));
        }
        if [was, left, is].iter().any(|content| content.size > MOST_MERGED) {
            return conflict("others changed it since, and it is too large to be merged (over 1 MiB)");
        }
        let text = |content| self.text(path, content, texts);
        let [Some(was), Some(left), Some(is)] = [text(was)?, text(left)?, text(is)?] else {
            return conflict("others changed it since, and it is not text that can be merged");
        };
        // The base is what the work left; the sides are what stands there now and what stood there before.
        let merged = match (diffy::merge(&left, &is, &was), self.side) {
            (Ok(text), _) => MergedText { text, regions: Vec::new() },
            (Err(_), Some(side)) => merge_taking(side, &left, &is, &was),
            (Err(_), None) => return conflict(SAME_LINES),
        };
        let bytes = merged.text.as_bytes();
        let content = Content { hash: hash_of(bytes), size: bytes.len() as u64 };
        Ok(PathStep::Merged(with(looks, content), merged))
    }

    /// A content as text; `None` if it is none.
    pub(super) fn text(&self, path: &[u8], content: Content, texts: &[Vec<u8>]) -> Result<Option<String>> {
        let merged = texts.iter().find(|text| hash_of(text) == content.hash);
        let bytes = match merged.or_else(|| self.own.texts.get(&content.hash)) {
            Some(text) => text.clone(),
            None if self.objects.knows(&content.hash)? => self.objects.read(&content.hash)?,
            // Who only looks at the tree stores nothing of it: what no checkpoint holds is in the tree alone.
            None => match self.root {
                Some(root) => in_tree(root, path, &content.hash)?,
                None => return Ok(None),
            },
        };
        // A zero byte is what git takes a binary file by.
        Ok(String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')))
    }
}

/// What stands in the tree. Errors: `busy` if it has changed since it was looked at.
fn in_tree(root: &RootDir, path: &[u8], hash: &Hash) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let opened = root.open_file(path);
    let read = opened.and_then(|file| file.take(MOST_MERGED + 1).read_to_end(&mut bytes));
    if read.is_err() || hash_of(&bytes) != *hash {
        let path = String::from_utf8_lossy(path);
        let message = format!("{path} changed while it was read. Nothing was changed.");
        return Err(Diagnosis::new(Code::Busy, message).hint("stop what writes it, or call again"));
    }
    Ok(bytes)
}
