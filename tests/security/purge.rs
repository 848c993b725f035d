//! After a purge the content is in no file of the store, in no ref of ours, and no verb brings it back.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use ic_checkpoint::objects::Objects;
use ic_testkit::{Cli, git_in, write_in};

use crate::project::{bare, below};

mod links;
mod repetition;
mod rolled;
mod shared;
mod snapshots;
mod way_back;

/// It has no letters in a row that compression would take for others.
const SECRET: &str = "hunter2-9f3Kq7Zx-very-secret-w8Lm2Vt5-0Rb6Yc4N";

/// A repository of two commits, of which the second is in a checkpoint of its own.
fn repository() -> Cli {
    let cli = bare();
    git_in(cli.root(), &["init", "-q"]);
    write_in(cli.root(), "a", "one\n");
    git_in(cli.root(), &["add", "."]);
    git_in(cli.root(), &["commit", "-qm", "one"]);
    cli.ok(["init"]);
    cli.ok(["checkpoint", "create"]);
    cli
}

fn forget(cli: &Cli) {
    git_in(cli.root(), &["reflog", "expire", "--expire=now", "--all"]);
    git_in(cli.root(), &["gc", "-q", "--prune=now"]);
}

/// Where the secret still is below a directory: in a file as it lies there, in a pack of the store, or in a pack of git's
/// that an object of the store is.
fn holders(cli: &Cli) -> Vec<String> {
    let store = cli.root().join(".git/ic");
    let holds = |bytes: &[u8]| bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
    let mut found = Vec::new();
    for path in below(&store).into_iter().filter(|path| path.is_file()) {
        if holds(&std::fs::read(&path).expect("a file")) {
            found.push(path.display().to_string());
        }
    }
    let file = cli.beside("objects.db");
    let db = rusqlite::Connection::open(&file).expect("the store");
    let mut packs = db.prepare("SELECT id, size, data FROM packs").expect("its packs");
    let mut rows = packs.query([]).expect("its packs");
    while let Some(row) = rows.next().expect("a pack") {
        let (id, size): (i64, i64) = (row.get(0).expect("its id"), row.get(1).expect("its size"));
        let size = usize::try_from(size).expect("a size");
        let data: Vec<u8> = row.get(2).expect("its data");
        if holds(&zstd::bulk::decompress(&data, size).expect("its content")) {
            found.push(format!("pack {id}"));
        }
    }
    let objects = Objects::open(&file, ic_ledger::OpenOptions::default()).expect("the store");
    let mut hashes = db.prepare("SELECT hash FROM objects WHERE form <> 2").expect("its objects");
    let hashes = hashes.query_map([], |row| row.get::<_, [u8; 32]>(0)).expect("its objects");
    for hash in hashes {
        let content = objects.read(&hash.expect("a hash")).expect("an object");
        if holds(&content) || (content.starts_with(b"PACK") && holds(&unpacked(cli, &content))) {
            found.push("an object".to_owned());
        }
    }
    found
}

/// All that a pack of git's has, one after the other.
fn unpacked(cli: &Cli, pack: &[u8]) -> Vec<u8> {
    let place = tempfile::tempdir_in(cli.home()).expect("a directory");
    git_in(place.path(), &["init", "-q", "--bare"]);
    piped(place.path(), &["index-pack", "--stdin"], pack);
    piped(place.path(), &["cat-file", "--batch", "--batch-all-objects"], b"")
}

fn piped(directory: &Path, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(directory).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::null()).spawn().expect("run git");
    let mut stdin = child.stdin.take().expect("its input");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("its output");
    writer.join().expect("the writer");
    assert!(output.status.success(), "git {arguments:?}");
    output.stdout
}

fn places(purged: &serde_json::Value) -> Vec<&str> {
    purged["left"].as_array().expect("what is left").iter().filter_map(|left| left["place"].as_str()).collect()
}

