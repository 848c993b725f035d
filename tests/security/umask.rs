//! What is made is its user's, whole, whatever the umask takes away: for root, and for users who may do no more than modes say.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ic_testkit::{Cli, CliOutcome, write_in};

use crate::project::{bare, below, give_away, is_root};

const UMASKS: [&str; 7] = ["0000", "0022", "0077", "0177", "0277", "0377", "0777"];

/// Runs a call under an umask, as the user 12345 if that is asked for.
pub(crate) fn under(cli: &Cli, umask: &str, as_other: bool, arguments: &[&str]) -> CliOutcome {
    let call = cli.command(arguments);
    let program = if as_other { cli.home().join("ic") } else { PathBuf::from(call.get_program()) };
    let mut shell = if as_other {
        let mut shell = Command::new("setpriv");
        shell.args(["--reuid", "12345", "--regid", "12345", "--clear-groups", "/bin/sh"]);
        shell
    } else {
        Command::new("/bin/sh")
    };
    shell.args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\"")]).arg(program).args(call.get_args());
    shell.current_dir(cli.root()).env_clear();
    shell.envs(call.get_envs().filter_map(|(name, value)| Some((name, value?))));
    CliOutcome::of(&mut shell)
}

/// Whether tests may be another user; if not, that is printed.
pub(crate) fn may_be_another() -> bool {
    let may = is_root() && Command::new("setpriv").arg("--version").output().is_ok();
    if !may {
        println!("skipped: this needs root and setpriv, to be another user");
    }
    may
}

/// Gives the project to another user, with a program that they can start.
pub(crate) fn hand_over(cli: &Cli) {
    std::fs::copy(env!("CARGO_BIN_EXE_ic"), cli.home().join("ic")).expect("a copy of the program");
    let open = |path: &Path| std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("its mode");
    open(cli.home());
    open(&cli.home().join("ic"));
    below(cli.root()).iter().for_each(give_away);
}

/// Every directory of the store is 0700 and every file 0600.
fn assert_modes(store: &Path, when: &str) {
    for path in below(store) {
        let meta = std::fs::symlink_metadata(&path).expect("its state");
        let wanted = if meta.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(meta.permissions().mode() & 0o7777, wanted, "{when}: {}", path.display());
    }
}

/// Everything that makes something, under this umask.
fn work(cli: &Cli, umask: &str, as_other: bool) {
    let ok = |arguments: &[&str]| {
        let outcome = under(cli, umask, as_other, arguments);
        assert_eq!(outcome.code, Some(0), "umask {umask}, {arguments:?}: {outcome:?}");
        outcome.stdout.trim().to_owned()
    };
    ok(&["init"]);
    let run = ok(&["run", "create", "--goal", "g", "--phases", "a,b,c"]);
    ok(&["run", "artifact", "add", &run, "--path", "plan.md"]);
    ok(&["run", "advance", &run]);
    ok(&["checkpoint", "create", "--name", "n"]);
    let change = "mkdir -p new/deep; echo x > new/deep/file; rm -r below";
    let changed = under_shell(cli, as_other, change);
    assert_eq!(changed.code, Some(0), "{changed:?}");
    // It makes directories and files in the tree, too.
    ok(&["checkpoint", "restore", "--name", "n", "--yes"]);
    assert_eq!(std::fs::read_to_string(cli.root().join("below/deep/file")).expect("a file"), "deep");
    let workflow = under(cli, umask, as_other, &["workflow", "run", "w.yaml", "--on-failure", "rollback"]);
    assert_eq!(workflow.code, Some(1), "umask {umask}: {workflow:?}");
    let rolled_back =
        under(cli, umask, as_other, &["run", "rollback", &run, "--to-phase", "a", "--layer=all", "--yes"]);
    // Another user cannot restore the owners, which is named.
    let owners = !rolled_back.json()["files"]["not_kept"].as_array().is_none_or(Vec::is_empty);
    assert_eq!(rolled_back.code, Some(if owners { 4 } else { 0 }), "umask {umask}: {rolled_back:?}");
    assert!(as_other || !owners, "umask {umask}: {rolled_back:?}");
    ok(&["checkpoint", "prune", "--older-than", "0s"]);
    ok(&["checkpoint", "verify", "--read-data"]);
}

