//! A secret is one wherever it lies: in other paths, in other roots, in a part of another file.

use ic_testkit::{CliOutcome, git_in, write_in};

use super::*;

#[test]
fn content_that_another_path_has_is_gone_there_too() {
    let cli = repository();
    for path in ["config/token", "kept/token"] {
        write_in(cli.root(), path, format!("{SECRET}\n"));
    }
    git_in(cli.root(), &["add", "."]);
    git_in(cli.root(), &["commit", "-qm", "token"]);
    let made = cli.ok(["checkpoint", "create"]);
    let purged = purge(&cli, "config/token");
    assert_eq!(purged["shared"][0]["path"], "kept/token", "{purged}");
    let left = purged["left"].as_array().expect("what is left").iter();
    let named: Vec<_> = left.filter_map(|left| left["command"].as_str()).collect();
    for place in ["ls -l -- config/token", "ls -l -- kept/token", "git ls-files -s -- config/token kept/token"] {
        assert!(named.contains(&place), "{place}: {purged}");
    }
    git_in(cli.root(), &["reset", "-q", "--hard", "HEAD~1"]);
    forget(&cli);
    assert_eq!(holders(&cli), Vec::<String>::new());
    for strategy in ["git-only", "full"] {
        let call = ["checkpoint", "restore", &made, "--strategy", strategy, "--yes"];
        assert_eq!(cli.refused(call), (Some(1), "git_unsupported".to_owned()), "{strategy}");
    }
    let call = ["checkpoint", "restore", &made, "--strategy", "files-only", "--json"];
    let preview = cli.run([&call[..], &["--dry-run"]].concat());
    let files = cli.run([&call[..], &["--yes"]].concat());
    assert_eq!((preview.code, files.code), (Some(4), Some(4)), "{preview:?}\n{files:?}");
    for report in [&preview.json(), &files.json()] {
        let named: Vec<_> = report["skipped"].as_array().expect("a list").iter().map(|one| &one["path"]).collect();
        assert_eq!(named, ["config/token", "kept/token"], "{report}");
        let mut others =
            report["changes"].as_array().expect("a list").iter().chain(report["failed"].as_array().expect("a list"));
        assert!(others.all(|one| !one["path"].to_string().contains("token")), "{report}");
    }
    for path in ["config/token", "kept/token"] {
        assert!(!cli.root().join(path).exists(), "{path}");
        let cat = cli.run(["checkpoint", "cat", &made, path]);
        assert!(cat.code == Some(3) && cat.stderr.contains("was purged"), "{cat:?}");
    }
    let shown = cli.json(["checkpoint", "show", &made, "--files", "--json"]);
    let gone = shown["files"].as_array().expect("files").iter().filter(|file| file["purged"] == true);
    let gone: Vec<_> = gone.filter_map(|file| file["path"].as_str()).collect();
    assert_eq!(gone, ["config/token", "kept/token"], "{shown}");
    // What has no content any more hides nothing of the rest.
    for shape in ["--unified", "--stat"] {
        let shown = cli.ok(["checkpoint", "diff", &made, shape]);
        assert_eq!(shown.matches("its content was purged").count(), 2, "{shape}: {shown}");
    }
}

#[test]
fn empty_content_is_no_secret() {
    let cli = repository();
    for path in ["config/token", "package/__init__.py"] {
        write_in(cli.root(), path, "");
    }
    git_in(cli.root(), &["add", "."]);
    git_in(cli.root(), &["commit", "-qm", "empty"]);
    let made = cli.ok(["checkpoint", "create"]);
    write_in(cli.root(), "config/token", SECRET);
    cli.ok(["checkpoint", "create"]);
    std::fs::remove_dir_all(cli.root().join("config")).expect("remove it");
    let purged = purge(&cli, "config/token");
    assert_eq!((&purged["purged_objects"], &purged["shared"]), (&1.into(), &serde_json::json!([])), "{purged}");
    assert_eq!(holders(&cli), Vec::<String>::new());
    std::fs::remove_dir_all(cli.root().join("package")).expect("remove it");
    cli.ok(["checkpoint", "restore", &made, "--yes"]);
    assert!(cli.root().join("package/__init__.py").exists());
}

