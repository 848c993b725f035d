//! What a restore says of the tree is so: "nothing to do" only where the tree was compared, and what stays is named.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use ic_testkit::{Cli, WorkerEnding, git_in, write_in};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

use crate::project::{create, make_again, project, restore, restore_in_part, take_back, told, tree};

fn fifo(cli: &Cli, path: &str) {
    let mode = Mode::from_raw_mode(0o600);
    mknodat(CWD, cli.root().join(path), FileType::Fifo, mode, 0).expect("a fifo");
}

/// A tree whose files git tracked when the checkpoint was taken, and that a rule or their names hide now.
fn hidden_by_now() -> (Cli, String) {
    let cli = project();
    git_in(cli.root(), &["init", "-q"]);
    write_in(cli.root(), "certs/server.pem", "a key");
    write_in(cli.root(), "gen/out", "made");
    write_in(cli.root(), "gen/deep/out", "made");
    git_in(cli.root(), &["add", "."]);
    git_in(cli.root(), &["commit", "-qm", "one"]);
    write_in(cli.root(), ".git/info/exclude", "gen/\n");
    let id = create(&cli);
    git_in(cli.root(), &["rm", "-qr", "--cached", "certs", "gen"]);
    fs::remove_dir_all(cli.root().join("certs")).expect("remove it");
    fs::remove_dir_all(cli.root().join("gen")).expect("remove it");
    (cli, id)
}

#[test]
fn an_undo_takes_away_what_its_restore_brought_though_rules_hide_it_now() {
    let (cli, id) = hidden_by_now();
    let before = tree(&cli);
    cli.ok(["checkpoint", "restore", &id, "--strategy", "files-only", "--yes"]);
    let restored = tree(&cli);
    assert!(cli.root().join("certs/server.pem").exists() && cli.root().join("gen/deep/out").exists());
    let report = take_back(&cli);
    tree(&cli).assert_is(&before, "the undo");
    assert_eq!(report["status"], "restored", "{report}");
    make_again(&cli);
    tree(&cli).assert_is(&restored, "the redo");
}

#[test]
fn an_undo_saves_what_was_changed_since_and_leaves_and_names_what_it_did_not_bring() {
    let (cli, id) = hidden_by_now();
    cli.ok(["checkpoint", "restore", &id, "--strategy", "files-only", "--yes"]);
    write_in(cli.root(), "certs/server.pem", "another key");
    write_in(cli.root(), "gen/mine", "not the restore's");
    let report = cli.run(["redo", "--yes", "--json"]).json();
    assert_eq!(fs::read_to_string(cli.root().join("gen/mine")).expect("it stays"), "not the restore's", "{report}");
    let named = told(&report, "skipped", "reason");
    assert_eq!(named, [("gen".to_owned(), "holds ignored content".to_owned())], "{report}");
    assert!(!cli.root().join("certs").exists(), "{report}");
    let safety = report["safety_checkpoint_id"].as_str().expect("a safety checkpoint");
    assert_eq!(cli.ok(["checkpoint", "cat", safety, "certs/server.pem"]), "another key");
}

#[test]
fn a_tree_that_differs_only_where_nothing_is_touched_is_not_called_restored() {
    let cli = project();
    write_in(cli.root(), "a", "important");
    let id = create(&cli);
    fs::remove_file(cli.root().join("a")).expect("make room");
    fifo(&cli, "a");
    let outcome = cli.run(["checkpoint", "restore", &id, "--yes", "--json"]);
    let report = outcome.json();
    assert_eq!((outcome.code, &report["status"]), (Some(4), &"partial".into()), "{report}");
    assert_eq!(told(&report, "skipped", "reason"), [("a".to_owned(), "special".to_owned())], "{report}");
    assert!(report["safety_checkpoint_id"].is_null(), "{report}");
    let text = cli.run(["checkpoint", "restore", &id, "--yes", "--format", "text"]).stdout;
    assert!(!text.contains("nothing to do") && !text.contains("The tree is as"), "{text}");
    assert!(text.contains("  a  special"), "{text}");
}

