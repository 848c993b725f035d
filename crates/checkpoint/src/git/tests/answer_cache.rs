//! What is believed without asking git is what git says.

use super::*;
use crate::capture::{self, CaptureOptions, CaptureProgress, Flush};
use crate::git::GitLook;

mod dirty_tree;
mod random_histories;
mod refreshed_index;

/// A repository whose states are recorded as captures record them.
struct Told {
    repository: Repository,
    root: PathBuf,
    last: Option<GitState>,
    /// How often git had not to be asked for all.
    known: usize,
}

impl Told {
    /// Its settings are old enough to be believed.
    fn of(repository: Repository, root: PathBuf) -> Self {
        let mut told = Self { repository, root, last: None, known: 0 };
        told.record();
        std::thread::sleep(std::time::Duration::from_millis(2_100));
        told.record();
        told
    }

    fn new() -> Self {
        let repository = Repository::with_history();
        let root = repository.root();
        Self::of(repository, root)
    }

    /// Tracked files, which [`kept`] names, differ from the index since long before its first states were recorded.
    fn changed_long_ago() -> Self {
        let repository = Repository::with_history();
        (0..3).for_each(|at| std::fs::create_dir(repository.root().join(format!("k{at}"))).unwrap());
        (0..10).for_each(|at| repository.commit(&kept(at), "kept"));
        let root = repository.root();
        (0..10).for_each(|at| std::fs::write(root.join(kept(at)), "changed").unwrap());
        Self::of(repository, root)
    }

    /// Where what git told is kept.
    fn file(&self) -> PathBuf {
        let cache = self.repository.objects.path().with_extension("cache");
        cache.join(crate::caches::root_key(&self.root)).with_extension("git")
    }

    /// How many paths git was not asked of.
    fn unasked(&self) -> usize {
        let text = std::fs::read(self.file()).unwrap();
        let told: serde_json::Value = serde_json::from_slice(&text).unwrap();
        told["unasked"].as_array().unwrap().len()
    }

    fn options(&self) -> CaptureOptions {
        CaptureOptions::for_tests(self.repository.dir.path().to_owned())
    }

    /// The state as a capture records it, and whether git had not to be asked for all.
    fn shoot(&mut self) -> (GitState, bool) {
        let (state, is_known) = self.seen(false);
        self.last = Some(state.clone());
        (state, is_known)
    }

    /// As [`Told::shoot`], of a look, which keeps nothing.
    fn look(&self) -> (GitState, bool) {
        self.seen(true)
    }

    fn seen(&self, is_a_look: bool) -> (GitState, bool) {
        let objects = &self.repository.objects;
        let look = GitLook::begin(objects, &self.root, Flush::Auto).unwrap();
        let asked = (!look.knows()).then(|| ask(&self.root));
        let options = CaptureOptions { since: look.since(), ..self.options() };
        let now = Timestamp(1);
        let writer = if is_a_look { objects.looker(now) } else { objects.writer(now) }.unwrap();
        let (captured, seen) =
            capture::capture_with(objects, &writer, &self.root, &options, &CaptureProgress::default()).unwrap();
        let AskedGit::State(found) = look.end(&captured, asked).unwrap() else { panic!("no state") };
        let is_known = found.is_known();
        let state = found.keep(&self.root, after(self.last.as_ref()), &writer, is_a_look, &mut false).unwrap();
        let is_stored = writer.stores_all();
        writer.finish().unwrap();
        seen.keep_if(is_stored).unwrap();
        (state, is_known)
    }

    /// Records the state, and compares it with what git says.
    fn record(&mut self) -> bool {
        let (state, is_known) = self.shoot();
        let AskedGit::State(found) = ask(&self.root).unwrap() else { panic!("no state") };
        let writer = self.repository.objects.looker(Timestamp(1)).unwrap();
        let asked = found.keep(&self.root, after(None), &writer, true, &mut false).unwrap();
        let bare = |state: GitState| GitState { packs: Vec::new(), purged: false, ..state };
        assert_eq!(bare(state), bare(asked));
        self.known += usize::from(is_known);
        is_known
    }

    fn git(&self, line: &str) {
        Repository::git_in(&self.root, line);
    }

