//! Ledgers and stores that meet: two in one directory, copies, backups, a store of another project.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ic_testkit::{Cli, long, one_file, put_one_file, tell};
use tempfile::TempDir;

use crate::project::{create, list, project, restore, tree};
use crate::snapshot::Snapshot;

/// A directory that ledgers share.
fn shared_place() -> TempDir {
    let place = tempfile::tempdir().expect("a directory");
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o700)).expect("its mode");
    place
}

/// A project whose ledger is this file.
pub(crate) fn with_ledger(path: &Path) -> Cli {
    let cli = Cli::without_ledger(env!("CARGO_BIN_EXE_ic")).with_checkpoints().with_db(path);
    cli.ok(["init"]);
    cli
}

/// One checkpoint of content that only this project has, and the tree that it holds.
pub(crate) fn fill(cli: &Cli, what: &str) -> (String, Snapshot) {
    fs::write(cli.root().join("own"), format!("{what} has this\n").repeat(300)).expect("a file");
    fs::create_dir_all(cli.root().join("below")).expect("a directory");
    fs::write(cli.root().join("below/deep"), format!("{what} below")).expect("a file");
    let id = create(cli);
    (id, tree(cli))
}

/// The checkpoint is all there, and comes back exactly.
pub(crate) fn assert_whole(cli: &Cli, (id, wanted): &(String, Snapshot), when: &str) {
    let verified = cli.run(["checkpoint", "verify", "--read-data", "--json"]);
    assert_eq!(verified.code, Some(0), "{when}: {verified:?}");
    fs::write(cli.root().join("own"), "changed").expect("a file");
    let _ = fs::remove_dir_all(cli.root().join("below"));
    restore(cli, id);
    tree(cli).assert_is(wanted, when);
}

pub(crate) fn prune_all(cli: &Cli) -> ic_testkit::CliOutcome {
    cli.run(["checkpoint", "prune", "--older-than", "0s", "--keep-last", "0", "--grace", "0s", "--json"])
}

pub(crate) fn store_of(ledger: &Path) -> PathBuf {
    let name = ledger.file_name().expect("a name").to_str().expect("text");
    ledger.with_file_name(if name == "ic.db" { "objects.db".to_owned() } else { format!("{name}.objects.db") })
}

/// Every file of a directory with its bytes.
pub(crate) fn bytes_of(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(directory).expect("the directory").map(|entry| entry.expect("an entry").path());
    entries
        // The shared-memory file is left out: opening a database makes it anew.
        .filter(|path| path.is_file() && !path.to_string_lossy().ends_with("-shm"))
        .map(|path| (path.clone(), fs::read(&path).expect("a file")))
        .collect()
}

#[test]
fn no_two_ledgers_of_one_directory_share_content() {
    for (one, two) in
        [("team.1", "team.2"), ("ic.db", "ic.bak"), ("ic", "ic.db"), ("team", "team.db"), ("a.objects", "a")]
    {
        let place = shared_place();
        let (one, two) = (place.path().join(one), place.path().join(two));
        let (a, b) = (with_ledger(&one), with_ledger(&two));
        let (of_a, of_b) = (fill(&a, "a"), fill(&b, "b"));
        assert!(store_of(&one).exists() && store_of(&two).exists(), "{one:?} and {two:?}");
        b.ok(["checkpoint", "delete", &of_b.0, "--force", "--grace", "0s"]);
        assert_whole(&a, &of_a, &format!("{one:?} after {two:?} was swept"));
    }
}

#[test]
fn one_ledger_has_one_store_whatever_it_is_called_by() {
    let place = shared_place();
    let ledger = place.path().join("team.1");
    let cli = with_ledger(&ledger);
    let whole = fill(&cli, "linked");
    let link = cli.home().join("link.db");
    symlink(&ledger, &link).expect("a link");
    let listed = |arguments: &[&str]| {
        let mut command = cli.command(arguments);
        command.env_remove("IC_DB");
        let outcome = ic_testkit::CliOutcome::of(&mut command);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        outcome.stdout
    };
    let link_text = link.to_string_lossy().into_owned();
    let relative = format!("../../{}/team.1", place.path().file_name().expect("a name").to_string_lossy());
    for db in [link_text.as_str(), relative.as_str()] {
        listed(&["--db", db, "checkpoint", "verify", "--read-data"]);
        listed(&["--db", db, "checkpoint", "create"]);
    }
    assert!(!cli.home().join("link.db.objects.db").exists());
    assert_whole(&cli, &whole, "through links");
    // A renamed ledger finds the store that knows it.
    let renamed = place.path().join("renamed.db");
    one_file(&ledger);
    fs::rename(&ledger, &renamed).expect("another name");
    let cli = cli.with_db(&renamed);
    assert_whole(&cli, &whole, "renamed");
    assert!(!store_of(&ledger).exists() && store_of(&renamed).exists());
}

