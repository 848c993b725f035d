use std::path::{Path, PathBuf};
use std::process::Command;

use ic_base::{Code, Timestamp};
use ic_ledger::OpenOptions;

use super::state::GitState;
use super::{AskedGit, GitRestorePlan, PackBase, apply_index, apply_refs, ask, plan};
use crate::objects::Objects;

mod answer_cache;
mod campaign;
mod hard;
mod heads;
mod ic_refs;
mod index_file;
mod packs;

fn after(newest: Option<&GitState>) -> PackBase<'_> {
    PackBase { newest, other: None }
}

struct Repository {
    dir: tempfile::TempDir,
    objects: Objects,
}

impl Repository {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let objects = Objects::open(&dir.path().join("objects.db"), OpenOptions::default()).unwrap();
        std::fs::create_dir(dir.path().join("repo")).unwrap();
        let repository = Self { dir, objects };
        repository.git("init -q -b main");
        repository
    }

    /// With two commits on `main`, and a branch `side`.
    fn with_history() -> Self {
        let repository = Self::new();
        repository.commit("a", "one");
        repository.commit("a", "two");
        repository.git("branch side HEAD~1");
        repository
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    fn git_in(directory: &Path, line: &str) -> String {
        let output = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"])
            .args(line.split(' '))
            .current_dir(directory)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "git {line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    fn git(&self, line: &str) -> String {
        Self::git_in(&self.root(), line)
    }

    fn write(&self, path: &str, content: &str) {
        std::fs::write(self.root().join(path), content).unwrap();
    }

    fn commit(&self, path: &str, content: &str) {
        self.write(path, content);
        self.git("add -A");
        self.git(&format!("commit -q -m {content}"));
    }

    fn record(&self, previous: Option<&GitState>) -> GitState {
        self.record_in(&self.root(), previous)
    }

    fn record_in(&self, root: &Path, previous: Option<&GitState>) -> GitState {
        self.recorded(root, previous, false)
    }

    fn recorded(&self, root: &Path, previous: Option<&GitState>, is_a_look: bool) -> GitState {
        self.recorded_after(root, after(previous), is_a_look)
    }

    fn recorded_after(&self, root: &Path, before: PackBase<'_>, is_a_look: bool) -> GitState {
        let AskedGit::State(found) = ask(root).unwrap() else { panic!("no state of {}", root.display()) };
        let writer = self.objects.writer(Timestamp(1)).unwrap();
        let state = found.keep(root, before, &writer, is_a_look, &mut false).unwrap();
        writer.finish().unwrap();
        state
    }

    fn plan(&self, target: &GitState) -> ic_base::Result<(GitRestorePlan, GitState)> {
        let current = self.record(Some(target));
        plan(&self.root(), target, &current, &self.objects, &[]).map(|plan| (plan, current))
    }

    fn restore(&self, target: &GitState, id: &str) -> GitState {
        let (plan, current) = self.plan(target).unwrap();
        apply_refs(&self.root(), &plan, target, &current, id, &self.objects).unwrap();
        if plan.index {
            apply_index(&self.root(), target, &current, &self.objects).unwrap();
        }
        current
    }

    /// Restores, and asserts that the state then is the recorded one.
    fn comes_back(&self, target: &GitState) {
        let before = self.restore(target, "one");
        let after = self.record(Some(target));
        assert_same(&after, target);
        self.restore(&before, "two");
        assert_same(&self.record(Some(&before)), &before);
    }

    fn collect_garbage(&self) {
        self.git("reflog expire --expire=now --all");
        self.git("for-each-ref --format=%(refname) refs/ic").lines().for_each(|name| {
            self.git(&format!("update-ref -d {name}"));
        });
        self.git("gc -q --prune=now");
    }
}

/// Everything but what depends on the files, and on what had to be kept.
fn assert_same(found: &GitState, expected: &GitState) {
    let plain = |state: &GitState| GitState { packs: Vec::new(), dirty: false, ..state.clone() };
    assert_eq!(plain(found), plain(expected));
}

