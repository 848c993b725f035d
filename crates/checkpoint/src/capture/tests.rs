use std::fs;
use std::path::{Path, PathBuf};

use ic_base::Timestamp;
use ic_ledger::OpenOptions;

use super::memory_maps::Flush;
use super::options::{CaptureOptions, CaptureProgress};
use super::rules::RuleOptions;
use super::{Captured, capture};
use crate::limit::Limit;
use crate::objects::Objects;

mod concurrent_writers;

impl CaptureOptions {
    /// Those of a project without settings, with its ledger in this store.
    pub(crate) fn for_tests(store: PathBuf) -> Self {
        Self {
            rules: RuleOptions::default(),
            max_file_size: 10_000_000,
            max_files: 1_000_000,
            flush: Flush::Auto,
            touched: None,
            since: None,
            ledger: store.join("ic.db"),
            store,
        }
    }
}

struct Project {
    dir: tempfile::TempDir,
    objects: Objects,
    options: CaptureOptions,
}

impl Project {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("root")).unwrap();
        let store = dir.path().join("store");
        fs::create_dir(&store).unwrap();
        let objects = Objects::open(&store.join("objects.db"), OpenOptions::default()).unwrap();
        Self { dir, objects, options: CaptureOptions::for_tests(store) }
    }

    fn root(&self) -> std::path::PathBuf {
        self.dir.path().join("root")
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn capture(&self) -> Captured {
        capture(&self.objects, &self.root(), Timestamp(1), &self.options, &CaptureProgress::default()).unwrap()
    }

    /// Makes every file old enough to be trusted.
    fn settle(&self) {
        std::thread::sleep(std::time::Duration::from_millis(2_100));
        self.capture();
    }

    fn content(&self, captured: &Captured, path: &str) -> Option<Vec<u8>> {
        let mut hash = captured.root;
        let mut parts = path.split('/').peekable();
        while let Some(part) = parts.next() {
            match &self.objects.tree(&hash).unwrap().get(part.as_bytes())?.node {
                crate::tree::TreeNode::Directory(below) => hash = *below,
                crate::tree::TreeNode::File { hash, .. } if parts.peek().is_none() => {
                    return Some(self.objects.read(hash).unwrap());
                }
                _ => return None,
            }
        }
        None
    }
}

#[test]
fn a_tree_is_captured_whole_and_only_what_changed_is_stored_again() {
    let project = Project::new();
    project.write("a/b/c.txt", "c");
    project.write("a/d.txt", "d");
    fs::create_dir(project.root().join("empty")).unwrap();
    std::os::unix::fs::symlink("nowhere", project.root().join("link")).unwrap();
    let first = project.capture();
    assert_eq!((first.counts.files, first.counts.directories, first.counts.symlinks), (2, 4, 1));
    assert_eq!(project.content(&first, "a/b/c.txt").unwrap(), b"c");
    let again = project.capture();
    assert_eq!((again.root, again.stored.new_objects), (first.root, 0));
    project.write("a/b/c.txt", "C");
    let third = project.capture();
    assert_eq!(third.stored.new_objects, 4, "the file and the three directories above it");
    assert_eq!(project.content(&third, "a/b/c.txt").unwrap(), b"C");
    assert_eq!(project.content(&first, "a/b/c.txt").unwrap(), b"c");
}

#[test]
fn a_rewrite_of_the_same_size_with_its_old_time_is_seen() {
    let project = Project::new();
    project.write("f", "one");
    let path = project.root().join("f");
    project.settle();
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, "two").unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(before).unwrap();
    assert_eq!(project.content(&project.capture(), "f").unwrap(), b"two");
}

#[test]
fn a_rewrite_within_the_clocks_tick_is_seen() {
    let project = Project::new();
    for i in 0..200 {
        let text = format!("{i:04}");
        project.write("f", &text);
        assert_eq!(project.content(&project.capture(), "f").unwrap(), text.as_bytes());
    }
}

