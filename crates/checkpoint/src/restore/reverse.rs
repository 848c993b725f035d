//! Undoing only what one piece of work did: each of its changes is merged out of the tree as it is now, newest first.
//!
//! A change is a pair: what stood at a path before, and what the work left there. A path that is as the work left it gets what stood there
//! before. Text that others changed since is merged: the base is what the work left, one side what stands there now, the other what
//! stood there before. What cannot be merged is a conflict, and never becomes markers in a file.

mod looks;
mod own;

use std::collections::BTreeMap;
use std::io::Read;

use ic_base::{Code, Diagnosis, Result};
use ic_events::Hash;

use crate::diff::{Difference, Finder, State};
use crate::objects::{Objects, hash_of};
use crate::restore::plan::{Database, Node};
use crate::rootfs::RootDir;
use crate::tree::Reason;

use looks::{Content, content, is_same, looks, own_looks, with};
pub use own::{Own, Pair};

/// The largest text that is merged, in bytes: a merge is made in memory, and larger files are rarely written by hand.
pub const MOST_MERGED: u64 = 1 << 20;

/// What is to be done to undo a piece of work.
#[derive(Debug, Default)]
pub struct Reversed {
    /// How the tree (`before`: as it is) differs from what it is to become.
    pub differences: Vec<Difference>,
    /// Paths that cannot be merged, and why. Their differences lead to what stood there before the work.
    pub conflicts: Vec<(Vec<u8>, String)>,
    /// Paths that stay as they are though the work changed them, and why.
    pub left: Vec<(Vec<u8>, String)>,
    /// Merged texts, which no checkpoint holds yet.
    pub texts: Vec<Vec<u8>>,
}

/// A tree as it is, and as a look at it sees it.
#[derive(Clone, Copy)]
pub struct Now<'n> {
    /// Where it stands.
    pub root: &'n RootDir,
    /// All that a restore may change, as it is.
    pub exact: &'n Hash,
    /// As a checkpoint of it would have it: of an SQLite database, what is in its log is in its copy.
    pub usual: &'n Hash,
    /// Databases with what stands beside them.
    pub databases: &'n [Database],
}

/// What undoes a piece of work in a tree. Errors: `corrupt` if an object cannot be read.
pub fn reverse<'o>(objects: &'o Objects, now: Now<'o>, own: &'o Own) -> Result<Reversed> {
    let mut work = Work {
        objects,
        now,
        finder: Finder::new(objects, now.exact)?,
        usual: Finder::new(objects, now.usual)?,
        moved: own.moved(),
        own,
        wanted: BTreeMap::new(),
        reversed: Reversed::default(),
    };
    let mut changes = own.changes.iter().filter(|(path, _)| !own.stays.contains_key(*path)).peekable();
    // Where nothing can be undone, it is for a person to say whether the work counts as undone.
    let is_nothing = changes.peek().is_none();
    let stays = if is_nothing { &mut work.reversed.conflicts } else { &mut work.reversed.left };
    stays.extend(own.stays.iter().map(|(path, why)| (path.clone(), why.clone())));
    for (path, pairs) in changes {
        work.step_back(path, pairs)?;
    }
    work.keep_directories()?;
    work.require_parents()?;
    Ok(work.done())
}

/// What becomes of a path in one step back.
enum Back {
    To(Option<State>),
    /// As [`Back::To`], with something that is as the work left it, and that others made so again.
    Again(Option<State>),
    Merged(State, Vec<u8>),
    Stays(String),
    Conflict(String),
}

/// A change of the work: the `at`th at its path, from zero.
#[derive(Clone, Copy)]
struct Change<'c> {
    path: &'c [u8],
    at: usize,
    before: Option<&'c State>,
    after: Option<&'c State>,
}

struct Work<'o> {
    objects: &'o Objects,
    now: Now<'o>,
    finder: Finder<'o>,
    usual: Finder<'o>,
    own: &'o Own,
    moved: BTreeMap<Vec<u8>, Vec<u8>>,
    /// What a path is and what it is to become.
    wanted: BTreeMap<Vec<u8>, Pair>,
    reversed: Reversed,
}