    /// As [`Told::git`], where it may refuse.
    fn attempt(&self, line: &str) {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@b.c"]).args(line.split(' '));
        git.current_dir(&self.root).output().unwrap();
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Does each of these, and records the state after it, twice: the second time nothing has changed.
    fn follow(&mut self, lines: &[&str]) {
        for line in lines {
            match line.split_once(" = ") {
                Some((path, content)) => self.write(path, content),
                None => self.git(line),
            }
            self.record();
            assert!(self.record(), "after {line:?}");
        }
    }
}

fn kept(at: usize) -> String {
    format!("k{}/s{at}", at % 3)
}

/// Whatever of git's files changes, the next state has it; and what did not change is not asked for.
const STEPS: [&str; 53] = [
    "a = three",
    "new = untracked",
    "add new",
    "commit -q -a -m more",
    "commit -q --amend -m amended",
    "branch b1",
    "branch -f b1 HEAD~1",
    "branch b2 b1",
    "symbolic-ref refs/heads/alias refs/heads/b2",
    "symbolic-ref -d refs/heads/alias",
    "update-ref -d refs/heads/b2",
    "tag mark",
    "tag -d mark",
    "update-ref refs/remotes/origin/main HEAD~1",
    "checkout -q side",
    "checkout -q --detach",
    "checkout -q main",
    "a = four",
    "stash push -q",
    "a = five",
    "stash push -q -m named",
    "a = six",
    "stash push -q",
    "stash drop -q stash@{1}",
    "stash drop -q",
    "stash pop -q",
    "commit -q -a -m unstashed",
    "d/f = one",
    "add -N d/f",
    "add d/f",
    "rm -q --cached a",
    "add a",
    "a = odd",
    "add a",
    "a = eve",
    "add a",
    "commit -q -m staged",
    "update-index --assume-unchanged a",
    "a = not seen",
    "update-index --no-assume-unchanged a",
    "update-index --skip-worktree a",
    "a = nor this",
    "update-index --no-skip-worktree a",
    "reset -q --hard",
    "pack-refs --all",
    "update-ref -d refs/heads/side",
    "branch b3",
    "update-index --index-version 4",
    "update-index --chmod=+x a",
    "reset -q --hard",
    "gc -q",
    "mv a z",
    "commit -q -m moved",
];

#[test]
fn every_change_of_git_is_seen_and_nothing_else_is_asked_for() {
    let mut told = Told::new();
    assert!(told.record(), "nothing has changed");
    told.follow(&STEPS);
}

#[test]
fn refs_in_tables_are_told_by_their_list() {
    let repository = Repository::new();
    let root = repository.dir.path().join("tables");
    let made = Command::new("git").args(["init", "-q", "-b", "main", "--ref-format=reftable"]).arg(&root).output();
    if !made.unwrap().status.success() {
        return; // A git before 2.45.
    }
    std::fs::write(root.join("a"), "one").unwrap();
    for line in ["add -A", "commit -q -m one", "commit -q --allow-empty -m two", "branch side HEAD~1"] {
        Repository::git_in(&root, line);
    }
    let mut told = Told::of(repository, root);
    told.follow(&STEPS);
}

#[test]
fn a_linked_work_tree_has_its_own_head_and_index() {
    let repository = Repository::with_history();
    repository.git("checkout -q -B elsewhere");
    repository.git("worktree add -q ../linked main");
    let root = repository.dir.path().join("linked");
    let mut told = Told::of(repository, root);
    told.follow(&STEPS);
    // What is done in the main one moves a branch here too.
    Repository::git_in(&told.repository.root(), "checkout -q -B another");
    assert!(!told.record());
    told.git("update-ref refs/worktree/own HEAD");
    assert!(!told.record());
}

#[test]
fn an_operation_in_progress_is_looked_for_each_time() {
    let mut told = Told::new();
    told.git("checkout -q -b theirs HEAD~1");
    told.write("a", "theirs");
    told.git("commit -q -a -m theirs");
    told.git("checkout -q main");
    told.attempt("merge -q theirs");
    told.record();
    assert_eq!(told.shoot().0.operation.as_deref(), Some("merge"));
    assert!(told.record());
    // A marker is no file that the stamp has.
    std::fs::remove_file(told.root.join(".git/MERGE_HEAD")).unwrap();
    let (state, is_known) = told.shoot();
    assert_eq!((state.operation, is_known), (None, true));
}

#[test]
fn what_git_tracks_and_the_tree_lacks_is_asked_for() {
    let mut told = Told::new();
    // Too large to be captured.
    std::fs::write(told.root.join("large"), vec![b'x'; 10_000_001]).unwrap();
    told.record();
    assert!(told.record(), "git does not track it");
    told.git("add large");
    told.git("commit -q -m large");
    told.record();
    assert!(!told.record(), "its content is not looked at");
    std::fs::write(told.root.join("large"), vec![b'y'; 10_000_001]).unwrap();
    assert!(!told.record());
    told.git("rm -q -f --cached large");
    told.record();
    assert!(told.record(), "git does not track it any more");
}

#[test]
fn submodules_and_odd_settings_are_always_asked_for() {
    let mut told = Told::new();
    let sub = told.root.join("sub");
    std::fs::create_dir(&sub).unwrap();
    for line in ["init -q", "commit -q --allow-empty -m one"] {
        Repository::git_in(&sub, line);
    }
    told.git("add sub");
    told.git("commit -q -m sub");
    told.record();
    Repository::git_in(&sub, "commit -q --allow-empty -m two");
    assert!(!told.record());
    told.git("rm -q -f --cached sub");
    told.record();
    assert!(told.record());
    told.git("config core.checkStat minimal");
    std::thread::sleep(std::time::Duration::from_millis(2_100));
    told.record();
    assert!(!told.record());
}

#[test]
fn settings_and_attributes_that_change_are_asked_for() {
    let mut told = Told::new();
    told.write("crlf", "one\r\n");
    told.git("add -A");
    told.git("commit -q -m crlf");
    for (path, content) in [
        (".git/info/attributes", "crlf text\n"),
        (".git/info/attributes", "crlf -text\n"),
        (".gitattributes", "crlf text eol=crlf\n"),
    ] {
        told.record();
        told.write(path, content);
        assert!(!told.record(), "{path} {content:?}");
        told.write("crlf", "one\r\n");
        told.record();
    }
    told.git("config core.autocrlf true");
    assert!(!told.record());
    told.write("crlf", "one\n");
    told.record();
}

/// What another program left in the file is not read, whatever it says.
#[test]
fn a_file_of_another_version_is_not_believed() {
    let mut told = Told::new();
    assert!(told.record());
    let file = told.file();
    let text = std::fs::read_to_string(&file).unwrap();
    capture::forget_caches(&told.repository.objects).unwrap();
    assert!(!file.exists() && !told.record() && told.record());
    for other in [text.replacen("\"version\":", "\"version\":1", 1), text[..text.len() / 2].to_owned(), String::new()] {
        std::fs::write(&file, other).unwrap();
        assert!(!told.record());
        assert!(told.record());
    }
}

/// Files that change while git is asked, or just before, count as different.
#[test]
fn what_changed_beside_the_question_is_asked_for_again() {
    let mut told = Told::new();
    let look = GitLook::begin(&told.repository.objects, &told.root, Flush::Auto).unwrap();
    let options = CaptureOptions { since: look.since(), ..told.options() };
    let writer = told.repository.objects.writer(Timestamp(1)).unwrap();
    // The tree is captured, then changed, then git is asked, then it is as before.
    let (captured, seen) =
        capture::capture_with(&told.repository.objects, &writer, &told.root, &options, &CaptureProgress::default())
            .unwrap();
    told.write("a", "won");
    let AskedGit::State(found) = look.end(&captured, Some(ask(&told.root))).unwrap() else { panic!() };
    assert!(found.keep(&told.root, after(told.last.as_ref()), &writer, false, &mut false).unwrap().dirty);
    writer.finish().unwrap();
    seen.keep().unwrap();
    told.write("a", "two");
    assert!(!told.shoot().0.dirty);
    told.record();
}

/// Where a file is replaced within a tick of the clock, by as many bytes in the same place, its content tells.
#[test]
fn what_changes_within_the_clocks_tick_has_another_stamp() {
    let repository = Repository::with_history();
    let dirs = ic_ledger::git_dirs(&repository.root()).unwrap();
    let stamp = || crate::git::files::of_repository(&repository.root(), &dirs, i64::MIN).unwrap();
    for file in ["index", "packed-refs", "logs/refs/stash", "info/attributes", "info/sparse-checkout"] {
        let path = dirs.common_dir.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut last = stamp();
        for number in 0..300 {
            std::fs::write(&path, format!("{number:03}")).unwrap();
            let now = stamp();
            assert_ne!(now, last, "{file}");
            last = now;
        }
    }
}

/// An index that was split is not in one file; what its refs are, links tell of other files.
#[test]
fn forms_that_git_has_not_written_for_long_are_asked_for() {
    let mut told = Told::new();
    told.git("update-index --split-index");
    told.record();
    assert!(!told.record());
    let mut told = Told::new();
    std::os::unix::fs::symlink("main", told.root.join(".git/refs/heads/link")).unwrap();
    told.record();
    assert!(!told.record());
    let mut told = Told::new();
    std::fs::remove_file(told.root.join(".git/HEAD")).unwrap();
    std::os::unix::fs::symlink("refs/heads/main", told.root.join(".git/HEAD")).unwrap();
    told.record();
    assert!(!told.record());
}
