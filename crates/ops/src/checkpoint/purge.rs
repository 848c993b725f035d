//! Taking the content of a path out of all that checkpoints keep, and naming what is out of reach.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use ic_base::{CheckpointId, Result, shell_word};
use ic_checkpoint::git::{self, GitState, Left};
use ic_checkpoint::manifest::Manifest;
use ic_checkpoint::record::{self, Checkpoint};
use ic_checkpoint::{capture, diff, retention, scratch};
use ic_events::{EventType, Hash, NewEvent};
use serde_json::json;

use super::{Workspace, repair};

/// What a purge took out.
#[derive(Debug)]
pub struct Purged {
    /// From the root.
    pub path: Vec<u8>,
    /// How many objects of the store are gone.
    pub objects: u64,
    /// The checkpoints that held it.
    pub checkpoints: Vec<CheckpointId>,
    /// Other paths with the same content: it was left where it is.
    pub shared: Vec<Vec<u8>>,
    /// Objects of git's that were taken out, by their names there.
    pub git_objects: Vec<String>,
    /// How many packs of git's objects were written anew without them.
    pub packs: usize,
    /// Refs below `refs/ic/` that reached them and were removed.
    pub refs: Vec<String>,
    /// Where the content still is, out of reach.
    pub left: Vec<Left>,
}

/// What a path had in checkpoints.
#[derive(Default)]
struct Held {
    contents: HashSet<Hash>,
    holders: Vec<CheckpointId>,
    /// Other paths that have one of the contents.
    shared: BTreeMap<Vec<u8>, Hash>,
}

/// Takes the content that a path ever had out of every checkpoint of this root, for good: a secret that leaked.
///
/// The checkpoints stay; a restore leaves the path alone, and refuses a state of git's that would bring it back. Content that
/// other paths have too is left, and they are named; so is every place where it still is. A purge that was killed is made
/// again: what it did is not undone.
///
/// Errors: `git_failed` without the `git` program where packs of git's are kept.
pub fn purge(workspace: &Workspace<'_>, path: &Path) -> Result<Purged> {
    let path = super::read::path_in_root(workspace, path)?;
    let _lock = workspace.lock_store(false)?;
    let all = workspace.kernel.read(record::all_kept)?;
    let held = workspace.held(&all, &path)?;
    let kept: HashSet<Hash> = held.shared.values().copied().collect();
    let mut gone: HashSet<Hash> = HashSet::new();
    for hash in held.contents.difference(&kept) {
        retention::mark_one(&workspace.objects, hash, &mut gone)?;
    }
    let taken = workspace.rewrite_git(&all, &path, &held)?;
    // The names come first: whatever happens next, no restore of ours brings the content back.
    git::remember(&workspace.objects, &taken.blobs)?;
    let (objects, mut left) = workspace.clear(&gone)?;
    let refs = git::drop_refs(&workspace.root, &taken.blobs)?;
    left.extend(git::left(&workspace.root, &path, &taken.blobs)?);
    left.extend(taken.shared.first().map(|oid| Left {
        place: "other_paths",
        message: "commits have the same content at another path, where it was left".to_owned(),
        command: format!("git log --all --raw --find-object={oid}"),
    }));
    let purged = Purged {
        path,
        objects,
        checkpoints: held.holders,
        shared: held.shared.into_keys().collect(),
        git_objects: taken.blobs.into_iter().collect(),
        packs: taken.packs.len(),
        refs,
        left,
    };
    workspace.record_purge(&purged)?;
    Ok(purged)
}

