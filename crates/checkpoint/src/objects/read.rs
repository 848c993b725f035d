//! Reading objects, each verified against its name.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::sync::{Arc, PoisonError};

use ic_base::{Code, Diagnose, Diagnosis, Result};
use ic_ledger::Snapshot;
use ic_ledger::events::{Hash, hex};
use sha2::{Digest, Sha256};

use super::pack;
use super::store::{Form, Objects, PackPlace, Recent, RememberedTrees, hash_of};
use crate::tree::TreeObject;

/// How many packs are kept unpacked in memory: all directories of 100,000 files lie in forty.
const RECENT_PACKS: usize = 48;

/// The most bytes of unpacked packs in memory, and one pack in any case: some are four times as large as those of directories.
const RECENT_BYTES: usize = 12 << 20;

/// Where an object lies that was purged: nowhere, and it is not kept again. What was lost, and what is a piece of a
/// purged content, has nothing there; the next capture that reads it keeps it again.
pub(super) const NEVER_AGAIN: i64 = 1;

/// What there is of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// The store has it.
    Here,
    /// The store does not know it.
    Absent,
    /// Its name is left, and it may be kept again: it was lost, or is a piece of what was purged.
    Lost,
    /// It was purged, and never comes back.
    Purged,
}

/// What may be taken from a pack that was opened before. A sweep may have written it anew since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// Nothing: the pack is read from the store again.
    Nothing,
    /// Contents, which are verified before they are returned.
    Contents,
    /// Lists of pieces, too: a wrong one is known only by its pieces.
    Lists,
}

/// A pack as it was found.
enum Packed {
    /// It is in memory, unpacked, from an earlier read.
    Open(Arc<Vec<u8>>),
    /// Its data, and how long it is when it is open.
    Closed(Vec<u8>, i64),
    /// There is none of this number.
    Missing,
}

impl Objects {
    /// Whatever `look` reads is of one moment, and many small reads cost as one transaction. It must write nothing.
    ///
    /// Errors: those of `look`; `busy`.
    pub fn at_one_moment<T>(&self, look: impl FnOnce() -> Result<T>) -> Result<T> {
        self.side().open_view()?;
        let found = look();
        // Closed after an error, too: an open view would show all later reads the same moment.
        self.side().close_view();
        found
    }

