//! Full disks. They need a small file system of their own, so they run where mounting is allowed.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use ic_testkit::{Cli, CliOutcome};
use serde_json::Value;

use crate::project::{create, list, restored_elsewhere, told, tree};
use crate::snapshot::Snapshot;

/// A small file system in memory, as long as it lives.
pub(crate) struct Tmpfs(PathBuf);

impl Tmpfs {
    /// `None` where mounting is not allowed.
    pub(crate) fn mount(point: &Path, megabytes: u32) -> Option<Self> {
        fs::create_dir_all(point).expect("the mount point");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={megabytes}m,mode=755"), "tmpfs"])
            .arg(point)
            .output()
            .is_ok_and(|output| output.status.success());
        if !mounted {
            println!("skipped: mounting a tmpfs is not allowed here");
        }
        mounted.then(|| Self(point.to_owned()))
    }

    pub(crate) fn remount(&self, option: &str) {
        let status = Command::new("mount").args(["-o", &format!("remount,{option}")]).arg(&self.0).status();
        assert!(status.is_ok_and(|s| s.success()), "remount {option}");
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // Lazily: a failed test may still have a file open.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Fills the file system until only the given number of bytes is left.
pub(crate) fn fill(directory: &Path, left: usize) -> PathBuf {
    let path = directory.join("ballast");
    let mut file = fs::File::create(&path).expect("the ballast");
    for size in [65_536, 4_096] {
        while file.write_all(&vec![0; size]).and_then(|()| file.flush()).is_ok() {}
    }
    let length = file.metadata().expect("its length").len();
    file.set_len(length.saturating_sub(u64::try_from(left).expect("a length"))).expect("make room");
    path
}

/// Content that no compression makes smaller.
pub(crate) fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    })
    .flatten()
    .take(length)
    .collect()
}

/// A project whose ledger and store lie on a disk of the given number of megabytes; `None` where none can be mounted.
pub(crate) fn on_a_small_disk(megabytes: u32) -> Option<(Cli, Tmpfs, PathBuf)> {
    let cli = Cli::without_ledger(env!("CARGO_BIN_EXE_ic")).with_checkpoints();
    let point = cli.home().join("small");
    let disk = Tmpfs::mount(&point, megabytes)?;
    let cli = cli.with_db(point.join("ic.db"));
    cli.ok(["init"]);
    Some((cli, disk, point))
}

pub(crate) fn assert_full(outcome: &CliOutcome, when: &str) {
    assert_eq!((outcome.code, outcome.error()), (Some(2), "disk_full".to_owned()), "{when}: {outcome:?}");
}

#[test]
fn a_full_disk_makes_no_checkpoint_and_the_next_works() {
    let Some((cli, disk, point)) = on_a_small_disk(8) else { return };
    fs::write(cli.root().join("small"), "small").expect("a file");
    let first = create(&cli);
    let small = tree(&cli);
    for i in 0..6 {
        fs::write(cli.root().join(format!("noise{i}")), noise(1_000_000, i + 1)).expect("a file");
    }
    let large = tree(&cli);
    // From not one byte to nearly enough: it fails while content is kept, or when the row is written.
    for left in [0, 20_000, 100_000, 500_000, 1_000_000, 2_000_000, 3_000_000] {
        let ballast = fill(&point, left);
        let outcome = cli.run(["checkpoint", "create", "--json"]);
        if outcome.code != Some(0) {
            assert_full(&outcome, &format!("{left} bytes left"));
        }
        fs::remove_file(&ballast).expect("free the space");
        let known = list(&cli).len();
        assert_eq!(known, 1 + usize::from(outcome.code == Some(0)), "{left} bytes left: {outcome:?}");
        if outcome.code == Some(0) {
            break;
        }
        restored_elsewhere(&cli, &first).assert_is(&small, "the checkpoint before");
    }
    disk.remount("size=64m");
    let second = create(&cli);
    restored_elsewhere(&cli, &second).assert_is(&large, "the checkpoint after");
    cli.ok(["events", "verify"]);
}

/// The bytes that are free on the disk.
pub(crate) fn free(point: &Path) -> u64 {
    let stat = rustix::fs::statvfs(point).expect("its state");
    stat.f_bavail * stat.f_frsize
}

