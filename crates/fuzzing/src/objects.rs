//! The object store, damaged: rows that say anything, packs that hold anything.
//!
//! What is read is what its name says, or there is an error; a sweep and a purge take nothing but what they are told to.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use arbitrary::{Arbitrary, Unstructured};
use ic_base::{Code, Timestamp};
use ic_checkpoint::objects::Objects;
use ic_ledger::{Durability, OpenOptions, SideDatabase, SideSchema};
use sha2::{Digest, Sha256};

type Hash = [u8; 32];

/// As in the product; its tables are made by it.
const SCHEMA: SideSchema = SideSchema {
    application_id: 0x6963_4f62,
    version: 2,
    page_size: 4096,
    owner: "SELECT NULL",
    age: "SELECT NULL",
    lock: ".lock",
    at_age: "SELECT NULL",
    made: "SELECT NULL",
    sql: "",
};

/// The file of an empty store.
static EMPTY: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("objects.db");
    drop(Objects::open(&path, OpenOptions::default()).expect("an empty store"));
    std::fs::read(path).expect("its file")
});

#[derive(Debug, Arbitrary)]
struct Store {
    packs: Vec<Pack>,
    objects: Vec<Object>,
    deeds: Vec<Deed>,
}

#[derive(Debug, Arbitrary)]
struct Pack {
    content: Vec<u8>,
    /// The content is not compressed: the row has the bytes themselves.
    is_raw: bool,
    /// What its row says of its size, if that is not true.
    size: Option<i64>,
    /// A byte of the compressed form that is damaged, and how.
    damage: Option<(u16, u8)>,
}

#[derive(Debug, Arbitrary)]
struct Object {
    name: Name,
    form: u8,
    pack: u8,
    start: Number,
    size: Number,
}

#[derive(Debug, Arbitrary)]
enum Name {
    /// That of its content.
    True,
    /// That of the content of its pieces.
    OfPieces,
    Any(u8),
}

#[derive(Debug, Arbitrary)]
enum Number {
    Small(u8),
    Any(i64),
}

#[derive(Debug, Arbitrary)]
enum Deed {
    Put(Vec<u8>),
    Sweep(u64),
    Purge(u64),
}

impl Number {
    /// Mostly a place in something of this length, or just beyond.
    fn within(&self, length: usize) -> i64 {
        match self {
            Self::Small(number) => i64::from(*number) % (length as i64 + 2),
            Self::Any(number) => *number,
        }
    }
}

/// What the row of an object says.
struct Place {
    pack: usize,
    start: i64,
    size: i64,
}

