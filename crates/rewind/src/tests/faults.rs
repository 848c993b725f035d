//! Faults in the middle, the application at work, files that cannot be used.

use std::os::unix::fs::PermissionsExt;

use ic_base::Code;

use super::fixture::{NOW, TestApp};
use crate::{Archive, ArchiveState, Rewind, faults};

#[test]
fn a_failure_of_any_statement_leaves_the_dump_as_it_was() {
    let app = TestApp::devs();
    let before = app.full_dump();
    let mut engine = app.engine();
    for n in 1.. {
        let mut archive = Archive::at(app.file("archive"));
        faults::fail_before(n);
        let result = engine.rollback_to_task("T1", &Rewind { id: "r", now: NOW }, &mut archive);
        faults::fail_before(0);
        if result.is_ok() {
            assert!(n > 50, "{n} statements are too few");
            break;
        }
        assert_eq!(result.unwrap_err().code(), Code::Io);
        assert_eq!(app.full_dump(), before, "before statement {n}");
        assert!(!app.file("archive").exists(), "an archive is left before statement {n}");
        assert!(!app.file("archive.partial").exists());
    }
    let archive = Archive::at(app.file("archive"));
    let rewound = app.full_dump();
    for n in 1.. {
        faults::fail_before(n);
        let result = engine.undo(&archive, NOW);
        faults::fail_before(0);
        if result.is_ok() {
            assert!(n > 20, "{n} statements are too few");
            break;
        }
        assert_eq!(app.full_dump(), rewound, "before statement {n} of the undo");
    }
    assert_eq!(app.dump(), before);
}

/// The process of this test runs itself once for every statement, and dies before it.
#[test]
fn a_crash_before_any_statement_leaves_nothing_or_everything() {
    const DIRECTORY: &str = "IC_REWIND_CRASH_IN";
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        let n = std::env::var("IC_REWIND_CRASH_AT").unwrap().parse().unwrap();
        let path = std::path::Path::new(&directory).join("state.db");
        let target = crate::RewindTarget::of_profile(crate::Profile::Devs, &path);
        let mut engine = crate::RelationalRollbackEngine::open(&target, crate::EngineOptions::default()).unwrap();
        let mut archive = Archive::at(path.with_file_name("archive"));
        faults::abort_before(n);
        engine.rollback_to_task("T1", &Rewind { id: "r", now: NOW }, &mut archive).unwrap();
        return;
    }
    let complete = TestApp::devs();
    let before = complete.full_dump();
    let mut archive = Archive::at(complete.file("archive"));
    complete.engine().rollback_to_task("T1", &Rewind { id: "r", now: NOW }, &mut archive).unwrap();
    let after = complete.full_dump();
    for wal in [false, true] {
        for n in 1.. {
            let app = TestApp::devs();
            if wal {
                app.connect().query_row("PRAGMA journal_mode=WAL", [], |_| Ok(())).unwrap();
            }
            let status = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "tests::faults::a_crash_before_any_statement_leaves_nothing_or_everything"])
                .env(DIRECTORY, app.path().parent().unwrap())
                .env("IC_REWIND_CRASH_AT", n.to_string())
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .status()
                .unwrap();
            let mut archive = Archive::at(app.file("archive"));
            if status.success() {
                assert!(n > 50);
                assert_eq!(app.full_dump(), after);
                break;
            }
            assert_eq!(app.full_dump(), before, "before statement {n}");
            if archive.exists().unwrap() {
                assert_eq!(app.engine().archive_state(&archive).unwrap(), ArchiveState::Unused);
            }
            app.engine().rollback_to_task("T1", &Rewind { id: "r", now: NOW }, &mut archive).unwrap();
            assert_eq!(app.full_dump(), after, "again after a crash before statement {n}");
            assert_eq!(app.engine().archive_state(&archive).unwrap(), ArchiveState::Applied);
            app.undo(&archive).unwrap();
            assert_eq!(app.engine().archive_state(&archive).unwrap(), ArchiveState::Undone);
        }
    }
}

