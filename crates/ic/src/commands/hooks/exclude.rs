//! `.git/info/exclude`: the settings that hooks are installed in say how this machine is set up. They are no work of an agent, so captures
//! leave them out as git does: an undo does not bring hooks back that were uninstalled since.

use std::fs;
use std::path::{Path, PathBuf};

use ic_base::{Diagnose, Result};

use super::settings::{copy_of, replace};
use crate::clients::Client;

/// A project's lines for one client: where they stand, and what is to stand there.
pub(super) struct Exclude {
    file: PathBuf,
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Exclude {
    /// With our lines, once. `None` outside of git, and where git tracks the file: what is tracked is captured whatever is excluded.
    pub(super) fn with(root: &Path, client: Client) -> Option<Self> {
        let dirs = ic_store::git_dirs(root)?;
        let [settings, _] = client.settings();
        if ic_store::git_tracks(&dirs, settings.as_bytes()).unwrap_or(true) {
            return None;
        }
        let mut exclude = Self::read(&dirs.common_dir.join("info/exclude"))?;
        let lines = lines(client);
        if find(&exclude.after, &lines).is_none() {
            if !exclude.after.is_empty() && !exclude.after.ends_with(b"\n") {
                exclude.after.push(b'\n');
            }
            exclude.after.extend_from_slice(&lines);
        }
        Some(exclude)
    }

    /// Without exactly our lines. `None` where there are none.
    pub(super) fn without(root: &Path, client: Client) -> Option<Self> {
        let dirs = ic_store::git_dirs(root)?;
        let mut exclude = Self::read(&dirs.common_dir.join("info/exclude"))?;
        let lines = lines(client);
        let at = find(&exclude.after, &lines)?;
        exclude.after.drain(at..at + lines.len());
        Some(exclude)
    }

    fn read(file: &Path) -> Option<Self> {
        let before = match fs::symlink_metadata(file) {
            Ok(found) if found.is_file() => fs::read(file).ok()?,
            Ok(_) => return None,
            Err(_) => Vec::new(),
        };
        Some(Self { file: file.to_owned(), after: before.clone(), before })
    }

    /// Writes it, all or nothing.
    pub(super) fn write(&self) -> Result<()> {
        use std::os::unix::fs::PermissionsExt as _;

        const USUAL: u32 = 0o644;
        if self.after == self.before {
            return Ok(());
        }
        let mode = fs::metadata(&self.file).map_or(USUAL, |found| found.permissions().mode());
        replace(&self.file, &self.after, Some(mode))
            .while_doing(|| format!("writing {}", self.file.display()))
    }
}

/// Our lines: the settings, and the copy of what was there before.
fn lines(client: Client) -> Vec<u8> {
    let [settings, _] = client.settings();
    let copy = copy_of(Path::new(settings));
    format!("# ic hooks install {}\n/{settings}\n/{}\n", client.as_str(), copy.display()).into_bytes()
}

/// Where these whole lines stand.
fn find(text: &[u8], lines: &[u8]) -> Option<usize> {
    let is_begin = |at: &usize| *at == 0 || text[at - 1] == b'\n';
    (0..text.len()).filter(is_begin).find(|at| text[*at..].starts_with(lines))
}
