//! Other work trees below the project, of its own repository and of others: each is a place of its own, which no capture takes in and no
//! restore changes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ic_testkit::{Cli, git_in};
use serde_json::Value;

use crate::project::{create, list, make_again, project, restore, take_back, told};

fn repository(root: &Path) {
    fs::create_dir_all(root).expect("a directory");
    git_in(root, &["init", "-q", "-b", "main"]);
    fs::write(root.join("base"), "base\n").expect("a file");
    git_in(root, &["add", "base"]);
    git_in(root, &["commit", "-q", "-m", "base"]);
}

/// A project that is a repository.
fn in_git() -> Cli {
    let cli = project();
    repository(cli.root());
    cli
}

fn add(repository: &Path, tree: &Path) {
    let branch = tree.file_name().expect("a name").to_str().expect("text");
    git_in(repository, &["worktree", "add", "-q", "-b", branch, tree.to_str().expect("text")]);
}

/// A project with a work tree at this place in it: of its own repository, or of one outside.
fn with_inner(place: &str, is_own: bool) -> (Cli, PathBuf) {
    let cli = in_git();
    let inner = cli.root().join(place);
    if is_own {
        add(cli.root(), &inner);
    } else {
        let other = cli.home().join("other");
        repository(&other);
        add(&other, &inner);
    }
    (cli, inner)
}

fn write(directory: &Path, name: &str, text: &str) {
    fs::write(directory.join(name), text).expect("a file");
}

/// A checkpoint from before the directory became a work tree, with all that is in it.
fn created_before_it_was_one(cli: &Cli, inner: &Path) -> String {
    let (dot_git, registry) = (inner.join(".git"), cli.root().join(".git/worktrees"));
    let (line, away) = (fs::read(&dot_git).expect("a file"), registry.with_extension("away"));
    fs::remove_file(&dot_git).expect("a file");
    fs::create_dir(&dot_git).expect("a directory");
    let is_own = fs::rename(&registry, &away).is_ok();
    let id = create(cli);
    if is_own {
        fs::rename(&away, &registry).expect("the registry");
    }
    fs::remove_dir(&dot_git).expect("a directory");
    fs::write(&dot_git, line).expect("a file");
    let held = cli.json(["checkpoint", "show", &id, "--files", "--json"]);
    assert!(held.to_string().contains("base"), "{held}");
    id
}

fn held(cli: &Cli, id: &str) -> Vec<String> {
    let shown = cli.json(["checkpoint", "show", id, "--files", "--json"]);
    let files = shown["files"].as_array().expect("files").iter();
    files.map(|file| file["path"].as_str().expect("a path").to_owned()).collect()
}

fn named(report: &Value, path: &str) -> String {
    let trees = told(report, "work_trees", "reason");
    let found = trees.into_iter().find(|(tree, _)| tree == path);
    found.unwrap_or_else(|| panic!("{path} is not named: {report}")).1
}

const PLACES: [&str; 3] = ["wt", ".claude/worktrees/feat", "a/b/c/d"];

#[test]
fn forks_are_listed_whose_paths_git_keeps_relative() {
    let cli = in_git();
    cli.ok(["fork", "--name", "one"]);
    let record = cli.root().join(".git/worktrees/one/gitdir");
    let path = fs::read_to_string(&record).expect("a path");
    // As git writes it where `worktree.useRelativePaths` is set: from the directory of the record, four levels below what both are in.
    let shared = fs::canonicalize(cli.root().join("..")).expect("a directory");
    let below = Path::new(&path).strip_prefix(shared).expect("a fork beside the project");
    fs::write(&record, format!("../../../../{}", below.display())).expect("a path");
    let forks = cli.json(["compare", "one", "--json"]);
    assert_eq!(forks[0]["name"], "one", "{forks}");
}

