//! Files that are stored to through memory maps: their stat does not change, but a capture still sees the change.
//!
//! Each scene plays twice: on the usual file system, where a store moves the times only if its page was written to disk since the
//! last one, and in memory (tmpfs), where it never does once the page was read.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use ic_sys::lease::map::{Access, SharedMap};
use ic_testkit::{Cli, CliOutcome};
use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;

use crate::project::project;

/// Younger files are read again anyway.
const SETTLED: Duration = Duration::from_millis(2_300);

/// A project, and room beside it on the same file system.
struct Place {
    cli: Cli,
    room: TempDir,
    /// No store ever moves the times here.
    is_quiet: bool,
}

impl Place {
    /// On the usual file system, and in memory where there is such a place.
    fn all() -> Vec<Self> {
        let usual = tempfile::tempdir().expect("a directory");
        let memory = Path::new("/dev/shm");
        let quiet = tempfile::tempdir_in(memory).ok();
        if quiet.is_none() {
            println!("skipped: nothing can be written in /dev/shm here");
        }
        let rooms = [Some(usual), quiet].into_iter().flatten();
        rooms
            .map(|room| {
                let is_quiet = room.path().starts_with(memory);
                let place = Self { cli: project(), room, is_quiet };
                fs::create_dir(place.root()).expect("the project's directory");
                place.json(&["init", "--json"]);
                place
            })
            .collect()
    }

    fn root(&self) -> PathBuf {
        self.room.path().join("project")
    }

    fn file(&self) -> PathBuf {
        self.root().join("data.map")
    }

    fn content(&self) -> Vec<u8> {
        fs::read(self.file()).expect("the file")
    }

    fn call(&self, arguments: &[&str]) -> Command {
        let mut command = self.cli.command(arguments);
        command.current_dir(self.root());
        command
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let outcome = CliOutcome::of(&mut self.call(arguments));
        assert_eq!(outcome.code, Some(0), "{arguments:?}: {outcome:?}");
        outcome.json()
    }

    fn create(&self) -> String {
        self.json(&["checkpoint", "create", "--json"])["id"].as_str().expect("an id").to_owned()
    }

    /// What a checkpoint has of the file.
    fn kept(&self, id: &str) -> Vec<u8> {
        let output = self.call(&["checkpoint", "cat", id, "data.map"]).output().expect("start ic");
        assert!(output.status.success(), "{output:?}");
        output.stdout
    }

    /// Whether the file differs from a checkpoint now.
    fn differs(&self, id: &str) -> bool {
        let report = self.json(&["checkpoint", "diff", id, "--json"]);
        report["changes"].as_array().expect("changes").iter().any(|change| change["path"] == "data.map")
    }

    /// What the file's stat says of its content.
    fn stat(&self) -> [i64; 5] {
        let meta = fs::metadata(self.file()).expect("the file");
        [meta.size().cast_signed(), meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()]
    }

    /// Has the file stored to, and looks whether its stat tells of it.
    fn stored(&self, store: impl FnOnce()) {
        let (content, stat) = (self.content(), self.stat());
        store();
        assert_ne!(self.content(), content, "it was stored to");
        assert!(!self.is_quiet || self.stat() == stat, "nothing ever moves the times here");
    }
}

/// A writer of the file through a shared map: the index of a write-ahead log, which SQLite maps, under a second name. Its database
/// lies outside of the project.
struct Mapped(Connection);

impl Mapped {
    fn new(room: &Path) -> Self {
        let connection = Connection::open(room.join("outside.db")).expect("a database");
        connection
            .execute_batch("PRAGMA journal_mode=wal; PRAGMA wal_autocheckpoint=0; CREATE TABLE t (v)")
            .expect("a table");
        fs::hard_link(room.join("outside.db-shm"), room.join("project/data.map")).expect("a second name");
        Self(connection)
    }

    fn store(&self) {
        self.0.execute_batch("INSERT INTO t VALUES (1)").expect("a transaction");
    }
}

#[test]
fn what_a_living_process_stores_is_seen_by_captures_diffs_and_restores() {
    for place in Place::all() {
        let mapped = Mapped::new(place.room.path());
        mapped.store();
        std::thread::sleep(SETTLED);
        let (first, before) = (place.create(), place.content());
        for _ in 0..3 {
            place.stored(|| mapped.store());
            assert!(place.differs(&first));
            assert_eq!(place.kept(&place.create()), place.content());
        }
        let now = place.content();
        let report = place.json(&["checkpoint", "restore", &first, "--yes", "--json"]);
        assert_eq!(report["status"], "restored", "{report}");
        assert_eq!(place.content(), before);
        assert_eq!(place.kept(report["safety_checkpoint_id"].as_str().expect("a safety checkpoint")), now);
        drop(mapped);
    }
}

