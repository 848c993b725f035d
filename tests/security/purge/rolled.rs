//! After a purge removed content that the undo of a rollback needs, what the product offers instead works.

use ic_testkit::{Cli, CliOutcome, git_in, write_in};

use super::{SECRET, holders, purge, repository};

/// A run in its second phase, whose tree has a secret in git's index and a change.
fn with_secret_staged() -> (Cli, String) {
    let cli = repository();
    let run = cli.ok(["run", "create", "--goal", "g", "--phases", "a,b,c"]);
    cli.ok(["run", "advance", &run]);
    write_in(cli.root(), "tok", format!("{SECRET}\n"));
    git_in(cli.root(), &["add", "tok"]);
    write_in(cli.root(), "a", "changed\n");
    cli.ok(["checkpoint", "create"]);
    (cli, run)
}

fn rollback(run: &str) -> [&str; 10] {
    ["run", "rollback", run, "--to-phase", "a", "--include-target", "--layer=all", "--yes", "--format", "text"]
}

fn roll_back(cli: &Cli, run: &str) -> String {
    cli.ok(rollback(run))
}

/// The commands that a text offers and that change something: what stands behind the last colon of its lines.
fn offered(text: &str) -> Vec<String> {
    let commands = text.lines().filter_map(|line| line.rsplit_once(": ic ")).map(|(_, rest)| rest.to_owned());
    commands.filter(|rest| ["redo ", "checkpoint restore"].iter().any(|one| rest.starts_with(one))).collect()
}

/// Types a command, and confirms it.
fn type_it(cli: &Cli, command: &str) -> CliOutcome {
    let words = command.split_whitespace().filter(|word| *word != "--yes").chain(["--yes"]);
    cli.run(words.collect::<Vec<_>>())
}

/// Exactly one command is offered to undo the rollback, and it works.
fn assert_offer_works(cli: &Cli, text: &str) {
    let commands = offered(text);
    assert_eq!(commands.len(), 1, "{text}");
    assert!(text.contains("was purged") && !text.contains("ic redo "), "{text}");
    let outcome = type_it(cli, &commands[0]);
    // What was purged is named as left out.
    assert!(matches!(outcome.code, Some(0 | 4)), "{}: {outcome:?}", commands[0]);
    let content = std::fs::read_to_string(cli.root().join("a")).expect("a file");
    assert_eq!(content, "changed\n", "{}", commands[0]);
    assert_eq!(holders(cli), Vec::<String>::new());
}

#[test]
fn the_way_back_that_a_rollback_offers_is_one_that_works() {
    let (cli, run) = with_secret_staged();
    let text = roll_back(&cli, &run);
    let undo = offered(&text);
    assert_eq!(undo.len(), 1, "{text}");
    assert!(undo[0].starts_with("redo "), "nothing was purged: {text}");
    assert_eq!(type_it(&cli, &undo[0]).code, Some(0), "{undo:?}");
    // The purged content stands in git's index again when the run is rolled back.
    let (cli, run) = with_secret_staged();
    purge(&cli, "tok");
    git_in(cli.root(), &["add", "tok"]);
    let text = roll_back(&cli, &run);
    assert_offer_works(&cli, &text);
}

#[test]
fn a_rollback_whose_undo_a_purge_took_says_so_when_it_is_shown() {
    let (cli, run) = with_secret_staged();
    roll_back(&cli, &run);
    let show = || cli.ok(["rollback", "show", &run, "--format", "text"]);
    assert!(!show().contains("purged"), "{}", show());
    purge(&cli, "tok");
    assert_eq!(cli.run(["redo", &run, "--yes"]).error(), "git_unsupported");
    assert_offer_works(&cli, &show());
}

/// How many statements a rollback has.
fn statements() -> usize {
    let (cli, run) = with_secret_staged();
    let log = cli.home().join("statements");
    let mut command = cli.command(rollback(&run));
    let output = command.env("IC_TEST_SQL_LOG", &log).output().expect("start ic");
    assert!(output.status.success(), "{output:?}");
    std::fs::read_to_string(log).expect("the statements").lines().count()
}

#[test]
fn a_rollback_that_stopped_offers_no_abandon_that_a_purge_took() {
    let all = statements();
    for n in (1..all).rev() {
        let (cli, run) = with_secret_staged();
        let mut command = cli.command(rollback(&run));
        let output = command.env("IC_TEST_ABORT_BEFORE", n.to_string()).output().expect("start ic");
        assert!(!output.status.success(), "before {n} of {all}");
        let show = || cli.ok(["rollback", "show", &run, "--format", "text"]);
        if !show().contains("rollback abort") {
            continue;
        }
        purge(&cli, "tok");
        let text = show();
        assert!(text.contains("was purged") && !text.contains("rollback abort"), "before {n}: {text}");
        assert_eq!(cli.run(["rollback", "abort", &run, "--yes"]).error(), "git_unsupported");
        let resume = text.lines().find_map(|line| line.split_once("to resume: ic ")).expect("a way on").1;
        assert_eq!(type_it(&cli, resume).code, Some(0), "{resume}");
        assert_eq!(holders(&cli), Vec::<String>::new());
        return;
    }
    panic!("a rollback of {all} statements never stops");
}
