//! What git's status says, word for word.

use std::collections::BTreeSet;

/// What `git status --porcelain=v2 -z --branch` says.
#[derive(Default)]
pub(super) struct GitStatusOutput<'s> {
    /// What HEAD is on, as `git status` calls it.
    pub(super) branch: Option<&'s [u8]>,
    pub(super) head: Option<&'s str>,
    pub(super) dirty: bool,
    /// Whether the index differs from HEAD.
    pub(super) is_staged: bool,
    /// Paths that differ from the index.
    pub(super) changed: Vec<&'s [u8]>,
    /// Content in the index that HEAD does not have.
    pub(super) staged: BTreeSet<&'s str>,
    /// Whether there may be paths that are only intended to be added.
    pub(super) may_have_intended: bool,
}

impl<'s> GitStatusOutput<'s> {
    pub(super) fn parse(text: &'s [u8]) -> Self {
        let mut status = Self::default();
        for line in text.split(|b| *b == 0).filter(|line| !line.is_empty()) {
            if let Some(name) = line.strip_prefix(b"# branch.head ") {
                status.branch = Some(name);
            } else if let Some(oid) = line.strip_prefix(b"# branch.oid ") {
                // A branch without commits has no id yet.
                status.head = std::str::from_utf8(oid).ok().filter(|oid| *oid != "(initial)");
            } else if matches!(line[0], b'1' | b'u') {
                status.dirty = true;
                status.entry(line);
            }
        }
        status
    }

    /// `1 XY sub mH mI mW hH hI path`, `u XY sub m1 m2 m3 mW h1 h2 h3 path`.
    fn entry(&mut self, line: &'s [u8]) {
        let is_unmerged = line[0] == b'u';
        let width = if is_unmerged { 11 } else { 9 };
        // The path comes last and may have spaces: the split ends before it.
        self.changed.extend(line.splitn(width, |b| *b == b' ').nth(width - 1));
        let fields: Vec<&str> =
            line.splitn(width, |b| *b == b' ').map(|field| std::str::from_utf8(field).unwrap_or_default()).collect();
        let (modes, oids) = if is_unmerged { (3..6, 7..10) } else { (4..5, 7..8) };
        let (Some(state), Some(modes), Some(oids)) = (fields.get(1), fields.get(modes), fields.get(oids)) else {
            return;
        };
        // One whose file is gone again looks like an empty file that was deleted.
        self.may_have_intended |= state.ends_with('A')
            || (state.ends_with('D') && oids.iter().any(|oid| super::super::purge::EMPTY.contains(oid)));
        // The first letter compares the index with HEAD, the second the file with the index; a dot means no difference.
        if is_unmerged || !state.starts_with('.') {
            self.is_staged = true;
            let is_content = |(mode, oid): &(&&str, &&'s str)| **mode != SUBMODULE && oid.bytes().any(|b| b != b'0');
            self.staged.extend(modes.iter().zip(oids).filter(is_content).map(|(_, oid)| *oid));
        }
    }
}

const SUBMODULE: &str = "160000";
