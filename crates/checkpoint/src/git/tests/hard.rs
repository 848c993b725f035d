//! What repositories of real life have, and what may happen to them between a checkpoint and its restore.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use ic_base::Code;

use super::*;

impl Repository {
    fn git_bytes(&self, arguments: &[&[u8]]) {
        let output = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@b.c"])
            .args(arguments.iter().map(|argument| OsStr::from_bytes(argument)))
            .current_dir(self.root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// The bytes of the packs that a state has and another does not.
    fn packed_since(&self, state: &GitState, before: &GitState) -> usize {
        let new = state.packs.iter().filter(|pack| !before.packs.contains(pack));
        new.map(|pack| self.objects.read(&pack.0).unwrap().len()).sum()
    }

    fn commit_large(&self, path: &str, seed: u64) {
        self.write_large(path, seed);
        self.git("add -A");
        self.git("commit -q -m large");
    }

    /// 200 KB that do not compress.
    fn write_large(&self, path: &str, seed: u64) {
        let mut state = seed;
        let next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33).to_le_bytes()[0]
        };
        std::fs::write(self.root().join(path), std::iter::repeat_with(next).take(200_000).collect::<Vec<_>>()).unwrap();
    }
}

#[test]
fn a_staged_submodule_is_recorded() {
    let repository = Repository::with_history();
    let head = repository.git("rev-parse HEAD");
    repository.git(&format!("update-index --add --cacheinfo 160000,{},sub", head.replace('a', "b")));
    let with = repository.record(None);
    repository.git("rm -q --cached sub");
    assert_eq!(repository.plan(&with).unwrap_err().code(), Code::GitUnsupported);
}

#[test]
fn intended_files_come_back_whatever_became_of_them() {
    let repository = Repository::with_history();
    let name: &[u8] = b"caf\xe9";
    let path = repository.root().join(OsStr::from_bytes(name));
    for file in ["gone", "ignored", "program"] {
        repository.write(file, "x");
    }
    std::fs::write(&path, "x").unwrap();
    std::fs::set_permissions(repository.root().join("program"), PermissionsExt::from_mode(0o755)).unwrap();
    repository.write(".gitignore", "ignored\n");
    repository.git("add -f -N gone ignored program");
    repository.git_bytes(&[b"add", b"-N", name]);
    repository.git("rm -q --cached a");
    repository.git("add -N a");
    std::fs::remove_file(repository.root().join("gone")).unwrap();
    let target = repository.record(None);
    let listed = repository.git("ls-files -s -v --debug").replace(|c: char| c.is_ascii_digit(), "");
    repository.git("reset -q");
    repository.comes_back(&target);
    repository.git("reset -q");
    repository.restore(&target, "three");
    let again = repository.git("ls-files -s -v --debug").replace(|c: char| c.is_ascii_digit(), "");
    assert_eq!(again, listed);
    let intended = repository.git("ls-files --debug");
    assert_eq!(intended.matches("flags: 2").count(), 5, "{intended}");
}

#[test]
fn names_need_not_be_utf8() {
    let repository = Repository::with_history();
    repository.git_bytes(&[b"checkout", b"-q", b"-b", b"caf\xe9"]);
    let target = repository.record(None);
    repository.git("checkout -q main");
    repository.git_bytes(&[b"branch", b"-f", b"caf\xe9", b"HEAD~1"]);
    repository.comes_back(&target);
    repository.restore(&target, "three");
    assert_same(&repository.record(Some(&target)), &target);
}

#[test]
fn a_branch_becomes_a_directory_of_branches() {
    let repository = Repository::with_history();
    repository.git("branch feature");
    let target = repository.record(None);
    repository.git("branch -m feature feature/one");
    repository.comes_back(&target);
}

