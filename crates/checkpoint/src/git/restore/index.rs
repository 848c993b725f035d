//! The index: edited in a copy, so that what is known of unchanged files is not lost, and put into its place under git's
//! own lock.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnose, Diagnosis, Result};
use ic_ledger::path_from_bytes;

use super::super::index::{self, IndexLine, OfPath};
use super::super::program::Git;
use super::super::safe_settings::Filters;
use super::super::state::GitState;
use super::change::{busy, dirs, locked};
use crate::objects::Objects;

/// What an index.lock of ours holds, so that one that a killed restore left is known. The lock of the root, which every
/// restore holds, tells that it is not in use.
pub(crate) const LOCK_MARK: &str = "ic: restore checkpoint\n";

/// Whether a restore that was killed left this lock.
pub(super) fn is_left_behind(lock: &Path) -> bool {
    fs::read(lock).is_ok_and(|text| text == LOCK_MARK.as_bytes())
}

/// Removes the lock of the index that a restore left which was killed, whatever is left to do of that: git would take it for its own.
///
/// The caller holds the lock of the root alone, so no restore has it.
pub fn clear_own_lock(root: &Path) -> Result<()> {
    let Some(dirs) = ic_ledger::git_dirs(root) else { return Ok(()) };
    let lock = dirs.git_dir.join("index.lock");
    if !is_left_behind(&lock) {
        return Ok(());
    }
    fs::remove_file(&lock).while_doing(|| format!("removing {}", lock.display()))
}

/// Errors: `git_busy` if the index is neither the current nor the target's.
pub(super) fn expect(git: &Git<'_>, target: &GitState, current: &GitState, objects: &Objects) -> Result<()> {
    if index::found_in(git, [current, target], objects)?.is_some() {
        return Ok(());
    }
    Err(busy("another git command has changed the index"))
}

/// Makes the index what it was, and lets it look at the files, which are restored already. Returns whether each of them was what it has.
///
/// The caller holds the lock of the root. Errors: `git_busy` if another command holds the index, or changed it since the
/// plan: it is not changed then.
pub fn apply_index(root: &Path, target: &GitState, current: &GitState, objects: &Objects) -> Result<bool> {
    let dirs = dirs(root)?;
    let git = Git::new(root);
    if target.index != current.index {
        // Git runs in the root, and would look for a relative path of the copy from there.
        let git_dir = std::path::absolute(&dirs.git_dir).while_doing(|| "finding the index".to_owned())?;
        // The lock is taken before the comparison: from here on, no git changes the index that is compared.
        let lock = IndexLock::take(&git_dir)?;
        replace(&git, &git_dir, target, current, objects)?;
        // `update-index` takes the same lock.
        drop(lock);
    }
    // This runs the user's filters, as their own `git status` does: then a file that only git-lfs makes equal is unchanged.
    let git = Git::with(root, Filters::Users);
    Ok(may_refresh(&git)? && refresh(&git))
}

/// Without a filter that git would run, a file may seem to be what the index has though it is not. Git then finds out by itself when it is
/// asked for its status.
fn may_refresh(git: &Git<'_>) -> Result<bool> {
    Ok(!git.is_without_filters()?)
}

/// Lets the index look at the files; whether none of them differs. Those that do are not a failure: they are what the index is for.
fn refresh(git: &Git<'_>) -> bool {
    git.run(&["update-index", "--refresh"]).is_ok()
}

/// Lets git look into those of these files that are not as long as its index says, where the tree is meant to be as the index has it. It
/// takes each of them for changed without a look, though only how its lines end may differ, which it converts.
///
/// The caller holds the lock of the root. What fails here fails for git, too, which then says that they are changed. Returns whether no
/// file differs then from what the index has; `None` where there was nothing to look into.
pub fn look_again(root: &Path, paths: &BTreeSet<Vec<u8>>) -> Option<bool> {
    let git = Git::with(root, Filters::Users);
    let other = index::of_other_length(&git, paths);
    if other.is_empty() || !may_refresh(&git).unwrap_or(false) {
        return None;
    }
    // An entry that is set anew has no stat, so git has to look into its file.
    let again = git.run_with(&["update-index", "-z", "--index-info"], &index::info(&git, &other));
    Some(again.is_ok() && refresh(&git))
}

fn replace(git: &Git<'_>, git_dir: &Path, target: &GitState, current: &GitState, objects: &Objects) -> Result<()> {
    match index::found_in(git, [current, target], objects)? {
        Some(found) if found.index == current.index => {}
        // A restore that was interrupted has replaced it.
        Some(_) => return Ok(()),
        None => return Err(busy("another git command has changed the index")),
    }
    let (wanted, expected) = (index::read(objects, target.index)?, index::read(objects, current.index)?);
    on_copy(git_dir, |path, scratch| {
        let copy = Git { index: Some(path), ..git.clone() };
        edit(&copy, git_dir, scratch, &expected, &wanted)?;
        // The copy is read back before it replaces the index. It has to be the target, so the target is given for both states.
        if index::found_in(&copy, [target, target], objects)?.is_none() {
            return Err(Diagnosis::new(Code::GitFailed, "Git refuses the recorded index; the index is unchanged.")
                .hint("restore the files alone: ic checkpoint restore ID --strategy files-only --yes"));
        }
        Ok(())
    })
}

