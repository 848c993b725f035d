//! `.git/info/exclude`: makes git and captures ignore the settings that hooks are installed in. They belong to this machine and are no work
//! of an agent. If captures included them, an undo would restore hooks that were uninstalled since.

use std::fs;
use std::path::{Path, PathBuf};

use ic_base::{Diagnose, Result};
use ic_session::clients::Client;

use super::file::{copy_of, replace};

/// The file of a client that is ignored.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Excluded {
    /// The settings that contain its hooks.
    Hooks(&'static Client),
    /// The settings that contain its MCP servers.
    Servers(&'static Client),
}

impl Excluded {
    fn file(self) -> &'static str {
        match self {
            Self::Hooks(client) => client.hook_files[0],
            Self::Servers(client) => client.server_files[0],
        }
    }

    fn title(self) -> String {
        match self {
            Self::Hooks(client) => format!("ic hooks install {}", client.name),
            Self::Servers(client) => format!("ic install {}", client.name),
        }
    }

    /// Whether the whole file is ours, so that no copy of a former one exists.
    fn has_no_copy(self) -> bool {
        matches!(self, Self::Hooks(client) if client.script.is_some())
    }
}

/// The exclude file of a project, before and after a change of the lines for one client.
pub(crate) struct Exclude {
    file: PathBuf,
    before: Vec<u8>,
    after: Vec<u8>,
    /// Whether the settings are ignored, and not only the copy of their former content.
    pub(crate) covers_settings: bool,
}

impl Exclude {
    /// Adds our lines, once. `None` outside of git. If git tracks the settings they are captured anyway, so only the copy is ignored.
    pub(crate) fn with(root: &Path, what: Excluded) -> Option<Self> {
        let dirs = ic_ledger::git_dirs(root)?;
        // If the index cannot be read, the settings count as tracked: fewer files are ignored then.
        let is_tracked = ic_ledger::git_tracks(&dirs, what.file().as_bytes()).unwrap_or(true);
        if is_tracked && what.has_no_copy() {
            return None;
        }
        // The file is in the common directory: git reads one exclude file for all work trees of a repository.
        let mut exclude = Self::read(&dirs.common_dir.join("info/exclude"))?;
        exclude.covers_settings = !is_tracked;
        let [all, copy] = lines(what);
        let is_there = |lines: &[u8]| find(&exclude.after, lines).is_some();
        let lines = if is_tracked { copy } else { all.clone() };
        // Either text may be there: git may have begun or ceased to track the settings since an earlier installation.
        if !is_there(&all) && !is_there(&lines) {
            if !exclude.after.is_empty() && !exclude.after.ends_with(b"\n") {
                exclude.after.push(b'\n');
            }
            exclude.after.extend_from_slice(&lines);
        }
        Some(exclude)
    }

    /// Removes exactly our lines. `None` if there are none.
    pub(crate) fn without(root: &Path, what: Excluded) -> Option<Self> {
        let dirs = ic_ledger::git_dirs(root)?;
        let mut exclude = Self::read(&dirs.common_dir.join("info/exclude"))?;
        for lines in lines(what) {
            if let Some(at) = find(&exclude.after, &lines) {
                exclude.after.drain(at..at + lines.len());
            }
        }
        (exclude.after != exclude.before).then_some(exclude)
    }

    fn read(file: &Path) -> Option<Self> {
        let before = match fs::symlink_metadata(file) {
            Ok(found) if found.is_file() => fs::read(file).ok()?,
            // A link or a directory in its place is not ours to replace.
            Ok(_) => return None,
            Err(_) => Vec::new(),
        };
        Some(Self { file: file.to_owned(), after: before.clone(), before, covers_settings: false })
    }

    /// Writes it, all or nothing.
    pub(crate) fn write(&self) -> Result<()> {
        use std::os::unix::fs::PermissionsExt as _;

        // Other users of a shared repository read it, too.
        const USUAL: u32 = 0o644;
        if self.after == self.before {
            return Ok(());
        }
        let mode = fs::metadata(&self.file).map_or(USUAL, |found| found.permissions().mode());
        replace(&self.file, &self.after, Some(mode)).while_doing(|| format!("writing {}", self.file.display()))
    }
}

/// Our lines: one text for the settings and their copy, and one for the copy alone.
fn lines(what: Excluded) -> [Vec<u8>; 2] {
    // For the hooks of one client:
    //
    //     # ic hooks install claude-code
    //     /.claude/settings.local.json
    //     /.claude/settings.local.json.before-ic
    let settings = what.file();
    let (title, copy) = (format!("# {}\n", what.title()), copy_of(Path::new(settings)));
    let copy = copy.display();
    [format!("{title}/{settings}\n/{copy}\n"), format!("{title}/{copy}\n")].map(String::into_bytes)
}

/// The position of these whole lines in a text.
fn find(text: &[u8], lines: &[u8]) -> Option<usize> {
    let is_begin = |at: &usize| *at == 0 || text[at - 1] == b'\n';
    (0..text.len()).filter(is_begin).find(|at| text[*at..].starts_with(lines))
}