fn hash_of(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

impl Store {
    fn place(&self, object: &Object) -> Place {
        let pack = usize::from(object.pack) % (self.packs.len() + 1);
        let length = self.packs.get(pack).map_or(0, |pack| pack.content.len());
        Place { pack, start: object.start.within(length), size: object.size.within(length) }
    }

    /// What an object's row points to, if that makes sense.
    fn content(&self, object: &Object) -> Option<&[u8]> {
        let Place { pack, start, size } = self.place(object);
        let start = usize::try_from(start).ok()?;
        self.packs.get(pack)?.content.get(start..start.checked_add(usize::try_from(size).ok()?)?)
    }

    fn name(&self, object: &Object) -> Hash {
        match object.name {
            Name::Any(byte) => [byte; 32],
            Name::True => hash_of(self.content(object).unwrap_or_default()),
            Name::OfPieces => {
                let list = self.content(object).unwrap_or_default();
                let piece = |name: &[u8]| {
                    let of = self.objects.iter().find(|o| matches!(o.name, Name::True) && self.name(o) == name);
                    of.and_then(|of| self.content(of)).unwrap_or_default().to_vec()
                };
                hash_of(&list.chunks(32).flat_map(piece).collect::<Vec<u8>>())
            }
        }
    }

    fn write(&self, db: &SideDatabase) -> ic_base::Result<()> {
        db.write(Durability::Buffered, |tx| {
            for (id, pack) in self.packs.iter().enumerate() {
                let mut stored = if pack.is_raw {
                    pack.content.clone()
                } else {
                    zstd::bulk::compress(&pack.content, 1).expect("compress")
                };
                if let Some((at, flip)) = pack.damage
                    && !stored.is_empty()
                {
                    let at = usize::from(at) % stored.len();
                    stored[at] ^= flip;
                }
                let size = pack.size.unwrap_or(pack.content.len() as i64);
                tx.execute(
                    "INSERT INTO packs (id, size, created_at, data) VALUES ($1, $2, 1, $3)",
                    &[&(id as i64), &size, &stored],
                )?;
            }
            for object in &self.objects {
                let Place { pack, start, size } = self.place(object);
                tx.execute(
                    "INSERT INTO objects (hash, form, pack, start, size) VALUES ($1, $2, $3, $4, $5) \
                     ON CONFLICT DO NOTHING",
                    &[&self.name(object).as_slice(), &(object.form % 3), &(pack as i64), &start, &size],
                )?;
            }
            Ok(())
        })
    }
}

/// Everything that can be read.
fn readable(objects: &Objects, names: &HashSet<Hash>) -> HashMap<Hash, Vec<u8>> {
    let mut found = HashMap::new();
    for name in names {
        match objects.read(name) {
            Ok(bytes) => {
                assert_eq!(hash_of(&bytes), *name, "what is read is what its name says");
                if let Ok(tree) = objects.tree(name) {
                    assert_eq!(tree.encode().bytes, bytes);
                }
                found.insert(*name, bytes);
            }
            Err(error) => {
                assert_eq!(error.code(), Code::Corrupt, "{error}");
                assert!(objects.tree(name).is_err());
            }
        }
    }
    found
}

/// Those whose place in the set of bits is set.
fn chosen(names: &[Hash], bits: u64) -> HashSet<Hash> {
    names.iter().enumerate().filter(|(at, _)| bits >> (at % 64) & 1 == 1).map(|(_, name)| *name).collect()
}

fn run(store: &Store) -> ic_base::Result<()> {
    let memory = std::path::Path::new("/dev/shm");
    let directory = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let directory = directory.expect("a directory");
    let path = directory.path().join("objects.db");
    std::fs::write(&path, &*EMPTY).expect("an empty store");
    store.write(&SideDatabase::open(&path, &SCHEMA, OpenOptions::default())?)?;
    let objects = Objects::open(&path, OpenOptions::default())?;
    let mut names: Vec<Hash> = store.objects.iter().map(|object| store.name(object)).collect();
    for deed in store.deeds.iter().take(8) {
        let all: HashSet<Hash> = names.iter().copied().collect();
        let before = readable(&objects, &all);
        match deed {
            Deed::Put(content) => {
                let was_named = objects.has(&hash_of(content))?;
                let writer = objects.writer(Timestamp(2))?;
                let (name, _) = writer.put_reader(&mut content.as_slice())?;
                writer.finish()?;
                // What the index names already is not kept again, be it damaged.
                assert!(was_named || objects.read(&name)? == *content);
                names.push(name);
            }
            Deed::Sweep(bits) => {
                let mut live = chosen(&names, *bits);
                // An object that is live keeps its pieces live.
                let pieces: Vec<Hash> = store
                    .objects
                    .iter()
                    .filter(|o| live.contains(&store.name(o)))
                    .flat_map(|o| pieces(store, o))
                    .collect();
                live.extend(pieces);
                objects.sweep(&live, Timestamp(i64::MAX))?;
                let after = readable(&objects, &all);
                for name in live.intersection(&all).filter(|name| before.contains_key(*name)) {
                    assert_eq!(after.get(name), before.get(name), "a sweep takes nothing that lives");
                }
            }
            Deed::Purge(bits) => {
                let gone = chosen(&names, *bits);
                let live = all.difference(&gone).copied().collect();
                objects.purge_all_but(&gone, &HashSet::new(), &live)?;
                assert!(readable(&objects, &gone).is_empty(), "what was purged is gone");
                let after = readable(&objects, &all);
                for name in before.keys().filter(|name| !gone.contains(*name)) {
                    let needs_gone = store
                        .objects
                        .iter()
                        .filter(|o| store.name(o) == *name)
                        .any(|o| pieces(store, o).iter().any(|piece| gone.contains(piece)));
                    assert!(needs_gone || after.get(name) == before.get(name), "a purge takes nothing else");
                }
            }
        }
    }
    assert_eq!(objects.file_damage()?, Vec::<String>::new());
    readable(&objects, &names.iter().copied().collect());
    Ok(())
}

fn pieces(store: &Store, object: &Object) -> Vec<Hash> {
    let list = store.content(object).unwrap_or_default();
    list.chunks_exact(32).map(|name| name.try_into().expect("32 bytes")).collect()
}

/// Reads, sweeps and purges a store that these bytes decide.
pub fn objects(bytes: &[u8]) {
    let Ok(store) = Store::arbitrary_take_rest(Unstructured::new(bytes)) else { return };
    if let Err(error) = run(&store) {
        assert_eq!(error.code(), Code::Corrupt, "{error}");
    }
}