pub(crate) fn under_shell(cli: &Cli, as_other: bool, script: &str) -> CliOutcome {
    let mut shell = Command::new(if as_other { "setpriv" } else { "/bin/sh" });
    if as_other {
        shell.args(["--reuid", "12345", "--regid", "12345", "--clear-groups", "/bin/sh"]);
    }
    CliOutcome::of(shell.args(["-c", script]).current_dir(cli.root()))
}

fn planted() -> Cli {
    let cli = bare();
    write_in(cli.root(), "plan.md", "plan");
    write_in(cli.root(), "below/deep/file", "deep");
    write_in(
        cli.root(),
        "w.yaml",
        "name: w\nsteps:\n  - id: a\n    phase: p\n    run: 'echo x=1 >> $IC_OUTPUTS; echo said; exit 1'\n    compensate: {shell: 'echo undone'}\n",
    );
    cli
}

#[test]
fn modes_do_not_depend_on_the_umask() {
    for umask in UMASKS {
        let cli = planted();
        work(&cli, umask, false);
        assert_modes(&cli.root().join(".ic"), &format!("umask {umask}"));
    }
}

#[test]
fn modes_do_not_depend_on_the_umask_of_another_user() {
    if !may_be_another() {
        return;
    }
    for umask in UMASKS {
        let cli = planted();
        hand_over(&cli);
        work(&cli, umask, true);
        assert_modes(&cli.root().join(".ic"), &format!("umask {umask}, another user"));
    }
}

#[test]
fn a_store_that_an_umask_has_broken_is_named_and_mended() {
    if !may_be_another() {
        return;
    }
    let store = |cli: &Cli| cli.root().join(".ic");
    let set = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("a mode");
    };
    // The directory: every call names what to do, and init does it.
    for mode in [0o600, 0o500, 0o400, 0] {
        let cli = planted();
        hand_over(&cli);
        assert_eq!(under(&cli, "0022", true, &["init"]).code, Some(0));
        set(&store(&cli), mode);
        if mode & 0o100 == 0 {
            let refused = under(&cli, "0022", true, &["run", "list", "--format", "json"]);
            assert_eq!((refused.code, refused.error().as_str()), (Some(2), "permission_denied"), "{mode:o}");
            assert!(refused.stderr.contains("chmod 700 "), "{mode:o}: {refused:?}");
        }
        let again = under(&cli, "0022", true, &["init"]);
        assert_eq!(again.code, Some(0), "{mode:o}: {again:?}");
        assert_eq!(under(&cli, "0022", true, &["run", "create", "--goal", "g"]).code, Some(0), "{mode:o}");
        assert_modes(&store(&cli), "after init");
    }
    // What is in it: the next call mends what is not the ledger itself.
    let cli = planted();
    hand_over(&cli);
    assert_eq!(under(&cli, "0022", true, &["init"]).code, Some(0));
    assert_eq!(under(&cli, "0022", true, &["checkpoint", "create"]).code, Some(0));
    for mode in [0o400, 0o200, 0] {
        for path in below(&store(&cli)).into_iter().filter(|path| path.is_file() && !path.ends_with("ic.db")) {
            set(&path, mode);
        }
        set(&store(&cli).join("objects.cache"), mode | 0o100);
        let captured = under(&cli, "0022", true, &["checkpoint", "create"]);
        assert_eq!(captured.code, Some(0), "{mode:o}: {captured:?}");
        let verified = under(&cli, "0022", true, &["checkpoint", "verify", "--read-data"]);
        assert_eq!(verified.code, Some(0), "{mode:o}: {verified:?}");
    }
}