#[test]
fn head_does_not_go_to_a_branch_that_is_checked_out_elsewhere() {
    let repository = Repository::with_history();
    repository.git("checkout -q side");
    let target = repository.record(None);
    repository.git("checkout -q main");
    let tree = repository.dir.path().join("tree");
    repository.git(&format!("worktree add -q {} side", tree.display()));
    assert_eq!(repository.plan(&target).unwrap_err().code(), Code::GitUnsupported);
}

#[test]
fn a_branch_that_is_rebased_elsewhere_is_not_moved() {
    let repository = Repository::with_history();
    let tree = repository.dir.path().join("tree");
    repository.git(&format!("worktree add -q {} side", tree.display()));
    std::fs::write(tree.join("a"), "conflict").unwrap();
    Repository::git_in(&tree, "commit -q -a -m conflict");
    let target = repository.record(None);
    Repository::git_in(&tree, "commit -q --amend -m again");
    let rebase = Command::new("git").args(["rebase", "-q", "main"]).current_dir(&tree).output().unwrap();
    assert!(!rebase.status.success());
    assert_eq!(repository.plan(&target).unwrap_err().code(), Code::GitUnsupported);
}

#[test]
fn a_linked_work_tree_comes_back() {
    let repository = Repository::with_history();
    let tree = repository.dir.path().join("tree");
    repository.git(&format!("worktree add -q {} side", tree.display()));
    let target = repository.record_in(&tree, None);
    std::fs::write(tree.join("b"), "b").unwrap();
    Repository::git_in(&tree, "add b");
    Repository::git_in(&tree, "commit -q -m b");
    let current = repository.record_in(&tree, Some(&target));
    let planned = plan(&tree, &target, &current, &repository.objects, &[]).unwrap();
    apply_refs(&tree, &planned, &target, &current, "one", &repository.objects).unwrap();
    apply_index(&tree, &target, &current, &repository.objects).unwrap();
    assert_same(&repository.record_in(&tree, Some(&target)), &target);
    assert_eq!(Repository::git_in(&tree, "status --porcelain"), "?? b");
}

#[test]
fn what_was_fetched_is_not_kept() {
    let upstream = Repository::with_history();
    let repository = Repository::with_history();
    repository.git(&format!("remote add origin {}", upstream.root().display()));
    let before = repository.record(None);
    upstream.commit_large("large", 7);
    repository.git("fetch -q origin");
    repository.commit("own", "own");
    let after = repository.record(Some(&before));
    let packed = repository.packed_since(&after, &before);
    assert!(packed > 0 && packed < 50_000, "{packed}");
    repository.git("rebase -q origin/main main");
    let rebased = repository.record(Some(&after));
    let packed = repository.packed_since(&rebased, &after);
    assert!(packed > 0 && packed < 50_000, "{packed}");
}

#[test]
fn staged_content_is_kept_once() {
    let repository = Repository::with_history();
    repository.write_large("large", 1);
    repository.git("add large");
    let first = repository.record(None);
    repository.write("small", "small");
    repository.git("add small");
    let second = repository.record(Some(&first));
    let packed = repository.packed_since(&second, &first);
    assert!(packed > 0 && packed < 50_000, "{packed}");
}

#[test]
fn commits_are_new_though_the_target_was_collected() {
    let repository = Repository::with_history();
    let first = repository.record(None);
    repository.commit("c", "three");
    let target = repository.record(Some(&first));
    repository.git("reset -q --hard HEAD~1");
    repository.commit("d", "other");
    repository.collect_garbage();
    let (planned, _) = repository.plan(&target).unwrap();
    assert_eq!(planned.new_commits, [repository.git("rev-parse HEAD")]);
}

