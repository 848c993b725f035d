//! A door for the fuzz targets in `fuzz/`, which see only what is public. It is built for them alone.

use super::{Cache, HEADER, Header, Maker, Old, Update, sum_of};
use crate::tree::Tree;

/// Reads a stat cache of these bytes, and one whose only record has them for content.
///
/// # Panics
/// If a record that can be read is not written the same.
pub fn stat_cache(bytes: &[u8]) {
    if let Some(cache) = Cache::parse(bytes.to_vec()) {
        let _ = cache.record(cache.header.root).map(|lying| lying.read().is_some());
    }
    let record = [&(bytes.len() as u64).to_le_bytes()[..], &sum_of(bytes).to_le_bytes(), bytes].concat();
    let (cache, at) = only(Maker { start: HEADER as u64, bytes: record, living: 0 });
    let lying = cache.record(at).expect("it is whole");
    let Some(Old { record, .. }) = lying.read() else { return };
    let mut maker = Maker::new(None);
    maker.add(&record);
    let (again, at) = only(maker);
    let again = again.record(at).expect("what was written");
    let again = again.read().expect("what was written").record;
    assert!(again.is_same(&record) && again.hash == record.hash);
    if let Ok(tree) = Tree::decode(&record.encode().bytes) {
        assert_eq!(tree.entries.len(), record.lines.len());
    }
}

/// A cache with one record, and where that lies.
fn only(maker: Maker) -> (Cache, u64) {
    let root = HEADER as u64;
    let Update::Whole(bytes) = maker.finish(None, Header { root, ..Header::default() }) else {
        panic!("it begins anew")
    };
    (Cache::parse(bytes).expect("a whole file"), root)
}