fn purge(cli: &Cli, path: &str) -> serde_json::Value {
    let purged = cli.json(["checkpoint", "purge", path, "--yes", "--json"]);
    let schema: serde_json::Value =
        serde_json::from_str(include_str!("../../docs/schemas/purge.json")).expect("its schema");
    let known = schema["$defs"]["LeftJson"]["properties"]["place"]["enum"].as_array().expect("all places");
    assert!(places(&purged).iter().all(|place| known.iter().any(|one| one == place)), "{purged}");
    purged
}

/// No state of git's that had it is restored any more; one that never had it is.
fn stays_away(cli: &Cli, had_it: &str) {
    for strategy in ["git-only", "full"] {
        let call = ["checkpoint", "restore", had_it, "--strategy", strategy, "--yes"];
        assert_eq!(cli.refused(call), (Some(1), "git_unsupported".to_owned()), "{strategy}");
    }
    // The rest of the tree comes back, and the report names what does not.
    let files = cli.run(["checkpoint", "restore", had_it, "--strategy", "files-only", "--yes"]);
    let report = files.json();
    assert_eq!(report["failed"], serde_json::json!([]), "{files:?}");
    if files.code == Some(4) {
        let named = serde_json::json!([{ "path": "config/token", "reason": "its content was purged, or lost" }]);
        assert_eq!(report["skipped"], named, "{files:?}");
        assert!(!report["changes"].to_string().contains("config/token"), "{files:?}");
    } else {
        assert_eq!((files.code, &report["skipped"]), (Some(0), &serde_json::json!([])));
    }
    assert!(holders(cli).is_empty(), "{:?}", holders(cli));
    assert!(!cli.root().join("config/token").exists());
}

#[test]
fn what_was_committed_is_gone_and_does_not_come_back() {
    let cli = repository();
    write_in(cli.root(), "config/token", format!("{SECRET}\n"));
    git_in(cli.root(), &["add", "."]);
    git_in(cli.root(), &["commit", "-qm", "token"]);
    let leaked = cli.ok(["checkpoint", "create"]);
    git_in(cli.root(), &["reset", "-q", "--hard", "HEAD~1"]);
    forget(&cli);
    // The checkpoint can indeed bring it back, and what it moves away lies below our own refs.
    cli.ok(["checkpoint", "restore", &leaked, "--strategy", "git-only", "--yes"]);
    assert_eq!(git_in(cli.root(), &["show", "HEAD:config/token"]), SECRET);
    cli.ok(["redo", "--yes"]);
    assert_ne!(git_in(cli.root(), &["for-each-ref", "refs/ic/"]), "");
    assert_ne!(holders(&cli), Vec::<String>::new());
    let purged = purge(&cli, "config/token");
    assert_ne!(purged["git_packs"], 0, "{purged}");
    assert_ne!(purged["removed_refs"].as_array().map(Vec::len), Some(0), "{purged}");
    assert_eq!(holders(&cli), Vec::<String>::new());
    forget(&cli);
    let all = piped(cli.root(), &["cat-file", "--batch", "--batch-all-objects"], b"");
    assert!(!String::from_utf8_lossy(&all).contains(SECRET), "git still has it");
    stays_away(&cli, &leaked);
    let events = cli.ok(["events", "tail", "--format", "json"]);
    assert!(events.contains("content_purged"), "{events}");
    cli.ok(["checkpoint", "verify", "--read-data"]);
    cli.ok(["events", "verify"]);
}

