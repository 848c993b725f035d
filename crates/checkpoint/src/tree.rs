//! Directories as content: sorted entries in a byte form whose SHA-256 names the directory and all below it.
//!
//! The form: a version, the directory's mode, then for each entry its kind, its name and what the kind needs. Numbers
//! are LEB128. Where the directory or a file in it has attributes ([`crate::attributes`]), the version is another one, its own stand
//! behind its mode, and an entry's behind what its kind needs; a directory without any has the bytes that it always had. It is canonical:
//! equal directories have equal bytes, so equal subtrees are one object, and two trees are compared without looking below equal hashes.
//! What is read is checked, because it names paths that are written to.

use std::collections::BTreeSet;

use ic_base::{Code, Diagnosis, Result};
use ic_ledger::events::Hash;

use crate::attributes::Attributes;

const VERSION: u8 = 1;
/// With attributes. Programs that know the first version alone call it damaged, and restore nothing from it.
const WITH_ATTRIBUTES: u8 = 2;
/// Added to the kind of an entry that has attributes.
const HAS_ATTRIBUTES: u8 = 0x10;

ic_base::words! {
    /// Why a name was left out: its content is not in the checkpoint, and a restore never touches it.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum Reason {
        /// An ignore rule covers it.
        Ignored = "ignored",
        /// It is likely a secret.
        Secret = "secret",
        /// It is larger than `max-file-size`.
        Oversize = "oversize",
        /// A socket, fifo or device.
        Special = "special",
        /// It could not be read.
        Unreadable = "unreadable",
        /// A side file of an SQLite database, whose content is in the database's own copy.
        Database = "database",
        /// A `.git`: a repository's directory, or the file of a work tree or submodule.
        Git = "git",
        /// The store itself, or a temporary file of a restore.
        Store = "store",
        /// A name that some file system takes for `.git`.
        GitName = "git_name",
        /// A directory in thousands of others.
        Deep = "deep",
        /// Its content was purged, and is never stored again.
        Purged = "purged",
        /// Another ledger, or what belongs to its store.
        Ledger = "ledger",
        /// Another work tree, which is a place of its own.
        WorkTree = "work_tree",
    }
}

impl Reason {
    /// Whether the checkpoint lacks something that its user may expect in it.
    pub fn is_a_gap(self) -> bool {
        !matches!(self, Self::Ignored | Self::Database | Self::Git | Self::Store | Self::WorkTree)
    }

    pub(crate) fn byte(self) -> u8 {
        // Its place in the list is what trees on the disk hold: another order would give old ones other reasons.
        Self::ALL.iter().position(|r| *r == self).map_or(0, |at| u8::try_from(at).unwrap_or(0))
    }

    pub(crate) fn of_byte(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }
}

/// What a name in a directory is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TreeNode {
    /// A regular file; its content is an object of its own.
    File {
        /// The SHA-256 of its content.
        hash: Hash,
        /// Its length in bytes.
        size: u64,
        /// Its permission bits (07777).
        mode: u32,
    },
    /// A symbolic link and where it points, as it stands.
    Symlink(Vec<u8>),
    /// A directory: the SHA-256 of its own byte form, which holds its mode.
    Directory(Hash),
    /// A name that was left out.
    Passed(Reason),
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// The name as bytes, without a slash; it need not be text.
    pub name: Vec<u8>,
    /// What stands under the name, with its hash or target.
    pub node: TreeNode,
    /// What it has beside; a directory's stand in its own object.
    pub attributes: Attributes,
}

/// Groups of paths that are names of one file each.
pub type Groups = Vec<Vec<Vec<u8>>>;

/// A directory that was read to its end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TreeObject {
    /// Its permission bits (07777).
    pub mode: u32,
    /// What it has beside.
    pub attributes: Attributes,
    /// Of the root: groups of paths below it that are names of one file each, in byte order, as the paths in each are. They stand
    /// here alone, so that what a directory is named by does not depend on where it lies.
    pub links: Groups,
    /// Its entries, by name in byte order.
    pub entries: Vec<TreeEntry>,
}

impl TreeObject {
    /// The entry of this name. `None` is evidence that there was none.
    pub fn get(&self, name: &[u8]) -> Option<&TreeEntry> {
        let at = self.entries.binary_search_by(|entry| entry.name.as_slice().cmp(name)).ok()?;
        Some(&self.entries[at])
    }

