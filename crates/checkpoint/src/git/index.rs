//! The index as text: what `git ls-files -s -v -z` prints, and the paths that are only intended to be added.

use ic_base::Result;
use ic_events::Hash;

use super::Index;
use crate::objects::{Objects, Writer};
use crate::tree::Encoded;

/// An entry of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line<'l> {
    /// `H`, `S` (skip-worktree), `M` (unmerged), ...; small letters: assume-unchanged.
    pub(crate) tag: u8,
    /// `100644 OID STAGE`.
    pub(crate) meta: &'l str,
    pub(crate) path: &'l [u8],
}

impl Line<'_> {
    pub(crate) fn oid(&self) -> &str {
        self.meta.split(' ').nth(1).unwrap_or("")
    }

    pub(crate) fn is_submodule(&self) -> bool {
        self.meta.starts_with("160000")
    }
}

/// What lists an index.
pub(crate) const LIST: [&str; 4] = ["ls-files", "-s", "-v", "-z"];

/// The text of an index that was listed so.
pub(crate) fn text(mut text: Vec<u8>, intended: &[&[u8]]) -> Vec<u8> {
    // No entry and no path is empty: an empty one stands between them.
    text.push(0);
    for path in intended {
        text.extend_from_slice(path);
        text.push(0);
    }
    text
}

/// Keeps an index; a changed entry stores one new piece.
pub(crate) fn keep(writer: &Writer<'_>, text: Vec<u8>) -> Result<Index> {
    const ENTRIES_A_PIECE: u8 = 64;
    let mut cuts = Vec::new();
    let mut start = 0;
    for entry in text.split_inclusive(|b| *b == 0) {
        let sum =
            entry.iter().rev().take(12).fold(0_u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(*byte));
        if start > 0 && sum.is_multiple_of(ENTRIES_A_PIECE) {
            cuts.push(start);
        }
        start += entry.len();
    }
    writer.put_tree(&Encoded { bytes: text, cuts }).map(Index)
}

/// The text of an index that was kept.
pub(crate) fn read(objects: &Objects, index: Index) -> Result<Vec<u8>> {
    let hash: Hash = index.0;
    objects.read(&hash)
}

/// The entries in a text, and the intended paths.
pub(crate) fn parse(text: &[u8]) -> (Vec<Line<'_>>, Vec<&[u8]>) {
    let mut parts = text.split(|b| *b == 0);
    let lines = parts.by_ref().take_while(|entry| !entry.is_empty()).filter_map(line).collect();
    (lines, parts.filter(|path| !path.is_empty()).collect())
}

fn line(entry: &[u8]) -> Option<Line<'_>> {
    let tab = entry.iter().position(|b| *b == b'\t')?;
    let meta = std::str::from_utf8(entry.get(2..tab)?).ok()?;
    Some(Line { tag: entry[0], meta, path: &entry[tab + 1..] })
}
