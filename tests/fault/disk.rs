//! Full disks and read-only places. They need a small file system of their own, so they run where mounting is allowed.

use std::path::Path;
use std::process::Command;

use ic_testkit::{Cli, dump};

use crate::filled::Filled;
use crate::verbs::assert_graceful;

/// A small file system in memory, as long as it lives.
struct Tmpfs<'p>(&'p Path);

impl<'p> Tmpfs<'p> {
    /// `None` where mounting is not allowed.
    fn mount(point: &'p Path) -> Option<Self> {
        std::fs::create_dir_all(point).expect("the mount point");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs"])
            .arg(point)
            .output()
            .is_ok_and(|output| output.status.success());
        if !mounted {
            println!("skipped: mounting a tmpfs is not allowed here");
        }
        mounted.then_some(Self(point))
    }

    fn remount(&self, option: &str) {
        let status = Command::new("mount").args(["-o", &format!("remount,{option}")]).arg(self.0).status();
        assert!(status.is_ok_and(|s| s.success()), "remount {option}");
    }
}

impl Drop for Tmpfs<'_> {
    fn drop(&mut self) {
        // Lazily: a failed test may still have a file open.
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

/// Fills the file system to its last byte.
fn fill(directory: &Path) -> std::path::PathBuf {
    use std::io::Write;
    let path = directory.join("ballast");
    let mut file = std::fs::File::create(&path).expect("the ballast");
    for size in [65_536, 4_096, 64, 1] {
        while file.write_all(&vec![0; size]).and_then(|()| file.flush()).is_ok() {}
    }
    path
}

#[test]
fn a_full_disk_changes_nothing_and_the_retry_succeeds() {
    let cli = Cli::without_ledger(env!("CARGO_BIN_EXE_ic"));
    let point = cli.home().join("small");
    let Some(disk) = Tmpfs::mount(&point) else { return };
    let db = point.join("ic.db");
    let cli = cli.with_env("IC_DB", &db);
    cli.ok(["init"]);
    let filled = Filled::around(cli);
    let before = dump(&db);
    let ballast = fill(disk.0);
    for verb in filled.writes() {
        let outcome = filled.cli.run(&verb);
        assert_eq!(outcome.code, Some(2), "{verb:?}: {outcome:?}");
        let code = outcome.error();
        assert!(["disk_full", "io_error"].contains(&code.as_str()), "{verb:?}: {outcome:?}");
    }
    std::fs::remove_file(&ballast).expect("free the space");
    assert_eq!(dump(&db), before, "nothing half done");
    assert_eq!(filled.cli.ok(["run", "phase", &filled.run]), "b");
    filled.cli.ok(["run", "advance", &filled.run]);
    filled.cli.ok(["events", "verify"]);
}

#[test]
fn a_ledger_on_a_read_only_disk_is_not_written() {
    let cli = Cli::without_ledger(env!("CARGO_BIN_EXE_ic"));
    let point = cli.home().join("small");
    let Some(disk) = Tmpfs::mount(&point) else { return };
    let db = point.join("ic.db");
    let cli = cli.with_env("IC_DB", &db);
    cli.ok(["init"]);
    let filled = Filled::around(cli);
    let before = std::fs::read(&db).expect("the ledger");
    disk.remount("ro");
    for verb in filled.writes() {
        let outcome = filled.cli.run(&verb);
        assert_eq!(outcome.code, Some(2), "{verb:?}: {outcome:?}");
        assert_eq!(outcome.error(), "permission_denied", "{verb:?}: {outcome:?}");
    }
    for verb in filled.reads() {
        assert_graceful(&verb, &filled.cli.run(&verb));
    }
    let refused = Cli::without_ledger(env!("CARGO_BIN_EXE_ic")).with_env("IC_DB", point.join("new.db"));
    assert_eq!(refused.refused(["init"]), (Some(2), "permission_denied".to_owned()));
    disk.remount("rw");
    assert_eq!(std::fs::read(&db).expect("the ledger"), before);
}
