//! What was done to what is checked out, as git's log of HEAD has it: each line names the commit before, the commit after, and what moved
//! it.
//!
//! It tells commits that were made here from those that a switch, a pull or a merge that needed none brought, on whichever branch they are
//! by now.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use ic_ledger::regular_file::open_regular;

/// What the log says of a restore of this program.
pub(super) const REFLOG: &str = "ic: restore checkpoint";

/// No more of the log is read: some ten thousand moves.
const MOST: u64 = 2 << 20;

/// How long git's log of HEAD is, in bytes. `None` where git keeps none as a file.
pub fn log_size(root: &Path) -> Option<u64> {
    std::fs::metadata(log_of_head(root)?).ok().filter(std::fs::Metadata::is_file).map(|file| file.len())
}

/// The commits that were made in this working tree since its log was so long, oldest first, and are not dropped again. `None`: the log does
/// not say, because there is none, or because it was written anew.
pub fn committed_since(root: &Path, size: u64) -> Option<Vec<String>> {
    let mut file = open_regular(&log_of_head(root)?).ok()?;
    let now = file.metadata().ok()?.len();
    // If the log is shorter than it was, or no line ends at the old length, it was written anew, and the length says nothing about it.
    if now < size || now - size > MOST || !ends_a_line(&mut file, size) {
        return None;
    }
    file.seek(SeekFrom::Start(size)).ok()?;
    let mut text = Vec::new();
    file.take(MOST).read_to_end(&mut text).ok()?;
    let made: Vec<String> = text.split(|b| *b == b'\n').filter_map(made_by).collect();
    Some(super::commits::still_reached(root, made))
}

/// The commits that `git commit` made of what lay in this working tree, and where the log has each, in bytes from its beginning: what has a
/// smaller number came first. As far as the last of the log tells; `None` without a log, or if it was written anew since it was so long.
pub fn took_from_tree(root: &Path, since: u64) -> Option<BTreeMap<String, u64>> {
    let mut file = open_regular(&log_of_head(root)?).ok()?;
    if file.metadata().ok()?.len() < since || !ends_a_line(&mut file, since) {
        return None;
    }
    let (mut at, text) = last_of(file)?;
    let mut taken = BTreeMap::new();
    for line in text.split_inclusive(|b| *b == b'\n') {
        let is_commit = |message: &[u8]| message.starts_with(b"\tcommit");
        let message = line.iter().position(|b| *b == b'\t').map(|tab| &line[tab..]);
        if let Some(made) = made_by(line).filter(|_| message.is_some_and(is_commit)) {
            taken.insert(made, at);
        }
        at += line.len() as u64;
    }
    Some(taken)
}

/// The moves of what is checked out by restores of this program, since the log was so long: the commits before each and after it.
pub fn restored_since(root: &Path, since: u64) -> Vec<[String; 2]> {
    moves_since(root, since, |message| message == REFLOG)
}

/// The moves by which commits were made here or came onto what was checked out, since the log was so long: the commits before each and after
/// it. A switch and a reset are none of them, because they replace what is checked out.
pub fn advanced_since(root: &Path, since: u64) -> Vec<[String; 2]> {
    let replace = [REFLOG, "checkout", "reset"];
    moves_since(root, since, |message| !replace.iter().any(|deed| message.starts_with(deed)))
}

fn moves_since(root: &Path, since: u64, counts: impl Fn(&str) -> bool) -> Vec<[String; 2]> {
    let log = log_of_head(root).and_then(|log| last_of(open_regular(&log).ok()?));
    let (start, text) = log.unwrap_or_default();
    let from = usize::try_from(since.saturating_sub(start)).unwrap_or(usize::MAX);
    let lines = text.get(from..).unwrap_or_default().split(|b| *b == b'\n').filter_map(parsed);
    lines.filter(|(_, message)| counts(&String::from_utf8_lossy(message))).map(|(ends, _)| ends).collect()
}

/// The commits to which a pull, a merge, a switch or a reset moved what is checked out, as far as the last of the log tells: they may have
/// brought commits that were not made here.
pub fn moved_to(root: &Path) -> BTreeSet<String> {
    let text = log_of_head(root).and_then(|log| last_of(open_regular(&log).ok()?)).map(|(_, text)| text);
    let moved = |line| {
        let ([_, after], message) = parsed(line)?;
        let deeds = ["pull", "merge", "checkout", "reset", "rebase"];
        deeds.iter().any(|deed| message.starts_with(deed.as_bytes())).then_some(after)
    };
    text.unwrap_or_default().split(|b| *b == b'\n').filter_map(moved).collect()
}

