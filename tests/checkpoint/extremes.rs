//! Files with holes, and directories that lie in thousands of others.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::process::Command;

use ic_testkit::{Cli, CliOutcome};

use crate::project::{create, project, restore};

/// The bytes that a file takes on the disk.
fn room(cli: &Cli, name: &str) -> u64 {
    fs::metadata(cli.root().join(name)).expect("a file").blocks() * 512
}

#[test]
fn a_file_with_holes_comes_back_with_holes() {
    let cli = project();
    fs::write(cli.root().join(".ic.yaml"), "rollback: {checkpointing: {max-file-size: 1GB}}\n").expect("settings");
    for (name, size, at) in
        [("empty", 9 << 20, None), ("middle", 64 << 20, Some(33 << 20)), ("odd", (3 << 20) + 5, Some(7))]
    {
        let file = fs::File::create(cli.root().join(name)).expect("a file");
        file.set_len(size).expect("a hole");
        if let Some(at) = at {
            file.write_all_at(b"content", at).expect("content");
        }
    }
    let names = ["empty", "middle", "odd"];
    if room(&cli, "middle") > 1 << 20 {
        println!("skipped: this file system has no holes");
        return;
    }
    let read = |name: &str| fs::read(cli.root().join(name)).expect("its content");
    let before = names.map(read);
    let id = create(&cli);
    for name in names {
        fs::write(cli.root().join(name), "dense now").expect("other content");
    }
    restore(&cli, &id);
    assert!(names.map(read) == before, "the content is what it was");
    for name in names {
        assert!(room(&cli, name) <= 128 << 10, "{name} takes {} bytes on the disk", room(&cli, name));
    }
}

/// Makes a chain of nested directories, with a file in the last.
fn chain(cli: &Cli, length: usize) {
    use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut directory = openat(CWD, cli.root(), flags, Mode::empty()).expect("the root");
    for _ in 0..length {
        mkdirat(&directory, "d", Mode::from_raw_mode(0o755)).expect("a directory");
        directory = openat(&directory, "d", flags, Mode::empty()).expect("a directory");
    }
    let flags = OFlags::WRONLY | OFlags::CREATE;
    let file = openat(&directory, "file", flags, Mode::from_raw_mode(0o644)).expect("a file");
    fs::File::from(file).write_all_at(b"deep", 0).expect("content");
}

fn remove_chain(cli: &Cli) {
    // The path of the last directory is longer than a system call takes.
    let status = Command::new("rm").arg("-rf").arg(cli.root().join("d")).status();
    assert!(status.expect("rm").success());
}

/// A call that may hold few files open.
fn with_few_handles(cli: &Cli, arguments: &[&str]) -> CliOutcome {
    let call = cli.command(arguments);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 160 && exec \"$@\"", "sh"]).arg(call.get_program()).args(arguments);
    limited.env_clear().current_dir(cli.root());
    limited.envs(call.get_envs().filter_map(|(name, value)| Some((name, value?))));
    CliOutcome::of(&mut limited)
}

#[test]
fn a_chain_of_directories_needs_few_handles() {
    let cli = project();
    chain(&cli, 1_200);
    let created = with_few_handles(&cli, &["checkpoint", "create", "--json"]);
    assert_eq!(created.code, Some(0), "{created:?}");
    let created = created.json();
    assert_eq!(created["counts"]["dirs"], 1_201, "{created}");
    assert_eq!(created["complete"], true, "{created}");
    let id = created["id"].as_str().expect("an id");
    remove_chain(&cli);
    let restored = with_few_handles(&cli, &["checkpoint", "restore", id, "--yes", "--json"]);
    assert_eq!(restored.code, Some(0), "{restored:?}");
    let again = cli.json(["checkpoint", "create", "--json"]);
    assert_eq!(again["tree_sha256"], created["tree_sha256"], "{again}");
}

#[test]
fn what_lies_deeper_than_paths_can_be_is_named_and_the_rest_is_captured() {
    let cli = project();
    chain(&cli, 4_200);
    fs::write(cli.root().join("beside"), "shallow").expect("a file");
    let created = with_few_handles(&cli, &["checkpoint", "create", "--json"]);
    assert_eq!(created.code, Some(0), "{}", created.stderr);
    let created = created.json();
    assert_eq!(created["counts"]["dirs"], 4_097);
    assert_eq!(created["complete"], false);
    assert_eq!(created["skipped"][0]["reason"], "deep");
    let id = created["id"].as_str().expect("an id");
    fs::write(cli.root().join("beside"), "changed").expect("a file");
    restore(&cli, id);
    assert_eq!(fs::read(cli.root().join("beside")).expect("the file"), b"shallow");
    remove_chain(&cli);
}