/// Every file of a git directory, with its time and content.
fn listing(directory: &Path) -> Vec<(PathBuf, std::time::SystemTime, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(listing(&path));
        } else {
            let meta = path.metadata().unwrap();
            all.push((path.clone(), meta.modified().unwrap(), std::fs::read(&path).unwrap()));
        }
    }
    all.sort();
    all
}

#[test]
fn a_look_keeps_nothing_that_git_may_lose() {
    let repository = Repository::with_history();
    let before = repository.record(None);
    repository.commit("b", "three");
    let look = repository.recorded(&repository.root(), Some(&before), true);
    assert_eq!(look.packs, before.packs);
    let kept = repository.record(Some(&before));
    assert_eq!(kept.packs.len(), before.packs.len() + 1);
    assert_same(&look, &kept);
}

#[test]
fn recording_changes_nothing() {
    let repository = Repository::with_history();
    repository.write("a", "three");
    repository.git("stash push -q");
    repository.write("b", "new");
    repository.git("add b");
    // Its times are newer than the index: git would like to refresh it.
    repository.write("a", "two");
    let before = listing(&repository.root().join(".git"));
    let state = repository.record(None);
    repository.record(Some(&state));
    assert_eq!(listing(&repository.root().join(".git")), before);
    assert!(state.dirty && state.stash.len() == 1);
    assert_eq!(state.branch.unwrap().0, b"main");
    assert!(!state.packs.is_empty(), "staged content and stash are kept");
}

#[test]
fn branches_head_and_index_come_back() {
    let repository = Repository::with_history();
    repository.write("staged", "staged");
    repository.git("add staged");
    let target = repository.record(None);
    repository.commit("c", "three");
    repository.git("branch later");
    repository.git("branch -D side");
    repository.git("checkout -q -b other HEAD~1");
    repository.git("branch -f main HEAD");
    let (planned, _) = repository.plan(&target).unwrap();
    assert_eq!(planned.refs.len(), 3, "{planned:?}");
    assert_eq!(planned.new_commits.len(), 1);
    repository.comes_back(&target);
    let kept = repository.git("for-each-ref --format=%(refname) refs/ic/rolled-back/one");
    assert!(kept.contains("refs/ic/rolled-back/one/heads/later"), "{kept}");
}

#[test]
fn a_detached_head_comes_back() {
    let repository = Repository::with_history();
    repository.git("checkout -q --detach HEAD~1");
    let target = repository.record(None);
    assert_eq!(target.branch, None);
    repository.git("checkout -q main");
    repository.comes_back(&target);
    repository.git("checkout -q side");
    let on_side = repository.record(None);
    repository.git("checkout -q --detach main");
    repository.comes_back(&on_side);
}

#[test]
fn a_stash_comes_back_in_its_order_with_its_messages() {
    let repository = Repository::with_history();
    for content in ["first", "second"] {
        repository.write("a", content);
        repository.git(&format!("stash push -q -m {content}"));
    }
    let target = repository.record(None);
    assert_eq!(target.stash.len(), 2);
    repository.git("stash drop -q stash@{1}");
    repository.write("a", "third");
    repository.git("stash push -q -m third");
    repository.comes_back(&target);
    repository.git("stash clear");
    repository.collect_garbage();
    repository.restore(&target, "three");
    repository.git("stash pop -q");
    assert_eq!(std::fs::read_to_string(repository.root().join("a")).unwrap(), "second");
}

#[test]
fn what_git_collected_comes_back() {
    let repository = Repository::with_history();
    let first = repository.record(None);
    repository.commit("c", "three");
    repository.write("c", "staged");
    repository.git("add c");
    let target = repository.record(Some(&first));
    repository.git("reset -q --hard HEAD~1");
    repository.collect_garbage();
    repository.restore(&target, "one");
    assert_same(&repository.record(Some(&target)), &target);
    assert_eq!(repository.git("show :c"), "staged");
    assert_eq!(repository.git("log --format=%s -1"), "three");
    repository.git("fsck --full --strict");
}