#[test]
fn a_part_that_another_large_file_has_stays_readable_and_is_named() {
    let cli = repository();
    let common = "0123456789abcdef".repeat(2 << 16);
    write_in(cli.root(), "config/token", format!("{common}{SECRET}\n"));
    write_in(cli.root(), "other", format!("{common}another end\n"));
    let made = cli.ok(["checkpoint", "create"]);
    std::fs::remove_file(cli.root().join("config/token")).expect("remove it");
    let purged = purge(&cli, "config/token");
    assert_eq!(places(&purged), ["other_paths"], "{purged}");
    assert_eq!(purged["left"][0]["command"], "ic checkpoint purge other --yes", "{purged}");
    assert_eq!(holders(&cli), Vec::<String>::new());
    std::fs::remove_file(cli.root().join("other")).expect("remove it");
    cli.ok(["checkpoint", "restore", &made, "--path", "other", "--yes"]);
    assert_eq!(
        std::fs::read_to_string(cli.root().join("other")).expect("it is back"),
        format!("{common}another end\n")
    );
    cli.ok(["checkpoint", "verify", "--read-data"]);
}

#[test]
fn another_root_of_the_ledger_keeps_neither_the_content_nor_refs_to_it() {
    let cli = repository();
    let place = tempfile::tempdir_in(cli.home()).expect("a directory");
    let other = place.path().canonicalize().expect("its name");
    let there = |arguments: &[&str]| {
        let mut command = cli.command(arguments);
        let outcome = CliOutcome::of(command.current_dir(&other).env("IC_DB", cli.root().join(".git/ic/ic.db")));
        assert_eq!(outcome.code, Some(0), "{arguments:?}: {outcome:?}");
        outcome.stdout.trim().to_owned()
    };
    git_in(&other, &["init", "-q"]);
    write_in(&other, "b", "one\n");
    git_in(&other, &["add", "."]);
    git_in(&other, &["commit", "-qm", "one"]);
    let first = there(&["checkpoint", "create", "--format", "text"]);
    write_in(&other, "copied", format!("{SECRET}\n"));
    git_in(&other, &["add", "."]);
    git_in(&other, &["commit", "-qm", "token"]);
    there(&["checkpoint", "restore", &first, "--yes", "--force"]);
    assert_ne!(git_in(&other, &["for-each-ref", "refs/ic/"]), "");
    write_in(cli.root(), "config/token", format!("{SECRET}\n"));
    cli.ok(["checkpoint", "create"]);
    std::fs::remove_file(cli.root().join("config/token")).expect("remove it");
    let purged = purge(&cli, "config/token");
    let copied = other.join("copied");
    assert_eq!(purged["shared"], serde_json::json!([{ "path": copied.to_string_lossy() }]), "{purged}");
    assert_ne!(purged["removed_refs"], serde_json::json!([]), "{purged}");
    assert_eq!(git_in(&other, &["for-each-ref", "refs/ic/"]), "");
    assert_eq!(holders(&cli), Vec::<String>::new());
}

/// A project that was moved, or a work tree that was removed: the product cannot tell which. So it names the content of that root, and
/// removes it once the root's record is this tree's.
#[test]
fn a_root_that_is_gone_is_named_and_its_content_goes_once_this_tree_has_it() {
    let cli = repository();
    let other = cli.home().join("other");
    git_in(cli.root(), &["worktree", "add", "-q", &other.to_string_lossy()]);
    write_in(&other, "token", format!("{SECRET}\n"));
    let made = CliOutcome::of(cli.command(["checkpoint", "create", "--format", "text"]).current_dir(&other));
    assert_eq!(made.code, Some(0), "{made:?}");
    git_in(cli.root(), &["worktree", "remove", "--force", &other.to_string_lossy()]);
    let said = cli.ok(["checkpoint", "purge", "token", "--yes", "--format", "text"]);
    assert!(said.starts_with("No checkpoint of this tree holds token."), "{said}");
    assert!(said.contains(&format!("checkpoints of {}, which is gone", other.display())), "{said}");
    assert!(!holders(&cli).is_empty(), "it may be another file: it is named, not taken");
    write_in(cli.root(), "token", format!("{SECRET}\n"));
    cli.ok(["checkpoint", "create"]);
    let purged = purge(&cli, "token");
    assert!(!places(&purged).contains(&"gone_root"), "{purged}");
    assert_eq!(holders(&cli), Vec::<String>::new());
}