/// Edits single entries of the index, and lets it look at the files. `input` gets what the index lists, and gives what
/// `git update-index --index-info` is to read; nothing: the index stays.
///
/// The caller holds the lock of the root. Errors: `git_busy` if another command holds the index; `git_failed`.
pub(super) fn edit_index(root: &Path, input: impl FnOnce(&[u8]) -> Vec<u8>) -> Result<()> {
    let git = Git::new(root);
    let git_dir = std::path::absolute(&dirs(root)?.git_dir).while_doing(|| "finding the index".to_owned())?;
    let lock = IndexLock::take(&git_dir)?;
    let input = input(&index::listing(&git)?);
    if input.is_empty() {
        return Ok(());
    }
    on_copy(&git_dir, |path, _| {
        let copy = Git { index: Some(path), ..git.clone() };
        copy.run_with(&["update-index", "-z", "--index-info"], &input)?;
        Ok(())
    })?;
    drop(lock);
    let git = Git::with(root, Filters::Users);
    if may_refresh(&git)? {
        refresh(&git);
    }
    Ok(())
}

/// Makes a copy of the index, lets `edit` change it, which gets its path and that of an empty directory, and puts it into its place.
fn on_copy(git_dir: &Path, edit: impl FnOnce(&Path, &Path) -> Result<()>) -> Result<()> {
    index::clear_left_behind(git_dir);
    let doing = || format!("making an index in {}", git_dir.display());
    // In the git directory, so that the rename at the end stays within one file system.
    let made = tempfile::Builder::new().prefix(index::SCRATCH).tempdir_in(git_dir).while_doing(doing)?;
    ic_ledger::private::mend(made.path()).while_doing(doing)?;
    // Locked until this process ends, in whatever way: another restore removes a directory whose owner's file is not locked.
    let owner = File::create_new(made.path().join(index::OWNER)).while_doing(doing)?;
    owner.lock().while_doing(doing)?;
    let path = made.path().join("index");
    match fs::copy(git_dir.join("index"), &path) {
        Err(e) if e.kind() == ErrorKind::NotFound => {}
        copied => copied.map(|_| ()).while_doing(|| "copying the index".to_owned())?,
    }
    edit(&path, made.path())?;
    // Where there was no index and nothing is added to it, git makes no file.
    if path.exists() {
        fs::rename(&path, git_dir.join("index")).while_doing(|| "replacing the index".to_owned())?;
    }
    Ok(())
}

/// Git's lock of the index, held until it is dropped.
struct IndexLock(PathBuf);

impl IndexLock {
    /// Errors: `git_busy` if another process has the lock.
    fn take(git_dir: &Path) -> Result<Self> {
        let path = git_dir.join("index.lock");
        // As git itself takes this lock: of two that create the file, one succeeds.
        match File::options().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                // `lock` owns the file before the mark is written: if that fails, the drop removes the file, which would have no mark.
                let lock = Self(path);
                file.write_all(LOCK_MARK.as_bytes()).while_doing(|| "locking the index".to_owned())?;
                Ok(lock)
            }
            // Every restore holds the lock of the root, and the caller has it now: the restore that wrote the mark is dead.
            Err(e) if e.kind() == ErrorKind::AlreadyExists && is_left_behind(&path) => Ok(Self(path)),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => Err(locked("the index", &path)),
            Err(e) => Err(e).while_doing(|| format!("locking {}", path.display())),
        }
    }
}

impl Drop for IndexLock {
    fn drop(&mut self) {
        // When it cannot be removed, git itself will name it.
        let _ = fs::remove_file(&self.0);
    }
}

/// What an index holds of a path.
#[derive(PartialEq, Eq)]
struct Held<'t> {
    /// One entry, or up to three of a conflict.
    entries: Vec<&'t str>,
    /// It is only intended to be added.
    is_intended: bool,
    is_skipped: bool,
}

impl<'t> Held<'t> {
    fn of(path: &OfPath<'t>, intended: &BTreeSet<&[u8]>) -> Self {
        let lines: Vec<IndexLine<'t>> = path.lines().collect();
        Self {
            is_intended: intended.contains(path.path),
            is_skipped: lines.iter().any(IndexLine::is_skipped),
            entries: lines.into_iter().map(|line| line.meta).collect(),
        }
    }
}

/// What an index holds of some paths.
type Entries<'t> = BTreeMap<&'t [u8], Held<'t>>;