#[test]
fn flags_of_the_index_come_back() {
    let repository = Repository::with_history();
    repository.commit("x", "x");
    repository.git("update-index --assume-unchanged x");
    repository.write("intended", "later");
    repository.git("add -N intended");
    let target = repository.record(None);
    repository.git("update-index --no-assume-unchanged x");
    repository.git("reset -q");
    repository.comes_back(&target);
}

#[test]
fn an_unborn_branch_and_a_linked_work_tree() {
    let repository = Repository::new();
    let unborn = repository.record(None);
    assert_eq!((unborn.head.as_deref(), unborn.branch.as_ref().unwrap().0.as_slice()), (None, &b"main"[..]));
    repository.commit("a", "one");
    repository.restore(&unborn, "one");
    assert_same(&repository.record(Some(&unborn)), &unborn);

    let repository = Repository::with_history();
    let tree = repository.dir.path().join("tree");
    repository.git(&format!("worktree add -q {} side", tree.display()));
    let state = repository.record_in(&tree, None);
    assert_eq!(state.branch.unwrap().0, b"side");
    let target = repository.record(None);
    std::fs::write(tree.join("a"), "elsewhere").unwrap();
    Repository::git_in(&tree, "commit -q -a -m elsewhere");
    assert_eq!(repository.plan(&target).unwrap_err().code(), Code::GitUnsupported);
}

#[test]
fn packed_refs_and_a_split_index() {
    let repository = Repository::with_history();
    repository.git("pack-refs --all");
    repository.git("update-index --split-index");
    repository.write("b", "b");
    repository.git("add b");
    let target = repository.record(None);
    repository.commit("b", "c");
    repository.git("branch -D side");
    repository.comes_back(&target);
}

#[test]
fn operations_and_locks_are_refused() {
    let repository = Repository::with_history();
    let target = repository.record(None);
    repository.git("checkout -q side");
    repository.commit("a", "conflict");
    let merge = Command::new("git").args(["merge", "-q", "main"]).current_dir(repository.root()).output().unwrap();
    assert!(!merge.status.success(), "a merge with a conflict");
    // What began since, and is no more than notes beside the index, ends with the restore.
    assert_eq!(repository.plan(&target).unwrap().0.ends.as_deref(), Some("merge"));
    let merging = repository.record(None);
    repository.git("merge --abort");
    assert_eq!(repository.plan(&merging).unwrap_err().code(), Code::GitInProgress);
    let rebase = Command::new("git").args(["rebase", "-q", "main"]).current_dir(repository.root()).output().unwrap();
    assert!(!rebase.status.success(), "a rebase with a conflict");
    let refused = repository.plan(&target).unwrap_err();
    assert_eq!(refused.code(), Code::GitInProgress);
    assert!(refused.get_hint().is_some_and(|hint| hint.contains("git rebase --abort")), "{refused:?}");
    repository.git("rebase --abort");
    std::fs::write(repository.root().join(".git/index.lock"), "").unwrap();
    assert_eq!(repository.plan(&target).unwrap_err().code(), Code::GitBusy);
}

#[test]
fn a_ref_that_moved_since_the_plan_is_not_moved() {
    let repository = Repository::with_history();
    let target = repository.record(None);
    repository.commit("c", "three");
    let (planned, current) = repository.plan(&target).unwrap();
    repository.commit("c", "four");
    let refs = repository.git("for-each-ref");
    let refused = apply_refs(&repository.root(), &planned, &target, &current, "one", &repository.objects).unwrap_err();
    assert_eq!(refused.code(), Code::GitBusy);
    assert_eq!(repository.git("for-each-ref"), refs);
}

#[test]
fn a_directory_that_is_no_work_tree_has_no_state() {
    let repository = Repository::new();
    let plain = repository.dir.path().join("plain");
    std::fs::create_dir(&plain).unwrap();
    assert!(matches!(ask(&plain).unwrap(), AskedGit::NotARepository));
}
