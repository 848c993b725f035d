//! What a file or directory has beside its content and its permission bits: owner and group, extended attributes, and POSIX ACLs
//! and file capabilities, which are extended attributes too.
//!
//! Most files have none of these, and the same owner as the root directory. So an owner is kept only where it differs from the
//! root's: a usual tree then has the same hash for every user, and a copy of it that another user owns is no change.

use std::ffi::CStr;

use ic_ledger::bytes_of_hex;
use rustix::fd::AsFd;
use rustix::fs::{Stat, fgetxattr, fgetxattr_query, flistxattr, flistxattr_query};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::tree::{Reader, put_bytes, put_number};

/// Who a file belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FileOwner {
    /// The uid, as the file system shows it.
    pub user: u32,
    /// The gid, as the file system shows it.
    pub group: u32,
}

impl FileOwner {
    /// The owner that a look at a file found.
    pub(crate) fn of(stat: &Stat) -> Self {
        Self { user: stat.st_uid, group: stat.st_gid }
    }
}

/// Extended attributes: names and values, as bytes.
pub type Extended = Vec<(Vec<u8>, Vec<u8>)>;

/// What a file or directory has beside its content and its permission bits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Attributes {
    /// Its owner; `None`: the root directory's.
    pub owner: Option<FileOwner>,
    /// Its extended attributes, by name in byte order.
    pub extended: Extended,
}

/// File capabilities: a program that has them runs with rights that its user does not have.
pub(crate) const CAPABILITY: &[u8] = b"security.capability";

/// The longest value that the kernel takes.
const LONGEST: usize = 64 << 10;

/// More than this of one file is not kept: it would be part of every object of its directory.
const MOST: usize = 256 << 10;

/// Whether an attribute of this name is kept. Others belong to the system (`trusted.`, labels of security modules): they say what
/// this machine may do with the file, which no checkpoint may say.
pub(crate) fn is_kept(name: &[u8]) -> bool {
    let is_users = name.strip_prefix(b"user.").is_some_and(|rest| !rest.is_empty());
    let is_known = matches!(name, b"system.posix_acl_access" | b"system.posix_acl_default" | CAPABILITY);
    (is_users || is_known) && name.len() <= 255 && !name.contains(&0)
}

impl Attributes {
    /// What an open file or directory has, in a tree whose root belongs to `usual`. A file system that knows no extended attributes
    /// has none.
    pub(crate) fn of(file: impl AsFd, stat: &Stat, usual: FileOwner) -> Self {
        let list = |names: &mut [u8]| match names {
            [] => flistxattr_query(&file),
            names => flistxattr(&file, names),
        };
        let get = |name: &CStr, value: &mut [u8]| match value {
            [] => fgetxattr_query(&file, name),
            value => fgetxattr(&file, name, value),
        };
        Self { owner: unusual(FileOwner::of(stat), usual), extended: gather(list, get) }
    }

    /// Whether there is nothing to say.
    pub fn is_usual(&self) -> bool {
        self.owner.is_none() && self.extended.is_empty()
    }

    /// The value of an extended attribute.
    pub(crate) fn get(&self, name: &[u8]) -> Option<&[u8]> {
        let at = self.extended.binary_search_by(|(known, _)| known.as_slice().cmp(name)).ok()?;
        Some(&self.extended[at].1)
    }

    /// The byte form, which a directory's is made of: how many there are, twice, and one more with an owner; the owner; each name and
    /// value.
    pub(crate) fn put(&self, bytes: &mut Vec<u8>) {
        put_number(bytes, (self.extended.len() as u64) << 1 | u64::from(self.owner.is_some()));
        if let Some(owner) = self.owner {
            put_number(bytes, owner.user.into());
            put_number(bytes, owner.group.into());
        }
        for (name, value) in &self.extended {
            put_bytes(bytes, name);
            put_bytes(bytes, value);
        }
    }

    /// Reads a byte form; `None` if it is none that is written.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let number = reader.number()?;
        let owner = if number & 1 == 1 {
            let mut id = || u32::try_from(reader.number()?).ok();
            Some(FileOwner { user: id()?, group: id()? })
        } else {
            None
        };
        let (mut extended, mut length) = (Extended::new(), 0);
        for _ in 0..number >> 1 {
            let (name, value) = (reader.bytes()?, reader.bytes()?);
            // A forged checkpoint may name any attribute, such as a label of a security module. If it names one that is not kept,
            // the whole directory counts as damaged.
            length += name.len() + value.len();
            let follows = extended.last().is_none_or(|(last, _)| last.as_slice() < name);
            if !is_kept(name) || value.len() > LONGEST || length > MOST || !follows {
                return None;
            }
            extended.push((name.to_vec(), value.to_vec()));
        }
        Some(Self { owner, extended })
    }

    /// The byte form; nothing for what is usual.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if !self.is_usual() {
            self.put(&mut bytes);
        }
        bytes
    }

    /// What [`Attributes::bytes`] made; `None` if these are no such bytes.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() {
            return Some(Self::default());
        }
        let mut reader = Reader(bytes);
        Self::read(&mut reader).filter(|read| reader.0.is_empty() && !read.is_usual())
    }
}