#[test]
fn a_commit_without_its_tree_is_brought_back_whole() {
    let repository = Repository::with_history();
    let first = repository.record(None);
    repository.commit("c", "three");
    let target = repository.record(Some(&first));
    let text = repository.dir.path().join("commit");
    let commit =
        Command::new("git").args(["cat-file", "commit", "HEAD"]).current_dir(repository.root()).output().unwrap();
    std::fs::write(&text, commit.stdout).unwrap();
    repository.git("reset -q --hard HEAD~1");
    repository.collect_garbage();
    // As a restore leaves it that was killed between one object and the next.
    let written = repository.git(&format!("hash-object -t commit -w {} --literally", text.display()));
    assert_eq!(Some(&written), target.head.as_ref());
    repository.restore(&target, "one");
    repository.git("fsck --full --strict --connectivity-only");
    assert_eq!(repository.git("show HEAD:c"), "three");
}

#[test]
fn the_last_commits_before_the_first_checkpoint_are_kept_too() {
    let repository = Repository::with_history();
    let target = repository.record(None);
    repository.git("commit -q --amend -m amended");
    repository.git("branch -D side");
    repository.collect_garbage();
    repository.restore(&target, "one");
    assert_same(&repository.record(Some(&target)), &target);
    repository.git("fsck --full --strict");
}

#[test]
fn a_detached_head_that_moved_since_the_plan_is_not_moved() {
    let repository = Repository::with_history();
    let target = repository.record(None);
    repository.git("checkout -q --detach");
    let (planned, current) = repository.plan(&target).unwrap();
    repository.commit("c", "three");
    let head = repository.git("rev-parse HEAD");
    let refused = apply_refs(&repository.root(), &planned, &target, &current, "one", &repository.objects);
    assert_eq!(refused.unwrap_err().code(), Code::GitBusy);
    assert_eq!(repository.git("rev-parse HEAD"), head);
    assert_eq!(repository.git("for-each-ref refs/ic"), "");
}

#[test]
fn an_index_that_changed_since_the_plan_moves_nothing() {
    let repository = Repository::with_history();
    let target = repository.record(None);
    repository.commit("c", "three");
    let (planned, current) = repository.plan(&target).unwrap();
    repository.write("d", "staged");
    repository.git("add d");
    let refs = repository.git("for-each-ref");
    let refused = apply_refs(&repository.root(), &planned, &target, &current, "one", &repository.objects);
    assert_eq!(refused.unwrap_err().code(), Code::GitBusy);
    assert_eq!(repository.git("for-each-ref"), refs);
}

#[test]
fn conflicts_of_a_stash_come_back() {
    let repository = Repository::with_history();
    repository.write("a", "mine");
    repository.git("stash push -q");
    repository.commit("a", "theirs");
    let pop = Command::new("git").args(["stash", "pop"]).current_dir(repository.root()).output().unwrap();
    assert!(!pop.status.success());
    let target = repository.record(None);
    let unmerged = repository.git("ls-files -u");
    assert_eq!(unmerged.lines().count(), 3);
    repository.git("reset -q --hard");
    repository.comes_back(&target);
    repository.collect_garbage();
    repository.restore(&target, "three");
    assert_eq!(repository.git("ls-files -u"), unmerged);
}

#[test]
fn a_symbolic_branch_follows_the_one_it_names() {
    let repository = Repository::with_history();
    repository.git("symbolic-ref refs/heads/alias refs/heads/main");
    let target = repository.record(None);
    repository.commit("c", "three");
    repository.comes_back(&target);
    assert_eq!(repository.git("symbolic-ref refs/heads/alias"), "refs/heads/main");
    repository.git("symbolic-ref refs/heads/alias refs/heads/side");
    assert_eq!(repository.plan(&target).unwrap_err().code(), Code::GitUnsupported);
}

