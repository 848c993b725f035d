//! Counts the tokens of a prompt, and reads its text, in the record that a client itself keeps of a session, if ic can read that.
//!
//! The path of the record comes from a payload, so it is opened with care: it must be a regular file of this user below the client's own
//! directory. Only the numbers are kept.

use std::fs::{File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ic_dispatch::dispatch::TokenCounts;
use ic_session::clients::{Client, RecordFormat, lines_with};

use crate::environment::directories_of;

/// If a prompt's part of the record is longer, its tokens are not counted: the agent waits for this hook, and a part would give a wrong
/// number.
const LONGEST: u64 = 32 * 1024 * 1024;

/// A client's record of a session, whose path was checked.
pub(crate) struct Transcript {
    /// How it is read; `None`: only its size counts, and copies are made of it.
    format: Option<&'static RecordFormat>,
    path: PathBuf,
}

impl Transcript {
    /// The record at `path`; `None` for a path that is not below the client's directory.
    pub(crate) fn of(client: &'static Client, path: Option<&str>, home: Option<&Path>) -> Option<Self> {
        let path = Path::new(path?);
        // Its directory is compared, because the file itself may not exist before the first prompt.
        let parent = path.parent().and_then(|parent| std::fs::canonicalize(parent).ok());
        // Both sides without links, so that no link in the directory leads elsewhere.
        let is_below = |directory: PathBuf| {
            let directory = std::fs::canonicalize(directory).ok();
            directory.zip(parent.as_ref()).is_some_and(|(directory, parent)| parent.starts_with(directory))
        };
        directories_of(client, home)
            .any(is_below)
            .then(|| Self { format: client.record.as_ref(), path: path.to_owned() })
    }

    /// Its length in bytes; 0 if it does not exist yet, `None` if it is no regular file of this user.
    pub(crate) fn size(&self) -> Option<u64> {
        match self.path.symlink_metadata() {
            Ok(found) => is_own(&found).then_some(found.len()),
            Err(error) => (error.kind() == std::io::ErrorKind::NotFound).then_some(0),
        }
    }

    /// The tokens that were used from byte `start` to its end; `None` if the record was replaced, is too long, or cannot be read.
    pub(crate) fn tokens_since(&self, start: u64) -> Option<TokenCounts> {
        let format = self.format?;
        let (file, length) = self.open_at(start)?;
        if length > LONGEST {
            return None;
        }
        let mut text = Vec::new();
        // No more is read than was measured: the client may append to it now.
        file.take(length).read_to_end(&mut text).ok()?;
        (format.tokens)(&text)
    }

    /// The first texts of a person from byte `start` on; empty if the record was replaced, or cannot be read.
    pub(crate) fn texts_since(&self, start: u64) -> Vec<String> {
        // A prompt comes right after the place where its hook was called, with few lines in between.
        const READ: u64 = 4 * 1024 * 1024;
        let Some(format) = self.format else { return Vec::new() };
        let mut text = Vec::new();
        if self.open_at(start).and_then(|(file, _)| file.take(READ).read_to_end(&mut text).ok()).is_none() {
            return Vec::new();
        }
        // Claude Code writes `"type":"user"`, Codex `"role":"user"`; only such lines are parsed.
        lines_with(&text, b"\"user").filter_map(|line| (format.person_text)(&line)).take(FIRST_TEXTS).collect()
    }

    /// The file that a client writes of a session, for payloads that name none.
    pub(crate) fn file_of(client: &Client, session: &str, home: Option<&Path>) -> Option<PathBuf> {
        let file = client.record_file?.replace("@SESSION@", session);
        Some(directories_of(client, home).next()?.join(file))
    }

    /// Its file, and its whole text; `None` if it is gone, is no regular file of this user, or is longer than what is copied.
    pub(crate) fn whole(&self) -> Option<(&Path, Vec<u8>)> {
        const LONGEST_COPY: u64 = 256 * 1024 * 1024;
        let (file, length) = self.open_at(0)?;
        let mut text = Vec::new();
        file.take(LONGEST_COPY).read_to_end(&mut text).ok()?;
        (length <= LONGEST_COPY).then_some((&self.path, text))
    }

    /// The record from byte `start` on, and the number of bytes to its end.
    fn open_at(&self, start: u64) -> Option<(File, u64)> {
        let mut file = File::options().read(true).custom_flags(NO_FOLLOW).open(&self.path).ok()?;
        let found = file.metadata().ok()?;
        // A shorter file was replaced or cut since `start` was noted.
        let length = found.len().checked_sub(start)?;
        // Checked again on the open file: another one may have taken its place since the hook before.
        if !is_own(&found) {
            return None;
        }
        file.seek(SeekFrom::Start(start)).ok()?;
        Some((file, length))
    }
}

/// The most texts of a person that are looked at: a client adds some of its own, such as the state of its editor.
const FIRST_TEXTS: usize = 20;

// A link in the place of the record is not followed, and opening a pipe does not block the hook.
const NO_FOLLOW: i32 = (rustix::fs::OFlags::NOFOLLOW.bits() | rustix::fs::OFlags::NONBLOCK.bits()).cast_signed();

fn is_own(found: &Metadata) -> bool {
    found.is_file() && found.uid() == rustix::process::getuid().as_raw()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn only_a_file_of_the_clients_own_directory_is_read() {
        let home = tempfile::tempdir().expect("a directory");
        let below = home.path().join(".claude/projects/shop");
        std::fs::create_dir_all(&below).expect("directories");
        let named = |name| Client::parse(name).expect("a client");
        let of = |path: &Path| Transcript::of(named("claude-code"), path.to_str(), Some(home.path()));
        let own = of(&below.join("s.jsonl")).expect("a record");
        assert_eq!((own.size(), own.tokens_since(0)), (Some(0), None), "it is not there yet");
        let line = r#"{"message":{"id":"a","usage":{"input_tokens":1,"output_tokens":2}}}"#;
        let mut file = File::create(below.join("s.jsonl")).expect("a record");
        writeln!(file, "{line}").expect("a line");
        let size = own.size().expect("a size");
        assert_eq!(own.tokens_since(0), Some(TokenCounts { input: 1, output: 2, cache: 0 }));
        assert_eq!(own.tokens_since(size), Some(TokenCounts::default()));
        assert_eq!(own.tokens_since(size + 1), None, "it was cut");
        let secret = home.path().join("secret.jsonl");
        std::fs::write(&secret, line).expect("a file elsewhere");
        assert!(of(&secret).is_none() && of(&below.join("../../../secret.jsonl")).is_none());
        std::os::unix::fs::symlink(&secret, below.join("link.jsonl")).expect("a link");
        let through = of(&below.join("link.jsonl")).expect("its directory is right");
        assert_eq!((through.size(), through.tokens_since(0)), (None, None));
        assert!(Transcript::of(named("gemini"), below.join("s.jsonl").to_str(), Some(home.path())).is_none());
        let whole = own.whole().expect("a text").1;
        assert_eq!(whole, format!("{line}\n").into_bytes());
        let copilot = Transcript::file_of(named("copilot"), "s-1", Some(home.path()));
        assert_eq!(copilot, Some(home.path().join(".copilot/session-state/s-1/events.jsonl")));
    }
}