#[test]
fn nothing_to_do_names_what_was_not_compared() {
    let cli = project();
    write_in(cli.root(), "a", "a");
    write_in(cli.root(), ".env", "A=1");
    write_in(cli.root(), "gone.pem", "a key");
    let id = create(&cli);
    write_in(cli.root(), ".env", "A=2");
    write_in(cli.root(), "new.pem", "a key");
    fs::remove_file(cli.root().join("gone.pem")).expect("remove it");
    let report = restore_in_part(&cli, &id);
    assert_eq!(report["changes"], json!([]), "{report}");
    let secret = |name: &str| (name.to_owned(), "secret".to_owned());
    let named = told(&report, "skipped", "reason");
    assert_eq!(named, [secret(".env"), secret("gone.pem"), secret("new.pem")], "{report}");
    let text = cli.run(["checkpoint", "restore", &id, "--yes", "--format", "text"]).stdout;
    assert!(!text.contains("The tree is as"), "{text}");
    assert!([".env", "gone.pem", "new.pem"].iter().all(|name| text.contains(name)), "{text}");
}

#[test]
fn nothing_to_do_is_said_of_no_more_than_was_compared() {
    let cli = project();
    write_in(cli.root(), "a", "a");
    write_in(cli.root(), "b", "b");
    let id = create(&cli);
    let whole = cli.ok(["checkpoint", "restore", &id, "--yes", "--format", "text"]);
    assert!(whole.starts_with("The tree is as checkpoint"), "{whole}");
    write_in(cli.root(), "b", "changed");
    let part = cli.ok(["checkpoint", "restore", &id, "--path", "a", "--yes", "--format", "text"]);
    assert!(part.contains("nothing to do") && !part.contains("The tree is as"), "{part}");
}

#[test]
fn a_file_that_never_stands_still_is_named_when_it_is_captured_and_when_it_is_restored() {
    const LENGTH: usize = 4_000_000;
    let cli = project();
    let path = cli.root().join("data.bin");
    fs::write(&path, vec![b'A'; LENGTH]).expect("a file");
    let file = fs::File::options().write(true).open(&path).expect("open it");
    let is_over = AtomicBool::new(false);
    // A state that the file had has one letter up to some place, and the one before it from there on.
    let is_torn = |content: &[u8]| content.chunk_by(|a, b| a == b).count() > 2;
    let id = std::thread::scope(|scope| {
        let is_over = &is_over;
        scope.spawn(move || {
            for letter in (b'A'..=b'Z').cycle() {
                for at in (0..LENGTH).step_by(100_000) {
                    file.write_all_at(&vec![letter; 100_000], at as u64).expect("write");
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                }
            }
        });
        let end = WorkerEnding(is_over);
        // Who writes may get no turn for a while: then the file stood still.
        let torn = (0..100).find_map(|_| {
            let outcome = cli.run(["checkpoint", "create", "--json"]);
            let record = outcome.json();
            assert_eq!(outcome.code, Some(0), "{record}");
            let id = record["id"].as_str().expect("an id").to_owned();
            let is_named = record["unsettled"][0]["path"] == "data.bin";
            let mut cat = cli.command(["checkpoint", "cat", &id, "data.bin"]);
            let is_torn = is_torn(&cat.output().expect("its content").stdout);
            assert!(is_named || !is_torn, "it is torn, and not named: {record}");
            assert_eq!(record["complete"], !is_named, "{record}");
            assert_eq!(record["warnings"][0]["code"] == "unsettled", is_named, "{record}");
            (is_named && is_torn).then_some(id)
        });
        drop(end);
        torn.expect("it was never torn")
    });
    let shown = cli.json(["checkpoint", "show", &id, "--json"]);
    assert_eq!((&shown["complete"], &shown["unsettled"][0]["path"]), (&false.into(), &"data.bin".into()), "{shown}");
    fs::write(&path, "other").expect("a file");
    let report = restore(&cli, &id);
    assert_eq!(report["warnings"][0]["code"], "unsettled", "{report}");
    let still = cli.json(["checkpoint", "create", "--json"]);
    assert_eq!((&still["complete"], &still["unsettled"]), (&true.into(), &serde_json::json!([])), "{still}");
}