#[test]
fn no_capture_takes_another_work_tree_in() {
    for is_own in [true, false] {
        for place in PLACES {
            let (cli, inner) = with_inner(place, is_own);
            write(&inner, "theirs", "theirs\n");
            let id = create(&cli);
            assert!(held(&cli, &id).iter().all(|path| !path.starts_with(&format!("{place}/"))), "{place}");
            let shown = cli.json(["checkpoint", "show", &id, "--json"]);
            assert_eq!(shown["work_trees"][0]["path"], place, "{shown}");
            assert_eq!((&shown["complete"], shown["nested_git"].as_array().map(Vec::len)), (&true.into(), Some(0)));
        }
    }
}

#[test]
fn no_restore_changes_another_work_tree() {
    for is_own in [true, false] {
        for place in PLACES {
            let (cli, inner) = with_inner(place, is_own);
            write(&inner, "theirs", "theirs\n");
            let id = create(&cli);
            write(cli.root(), "mine", "mine\n");
            write(&inner, "theirs", "changed\n");
            write(&inner, "new", "new\n");
            fs::remove_file(inner.join("base")).expect("a file");
            let theirs = ic_testkit::tree(&inner);
            let report = restore(&cli, &id);
            assert_eq!(told(&report, "changes", "change"), [("mine".to_owned(), "delete".to_owned())]);
            assert_eq!(report["work_trees"], Value::Null, "it was there then and is now");
            assert!(ic_testkit::tree(&inner) == theirs, "{place}: another place was changed");
            take_back(&cli);
            make_again(&cli);
            assert!(ic_testkit::tree(&inner) == theirs, "{place}: another place was changed");
            // A commit made there moves no branch of here, and is not moved.
            git_in(&inner, &["add", "-A"]);
            git_in(&inner, &["commit", "-q", "-m", "theirs"]);
            let head = git_in(&inner, &["rev-parse", "HEAD"]);
            restore(&cli, &id);
            assert_eq!(git_in(&inner, &["rev-parse", "HEAD"]), head);
            assert_eq!(git_in(&inner, &["status", "--porcelain"]), "");
        }
    }
}

#[test]
fn what_checkpoints_hold_of_a_later_work_tree_is_not_restored() {
    for is_own in [true, false] {
        let (cli, inner) = with_inner("wt", is_own);
        write(&inner, "theirs", "theirs\n");
        write(cli.root(), "mine", "mine\n");
        let older = created_before_it_was_one(&cli, &inner);
        assert!(held(&cli, &older).contains(&"mine".to_owned()));
        write(&inner, "theirs", "changed\n");
        write(&inner, "new", "new\n");
        fs::remove_file(inner.join("base")).expect("a file");
        write(cli.root(), "mine", "changed\n");
        let theirs = ic_testkit::tree(&inner);
        let plan = cli.json(["checkpoint", "restore", &older, "--dry-run", "--json"]);
        assert_eq!(told(&plan, "changes", "path").len(), 1, "{plan}");
        assert!(named(&plan, "wt").contains("is not restored"), "{plan}");
        let text = cli.ok(["checkpoint", "restore", &older, "--dry-run", "--format", "text"]);
        assert!(text.contains("Other work trees (1)") && text.contains("a place of its own"), "{text}");
        let report = restore(&cli, &older);
        assert!(named(&report, "wt").contains("ic checkpoint cat"), "{report}");
        assert!(ic_testkit::tree(&inner) == theirs, "another place was changed");
        assert_eq!(fs::read_to_string(cli.root().join("mine")).expect("a file"), "mine\n");
        // It is not restored, but it can be read.
        assert_eq!(cli.ok(["checkpoint", "cat", &older, "wt/theirs"]), "theirs");
        let compared = cli.ok(["checkpoint", "diff", &older, "--format", "text"]);
        assert!(!compared.contains("wt/"), "{compared}");
        take_back(&cli);
        assert!(ic_testkit::tree(&inner) == theirs, "another place was changed");
    }
}

