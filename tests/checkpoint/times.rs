//! Changes that leave few traces: the same size, an old time set again, the same tick of the clock.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use ic_testkit::Cli;

use crate::forest::set_mode;
use crate::project::{create, project, restored_elsewhere, tree};

/// Longer than a change must lie back to be trusted.
const SETTLED: Duration = Duration::from_millis(2_300);

/// Rewrites a file in place and gives it its old times again.
fn rewrite_unseen(path: &Path, content: &str) {
    let before = fs::metadata(path).expect("its times");
    assert_eq!(before.len(), content.len() as u64, "the size stays");
    fs::write(path, content).expect("rewrite it");
    let times = fs::FileTimes::new()
        .set_accessed(before.accessed().expect("a time"))
        .set_modified(before.modified().expect("a time"));
    File::options().write(true).open(path).and_then(|file| file.set_times(times)).expect("put the times back");
    assert_eq!(fs::metadata(path).expect("its times").modified().ok(), before.modified().ok());
}

fn assert_captured(cli: &Cli, when: &str) {
    let now = tree(cli);
    let id = create(cli);
    restored_elsewhere(cli, &id).assert_is(&now, when);
}

#[test]
fn a_rewrite_of_the_same_size_with_its_old_time_put_back_is_seen() {
    let cli = project();
    let path = cli.root().join("deep/er/file");
    fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    fs::write(&path, "aaaa").expect("a file");
    assert_captured(&cli, "at first");
    rewrite_unseen(&path, "bbbb");
    assert_captured(&cli, "at once");
    std::thread::sleep(SETTLED);
    // Now its state is trusted.
    assert_captured(&cli, "settled");
    assert_captured(&cli, "settled and cached");
    rewrite_unseen(&path, "cccc");
    assert_captured(&cli, "after it was trusted");
    std::thread::sleep(SETTLED);
    assert_captured(&cli, "settled again");
}

#[test]
fn rewrites_within_a_tick_of_the_clock_are_seen() {
    let cli = project();
    let path = cli.root().join("file");
    for turn in 0..40 {
        fs::write(&path, format!("{turn:04}")).expect("a file");
        let id = create(&cli);
        assert_eq!(cli.ok(["checkpoint", "cat", &id, "file"]), format!("{turn:04}"));
        rewrite_unseen(&path, &format!("{:04}", turn + 5000));
        let id = create(&cli);
        assert_eq!(cli.ok(["checkpoint", "cat", &id, "file"]), format!("{:04}", turn + 5000));
    }
}

#[test]
fn changes_of_everything_but_the_size_are_seen_after_they_were_trusted() {
    let cli = project();
    let at = |name: &str| cli.root().join(name);
    for name in ["a", "b", "mode", "file"] {
        fs::write(at(name), format!("{name:>8}")).expect("a file");
    }
    symlink("one", at("link")).expect("a link");
    fs::create_dir(at("directory")).expect("a directory");
    std::thread::sleep(SETTLED);
    assert_captured(&cli, "at first");
    assert_captured(&cli, "cached");
    // The names of two files of one size change places.
    fs::rename(at("a"), at("c")).expect("rename");
    fs::rename(at("b"), at("a")).expect("rename");
    fs::rename(at("c"), at("b")).expect("rename");
    set_mode(&at("mode"), 0o755);
    fs::remove_file(at("link")).expect("make room");
    symlink("two", at("link")).expect("a link");
    set_mode(&at("directory"), 0o700);
    fs::remove_file(at("file")).expect("make room");
    fs::create_dir(at("file")).expect("a directory");
    assert_captured(&cli, "after they were trusted");
    fs::remove_dir(at("file")).expect("make room");
    assert_captured(&cli, "without it");
}

#[test]
fn a_hole_is_content_like_any_other() {
    let cli = project();
    let path = cli.root().join("file");
    fs::write(&path, vec![7; 3 << 20]).expect("a file");
    assert_captured(&cli, "at first");
    File::options()
        .write(true)
        .open(&path)
        .and_then(|file| {
            file.set_len(100)?;
            file.set_len(3 << 20)
        })
        .expect("a hole");
    assert_captured(&cli, "with a hole");
}
