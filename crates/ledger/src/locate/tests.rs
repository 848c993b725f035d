use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ic_base::{Code, Context};

use super::{FoundBy, LedgerLocation, Lookup, initial_place, locate};
use crate::OpenOptions;
use crate::create::create;

fn at(directory: &Path) -> Lookup<'_> {
    Lookup { db: None, env_db: None, directory }
}

fn init(directory: &Path, store: Option<&Path>) -> LedgerLocation {
    let place = initial_place(&at(directory), store).unwrap();
    create(&place, store.is_some(), directory, OpenOptions::default(), &Context::system()).unwrap();
    place
}

/// What `git init` leaves, as far as we read it.
fn git_dir(dir: &Path) {
    fs::create_dir_all(dir.join(".git")).unwrap();
    fs::write(dir.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
}

#[test]
fn without_git_the_store_is_beside_the_project_and_private() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("a?b#c%20 d");
    fs::create_dir(&root).unwrap();
    assert_eq!(locate(&at(&root)).unwrap_err().code(), Code::NoLedger);
    let made = init(&root, None);
    assert_eq!(made.store, root.join(".ic"));
    let permissions = |p: &Path| fs::metadata(p).unwrap().permissions().mode() & 0o777;
    assert_eq!(permissions(&made.store), 0o700);
    for entry in fs::read_dir(&made.store).unwrap() {
        assert_eq!(permissions(&entry.unwrap().path()), 0o600);
    }
    let below = root.join("x/y");
    fs::create_dir_all(&below).unwrap();
    let found = locate(&at(&below)).unwrap();
    assert_eq!((found.db, found.root, found.found_by), (made.db, root, FoundBy::Directory));
}

#[test]
fn a_repository_and_its_worktrees_share_the_store_in_the_git_directory() {
    let dir = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(dir.path()).unwrap();
    let (main, tree) = (root.join("main"), root.join("tree"));
    git_dir(&main);
    let private = main.join(".git/worktrees/tree");
    fs::create_dir_all(&private).unwrap();
    fs::create_dir_all(&tree).unwrap();
    fs::write(private.join("HEAD"), "ref: refs/heads/x\n").unwrap();
    fs::write(private.join("commondir"), "../..\n").unwrap();
    fs::write(tree.join(".git"), format!("gitdir: {}\n", private.display())).unwrap();

    let made = init(&main, None);
    assert_eq!(made.store, main.join(".git/ic"));
    let found = locate(&at(&tree)).unwrap();
    assert_eq!((found.db, found.root, found.found_by), (made.db, tree, FoundBy::Git));
}

#[test]
fn a_store_elsewhere_is_found_through_its_pointer() {
    let dir = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(dir.path()).unwrap();
    let (project, store) = (root.join("project"), root.join("stores/one"));
    git_dir(&project);
    let made = init(&project, Some(&store));
    assert_eq!(made.db, store.join("ic.db"));
    assert_eq!(locate(&at(&project)).unwrap().db, made.db);
    // Again is the same; another place is refused.
    init(&project, Some(&store));
    assert_eq!(init(&project, None).db, made.db);
    let other = initial_place(&at(&project), Some(&root.join("two"))).unwrap();
    let refused = create(&other, true, &project, OpenOptions::default(), &Context::system());
    assert_eq!(refused.err().map(|e| e.code()), Some(Code::LedgerExists));
    assert!(!root.join("two").exists());
}

#[test]
fn the_flag_wins_over_the_environment() {
    let directory = Path::new("/somewhere");
    let lookup = Lookup { db: Some(Path::new("x.db")), env_db: Some(Path::new("/y.db")), directory };
    let place = locate(&lookup).unwrap();
    assert_eq!((place.db.as_path(), place.found_by), (Path::new("/somewhere/x.db"), FoundBy::Flag));
    let place = locate(&Lookup { db: None, ..lookup }).unwrap();
    assert_eq!((place.db.as_path(), place.found_by), (Path::new("/y.db"), FoundBy::Environment));
}

#[test]
fn a_pointer_to_a_store_that_is_gone_is_an_error_and_not_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let outer = fs::canonicalize(dir.path()).unwrap();
    init(&outer, None);
    let (inner, store) = (outer.join("inner"), outer.join("elsewhere"));
    git_dir(&inner);
    init(&inner, Some(&store));
    fs::rename(&store, outer.join("unmounted")).unwrap();
    let error = locate(&at(&inner)).unwrap_err();
    assert_eq!(error.code(), Code::NoLedger);
    assert!(error.message().contains("points to"), "{error:?}");
}