#[test]
fn a_registered_work_tree_is_one_though_its_directory_or_its_git_file_is_gone() {
    // Without its `.git`, and later without anything; locked or not.
    for is_locked in [true, false] {
        let (cli, inner) = with_inner("wt", true);
        if is_locked {
            git_in(cli.root(), &["worktree", "lock", "wt"]);
        }
        write(&inner, "theirs", "theirs\n");
        let older = created_before_it_was_one(&cli, &inner);
        fs::remove_file(inner.join(".git")).expect("a file");
        write(&inner, "theirs", "changed\n");
        let theirs = ic_testkit::tree(&inner);
        assert!(!held(&cli, &create(&cli)).iter().any(|path| path.starts_with("wt/")));
        restore(&cli, &older);
        assert!(ic_testkit::tree(&inner) == theirs, "another place was changed");
        fs::rename(&inner, cli.home().join("unmounted")).expect("moved");
        let report = restore(&cli, &older);
        assert!(named(&report, "wt").contains("is not restored"), "{report}");
        assert!(!inner.exists(), "its files are of another place");
    }
}

#[test]
fn a_work_tree_that_was_made_or_removed_since_is_named_and_stays_so() {
    for beside in [false, true] {
        let cli = in_git();
        let place = if beside { cli.home().join("side") } else { cli.root().join("deep/wt") };
        let shown = if beside { place.to_str().expect("text") } else { "deep/wt" };
        let before = create(&cli);
        write(cli.root(), "mine", "mine\n");
        add(cli.root(), &place);
        write(&place, "theirs", "theirs\n");
        let theirs = ic_testkit::tree(&place);
        let plan = cli.json(["checkpoint", "restore", &before, "--dry-run", "--json"]);
        assert!(named(&plan, shown).contains("made since"), "{plan}");
        let report = restore(&cli, &before);
        assert!(named(&report, shown).contains("git worktree remove"), "{report}");
        assert!(!told(&report, "differs", "path").iter().any(|(path, _)| path.starts_with("deep")), "{report}");
        assert!(ic_testkit::tree(&place) == theirs && !cli.root().join("mine").exists());
        let with_it = create(&cli);
        write(cli.root(), "mine", "mine\n");
        git_in(cli.root(), &["worktree", "remove", "--force", place.to_str().expect("text")]);
        let plan = cli.json(["checkpoint", "restore", &with_it, "--dry-run", "--json"]);
        assert!(named(&plan, shown).contains("removed since"), "{plan}");
        restore(&cli, &with_it);
        assert!(!place.exists() && !cli.root().join("mine").exists());
    }
}

#[test]
fn a_work_tree_that_is_none_any_more_stays_as_it_is() {
    let (cli, inner) = with_inner("wt", true);
    let id = create(&cli);
    fs::remove_file(inner.join(".git")).expect("a file");
    git_in(cli.root(), &["worktree", "prune"]);
    write(&inner, "left", "left\n");
    fs::remove_file(inner.join("base")).expect("a file");
    let theirs = ic_testkit::tree(&inner);
    let report = restore_in_part(&cli, &id);
    assert!(named(&report, "wt").contains("none now"), "{report}");
    assert!(ic_testkit::tree(&inner) == theirs, "nothing is known of what it held");
}

fn restore_in_part(cli: &Cli, id: &str) -> Value {
    let outcome = cli.run(["checkpoint", "restore", id, "--yes", "--json"]);
    assert!(matches!(outcome.code, Some(0 | 4)), "{outcome:?}");
    outcome.json()
}

#[test]
fn a_path_in_another_work_tree_is_refused_and_its_place_named() {
    for is_own in [true, false] {
        let (cli, inner) = with_inner("wt", is_own);
        let older = created_before_it_was_one(&cli, &inner);
        write(&inner, "base", "changed\n");
        for words in [
            &["checkpoint", "restore", &older, "--path", "wt/base", "--yes"][..],
            &["checkpoint", "restore", &older, "--path", "wt", "--yes"],
            &["checkpoint", "diff", &older, "--", "wt/base"],
            &["blame", "wt/base"],
        ] {
            let refused = cli.run(words);
            assert_eq!((refused.code, refused.error().as_str()), (Some(1), "foreign_root"), "{refused:?}");
            assert!(refused.stderr.contains("ic -C ") && refused.stderr.contains("/wt"), "{refused:?}");
        }
        assert_eq!(fs::read_to_string(inner.join("base")).expect("a file"), "changed\n");
        // A secret goes from wherever it was kept.
        write(&inner, "base", "base of before\n");
        let purged = cli.json(["checkpoint", "purge", "wt/base", "--yes", "--json"]);
        assert_eq!(purged["checkpoint_ids"].as_array().map(Vec::len), Some(1), "{purged}");
    }
}