/// The bytes that the object store takes, with its log.
fn store_size(point: &Path) -> u64 {
    let size = |name: &str| fs::metadata(point.join(name)).map_or(0, |meta| meta.len());
    size("objects.db") + size("objects.db-wal")
}

#[test]
fn a_capture_that_does_not_fit_gives_back_what_it_wrote_and_says_how_much_is_missing() {
    let Some((cli, disk, point)) = on_a_small_disk(24) else { return };
    let run = cli.ok(["run", "create", "--goal", "g", "--phases", "a,b,c"]);
    create(&cli);
    for i in 0..24 {
        fs::write(cli.root().join(format!("noise{i}")), noise(1_000_000, i + 1)).expect("a file");
    }
    let (before, store) = (free(&point), store_size(&point));
    let outcome = cli.run(["checkpoint", "create", "--json"]);
    assert_full(&outcome, "24 MB on 24 MB");
    // But for the note of the log that it began.
    let note = fs::metadata(point.join("objects.db.head")).map_or(0, |note| note.len().next_multiple_of(4096));
    assert_eq!((free(&point) + note, store_size(&point)), (before, store), "what was written is given back");
    let error: Value = serde_json::from_str(&outcome.stderr).expect("an error line");
    let detail = |name: &str| error["error"]["details"][name].as_u64().expect("a number");
    assert_eq!(detail("needed_bytes") - detail("free_bytes"), detail("missing_bytes"), "{error}");
    assert!(detail("needed_bytes") >= 24_000_000, "{error}");
    // Everything else works on.
    let moved = cli.json(["run", "advance", &run, "--json"]);
    assert!(moved["checkpoint_id"].is_null(), "{moved}");
    assert!(moved["warnings"][0]["message"].as_str().is_some_and(|m| m.contains("missing")), "{moved}");
    assert_eq!(cli.json(["checkpoint", "prune", "--grace", "0s", "--json"])["swept_objects"], 0);
    // So much more, and it fits.
    let more = detail("missing_bytes").div_ceil(1 << 20) + 1;
    disk.remount(&format!("size={}m", 24 + more));
    let id = create(&cli);
    restored_elsewhere(&cli, &id).assert_is(&tree(&cli), "the capture with room");
}

#[test]
fn a_killed_capture_is_given_back_by_the_next_capture_or_prune() {
    let cli = crate::project::project();
    let point = cli.root().join(".ic");
    let first = create(&cli);
    let wanted = tree(&cli);
    let empty = store_size(&point);
    for i in 0..10 {
        fs::write(cli.root().join(format!("noise{i}")), noise(1_000_000, i + 1)).expect("a file");
    }
    let mut killed = 0;
    for n in 1..400 {
        let mut command = cli.command(["checkpoint", "create"]);
        let status = command.env("IC_TEST_ABORT_BEFORE", n.to_string()).output().expect("start ic").status;
        if status.success() {
            break;
        }
        if store_size(&point) < empty + 3_000_000 {
            continue;
        }
        killed += 1;
        if killed % 2 == 0 {
            cli.ok(["checkpoint", "prune", "--grace", "0s"]);
        } else {
            // A capture of another tree, which has nothing of what was left.
            let other = tempfile::tempdir_in(cli.home()).expect("a directory");
            let mut command = cli.command(["checkpoint", "create"]);
            let outcome = CliOutcome::of(command.current_dir(other.path()).env("IC_DB", cli.db()));
            assert_eq!(outcome.code, Some(0), "{outcome:?}");
        }
        let left = store_size(&point);
        assert!(left < empty + 200_000, "killed before {n}: {left} bytes of {empty}");
        if killed == 6 {
            break;
        }
    }
    assert!(killed > 2, "only {killed} were killed with content in the store");
    for i in 0..10 {
        fs::remove_file(cli.root().join(format!("noise{i}"))).expect("a file");
    }
    restored_elsewhere(&cli, &first).assert_is(&wanted, "the checkpoint before");
    cli.ok(["checkpoint", "verify", "--read-data"]);
}