#[test]
fn a_commit_that_git_still_has_is_not_brought_back_either() {
    let cli = repository();
    write_in(cli.root(), "config/token", format!("{SECRET}\n"));
    git_in(cli.root(), &["add", "."]);
    git_in(cli.root(), &["commit", "-qm", "token"]);
    let leaked = cli.ok(["checkpoint", "create"]);
    git_in(cli.root(), &["remote", "add", "upstream", "/nowhere"]);
    let purged = purge(&cli, "config/token");
    assert_eq!(places(&purged), ["work_tree", "index", "refs", "objects", "remote"], "{purged}");
    for left in purged["left"].as_array().expect("what is left") {
        let command = left["command"].as_str().expect("a command");
        let shown = Command::new("sh").args(["-c", command]).current_dir(cli.root()).output().expect("run it");
        assert!(shown.status.success(), "{command}: {shown:?}");
    }
    git_in(cli.root(), &["reset", "-q", "--hard", "HEAD~1"]);
    let again = purge(&cli, "config/token");
    assert_eq!(places(&again), ["reflog", "objects", "remote"], "{again}");
    stays_away(&cli, &leaked);
    assert_eq!(git_in(cli.root(), &["ls-files", "config"]), "");
}

#[test]
fn what_was_stashed_or_staged_is_gone_too() {
    for is_staged in [false, true] {
        let cli = repository();
        write_in(cli.root(), "config/token", format!("{SECRET}\n"));
        let leaked = if is_staged {
            git_in(cli.root(), &["add", "."]);
            let leaked = cli.ok(["checkpoint", "create"]);
            git_in(cli.root(), &["rm", "-q", "-f", "config/token"]);
            leaked
        } else {
            git_in(cli.root(), &["stash", "-u", "-q"]);
            let leaked = cli.ok(["checkpoint", "create"]);
            git_in(cli.root(), &["stash", "drop", "-q"]);
            leaked
        };
        forget(&cli);
        assert_ne!(holders(&cli), Vec::<String>::new());
        let purged = purge(&cli, "config/token");
        assert_eq!(places(&purged), Vec::<&str>::new(), "{purged}");
        assert_eq!(holders(&cli), Vec::<String>::new(), "staged: {is_staged}");
        stays_away(&cli, &leaked);
    }
}

#[test]
fn refs_of_ours_go_though_a_branch_reaches_the_content_too() {
    let cli = repository();
    let first = cli.ok(["checkpoint", "create"]);
    write_in(cli.root(), "config/token", format!("{SECRET}\n"));
    git_in(cli.root(), &["add", "."]);
    git_in(cli.root(), &["commit", "-qm", "token"]);
    write_in(cli.root(), "a", "two\n");
    git_in(cli.root(), &["commit", "-qam", "on top"]);
    let tip = git_in(cli.root(), &["rev-parse", "HEAD"]);
    // What the restore moves away lies below our refs, and a branch of the user's reaches it, too.
    cli.ok(["checkpoint", "restore", &first, "--yes", "--force"]);
    git_in(cli.root(), &["branch", "leaky", &format!("{tip}~1")]);
    git_in(cli.root(), &["update-ref", "refs/ic/rolled-back/another/kept", "HEAD"]);
    let ours = git_in(cli.root(), &["for-each-ref", "--format=%(refname)", "refs/ic/"]);
    let leads: Vec<&str> = ours.lines().filter(|name| !name.ends_with("another/kept")).collect();
    assert!(!leads.is_empty(), "{ours}");
    let purged = purge(&cli, "config/token");
    assert_eq!(purged["removed_refs"], serde_json::json!(leads), "{purged}");
    let rest = git_in(cli.root(), &["for-each-ref", "--format=%(refname)", "refs/ic/"]);
    assert_eq!(rest, "refs/ic/rolled-back/another/kept", "what does not lead to it stays");
    // Once the branch is cleaned, nothing of ours holds it.
    git_in(cli.root(), &["branch", "-D", "leaky"]);
    forget(&cli);
    let all = piped(cli.root(), &["cat-file", "--batch", "--batch-all-objects"], b"");
    assert!(!String::from_utf8_lossy(&all).contains(SECRET), "git still has it");
}