impl Serialize for Attributes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let digits: String = self.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        serializer.serialize_str(&digits)
    }
}

impl<'de> Deserialize<'de> for Attributes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let refuse = || serde::de::Error::custom("text that is no attributes");
        let text = String::deserialize(deserializer)?;
        bytes_of_hex(&text).as_deref().and_then(Self::of_bytes).ok_or_else(refuse)
    }
}

/// The owner, if it is another one than usual.
pub(crate) fn unusual(owner: FileOwner, usual: FileOwner) -> Option<FileOwner> {
    (owner != usual).then_some(owner)
}

/// The extended attributes that are kept. `list` and `get` ask the kernel, for the length alone where there is no room; what it does
/// not tell is not there.
pub(crate) fn gather(
    list: impl Fn(&mut [u8]) -> rustix::io::Result<usize>,
    get: impl Fn(&CStr, &mut [u8]) -> rustix::io::Result<usize>,
) -> Extended {
    // Nearly no file has any: asked for the length alone, the kernel says so in one call.
    let Some(length) = list(&mut []).ok().filter(|length| *length > 0) else { return Vec::new() };
    let mut names = vec![0; length];
    // The list may grow between the two calls: then the second one fails, and the file counts as one without attributes.
    let Ok(length) = list(&mut names) else { return Vec::new() };
    let mut extended = Extended::new();
    for name in names[..length.min(names.len())].split_inclusive(|byte| *byte == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
        if !is_kept(name.to_bytes()) {
            continue;
        }
        // One that grows between the two calls does not fit, and counts as not there.
        let mut value = vec![0; get(name, &mut []).unwrap_or(0)];
        if let Ok(length) = get(name, &mut value) {
            value.truncate(length);
            extended.push((name.to_bytes().to_vec(), value));
        }
    }
    // The kernel lists them in no fixed order, and a directory has one byte form.
    extended.sort_unstable();
    // This comes after the sorting, so that the same attributes are left out each time.
    let mut length = 0;
    extended.retain(|(name, value)| {
        length += name.len() + value.len();
        value.len() <= LONGEST && length <= MOST
    });
    extended
}

/// A sentence about the wanted attributes that a file does not have after a restore.
pub fn missing(wanted: &Attributes, has: &Attributes) -> String {
    let is_missing = |one: &&(Vec<u8>, Vec<u8>)| !has.extended.contains(one);
    let extended = wanted.extended.iter().filter(is_missing).cloned().collect();
    let owner = wanted.owner.filter(|_| wanted.owner != has.owner);
    match described(&Attributes { owner, extended }) {
        nothing if nothing.is_empty() => "it has another owner or attributes that it did not have".to_owned(),
        what => format!("{what}: the system did not take it"),
    }
}

/// What a person is told of attributes, in a few words.
pub(crate) fn described(attributes: &Attributes) -> String {
    let owner = attributes.owner.map(|owner| format!("owner {}:{}", owner.user, owner.group));
    let names = attributes.extended.iter().map(|(name, _)| String::from_utf8_lossy(name).into_owned());
    owner.into_iter().chain(names).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::{Attributes, FileOwner};

    #[test]
    fn attributes_have_one_form_and_only_names_that_are_kept() {
        let of = |names: &[&str]| Attributes {
            owner: Some(FileOwner { user: 0, group: u32::MAX }),
            extended: names.iter().map(|name| (name.as_bytes().to_vec(), b"value".to_vec())).collect(),
        };
        let all = of(&["security.capability", "system.posix_acl_access", "user.tag"]);
        assert_eq!(Attributes::of_bytes(&all.bytes()), Some(all.clone()));
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<Attributes>(&text).unwrap(), all);
        for names in [
            &["trusted.overlay"][..],
            &["security.selinux"],
            &["user."],
            &["user.b", "user.a"],
            &["user.a", "user.a"],
            &["user.nul\0"],
            &["system.other"],
            &[""],
        ] {
            assert_eq!(Attributes::of_bytes(&of(names).bytes()), None, "{names:?}");
        }
        let large = Attributes { owner: None, extended: vec![(b"user.a".to_vec(), vec![0; (64 << 10) + 1])] };
        assert_eq!(Attributes::of_bytes(&large.bytes()), None);
        // Nothing to say is said in one way.
        assert_eq!(Attributes::of_bytes(&[0]), None);
        assert_eq!(Attributes::of_bytes(&[]), Some(Attributes::default()));
    }
}
