//! Comparing what our rules say with what the `git` program says: a difference is never silent.

use std::io::{Read, Write};
use std::path::Path;
use std::process::ChildStdin;

use ic_base::{Code, Diagnose, Diagnosis};
use ic_ledger::path_from_bytes;

use super::rules::Judged;
use crate::git::error::GitError;
use crate::git::program::Git;

/// How many names of a difference are listed; further ones are only counted.
const TOLD: usize = 5;

/// Sentences about names of which git says otherwise. Names that git cannot be asked about are one of them.
pub(crate) fn differences(root: &Path, judged: &[Judged]) -> Vec<String> {
    if judged.is_empty() {
        return Vec::new();
    }
    let verdicts = match by_git(root, judged) {
        Ok(verdicts) => verdicts,
        // No warning here: without git, the checkpoint already has one that it lacks git's state.
        Err(GitError::NotRun { .. }) => return Vec::new(),
        Err(error) => {
            return vec![format!("git cannot check the ignore rules: {error}")];
        }
    };
    // What git says about a name that was removed since then does not count.
    let is_there = |one: &Judged| root.join(path_from_bytes(&one.path)).symlink_metadata().is_ok();
    let differing = |by_us: bool| {
        let is_one = move |(one, by_git): &(&Judged, &bool)| one.is_ignored == by_us && **by_git != by_us;
        judged.iter().zip(&verdicts).filter(is_one).map(|(one, _)| one).filter(|one| is_there(one))
    };
    let sentences =
        [(true, "git does not ignore, and the checkpoint lacks"), (false, "git ignores, and the checkpoint holds")];
    sentences
        .iter()
        .filter_map(|(by_us, sentence)| {
            let paths: Vec<_> = differing(*by_us).map(|one| one.path.as_slice()).collect();
            let named: Vec<_> = paths.iter().take(TOLD).map(|path| String::from_utf8_lossy(path)).collect();
            let more = paths.len() - named.len();
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            (!paths.is_empty()).then(|| format!("{sentence}: {}{more}", named.join(", ")))
        })
        .collect()
}

/// What git says of each name, by its rules alone.
fn by_git(root: &Path, judged: &[Judged]) -> Result<Vec<bool>, GitError> {
    // With `--no-index`, git asks the rules alone. With `-v -n` it answers for each name, even where no rule matches.
    const ASK: [&str; 6] = ["check-ignore", "--no-index", "--stdin", "-z", "-v", "-n"];
    // With `./`, because git takes a colon at the beginning for pathspec magic.
    let names: Vec<u8> = judged.iter().flat_map(|one| [b"./", one.path.as_slice(), b"\0"].concat()).collect();
    let mut said = Vec::new();
    let write = |mut stdin: ChildStdin| {
        // If git ends early, its answer is too short, which is noticed below.
        let _ = stdin.write_all(&names);
    };
    let ended = Git::new(root).converse(&ASK, write, |mut stdout| {
        stdout.read_to_end(&mut said).map(drop).while_doing(|| "reading what git ignores".to_owned())
    });
    let fields: Vec<&[u8]> = said.split(|byte| *byte == 0).collect();
    // Its file, line, pattern and name; without a pattern, none matches.
    let verdict = |of: &[&[u8]]| !of[0].is_empty() && !of[2].starts_with(b"!");
    let verdicts: Vec<bool> = fields.chunks_exact(4).map(verdict).collect();
    // Git exits with 1 if it ignores none of them. Its answer is complete anyway, so the length decides and not the status.
    if verdicts.len() == judged.len() {
        Ok(verdicts)
    } else {
        let short = || Diagnosis::new(Code::GitFailed, "git check-ignore: its answer is too short.");
        Err(ended.err().unwrap_or_else(|| short().into()))
    }
}
