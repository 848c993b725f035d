//! Git before the rows: nothing becomes unreachable, and nothing that cannot be saved is changed.

use ic_testkit::git_in;
use serde_json::json;

use crate::project::{devs_in_git, status};

#[test]
fn the_tree_goes_first_and_what_was_left_is_named() {
    let (world, commits) = devs_in_git();
    let preview = world.cli.json(["rewind", "to", "T1", "--dry-run"]);
    assert_eq!(preview["git"]["commit"], json!(commits[0]));
    assert_eq!(world.head(), commits[2]);
    let done = world.cli.json(["rewind", "to", "T1", "--yes"]);
    assert_eq!((world.head(), world.text("a.txt")), (commits[0].clone(), "T1".to_owned()));
    let left = &done["git"];
    assert_eq!((&left["left_branch"], &left["left_head"]), (&json!("main"), &json!(commits[2])));
    let id = done["id"].as_str().expect("an id");
    assert_eq!(left["kept_ref"], format!("refs/ic/rewound/{id}/main"));
    assert_eq!(world.git(&["rev-parse", &format!("refs/ic/rewound/{id}/main")]), commits[2]);
    assert_eq!(world.git(&["rev-parse", "main"]), commits[2], "no branch moves");

    let undone = world.cli.json(["undo", id, "--yes"]);
    assert_eq!(world.head(), commits[0], "an undo leaves the tree");
    let command = undone["git"]["restore"].as_str().expect("a command").to_owned();
    world.cli.ok(command.split(' ').skip(1));
    assert_eq!((world.head(), world.text("a.txt")), (commits[2].clone(), "T3".to_owned()));
    assert_eq!(world.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
}

#[test]
fn a_detached_head_stays_reachable() {
    let (world, commits) = devs_in_git();
    world.git(&["checkout", "-q", "--detach"]);
    world.git(&["commit", "-q", "--allow-empty", "-m", "recorded by no work"]);
    let lost = world.head();
    let done = world.cli.json(["rewind", "to", "T2", "--yes"]);
    let id = done["id"].as_str().expect("an id");
    assert_eq!((world.head(), &done["git"]["left_branch"]), (commits[1].clone(), &json!(null)));
    assert_eq!(world.git(&["rev-parse", &format!("refs/ic/rewound/{id}/HEAD")]), lost);
}

#[test]
fn local_changes_are_refused_or_saved() {
    let (world, commits) = devs_in_git();
    world.write("a.txt", "not committed");
    world.write("staged.txt", "staged");
    world.git(&["add", "staged.txt"]);
    world.write("untracked.txt", "untracked");
    let (ledger, rows) = (world.cli.dump(), world.rows());
    for flag in ["--yes", "--dry-run"] {
        let outcome = world.cli.run(["rewind", "to", "T1", flag]);
        assert_eq!((outcome.code, outcome.error().as_str()), (Some(1), "file_conflict"), "{outcome:?}");
        assert!(outcome.stderr.contains("a.txt, staged.txt"), "{outcome:?}");
    }
    assert_eq!((world.cli.dump(), world.rows(), world.head()), (ledger, rows, commits[2].clone()));

    let done = world.cli.json(["rewind", "to", "T1", "--yes", "--force"]);
    assert_eq!((world.text("a.txt"), world.text("untracked.txt")), ("T1".to_owned(), "untracked".to_owned()));
    assert!(!world.root().join("staged.txt").exists());
    let command = done["git"]["restore"].as_str().expect("a command").to_owned();
    world.cli.ok(command.split(' ').skip(1));
    assert_eq!((world.text("a.txt"), world.text("staged.txt")), ("not committed".to_owned(), "staged".to_owned()));
}

#[test]
fn an_ignored_file_in_the_way_is_saved_whatever_any_rule_says() {
    let (world, _) = devs_in_git();
    // T4's commit has a file that is ignored, and a secret, where it does not.
    world.write(".env", "TOKEN=tracked");
    world.git(&["add", "-f", ".env"]);
    world.git(&["commit", "-q", "-m", "T4"]);
    let with_it = world.head();
    world.git(&["rm", "-q", "--cached", ".env"]);
    world.write(".gitignore", ".env\n");
    world.git(&["add", ".gitignore"]);
    world.git(&["commit", "-q", "-m", "no secrets"]);
    world.write(".env", "TOKEN=mine");
    world.sql(&format!("UPDATE tasks SET git_commit_hash = '{with_it}' WHERE task_id = 'T2'"));
    let outcome = world.cli.run(["rewind", "to", "T2", "--yes"]);
    assert_eq!((outcome.code, outcome.error().as_str()), (Some(1), "file_conflict"), "{outcome:?}");
    assert!(outcome.stderr.contains(".env"), "{outcome:?}");
    let done = world.cli.json(["rewind", "to", "T2", "--yes", "--force"]);
    assert_eq!(world.text(".env"), "TOKEN=tracked");
    let safety = done["git"]["safety_checkpoint_id"].as_str().expect("a checkpoint");
    assert_eq!(world.cli.ok(["checkpoint", "cat", safety, ".env"]), "TOKEN=mine");
}

#[test]
fn a_repository_in_the_way_is_never_replaced() {
    let (world, _) = devs_in_git();
    world.write("lib", "a file");
    world.git(&["add", "lib"]);
    world.git(&["commit", "-q", "-m", "T4"]);
    let with_it = world.head();
    world.git(&["rm", "-q", "lib"]);
    world.git(&["commit", "-q", "-m", "without"]);
    world.write("lib/x", "theirs");
    git_in(&world.root().join("lib"), &["init", "-q"]);
    world.sql(&format!("UPDATE tasks SET git_commit_hash = '{with_it}' WHERE task_id = 'T2'"));
    let outcome = world.cli.run(["rewind", "to", "T2", "--yes", "--force"]);
    assert_eq!((outcome.code, outcome.error().as_str()), (Some(1), "file_conflict"), "{outcome:?}");
    assert_eq!(world.text("lib/x"), "theirs");
}

#[test]
fn a_commit_that_is_not_here_can_be_passed_over() {
    let (world, commits) = devs_in_git();
    for commit in ["deadbeef", "main", "--all", "HEAD~1", "' OR 1=1 --", "z"] {
        world
            .connect()
            .execute("UPDATE tasks SET git_commit_hash = ?1 WHERE task_id = 'T1'", [commit])
            .expect("a commit");
        for flag in ["--yes", "--dry-run"] {
            let (exit, code) = world.cli.refused(["rewind", "to", "T1", flag]);
            assert_eq!((exit, code.as_str()), (Some(1), "commit_unusable"), "{commit}");
        }
    }
    let done = world.cli.json(["rewind", "to", "T1", "--no-git", "--yes"]);
    assert_eq!((&done["status"], &done["git"]), (&json!("done"), &json!(null)));
    assert_eq!(world.head(), commits[2]);
}

#[test]
fn a_merge_in_progress_is_refused() {
    let (world, commits) = devs_in_git();
    std::fs::write(world.root().join(".git/MERGE_HEAD"), format!("{}\n", commits[0])).expect("a merge");
    let (exit, code) = world.cli.refused(["rewind", "to", "T1", "--yes", "--force"]);
    assert_eq!((exit, code.as_str()), (Some(1), "git_in_progress"));
}

#[test]
fn rows_that_cannot_go_leave_the_tree_where_git_took_it_and_can_be_resumed() {
    let (world, commits) = devs_in_git();
    let rows = world.rows();
    let application = world.connect();
    application.execute_batch("BEGIN IMMEDIATE").expect("the application writes");
    let outcome = world.cli.run(["rewind", "to", "T1", "--yes", "--busy-timeout", "50ms"]);
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    let stopped = outcome.json();
    assert_eq!((&stopped["stage"], &stopped["stages_left"]), (&json!("git_done"), &json!(["sqlite"])));
    assert_eq!((world.head(), world.rows()), (commits[0].clone(), rows));
    let id = stopped["id"].as_str().expect("an id");
    // The tree of the first commit has the configuration; that of an older one need not.
    assert_eq!(world.cli.run(["rewind", "resume", id, "--yes", "--busy-timeout", "50ms"]).code, Some(4));
    application.execute_batch("ROLLBACK").expect("the application is done");
    let resumed = world.cli.json(["rewind", "resume", id, "--yes"]);
    assert_eq!((&resumed["status"], &resumed["git"]["left_branch"]), (&json!("done"), &json!("main")));
    assert_eq!(world.cli.json(["rewind", "to", "T1", "--yes"])["status"], "nothing_to_do");
}

#[test]
fn a_lock_of_git_stops_it_before_the_rows() {
    let (world, commits) = devs_in_git();
    let lock = world.root().join(".git/index.lock");
    std::fs::write(&lock, "").expect("a lock");
    let rows = world.rows();
    let outcome = world.cli.run(["rewind", "to", "T1", "--yes"]);
    assert!(matches!(outcome.code, Some(1 | 2 | 4)), "{outcome:?}");
    assert_eq!((world.head(), world.rows()), (commits[2].clone(), rows));
    std::fs::remove_file(lock).expect("no lock");
    let id = status(&world)["id"].as_str().expect("an id").to_owned();
    assert_eq!(world.cli.json(["rewind", "resume", &id, "--yes"])["status"], "done");
    assert_eq!(world.head(), commits[0]);
}

#[test]
fn a_database_that_git_keeps_is_not_replaced_by_its_old_self() {
    let (world, commits) = devs_in_git();
    let kept = world.root().join("app.db");
    std::fs::copy(&world.database, &kept).expect("a copy");
    world.write(".ic.yaml", "rewind: {profile: devs, database: app.db}\n");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-q", "-m", "with the rows"]);
    let (rows, head) = (ic_testkit::dump(&kept), world.head());
    for flags in [&["--dry-run"][..], &["--yes"], &["--force", "--yes"]] {
        let outcome = world.cli.run([&["rewind", "to", "T1"], flags].concat());
        assert_eq!((outcome.code, outcome.error().as_str()), (Some(1), "file_conflict"), "{outcome:?}");
        assert!(outcome.stderr.contains("is kept by git"), "{outcome:?}");
    }
    assert_eq!((ic_testkit::dump(&kept), world.head()), (rows.clone(), head.clone()));
    assert_eq!(world.cli.json(["rewind", "to", "T1", "--no-git", "--yes"])["status"], "done");
    assert_ne!(ic_testkit::dump(&kept), rows);
    assert_ne!(world.head(), commits[0]);
}