/// The end of a log, and where in the log it begins.
fn last_of(mut file: File) -> Option<(u64, Vec<u8>)> {
    let start = file.metadata().ok()?.len().saturating_sub(MOST);
    file.seek(SeekFrom::Start(start)).ok()?;
    let mut text = Vec::new();
    file.take(MOST).read_to_end(&mut text).ok()?;
    Some((start, text))
}

fn log_of_head(root: &Path) -> Option<PathBuf> {
    Some(ic_ledger::git_dirs(root)?.git_dir.join("logs/HEAD"))
}

/// Git writes whole lines. What was written anew by an expiry may have any byte here.
fn ends_a_line(file: &mut std::fs::File, size: u64) -> bool {
    let mut last = [b'\n'];
    let Some(before) = size.checked_sub(1) else { return true };
    file.seek(SeekFrom::Start(before)).and_then(|_| file.read_exact(&mut last)).is_ok() && last == [b'\n']
}

/// The commits before and after a line of the log, and its message.
fn parsed(line: &[u8]) -> Option<([String; 2], &[u8])> {
    // `OLD NEW NAME <MAIL> SECONDS ZONE`, a tab, the message.
    let (moved, message) = line.split_at(line.iter().position(|b| *b == b'\t')?);
    let mut ids = moved.split(|b| *b == b' ').map(|id| String::from_utf8_lossy(id).into_owned());
    Some(([ids.next()?, ids.next()?], &message[1..]))
}

/// The commit that a line of the log says was made.
fn made_by(line: &[u8]) -> Option<String> {
    let ([before, after], message) = parsed(line)?;
    let message = String::from_utf8_lossy(message).into_owned();
    // `commit (amend): add a login`: what was done is before the colon, and its first word decides.
    let (deed, what) = message.split_once(": ").unwrap_or((&message, ""));
    let is_made = match deed.split(' ').next().unwrap_or_default() {
        "commit" | "cherry-pick" | "revert" | "am" => true,
        // Its steps, and neither its start nor its end.
        "rebase" => is_step(deed),
        // A fast-forward only moved the branch, and made no commit.
        "merge" => !what.starts_with("Fast-forward"),
        "pull" => is_step(deed) || what.starts_with("Merge made"),
        _ => false,
    };
    let is_id = after.len() >= 40 && after.bytes().all(|b| b.is_ascii_hexdigit());
    (is_made && is_id && before != after).then_some(after)
}

/// Whether a rebase made a commit: `rebase (pick)`, `rebase -i (squash)`, `pull --rebase origin main (pick)`.
fn is_step(deed: &str) -> bool {
    const NONE: [&str; 5] = ["(start)", "(finish)", "(abort)", "(reset)", "(label)"];
    deed.rsplit(' ').next().is_some_and(|last| last.starts_with('(') && !NONE.contains(&last))
}

#[cfg(test)]
mod tests {
    use super::made_by;

    #[test]
    fn commits_are_told_from_moves() {
        const OLD: &str = "1111111111111111111111111111111111111111";
        const NEW: &str = "2222222222222222222222222222222222222222";
        let made = |message: &str| {
            let line = format!("{OLD} {NEW} Ann <ann@example.org> 1700000000 +0000\t{message}");
            made_by(line.as_bytes()).is_some()
        };
        for message in [
            "commit: add a login",
            "commit (initial): base",
            "commit (amend): add a login",
            "commit (merge): Merge branch 'other'",
            "cherry-pick: fix",
            "revert: fix",
            "am: fix",
            "rebase (pick): fix",
            "rebase -i (squash): fix",
            "rebase (continue): fix",
            "pull --rebase origin main (pick): fix",
            "pull: Merge made by the 'ort' strategy.",
            "merge other: Merge made by the 'ort' strategy.",
        ] {
            assert!(made(message), "{message}");
        }
        for message in [
            "checkout: moving from main to fix",
            "reset: moving to HEAD~1",
            "merge origin/main: Fast-forward",
            "pull --ff-only: Fast-forward",
            "pull: Fast-forward",
            "rebase (start): checkout main",
            "rebase (finish): returning to refs/heads/fix",
            "rebase (abort): returning to refs/heads/fix",
            "pull --rebase (start): checkout 1111",
            "clone: from /srv/shop.git",
            "Branch: renamed refs/heads/a to refs/heads/b",
            "",
        ] {
            assert!(!made(message), "{message}");
        }
        assert_eq!(made_by(b"cut off"), None);
    }
}