#[test]
fn a_database_that_is_locked_is_busy() {
    for wal in [false, true] {
        let mut app = TestApp::devs();
        let holder = app.connect();
        if wal {
            holder.query_row("PRAGMA journal_mode=WAL", [], |_| Ok(())).unwrap();
        }
        let before = app.full_dump();
        holder.execute_batch("BEGIN IMMEDIATE").unwrap();
        let error = app.rewind("T1").unwrap_err();
        assert_eq!(error.code(), Code::Busy, "{error}");
        holder.execute_batch("COMMIT").unwrap();
        assert_eq!(app.full_dump(), before);
        if !wal {
            holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
            assert_eq!(app.rewind("T1").unwrap_err().code(), Code::Busy);
            holder.execute_batch("COMMIT").unwrap();
        }
        app.rewind("T1").unwrap();
    }
}

#[test]
fn a_reader_that_stays_makes_a_rewind_busy_without_a_log_and_not_with_one() {
    let mut app = TestApp::devs();
    let before = app.full_dump();
    let reader = app.connect();
    reader.execute_batch("BEGIN; SELECT count(*) FROM tasks").unwrap();
    assert_eq!(app.rewind("T1").unwrap_err().code(), Code::Busy);
    reader.execute_batch("COMMIT").unwrap();
    assert_eq!(app.full_dump(), before);
    assert!(!app.file("rewind-1").exists());
    reader.query_row("PRAGMA journal_mode=WAL", [], |_| Ok(())).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM tasks").unwrap();
    app.rewind("T1").unwrap();
    assert_eq!(reader.query_row("SELECT count(*) FROM tasks", [], |row| row.get::<_, i64>(0)).unwrap(), 3);
}

#[test]
fn an_application_at_work_never_sees_half_a_rewind() {
    for wal in [false, true] {
        let app = TestApp::devs();
        if wal {
            app.connect().query_row("PRAGMA journal_mode=WAL", [], |_| Ok(())).unwrap();
        }
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let connection = app.connect();
                connection.busy_timeout(std::time::Duration::from_secs(20)).unwrap();
                let mut n = 1000;
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    n += 1;
                    let both = format!(
                        "BEGIN IMMEDIATE; INSERT INTO tasks VALUES ('W{n}', '', '', NULL, {n}); \
                         INSERT INTO requirements VALUES ('W{n}', 'W{n}', '', {n}); COMMIT"
                    );
                    connection.execute_batch(&both).unwrap();
                    let (tasks, requirements) = connection
                        .query_row(
                            "SELECT (SELECT count(*) FROM tasks WHERE task_id LIKE 'W%'), \
                             (SELECT count(*) FROM requirements WHERE req_id LIKE 'W%')",
                            [],
                            |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)),
                        )
                        .unwrap();
                    assert_eq!(tasks, requirements);
                    std::thread::sleep(std::time::Duration::from_micros(300));
                }
            });
            let options = crate::EngineOptions { busy_timeout: std::time::Duration::from_secs(20) };
            let mut engine = crate::RelationalRollbackEngine::open(&app.target, options).unwrap();
            for n in 0..20 {
                let id = format!("r{n}");
                let mut archive = Archive::at(app.file(&id));
                match engine.rollback_to_task("T3", &Rewind { id: &id, now: NOW }, &mut archive) {
                    Ok(result) => {
                        let counts = result.deleted_row_counts;
                        // Only the log of T3 is newer than T3 in the beginning.
                        assert_eq!(counts.get("tasks"), counts.get("requirements"));
                    }
                    Err(error) => assert_eq!(error.code(), Code::Busy),
                }
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            worker.join().unwrap();
        });
    }
}

