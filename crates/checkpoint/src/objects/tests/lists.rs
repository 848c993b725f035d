//! Texts that are cut into pieces.

use ic_base::{Code, Timestamp};
use ic_ledger::{Durability, OpenOptions};

use super::store;
use crate::git::index;
use crate::objects::{Objects, hash_of};
use crate::tree::rarity;

fn entry(name: usize) -> String {
    format!("H 100644 {:040x} 0\tlong/enough/that/few/entries/are/cut/{name:06}\0", name * 7919)
}

/// An entry that is, or is not, a place to cut at, whatever the number of entries.
fn entry_that(is_cut: bool, from: usize) -> String {
    let cuts = |entry: &String| rarity(&entry.as_bytes()[entry.len() - 12..]);
    let mut all = (from..).map(entry);
    all.find(|entry| if is_cut { cuts(entry) >= 6 } else { cuts(entry) == 0 }).unwrap()
}

/// Texts of indexes of 1 to 40 entries: one is a place to cut at, the first, the last or one between.
fn texts() -> impl Iterator<Item = Vec<u8>> {
    let text = |n: usize, at: usize| -> Vec<u8> {
        (0..n).map(|k| entry_that(k == at, 1_000 * (n + k))).collect::<String>().into_bytes()
    };
    (1..40).flat_map(move |n| [0, n / 2, n - 1].map(|at| text(n, at)))
}

#[test]
fn every_text_of_an_index_is_read_as_it_was_kept() {
    let (_dir, objects) = store();
    let kept: Vec<_> = texts()
        .map(|text| {
            let writer = objects.writer(Timestamp(1)).unwrap();
            let index = index::keep(&writer, text.clone()).unwrap();
            writer.finish().unwrap();
            (index, text)
        })
        .collect();
    let reader = Objects::open(objects.path(), OpenOptions::default()).unwrap();
    for (index, text) in kept {
        assert!(reader.read(&index.0).unwrap() == text, "{}", String::from_utf8_lossy(&text));
    }
}

#[test]
fn a_list_of_itself_is_damaged() {
    let (_dir, objects) = store();
    let text = texts().last().unwrap();
    let name = hash_of(&text);
    let writer = objects.writer(Timestamp(1)).unwrap();
    let (list, _) = writer.put_reader(&mut name.as_slice()).unwrap();
    writer.finish().unwrap();
    objects
        .side()
        .write(Durability::Synced, |tx| {
            tx.execute("UPDATE objects SET hash = $1, form = 1 WHERE hash = $2", &[&name.as_slice(), &list.as_slice()])
        })
        .unwrap();
    let error = index::read(&objects, crate::git::state::Index(name)).unwrap_err();
    assert_eq!(error.code(), Code::Corrupt);
    assert!(error.get_hint().unwrap().contains("--strategy files-only"));
}