#[test]
fn a_lost_or_damaged_cache_loses_nothing() {
    let project = Project::new();
    project.write("f", "one");
    project.settle();
    let cache = fs::read_dir(project.objects.path().with_extension("cache")).unwrap().next().unwrap().unwrap();
    fs::write(cache.path(), "garbage").unwrap();
    project.write("f", "two");
    assert_eq!(project.content(&project.capture(), "f").unwrap(), b"two");
}

#[test]
fn ignored_names_leave_evidence_and_changed_rules_are_heeded() {
    let project = Project::new();
    project.write(".gitignore", "*.log\nout/\n");
    project.write("a.log", "log");
    project.write("out/x", "x");
    project.write("sub/b.log", "log");
    project.settle();
    let first = project.capture();
    let tree = project.objects.tree(&first.root).unwrap();
    let ignored = Some(&crate::tree::TreeNode::Passed(crate::tree::Reason::Ignored));
    let node = |name| tree.get(name).map(|entry| &entry.node);
    assert_eq!((node(b"a.log"), node(b"out")), (ignored, ignored));
    assert!(first.skipped.is_empty());
    project.write(".gitignore", "out/\n");
    let second = project.capture();
    assert_eq!(project.content(&second, "a.log").unwrap(), b"log");
    assert_eq!(project.content(&second, "sub/b.log").unwrap(), b"log");
    assert_eq!(project.content(&second, "out/x"), None);
}

