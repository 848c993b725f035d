//! What a checkpoint's row does not hold: an object of its own, as JSON.

use ic_base::{Code, Diagnosis, Result};
use ic_ledger::bytes_of_hex;
use ic_ledger::events::{Hash, hex, parse_hex};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::diff::TreeChange;
use crate::git::state::GitState;

use crate::objects::{Objects, Writer, hash_of};

/// A path in JSON: its text, or its bytes in hex after a NUL where it is not UTF-8 (no path holds a NUL).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathText(pub Vec<u8>);

impl Serialize for PathText {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        if let Ok(text) = std::str::from_utf8(&self.0) {
            serializer.serialize_str(text)
        } else {
            let digits: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
            serializer.serialize_str(&format!("\0{digits}"))
        }
    }
}

impl<'de> Deserialize<'de> for PathText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let refuse = || serde::de::Error::custom("text that is not a path");
        let Some(digits) = text.strip_prefix('\0') else {
            return if text.contains('\0') { Err(refuse()) } else { Ok(Self(text.into_bytes())) };
        };
        // No path holds a NUL, neither in this form nor in the other.
        bytes_of_hex(digits).filter(|bytes| !bytes.contains(&0)).map(Self).ok_or_else(refuse)
    }
}

/// A change since the checkpoint's parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedCounts {
    /// Relative to the root of the tree; lossless, also where it is not UTF-8.
    pub path: PathText,
    /// What became of it: the text of a [`TreeChange`].
    pub change: String,
}

impl ChangedCounts {
    /// A change at a path.
    pub fn new(path: Vec<u8>, change: TreeChange) -> Self {
        Self { path: PathText(path), change: change.as_str().to_owned() }
    }
}

/// A path that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Relative to the root of the tree; lossless, also where it is not UTF-8.
    pub path: PathText,
    /// Why: the text of a [`crate::tree::Reason`].
    pub reason: String,
    /// What tells this state of the file from another; `None`: it could not be looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// Where git has its content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitContent>,
}

/// The content of a file, as git has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitContent {
    /// The name of the blob that the index had for it.
    pub oid: String,
    /// How long the file was, in bytes.
    pub size: u64,
    /// Its permission bits (07777) at that time.
    pub mode: u32,
}

/// What a checkpoint's row does not hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointManifest {
    /// What a user may miss in it.
    pub skipped: Vec<Skipped>,
    /// Files that changed whenever they were read: what is kept of them may be a state that they never had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsettled: Vec<PathText>,
    /// Directories that are git repositories of their own.
    pub nested_git: Vec<PathText>,
    /// What changed since its parent; `None` for the first of a line, where everything was added.
    pub changes: Option<Vec<ChangedCounts>>,
    /// The state of git.
    pub git: Option<GitState>,
    /// Other work trees: those below the root by their paths from it, other ones of the repository by their whole paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub work_trees: Vec<PathText>,
    /// What the repositories inside of the tree had checked out. Those of submodules are not among them: git keeps their history.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repositories: Vec<Repository>,
}

/// What a repository inside of the tree has checked out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repository {
    /// The path of its top, from the root of the tree.
    pub path: PathText,
    /// The commit; `None`: there is none yet.
    pub head: Option<String>,
    /// The branch, without `refs/heads/`; `None`: HEAD is detached.
    pub branch: Option<PathText>,
}

impl CheckpointManifest {
    /// The hash of git's state in it, or of there being none.
    pub fn git_hash(&self) -> Result<Hash> {
        written(&self.git).map(|bytes| hash_of(&bytes))
    }

    /// Keeps it and returns its name.
    pub fn keep(&self, writer: &Writer<'_>) -> Result<Hash> {
        let bytes = written(self)?;
        writer.put_reader(&mut bytes.as_slice()).map(|(hash, _)| hash)
    }

    /// The manifest with this name. Errors: `corrupt`.
    pub fn read(objects: &Objects, hash: &Hash) -> Result<Self> {
        serde_json::from_slice(&objects.read(hash)?).map_err(|e| {
            Diagnosis::new(Code::Corrupt, format!("The manifest {} cannot be read: {e}.", &hex(hash)[..12]))
                .hint("see what is damaged: ic checkpoint verify --read-data; remove what is lost: ic checkpoint verify --repair")
        })
    }
}

fn written(part: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(part).map_err(|e| Diagnosis::new(Code::Internal, format!("A manifest cannot be written: {e}.")))
}

/// A hash in JSON, as hex.
pub mod hash_text {
    use super::{Hash, hex, parse_hex};
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes a hash as 64 hex digits.
    pub fn serialize<S: Serializer>(hash: &Hash, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex(hash))
    }

    /// Reads a hash from 64 hex digits.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Hash, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_hex(&text).ok_or_else(|| serde::de::Error::custom("a hash that is not hex"))
    }
}

#[cfg(test)]
mod tests {
    use super::PathText;

    #[test]
    fn paths_are_text_or_bytes_in_hex() {
        for path in [&b"a/b"[..], "計".as_bytes(), b"\xff", b"a\xc3"] {
            let path = PathText(path.to_vec());
            let text = serde_json::to_string(&path).unwrap();
            assert_eq!(serde_json::from_str::<PathText>(&text).unwrap(), path, "{text}");
        }
        for bad in
            ["\\u0000f", "\\u0000+f", "\\u0000fff", "\\u0000 f", "\\u0000gg", "\\u0000é", "\\u000000", "a\\u0000"]
        {
            assert!(serde_json::from_str::<PathText>(&format!("\"{bad}\"")).is_err(), "{bad}");
        }
    }
}
