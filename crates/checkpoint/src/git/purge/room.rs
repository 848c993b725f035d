//! A repository for the time being, which has the objects of packs and of the work tree's repository, and no settings.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

use ic_base::{Diagnose, Result};
use ic_ledger::events::Hash;
use ic_ledger::path_bytes;

use super::super::program::Git;
use crate::objects::Objects;
use crate::scratch::Scratch;

/// It lies beside the store, where only its user reads, and where what a killed process left is cleared.
pub(super) struct Room(Scratch);

impl Room {
    pub(super) fn make(objects: &Objects, common_dir: Option<&Path>, is_sha256: bool) -> Result<Self> {
        let doing = || "making room for git's objects".to_owned();
        let room = Scratch::new(objects.path())?;
        let at = |name: &str| room.path().join(name);
        // Git takes a directory for a repository if it has `objects`, `refs`, HEAD, and a version in `config`.
        std::fs::create_dir_all(at("objects/info")).while_doing(doing)?;
        std::fs::create_dir_all(at("refs/heads")).while_doing(doing)?;
        // Git heeds `extensions` from version 1 on.
        let format = if is_sha256 { "1\n[extensions]\n\tobjectFormat = sha256" } else { "0" };
        std::fs::write(at("config"), format!("[core]\n\trepositoryFormatVersion = {format}\n")).while_doing(doing)?;
        std::fs::write(at("HEAD"), "ref: refs/heads/none\n").while_doing(doing)?;
        if let Some(common_dir) = common_dir {
            let own = std::path::absolute(common_dir.join("objects")).while_doing(doing)?;
            std::fs::write(at("objects/info/alternates"), [path_bytes(&own), b"\n"].concat()).while_doing(doing)?;
        }
        Ok(Self(room))
    }

    pub(super) fn git(&self) -> Git<'_> {
        Git { repository: Some(self.0.path()), ..Git::new(self.0.path()) }
    }

    /// Unpacks what the store still has of these packs, and names the objects in each.
    pub(super) fn unpack(&self, objects: &Objects, packs: &BTreeSet<Hash>) -> Result<BTreeMap<Hash, Vec<String>>> {
        let git = self.git();
        let mut unpacked = BTreeMap::new();
        for pack in packs {
            if !objects.has(pack)? {
                continue;
            }
            // What cannot be read leaves a pack that ends early, and git says so.
            let said = said_of(&git, objects, pack, &["index-pack", "--stdin"])?;
            // `index-pack` prints a word and then the name.
            let name = said.split_whitespace().last().unwrap_or_default();
            let index = self.0.path().join(format!("objects/pack/pack-{name}.idx"));
            let index = std::fs::read(&index).while_doing(|| format!("reading {}", index.display()))?;
            let listed = git.run_with(&["show-index"], &index)?;
            let listed = String::from_utf8_lossy(&listed).into_owned();
            // `OFFSET OID (CHECKSUM)`.
            let oids = listed.lines().filter_map(|line| line.split(' ').nth(1)).map(str::to_owned);
            unpacked.insert(*pack, oids.collect());
        }
        Ok(unpacked)
    }
}

/// Objects and their kinds; what is not there is not in it.
fn kinds<'o>(git: &Git<'_>, oids: impl IntoIterator<Item = &'o str>) -> Result<Vec<(String, String)>> {
    let input: BTreeSet<&str> = oids.into_iter().collect();
    if input.is_empty() {
        return Ok(Vec::new());
    }
    let input: String = input.into_iter().map(|oid| format!("{oid}\n")).collect();
    let said = git.run_with(&["cat-file", "--batch-check=%(objectname) %(objecttype)"], input.as_bytes())?;
    let said = String::from_utf8_lossy(&said).into_owned();
    // A missing object comes as `OID missing`: no caller asks for this kind.
    let pair = |line: &str| line.split_once(' ').map(|(oid, kind)| (oid.to_owned(), kind.to_owned()));
    Ok(said.lines().filter_map(pair).collect())
}

/// The commits among these objects.
pub(super) fn commits<'o>(git: &Git<'_>, oids: impl Iterator<Item = &'o str>) -> Result<Vec<String>> {
    let kinds = kinds(git, oids)?.into_iter();
    Ok(kinds.filter(|(_, kind)| kind == "commit").map(|(oid, _)| oid).collect())
}

/// Those of these objects that are no commits and no directories: what is missing may well be content.
pub(super) fn only_blobs(git: &Git<'_>, oids: BTreeSet<String>) -> Result<BTreeSet<String>> {
    let others: BTreeSet<String> = kinds(git, oids.iter().map(String::as_str))?
        .into_iter()
        .filter(|(_, kind)| matches!(kind.as_str(), "commit" | "tree" | "tag"))
        .map(|(oid, _)| oid)
        .collect();
    Ok(oids.into_iter().filter(|oid| !others.contains(oid)).collect())
}

/// What git says when it is given an object of the store.
fn said_of(git: &Git<'_>, objects: &Objects, object: &Hash, arguments: &[&str]) -> Result<String> {
    let give = |mut stdin| drop(objects.read_to(object, &mut stdin));
    Ok(git.converse(arguments, give, |mut stdout| {
        let mut said = String::new();
        stdout.read_to_string(&mut said).while_doing(|| "reading from git".to_owned())?;
        Ok(said)
    })?)
}

/// What git would call these contents; those that the store has lost are not in it.
pub(super) fn blobs_of(git: &Git<'_>, objects: &Objects, contents: &[Hash]) -> Result<BTreeSet<String>> {
    let mut oids = BTreeSet::new();
    for content in contents {
        if !objects.has(content)? {
            continue;
        }
        let said = said_of(git, objects, content, &["hash-object", "--stdin", "--no-filters"])?;
        oids.insert(said.trim().to_owned());
    }
    Ok(oids)
}