#[test]
fn what_is_left_out_is_named() {
    let mut project = Project::new();
    project.options.max_file_size = 10;
    project.write("large", "more than ten bytes");
    project.write(".env", "SECRET=1");
    project.write("sub/.git/HEAD", "ref: refs/heads/main");
    project.write("sub/file", "plain");
    let fifo = Path::new("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, project.root().join(fifo), rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    let captured = project.capture();
    let skipped: Vec<_> =
        captured.skipped.iter().map(|(path, reason)| (std::str::from_utf8(path).unwrap(), reason.as_str())).collect();
    assert_eq!(skipped, [(".env", "secret"), ("large", "oversize"), ("pipe", "special")]);
    assert_eq!(captured.nested_git, [b"sub".to_vec()]);
    assert_eq!(project.content(&captured, "sub/file").unwrap(), b"plain");
    project.options.rules.force = [b"large".to_vec(), b".env".to_vec()].into();
    let forced = project.capture();
    assert_eq!(project.content(&forced, ".env").unwrap(), b"SECRET=1");
    assert_eq!(project.content(&forced, "large").unwrap(), b"more than ten bytes");
}

#[test]
fn too_many_files_are_refused() {
    let mut project = Project::new();
    project.options.max_files = 3;
    for i in 0..5 {
        project.write(&format!("f{i}"), "x");
    }
    let refused =
        capture(&project.objects, &project.root(), Timestamp(1), &project.options, &CaptureProgress::default());
    assert_eq!(refused.unwrap_err().code(), ic_base::Code::TreeTooLarge);
}

#[test]
fn very_deep_trees_are_captured() {
    let project = Project::new();
    let mut directory =
        rustix::fs::open(project.root(), rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap();
    for _ in 0..700 {
        rustix::fs::mkdirat(&directory, "directory", 0o755.into()).unwrap();
        directory =
            rustix::fs::openat(&directory, "directory", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap();
    }
    assert_eq!(project.capture().counts.directories, 701);
}

#[test]
fn what_a_file_system_refuses_to_show_is_listed_and_the_capture_continues() {
    // The links of another user's or a more privileged process can be listed, and not read.
    let root = Path::new("/proc/1/ns");
    let names = |readable: bool| {
        let entries = fs::read_dir(root).into_iter().flatten().flatten();
        let kept = entries.filter(|entry| fs::read_link(entry.path()).is_ok() == readable);
        let mut names: Vec<_> = kept.map(|entry| entry.file_name().into_encoded_bytes()).collect();
        names.sort();
        names
    };
    let refused = names(false);
    if refused.is_empty() {
        println!("skipped: every link below /proc can be read here");
        return;
    }
    let project = Project::new();
    let captured =
        capture(&project.objects, root, Timestamp(1), &project.options, &CaptureProgress::default()).unwrap();
    assert_eq!(captured.unreadable().collect::<Vec<_>>(), refused);
    assert_eq!(captured.counts.symlinks, names(true).len() as u64);
}

#[test]
fn only_what_this_process_lacks_ends_a_capture() {
    use rustix::io::Errno;
    for error in [Errno::ACCESS, Errno::PERM, Errno::IO, Errno::STALE, Errno::NOTCONN, Errno::SRCH, Errno::OVERFLOW] {
        assert!(!super::comparison::is_ours(error), "{error}");
    }
    for error in [Errno::MFILE, Errno::NFILE, Errno::NOMEM] {
        assert!(super::comparison::is_ours(error), "{error}");
    }
}

#[test]
fn files_named_as_only_the_endings_of_a_ledger_are_captured() {
    let project = Project::new();
    let (root, db) = (project.root(), project.root().join("ic.db"));
    let lookup = ic_ledger::Lookup { db: Some(&db), env_db: None, directory: &root };
    let place = ic_ledger::initial_place(&lookup, None).unwrap();
    ic_ledger::create(&place, false, &root, OpenOptions::default(), &ic_base::Context::system()).unwrap();
    let of_user = ["head", "lock", "lock.turn", "reserve"];
    of_user.iter().chain(&["objects.db"]).for_each(|name| project.write(name, "mine"));
    let captured = project.capture();
    for name in of_user {
        assert_eq!(project.content(&captured, name).as_deref(), Some(&b"mine"[..]), "{name}");
    }
    assert_eq!(project.content(&captured, "objects.db"), None, "it is called as the store of this ledger");
}

#[test]
fn a_capture_with_forced_paths_keeps_what_unfinished_ones_noted() {
    let mut project = Project::new();
    project.write("a", "a");
    let noted = super::beside(&project.objects, &project.root(), project.options.flush).unwrap();
    let noted = noted.with_extension("unfinished");
    fs::write(&noted, "noted").unwrap();
    project.options.rules.force = [b"a".to_vec()].into();
    project.capture();
    assert!(noted.exists(), "it wrote no stat cache, which would have the same");
    project.options.rules.force.clear();
    project.capture();
    assert!(!noted.exists());
}

#[test]
fn another_ledger_and_its_store_are_left_out_by_name() {
    use crate::tree::{Reason, TreeNode};
    let project = Project::new();
    let (root, options) = (project.root(), OpenOptions::default());
    let db = root.join("team.db");
    let lookup = ic_ledger::Lookup { db: Some(&db), env_db: None, directory: &root };
    let place = ic_ledger::initial_place(&lookup, None).unwrap();
    let (ledger, _) = ic_ledger::create(&place, false, &root, options, &ic_base::Context::system()).unwrap();
    let of_store = ["team.db.objects.cache", "team.db.objects.db", "team.db.objects.db.lock"];
    project.write("team.db.objects.cache/a", "stat");
    for name in of_store[1..].iter().chain(&["team.db.head", "team.db.lock", "team.db.reserve"]) {
        project.write(name, "content");
    }
    project.write("other.objects.db", "no ledger is beside it");
    // While it is in use, as here, and when it is closed.
    let in_use = project.capture();
    drop(ledger);
    let closed = project.capture();
    let names = ["team.db", "team.db.head", "team.db.lock", "team.db.reserve"].into_iter().chain(of_store);
    // An open ledger has a log and a shared-memory file beside it.
    for (captured, while_open) in [(in_use, &["team.db-shm", "team.db-wal"][..]), (closed, &[])] {
        let mut names: Vec<&str> = names.clone().chain(while_open.iter().copied()).collect();
        names.sort_unstable();
        let expected: Vec<_> = names.iter().map(|name| (name.as_bytes().to_vec(), Reason::Ledger)).collect();
        assert_eq!(captured.skipped, expected);
        let tree = project.objects.tree(&captured.root).unwrap();
        let node = |name: &str| tree.get(name.as_bytes()).map(|entry| &entry.node);
        assert_eq!(node("team.db"), Some(&TreeNode::Passed(Reason::Ledger)));
        assert!(matches!(node("other.objects.db"), Some(TreeNode::File { .. })));
    }
}

/// A capture that is asked to end once `bytes` were read.
fn interrupted_after(project: &Project, bytes: u64) -> (ic_base::Result<Captured>, u64) {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
    let flag = Arc::new(AtomicBool::new(false));
    let limit = Limit::new(std::time::Instant::now(), std::time::Duration::from_mins(10), Some(flag.clone()));
    let progress = CaptureProgress { limit, ..CaptureProgress::default() };
    let is_over = AtomicBool::new(false);
    let captured = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(SeqCst) && progress.read.load(SeqCst) < bytes {
                std::thread::yield_now();
            }
            flag.store(true, SeqCst);
        });
        let mut writer = project.objects.writer(Timestamp(1)).unwrap();
        writer.keep_progress();
        let captured = super::capture_with(&project.objects, &writer, &project.root(), &project.options, &progress);
        is_over.store(true, SeqCst);
        captured.and_then(|(captured, seen)| {
            writer.finish()?;
            seen.keep()?;
            Ok(captured)
        })
    });
    (captured, progress.read.into_inner())
}

