//! Filters: commands that git runs on the content of files, as their attributes say. `git status` runs them too.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;

use ic_store::GitDirs;
use ic_store::trust::open_regular;

use super::program::Git;

/// Most configurations are far shorter; of a longer one git is asked.
const LONGEST: u64 = 1 << 20;

/// The names of the filters that the repository's own configuration defines; those of the user's are theirs.
///
/// Where git cannot say, there are none: it then runs nothing else either.
pub(crate) fn own(git: &Git<'_>, dirs: &GitDirs) -> Vec<OsString> {
    let may_define =
        [dirs.common_dir.join("config"), dirs.git_dir.join("config.worktree")].iter().any(|path| {
            let mut text = Vec::new();
            let read = open_regular(path).and_then(|file| file.take(LONGEST).read_to_end(&mut text));
            text.make_ascii_lowercase();
            let says = |word: &[u8]| text.windows(word.len()).any(|window| window == word);
            read.is_ok() && (text.len() as u64 == LONGEST || says(b"filter") || says(b"include"))
        });
    if !may_define {
        return Vec::new();
    }
    let listed = git.run(&["config", "--list", "--name-only", "--show-scope", "-z"]).unwrap_or_default();
    let mut words = listed.split(|byte| *byte == 0);
    let mut names = BTreeSet::new();
    while let (Some(scope), Some(key)) = (words.next(), words.next()) {
        let name = key.strip_prefix(b"filter.").and_then(|rest| {
            let end = rest.iter().rposition(|byte| *byte == b'.')?;
            Some(&rest[..end])
        });
        if let (b"local" | b"worktree", Some(name)) = (scope, name) {
            names.insert(OsString::from_vec(name.to_vec()));
        }
    }
    names.into_iter().collect()
}