impl Work<'_> {
    /// A database and the files beside it are one: who wrote into its log since changed it, and it comes back without one.
    fn step_back_database(&mut self, path: &[u8], pairs: &[Pair], one: &Database) -> Result<()> {
        let (now, seen) = (self.finder.find(path)?, self.usual.find(path)?);
        let mut to = seen.clone();
        for (before, after) in pairs.iter().rev() {
            if is_same(to.as_ref(), after.as_ref()) {
                to.clone_from(before);
            } else if !is_same(to.as_ref(), before.as_ref()) {
                to = pairs.first().and_then(|(before, _)| before.clone());
                self.reversed
                    .conflicts
                    .push((path.to_vec(), "others wrote into the database since".to_owned()));
                break;
            }
        }
        if is_same(to.as_ref(), seen.as_ref()) {
            return Ok(());
        }
        self.wanted.insert(path.to_vec(), (now, to));
        for side in &one.sides {
            let stands = self.finder.find(&side.0)?;
            self.wanted.insert(side.0.clone(), (stands, None));
        }
        Ok(())
    }

    fn step_back(&mut self, path: &[u8], pairs: &[Pair]) -> Result<()> {
        let databases = self.now.databases;
        if let Some(one) = databases.iter().find(|one| one.path.0 == path) {
            return self.step_back_database(path, pairs, one);
        }
        // What stands beside a database goes where the database goes.
        if databases.iter().any(|one| one.sides.iter().any(|side| side.0 == path)) {
            return Ok(());
        }
        let now = self.finder.find(path)?;
        let (mut to, mut again) = (now.clone(), false);
        // What was merged on the way, which the next merge may need.
        let mut texts: Vec<Vec<u8>> = Vec::new();
        for (at, (before, after)) in pairs.iter().enumerate().rev() {
            let change = Change { path, at, before: before.as_ref(), after: after.as_ref() };
            match self.back(change, to.as_ref(), &texts)? {
                Back::To(state) => to = state,
                Back::Again(state) => {
                    to = state;
                    again = true;
                }
                Back::Merged(state, text) => {
                    to = Some(state);
                    texts.push(text);
                }
                Back::Stays(why) => {
                    self.reversed.left.push((path.to_vec(), why));
                    return Ok(());
                }
                Back::Conflict(why) => {
                    self.conflict(path, pairs, now, why);
                    return Ok(());
                }
            }
        }
        if again && is_same(now.as_ref(), to.as_ref()) {
            self.reversed.left.push((path.to_vec(), "others made it so again since".to_owned()));
        }
        if let Some(State::File { hash, .. }) = &to {
            texts.retain(|text| hash_of(text) == *hash);
            self.reversed.texts.append(&mut texts);
        }
        self.wanted.insert(path.to_vec(), (now, to));
        Ok(())
    }

    /// A conflict, unless others changed what the work only gave another name: then both stay.
    fn conflict(&mut self, path: &[u8], pairs: &[Pair], now: Option<State>, why: String) {
        if let Some(from) = self.moved.get(path) {
            let from = String::from_utf8_lossy(from);
            let why = format!("it was {from}, which is restored; others changed it since, so both are kept");
            self.reversed.left.push((path.to_vec(), why));
            return;
        }
        self.reversed.conflicts.push((path.to_vec(), why));
        let first = pairs.first().and_then(|(before, _)| before.clone());
        self.wanted.insert(path.to_vec(), (now, first));
    }

    fn back(&self, change: Change<'_>, now: Option<&State>, texts: &[Vec<u8>]) -> Result<Back> {
        let Change { path, at, before, after } = change;
        let hidden = [now, before, after].into_iter().flatten().find_map(|state| match state {
            State::Passed(reason) => Some(reason.as_str().to_owned()),
            _ => None,
        });
        if let Some(reason) = hidden {
            // What is in the log of a database is in the copy of it.
            let is_side = reason == Reason::Database.as_str();
            let is_any = !is_side && [now, before, after].into_iter().flatten().any(State::is_content);
            return Ok(if is_any { Back::Stays(reason) } else { Back::To(now.cloned()) });
        }
        if is_same(now, before) {
            return Ok(Back::To(now.cloned()));
        }
        if let (
            Some(was @ State::File { .. }),
            Some(left @ State::File { .. }),
            Some(is @ State::File { .. }),
        ) = (before, after, now)
        {
            return self.merged(change, [was, left, is], texts);
        }
        if is_same(now, after) {
            let is_of_others = self.own.is_of_others(path, at, |state| state.and_then(Node::of));
            return Ok(if is_of_others { Back::Again(now.cloned()) } else { Back::To(before.cloned()) });
        }
        Ok(match (before, after, now) {
            (Some(_), Some(_), Some(_)) => {
                Back::Conflict("others made something else of it since".to_owned())
            }
            // Under another name what the work changed may still be there.
            (Some(_), Some(_), None) => Back::Conflict("others removed or renamed it since".to_owned()),
            (None, _, Some(_)) => Back::Conflict("the work made it, and others changed it since".to_owned()),
            (Some(_), None, _) => {
                Back::Conflict("the work removed it, and others created it again since".to_owned())
            }
            (None, _, None) => Back::To(None),
        })
    }

    /// `states`: what stood there before, what the work left, and what stands there now: files.
    fn merged(&self, change: Change<'_>, states: [&State; 3], texts: &[Vec<u8>]) -> Result<Back> {
        let conflict = |why: &str| Ok(Back::Conflict(why.to_owned()));
        let Change { path, at, .. } = change;
        let [before, after, now] = states;
        let looks_again = own_looks(now) == own_looks(after)
            && own_looks(before) != own_looks(after)
            && self.own.is_of_others(path, at, |state| state.map(own_looks));
        let Some(looks) = looks(before, after, now, looks_again) else {
            return conflict("the work changed its permissions or attributes, and so did others since");
        };
        let (was, left, is) = (content(before), content(after), content(now));
        let again = is == left && was != left && self.own.is_of_others(path, at, |state| state.map(content));
        if was == left || is == was || again {
            let state = Some(with(looks, is));
            return Ok(if again || looks_again { Back::Again(state) } else { Back::To(state) });
        }
        if is == left {
            return Ok(Back::To(Some(with(looks, was))));
        }
        if [was, left, is].iter().any(|content| content.size > MOST_MERGED) {
            return conflict("others changed it since, and it is too large to be merged (over 1 MiB)");
        }
        let text = |content| self.text(path, content, texts);
        let [Some(was), Some(left), Some(is)] = [text(was)?, text(left)?, text(is)?] else {
            return conflict("others changed it since, and it is not text that can be merged");
        };
        Ok(match diffy::merge(&left, &is, &was) {
            Ok(merged) => {
                let merged = merged.into_bytes();
                let content = Content { hash: hash_of(&merged), size: merged.len() as u64 };
                Back::Merged(with(looks, content), merged)
            }
            Err(_) => Back::Conflict("others changed the same lines since".to_owned()),
        })
    }

    /// A content as text; `None` if it is none.
    fn text(&self, path: &[u8], content: Content, texts: &[Vec<u8>]) -> Result<Option<String>> {
        let bytes = match texts.iter().find(|text| hash_of(text) == content.hash) {
            Some(text) => text.clone(),
            None if self.objects.knows(&content.hash)? => self.objects.read(&content.hash)?,
            // Who only looks at the tree stores nothing of it: what no checkpoint holds is in the tree alone.
            None => self.in_tree(path, &content.hash)?,
        };
        // A zero byte is what git takes a binary file by.
        Ok(String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')))
    }

    /// What stands in the tree. Errors: `busy` if it has changed since it was looked at.
    fn in_tree(&self, path: &[u8], hash: &Hash) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let opened = self.now.root.open_file(path);
        let read = opened.and_then(|file| file.take(MOST_MERGED + 1).read_to_end(&mut bytes));
        if read.is_err() || hash_of(&bytes) != *hash {
            let path = String::from_utf8_lossy(path);
            let message = format!("{path} changed while it was read. Nothing was changed.");
            return Err(Diagnosis::new(Code::Busy, message).hint("stop what writes it, or call again"));
        }
        Ok(bytes)
    }

    /// Directories that the work made stay where something of others is in them.
    fn keep_directories(&mut self) -> Result<()> {
        let is_directory = |state: &Option<State>| matches!(state, Some(State::Directory { .. }));
        let leaving: Vec<Vec<u8>> = self
            .wanted
            .iter()
            .filter(|(_, (now, to))| is_directory(now) && !is_directory(to))
            .map(|(path, _)| path.clone())
            .collect();
        // What lies deeper comes first: a directory goes when all that is in it does.
        for path in leaving.into_iter().rev() {
            let stays = self
                .entries(&path)?
                .into_iter()
                .find(|entry| self.wanted.get(entry).is_none_or(|(_, to)| to.is_some()));
            let Some(stays) = stays else { continue };
            let Some((_, to)) = self.wanted.remove(&path) else { continue };
            let stays = String::from_utf8_lossy(&stays).into_owned();
            if to.is_some() {
                self.reversed.conflicts.push((path, format!("others keep {stays} in it")));
            } else {
                self.reversed.left.push((path, format!("{stays} stays in it")));
            }
        }
        Ok(())
    }

    /// The paths right below a directory of the tree as it is.
    fn entries(&self, path: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut tree = self.objects.tree(self.now.exact)?;
        for name in path.split(|b| *b == b'/').filter(|name| !name.is_empty()) {
            let Some(crate::tree::Node::Directory(below)) = tree.get(name).map(|entry| entry.node.clone())
            else {
                return Ok(Vec::new());
            };
            tree = self.objects.tree(&below)?;
        }
        let below = |name: &Vec<u8>| if path.is_empty() { name.clone() } else { [path, b"/", name].concat() };
        Ok(tree.entries.iter().map(|entry| below(&entry.name)).collect())
    }

    /// What comes back needs a directory to come back into.
    fn require_parents(&mut self) -> Result<()> {
        let coming: Vec<Vec<u8>> = self
            .wanted
            .iter()
            .filter(|(_, (now, to))| to.is_some() && !is_same(now.as_ref(), to.as_ref()))
            .map(|(path, _)| path.clone())
            .collect();
        for path in coming {
            let Some(at) = path.iter().rposition(|b| *b == b'/') else { continue };
            let parent = &path[..at];
            let then = match self.wanted.get(parent) {
                Some((_, to)) => to.clone(),
                None => self.finder.find(parent)?,
            };
            if !matches!(then, Some(State::Directory { .. })) {
                self.wanted.remove(&path);
                self.reversed
                    .conflicts
                    .push((path, "others removed the directory that it was in".to_owned()));
            }
        }
        Ok(())
    }

    fn done(self) -> Reversed {
        let changes = self.wanted.into_iter().filter(|(_, (now, to))| !is_same(now.as_ref(), to.as_ref()));
        let differences = changes.map(|(path, (before, after))| Difference { path, before, after });
        Reversed { differences: differences.collect(), ..self.reversed }
    }
}
