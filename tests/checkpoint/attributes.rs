//! What files have beside content and permission bits: owner and group, extended attributes, ACLs, file capabilities.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;

use ic_checkpoint::attributes::{Attributes, FileOwner};
use ic_checkpoint::tree::{TreeEntry, TreeNode, TreeObject};
use ic_testkit::{Cli, CliOutcome};
use rustix::fs::{XattrFlags, getxattr, listxattr, removexattr, setxattr};

use crate::outside_files::keep;
use crate::project::{create, make_again, project, restore, take_back, told, tree};

type Looks = BTreeMap<String, (u32, u32, u32, BTreeMap<String, Vec<u8>>)>;

const CAPABILITY: &CStr = c"security.capability";

/// `cap_net_bind_service`, permitted and effective.
fn capability() -> Vec<u8> {
    [0x0200_0001_u32, 1 << 10, 0, 0, 0].map(u32::to_le_bytes).concat()
}

/// An ACL that lets the user 1001 read.
fn acl() -> Vec<u8> {
    let none = u32::MAX;
    let entries = [(1_u16, 6_u16, none), (2, 4, 1001), (4, 4, none), (16, 4, none), (32, 4, none)];
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in entries {
        bytes.extend_from_slice(&tag.to_le_bytes());
        bytes.extend_from_slice(&rights.to_le_bytes());
        bytes.extend_from_slice(&id.to_le_bytes());
    }
    bytes
}

fn set(path: &Path, name: &CStr, value: &[u8]) {
    setxattr(path, name, value, XattrFlags::empty()).expect("an extended attribute");
}

/// The extended attributes of a file, those of the system's own left out.
fn extended(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut names = vec![0; 4096];
    let length = listxattr(path, &mut names[..]).expect("its attributes");
    let names = names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let value = |name: &[u8]| {
        let mut value = vec![0; 4096];
        let length = getxattr(path, name, &mut value[..]).expect("its value");
        value.truncate(length);
        (String::from_utf8_lossy(name).into_owned(), value)
    };
    names.filter(|name| *name != b"security.selinux").map(value).collect()
}

/// Whose everything in the project is, with its mode and its extended attributes.
fn looks(cli: &Cli) -> Looks {
    let snapshot = tree(cli);
    let look = |path: &[u8]| {
        let path = String::from_utf8(path.to_vec()).expect("a name");
        let at = cli.root().join(&path);
        let meta = fs::symlink_metadata(&at).expect("a file");
        (path, (meta.uid(), meta.gid(), meta.mode(), extended(&at)))
    };
    snapshot.paths().map(look).collect()
}

/// Whether owners, ACLs and capabilities can be set here; says so if not.
fn can_be_set(cli: &Cli) -> bool {
    let probe = cli.home().join("probe");
    fs::write(&probe, "").expect("a file");
    let is_root = chown(&probe, Some(1234), Some(2345)).is_ok();
    let set = |name: &CStr, value: &[u8]| setxattr(&probe, name, value, XattrFlags::empty()).is_ok();
    let can =
        is_root && set(c"user.a", b"b") && set(c"system.posix_acl_access", &acl()) && set(CAPABILITY, &capability());
    if !can {
        println!("skipped: owners, ACLs or file capabilities cannot be set here");
    }
    can
}

/// A project with a file and a directory that have everything, and one file that has nothing.
fn dressed() -> Option<(Cli, Looks)> {
    let cli = project();
    if !can_be_set(&cli) {
        return None;
    }
    let at = |name: &str| cli.root().join(name);
    for name in ["plain", "f", "d/x"] {
        fs::create_dir_all(at(name).parent().expect("a directory")).expect("its directory");
        fs::write(at(name), "v1").expect("a file");
    }
    for name in ["f", "d", "d/x"] {
        chown(at(name), Some(1234), Some(2345)).expect("another owner");
        set(&at(name), c"user.tag", b"important");
    }
    set(&at("f"), c"system.posix_acl_access", &acl());
    set(&at("f"), CAPABILITY, &capability());
    // What is made in it inherits this, and must not keep it where it had none.
    set(&at("d"), c"system.posix_acl_default", &acl());
    fs::set_permissions(at("d"), fs::Permissions::from_mode(0o2775)).expect("its mode");
    let looks = looks(&cli);
    Some((cli, looks))
}

#[test]
fn owner_attributes_acls_and_capabilities_come_back() {
    let Some((cli, before)) = dressed() else { return };
    let at = |name: &str| cli.root().join(name);
    let id = create(&cli);
    fs::remove_file(at("f")).expect("it goes");
    fs::write(at("f"), "v2").expect("another one");
    fs::remove_dir_all(at("d")).expect("it goes");
    let changed = looks(&cli);
    let report = restore(&cli, &id);
    assert_eq!(looks(&cli), before, "{report}");
    assert_eq!(told(&report, "not_kept", "reason"), [], "{report}");
    take_back(&cli);
    assert_eq!(looks(&cli), changed, "after the undo");
    make_again(&cli);
    assert_eq!(looks(&cli), before, "after the redo");
    let again = restore(&cli, &id);
    assert_eq!(again["status"], "up_to_date", "{again}");
}