#[test]
fn a_crash_while_a_renamed_ledger_takes_its_store_along_loses_nothing() {
    // Renamed, the store is moved; copied, it is copied.
    for is_copied in [false, true] {
        let place = shared_place();
        let (before, after) = (place.path().join("team.1"), place.path().join("renamed.db"));
        let cli = with_ledger(&before);
        let filled = fill(&cli, "team");
        one_file(&before);
        if is_copied {
            fs::copy(&before, &after).expect("a copy");
        } else {
            fs::rename(&before, &after).expect("another name");
        }
        let cli = cli.with_db(&after);
        let saved = place.path().with_extension("saved");
        copy(place.path(), &saved);
        let mut crashes = 0;
        let stride = if long() { 1 } else { 9 };
        for n in (1..2_000).step_by(stride) {
            put_back(&saved, place.path());
            let mut command = cli.command(["checkpoint", "list"]);
            let status = command.env("IC_TEST_ABORT_BEFORE", n.to_string()).output().expect("start ic").status;
            if status.success() {
                break;
            }
            assert_eq!(status.signal(), Some(6), "copied: {is_copied}, before {n}: {status}");
            crashes += 1;
            assert_whole(&cli, &filled, &format!("copied: {is_copied}, a crash before {n}"));
            assert_eq!(store_of(&before).exists(), is_copied, "a crash before {n}");
            let left = bytes_of(place.path());
            assert!(!left.keys().any(|path| path.to_string_lossy().contains("partial")), "{:?}", left.keys());
        }
        assert!(crashes > 2, "copied: {is_copied}: only {crashes} crashes");
        tell(&format!("copied: {is_copied}: {crashes} crashes"));
        fs::remove_dir_all(saved).expect("the saved state");
    }
}

#[test]
fn a_store_of_another_ledger_is_refused_and_nothing_is_written() {
    let (one, two) = (project(), project());
    let (of_one, _) = (fill(&one, "one"), fill(&two, "two"));
    let run = one.ok(["run", "create", "--goal", "g", "--phases", "a,b,c"]);
    let (store, aside) = (one.root().join(".ic"), one.home().join("aside.db"));
    let objects = store.join("objects.db");
    one_file(&objects);
    fs::copy(&objects, &aside).expect("keep its own");
    let other = two.root().join(".ic/objects.db");
    one_file(&other);
    fs::copy(other, &objects).expect("another's store");
    let before = bytes_of(&store);
    for arguments in [
        &["checkpoint", "create"][..],
        &["checkpoint", "list"],
        &["checkpoint", "restore", &of_one.0, "--yes"],
        &["checkpoint", "verify"],
        &["checkpoint", "verify", "--repair"],
        &["checkpoint", "prune", "--grace", "0s"],
    ] {
        let outcome = one.run(arguments);
        assert_eq!((outcome.code, outcome.error()), (Some(2), "foreign_store".to_owned()), "{arguments:?}");
        assert_eq!(bytes_of(&store), before, "{arguments:?} wrote something");
    }
    let moved = one.json(["run", "advance", &run, "--json"]);
    let warning = moved["warnings"][0]["message"].as_str().expect("a warning");
    assert!(moved["checkpoint_id"].is_null() && warning.contains("foreign_store"), "{moved}");
    assert!(warning.contains("objects.db back"), "the way out is named: {warning}");
    assert_eq!(fs::read(&objects).expect("the store"), before[&objects]);
    // The way out.
    fs::copy(&aside, &objects).expect("its own, back");
    assert_whole(&one, &of_one, "its own is back");
}

#[test]
fn copies_moves_and_backups_keep_their_store() {
    let cli = project();
    let first = fill(&cli, "first");
    let store = cli.root().join(".ic");
    // A backup of the ledger, while its store goes on.
    let backup = cli.home().join("backup.db");
    cli.ok(["backup", backup.to_str().expect("a plain path")]);
    fs::write(cli.root().join("later"), "later").expect("a file");
    create(&cli);
    put_one_file(&store.join("ic.db"), &fs::read(&backup).expect("the backup"));
    assert_eq!(list(&cli).len(), 1);
    assert_whole(&cli, &first, "a ledger from a backup");
    // An empty ledger knows nothing of the store that it finds.
    let other = project();
    one_file(&store.join("objects.db"));
    fs::copy(store.join("objects.db"), other.root().join(".ic/objects.db")).expect("a store");
    assert_eq!(other.refused(["checkpoint", "create"]), (Some(2), "foreign_store".to_owned()));
    // The project as a whole, copied and moved.
    let copy_of = cli.home().join("copy");
    copy(cli.root(), &copy_of);
    let moved = cli.home().join("moved");
    fs::rename(&copy_of, &moved).expect("another place");
    let mut command = cli.command(["checkpoint", "verify", "--read-data"]);
    let outcome = ic_testkit::CliOutcome::of(command.current_dir(&moved));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(copied.is_ok_and(|status| status.success()), "copy {}", from.display());
}

/// What was saved, in the directory that is there: processes of the test stand in it.
fn put_back(saved: &Path, place: &Path) {
    for entry in fs::read_dir(place).expect("the directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.expect("make room");
    }
    copy(&saved.join("."), place);
}