#[test]
fn settings_of_the_user_change_nothing() {
    let repository = Repository::with_history();
    for setting in [
        "log.showSignature true",
        "core.splitIndex true",
        "core.ignoreStat true",
        "core.fileMode false",
        "index.version 4",
        "status.showStash true",
        "status.branch true",
        "color.ui always",
        "core.logAllRefUpdates always",
        "submodule.recurse true",
        "advice.detachedHead true",
        "log.date relative",
    ] {
        repository.git(&format!("config {setting}"));
    }
    repository.write("a", "stashed");
    repository.git("stash push -q -m first");
    repository.write("b", "staged");
    repository.git("add --chmod=+x b");
    let target = repository.record(None);
    assert_eq!(target.stash.len(), 1);
    repository.git("stash drop -q");
    repository.commit("b", "three");
    repository.comes_back(&target);
    repository.collect_garbage();
    repository.restore(&target, "three");
    assert_same(&repository.record(Some(&target)), &target);
}

#[test]
fn sha256_repositories_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let objects = Objects::open(&dir.path().join("objects.db"), OpenOptions::default()).unwrap();
    std::fs::create_dir(dir.path().join("repo")).unwrap();
    let repository = Repository { dir, objects };
    repository.git("init -q -b main --object-format=sha256");
    let unborn = repository.record(None);
    repository.commit("a", "one");
    repository.write("b", "staged");
    repository.git("add b");
    let target = repository.record(Some(&unborn));
    repository.commit("b", "two");
    repository.git("branch other");
    repository.comes_back(&target);
    repository.git("reset -q --hard HEAD~1");
    repository.collect_garbage();
    repository.restore(&target, "three");
    assert_same(&repository.record(Some(&target)), &target);
    repository.restore(&unborn, "four");
    assert_same(&repository.record(Some(&unborn)), &unborn);
}

#[test]
fn stash_entries_that_stay_keep_their_time() {
    let repository = Repository::with_history();
    repository.write("a", "first");
    repository.git("stash push -q -m first");
    let reflog = repository.root().join(".git/logs/refs/stash");
    // Only behind the address: a name of a commit may begin with the same two digits.
    let aged = std::fs::read_to_string(&reflog).unwrap().replace("> 17", "> 16").replace("> 18", "> 16");
    std::fs::write(&reflog, &aged).unwrap();
    let target = repository.record(None);
    repository.write("a", "second");
    repository.git("stash push -q -m second");
    repository.comes_back(&target);
    repository.restore(&target, "three");
    assert_eq!(std::fs::read_to_string(&reflog).unwrap(), aged);
}

#[test]
fn a_lock_of_head_is_refused() {
    let repository = Repository::with_history();
    let target = repository.record(None);
    repository.commit("c", "three");
    std::fs::write(repository.root().join(".git/HEAD.lock"), "").unwrap();
    assert_eq!(repository.plan(&target).unwrap_err().code(), Code::GitBusy);
}

#[test]
fn times_in_the_index_are_kept() {
    let repository = Repository::with_history();
    let target = repository.record(None);
    repository.write("b", "b");
    repository.git("add b");
    let (_, current) = repository.plan(&target).unwrap();
    // Its file is gone, so that a refresh would not find its times again.
    std::fs::remove_file(repository.root().join("a")).unwrap();
    apply_index(&repository.root(), &target, &current, &repository.objects).unwrap();
    let listed = repository.git("ls-files --debug a");
    assert!(!listed.contains("ctime: 0:0"), "{listed}");
}

#[test]
fn a_restore_that_was_killed_while_it_held_the_index_is_completed() {
    let repository = Repository::with_history();
    let target = repository.record(None);
    repository.commit("c", "three");
    let (planned, current) = repository.plan(&target).unwrap();
    apply_refs(&repository.root(), &planned, &target, &current, "one", &repository.objects).unwrap();
    // Applying the same again is no loss.
    apply_refs(&repository.root(), &planned, &target, &current, "one", &repository.objects).unwrap();
    std::fs::write(repository.root().join(".git/index.lock"), crate::git::restore::LOCK_MARK).unwrap();
    repository.restore(&target, "one");
    assert_same(&repository.record(Some(&target)), &target);
    assert!(!repository.root().join(".git/index.lock").exists());
}