#[test]
fn a_second_purge_says_that_nothing_was_left_and_a_directory_is_refused() {
    let cli = repository();
    write_in(cli.root(), "config/token", format!("{SECRET}\n"));
    cli.ok(["checkpoint", "create"]);
    let refused = cli.refused(["checkpoint", "purge", "config", "--yes"]);
    assert_eq!(refused, (Some(3), "path_not_found".to_owned()));
    assert_ne!(holders(&cli), Vec::<String>::new(), "nothing was purged");
    let text = ["checkpoint", "purge", "config/token", "--yes", "--format", "text"];
    let (first, second) = (cli.ok(text), cli.ok(text));
    assert!(first.contains("is gone from the store"), "{first}");
    assert!(second.contains("nothing of it was left to take out"), "{second}");
    assert!(!second.contains("is gone from the store"), "{second}");
}

#[test]
fn what_only_a_checkpoint_had_that_was_given_up_is_cleared() {
    let cli = repository();
    write_in(cli.root(), "config/token", format!("{SECRET}\n"));
    // Enough beside it that a sweep only takes its name out of the pack.
    write_in(cli.root(), "other", "0123456789abcdef".repeat(4000));
    let leaked = cli.ok(["checkpoint", "create"]);
    std::fs::remove_file(cli.root().join("config/token")).expect("remove it");
    cli.ok(["checkpoint", "create"]);
    cli.ok(["checkpoint", "delete", &leaked, "--grace", "0s"]);
    purge(&cli, "config/token");
    assert_eq!(holders(&cli), Vec::<String>::new());
}

#[test]
fn a_purge_is_recorded_whatever_it_meets() {
    let cli = repository();
    write_in(cli.root(), "config/token", format!("{SECRET}\n"));
    cli.ok(["checkpoint", "create"]);
    std::fs::remove_file(cli.root().join("config/token")).expect("remove it");
    let copies = cli.beside("objects.cache/.tmpABCDEF");
    write_in(&copies, "copy.db", "a copy");
    let aside = cli.beside("objects.damaged");
    std::fs::write(aside, SECRET).expect("a store that was set aside");
    let purged = purge(&cli, "config/token");
    assert!(!copies.exists() || places(&purged).contains(&"copies"), "{purged}");
    assert!(places(&purged).contains(&"set_aside"), "{purged}");
    let events = cli.ok(["events", "tail", "--format", "json"]);
    assert!(events.contains("content_purged"), "{events}");
}

#[test]
fn a_store_with_a_checkpoint_that_cannot_be_read_is_repaired_first_and_then_purged() {
    for part in ["manifest", "tree"] {
        let cli = repository();
        write_in(cli.root(), "config/token", format!("{SECRET}\n"));
        let hurt = cli.ok(["checkpoint", "create"]);
        write_in(cli.root(), "a", "two\n");
        let kept = cli.ok(["checkpoint", "create"]);
        std::fs::remove_file(cli.root().join("config/token")).expect("remove it");
        let hash = cli.sql(&format!("SELECT {part} FROM checkpoints WHERE id = '{hurt}'"));
        let hash = hash.strip_prefix("\\x").expect("bytes");
        let store = rusqlite::Connection::open(cli.beside("objects.db")).expect("the store");
        let deleted = store.execute(&format!("DELETE FROM objects WHERE hash = x'{hash}'"), []);
        assert_eq!(deleted, Ok(1), "{part}");
        drop(store);
        let refused = cli.run(["checkpoint", "purge", "config/token", "--yes"]);
        assert_eq!((refused.code, refused.error().as_str()), (Some(2), "corrupt"), "{part}");
        assert!(refused.stderr.contains("ic checkpoint verify --repair"), "{part}: {refused:?}");
        assert_ne!(holders(&cli), Vec::<String>::new(), "{part}: nothing was purged");
        cli.ok(["checkpoint", "verify", "--repair"]);
        purge(&cli, "config/token");
        assert_eq!(holders(&cli), Vec::<String>::new(), "{part}");
        cli.ok(["checkpoint", "verify", "--read-data"]);
        let rest = cli.run(["checkpoint", "restore", &kept, "--strategy", "files-only", "--yes"]);
        assert_eq!(rest.code, Some(4), "{part}: all but the secret comes back: {rest:?}");
    }
}