#[test]
fn a_path_that_was_named_is_compared_or_named_or_refused() {
    let cli = project();
    write_in(cli.root(), ".gitignore", "build/\n");
    write_in(cli.root(), "src/a", "one");
    write_in(cli.root(), "build/out", "one");
    write_in(cli.root(), "my.pem", "a key");
    let id = create(&cli);
    write_in(cli.root(), "src/a", "two");
    let before = tree(&cli);
    for flag in ["--dry-run", "--yes"] {
        let restoring = |path| vec!["checkpoint", "restore", id.as_str(), "--path", path, flag];
        for path in ["src/mistyped", "mistyped", "src/a/below"] {
            assert_eq!(cli.refused(restoring(path)), (Some(3), "path_not_found".to_owned()), "{path} {flag}");
        }
        for (path, reason) in
            [("build", "ignored"), ("build/out", "ignored"), ("build/no", "ignored"), ("my.pem", "secret")]
        {
            let report = cli.json([&restoring(path)[..], &["--json"]].concat());
            let named = [(path.to_owned(), reason.to_owned())];
            assert_eq!(told(&report, "skipped", "reason"), named, "{flag}: {report}");
            let text = cli.ok([&restoring(path)[..], &["--format", "text"]].concat());
            assert!(!text.contains("has it") && text.contains(path), "{flag}: {text}");
        }
        tree(&cli).assert_is(&before, "nothing of these is restored");
    }
    let comparing = |path| vec!["checkpoint", "diff", id.as_str(), "--json", "--", path];
    assert_eq!(cli.refused(comparing("mistyped")), (Some(3), "path_not_found".to_owned()));
    let hidden = cli.json(comparing("build/out"));
    assert_eq!(told(&hidden, "skipped", "reason"), [("build/out".to_owned(), "ignored".to_owned())], "{hidden}");
    for (shape, line) in [
        ("--stat", " my.pem | not compared: secret\n"),
        ("--unified", "# my.pem: not compared: secret\n"),
        ("--name-status", "?\tmy.pem\n"),
    ] {
        let shown = cli.run(["checkpoint", "diff", &id, shape, "--", "my.pem"]).stdout;
        assert!(shown.starts_with(line), "{shape}: {shown}");
    }
    let changed = cli.json(comparing("src"));
    assert_eq!((told(&changed, "changes", "change").len(), &changed["skipped"]), (1, &serde_json::json!([])));
    // If one of the paths is in the checkpoint, the others are still named as skipped.
    let both = ["checkpoint", "restore", &id, "--path", "src/a", "--path", "my.pem", "--yes", "--json"];
    assert_eq!(told(&cli.json(both), "skipped", "reason"), [("my.pem".to_owned(), "secret".to_owned())]);
    assert_eq!(fs::read_to_string(cli.root().join("src/a")).expect("it is back"), "one");
}