#[test]
fn a_submodule_is_no_work_tree() {
    let cli = in_git();
    let other = cli.home().join("other");
    repository(&other);
    // Its directory in `.git/modules` is called as those of work trees are.
    let url = other.to_str().expect("text");
    git_in(cli.root(), &["-c", "protocol.file.allow=always", "submodule", "add", "-q", url, "worktrees/lib"]);
    git_in(cli.root(), &["commit", "-q", "-m", "with a submodule"]);
    let id = create(&cli);
    assert!(held(&cli, &id).contains(&"worktrees/lib/base".to_owned()));
    let before = ic_testkit::tree(cli.root());
    write(cli.root(), "worktrees/lib/base", "changed\n");
    restore(&cli, &id);
    assert_eq!(ic_testkit::tree(cli.root()), before);
    // A work tree of the submodule is one.
    let inner = cli.root().join("of-lib");
    add(&cli.root().join("worktrees/lib"), &inner);
    assert!(!held(&cli, &create(&cli)).iter().any(|path| path.starts_with("of-lib/")));
}

#[test]
fn odd_work_trees_are_told_too() {
    // Relative paths, a configuration of its own, moved by hand, and the repository on a disk that is absent.
    let (cli, inner) = with_inner("wt", true);
    git_in(cli.root(), &["config", "extensions.worktreeConfig", "true"]);
    git_in(&inner, &["config", "--worktree", "user.name", "Bob"]);
    let has_inner = |place: &str| held(&cli, &create(&cli)).iter().any(|path| path.starts_with(&format!("{place}/")));
    assert!(!has_inner("wt"));
    let line = fs::read_to_string(inner.join(".git")).expect("a file");
    write(&inner, ".git", "gitdir: ../.git/worktrees/wt\r\n");
    assert!(!has_inner("wt"));
    write(&inner, ".git", &line);
    let moved = cli.root().join("moved");
    fs::rename(&inner, &moved).expect("moved");
    assert!(!has_inner("moved"));
    let (far, inner) = with_inner("wt", false);
    fs::rename(far.home().join("other"), far.home().join("unmounted")).expect("moved");
    write(&inner, "theirs", "theirs\n");
    assert!(!held(&far, &create(&far)).iter().any(|path| path.starts_with("wt/")));
    // A link to one is a link.
    std::os::unix::fs::symlink("wt", far.root().join("link")).expect("a link");
    let id = create(&far);
    assert!(held(&far, &id).contains(&"link".to_owned()));
    fs::remove_file(far.root().join("link")).expect("a link");
    restore(&far, &id);
    assert_eq!(fs::read_link(far.root().join("link")).expect("a link"), Path::new("wt"));
}

#[test]
fn the_index_may_hold_another_work_tree_as_if_it_were_a_submodule() {
    let (cli, inner) = with_inner("wt", true);
    let id = create(&cli);
    write(cli.root(), "mine", "mine\n");
    git_in(cli.root(), &["add", "-A"]);
    git_in(cli.root(), &["commit", "-q", "-m", "mine, and by mistake the work tree"]);
    write(&inner, "theirs", "theirs\n");
    git_in(&inner, &["add", "-A"]);
    git_in(&inner, &["commit", "-q", "-m", "theirs"]);
    let theirs = (ic_testkit::tree(&inner), git_in(&inner, &["rev-parse", "HEAD"]));
    restore(&cli, &id);
    assert_eq!(git_in(cli.root(), &["ls-files"]), "base");
    assert_eq!(git_in(cli.root(), &["log", "--format=%s", "main"]), "base");
    assert!((ic_testkit::tree(&inner), git_in(&inner, &["rev-parse", "HEAD"])) == theirs);
    restore(&cli, &id);
}