#[test]
fn a_change_of_attributes_alone_is_shown_planned_restored_and_undone() {
    let Some((cli, before)) = dressed() else { return };
    let at = |name: &str| cli.root().join(name);
    let id = create(&cli);
    chown(at("plain"), Some(7), Some(8)).expect("another owner");
    removexattr(at("f"), c"user.tag").expect("no attribute any more");
    set(&at("d/x"), c"user.tag", b"other");
    set(&at("d"), c"user.new", b"new");
    let changed = looks(&cli);
    let expected = ["d", "d/x", "f", "plain"].map(|path| (path.to_owned(), "attributes".to_owned()));
    let diff = cli.json(["checkpoint", "diff", &id, "--json"]);
    assert_eq!(told(&diff, "changes", "change"), expected, "{diff}");
    let second = cli.json(["checkpoint", "create", "--json"]);
    assert_eq!(told(&second, "changes", "change"), expected, "{second}");
    let contents = tree(&cli);
    let report = restore(&cli, &id);
    assert_eq!(told(&report, "changes", "change"), expected, "{report}");
    assert_eq!(looks(&cli), before);
    tree(&cli).assert_untouched_since(&contents, "only the inodes change");
    take_back(&cli);
    assert_eq!(looks(&cli), changed, "after the undo");
}

/// Runs a call as another user.
fn as_user(cli: &Cli, user: u32, arguments: &[&str]) -> CliOutcome {
    CliOutcome::of(cli.command(arguments).uid(user).gid(user))
}

/// Gives a directory and all that is in it to a user.
fn give(path: &Path, user: u32) {
    let status = std::process::Command::new("chown").args(["-R", &format!("{user}:{user}")]).arg(path).status();
    assert!(status.expect("chown").success());
}

#[test]
fn who_is_not_root_is_told_what_does_not_come_back() {
    let cli = project();
    if !can_be_set(&cli) {
        return;
    }
    let at = |name: &str| cli.root().join(name);
    for name in ["theirs", "mine", "program"] {
        fs::write(at(name), "v1").expect("a file");
    }
    give(cli.home(), 4321);
    chown(at("theirs"), Some(1234), Some(2345)).expect("another owner");
    set(&at("program"), CAPABILITY, &capability());
    set(&at("mine"), c"user.tag", b"kept");
    let id = as_user(&cli, 4321, &["checkpoint", "create"]).stdout.trim().to_owned();
    for name in ["theirs", "mine", "program"] {
        fs::remove_file(at(name)).expect("it goes");
    }
    let expected = ["program", "theirs"];
    let arguments = ["checkpoint", "restore", &id, "--yes", "--json"];
    for call in [&["checkpoint", "restore", &id, "--dry-run", "--json"][..], &arguments] {
        let outcome = as_user(&cli, 4321, call);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let told = told(&outcome.json(), "not_kept", "reason");
        assert_eq!(told.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), expected, "{told:?}");
        assert!(told[0].1.contains("security.capability") && told[1].1.contains("owner 1234:2345"), "{told:?}");
    }
    assert_eq!(extended(&at("mine")).len(), 1, "what is the caller's own comes back");
    assert_eq!(fs::metadata(at("theirs")).expect("a file").uid(), 4321);
    // A path that differs only in what the caller may not set is no change, but is still named.
    let again = as_user(&cli, 4321, &arguments).json();
    assert_eq!((again["changes"].clone(), told(&again, "not_kept", "reason").len()), (serde_json::json!([]), 2));
}

#[test]
fn a_forged_tree_lends_nobody_roots_rights() {
    let cli = project();
    if !can_be_set(&cli) {
        return;
    }
    let id = create(&cli);
    // The tree is another user's, and so that user may have written the checkpoint.
    chown(cli.root(), Some(4321), Some(4321)).expect("another owner");
    let hash = keep(&cli, b"#!/bin/sh\n");
    let program = |name: &str, owner, extended| TreeEntry {
        name: name.as_bytes().to_vec(),
        node: TreeNode::File { hash, size: 10, mode: 0o6755 },
        attributes: Attributes { owner, extended },
    };
    let root = Some(FileOwner { user: 0, group: 0 });
    let capable = vec![(b"security.capability".to_vec(), capability())];
    let inner = TreeObject {
        mode: 0o755,
        attributes: Attributes { owner: root, extended: Vec::new() },
        entries: vec![program("inner", root, Vec::new())],
        ..TreeObject::default()
    };
    let inner = keep(&cli, &inner.encode().bytes);
    let entries = vec![
        TreeEntry { name: b"d".to_vec(), node: TreeNode::Directory(inner), attributes: Attributes::default() },
        program("lends", root, capable),
        program("own", None, Vec::new()),
        program("shared", Some(FileOwner { user: 4321, group: 0 }), Vec::new()),
    ];
    let forged = |entries| TreeObject { mode: 0o755, entries, ..TreeObject::default() }.encode().bytes;
    let put = |tree: [u8; 32]| {
        cli.sql(&format!("UPDATE checkpoints SET tree = {} WHERE id = '{id}'", cli.bytes(&tree)));
    };
    put(keep(&cli, &forged(entries)));
    let outcome = cli.run(["checkpoint", "restore", &id, "--yes", "--json"]);
    let mode = |name: &str| fs::metadata(cli.root().join(name)).expect("a file").mode() & 0o7777;
    assert_eq!((mode("d/inner"), mode("lends")), (0o755, 0o755), "{outcome:?}");
    assert_eq!((mode("own"), mode("shared")), (0o4755, 0o4755), "{outcome:?}");
    assert!(extended(&cli.root().join("lends")).is_empty(), "{outcome:?}");
    // Attributes of the system's own are in no form that this program reads.
    for name in ["trusted.overlay.redirect", "security.selinux", "user.", "system.nfs4_acl"] {
        let odd = vec![(name.as_bytes().to_vec(), b"x".to_vec())];
        put(keep(&cli, &forged(vec![program("odd", None, odd)])));
        let refused = cli.refused(["checkpoint", "restore", &id, "--yes"]);
        assert_eq!(refused, (Some(2), "corrupt".to_owned()), "{name}");
    }
}