/// What `git apply -R` does to a tree with a patch that the product wrote.
fn apply_back(cli: &Cli, patch: &[u8]) {
    use std::io::Write as _;
    let mut child = std::process::Command::new("git")
        .args(["apply", "-R", "--whitespace=nowarn", "-"])
        .current_dir(cli.root())
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("git runs");
    child.stdin.take().expect("a pipe").write_all(patch).expect("git reads");
    let output = child.wait_with_output().expect("git ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(patch));
}

#[test]
fn a_patch_takes_files_that_became_directories_and_modes_back_and_what_it_cannot_hold_is_named() {
    use crate::forest::set_mode;
    let cli = project();
    write_in(cli.root(), "to_directory", "a file\n");
    write_in(cli.root(), "to_empty", "a file\n");
    write_in(cli.root(), "to_file/inner/a", "inside\n");
    write_in(cli.root(), "to_file/b", "beside\n");
    std::os::unix::fs::symlink("run.sh", cli.root().join("link")).expect("a link");
    write_in(cli.root(), "run.sh", "#!/bin/sh\n");
    write_in(cli.root(), "plain.sh", "#!/bin/sh\n");
    write_in(cli.root(), "secretive", "one\n");
    set_mode(&cli.root().join("secretive"), 0o600);
    write_in(cli.root(), "narrowed", "the same\n");
    fs::create_dir(cli.root().join("goes")).expect("a directory");
    write_in(cli.root(), "stays/f", "f\n");
    set_mode(&cli.root().join("run.sh"), 0o755);
    let id = create(&cli);
    let remove = |name: &str| fs::remove_file(cli.root().join(name)).expect("remove it");
    remove("to_directory");
    write_in(cli.root(), "to_directory/deep/x", "x\n");
    remove("to_empty");
    fs::create_dir(cli.root().join("to_empty")).expect("a directory");
    fs::remove_dir_all(cli.root().join("to_file")).expect("make room");
    write_in(cli.root(), "to_file", "now a file\n");
    remove("link");
    write_in(cli.root(), "link/y", "y\n");
    set_mode(&cli.root().join("run.sh"), 0o644);
    set_mode(&cli.root().join("plain.sh"), 0o755);
    write_in(cli.root(), "secretive", "two\n");
    set_mode(&cli.root().join("narrowed"), 0o600);
    fs::remove_dir(cli.root().join("goes")).expect("remove it");
    set_mode(&cli.root().join("stays"), 0o700);

    let shown = cli.run(["checkpoint", "diff", &id, "--unified"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for line in [
        "directory goes: empty directory, deleted",
        "directory to_empty: empty directory, added",
        "directory stays: mode 755 -> 700",
        "secretive: mode 600",
        "narrowed: mode 644 -> 600",
    ] {
        assert!(shown.stdout.contains(&format!("# {line}\n")), "{line}: {}", shown.stdout);
        assert!(shown.stderr.contains(line), "{line}: {}", shown.stderr);
    }
    assert!(!shown.stderr.contains("run.sh"), "{}", shown.stderr);
    apply_back(&cli, shown.stdout.as_bytes());

    let read = |name: &str| fs::read_to_string(cli.root().join(name)).expect(name);
    assert_eq!(read("to_directory"), "a file\n");
    assert_eq!(read("to_empty"), "a file\n");
    assert_eq!((read("to_file/inner/a"), read("to_file/b")), ("inside\n".to_owned(), "beside\n".to_owned()));
    assert_eq!(fs::read_link(cli.root().join("link")).expect("a link"), std::path::Path::new("run.sh"));
    assert_eq!(read("secretive"), "one\n");
    let is_executable = |name: &str| {
        use std::os::unix::fs::PermissionsExt as _;
        fs::metadata(cli.root().join(name)).expect(name).permissions().mode() & 0o100 != 0
    };
    assert!(is_executable("run.sh") && !is_executable("plain.sh"));
    // Nothing differs beyond what was named.
    let left = cli.json(["checkpoint", "diff", &id, "--json"]);
    let paths: Vec<&str> = told_paths(&left);
    assert_eq!(paths, ["goes", "narrowed", "secretive", "stays"], "{left}");
}

fn told_paths(report: &serde_json::Value) -> Vec<&str> {
    let changes = report["changes"].as_array().expect("changes");
    changes.iter().map(|change| change["path"].as_str().expect("a path")).collect()
}

#[test]
fn a_statistic_says_what_changed_where_no_line_did() {
    let cli = project();
    write_in(cli.root(), "run.sh", "#!/bin/sh\n");
    write_in(cli.root(), "becomes", "a file\n");
    fs::create_dir(cli.root().join("goes")).expect("a directory");
    let id = create(&cli);
    crate::forest::set_mode(&cli.root().join("run.sh"), 0o755);
    fs::remove_file(cli.root().join("becomes")).expect("make room");
    std::os::unix::fs::symlink("run.sh", cli.root().join("becomes")).expect("a link");
    fs::remove_dir(cli.root().join("goes")).expect("remove it");
    fs::create_dir(cli.root().join("comes")).expect("a directory");
    let stat = cli.ok(["checkpoint", "diff", &id, "--stat"]);
    for line in [
        " becomes | file -> link",
        " comes | empty directory, added",
        " goes | empty directory, deleted",
        " run.sh | mode 644 -> 755",
    ] {
        assert!(stat.contains(line), "{line}: {stat}");
    }
    assert!(!stat.contains("+0"), "{stat}");
}

#[test]
fn a_hook_loses_no_checkpoint_to_what_a_prompt_says_and_a_person_is_told() {
    let cli = project();
    let long = "\u{e9}".repeat(40_000);
    for (given, kept) in
        [("fix\u{1b}[31m it\u{7}", Some("fix [31m it")), ("", None), (" \n ", None), (&long, Some(&long[..64 * 1024]))]
    {
        let auto = ["checkpoint", "create", "--auto", "--message", given, "--conversation", given, "--json"];
        let made = cli.json(auto);
        assert_eq!(made["message"].as_str(), kept, "{given:.20}");
        let shown = kept.map(|kept| &kept[..kept.len().min(200)]);
        let listed = cli.json(["checkpoint", "show", made["id"].as_str().expect("its id"), "--json"]);
        assert_eq!(listed["conversation"].as_str(), shown, "{given:.20}");
        for flag in ["--message", "--conversation"] {
            let refused = cli.refused(["checkpoint", "create", flag, given]);
            assert_eq!(refused, (Some(3), "invalid_value".to_owned()), "{flag}");
        }
    }
    let made = cli.json(["checkpoint", "create", "--auto", "--conversation", "a\nb", "--json"]);
    let ours = cli.json(["checkpoint", "list", "--conversation", "a b", "--json"]);
    assert!(ours.to_string().contains(made["id"].as_str().expect("its id")), "{ours}");
}

#[test]
fn a_name_that_cannot_be_shown_is_quoted_and_takes_one_line() {
    let cli = project();
    let id = create(&cli);
    for name in ["a\nb", "a b", "tab\there", "say \"\u{1b}[2J\""] {
        fs::write(cli.root().join(name), "x").expect("a file");
    }
    let said = cli.ok(["checkpoint", "diff", &id, "--name-status", "--format", "text"]);
    let names: Vec<&str> =
        said.lines().filter_map(|line| line.split_once([' ', '\t'])).map(|(_, name)| name.trim()).collect();
    assert_eq!(names, [r#""a\nb""#, "a b", r#""say \"\u{1b}[2J\"""#, r#""tab\there""#], "{said}");
}

#[test]
fn of_the_stash_it_is_said_how_many_entries_go_and_come() {
    let cli = project();
    git_in(cli.root(), &["init", "-q"]);
    write_in(cli.root(), "a", "one\n");
    git_in(cli.root(), &["add", "."]);
    git_in(cli.root(), &["commit", "-qm", "one"]);
    let id = create(&cli);
    for text in ["two\n", "three\n"] {
        write_in(cli.root(), "a", text);
        git_in(cli.root(), &["stash", "-q"]);
    }
    let entries = || git_in(cli.root(), &["stash", "list"]).lines().count();
    let said = cli.ok(["checkpoint", "restore", &id, "--yes", "--format=text"]);
    assert!(said.contains("2 entries taken off, and kept"), "{said}");
    assert_eq!(entries(), 0);
    let said = cli.ok(["redo", "--yes", "--format=text"]);
    assert!(said.contains("2 entries restored\n"), "{said}");
    assert_eq!(entries(), 2);
}

/// A repository at this place, with one commit of a file `l`.
fn repository(place: PathBuf) -> PathBuf {
    fs::create_dir(&place).expect("a directory");
    git_in(&place, &["init", "-q"]);
    write_in(&place, "l", "one\n");
    git_in(&place, &["add", "."]);
    git_in(&place, &["commit", "-qm", "one"]);
    place
}

#[test]
fn a_submodule_that_was_removed_is_not_called_lost() {
    let cli = project();
    let library = repository(cli.home().join("library"));
    git_in(cli.root(), &["init", "-q"]);
    let from = library.to_str().expect("a name");
    git_in(cli.root(), &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", from, "sub"]);
    git_in(cli.root(), &["commit", "-qm", "with a submodule"]);
    git_in(&cli.root().join("sub"), &["commit", "-q", "--allow-empty", "-m", "here alone"]);
    let id = create(&cli);
    fs::remove_dir_all(cli.root().join("sub")).expect("remove it");
    let report = cli.json(["checkpoint", "restore", &id, "--strategy", "files-only", "--yes", "--json"]);
    let why = report["not_kept"][0]["reason"].as_str().expect("a reason");
    assert!(why.contains("`git submodule update` brings it back"), "{report}");
    git_in(cli.root(), &["submodule", "--quiet", "update"]);
    let log = git_in(&cli.root().join("sub"), &["log", "--all", "--reflog", "--format=%s"]);
    assert!(log.contains("here alone"), "{log}");
}

/// An undo restores a stash entry that its restore dropped, even if another work tree has since checked out the branch of the entry.
#[test]
fn a_stash_entry_comes_back_though_another_work_tree_has_its_branch_by_now() {
    let cli = project();
    git_in(cli.root(), &["init", "-q", "-b", "main"]);
    write_in(cli.root(), "a", "one\n");
    git_in(cli.root(), &["add", "."]);
    git_in(cli.root(), &["commit", "-qm", "one"]);
    let id = create(&cli);
    git_in(cli.root(), &["checkout", "-q", "-b", "aside"]);
    write_in(cli.root(), "a", "two\n");
    git_in(cli.root(), &["stash", "-q"]);
    git_in(cli.root(), &["checkout", "-q", "main"]);
    let entries = || git_in(cli.root(), &["stash", "list"]).lines().count();
    cli.ok(["checkpoint", "restore", &id, "--yes"]);
    assert_eq!(entries(), 0);
    let other = cli.home().join("other");
    git_in(cli.root(), &["worktree", "add", "-q", "-b", "aside", other.to_str().expect("a name")]);
    cli.ok(["redo", "--yes"]);
    assert_eq!(entries(), 1);
}

#[test]
fn a_repository_inside_is_named_where_its_files_go_back() {
    let cli = project();
    let library = repository(cli.root().join("lib"));
    write_in(cli.root(), "a", "one\n");
    let id = create(&cli);
    write_in(cli.root(), "a", "two\n");
    let report = restore(&cli, &id);
    assert_eq!(report["skipped"], json!([]), "nothing in it changes: {report}");
    write_in(&library, "l", "two\n");
    git_in(&library, &["commit", "-qam", "two"]);
    let report = restore_in_part(&cli, &id);
    let history = told(&report, "repositories", "reason");
    assert!(history.len() == 1 && history[0].0 == "lib" && history[0].1.contains("git -C"), "{report}");
    let named = told(&report, "skipped", "reason");
    assert!(named.len() == 1 && named[0].0 == "lib" && named[0].1.contains("repository of its own"), "{report}");
    assert_eq!(fs::read_to_string(library.join("l")).expect("it is there"), "one\n");
    assert_eq!(git_in(&library, &["log", "-1", "--format=%s"]).trim(), "two");
}

#[test]
fn the_command_for_a_detached_repository_leaves_its_branches() {
    let cli = project();
    let library = repository(cli.root().join("lib"));
    let branch = git_in(&library, &["symbolic-ref", "--short", "HEAD"]).trim().to_owned();
    git_in(&library, &["checkout", "-q", "--detach"]);
    let id = create(&cli);
    git_in(&library, &["checkout", "-q", &branch]);
    write_in(&library, "l", "two\n");
    git_in(&library, &["commit", "-qam", "two"]);
    let report = restore_in_part(&cli, &id);
    let told = told(&report, "repositories", "reason");
    let (_, command) = told[0].1.split_once("to move it back: ").expect("a command");
    let ended = std::process::Command::new("sh").args(["-c", command]).status().expect("start sh");
    assert!(ended.success(), "{command}");
    assert_eq!(git_in(&library, &["log", "--format=%s", &branch]), "two\none", "{command}");
    assert_eq!(git_in(&library, &["rev-parse", "--symbolic-full-name", "HEAD"]), "HEAD", "{command}");
    assert_eq!(git_in(&library, &["log", "--format=%s"]), "one", "{command}");
    assert_eq!(git_in(&library, &["status", "--short"]), "", "{command}");
}

/// Git applies nothing of a patch that changes a binary file.
#[test]
fn a_patch_names_the_binary_files_in_it() {
    let cli = project();
    write_in(cli.root(), "a", "one\n");
    write_in(cli.root(), "bin", "\0one");
    let id = create(&cli);
    write_in(cli.root(), "a", "two\n");
    let said = |cli: &Cli| cli.run(["checkpoint", "diff", &id, "--unified"]).stderr;
    assert!(!said(&cli).contains("bin"), "{}", said(&cli));
    write_in(cli.root(), "bin", "\0two");
    assert!(said(&cli).contains("bin: a binary file, for which git apply refuses all of it"), "{}", said(&cli));
}

#[test]
fn a_preview_says_that_what_a_rule_hides_now_is_not_compared() {
    let cli = project();
    git_in(cli.root(), &["init", "-q"]);
    write_in(cli.root(), "a", "a");
    let id = create(&cli);
    write_in(cli.root(), "junk.tmp", "junk");
    write_in(cli.root(), ".gitignore", "*.tmp\n");
    let told = |report: &serde_json::Value| {
        report["warnings"].as_array().into_iter().flatten().any(|one| one["code"] == "rules_change")
    };
    let plan = cli.json(["checkpoint", "restore", &id, "--dry-run", "--json"]);
    assert!(told(&plan), "{plan}");
    let report = restore(&cli, &id);
    assert_eq!(report["differs"][0]["path"], "junk.tmp", "{report}");
    write_in(cli.root(), "a", "b");
    let plan = cli.json(["checkpoint", "restore", &id, "--dry-run", "--json"]);
    assert!(!told(&plan), "no rule changes: {plan}");
}
