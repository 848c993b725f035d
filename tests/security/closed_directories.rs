//! What its owner has closed to himself (`chmod 000`) is captured, restored and closed again, as users who may do no more than modes say
//! and as root.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use ic_testkit::{Cli, CliOutcome, write_in};

use crate::project::bare;
use crate::umask::{hand_over, may_be_another, under, under_shell};

fn planted() -> Cli {
    let cli = bare();
    for path in ["f", "d/a", "d/e/b"] {
        write_in(cli.root(), path, path);
    }
    cli
}

/// Their permission bits.
fn modes(root: &Path, paths: &[&str]) -> Vec<u32> {
    let mode = |path: &&str| fs::symlink_metadata(root.join(path)).expect(path).permissions().mode() & 0o7777;
    paths.iter().map(mode).collect()
}

const ALL: [&str; 5] = ["f", "d", "d/a", "d/e", "d/e/b"];

/// Each way of closing, as a script, and the paths that it closes.
const WAYS: [(&str, &[&str]); 5] = [
    ("echo BAD > f; chmod 000 f", &["f"]),
    ("echo BAD > d/a; chmod 000 d", &["d"]),
    ("echo BAD > d/e/b; echo n > d/e/n; chmod 000 d/e/b d/e d", &["d"]),
    ("rm d/e/b; chmod 000 d/e", &["d/e"]),
    ("chmod 000 f d/e", &["f", "d/e"]),
];

fn works(as_other: bool) {
    for (script, closed) in WAYS {
        let cli = planted();
        if as_other {
            hand_over(&cli);
            // Another group than the user's own would be one more thing to restore.
            let given = Command::new("chown").args(["-hR", "12345:12345"]).arg(cli.root()).status();
            assert!(given.expect("run chown").success());
        }
        let call = |arguments: &[&str]| -> CliOutcome { under(&cli, "0022", as_other, arguments) };
        let ok = |arguments: &[&str]| {
            let outcome = call(arguments);
            assert_eq!(outcome.code, Some(0), "{script}, {arguments:?}: {outcome:?}");
            outcome.stdout.trim().to_owned()
        };
        let before = modes(cli.root(), &ALL);
        ok(&["init"]);
        ok(&["run", "create", "--goal", "g", "--phases", "a,b"]);
        let work = ok(&["dispatch", "create", "@", "--name", "w", "--format", "text"]);
        let work = work.split_whitespace().next().expect("an id").to_owned();
        ok(&["dispatch", "start", &work]);
        assert_eq!(under_shell(&cli, as_other, script).code, Some(0), "{script}");
        // Nothing that is closed counts as deleted, and a capture leaves it closed.
        ok(&["checkpoint", "create"]);
        let left = modes(cli.root(), closed);
        assert_eq!(left, vec![0; closed.len()], "{script}: after a capture");
        ok(&["dispatch", "complete", &work]);
        let planned = call(&["undo", "--dry-run"]);
        assert_eq!(planned.code, Some(0), "{script}: {planned:?}");
        assert_eq!(modes(cli.root(), closed), left, "{script}: after a look");
        let undone = call(&["undo", "--yes"]);
        assert_eq!(undone.code, Some(0), "{script}: {undone:?}");
        assert_eq!(modes(cli.root(), &ALL), before, "{script}: {undone:?}");
        for path in ["f", "d/a", "d/e/b"] {
            let content = fs::read_to_string(cli.root().join(path)).expect("its content");
            assert_eq!(content, path, "{script}: {undone:?}");
        }
        assert!(!cli.root().join("d/e/n").exists(), "{script}");
        ok(&["redo", "--yes"]);
        assert_eq!(modes(cli.root(), closed), left, "{script}: after the redo");
        under_shell(&cli, as_other, "chmod -R u+rwX .");
    }
}

#[test]
fn what_its_owner_closed_is_undone_with_its_mode() {
    works(false);
    if may_be_another() {
        works(true);
    }
}
