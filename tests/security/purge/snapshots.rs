//! Who only looks at the tree stores none of it, and what was purged comes back with no look, no checkpoint and no restore, though the
//! file still stands in the tree.

use ic_testkit::{Cli, write_in};

use super::{SECRET, holders, places, purge, repository};

/// Every call that looks at the tree and changes nothing.
fn look(cli: &Cli, checkpoint: &str) {
    for call in [
        &["checkpoint", "diff", checkpoint, "--unified"][..],
        &["checkpoint", "diff", checkpoint, "--stat"],
        &["checkpoint", "diff", checkpoint, "--json"],
        &["checkpoint", "restore", checkpoint, "--dry-run"],
        &["checkpoint", "restore", checkpoint, "--dry-run", "--strategy", "files-only"],
        &["redo", "--dry-run"],
    ] {
        let outcome = cli.run(call);
        assert!(matches!(outcome.code, Some(0 | 1 | 4)), "{call:?}: {outcome:?}");
        assert_eq!(holders(cli), Vec::<String>::new(), "{call:?}");
    }
}

#[test]
fn a_look_stores_nothing_and_the_next_checkpoint_holds_all() {
    let cli = repository();
    let first = cli.ok(["checkpoint", "create"]);
    write_in(cli.root(), "a", "two\n");
    cli.ok(["checkpoint", "restore", &first, "--yes"]);
    write_in(cli.root(), "deep/tok", format!("{SECRET}\n"));
    // Old enough that the stat cache would trust what it knows of it.
    std::thread::sleep(std::time::Duration::from_millis(2100));
    look(&cli, &first);
    let patch = cli.ok(["checkpoint", "diff", &first, "--unified"]);
    assert!(patch.contains(&format!("+{SECRET}")), "the content is still shown: {patch}");
    let purged = purge(&cli, "deep/tok");
    assert_eq!(purged["checkpoint_ids"], serde_json::json!([]), "{purged}");
    assert_eq!(holders(&cli), Vec::<String>::new());
    look(&cli, &first);
    // No hash that a look has seen is taken for content that the store has.
    let second = cli.ok(["checkpoint", "create"]);
    assert_eq!(cli.ok(["checkpoint", "cat", &second, "deep/tok"]), SECRET);
    cli.ok(["checkpoint", "verify", "--read-data"]);
}

#[test]
fn what_was_purged_stays_purged_though_the_file_stands() {
    let cli = repository();
    write_in(cli.root(), "config/token", format!("{SECRET}\n"));
    let leaked = cli.ok(["checkpoint", "create"]);
    let purged = purge(&cli, "config/token");
    assert_eq!(places(&purged), ["work_tree"], "{purged}");
    look(&cli, &leaked);
    write_in(cli.root(), "copy", format!("{SECRET}\n"));
    let made = cli.json(["checkpoint", "create", "--json"]);
    assert_eq!(holders(&cli), Vec::<String>::new());
    let later = made["id"].as_str().expect("its id").to_owned();
    let skipped = serde_json::json!([
        { "path": "config/token", "reason": "purged" },
        { "path": "copy", "reason": "purged" },
    ]);
    assert_eq!(made["skipped"], skipped, "{made}");
    for held in [&leaked, &later] {
        let refused = cli.refused(["checkpoint", "cat", held, "config/token"]);
        assert_eq!(refused, (Some(3), "path_not_found".to_owned()));
    }
    // A restore, which saves the tree first, leaves alone what it cannot save.
    write_in(cli.root(), "a", "two\n");
    let restored = cli.run(["checkpoint", "restore", &leaked, "--yes"]);
    assert!(matches!(restored.code, Some(0 | 4)), "{restored:?}");
    assert_eq!(std::fs::read_to_string(cli.root().join("a")).expect("a"), "one\n");
    assert_eq!(std::fs::read_to_string(cli.root().join("config/token")).expect("it"), format!("{SECRET}\n"));
    assert_eq!(holders(&cli), Vec::<String>::new());
    cli.ok(["redo", "--yes"]);
    assert_eq!(std::fs::read_to_string(cli.root().join("a")).expect("a"), "two\n");
    // Another content of the same file is one like any other.
    write_in(cli.root(), "config/token", "rotated\n");
    let rotated = cli.ok(["checkpoint", "create"]);
    assert_eq!(cli.ok(["checkpoint", "cat", &rotated, "config/token"]), "rotated");
    std::fs::remove_file(cli.root().join("config/token")).expect("remove it");
    let gone = cli.run(["checkpoint", "restore", &leaked, "--strategy", "files-only", "--yes"]);
    assert_eq!(gone.code, Some(4), "{gone:?}");
    assert!(!cli.root().join("config/token").exists());
    cli.ok(["checkpoint", "verify", "--read-data"]);
}

#[test]
fn a_large_file_that_was_cleaned_is_kept_again_with_the_parts_that_went() {
    let cli = repository();
    let start: String = (0..200_000).map(|n| format!("{n:x}\n")).collect();
    write_in(cli.root(), "dump", format!("{start}{SECRET}\n"));
    let leaked = cli.ok(["checkpoint", "create"]);
    purge(&cli, "dump");
    let made = cli.json(["checkpoint", "create", "--json"]);
    assert_eq!(made["skipped"], serde_json::json!([{ "path": "dump", "reason": "purged" }]), "{made}");
    assert_eq!(holders(&cli), Vec::<String>::new());
    write_in(cli.root(), "dump", &start);
    let clean = cli.ok(["checkpoint", "create"]);
    std::fs::remove_file(cli.root().join("dump")).expect("remove it");
    cli.ok(["checkpoint", "restore", &clean, "--yes"]);
    assert_eq!(std::fs::read_to_string(cli.root().join("dump")).expect("the dump"), start);
    assert_eq!(cli.refused(["checkpoint", "cat", &leaked, "dump"]).1, "path_not_found");
    assert_eq!(holders(&cli), Vec::<String>::new());
    cli.ok(["checkpoint", "verify", "--read-data"]);
}