#[test]
fn files_that_are_no_state_database_are_refused() {
    let mut app = TestApp::devs();
    let place = |name: &str, content: &[u8]| {
        let path = app.file(name);
        std::fs::write(&path, content).unwrap();
        path
    };
    let mut newer = std::fs::read(app.path()).unwrap();
    newer[18] = 3;
    newer[19] = 3;
    let ledger = app.file("ic.db");
    rusqlite::Connection::open(&ledger)
        .unwrap()
        .execute_batch("PRAGMA application_id=0x69634c47; CREATE TABLE t (a)")
        .unwrap();
    let directory = app.file("directory");
    std::fs::create_dir(&directory).unwrap();
    let cases = [
        (app.file("missing.db"), Code::InvalidConfig, "does not exist"),
        (directory, Code::InvalidConfig, "is not a file"),
        (app.path().join("beneath"), Code::Io, "looking for"),
        (place("foreign", &[7; 4096]), Code::ForeignDatabase, "not a database"),
        (place("short", b"short"), Code::ForeignDatabase, "not a database"),
        (place("empty", b""), Code::InvalidConfig, "no table tasks"),
        (place("newer", &newer), Code::NewerSchema, "file format"),
        (ledger, Code::ForeignDatabase, "never rewound"),
    ];
    for (path, code, text) in cases {
        app.target.database = path;
        let error = app.try_engine().err().unwrap();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.message().contains(text), "{error}");
    }
}

#[test]
fn a_damaged_database_is_said_to_be_damaged() {
    let mut app = TestApp::devs();
    let mut bytes = std::fs::read(app.path()).unwrap();
    for page in bytes.chunks_mut(4096).skip(1) {
        page[..64].fill(0xEE);
    }
    let damaged = app.file("damaged.db");
    std::fs::write(&damaged, &bytes).unwrap();
    app.target.database = damaged.clone();
    assert_eq!(app.rewind("T1").unwrap_err().code(), Code::Corrupt);
    assert_eq!(std::fs::read(damaged).unwrap(), bytes);
}

#[test]
fn text_that_is_not_utf_8_is_said_to_be_damage() {
    let mut app = TestApp::devs();
    app.sql("INSERT INTO tasks VALUES ('T4', '', '', NULL, CAST(x'ff' AS TEXT))");
    assert_eq!(app.engine().read_all_tasks().unwrap_err().code(), Code::Corrupt);
    let error = app.rewind("T2").unwrap_err();
    assert!(error.message().contains("tasks 'T4' (created_at \u{fffd})"), "{error}");
}

#[test]
fn a_damaged_index_stops_the_rewind() {
    let mut app = TestApp::devs();
    app.sql("CREATE INDEX by_time ON requirements (created_at)");
    let connection = app.connect();
    connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false).unwrap();
    let root: i64 = connection
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'by_time'", [], |row| row.get(0))
        .unwrap();
    drop(connection);
    let mut bytes = std::fs::read(app.path()).unwrap();
    let page = &mut bytes[usize::try_from(root - 1).unwrap() * 4096..][..4096];
    // The number of cells: the index now knows one row less.
    page[4] -= 1;
    std::fs::write(app.path(), &bytes).unwrap();
    let before = app.full_dump();
    // The row that the index does not know would stay, while its task goes.
    let error = app.rewind("T1").unwrap_err();
    assert!(error.message().contains("requirements 'R3'"), "{error}");
    assert_eq!(app.full_dump(), before);
}

#[test]
fn a_read_only_database_can_be_previewed_and_not_rewound() {
    let mut app = TestApp::devs();
    let before = app.full_dump();
    let path = app.path().to_owned();
    // Rights do not bind the superuser, but the version of the file's format does everyone.
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[18] = 3;
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(app.engine().get_snapshot("T2").unwrap().affected_row_counts.total(), 6);
    let error = app.rewind("T2").unwrap_err();
    assert_eq!(error.code(), Code::PermissionDenied, "{error}");
    assert!(!app.file("rewind-1").exists());
    bytes[18] = 1;
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(app.full_dump(), before);
}