/// What two indexes hold of the paths of which they hold something else.
fn differing<'t>(old: &'t [u8], new: &'t [u8]) -> (Entries<'t>, Entries<'t>) {
    let ((old, was_intended), (new, intended)) = (index::by_path(old), index::by_path(new));
    let was_intended: BTreeSet<&[u8]> = was_intended.into_iter().collect();
    let intended: BTreeSet<&[u8]> = intended.into_iter().collect();
    let (mut before, mut after) = (Entries::new(), Entries::new());
    let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
    // Both are in the order of git: by the bytes of the paths.
    while let Some(path) = [old.peek(), new.peek()].into_iter().flatten().map(|of| of.path).min() {
        let (was, is) = (old.next_if(|of| of.path == path), new.next_if(|of| of.path == path));
        if was == is && was_intended.contains(path) == intended.contains(path) {
            continue;
        }
        let was = was.map(|of| Held::of(of, &was_intended));
        let is = is.map(|of| Held::of(of, &intended));
        // The same text but for what is assumed is no other entry.
        if was != is {
            before.extend(was.map(|was| (path, was)));
            after.extend(is.map(|is| (path, is)));
        }
    }
    (before, after)
}

/// Makes an index that holds `old` hold `new`.
fn edit(git: &Git<'_>, git_dir: &Path, scratch: &Path, old: &[u8], new: &[u8]) -> Result<()> {
    let (before, after) = differing(old, new);
    let mut input = Vec::new();
    let mut put = |entry: &str, path: &[u8]| {
        input.extend_from_slice(entry.as_bytes());
        input.push(b'\t');
        input.extend_from_slice(path);
        input.push(0);
    };
    // All that goes goes first: a file may have come where a directory was.
    for (path, held) in &before {
        let Some(entry) = held.entries.first() else { continue };
        let oid = entry.split(' ').nth(1).unwrap_or_default();
        // Mode 0 takes a path out, with all stages of a conflict.
        put(&format!("0 {}", "0".repeat(oid.len())), path);
    }
    for (path, held) in after.iter().filter(|(_, held)| !held.is_intended) {
        held.entries.iter().for_each(|entry| put(entry, path));
    }
    if !input.is_empty() {
        git.run_with(&["update-index", "-z", "--index-info"], &input)?;
    }
    intend(git, git_dir, &scratch.join("tree"), after.iter().filter(|(_, held)| held.is_intended))?;
    let assumed = |text| index::lines_with(text, |entry| entry.first().is_some_and(u8::is_ascii_lowercase));
    let is_touched = |path| before.contains_key(path) || after.contains_key(path);
    // An entry that was written anew has lost the flag already. It is removed only from untouched entries.
    let was: BTreeSet<&[u8]> = assumed(old).map(|line| line.path).filter(|path| !is_touched(*path)).collect();
    let is: BTreeSet<&[u8]> = assumed(new).map(|line| line.path).collect();
    mark(git, "--no-assume-unchanged", was.difference(&is))?;
    mark(git, "--assume-unchanged", is.difference(&was))?;
    // The flag is part of what is compared, so an untouched entry has it already or is not to have it.
    mark(git, "--skip-worktree", after.iter().filter(|(_, held)| held.is_skipped).map(|(path, _)| path))
}

fn mark<'p>(git: &Git<'_>, flag: &str, paths: impl Iterator<Item = &'p &'p [u8]>) -> Result<()> {
    let input: Vec<u8> = paths.flat_map(|path| path.iter().copied().chain([0])).collect();
    if input.is_empty() {
        return Ok(());
    }
    git.run_with(&["update-index", "-z", flag, "--stdin"], &input)?;
    Ok(())
}

/// Intends to add files, of which git wants to see that they are there: in a tree that holds nothing else, whatever
/// became of those in the work tree.
fn intend<'l>(
    git: &Git<'_>,
    git_dir: &Path,
    tree: &Path,
    intended: impl Iterator<Item = (&'l &'l [u8], &'l Held<'l>)>,
) -> Result<()> {
    let mut paths = Vec::new();
    for (name, held) in intended {
        let Some(bits) = held.entries.first().and_then(|entry| entry.get(..6)) else { continue };
        let path = tree.join(path_from_bytes(name));
        // `add -N` records the kind of a file and no content: the files are empty, and a link leads nowhere.
        let made = fs::create_dir_all(path.parent().unwrap_or(tree)).and_then(|()| match bits {
            "120000" => symlink("nowhere", &path),
            mode => {
                let mode = if mode == "100755" { 0o755 } else { 0o644 };
                File::create(&path).and_then(|file| file.set_permissions(fs::Permissions::from_mode(mode)))
            }
        });
        made.while_doing(|| format!("making {}", path.display()))?;
        paths.extend_from_slice(name);
        paths.push(0);
    }
    if paths.is_empty() {
        return Ok(());
    }
    let git = Git { root: tree, repository: Some(git_dir), ..git.clone() };
    let add = ["add", "-N", "-f", "--pathspec-from-file=-", "--pathspec-file-nul"];
    // The user's settings may tell git to believe neither modes nor links of the file system.
    let exact = ["--literal-pathspecs", "-c", "core.fileMode=true", "-c", "core.symlinks=true"];
    git.run_with(&[&exact[..], &add[..]].concat(), &paths)?;
    Ok(())
}