    /// The content of an object that is known to be small: a directory, a manifest.
    ///
    /// Errors: `corrupt`, naming it, if it is missing or damaged.
    pub fn read(&self, hash: &Hash) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // The caller has none of it yet, so content from a wrong list can be read again.
        match self.read_trusting(hash, &mut bytes, Trust::Lists) {
            Err(error) if error.code() == Code::Corrupt => {
                bytes.clear();
                self.read_to(hash, &mut bytes)?;
            }
            read => drop(read?),
        }
        Ok(bytes)
    }

    /// Writes the content of an object into `sink`, piece by piece, and returns its length.
    ///
    /// Errors: `corrupt`, naming it, if it is missing or damaged; what `sink` was given is then not to be used.
    pub fn read_to(&self, hash: &Hash, sink: &mut dyn Write) -> Result<u64> {
        // A wrong list would be known too late: the sink would have some of its pieces by then.
        self.read_trusting(hash, sink, Trust::Contents)
    }

    fn read_trusting(&self, hash: &Hash, sink: &mut dyn Write, trust: Trust) -> Result<u64> {
        // A statement of its own: the lock is released before the sink, which may be slow, is written to.
        // What a look holds in memory was hashed by this process, so it is not verified again.
        let looked_at = self.looked_at().get(hash).cloned();
        if let Some(bytes) = looked_at {
            sink.write_all(&bytes).while_doing(|| "writing content".to_owned())?;
            return Ok(bytes.len() as u64);
        }
        match self.load(hash, trust)? {
            (Form::Pieces, list) => self.read_pieces(hash, &list, sink),
            (_, bytes) => {
                sink.write_all(&bytes).while_doing(|| "writing content".to_owned())?;
                Ok(bytes.len() as u64)
            }
        }
    }

    /// Where every piece of an object is verified, and the whole by its own name too.
    fn read_pieces(&self, hash: &Hash, list: &[u8], sink: &mut dyn Write) -> Result<u64> {
        let mut whole = Sha256::new();
        let mut length = 0;
        for piece in list.chunks(32) {
            let piece: Hash = piece.try_into().map_err(|_| damaged(hash))?;
            let (form, bytes) = self.load(&piece, Trust::Contents)?;
            // Pieces have no pieces of their own: a damaged list must not lead into a loop.
            if form != Form::Whole {
                return Err(damaged(&piece));
            }
            whole.update(&bytes);
            length += bytes.len() as u64;
            sink.write_all(&bytes).while_doing(|| "writing content".to_owned())?;
        }
        if <Hash>::from(whole.finalize()) == *hash { Ok(length) } else { Err(damaged(hash)) }
    }

    /// The directory with this hash. Errors: `corrupt`.
    pub fn tree(&self, hash: &Hash) -> Result<TreeObject> {
        TreeObject::decode(&self.read_once(hash)?)
    }

    /// As [`Objects::read`], of what is likely to be asked for again: it is remembered while there is room. Errors: `corrupt`.
    pub(crate) fn read_once(&self, hash: &Hash) -> Result<Arc<[u8]>> {
        if let Some(bytes) = self.trees.get(hash) {
            return Ok(bytes);
        }
        let bytes: Arc<[u8]> = self.read(hash)?.into();
        self.trees.remember(*hash, &bytes);
        Ok(bytes)
    }

    /// Remembers a directory for [`Objects::tree`]; returns whether there was room for it, and this is its hash.
    pub(crate) fn remember(&self, hash: Hash, bytes: &[u8]) -> bool {
        // The bytes may be made of a record of the stat cache (`Walk::keep`), which can be damaged.
        if hash_of(bytes) != hash {
            return false;
        }
        self.trees.remember(hash, &bytes.into())
    }

    /// The pieces of an object that is kept in pieces; empty for others. Errors: `corrupt` if it is missing or damaged.
    pub fn pieces(&self, hash: &Hash) -> Result<Vec<Hash>> {
        let place = self.place(hash)?.ok_or_else(|| missing(hash))?;
        if place.form != Form::Pieces {
            return Ok(Vec::new());
        }
        let (_, list) = self.load(hash, Trust::Contents)?;
        list.chunks(32).map(|piece| piece.try_into().map_err(|_| damaged(hash))).collect()
    }

    /// Forgets what was opened: packs may have been rewritten.
    pub(super) fn forget_recent(&self) {
        *self.recent() = Recent::default();
        *self.trees.lock() = RememberedTrees::default();
    }

    /// Whether the store has this object.
    pub fn has(&self, hash: &Hash) -> Result<bool> {
        Ok(self.place(hash)?.is_some_and(|place| place.form != Form::Purged))
    }

    /// What there is of this object.
    pub(super) fn presence(&self, hash: &Hash) -> Result<Presence> {
        Ok(match self.place(hash)? {
            None => Presence::Absent,
            Some(PackPlace { form: Form::Purged, start, .. }) if start == NEVER_AGAIN => Presence::Purged,
            Some(PackPlace { form: Form::Purged, .. }) => Presence::Lost,
            Some(_) => Presence::Here,
        })
    }

    /// Remembers a directory that a look found: it can be read as long as this handle lives.
    pub(super) fn hold(&self, hash: Hash, bytes: &[u8]) {
        self.looked_at().insert(hash, bytes.into());
    }

    fn looked_at(&self) -> std::sync::MutexGuard<'_, HashMap<Hash, Arc<[u8]>>> {
        self.looked_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the index has this object, purged or not.
    pub fn knows(&self, hash: &Hash) -> Result<bool> {
        Ok(self.place(hash)?.is_some())
    }

    /// Whether the content of this object was taken out on purpose, or marked as lost.
    pub fn is_purged(&self, hash: &Hash) -> Result<bool> {
        Ok(self.place(hash)?.is_some_and(|place| place.form == Form::Purged))
    }

    /// Whether anything is marked that may never be kept again.
    pub fn has_marks(&self) -> Result<bool> {
        let mark = self.side().read(|snapshot| {
            snapshot.query_opt(
                "SELECT 1 FROM objects WHERE form = $1 AND start = $2 LIMIT 1",
                &[&Form::Purged.number(), &NEVER_AGAIN],
                |row| row.get::<i64>(0),
            )
        })?;
        Ok(mark.is_some())
    }

    /// Those of these objects of which only the name is left, asked for at once: a restore may be of many files.
    pub fn purged_among(&self, hashes: &HashSet<Hash>) -> Result<HashSet<Hash>> {
        let purged = self.side().read(|snapshot| {
            let mut purged = HashSet::new();
            for hash in hashes {
                let form =
                    snapshot.query_opt("SELECT form FROM objects WHERE hash = $1", &[&hash.as_slice()], |row| {
                        row.get::<i64>(0)
                    })?;
                if form == Some(Form::Purged.number()) {
                    purged.insert(*hash);
                }
            }
            Ok(purged)
        })?;
        // What is being kept again at this moment is there, too.
        Ok(purged.into_iter().filter(|hash| !self.unfinished().contains_key(hash)).collect())
    }

    fn place(&self, hash: &Hash) -> Result<Option<PackPlace>> {
        // What this handle writes is not in the index before the last transaction.
        if let Some(place) = self.unfinished().get(hash) {
            return Ok(Some(*place));
        }
        self.side().read(|snapshot| place_in(snapshot, hash))
    }

    /// What is kept under a name: a content, which is verified, or the list of its pieces.
    ///
    /// A reader may hold no lock, and a sweep may then rewrite packs at the same time, under the same or other numbers. So place and
    /// pack are read in one transaction, and a remembered pack without the content is no damage: it is read once more.
    ///
    /// Errors: `corrupt`.
    fn load(&self, hash: &Hash, trust: Trust) -> Result<(Form, Vec<u8>)> {
        if let Some(loaded) = self.load_with(hash, trust)? {
            return Ok(loaded);
        }
        self.load_with(hash, Trust::Nothing)?.ok_or_else(|| damaged(hash))
    }

    /// `None` if what the index points to is not this object.
    fn load_with(&self, hash: &Hash, trust: Trust) -> Result<Option<(Form, Vec<u8>)>> {
        let unfinished = self.unfinished().get(hash).copied();
        let (place, pack) = self.side().read(|snapshot| {
            let place = unfinished.map_or_else(|| place_in(snapshot, hash), |place| Ok(Some(place)));
            let place = place?.ok_or_else(|| missing(hash))?;
            if place.form == Form::Purged {
                return Err(purged(hash));
            }
            // An old pack does not harm a content, which is compared with its name below. A list has no such check.
            let is_trusted = match place.form {
                Form::Pieces => trust == Trust::Lists,
                _ => trust != Trust::Nothing,
            };
            let open = if is_trusted { self.remembered(place.pack) } else { None };
            Ok((place, open.map_or_else(|| packed(snapshot, place.pack), |open| Ok(Packed::Open(open)))?))
        })?;
        let Some(pack) = self.opened(place.pack, pack) else { return Ok(None) };
        let range = usize::try_from(place.start)
            .ok()
            .zip(usize::try_from(place.size).ok())
            .and_then(|(start, size)| Some(start..start.checked_add(size)?));
        let Some(bytes) = range.and_then(|range| pack.get(range)) else { return Ok(None) };
        // A list of pieces has not the hash of its content, so it cannot be checked here; its pieces, and then the whole, are.
        let is_it = place.form != Form::Whole || hash_of(bytes) == *hash;
        Ok(is_it.then(|| (place.form, bytes.to_vec())))
    }

    fn remembered(&self, id: i64) -> Option<Arc<Vec<u8>>> {
        self.recent().packs.iter().find(|(recent, _)| *recent == id).map(|(_, pack)| pack.clone())
    }

    /// The content of a pack, which is remembered; `None` if it is missing or damaged.
    fn opened(&self, id: i64, pack: Packed) -> Option<Arc<Vec<u8>>> {
        let raw = match pack {
            Packed::Open(raw) => return Some(raw),
            Packed::Missing => return None,
            Packed::Closed(data, size) => Arc::new(pack::open(&data, size)?),
        };
        // The pack is opened without the lock: other threads read while this one decompresses.
        let mut recent = self.recent();
        // Another thread may have opened it at the same time, or a sweep has written other content under its number.
        recent.packs.retain(|(other, _)| *other != id);
        recent.packs.push_front((id, raw.clone()));
        recent.packs.truncate(RECENT_PACKS);
        let mut held = 0;
        let beyond = recent.packs.iter().position(|(_, pack)| {
            held += pack.len();
            held > RECENT_BYTES
        });
        recent.packs.truncate(beyond.unwrap_or(RECENT_PACKS).max(1));
        Some(raw)
    }

    pub(super) fn unfinished(&self) -> std::sync::MutexGuard<'_, HashMap<Hash, PackPlace>> {
        self.unfinished.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn recent(&self) -> std::sync::MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place_in(snapshot: &Snapshot<'_>, hash: &Hash) -> Result<Option<PackPlace>> {
    let found = snapshot.query_opt(
        "SELECT form, pack, start, size FROM objects WHERE hash = $1",
        &[&hash.as_slice()],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
    )?;
    let Some((form, pack, start, size)) = found else { return Ok(None) };
    let form = Form::of_number(form).ok_or_else(|| damaged(hash))?;
    Ok(Some(PackPlace { form, pack, start, size }))
}

fn packed(snapshot: &Snapshot<'_>, id: i64) -> Result<Packed> {
    let found = snapshot.query_opt("SELECT data, size FROM packs WHERE id = $1", &[&id], |row| {
        Ok(Packed::Closed(row.get(0)?, row.get(1)?))
    })?;
    Ok(found.unwrap_or(Packed::Missing))
}

fn missing(hash: &Hash) -> Diagnosis {
    about(hash, "is missing from the object store")
}

fn damaged(hash: &Hash) -> Diagnosis {
    about(hash, "is damaged")
}

/// Its content was taken out on purpose: nothing is damaged, and looking for damage would find none.
fn purged(hash: &Hash) -> Diagnosis {
    unreadable(hash, "is gone: it was purged, or lost").hint("it cannot be restored; everything else can")
}

fn about(hash: &Hash, what: &str) -> Diagnosis {
    unreadable(hash, what)
        .hint("see which checkpoints need it: ic checkpoint verify --read-data; remove what is lost: ic checkpoint verify --repair")
}

fn unreadable(hash: &Hash, what: &str) -> Diagnosis {
    let name = hex(hash);
    Diagnosis::new(Code::Corrupt, format!("The object {} {what}.", &name[..12])).detail("object", name)
}
