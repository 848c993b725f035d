use proptest::prelude::*;

use super::{Reason, TreeEntry, TreeNode, TreeObject};
use crate::attributes::{Attributes, FileOwner};

fn node() -> impl Strategy<Value = TreeNode> {
    prop_oneof![
        (any::<[u8; 32]>(), any::<u64>(), 0..0o10000_u32).prop_map(|(hash, size, mode)| TreeNode::File {
            hash,
            size,
            mode
        }),
        any::<Vec<u8>>().prop_map(TreeNode::Symlink),
        any::<[u8; 32]>().prop_map(TreeNode::Directory),
        (0..12_u8).prop_map(|b| TreeNode::Passed(Reason::of_byte(b).unwrap())),
    ]
}

fn attributes() -> impl Strategy<Value = Attributes> {
    let owner = prop::option::of((any::<u32>(), any::<u32>()));
    let owner = owner.prop_map(|ids| ids.map(|(user, group)| FileOwner { user, group }));
    let extended = prop::collection::btree_map("user\\.[a-z]{1,9}", any::<Vec<u8>>(), 0..3);
    let some = (owner, extended).prop_map(|(owner, extended)| Attributes {
        owner,
        extended: extended.into_iter().map(|(name, value)| (name.into_bytes(), value)).collect(),
    });
    prop_oneof![3 => Just(Attributes::default()), 1 => some]
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec((1..=255_u8).prop_filter("no slash", |b| *b != b'/'), 1..40)
        .prop_filter("no dots", |n| n != b"." && n != b"..")
}

proptest! {
    #[test]
    fn what_is_written_is_read(entries in prop::collection::btree_map(name(), (node(), attributes()), 0..100),
        attributes in attributes(), mode in 0..0o10000_u32) {
        let entries = entries.into_iter().map(|(name, (node, attributes))| {
            let attributes = if matches!(node, TreeNode::File { .. }) { attributes } else { Attributes::default() };
            TreeEntry { name, node, attributes }
        });
        let tree = TreeObject { mode, attributes, links: Vec::new(), entries: entries.collect() };
        let encoded = tree.encode();
        prop_assert!(encoded.cuts().all(|cut| cut < encoded.bytes.len()));
        prop_assert_eq!(TreeObject::decode(&encoded.bytes).unwrap(), tree);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>) {
        let _ = TreeObject::decode(&bytes);
    }
}

fn link(name: &[u8]) -> TreeEntry {
    TreeEntry { name: name.to_vec(), node: TreeNode::Symlink(vec![]), attributes: Attributes::default() }
}

#[test]
fn what_is_usual_has_the_bytes_that_it_always_had() {
    let node = TreeNode::File { hash: [7; 32], size: 3, mode: 0o644 };
    let entry = |attributes| TreeEntry { name: b"a".to_vec(), node: node.clone(), attributes };
    let usual = TreeObject { mode: 0o755, entries: vec![entry(Attributes::default())], ..TreeObject::default() };
    let bytes = [&[1, 0xed, 3, 0, 1, b'a', 0xa4, 3, 3][..], &[7; 32]].concat();
    assert_eq!(usual.encode().bytes, bytes);
    let owned = Attributes { owner: Some(FileOwner { user: 5, group: 6 }), extended: Vec::new() };
    let other = TreeObject { entries: vec![entry(owned)], ..usual };
    assert_eq!(other.encode().bytes[0], 2, "a program that knows the first form alone refuses it");
    // The second form without anything to say, and a directory that has attributes in its parent, are no forms.
    assert!(TreeObject::decode(&[&[2, 0xed, 3, 0, 0][..], &bytes[3..]].concat()).is_err());
    assert!(TreeObject::decode(&[&[2, 0, 0, 0, 0x12, 1, b'd'][..], &[7; 32], &[1, 5, 6]].concat()).is_err());
}

#[test]
fn impossible_names_are_refused() {
    for name in [&b""[..], b".", b"..", b"a/b", b"a\0b", &[b'x'; 256]] {
        let tree = TreeObject { entries: vec![link(name)], ..TreeObject::default() };
        assert!(TreeObject::decode(&tree.encode().bytes).is_err(), "{name:?}");
    }
    let tree = TreeObject { entries: vec![link(b"a"), link(b"a")], ..TreeObject::default() };
    assert!(TreeObject::decode(&tree.encode().bytes).is_err());
}

#[test]
fn a_directory_has_one_form() {
    for mode in [&[0_u8][..], &[0x7f], &[0x80, 0x01], &[0xff, 0x1f]] {
        assert!(TreeObject::decode(&[&[1], mode].concat()).is_ok(), "{mode:x?}");
    }
    let too_long = [&[0x80_u8, 0][..], &[0xff, 0], &[0x80, 0x80, 0], &[0x81, 0x80, 0x80, 0]];
    let no_permissions = [&[0x80_u8, 0x20][..], &[0xff; 9]];
    for mode in too_long.iter().chain(&no_permissions) {
        assert!(TreeObject::decode(&[&[1], *mode].concat()).is_err(), "{mode:x?}");
    }
    let of_size = |size: &[u8]| TreeObject::decode(&[&[1, 0, 0, 1, b'a', 0], size, &[7; 32]].concat());
    let most = [&[0xff_u8; 9][..], &[0x01]].concat();
    let TreeNode::File { size, .. } = of_size(&most).unwrap().entries[0].node else { panic!("a file") };
    assert_eq!(size, u64::MAX);
    assert!(of_size(&[&[0xff; 9][..], &[0x03]].concat()).is_err(), "more than 64 bits");
    assert!(of_size(&[&[0x80; 9][..], &[0x02]].concat()).is_err(), "more than 64 bits");
}

#[test]
fn names_of_one_file_have_one_form() {
    let of = |links: &[&[&str]]| {
        let group = |group: &&[&str]| group.iter().map(|path| path.as_bytes().to_vec()).collect();
        TreeObject { links: links.iter().map(group).collect(), ..TreeObject::default() }
    };
    let tree = of(&[&["a", "d/b"], &["c", "d/c", "e"]]);
    assert_eq!(TreeObject::decode(&tree.encode().bytes).unwrap(), tree);
    let wrong: [&[&[&str]]; 10] = [
        &[&["a"]],
        &[&[]],
        &[&["b", "a"]],
        &[&["a", "a"]],
        &[&["c", "d"], &["a", "b"]],
        &[&["a", "b"], &["b", "c"]],
        &[&["a", "../b"]],
        &[&["a", "b/"]],
        &[&["", "b"]],
        &[&["/b", "c"]],
    ];
    for wrong in wrong {
        assert!(TreeObject::decode(&of(wrong).encode().bytes).is_err(), "{wrong:?}");
    }
}
