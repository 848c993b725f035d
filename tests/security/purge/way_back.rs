//! After a purge, what the product says of the way to undo it and of the removed content is true.

use ic_testkit::{Cli, CliOutcome, git_in, write_in};

use super::{SECRET, holders, purge, repository};

/// A repository with a checkpoint, and a secret that was purged after it and stands in git's index again.
fn staged_again() -> (Cli, String) {
    let cli = repository();
    let id = cli.ok(["checkpoint", "create"]);
    write_in(cli.root(), "tok", format!("{SECRET}\n"));
    cli.ok(["checkpoint", "create"]);
    purge(&cli, "tok");
    write_in(cli.root(), "a", "changed\n");
    git_in(cli.root(), &["add", "tok"]);
    (cli, id)
}

/// Runs a command that a message named.
fn follow(cli: &Cli, command: &str) -> CliOutcome {
    let words: Vec<&str> = command.split_whitespace().skip(1).chain(["--yes"]).collect();
    cli.run(words)
}

fn read(cli: &Cli, path: &str) -> String {
    std::fs::read_to_string(cli.root().join(path)).expect("a file")
}

#[test]
fn the_way_back_from_a_restore_over_purged_content_is_one_that_works() {
    let (cli, id) = staged_again();
    let text = cli.ok(["checkpoint", "restore", &id, "--yes", "--format", "text"]);
    assert_eq!(read(&cli, "a"), "one\n", "{text}");
    let command = text.split_once("to go back: ").expect("a command").1.lines().next().expect("a line");
    let outcome = follow(&cli, command);
    assert!(matches!(outcome.code, Some(0 | 4)), "{command}: {outcome:?}");
    assert_eq!(read(&cli, "a"), "changed\n", "{command}");
    assert_eq!(holders(&cli), Vec::<String>::new());
}

#[test]
fn an_undo_that_is_refused_names_the_checkpoint_that_has_the_files() {
    let (cli, id) = staged_again();
    let report = cli.json(["checkpoint", "restore", &id, "--yes", "--json"]);
    let safety = report["safety_checkpoint_id"].as_str().expect("a safety checkpoint");
    let refused = cli.run(["redo", "--yes", "--json"]);
    assert_eq!(refused.error(), "git_unsupported", "{refused:?}");
    let hint = format!("ic checkpoint restore {} --strategy files-only", &safety[safety.len() - 8..]);
    assert!(refused.stderr.contains(&hint), "{refused:?}");
    assert!(matches!(follow(&cli, &hint).code, Some(0 | 4)), "{hint}");
    assert_eq!(read(&cli, "a"), "changed\n");
}

#[test]
fn what_a_pruned_checkpoint_left_in_the_store_is_told_when_a_purge_takes_it_out() {
    let cli = repository();
    write_in(cli.root(), "tok", format!("{SECRET}\n"));
    let leaked = cli.ok(["checkpoint", "create"]);
    // The grace of the sweep leaves its content; so does the cache, which names the tree that was looked at last.
    cli.ok(["checkpoint", "delete", &leaked, "--force"]);
    std::fs::remove_file(cli.root().join("tok")).expect("remove it");
    let purge = ["checkpoint", "purge", "tok", "--yes", "--format", "text"];
    let (first, second) = (cli.ok(purge), cli.ok(purge));
    assert_eq!(holders(&cli), Vec::<String>::new());
    assert!(first.contains("taken out") && !first.contains("had nothing"), "{first}");
    assert!(second.contains("had nothing") && !second.contains("taken out"), "{second}");
}

#[test]
fn a_sweep_without_grace_leaves_nothing_to_a_cache() {
    for verb in ["delete", "prune"] {
        let cli = repository();
        let before = objects(&cli);
        write_in(cli.root(), "tok", format!("{SECRET}\n"));
        let leaked = cli.ok(["checkpoint", "create", "--auto"]);
        assert_ne!(objects(&cli), before);
        let words: &[&str] = match verb {
            "delete" => &["delete", &leaked, "--force", "--grace", "0s"],
            _ => &["prune", "--older-than", "0s", "--keep-last", "0", "--grace", "0s"],
        };
        cli.ok([&["checkpoint"], words].concat());
        let kept = cli.ok(["checkpoint", "list", "--format", "jsonl"]);
        assert!(!kept.contains(&leaked), "{verb}: {kept}");
        assert_eq!(objects(&cli), before, "{verb}: content that nothing names");
        let next = cli.ok(["checkpoint", "create"]);
        assert_eq!(
            cli.ok(["checkpoint", "cat", &next, "tok"]),
            format!("{SECRET}\n").trim_end(),
            "{verb}: the next capture has it again"
        );
    }
}

/// The names of what the store has.
fn objects(cli: &Cli) -> Vec<String> {
    let store = rusqlite::Connection::open(cli.beside("objects.db")).expect("the store");
    let mut rows = store.prepare("SELECT hex(hash) FROM objects WHERE form <> 2 ORDER BY 1").expect("a query");
    let names = rows.query_map([], |row| row.get(0)).expect("its objects");
    names.collect::<Result<_, _>>().expect("names")
}

#[test]
fn a_repair_after_the_loss_of_the_store_says_which_purges_to_make_again() {
    for loss in ["removed", "overwritten"] {
        let cli = repository();
        write_in(cli.root(), "tok", format!("{SECRET}\n"));
        cli.ok(["checkpoint", "create"]);
        let whole = cli.json(["checkpoint", "verify", "--repair", "--json"]);
        assert_eq!(whole["repaired"]["purge_again"], serde_json::json!([]), "nothing was purged");
        purge(&cli, "tok");
        let whole = cli.json(["checkpoint", "verify", "--repair", "--json"]);
        assert_eq!(whole["repaired"]["purge_again"], serde_json::json!([]), "the mark is there");
        let store = cli.beside("objects.db");
        match loss {
            "removed" => std::fs::remove_file(store).expect("the store"),
            _ => std::fs::write(store, "no database at all").expect("the store"),
        }
        let repaired = cli.json(["checkpoint", "verify", "--repair", "--json"]);
        assert_eq!(repaired["repaired"]["purge_again"][0]["path"], "tok", "{loss}: {repaired}");
        let text = cli.ok(["checkpoint", "verify", "--repair", "--format", "text"]);
        let command = text.split_once("mark of it: ").map(|(_, command)| command.lines().next());
        let command = command.flatten().unwrap_or_else(|| panic!("{loss}: no command in {text}"));
        cli.ok(["checkpoint", "create"]);
        assert_eq!(follow(&cli, command).code, Some(0), "{loss}: {command}");
        std::fs::remove_file(cli.beside("objects.damaged")).unwrap_or_default();
        assert_eq!(holders(&cli), Vec::<String>::new(), "{loss}");
    }
}