    /// Its byte form, and where entries begin that large directories may be cut at.
    pub fn encode(&self) -> Encoded {
        let own = self.attributes.bytes();
        let is_any =
            !own.is_empty() || !self.links.is_empty() || self.entries.iter().any(|entry| !entry.attributes.is_usual());
        let mut encoder = Encoder::new(self.mode, is_any.then_some((&own, &self.links)));
        for entry in &self.entries {
            encoder.entry(&entry.name, &entry.node, &entry.attributes.bytes());
        }
        encoder.finish()
    }

    /// Reads a byte form. Errors: `corrupt` if it is none, or names an impossible path.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader(bytes);
        let tree = reader.tree().ok_or_else(damaged)?;
        // Names are found by binary search: in another order one would seem absent, and a restore would delete it.
        let sorted = tree.entries.windows(2).all(|pair| pair[0].name < pair[1].name);
        if sorted && is_mode(tree.mode) && tree.entries.iter().all(TreeEntry::is_possible) {
            Ok(tree)
        } else {
            Err(damaged())
        }
    }
}

/// The path of a name in a directory; of the root, the name.
pub fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() { name.to_vec() } else { [directory, b"/", name].concat() }
}

fn damaged() -> Diagnosis {
    Diagnosis::new(Code::Corrupt, "A directory of the checkpoint is not in a form that this program writes.")
        .hint("see which: ic checkpoint verify --read-data")
}

impl TreeEntry {
    /// An entry for a name that was left out.
    pub(crate) fn passed(name: &[u8], reason: Reason) -> Self {
        Self { name: name.to_vec(), node: TreeNode::Passed(reason), attributes: Attributes::default() }
    }

    /// Whether a directory can hold it.
    fn is_possible(&self) -> bool {
        has_possible_name(&self.name) && !matches!(self.node, TreeNode::File { mode, .. } if !is_mode(mode))
    }
}

/// Whether these are permission bits and nothing else.
fn is_mode(mode: u32) -> bool {
    mode & !0o7777 == 0
}

/// Whether a directory can have this name.
fn has_possible_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && name.len() <= 255 && !name.iter().any(|b| matches!(b, b'/' | 0))
}

/// A directory's byte form.
#[derive(Debug)]
pub struct Encoded {
    /// The canonical form, whose SHA-256 names the directory.
    pub bytes: Vec<u8>,
    /// Where each entry begins, and how rarely a name like its is met: once in two to the power of this many.
    pub(crate) entries: Vec<(usize, u32)>,
}

impl Encoded {
    /// Where it is cut into pieces: chosen by the names, so that a change moves no other cut.
    ///
    /// A changed entry stores its piece and the list of all pieces anew, which together is least when a piece holds about
    /// as many entries as there are pieces.
    pub fn cuts(&self) -> impl Iterator<Item = usize> {
        // For 10,000 entries: a name in 128 begins a piece, so about 78 pieces of 128 entries.
        // It is rounded up to a power of two: the rule stays the same until a directory has four times as many entries.
        let rarity = self.entries.len().isqrt().next_power_of_two().trailing_zeros();
        self.entries.iter().filter(move |entry| entry.1 >= rarity).map(|entry| entry.0)
    }
}

/// Writes a directory's byte form, entry by entry in order.
pub(crate) struct Encoder(Encoded);

impl Encoder {
    /// Begins a directory. `beside`: its own attributes in their byte form and its links, if it has any or an entry of it has.
    pub(crate) fn new(mode: u32, beside: Option<(&[u8], &Groups)>) -> Self {
        let mut bytes = vec![beside.map_or(VERSION, |_| WITH_ATTRIBUTES)];
        put_number(&mut bytes, mode.into());
        if let Some((own, links)) = beside {
            // A zero is what `Attributes::put` writes for none: no owner and no name.
            bytes.extend_from_slice(if own.is_empty() { &[0] } else { own });
            put_number(&mut bytes, links.len() as u64);
            for group in links {
                put_number(&mut bytes, group.len() as u64);
                for path in group {
                    put_bytes(&mut bytes, path);
                }
            }
        }
        Self(Encoded { bytes, entries: Vec::new() })
    }

    /// Adds an entry, with its attributes in their byte form.
    pub(crate) fn entry(&mut self, name: &[u8], node: &TreeNode, attributes: &[u8]) {
        let Encoded { bytes, entries } = &mut self.0;
        entries.push((bytes.len(), rarity(name)));
        let kind = match node {
            TreeNode::File { .. } => 0,
            TreeNode::Symlink(_) => 1,
            TreeNode::Directory(_) => 2,
            TreeNode::Passed(_) => 3,
        };
        bytes.push(if attributes.is_empty() { kind } else { kind | HAS_ATTRIBUTES });
        put_bytes(bytes, name);
        match node {
            TreeNode::File { hash, size, mode } => {
                put_number(bytes, (*mode).into());
                put_number(bytes, *size);
                bytes.extend_from_slice(hash);
            }
            TreeNode::Symlink(target) => put_bytes(bytes, target),
            TreeNode::Directory(hash) => bytes.extend_from_slice(hash),
            TreeNode::Passed(reason) => bytes.push(reason.byte()),
        }
        bytes.extend_from_slice(attributes);
    }