#[test]
fn what_is_stored_through_a_map_whose_handle_is_closed_is_seen() {
    for place in Place::all() {
        fs::write(place.file(), [b'a'; 4096]).expect("the file");
        let file = fs::OpenOptions::new().read(true).write(true).open(place.file()).expect("the file");
        let map = SharedMap::new(&file, 4096, Access::Write).expect("a map");
        drop(file);
        map.store(0, b'b');
        std::thread::sleep(SETTLED);
        let first = place.create();
        assert_eq!(place.kept(&first), place.content());
        for byte in [b'c', b'd'] {
            place.stored(|| map.store(0, byte));
            assert!(place.differs(&first));
            assert_eq!(place.kept(&place.create()), place.content());
        }
        // Its last store leaves no trace either, and the map is gone when the tree is captured again.
        place.stored(|| map.store(0, b'e'));
        drop(map);
        assert_eq!(place.kept(&place.create()), place.content());
    }
}

#[test]
fn programs_that_open_files_for_writing_beside_a_capture_disturb_it_no_more_than_it_does_them() {
    const FILES: usize = 300;
    let place = Place::all().swap_remove(0);
    let names: Vec<PathBuf> = (0..FILES).map(|at| place.root().join(format!("{at}.txt"))).collect();
    for name in &names {
        fs::write(name, name.to_string_lossy().as_bytes()).expect("a file");
    }
    fs::write(place.file(), "and one").expect("a file");
    // Only what was left alone for so long is asked about.
    std::thread::sleep(SETTLED);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let opened: Vec<_> = (0..3)
            .map(|turn| {
                let (names, is_over) = (&names, &is_over);
                scope.spawn(move || {
                    let mut opened = 0_u64;
                    for name in names.iter().cycle().skip(turn * 100) {
                        if is_over.load(SeqCst) {
                            break;
                        }
                        fs::OpenOptions::new().append(true).open(name).expect("open a file");
                        opened += 1;
                    }
                    opened
                })
            })
            .collect();
        for _ in 0..6 {
            // A signal that ends it would be no exit code at all.
            assert_eq!(place.kept(&place.create()), b"and one");
        }
        is_over.store(true, SeqCst);
        for thread in opened {
            assert!(thread.join().expect("a thread that opens files") > 0);
        }
    });
}

/// Names the room of a writer that is a process of its own.
const WRITER: &str = "IC_TEST_MAPPED_WRITER";

/// Not a test but a process that another test starts and kills: it stores whenever it reads a line.
#[test]
fn a_writer_in_a_process_of_its_own() {
    let Some(room) = std::env::var_os(WRITER).map(PathBuf::from) else { return };
    let mapped = Mapped::new(&room);
    for line in std::io::stdin().lines() {
        mapped.store();
        fs::write(room.join(line.expect("a line")), "stored").expect("say so");
    }
}

/// Lets a writer store, and waits until it has.
fn let_store(place: &Place, writer: &mut Child, turn: &str) {
    writer.stdin.as_mut().expect("its input").write_all(format!("{turn}\n").as_bytes()).expect("a line");
    while !place.room.path().join(turn).exists() {
        assert_eq!(writer.try_wait().expect("look at the writer"), None, "it lives");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_a_process_stored_and_died_is_seen() {
    for place in Place::all() {
        let mut writer = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "memory_maps::a_writer_in_a_process_of_its_own", "--nocapture"])
            .env(WRITER, place.room.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("start the writer");
        let_store(&place, &mut writer, "first");
        std::thread::sleep(SETTLED);
        let first = place.create();
        place.stored(|| let_store(&place, &mut writer, "second"));
        writer.kill().expect("kill the writer");
        writer.wait().expect("wait for it");
        let now = place.content();
        assert!(place.differs(&first));
        assert_ne!(place.kept(&first), now);
        assert_eq!(place.kept(&place.create()), now);
    }
}

#[test]
fn always_sees_it_too_and_never_leaves_nothing_that_is_believed_later() {
    for place in Place::all() {
        let mapped = Mapped::new(place.room.path());
        let configure = |flush: &str| {
            let text = format!("rollback: {{checkpointing: {{flush: {flush}}}}}\n");
            fs::write(place.root().join(".ic.yaml"), text).expect("the configuration");
        };
        configure("always");
        mapped.store();
        std::thread::sleep(SETTLED);
        let first = place.create();
        place.stored(|| mapped.store());
        assert!(place.differs(&first));
        configure("never");
        std::thread::sleep(SETTLED);
        let (second, before) = (place.create(), place.content());
        place.stored(|| mapped.store());
        if place.is_quiet {
            assert_eq!(place.kept(&place.create()), before, "it was told to look at the stat alone");
        }
        configure("auto");
        assert!(place.differs(&second));
        assert_eq!(place.kept(&place.create()), place.content());
    }
}
