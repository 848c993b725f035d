use std::borrow::Cow;

use super::{Cache, CacheLine, CacheRecord, CacheSeen, CacheUpdate, HEADER, Header, Key, Maker};
use crate::tree::Reason;

#[test]
fn what_is_written_is_read_and_damage_is_seen() {
    let key = Key { dev: 1, ino: 2, size: 3, mtime: -4, ctime: 5, mode: 0o100_644 };
    let attributes = Cow::Borrowed(&b"\x01\x02\x03"[..]);
    let file = CacheSeen::File { key, hash: [7; 32], size: 3, attributes: attributes.clone() };
    let seen = [
        file,
        CacheSeen::Symlink { key, target: b"t" },
        CacheSeen::Directory { hash: [6; 32], at: 9 },
        CacheSeen::Passed(Reason::Git),
    ];
    let lines = seen.clone().map(|seen| CacheLine { name: b"n", seen, trusted: true }).to_vec();
    let record = CacheRecord { key, trusted: false, rules: 11, hash: [8; 32], attributes, lines };
    let mut maker = Maker::new(None);
    let root = maker.add(&record);
    let header = Header { root, index: 1, tracked: 2, owner: 3, living: 0, length: 0 };
    let CacheUpdate::Whole(bytes) = maker.finish(None, header) else { panic!("it begins anew") };
    let cache = Cache::parse(bytes.clone()).unwrap();
    let lying = cache.record(root).unwrap();
    let read = lying.read().unwrap();
    let length = bytes.len() as u64;
    assert_eq!(cache.header(), Header { living: read.length, length, ..header });
    assert_eq!(read.record.lines.iter().map(|l| l.seen.clone()).collect::<Vec<_>>(), seen);
    assert!(read.record.is_same(&record) && read.record.hash == record.hash);
    assert!(cache.record(1 << 40).is_none() && cache.record(root + 1).is_none());
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        let cache = Cache::parse(damaged);
        assert!(cache.is_none_or(|cache| cache.record(root).is_none()), "byte {at}");
    }
    assert!(Cache::parse(bytes[..bytes.len() - 1].to_vec()).is_none());
}

#[test]
fn a_cache_goes_on_after_the_last_one() {
    let record = |rules| CacheRecord {
        key: Key { dev: 1, ino: 2, size: 3, mtime: 4, ctime: 5, mode: 6 },
        trusted: true,
        rules,
        hash: [8; 32],
        attributes: Cow::default(),
        lines: Vec::new(),
    };
    let mut maker = Maker::new(None);
    let (first, second) = (maker.add(&record(1)), maker.add(&record(2)));
    let header = Header { root: second, ..Header::default() };
    let CacheUpdate::Whole(mut bytes) = maker.finish(None, header) else { panic!("it begins anew") };
    let cache = Cache::parse(bytes.clone()).unwrap();
    let mut maker = Maker::new(Some(&cache));
    maker.keep(&cache.record(first).unwrap().read().unwrap());
    let third = maker.add(&record(3));
    let CacheUpdate::After { before, records, header } = maker.finish(Some(&cache), Header { root: third, ..header })
    else {
        panic!("it goes on")
    };
    assert_eq!(bytes[..HEADER], before);
    bytes.extend_from_slice(&records);
    bytes[..HEADER].copy_from_slice(&header);
    let cache = Cache::parse(bytes).unwrap();
    let rules = |at| cache.record(at).unwrap().read().unwrap().record.rules;
    assert_eq!((rules(first), rules(third), cache.header().root), (1, 3, third));
    let length = cache.record(first).unwrap().read().unwrap().length;
    assert_eq!(cache.header().living, 2 * length, "the second one is no part of the tree any more");
}

#[test]
fn what_was_touched_lately_is_not_trusted() {
    let key = |mtime, ctime| Key { dev: 0, ino: 0, size: 0, mtime, ctime, mode: 0 };
    let second = 1_000_000_000;
    assert!(key(0, 0).is_settled(3 * second));
    assert!(!key(second, 0).is_settled(3 * second));
    assert!(!key(0, 2 * second).is_settled(3 * second));
    assert!(!key(0, 9 * second).is_settled(3 * second), "a clock that stepped back");
}

#[test]
fn a_large_cache_is_read_where_it_lies() {
    let key = Key { dev: 1, ino: 2, size: 3, mtime: 4, ctime: 5, mode: 0o100_644 };
    let names: Vec<Vec<u8>> = (0..300).map(|number| format!("{number:>0200}").into_bytes()).collect();
    let file = |name| CacheLine {
        name,
        seen: CacheSeen::File { key, hash: [7; 32], size: 3, attributes: Cow::default() },
        trusted: true,
    };
    // Records of every length, from none to several times what is read at once.
    let lines: Vec<_> = names.iter().map(|name| file(name)).collect();
    let record = |rules| CacheRecord {
        key,
        trusted: true,
        rules,
        hash: [8; 32],
        attributes: Cow::default(),
        lines: lines[..usize::try_from(rules).unwrap()].to_vec(),
    };
    let mut maker = Maker::new(None);
    let places: Vec<u64> = (0..300).map(|rules| maker.add(&record(rules))).collect();
    let header = Header { root: places[299], ..Header::default() };
    let CacheUpdate::Whole(bytes) = maker.finish(None, header) else { panic!("it begins anew") };
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("cache");
    let open = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        Cache::open(std::fs::File::open(&path).unwrap())
    };
    // Entries that another capture appends after the opening do not count.
    let cache = open(&[&bytes[..], b"more"].concat()).unwrap();
    assert!(!cache.is_small());
    for (rules, at) in (0..300).zip(&places) {
        let lying = cache.record(*at).unwrap();
        let read = lying.read().unwrap();
        assert!(read.record.is_same(&record(rules)), "{rules}");
        assert_eq!(
            (read.at, read.length),
            (*at, places.get(usize::try_from(rules).unwrap() + 1).copied().unwrap_or(bytes.len() as u64) - at)
        );
        assert!(cache.record(at + 1).is_none());
    }
    assert!(cache.record(bytes.len() as u64).is_none() && cache.record(u64::MAX).is_none());
    assert!(open(&bytes[..bytes.len() - 1]).is_none(), "it is not whole");
    let last = usize::try_from(places[299]).unwrap();
    for at in [last, last + 8, last + 16, last + 9_000, bytes.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        assert!(open(&damaged).unwrap().record(places[299]).is_none(), "byte {at}");
    }
}
