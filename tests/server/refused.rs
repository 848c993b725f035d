//! What a ledger on a server does not do yet is refused with a code, and changes nothing; what is not there is said.

use crate::cluster::{cluster, project_at};

#[test]
fn what_reaches_beyond_the_record_is_refused_and_changes_nothing() {
    let Some(cluster) = cluster(&[]) else { return };
    let cli = cluster.project("shop").with_checkpoints();
    std::fs::write(cli.root().join("a.txt"), "a").expect("a file");
    let flow = "name: f\nsteps:\n  - id: s\n    phase: plan\n    run: [touch, made]\n    compensate: {exec: [rm, made]}\n";
    std::fs::write(cli.root().join("f.yaml"), flow).expect("a workflow");
    let run = cli.ok(["run", "create", "--goal", "Port", "--phases", "plan,build,ship"]);
    cli.ok(["run", "advance", &run]);
    let before = cli.dump();
    for words in [
        &["checkpoint", "create"][..],
        &["checkpoint", "list"],
        &["checkpoint", "undo", "--yes"],
        &["workflow", "run", "f.yaml"],
        &["compensation", "add", &run, "--step", "s", "--exec", "--", "true"],
        &["compensation", "run", &run, "--yes"],
        &["run", "rollback", &run, "--to-phase", "plan", "--layer=all", "--yes"],
        &["run", "rollback", &run, "--to-phase", "plan", "--layer=files", "--dry-run"],
        &["undo", "created", "--run", &run, "--yes"],
        &["backup", "copy.db"],
    ] {
        let outcome = cli.run(words);
        assert_eq!(
            (outcome.code, outcome.error()),
            (Some(1), "not_on_server".to_owned()),
            "{words:?}: {outcome:?}"
        );
    }
    assert_eq!(cli.dump(), before);
    assert!(!cli.root().join("made").exists() && !cli.root().join("copy.db").exists());
    let kept: Vec<_> = std::fs::read_dir(cli.root().join(".ic"))
        .expect("the store")
        .map(|entry| entry.expect("an entry").file_name())
        .filter(|name| name != "remote" && name != ".gitignore")
        .collect();
    assert!(kept.is_empty(), "no content is kept: {kept:?}");
    // The record alone goes back, and nothing more is offered.
    let preview = cli.ok(["run", "rollback", &run, "--to-phase", "plan", "--dry-run", "--format", "text"]);
    assert!(preview.contains("only the record is rolled back.") && !preview.contains("--layer"), "{preview}");
    cli.ok(["run", "rollback", &run, "--to-phase", "plan"]);
    cli.assert_sound("after the rollback");
}

#[test]
fn what_is_not_there_is_said_with_its_code() {
    let Some(cluster) = cluster(&[]) else { return };
    let none = project_at(&cluster.url("none"));
    assert_eq!(none.refused(["run", "list"]), (Some(3), "no_ledger".to_owned()));
    let database = cluster.url("shop").replace("/postgres?", "/nothing?");
    assert_eq!(project_at(&database).refused(["run", "list"]), (Some(3), "no_ledger".to_owned()));
    let shop = cluster.project("shop");
    cluster.psql("CREATE SCHEMA theirs; CREATE TABLE theirs.t (n int)");
    let theirs = project_at(&cluster.url("theirs"));
    assert_eq!(theirs.refused(["init"]), (Some(2), "foreign_database".to_owned()));
    assert!(!theirs.root().join(".ic/remote").exists());
    cluster.stop("fast");
    let outcome = shop.run(["run", "list"]);
    assert_eq!((outcome.code, outcome.error()), (Some(2), "unreachable".to_owned()), "{outcome:?}");
}

#[test]
fn text_with_a_zero_character_and_paths_that_no_index_holds_are_refused() {
    let Some(cluster) = cluster(&[]) else { return };
    let cli = cluster.project("shop");
    let run = cli.ok(["run", "create", "--goal", "Port"]);
    let before = cli.dump();
    let set = cli.run(["run", "set", &run, "--metadata-merge", "{\"a\": \"x\\u0000y\"}"]);
    assert_eq!(set.code, Some(0), "JSON escapes it: {set:?}");
    assert_ne!(cli.dump(), before);
    let dispatch = cli.ok(["dispatch", "create", &run]);
    // Random enough not to be compressed below what an index holds.
    let mut state = 7_u64;
    let name: String = (0..3900)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'a' + u8::try_from(state >> 59).unwrap_or(0) % 26)
        })
        .collect();
    cli.ok(["dispatch", "record", &dispatch, "--file", &name]);
    cli.assert_sound("with a long path");
}
