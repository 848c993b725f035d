//! The differences between two checkpoints, with files that both of them left out: these may differ though the trees are equal.

use std::collections::{BTreeMap, HashMap};

use ic_base::{CheckpointId, Result};
use ic_checkpoint::diff::{self, DiffState, Difference};
use ic_checkpoint::manifest::{CheckpointManifest, Skipped};
use ic_checkpoint::record::CheckpointRecord;
use ic_checkpoint::restore::reverse::Own;
use ic_checkpoint::tree::Reason;
use ic_ledger::{path_bytes, path_from_bytes};
use ic_worktree::Workspace;
use ic_worktree::skipped_files::{ContentSources, KnownContent, compare};

/// Why no checkpoint holds content of a path that differs, on neither side; `None`: one does, or a person would not miss the file.
pub(super) fn unkept(difference: &Difference) -> Option<&'static str> {
    let sides = [&difference.before, &difference.after];
    let passed = |state: &DiffState| match state {
        DiffState::Passed(reason @ (Reason::Secret | Reason::Oversize | Reason::Unreadable)) => Some(reason.as_str()),
        _ => None,
    };
    let is_all = sides.into_iter().flatten().all(|state| passed(state).is_some());
    sides.into_iter().flatten().find_map(passed).filter(|_| is_all)
}

/// Whether a rule ignores the path on one side, and on the other a file is kept: perhaps only the rule changed.
fn is_of_rule(difference: &Difference) -> bool {
    let is_ignored = |state: &Option<DiffState>| matches!(state, Some(DiffState::Passed(Reason::Ignored)));
    let is_kept = |state: &Option<DiffState>| matches!(state, Some(DiffState::File { .. } | DiffState::Symlink(_)));
    let (before, after) = (&difference.before, &difference.after);
    is_ignored(before) && is_kept(after) || is_kept(before) && is_ignored(after)
}

/// The differences that are not of a rule. Of the others, a file that the work may have changed and that a rule has hidden since stays.
pub(super) fn leave_hidden(
    workspace: &Workspace<'_>,
    mut found: Vec<Difference>,
    is_its: impl Fn(&[u8]) -> bool,
    changes: &mut Own,
) -> Vec<Difference> {
    for difference in found.extract_if(.., |difference| is_of_rule(difference)) {
        if is_its(&difference.path) && differs_behind_rule(workspace, &difference) {
            changes.leave_part(difference.path, "a rule ignores it since, and it was changed");
        }
    }
    found
}

/// Whether a rule ignores a file that was kept before, and the file is not what it was then: no later checkpoint shows what changed it.
fn differs_behind_rule(workspace: &Workspace<'_>, Difference { path, before, .. }: &Difference) -> bool {
    match before {
        Some(DiffState::File { hash, mode, .. }) => !matches!(
            workspace.content_now(path),
            Some(DiffState::File { hash: now, mode: now_mode, .. }) if now == *hash && now_mode == *mode
        ),
        Some(DiffState::Symlink(target)) => {
            !std::fs::read_link(workspace.root.join(path_from_bytes(path))).is_ok_and(|now| path_bytes(&now) == target)
        }
        _ => false,
    }
}

/// Whether a rule ignores the path on one side.
pub(super) fn is_ignored(difference: &Difference) -> bool {
    let is_passed = |state: &DiffState| matches!(state, DiffState::Passed(Reason::Ignored));
    [&difference.before, &difference.after].into_iter().flatten().any(is_passed)
}

type Gaps = BTreeMap<Vec<u8>, Skipped>;

/// Finds the differences between checkpoints of a workspace.
pub(super) struct Differences<'w> {
    workspace: &'w Workspace<'w>,
    gaps: HashMap<CheckpointId, Gaps>,
    /// The places in git where contents were found.
    pub(super) sources: ContentSources,
}

impl<'w> Differences<'w> {
    pub(super) fn new(workspace: &'w Workspace<'w>) -> Self {
        Self { workspace, gaps: HashMap::new(), sources: ContentSources::new() }
    }

    /// The differences between two checkpoints. A file that was left out is known by the content that git has, or by its present content if
    /// it did not change since; otherwise only the fact of a change is known.
    pub(super) fn between(&mut self, from: &CheckpointRecord, to: &CheckpointRecord) -> Result<Vec<Difference>> {
        let mut found = Vec::new();
        diff::diff(&self.workspace.objects, Some(&from.tree), Some(&to.tree), &mut |difference| {
            found.push(difference);
            Ok(())
        })?;
        self.read(from)?;
        self.read(to)?;
        // If neither left anything out, the trees tell everything.
        if self.gaps[&from.id].is_empty() && self.gaps[&to.id].is_empty() {
            return Ok(found);
        }
        for difference in &mut found {
            difference.before = self.known(from, &difference.path, difference.before.take())?;
            difference.after = self.known(to, &difference.path, difference.after.take())?;
        }
        let (then, now) = (&self.gaps[&from.id], &self.gaps[&to.id]);
        // Both trees say the same about such a path, so their comparison does not name it.
        let is_changed = |(path, gap): &(&Vec<u8>, &Skipped)| {
            now.get(*path).is_some_and(|now| compare(gap, now) == KnownContent::Changed)
        };
        let changed: Vec<Vec<u8>> = then.iter().filter(is_changed).map(|(path, _)| path.clone()).collect();
        for path in changed {
            if found.iter().any(|difference| difference.path == path) {
                continue;
            }
            let passed = |gaps: &Gaps| gaps.get(&path).and_then(|gap| Reason::parse(&gap.reason));
            let (before, after) = (passed(&self.gaps[&from.id]), passed(&self.gaps[&to.id]));
            let before = self.known(from, &path, before.map(DiffState::Passed))?;
            let after = self.known(to, &path, after.map(DiffState::Passed))?;
            found.push(Difference { path, before, after });
        }
        Ok(found)
    }

    fn read(&mut self, look: &CheckpointRecord) -> Result<()> {
        if !self.gaps.contains_key(&look.id) {
            // A complete checkpoint left nothing out, so its manifest need not be read.
            let skipped = if look.complete {
                Vec::new()
            } else {
                CheckpointManifest::read(&self.workspace.objects, &look.manifest)?.skipped
            };
            let gaps = skipped.into_iter().map(|gap| (gap.path.0.clone(), gap)).collect();
            self.gaps.insert(look.id.clone(), gaps);
        }
        Ok(())
    }

    fn known(&mut self, look: &CheckpointRecord, path: &[u8], state: Option<DiffState>) -> Result<Option<DiffState>> {
        let Some(DiffState::Passed(_)) = state else { return Ok(state) };
        let Some(gap) = self.gaps[&look.id].get(path) else { return Ok(state) };
        // Only files that were left out for their size are looked up; the content of a secret stays unread.
        if gap.reason != Reason::Oversize.as_str() {
            return Ok(state);
        }
        if let Some(content) = &gap.git
            && let Some(found) = self.workspace.content_in_git(content, &mut self.sources)?
        {
            return Ok(Some(found));
        }
        let is_there = self.workspace.is_as_seen(gap);
        Ok(is_there.then(|| self.workspace.content_now(path)).flatten().or(state))
    }
}
