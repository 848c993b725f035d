//! Taking the content of a path out of all that checkpoints keep, and naming what is out of reach.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use ic_base::{CheckpointId, Code, Diagnosis, Result, shell_word};
use ic_checkpoint::diff::{self, DiffState};
use ic_checkpoint::git::{self, GitState, Unreachable};
use ic_checkpoint::manifest::CheckpointManifest;
use ic_checkpoint::objects::TakenOut;
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_checkpoint::{capture, scratch};
use ic_ledger::events::{EventType, Hash, NewEvent};
use ic_ledger::{path_bytes, path_from_bytes};
use ic_session::outside_files::{self, OutsideFile};
use serde_json::json;

use super::repair;
use super::skipped_files::digest_of;
use super::workspace::Workspace;

/// What a purge took out.
#[derive(Debug)]
pub struct Purged {
    /// The purged path, from the root; absolute if it lies outside.
    pub path: Vec<u8>,
    /// How many objects of the store are gone.
    pub objects: u64,
    /// Bytes that went with it, uncompressed, because no checkpoint needs them: what was pruned before may be among them.
    pub unneeded_bytes: u64,
    /// The checkpoints that held it.
    pub checkpoints: Vec<CheckpointId>,
    /// Other paths with the same content, from the root, or whole where they lie in another: it is gone there, too.
    pub shared: Vec<Vec<u8>>,
    /// Objects of git's that were taken out, by their names there.
    pub git_objects: Vec<String>,
    /// How many packs of git's objects were written anew without them.
    pub packs: usize,
    /// Refs below `refs/ic/` that reached them and were removed.
    pub refs: Vec<String>,
    /// Where the content still is, out of reach.
    pub left: Vec<Unreachable>,
}

/// What a path had in checkpoints.
#[derive(Default)]
struct Held {
    /// Every content but the empty one, which is no secret and which many paths have.
    contents: HashSet<Hash>,
    /// Pieces of large ones.
    pieces: HashSet<Hash>,
    /// Those of them that another content has, too.
    needed: HashSet<Hash>,
    holders: Vec<CheckpointId>,
    /// The checkpoints in which it is a symbolic link: where that leads is part of a directory, which no purge takes out.
    links: Vec<CheckpointId>,
    /// Other paths that have one of the contents.
    shared: BTreeSet<Vec<u8>>,
    /// The other roots that these lie in.
    roots: BTreeSet<PathBuf>,
    /// Other paths whose content shares a piece with one of them, but differs as a whole.
    partly: BTreeSet<Vec<u8>>,
    /// Roots that are gone and whose checkpoints hold a file of this name, each with its newest one.
    gone: BTreeMap<PathBuf, CheckpointId>,
}

/// Takes the content that a path ever had out of every checkpoint of this root, for good: a secret that leaked.
///
/// The checkpoints stay; a restore leaves the path alone, and refuses a state of git's that would bring it back. Other paths that
/// have the same content lose it too, and are named: a secret is one wherever it lies. So is every place named where it still is. A
/// purge that was killed is made again: what it did is not undone.
///
/// Errors: `path_not_found` for a directory; `git_failed` without the `git` program where packs of git's are kept; `corrupt` where a
/// checkpoint cannot be read: nothing was purged then.
pub fn purge(workspace: &Workspace<'_>, path: &Path) -> Result<Purged> {
    let path = purgeable(workspace, path)?;
    // What older checkpoints hold of another work tree is purged, too.
    workspace.objects.set_places(None);
    //   search ─▶ git's packs anew ─▶ names of git's blobs ─▶ caches, copies, content ─▶ refs ─▶ event
    //
    // Alone, so that no capture keeps the content again between the search and the removal.
    let _lock = workspace.lock_store(false)?;
    let all = workspace.kernel.read(record::all_kept)?;
    let held = workspace.held(&all, &path)?;
    let pieces: HashSet<Hash> = held.pieces.difference(&held.needed).copied().collect();
    let taken = workspace.rewrite_git(&all, &path, &held)?;
    // The names are stored first: even if this is killed next, no later restore brings the content back.
    git::remember(&workspace.objects, &taken.blobs)?;
    let (taken_out, mut left) = workspace.clear(&held.contents, &pieces)?;
    let mut refs = git::drop_refs(&workspace.root, &taken.blobs)?;
    for root in &held.roots {
        refs.extend(git::drop_refs(root, &taken.blobs)?);
    }
    left.extend(git::left(&workspace.root, &path, &taken.blobs)?);
    left.extend(workspace.left_elsewhere(&held));
    let purged = Purged {
        path,
        objects: taken_out.objects,
        unneeded_bytes: taken_out.unneeded_bytes,
        checkpoints: held.holders,
        shared: held.shared.into_iter().collect(),
        git_objects: taken.blobs.into_iter().collect(),
        packs: taken.packs.len(),
        refs,
        left,
    };
    workspace.record_purge(&purged)?;
    Ok(purged)
}

