//! Checkpoints, content and stat caches of older versions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ic_testkit::{TestWorld, text_of, tree};
use serde_json::Value;

use crate::project::{ask, call};
use crate::stores::versions;

/// What checkpoints leave out of the tree of a life.
const LEFT_OUT: [&str; 2] = ["ignored", ".env"];

/// The tree without what no checkpoint holds.
fn captured(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = tree(root);
    all.retain(|path, _| !LEFT_OUT.iter().any(|left| path.starts_with(left)));
    all
}

fn checkpoints(world: &TestWorld) -> Vec<Value> {
    ask(world, &["checkpoint", "list"]).as_array().expect("a list").clone()
}

#[test]
fn every_checkpoint_restores_the_tree_that_it_was_made_of() {
    for stores in versions("life") {
        let world = stores.world("life");
        let left_alone = std::fs::read(world.cli.root().join(".env")).expect("a secret");
        let remembered = stores.names("life/trees");
        let kept: Vec<String> = checkpoints(&world).iter().map(|one| text_of(one, "id")).collect();
        let mut restored = 0;
        for id in remembered.iter().filter(|id| kept.contains(id)) {
            let when = format!("{}, checkpoint {id}", stores.name);
            let words = ["checkpoint", "restore", id, "--strategy", "files-only", "--force", "--yes"];
            // What was purged is named, and nothing else is missing.
            let report = call(&world, &words, &[0, 4], &when).json();
            let failed = report["failed"].as_array().expect("what failed");
            assert!(failed.iter().all(|one| one["path"] == "secret.txt"), "{when}: {report}");
            let wanted = captured(&stores.path(&format!("life/trees/{id}")));
            let found = captured(world.cli.root());
            let differ = |path: &&PathBuf| found.get(*path) != wanted.get(*path);
            let paths: Vec<_> = found.keys().chain(wanted.keys()).filter(differ).collect();
            assert!(paths.is_empty(), "{when}: {paths:?}");
            restored += 1;
        }
        assert!(restored >= 4, "{}: only {restored} of {remembered:?} are kept", stores.name);
        assert_eq!(std::fs::read(world.cli.root().join(".env")).expect("a secret"), left_alone);
        world.cli.assert_sound(&stores.name);
        call(&world, &["checkpoint", "verify", "--read-data"], &[0], &stores.name);
    }
}

#[test]
fn every_content_is_the_one_that_was_recorded() {
    for stores in versions("life") {
        let world = stores.world("life");
        let mut read = 0;
        for id in stores.names("life/trees") {
            if !checkpoints(&world).iter().any(|one| one["id"] == id.as_str()) {
                continue;
            }
            let content = call(&world, &["checkpoint", "cat", &id, "docs/idea.md"], &[0], &stores.name);
            let wanted = std::fs::read_to_string(stores.path(&format!("life/trees/{id}/docs/idea.md")));
            assert_eq!(content.stdout, wanted.expect("a file"), "{}: {id}", stores.name);
            read += 1;
        }
        assert!(read >= 4, "{}: {read}", stores.name);
    }
}

/// A change that an old cache, believed, would hide: the size and the time of the change are what they were.
fn change_unseen(path: &Path) {
    let modified = std::fs::metadata(path).and_then(|meta| meta.modified()).expect("a time");
    let content = std::fs::read_to_string(path).expect("a file");
    std::fs::write(path, content.to_uppercase()).expect("change it");
    set_modified(path, modified);
}

fn set_modified(path: &Path, time: SystemTime) {
    let file = std::fs::File::options().write(true).open(path).expect("open it");
    file.set_modified(time).expect("set its time");
}

#[test]
fn the_first_capture_beside_an_old_stat_cache_sees_what_changed() {
    for stores in versions("life") {
        let world = stores.world("life");
        let cache = world.cli.beside("objects.cache");
        assert!(cache.exists(), "{}: its stat cache is part of a stores", stores.name);
        change_unseen(&world.cli.root().join("docs/idea.md"));
        let create = ["checkpoint", "create", "--name", "first", "--format", "text"];
        let id = world.cli.ok(create);
        let seen = call(&world, &["checkpoint", "cat", &id, "docs/idea.md"], &[0], &stores.name);
        let wanted = std::fs::read_to_string(world.cli.root().join("docs/idea.md")).expect("a file");
        assert_eq!(seen.stdout, wanted, "{}", stores.name);
        let differs = call(&world, &["checkpoint", "diff", &id, "--json"], &[0, 1], &stores.name);
        assert_eq!(differs.json()["changes"], Value::Array(Vec::new()), "{}", stores.name);
        world.cli.assert_sound(&stores.name);
    }
}