#[test]
fn an_interrupted_restore_leaves_alone_what_became_another_work_tree() {
    let cli = in_git();
    let inner = cli.root().join("wt");
    fs::create_dir(&inner).expect("a directory");
    write(&inner, "theirs", "before\n");
    let id = create(&cli);
    let other = cli.home().join("other");
    repository(&other);
    add(&other, &cli.home().join("for-its-git-file"));
    let line = fs::read_to_string(cli.home().join("for-its-git-file/.git")).expect("a file");
    write(cli.root(), "mine", "mine\n");
    write(&inner, "theirs", "changed\n");
    write(&inner, "new", "new\n");
    let restore = |cli: &Cli, n: usize| {
        let mut command = cli.command(["checkpoint", "restore", &id, "--yes", "--json"]);
        command.env("IC_TEST_ABORT_BEFORE", n.to_string()).output().expect("start ic")
    };
    let is_unfinished = || cli.sql("SELECT count(*) FROM restores WHERE state <> 'applied'") == "1";
    let died = (1..200).find(|n| restore(&cli, *n).status.code().is_none() && is_unfinished());
    assert!(died.is_some(), "no restore was left unfinished");
    write(&inner, ".git", &line);
    write(&inner, "theirs", "of another agent\n");
    write(&inner, "new", "of another agent\n");
    // What the killed restore left of its own is removed.
    let content = || {
        let mut files = ic_testkit::tree(&inner);
        files.retain(|path, _| !path.to_string_lossy().starts_with(".ic-restore-"));
        files
    };
    let theirs = content();
    let _ = cli.run(["checkpoint", "restore", &id, "--yes", "--json"]);
    assert_eq!(content(), theirs, "another place was changed");
    assert!(!cli.root().join("mine").exists(), "what was interrupted is finished");
    assert!(list(&cli).len() > 1);
}

/// The files of a work tree, without those of git and of other work trees in it.
fn own_files(top: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut files, mut waiting) = (BTreeMap::new(), vec![top.to_owned()]);
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            let is_ours = !path.ends_with(".git") && !path.ends_with(".ic");
            if path.is_dir() && is_ours && !path.join(".git").exists() {
                waiting.push(path);
            } else if path.is_file() && is_ours {
                files.insert(path.clone(), fs::read(&path).expect("a file"));
            }
        }
    }
    files
}

#[test]
fn inside_beside_and_above_each_has_its_own() {
    // The main tree, a work tree in it, one in that, and one beside them all.
    let cli = in_git();
    let root = cli.root().to_owned();
    let (inner, beside) = (root.join("in/side"), cli.home().join("beside"));
    let innermost = inner.join("deep/er");
    for place in [&inner, &beside, &innermost] {
        add(&root, place);
    }
    let places = [&root, &inner, &beside, &innermost];
    for (at, acting) in places.iter().enumerate() {
        let call = |words: &[&str]| {
            let mut command = cli.command(words);
            let said = ic_testkit::CliOutcome::of(command.current_dir(acting).env("IC_DB", cli.db()));
            assert_eq!(said.code, Some(0), "{words:?}: {said:?}");
            said.json()
        };
        for place in places {
            write(place, "file", &format!("before {at}\n"));
            let _ = fs::remove_file(place.join("new"));
        }
        let id = call(&["checkpoint", "create", "--json"])["id"].as_str().expect("an id").to_owned();
        for place in places {
            write(place, "file", &format!("after {at}\n"));
            write(place, "new", &format!("new {at}\n"));
        }
        let before: Vec<_> = places.iter().map(|place| own_files(place)).collect();
        let report = call(&["checkpoint", "restore", &id, "--yes", "--json"]);
        assert_eq!(report["changes"].as_array().map(Vec::len), Some(2), "{report}");
        for (place, before) in places.iter().zip(&before) {
            let is_same = own_files(place) == *before;
            assert_eq!(is_same, place != acting, "acting in {}: {}", acting.display(), place.display());
        }
        assert_eq!(fs::read_to_string(acting.join("file")).expect("a file"), format!("before {at}\n"));
        assert!(!acting.join("new").exists());
    }
}
