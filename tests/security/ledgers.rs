//! A ledger holds commands that a rollback runs: one that others made is not taken for the user's.

use std::os::unix::fs::{PermissionsExt, symlink};

use ic_testkit::{git_in, write_in};

use crate::project::{bare, give_away, is_root, project};

#[test]
fn a_ledger_that_came_with_a_clone_is_refused() {
    for place in [".ic", "sub/.ic", "pointed", "linked"] {
        // An attacker prepares a repository with a ledger in it.
        let theirs = bare();
        let store = match place {
            "pointed" | "linked" => "data",
            place => place,
        };
        theirs.ok(["--db", &format!("{store}/ic.db"), "init"]);
        theirs.ok(["--db", &format!("{store}/ic.db"), "run", "create", "--goal", "theirs"]);
        match place {
            "pointed" => drop(write_in(theirs.root(), ".ic", "data\n")),
            "linked" => symlink("data", theirs.root().join(".ic")).expect("a link"),
            _ => {}
        }
        git_in(theirs.root(), &["init", "-q"]);
        git_in(theirs.root(), &["add", "-f", "."]);
        git_in(theirs.root(), &["commit", "-qm", "all"]);
        let mine = bare();
        let clone = mine.home().join("clone");
        git_in(mine.home(), &["clone", "-q", &theirs.root().to_string_lossy(), &clone.to_string_lossy()]);
        let directory = if place == "sub/.ic" { clone.join("sub") } else { clone.clone() };
        let at = directory.to_string_lossy().into_owned();
        let refused = mine.run(["-C", &at, "run", "list"]);
        assert_eq!((refused.code, refused.error().as_str()), (Some(3), "no_ledger"), "{place}");
        assert!(refused.stderr.contains("came with the repository"), "{place}: {refused:?}");
        // A user who trusts it can name it with `--db`.
        let db = clone.join(store).join("ic.db").to_string_lossy().into_owned();
        assert!(mine.ok(["-C", &at, "--db", &db, "run", "list"]).contains("theirs"), "{place}");
    }
}

#[test]
fn a_pointer_to_a_server_that_came_with_a_clone_is_refused() {
    let theirs = bare();
    write_in(theirs.root(), ".ic/remote", "postgres://them@db.example/spy?ledger=spy\n");
    git_in(theirs.root(), &["init", "-q"]);
    git_in(theirs.root(), &["add", "-f", "."]);
    git_in(theirs.root(), &["commit", "-qm", "all"]);
    let mine = bare();
    let clone = mine.home().join("clone");
    git_in(mine.home(), &["clone", "-q", &theirs.root().to_string_lossy(), &clone.to_string_lossy()]);
    let refused = mine.run(["-C", &clone.to_string_lossy(), "run", "list"]);
    assert_eq!((refused.code, refused.error().as_str()), (Some(3), "no_ledger"));
    assert!(refused.stderr.contains("came with the repository"), "{refused:?}");
    // A user who names a ledger of the same name still has a store of their own.
    let call = ["-C", &clone.to_string_lossy(), "--db", "postgres://me@here.example/spy?ledger=spy", "where", "--json"];
    let place = mine.json(call);
    assert_eq!(place["store"], clone.join(".git/ic").to_str().expect("a path"), "{place}");
}

#[test]
fn a_ledger_of_ones_own_stays_when_a_repository_is_made_around_it() {
    let cli = project();
    cli.ok(["run", "create", "--goal", "mine"]);
    git_in(cli.root(), &["init", "-q"]);
    git_in(cli.root(), &["add", "."]);
    git_in(cli.root(), &["commit", "-qm", "all", "--allow-empty"]);
    assert!(cli.ok(["run", "list"]).contains("mine"));
}

#[test]
fn a_ledger_of_another_user_is_refused_unless_it_is_named() {
    if !is_root() {
        return;
    }
    for given in [".ic", ".ic/ic.db"] {
        let cli = project();
        give_away(cli.root().join(given));
        let refused = cli.run(["run", "list"]);
        assert_eq!((refused.code, refused.error().as_str()), (Some(2), "permission_denied"), "{given}");
        assert!(refused.stderr.contains("another user"), "{refused:?}");
        assert_eq!(cli.run(["--db", ".ic/ic.db", "run", "list"]).code, Some(0), "{given}");
    }
}

#[test]
fn no_ledger_is_begun_where_everybody_may_write() {
    let cli = bare();
    let store = cli.home().join("shared");
    std::fs::create_dir(&store).expect("a directory");
    std::fs::set_permissions(&store, std::fs::Permissions::from_mode(0o1777)).expect("its mode");
    let db = store.join("ic.db").to_string_lossy().into_owned();
    assert_eq!(cli.refused(["--db", &db, "init"]), (Some(2), "permission_denied".to_owned()));
    let own = store.join("own/ic.db").to_string_lossy().into_owned();
    cli.ok(["--db", &own, "init"]);
    assert_eq!(cli.run(["--db", &own, "health"]).code, Some(0));
    std::fs::set_permissions(store.join("own"), std::fs::Permissions::from_mode(0o777)).expect("its mode");
    let health = cli.run(["--db", &own, "health"]);
    assert_eq!(health.code, Some(2));
    assert!(health.stdout.contains("others can replace the ledger"), "{health:?}");
}

#[test]
fn a_configuration_that_somebody_else_left_where_everybody_may_write_is_refused() {
    if !is_root() {
        return;
    }
    let cli = project();
    let config = write_in(cli.root(), ".ic.yaml", "rollback: {enabled: false}\n");
    give_away(&config);
    assert_eq!(cli.run(["config", "show"]).code, Some(0), "whom the directory's owner lets in is theirs to say");
    std::fs::set_permissions(cli.root(), std::fs::Permissions::from_mode(0o1777)).expect("its mode");
    assert_eq!(cli.refused(["config", "show"]), (Some(3), "invalid_config".to_owned()));
}