    pub(crate) fn finish(self) -> Encoded {
        self.0
    }
}

/// How rarely a name like this is met: once in two to the power of this many. By FNV-1a, which is cheap, and the same
/// everywhere and for ever.
pub(crate) fn rarity(name: &[u8]) -> u32 {
    let hash = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    name.iter().fold(0x811c_9dc5, hash).trailing_zeros()
}

pub(crate) fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    loop {
        let low = u8::try_from(number & 0x7f).unwrap_or(0);
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return;
        }
        bytes.push(low | 0x80);
    }
}

pub(crate) fn put_bytes(bytes: &mut Vec<u8>, value: &[u8]) {
    put_number(bytes, value.len() as u64);
    bytes.extend_from_slice(value);
}

/// Reads what [`put_number`] and [`put_bytes`] wrote; `None` where the bytes end early or make no sense.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(count)?;
        self.0 = tail;
        Some(head)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    /// One form of each number is read, the shortest: other bytes would be another name for the same directory.
    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let low = u64::from(byte & 0x7f);
            number |= low << shift;
            if byte & 0x80 == 0 {
                // The tenth byte has room for one bit. What is beyond is lost in the shift, and would be a second form
                // of a number.
                let is_shortest = byte != 0 || shift == 0;
                return (is_shortest && number >> shift == low).then_some(number);
            }
        }
        None
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.take(length)
    }

    pub(crate) fn hash(&mut self) -> Option<Hash> {
        self.take(32)?.try_into().ok()
    }

    /// Groups of paths: each of two or more, in byte order, as the groups are by their first paths; no path in two.
    fn links(&mut self) -> Option<Groups> {
        let (mut links, mut all) = (Groups::new(), BTreeSet::new());
        for _ in 0..self.number()? {
            let mut group: Vec<Vec<u8>> = Vec::new();
            for _ in 0..self.number()? {
                let path = self.bytes()?;
                let is_possible = path.split(|b| *b == b'/').all(has_possible_name);
                // Ascending order, and no path twice: a set of links has one byte form, and so one hash.
                let follows = group.last().is_none_or(|last| last.as_slice() < path);
                if !is_possible || !follows || !all.insert(path) {
                    return None;
                }
                group.push(path.to_vec());
            }
            let follows = links.last().is_none_or(|last| last.first() < group.first());
            if group.len() < 2 || !follows {
                return None;
            }
            links.push(group);
        }
        Some(links)
    }

    fn tree(&mut self) -> Option<TreeObject> {
        let version = self.byte()?;
        if !matches!(version, VERSION | WITH_ATTRIBUTES) {
            return None;
        }
        let mode = u32::try_from(self.number()?).ok()?;
        let mut tree = TreeObject { mode, ..TreeObject::default() };
        if version == WITH_ATTRIBUTES {
            tree.attributes = Attributes::read(self)?;
            tree.links = self.links()?;
        }
        while !self.0.is_empty() {
            let kind = self.byte()?;
            let name = self.bytes()?.to_vec();
            let node = match kind & !HAS_ATTRIBUTES {
                0 => {
                    let mode = u32::try_from(self.number()?).ok()?;
                    TreeNode::File { mode, size: self.number()?, hash: self.hash()? }
                }
                1 => TreeNode::Symlink(self.bytes()?.to_vec()),
                2 => TreeNode::Directory(self.hash()?),
                3 => TreeNode::Passed(Reason::of_byte(self.byte()?)?),
                _ => return None,
            };
            let attributes = if kind & HAS_ATTRIBUTES == 0 {
                Attributes::default()
            } else {
                // Only a file has them here: a directory's are in its own object, and a link has none.
                Attributes::read(self).filter(|read| !read.is_usual() && matches!(node, TreeNode::File { .. }))?
            };
            tree.entries.push(TreeEntry { name, node, attributes });
        }
        // One form for each directory: the second only where the first does not do.
        let is_any = !tree.attributes.is_usual()
            || !tree.links.is_empty()
            || tree.entries.iter().any(|entry| !entry.attributes.is_usual());
        (is_any == (version == WITH_ATTRIBUTES)).then_some(tree)
    }
}

#[cfg(test)]
mod tests;
