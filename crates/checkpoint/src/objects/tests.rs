use std::collections::HashSet;

use ic_base::{Code, Timestamp};
use ic_ledger::{Durability, OpenOptions};

use super::{Objects, PIECE, hash_of};
use crate::tree::{TreeEntry, TreeNode, TreeObject};

mod concurrent_readers;
mod lists;

fn store() -> (tempfile::TempDir, Objects) {
    let dir = tempfile::tempdir().unwrap();
    let objects = Objects::open(&dir.path().join("objects.db"), OpenOptions::default()).unwrap();
    (dir, objects)
}

/// Bytes that do not compress and differ for each seed.
fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            u8::try_from(state & 0xff).unwrap()
        })
        .collect()
}

#[test]
fn content_of_every_length_comes_back_and_is_kept_once() {
    let (_dir, objects) = store();
    let lengths = [0, 1, 4095, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 5 * PIECE + 7];
    let contents: Vec<_> = lengths.iter().map(|n| noise(*n, *n as u64)).collect();
    let writer = objects.writer(Timestamp(1)).unwrap();
    let hashes: Vec<_> = contents.iter().map(|c| writer.put_reader(&mut c.as_slice()).unwrap()).collect();
    let first = writer.finish().unwrap();
    assert!(first.new_objects > 8);
    for (content, (hash, length)) in contents.iter().zip(&hashes) {
        assert_eq!((*hash, *length), (hash_of(content), content.len() as u64));
        assert!(objects.read(hash).unwrap() == *content);
    }
    let writer = objects.writer(Timestamp(2)).unwrap();
    for content in &contents {
        writer.put_reader(&mut content.as_slice()).unwrap();
    }
    assert_eq!(writer.finish().unwrap(), super::Stored::default());
}

#[test]
fn what_is_read_at_one_moment_does_not_see_what_others_keep_meanwhile() {
    let (dir, objects) = store();
    let other = Objects::open(&dir.path().join("objects.db"), OpenOptions::default()).unwrap();
    let keep = |content: &[u8]| {
        let writer = other.writer(Timestamp(1)).unwrap();
        let (hash, _) = writer.put_reader(&mut &content[..]).unwrap();
        writer.finish().unwrap();
        hash
    };
    let first = keep(b"first");
    let seen = objects.at_one_moment(|| {
        assert_eq!(objects.read(&first).unwrap(), b"first");
        objects.has(&keep(b"second"))
    });
    assert!(!seen.unwrap());
    assert!(objects.at_one_moment(|| -> ic_base::Result<()> { Err(objects.read(&[7; 32]).unwrap_err()) }).is_err());
    assert!(objects.has(&hash_of(b"second")).unwrap(), "the view has ended, whatever was read in it");
}

#[test]
fn one_changed_entry_of_a_large_directory_stores_little() {
    let (_dir, objects) = store();
    let mut tree = TreeObject { mode: 0o755, ..TreeObject::default() };
    for i in 0..5_000_u64 {
        let name = format!("file-{i:05}").into_bytes();
        tree.entries.push(TreeEntry {
            node: TreeNode::File { hash: hash_of(&name), size: i, mode: 0o644 },
            name,
            attributes: crate::attributes::Attributes::default(),
        });
    }
    let writer = objects.writer(Timestamp(1)).unwrap();
    let hash = writer.put_tree(&tree.encode()).unwrap();
    writer.finish().unwrap();
    assert_eq!(objects.tree(&hash).unwrap(), tree);
    tree.entries[2_500].node = TreeNode::Symlink(b"elsewhere".to_vec());
    let writer = objects.writer(Timestamp(1)).unwrap();
    let hash = writer.put_tree(&tree.encode()).unwrap();
    let stored = writer.finish().unwrap();
    assert_eq!(stored.new_objects, 2);
    assert!(stored.stored_bytes < 16_000, "{stored:?}");
    assert_eq!(objects.tree(&hash).unwrap(), tree);
}