#[test]
fn a_full_disk_changes_nothing() {
    let mut app = TestApp::devs();
    let many = "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) \
        INSERT INTO requirements SELECT 'x' || i, NULL, hex(zeroblob(100)), 900 FROM n";
    app.sql(many);
    let before = app.full_dump();
    let Some(full) = small_disk(&app) else { return };
    let mut archive = Archive::at(full.join("archive"));
    let mut engine = app.engine();
    let error = engine.rollback_to_task("T1", &Rewind { id: "r", now: NOW }, &mut archive).unwrap_err();
    let left: Vec<_> = std::fs::read_dir(&full).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    // The state database itself on a full disk: its journal cannot grow.
    let moved = full.join("state.db");
    app.sql("DELETE FROM requirements WHERE req_id > 'x11'; VACUUM");
    std::fs::copy(app.path(), &moved).unwrap();
    let _ = std::fs::write(full.join("rest"), vec![0; 4 << 20]);
    let mut small = crate::RewindTarget::of_profile(crate::Profile::Devs, &moved);
    std::mem::swap(&mut small, &mut app.target);
    let small_before = app.full_dump();
    let second = app.rewind("T1").unwrap_err();
    let small_after = app.full_dump();
    std::mem::swap(&mut small, &mut app.target);
    let unmounted = std::process::Command::new("umount").arg(&full).status().unwrap();
    assert!(unmounted.success());
    assert_eq!(error.code(), Code::DiskFull, "{error}");
    assert_eq!(second.code(), Code::DiskFull, "{second}");
    assert_eq!(small_after, small_before);
    assert_ne!(app.full_dump(), before);
}

/// A disk of one MiB, where this process may have one.
fn small_disk(app: &TestApp) -> Option<std::path::PathBuf> {
    let path = app.file("disk");
    std::fs::create_dir(&path).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
        .arg(&path)
        .stderr(std::process::Stdio::null())
        .status();
    let Ok(true) = mounted.map(|status| status.success()) else {
        println!("a small disk cannot be mounted here; this test did nothing");
        return None;
    };
    Some(path)
}

#[test]
fn a_place_that_cannot_be_written_holds_no_archive() {
    let app = TestApp::devs();
    let before = app.full_dump();
    let mut engine = app.engine();
    let mut archive = Archive::at(app.file("missing/archive"));
    let error = engine.rollback_to_task("T1", &Rewind { id: "r", now: NOW }, &mut archive).unwrap_err();
    assert_eq!(error.code(), Code::Io, "{error}");
    std::fs::create_dir_all(app.file("archive.partial/x")).unwrap();
    let mut archive = Archive::at(app.file("archive"));
    assert!(engine.rollback_to_task("T1", &Rewind { id: "r", now: NOW }, &mut archive).is_err());
    assert_eq!(app.full_dump(), before);
}

#[test]
fn an_archive_is_private_and_is_never_overwritten() {
    let mut app = TestApp::devs();
    let (_, archive) = app.rewind("T2").unwrap();
    let mode = std::fs::metadata(archive.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let content = std::fs::read(archive.path()).unwrap();
    let before = app.full_dump();
    let mut again = archive.clone();
    for id in ["rewind-1", "other"] {
        let error = app.engine().rollback_to_task("T1", &Rewind { id, now: NOW }, &mut again).unwrap_err();
        assert_eq!(error.code(), Code::ArchiveInUse);
        assert!(error.message().contains("rewind-1"), "{error}");
    }
    std::fs::write(app.file("notes.txt"), "mine").unwrap();
    let mut foreign = Archive::at(app.file("notes.txt"));
    let error = app.engine().rollback_to_task("T1", &Rewind { id: "x", now: NOW }, &mut foreign).unwrap_err();
    assert_eq!(error.code(), Code::ForeignDatabase);
    assert_eq!(std::fs::read(archive.path()).unwrap(), content);
    assert_eq!(app.full_dump(), before);
}

#[test]
fn paths_need_not_be_utf_8() {
    use std::os::unix::ffi::OsStrExt;
    let mut app = TestApp::devs();
    let name = std::ffi::OsStr::from_bytes(b"a\xff 'b\"?#%20.db");
    let path = app.path().with_file_name(name);
    std::fs::rename(app.path(), &path).unwrap();
    app.target.database = path.clone();
    let before = app.dump();
    let mut archive = Archive::at(path.with_file_name(std::ffi::OsStr::from_bytes(b"arch\xfeive")));
    app.engine().rollback_to_task("T1", &Rewind { id: "r", now: NOW }, &mut archive).unwrap();
    app.undo(&archive).unwrap();
    assert_eq!(app.dump(), before);
}