impl Workspace<'_> {
    /// What the path had in the checkpoints of this root, and who else has that.
    fn held(&self, all: &[Checkpoint], path: &[u8]) -> Result<Held> {
        let mut held = Held::default();
        for checkpoint in all.iter().filter(|checkpoint| checkpoint.root == self.root) {
            if let Some(diff::State::File { hash, .. }) = diff::find(&self.objects, &checkpoint.tree, path)? {
                held.contents.insert(hash);
                held.holders.push(checkpoint.id.clone());
            }
        }
        let mut trees = HashSet::new();
        for checkpoint in all.iter().filter(|checkpoint| trees.insert(checkpoint.tree)) {
            let is_here = checkpoint.root == self.root;
            diff::diff(&self.objects, None, Some(&checkpoint.tree), &mut |difference| {
                if let Some(diff::State::File { hash, .. }) = difference.after
                    && held.contents.contains(&hash)
                    && !(is_here && difference.path == path)
                {
                    held.shared.insert(difference.path, hash);
                }
                Ok(())
            })?;
        }
        Ok(held)
    }

    /// Writes the packs of git's objects anew without what the path had, and lets the checkpoints name the new ones.
    fn rewrite_git(&self, all: &[Checkpoint], path: &[u8], held: &Held) -> Result<git::Gone> {
        let mut manifests = Vec::new();
        for checkpoint in all {
            manifests.push((checkpoint, Manifest::read(&self.objects, &checkpoint.manifest)?));
        }
        let packs = manifests.iter().filter_map(|(_, manifest)| manifest.git.as_ref());
        let packs: BTreeSet<Hash> = packs.flat_map(|git| git.packs.iter().map(|pack| pack.0)).collect();
        let states: Vec<GitState> = manifests
            .iter()
            .filter(|(checkpoint, _)| checkpoint.root == self.root)
            .filter_map(|(_, manifest)| manifest.git.clone())
            .collect();
        let wanted = git::Wanted {
            root: &self.root,
            states: &states,
            packs: &packs,
            path,
            contents: &held.contents.iter().copied().collect::<Vec<_>>(),
            kept: &held.shared.values().copied().collect::<Vec<_>>(),
        };
        let writer = self.objects.writer(self.kernel.context.now())?;
        let gone = git::find_purged(&wanted, &self.objects, &writer)?;
        let mut renamed = Vec::new();
        for (checkpoint, manifest) in manifests {
            let names = |git: &GitState| git.packs.iter().any(|pack| gone.packs.contains_key(&pack.0));
            if manifest.git.as_ref().is_some_and(names) {
                let git = manifest.git.map(|git| git.without(&gone));
                renamed.push((&checkpoint.id, Manifest { git, ..manifest }.keep(&writer)?));
            }
        }
        // Content first, durably, then the rows that name it; what they named before goes after that.
        writer.finish()?;
        self.kernel.write(|tx, _| {
            renamed.iter().try_for_each(|(id, manifest)| record::set_manifest(tx, id, manifest))
        })?;
        Ok(gone)
    }

    /// Clears the content, and all that nothing names: an earlier purge that was killed, or a capture, may have left it there.
    fn clear(&self, gone: &HashSet<Hash>) -> Result<(u64, Vec<Left>)> {
        let mut left = Vec::new();
        let live = self.named(&self.kernel.read(record::all_kept)?)?;
        // Where the file still stands, the next checkpoint keeps it again: what cannot be saved could not be changed. The
        // caches go first: if one cannot, nothing was taken out, and none ever names content that is gone.
        capture::forget_caches(&self.objects)?;
        // Killed captures left copies, perhaps of this very content. One that stays is named, and stops nothing.
        for (path, error) in scratch::clear_alone(self.objects.path()).failed {
            left.push(Left {
                place: "copies",
                message: format!(
                    "a copy that a killed capture left may have it, and cannot be removed: {error}"
                ),
                command: format!("rm -r {}", shell_word(&path.display().to_string())),
            });
        }
        left.extend(repair::set_aside_files(self.objects.path()).into_iter().map(|path| Left {
            place: "set_aside",
            message: "a damaged store that was set aside may have it".to_owned(),
            command: format!("rm {}", shell_word(&path.display().to_string())),
        }));
        let (objects, is_clear) = self.objects.purge_all_but(gone, &live)?;
        if !is_clear {
            left.push(Left {
                place: "store",
                message: "another process reads the store, whose log has it until that process ends"
                    .to_owned(),
                command: format!("ls -la {}-wal; purge again", self.objects.path().display()),
            });
        }
        Ok((objects, left))
    }

    fn record_purge(&self, purged: &Purged) -> Result<()> {
        let places: BTreeSet<&str> = purged.left.iter().map(|left| left.place).collect();
        let payload = json!({
            "path": String::from_utf8_lossy(&purged.path),
            "objects": purged.objects,
            "git_objects": purged.git_objects,
            "packs": purged.packs,
            "refs": purged.refs,
            "left": places,
        });
        let event = NewEvent { payload: Some(payload), ..NewEvent::without_run(EventType::ContentPurged) };
        self.kernel.write(|tx, now| ic_events::append(tx, now, &event).map(|_| ()))
    }
}