#[test]
fn captures_that_end_before_they_are_whole_go_on_where_the_last_one_was() {
    let project = Project::new();
    let file = 40_000;
    for n in 0..400_u32 {
        // Of pieces, too, and nothing that compresses to little.
        let size = if n % 100 == 0 { 1_500_000 } else { file };
        let bytes: String = (0..size / 40).map(|k| format!("{:040}", u64::from(n) * 7_919 + k)).collect();
        project.write(&format!("d{}/f{n}", n % 20), &bytes);
    }
    std::thread::sleep(std::time::Duration::from_millis(2_100));
    let mut again = 0;
    let whole = loop {
        let (captured, _) = interrupted_after(&project, 3_000_000);
        match captured {
            Ok(captured) => break captured,
            Err(error) => assert_eq!(error.code(), ic_base::Code::Interrupted),
        }
        again += 1;
        assert!(again < 60, "each one goes on where the last one was");
    };
    assert!(again > 0, "one was not whole");
    let total = whole.counts.bytes;
    assert!(total > 20_000_000);
    for n in [0, 1, 100, 399] {
        let path = format!("d{}/f{n}", n % 20);
        assert_eq!(project.content(&whole, &path).unwrap(), fs::read(project.root().join(&path)).unwrap());
    }
    let other = Project::new();
    let anew = capture(&other.objects, &project.root(), Timestamp(1), &other.options, &CaptureProgress::default());
    assert_eq!(whole.root, anew.unwrap().root);
    let left = fs::read_dir(project.dir.path().join("store/objects.cache")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with("unfinished")), "{left:?}");
}

#[test]
fn a_limit_that_is_over_ends_a_capture() {
    let project = Project::new();
    project.write("a", "a");
    let limit = Limit::new(std::time::Instant::now(), std::time::Duration::ZERO, None);
    let progress = CaptureProgress { limit, ..CaptureProgress::default() };
    let ended = capture(&project.objects, &project.root(), Timestamp(1), &project.options, &progress);
    assert_eq!(ended.unwrap_err().code(), ic_base::Code::TimedOut);
    assert!(!Limit::default().is_any());
}