#[test]
fn damage_is_named_and_never_given_out() {
    let (dir, objects) = store();
    let writer = objects.writer(Timestamp(1)).unwrap();
    let content = noise(10_000, 3);
    let (hash, _) = writer.put_reader(&mut content.as_slice()).unwrap();
    writer.finish().unwrap();
    drop(objects);
    let path = dir.path().join("objects.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(64).position(|w| *w == content[5_000..5_064]).expect("incompressible content");
    bytes[at] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let objects = Objects::open(&path, OpenOptions::default()).unwrap();
    let error = objects.read(&hash).unwrap_err();
    assert_eq!(error.code(), Code::Corrupt);
    assert_eq!(error.details()["object"], ic_ledger::events::hex(&hash));
    assert_eq!(objects.read(&hash_of(b"never kept")).unwrap_err().code(), Code::Corrupt);
}

/// A store with two objects in one pack, of which a statement then changed something.
fn damaged_by(sql: &str) -> (tempfile::TempDir, Objects, [ic_ledger::events::Hash; 2]) {
    let (dir, objects) = store();
    let writer = objects.writer(Timestamp(1)).unwrap();
    let hashes = [b"one", b"two"].map(|content| writer.put_reader(&mut content.as_slice()).unwrap().0);
    writer.finish().unwrap();
    let changed = objects.side().write(Durability::Synced, |tx| tx.execute(sql, &[])).unwrap();
    assert!(changed > 0);
    objects.forget_recent();
    (dir, objects, hashes)
}

#[test]
fn a_sweep_takes_no_harm_from_a_damaged_index() {
    for damage in ["size = -1", "size = 9223372036854775807", "start = -1", "start = 9223372036854775807"] {
        let (_dir, objects, [one, two]) =
            damaged_by(&format!("UPDATE objects SET {damage} WHERE hash = (SELECT min(hash) FROM objects)"));
        let (bad, good) = if one < two { (one, two) } else { (two, one) };
        for live in [HashSet::from([good, bad]), HashSet::from([good])] {
            objects.sweep(&live, Timestamp(1)).unwrap();
            assert!(objects.read(&good).is_ok(), "{damage}");
            assert_eq!(objects.read(&bad).unwrap_err().code(), Code::Corrupt, "{damage}");
        }
    }
    let (_dir, objects, [one, two]) = damaged_by("UPDATE objects SET size = -1");
    objects.sweep(&HashSet::from([one]), Timestamp(1)).unwrap();
    assert!(objects.has(&one).unwrap() && !objects.has(&two).unwrap());
}

#[test]
fn a_pack_that_shrinks_in_small_steps_is_written_anew() {
    let (_dir, objects) = store();
    let writer = objects.writer(Timestamp(1)).unwrap();
    let put = |n| writer.put_reader(&mut noise(10_000, n).as_slice()).unwrap().0;
    let hashes: Vec<_> = (1..=10).map(put).collect();
    writer.finish().unwrap();
    for (left, held) in [(7, 100_000), (5, 50_000), (4, 50_000), (2, 20_000)] {
        objects.sweep(&hashes[..left].iter().copied().collect(), Timestamp(1)).unwrap();
        let sql = "SELECT sum(size) FROM packs";
        let size: Option<i64> = objects.side().read(|snapshot| snapshot.query_opt(sql, &[], |row| row.get(0))).unwrap();
        assert_eq!(size, Some(held), "{left} of ten are left");
    }
}

#[test]
fn a_purge_clears_a_damaged_pack() {
    for damage in [
        "UPDATE packs SET data = X'00'",
        "UPDATE packs SET size = size + 1",
        "UPDATE packs SET size = -1",
        "UPDATE objects SET start = 9223372036854775807",
    ] {
        let (_dir, objects, [one, two]) = damaged_by(damage);
        let purged = objects.purge_all_but(&HashSet::from([one]), &HashSet::new(), &HashSet::from([two])).unwrap();
        assert_eq!(purged.objects, 1, "{damage}");
        assert!(objects.is_purged(&one).unwrap(), "{damage}");
        let packs: Option<i64> = objects
            .side()
            .read(|snapshot| snapshot.query_opt("SELECT count(*) FROM packs", &[], |row| row.get(0)))
            .unwrap();
        assert_eq!(packs, Some(0), "{damage}: nothing of it can be told from what was to go");
        // Who captures the other one again keeps it again.
        let writer = objects.writer(Timestamp(2)).unwrap();
        assert_eq!(writer.put_reader(&mut &b"two"[..]).unwrap().0, two);
        writer.finish().unwrap();
        assert_eq!(objects.read(&two).unwrap(), b"two");
    }
}

#[test]
fn many_threads_add_at_once() {
    let (_dir, objects) = store();
    let writer = objects.writer(Timestamp(1)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let writer = &writer;
            scope.spawn(move || {
                for i in 0..500_u64 {
                    writer.put_reader(&mut noise(2_000, i + thread % 2).as_slice()).unwrap();
                }
            });
        }
    });
    assert_eq!(writer.finish().unwrap().new_objects, 501);
    for i in 0..501 {
        let content = noise(2_000, i);
        assert!(objects.read(&hash_of(&content)).unwrap() == content);
    }
}