/// Whether a purge of a path can be made at all; nothing is changed. Errors: `path_not_found` for a directory; `corrupt`.
pub fn require_purgeable(workspace: &Workspace<'_>, path: &Path) -> Result<()> {
    let path = purgeable(workspace, path)?;
    workspace.objects.set_places(None);
    let all = workspace.kernel.read(record::all_kept)?;
    workspace.held(&all, &path).map(|_| ())
}

/// The path as its content is recorded: from the root, or whole where it lies outside and a tool call named it.
fn purgeable(workspace: &Workspace<'_>, path: &Path) -> Result<Vec<u8>> {
    let whole = workspace.kernel.project.directory.join(path);
    let outside = super::outside_files::outside(&workspace.root, &whole);
    let inside = super::queries::path_in_root(workspace, path);
    let Some(outside) = outside.filter(|_| inside.is_err()) else { return inside };
    let files = workspace.kernel.read(outside_files::all)?;
    let is_known = files.iter().any(|file| Path::new(&file.path) == outside);
    if is_known { Ok(path_bytes(&outside).to_vec()) } else { inside }
}

impl Workspace<'_> {
    /// What the path had in the checkpoints of this root, and who else has that.
    fn held(&self, all: &[CheckpointRecord], path: &[u8]) -> Result<Held> {
        let mut held = Held::default();
        let mut is_directory = false;
        let outside = self.kernel.read(outside_files::all)?;
        let at_path = outside.iter().filter(|file| file.path.as_bytes() == path);
        held.contents.extend(at_path.flat_map(OutsideFile::contents));
        let forced = self.kernel.read(ic_kernel::journal::kept_checkpoints::needed_contents)?.into_iter();
        held.contents.extend(forced.filter(|(forced, _)| forced.as_bytes() == path).map(|(_, hash)| hash));
        // What lies outside of the root is in no tree.
        let is_outside = path.starts_with(b"/");
        for checkpoint in all.iter().filter(|checkpoint| checkpoint.root == self.root && !is_outside) {
            match diff::find(&self.objects, &checkpoint.tree, path)? {
                Some(DiffState::File { hash, size, .. }) => {
                    held.contents.extend((size > 0).then_some(hash));
                    held.holders.push(checkpoint.id.clone());
                }
                Some(DiffState::Directory { .. }) => is_directory = true,
                Some(DiffState::Symlink(_)) => held.links.push(checkpoint.id.clone()),
                _ => {}
            }
        }
        if (is_directory && held.holders.is_empty()) || path.is_empty() {
            return Err(is_a_directory(path));
        }
        if let (true, Some(newest)) = (held.holders.is_empty(), held.links.last()) {
            return Err(is_a_link(path, newest));
        }
        for hash in &held.contents {
            // What was lost or purged before has no list of pieces any more.
            if self.objects.has(hash)? {
                held.pieces.extend(self.objects.pieces(hash)?);
            }
        }
        // A project that was moved has its checkpoints under its old name. It may also be another one: what it had is not taken, but named.
        let is_gone = |one: &&CheckpointRecord| one.root != self.root && !one.root.is_dir() && !is_outside;
        for checkpoint in all.iter().filter(is_gone) {
            let found = diff::find(&self.objects, &checkpoint.tree, path)?;
            // What cannot be looked at counts as left: it is better named once too often.
            let is_left = |hash| !held.contents.contains(&hash) && self.objects.has(&hash).unwrap_or(true);
            if matches!(found, Some(DiffState::File { hash, size, .. }) if size > 0 && is_left(hash)) {
                held.gone.insert(checkpoint.root.clone(), checkpoint.id.clone());
            }
        }
        let mut trees = HashSet::new();
        // Many checkpoints of a root have the same tree, which is read once.
        for checkpoint in all.iter().filter(|checkpoint| trees.insert((&checkpoint.root, checkpoint.tree))) {
            self.find_others(checkpoint, path, &mut held)?;
        }
        for file in outside.iter().filter(|file| file.path.as_bytes() != path) {
            for hash in file.contents() {
                self.find_other(hash, || file.path.clone().into_bytes(), &mut held)?;
            }
        }
        Ok(held)
    }

    /// Adds the paths of a checkpoint that have one of the contents, or a piece of one. Such a piece stays, because another file needs it.
    fn find_others(&self, checkpoint: &CheckpointRecord, path: &[u8], held: &mut Held) -> Result<()> {
        let is_here = checkpoint.root == self.root;
        let named = |path: Vec<u8>| {
            if is_here { path } else { [path_bytes(&checkpoint.root), b"/", &path].concat() }
        };
        diff::diff(&self.objects, None, Some(&checkpoint.tree), &mut |difference| {
            let Some(DiffState::File { hash, .. }) = difference.after else { return Ok(()) };
            if held.contents.contains(&hash) {
                if !(is_here && difference.path == path) {
                    held.shared.insert(named(difference.path));
                    held.roots.extend((!is_here).then(|| checkpoint.root.clone()));
                }
                return Ok(());
            }
            self.find_other(hash, || named(difference.path), held)
        })
    }

    /// Adds another path whose content is one of those that go, or shares a piece with one.
    fn find_other(&self, hash: Hash, named: impl FnOnce() -> Vec<u8>, held: &mut Held) -> Result<()> {
        if held.contents.contains(&hash) {
            held.shared.insert(named());
        } else if !held.pieces.is_empty() && self.objects.has(&hash)? {
            // A content no longer than a piece is one object, so it may itself be a piece of the other.
            let mut of_this = HashSet::from([hash]);
            of_this.extend(self.objects.pieces(&hash)?);
            let both: Vec<Hash> = of_this.intersection(&held.pieces).copied().collect();
            if !both.is_empty() {
                held.needed.extend(both);
                held.partly.insert(named());
            }
        }
        Ok(())
    }

    /// Where checkpoints, or the tree, still have it under other names.
    fn left_elsewhere(&self, held: &Held) -> Vec<Unreachable> {
        let shown = |path: &[u8]| shell_word(&String::from_utf8_lossy(path));
        let stands = |path: &&Vec<u8>| {
            let file = std::fs::File::open(self.root.join(path_from_bytes(path)));
            // A file with other content at this path is not named.
            file.ok().and_then(|mut file| digest_of(&mut file)).is_some_and(|(hash, _)| held.contents.contains(&hash))
        };
        let tree = held.shared.iter().filter(stands).map(|path| Unreachable {
            place: "work_tree",
            message: "another file of the working tree has the same content; checkpoints leave it out".to_owned(),
            command: format!("ls -l -- {}", shown(path)),
        });
        let links = held.links.iter().map(|checkpoint| Unreachable {
            place: "links",
            message: "the path is a symbolic link there, and its target was left".to_owned(),
            command: format!("ic checkpoint show {} --files", checkpoint.short()),
        });
        let partly = held.partly.iter().map(|path| Unreachable {
            place: "other_paths",
            message: "another file has a part of the same content, which was left; purge that one, too, if the secret is in it"
                .to_owned(),
            command: format!("ic checkpoint purge {} --yes", shown(path)),
        });
        let gone = held.gone.iter().map(|(root, checkpoint)| Unreachable {
            place: "gone_root",
            message: format!(
                "checkpoints of {}, which is gone, hold a file of this name; if this project was moved from there, make a checkpoint and purge again",
                root.display()
            ),
            command: format!("ic checkpoint show {} --files", checkpoint.short()),
        });
        tree.chain(partly).chain(links).chain(gone).collect()
    }

    /// Writes the packs of git's objects anew without what the path had, and lets the checkpoints name the new ones.
    fn rewrite_git(&self, all: &[CheckpointRecord], path: &[u8], held: &Held) -> Result<git::Gone> {
        let mut manifests = Vec::new();
        for checkpoint in all {
            manifests.push((checkpoint, CheckpointManifest::read(&self.objects, &checkpoint.manifest)?));
        }
        let packs = manifests.iter().filter_map(|(_, manifest)| manifest.git.as_ref());
        let packs: BTreeSet<Hash> = packs.flat_map(|git| git.packs.iter().map(|pack| pack.0)).collect();
        let states: Vec<GitState> = manifests
            .iter()
            .filter(|(checkpoint, _)| checkpoint.root == self.root)
            .filter_map(|(_, manifest)| manifest.git.clone())
            .collect();
        let wanted = git::PurgeWanted {
            root: &self.root,
            states: &states,
            packs: &packs,
            // What lies outside of the root is in no commit under its own name.
            path: (!path.starts_with(b"/")).then_some(path),
            contents: &held.contents.iter().copied().collect::<Vec<_>>(),
        };
        let writer = self.objects.writer(self.kernel.context.now())?;
        let gone = git::find_purged(&wanted, &self.objects, &writer)?;
        let mut renamed = Vec::new();
        for (checkpoint, manifest) in manifests {
            let names = |git: &GitState| git.packs.iter().any(|pack| gone.packs.contains_key(&pack.0));
            if manifest.git.as_ref().is_some_and(names) {
                let git = manifest.git.map(|git| git.without(&gone));
                renamed.push((&checkpoint.id, CheckpointManifest { git, ..manifest }.keep(&writer)?));
            }
        }
        // The new content is made durable, then the rows that name it are written; the old content is removed after that. A crash at any
        // point leaves rows whose content is there.
        writer.finish()?;
        self.kernel
            .write(|tx, _| renamed.iter().try_for_each(|(id, manifest)| record::set_manifest(tx, id, manifest)))?;
        Ok(gone)
    }

    /// Clears the content, and all that nothing names: an earlier purge that was killed, or a capture, may have left it there.
    fn clear(&self, contents: &HashSet<Hash>, pieces: &HashSet<Hash>) -> Result<(TakenOut, Vec<Unreachable>)> {
        let mut left = Vec::new();
        let live = self.named(&self.kernel.read(record::all_kept)?)?;
        // Caches name content that no checkpoint names, and a capture trusts them without reading it. They
        // go first: if one cannot be removed, nothing was purged, and no cache ever names content that is gone.
        capture::forget_caches(&self.objects)?;
        // Killed captures left copies, perhaps of this very content. One that stays is named, and stops nothing.
        for (path, error) in scratch::clear_alone(self.objects.path()).failed {
            left.push(Unreachable {
                place: "copies",
                message: format!("a copy that a killed capture left may have it, and cannot be removed: {error}"),
                command: format!("rm -r {}", shell_word(&path.display().to_string())),
            });
        }
        left.extend(repair::set_aside_files(self.objects.path()).into_iter().map(|path| Unreachable {
            place: "set_aside",
            message: "a damaged store that was set aside may have it".to_owned(),
            command: format!("rm {}", shell_word(&path.display().to_string())),
        }));
        let taken = self.objects.purge_all_but(contents, pieces, &live)?;
        if !taken.is_clear {
            left.push(Unreachable {
                place: "store",
                message: "another process reads the store, whose log has it until that process ends".to_owned(),
                command: format!("ls -la {}-wal; purge again", self.objects.path().display()),
            });
        }
        Ok((taken, left))
    }

    fn record_purge(&self, purged: &Purged) -> Result<()> {
        let places: BTreeSet<&str> = purged.left.iter().map(|left| left.place).collect();
        let payload = json!({
            "path": String::from_utf8_lossy(&purged.path),
            "objects": purged.objects,
            "unneeded_bytes": purged.unneeded_bytes,
            "git_objects": purged.git_objects,
            "packs": purged.packs,
            "refs": purged.refs,
            "shared": purged.shared.iter().map(|path| String::from_utf8_lossy(path)).collect::<Vec<_>>(),
            "left": places,
        });
        let event = NewEvent { payload: Some(payload), ..NewEvent::without_run(EventType::ContentPurged) };
        self.kernel.write(|tx, now| ic_ledger::events::append(tx, now, &event).map(|_| ()))
    }
}

fn is_a_link(path: &[u8], checkpoint: &CheckpointId) -> Diagnosis {
    let path = String::from_utf8_lossy(path).into_owned();
    Diagnosis::new(
        Code::PathNotFound,
        format!(
            "{path} is a symbolic link in checkpoint {}; a purge takes out the content of files. Nothing was purged.",
            checkpoint.short()
        ),
    )
    .hint(format!("remove each checkpoint that has the link: ic checkpoint delete {}", checkpoint.short()))
    .detail("path", path)
    .detail("checkpoint_id", checkpoint.as_str())
}

fn is_a_directory(path: &[u8]) -> Diagnosis {
    let path = String::from_utf8_lossy(path).into_owned();
    Diagnosis::new(
        Code::PathNotFound,
        format!(
            "{} is a directory in checkpoints; a purge takes out one file. Nothing was purged.",
            if path.is_empty() { "." } else { &path }
        ),
    )
    .hint("name the files in it, one after the other: ic checkpoint show ID --files lists them")
    .detail("path", path)
}