#[test]
fn prune_works_on_a_disk_that_is_full() {
    let Some((cli, _disk, point)) = on_a_small_disk(24) else { return };
    let mut last = String::new();
    for i in 0..10 {
        fs::write(cli.root().join("noise"), noise(900_000, i + 1)).expect("a file");
        last = cli.ok(["checkpoint", "create", "--auto"]);
    }
    let wanted = tree(&cli);
    for round in 0..3 {
        let ballast = fill(&point, 0);
        assert_eq!(free(&point), 0, "the disk is full");
        let arguments = ["checkpoint", "prune", "--older-than", "0s", "--keep-last", "1", "--grace", "0s", "--json"];
        let pruned = cli.json(arguments);
        let freed = pruned["freed_bytes"].as_u64().expect("a number");
        assert!(if round == 0 { freed > 7_000_000 } else { freed == 0 }, "round {round}: {pruned}");
        assert!(round > 0 || free(&point) > 6_000_000, "{} free after {pruned}", free(&point));
        fs::remove_file(ballast).expect("the ballast");
        restored_elsewhere(&cli, &last).assert_is(&wanted, "the one that is kept");
    }
    cli.ok(["checkpoint", "verify", "--read-data"]);
    cli.ok(["events", "verify"]);
}

#[test]
fn a_tree_larger_than_the_disk_is_refused_and_leaves_the_next_capture_possible() {
    let Some((cli, disk, _)) = on_a_small_disk(4) else { return };
    for i in 0..12 {
        fs::write(cli.root().join(format!("noise{i}")), noise(900_000, i + 1)).expect("a file");
    }
    let whole = tree(&cli);
    for _ in 0..3 {
        assert_full(&cli.run(["checkpoint", "create", "--json"]), "a tree larger than the disk");
    }
    disk.remount("size=64m");
    assert!(list(&cli).is_empty());
    let id = create(&cli);
    restored_elsewhere(&cli, &id).assert_is(&whole, "the capture with room");
}

#[test]
fn a_restore_without_room_for_its_safety_checkpoint_changes_nothing() {
    let Some((cli, _disk, point)) = on_a_small_disk(8) else { return };
    fs::write(cli.root().join("file"), "old").expect("a file");
    let id = create(&cli);
    fs::write(cli.root().join("file"), noise(2_000_000, 3)).expect("a file");
    let before = tree(&cli);
    let ballast = fill(&point, 100_000);
    assert_full(&cli.run(["checkpoint", "restore", &id, "--yes", "--json"]), "no room for the safety checkpoint");
    let now = tree(&cli);
    now.assert_is(&before, "the refused restore");
    now.assert_untouched_since(&before, "the refused restore");
    fs::remove_file(ballast).expect("free the space");
    let report = cli.json(["checkpoint", "restore", &id, "--yes", "--json"]);
    assert_eq!(report["status"], "restored", "{report}");
    cli.ok(["redo", "--yes"]);
    tree(&cli).assert_is(&before, "the undo");
}

#[test]
fn a_full_working_tree_leaves_files_as_they_were_and_names_them() {
    let cli = crate::project::project();
    let point = cli.root().join("mounted");
    let Some(_disk) = Tmpfs::mount(&point, 2) else { return };
    for i in 0..4 {
        fs::write(point.join(format!("grows{i}")), noise(300_000, i)).expect("a file");
    }
    let id = create(&cli);
    let wanted = tree(&cli);
    for i in 0..4 {
        fs::write(point.join(format!("grows{i}")), "small").expect("a file");
    }
    fs::write(cli.root().join("elsewhere"), "made since").expect("a file");
    // What is new in the full place stays there: another disk's content is not this tree's.
    let ballast = cli.root().join("mounted/.env");
    fs::write(&ballast, noise(1_500_000, 9)).expect("the ballast");
    let before = tree(&cli);
    let outcome = cli.run(["checkpoint", "restore", &id, "--yes", "--json"]);
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    let report: Value = outcome.json();
    assert_eq!(report["status"], "partial", "{report}");
    let failed = told(&report, "failed", "error");
    assert!(!failed.is_empty(), "{report}");
    let now = tree(&cli);
    now.assert_no_temporary("the full place");
    for (path, _) in &failed {
        assert!(now.get(path.as_bytes()) == before.get(path.as_bytes()), "{path} is as it was");
    }
    assert!(now.get(b"elsewhere").is_none(), "the rest is done: {report}");
    fs::remove_file(ballast).expect("free the space");
    crate::project::restore(&cli, &id);
    Snapshot::of(cli.root()).assert_is(&wanted, "the restore with room");
}