#[test]
fn what_a_writer_has_not_finished_is_nobody_elses_and_is_given_back() {
    let (dir, objects) = store();
    let size = |dir: &tempfile::TempDir| std::fs::metadata(dir.path().join("objects.db")).unwrap().len();
    objects.writer(Timestamp(1)).unwrap().finish().unwrap();
    objects.side().shrink().unwrap();
    let before = size(&dir);
    let content: Vec<Vec<u8>> = (0..12).map(|i| noise(1_000_000, i + 1)).collect();
    let put = |writer: &super::Writer<'_>| -> Vec<_> {
        content.iter().map(|bytes| writer.put_reader(&mut bytes.as_slice()).unwrap().0).collect()
    };
    // One that fails.
    let writer = objects.writer(Timestamp(1)).unwrap();
    let names = put(&writer);
    assert!(objects.has_unfinished().unwrap());
    assert!(names.iter().all(|name| !objects.has(name).unwrap()), "what is not finished counts as absent");
    drop(writer);
    objects.side().shrink().unwrap();
    assert!(!objects.has_unfinished().unwrap());
    assert_eq!(size(&dir), before);
    // One that dies, beside one that works: what that one kept stays, though it is the same.
    let dies = objects.writer(Timestamp(1)).unwrap();
    put(&dies);
    std::mem::forget(dies);
    let works = objects.writer(Timestamp(1)).unwrap();
    assert_eq!(put(&works), names);
    assert_eq!(works.finish().unwrap().new_objects, 12);
    let both = size(&dir);
    objects.clear_unfinished().unwrap();
    assert!(size(&dir) < both - 7_000_000, "{} of {both}", size(&dir));
    for (name, bytes) in names.iter().zip(&content) {
        assert!(objects.read(name).unwrap() == *bytes);
    }
}

#[test]
fn a_writer_whose_flush_failed_enters_no_list_without_its_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let open = || {
        let options = OpenOptions { busy_timeout: std::time::Duration::ZERO, ..OpenOptions::default() };
        Objects::open(&dir.path().join("objects.db"), options).unwrap()
    };
    let (objects, other) = (open(), open());
    let content = noise(6_000_000, 1);
    let mut writer = objects.writer(Timestamp(1)).unwrap();
    writer.keep_progress();
    let put = || writer.put_reader(&mut content.as_slice()).map(|_| ());
    // Another thread does it, because one thread takes no lock twice.
    let failed =
        other.side().write(Durability::Synced, |_| std::thread::scope(|scope| scope.spawn(put).join().unwrap()));
    assert_eq!(failed.unwrap_err().code(), Code::Busy);
    // Another thread has the same content, and takes the pieces for added.
    let _ = put();
    drop(writer);
    let hash = hash_of(&content);
    assert!(!objects.has(&hash).unwrap() || objects.read(&hash).is_ok(), "its pieces were lost with the flush");
}

#[test]
fn a_store_belongs_to_the_ledger_that_claimed_it_first() {
    let (_dir, objects) = store();
    let [one, two] = ["one", "two"].map(|id| ic_base::LedgerId::from_ledger(id.to_owned()));
    assert_eq!(objects.owner().unwrap(), None);
    assert_eq!(objects.claim(&one).unwrap(), one);
    assert_eq!(objects.claim(&two).unwrap(), one, "it has one ledger");
    assert_eq!(objects.owner().unwrap(), Some(one));
}

#[test]
fn a_copy_keeps_the_marks_of_what_was_purged_though_no_checkpoint_names_it() {
    let (dir, objects) = store();
    let secret = noise(500, 1);
    let writer = objects.writer(Timestamp(1)).unwrap();
    let (hash, _) = writer.put_reader(&mut secret.as_slice()).unwrap();
    writer.finish().unwrap();
    let nothing = HashSet::new();
    objects.purge_all_but(&HashSet::from([hash]), &nothing, &nothing).unwrap();
    assert!(objects.has_marks().unwrap());
    let to = dir.path().join("copy.db");
    let ledger = ic_base::LedgerId::from_ledger("one".to_owned());
    objects.copy_to(&to, &nothing, &ledger, OpenOptions::default()).unwrap();
    let copy = Objects::open(&to, OpenOptions::default()).unwrap();
    assert!(copy.is_purged(&hash).unwrap() && copy.has_marks().unwrap());
}
