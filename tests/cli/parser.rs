//! Flags: where they may stand, and that none is guessed.

use crate::support::{Project, chain, story};

#[test]
fn global_flags_stand_anywhere() {
    let project = Project::new();
    let run = chain(&project, "a,b,c", "b");
    let db = project.cli.db().to_string_lossy().into_owned();
    let wanted = project.json(&format!("run status {run}"));
    for line in [
        format!("--json --db {db} -C / run status {run}"),
        format!("--db {db} run --json -C / status {run}"),
        format!("run -C / status --db={db} {run} --json"),
        format!("run status --format=json {run} --db {db} -C/ --busy-timeout 100ms --quiet"),
        format!("--busy-timeout 1s run status {run} -C / --format json --db {db}"),
    ] {
        assert_eq!(project.run(&line).json(), wanted, "{line}");
    }
}

#[test]
fn a_global_option_that_is_repeated_has_one_value() {
    let project = Project::new();
    let run = chain(&project, "a,b,c", "b");
    let wanted = project.json(&format!("run status {run}"));
    let db = project.cli.db().to_string_lossy().into_owned();
    // On one level of the line or on several: the same twice is that.
    for line in [
        format!("--json run status {run} --json"),
        format!("--json run status {run} --format json"),
        format!("--format json --format=json run status {run} --json"),
        format!("--db {db} run --db={db} status {run} --db {db} --json"),
        format!("--busy-timeout 1s run status {run} --busy-timeout 1000ms --quiet --quiet --json"),
        format!("-C / -C/ --db {db} run status {run} -C / --json"),
    ] {
        let outcome = project.run(&line);
        assert_eq!((outcome.code, outcome.json()), (Some(0), wanted.clone()), "{line}: {outcome:?}");
    }
    // Two that differ are refused, and none of them wins silently.
    for (line, two) in [
        ("--db a run list --db b", "--db is given two values: \"a\" and \"b\""),
        ("run --db a list --db=b", "--db is given two values: \"a\" and \"b\""),
        ("run list --db a --db b", "--db is given two values: \"a\" and \"b\""),
        ("--format json run list --format jsonl", "--format is given two values: \"json\" and \"jsonl\""),
        ("run list --format json --format jsonl", "--format is given two values: \"json\" and \"jsonl\""),
        ("--format jsonl run list --json", "--format is given two values: \"jsonl\" and \"json\""),
        ("-C / run list -C.", "-C is given two values: \"/\" and \".\""),
        ("-vC / run list -C .", "-C is given two values: \"/\" and \".\""),
        ("--busy-timeout 1s run list --busy-timeout 2s", "--busy-timeout is given two values: \"1s\" and \"2s\""),
    ] {
        let outcome = project.run(line);
        let error = &outcome.stderr.replace("\\\"", "\"");
        assert_eq!((outcome.code, outcome.error().as_str()), (Some(3), "usage"), "{line}: {outcome:?}");
        assert!(error.contains(two) && outcome.stdout.is_empty(), "{line}: {outcome:?}");
    }
    // What stands after `--` is a program's own.
    let line = format!("compensation add {run} --step s --db {db} --exec -- true --db other --format text");
    assert_eq!(project.run(&line).code, Some(0));
}

#[test]
fn the_ledger_is_named_by_flag_then_environment_then_place() {
    let here = Project::new();
    let other = Project::new();
    let run = chain(&other, "a,b", "a");
    let db = other.cli.db();
    let elsewhere = here.cli.home().join("none.db");
    assert_eq!(here.ok("where"), here.cli.db().to_string_lossy());
    let line = format!("run status {run} --json");
    assert_eq!(here.run(&line).error(), "run_not_found");
    assert_eq!(here.run_with("IC_DB", &db, &line).code, Some(0));
    assert_eq!(here.run(&format!("{line} --db {}", db.display())).code, Some(0));
    let both = format!("{line} --db {}", db.display());
    assert_eq!(here.run_with("IC_DB", &elsewhere, &both).code, Some(0), "the flag is stronger");
    assert_eq!(here.run_with("IC_DB", &elsewhere, &line).error(), "no_ledger");
    assert_eq!(here.run(&format!("{line} -C {}", other.root().display())).code, Some(0));
    let relative = format!("{line} -C {} --db .ic/ic.db", other.root().display());
    assert_eq!(here.run(&relative).code, Some(0), "a relative path is meant from -C");
    assert_eq!(here.run_with("IC_DB", "", "run list").error(), "invalid_value");
}

#[test]
fn init_makes_exactly_the_named_file() {
    let project = Project::without_ledger();
    let db = project.cli.home().join("deep/er/my.db");
    let made = project.run(&format!("init --db {} --json", db.display())).json();
    assert_eq!((made["created"].as_bool(), made["db"].as_str()), (Some(true), db.to_str()));
    assert!(db.exists() && !project.cli.db().exists());
    assert_eq!(project.run("run list").error(), "no_ledger", "it is found only by name");
    assert_eq!(project.run_with("IC_DB", &db, "run list").stdout, "[]\n");
}

#[test]
fn what_is_not_known_is_a_usage_error() {
    let project = Project::new();
    story(&project);
    for line in [
        "runs list",
        "r list",
        "run stat @",
        "run lis",
        "run delete @",
        "run status @ --jsn",
        "run status @ --js",
        "run status @ extra",
        "run status @ -j",
        "run status @ --format yaml",
        "run status @ --format",
        "run status @ --format text --json",
        "run status",
        "run list --limit",
        "run create --goal",
        "run create --goal x --phase a,b",
        "run advance @ --expect planned",
        "run advance @ --prio 4",
        "run cancel @ --why x",
        "run set @ --complexity 9",
        "run set @ --auto-advance maybe",
        "gate override @",
        "run skip @ polish",
        "dispatch fail 0a00000f",
        "events tail --folow",
        "events tail @ --all",
        "completions bash --nope",
    ] {
        let (exit, code) = project.refused(line);
        assert_eq!(exit, 3, "{line}: {code}");
        assert!(matches!(code.as_str(), "usage" | "invalid_value"), "{line}: {code}");
    }
}

#[test]
fn what_could_stand_there_is_named() {
    let project = Project::new();
    for (line, first) in [
        ("", "status, log, show, diff, blame, undo, redo, restore, ui, init"),
        ("qqq", "status, log, show, diff, blame, undo, redo, restore, ui, init"),
        ("qqq run", "status, log, show, diff, blame, undo, redo, restore, ui, init"),
        ("run", "create, list, status"),
        ("-C / run --json", "create, list, status"),
        ("run qqq agent", "create, list, status"),
        ("run agent", "add, list, update"),
        ("help run qqq", "create, list, status"),
        ("run agent help qqq", "add, list, update"),
        ("--json run agent qqq", "add, list, update"),
    ] {
        let outcome = project.run(&format!("{line} --format json"));
        assert!(outcome.stderr.contains(&format!("possible commands: {first}")), "{line}: {outcome:?}");
    }
    for (line, hint) in [
        ("advance @", "did you mean ic run advance?"),
        ("artifact add", "did you mean ic run artifact?"),
        ("resume @", "did you mean ic rollback resume, ic workflow resume, or ic rewind resume?"),
        ("checkout x", "did you mean ic restore or ic checkpoint restore?"),
        ("-C . checkout x", "did you mean ic restore or ic checkpoint restore?"),
        ("--busy-timeout 1s -vC . checkout x", "did you mean ic restore or ic checkpoint restore?"),
        ("revert", "did you mean ic undo?"),
        ("verify", "did you mean ic checkpoint verify or ic events verify?"),
        ("prune", "did you mean ic checkpoint prune?"),
        ("gc", "did you mean ic checkpoint prune?"),
        ("start", "did you mean ic dispatch start, ic run create, or ic workflow run?"),
        ("list", "did you mean ic log or ic run list?"),
        ("--json ls", "did you mean ic log or ic run list?"),
        ("save", "did you mean ic checkpoint create?"),
        ("snapshot", "did you mean ic checkpoint create?"),
        ("search x", "did you mean ic log, ic blame, or ic ui?"),
        ("export", "did you mean ic backup or ic events tail --format jsonl?"),
        ("workflow checkpoint info x", "did you mean ic checkpoint?"),
        ("log --limit 5", "add --help to see all options"),
        ("op log", "did you mean ic log?"),
        ("abort @", "did you mean ic rollback abort?"),
        ("continue", "did you mean ic session continue?"),
        ("stop", "did you mean ic dispatch cancel or ic run cancel?"),
        ("worktree list", "did you mean ic fork?"),
        ("events tail -f", "did you mean --follow?"),
        ("run skip @", "as in: ic run skip @ "),
        ("run create", "ic run create --goal "),
        ("completions tcsh", "possible values: bash, zsh, fish"),
        ("run lis", "did you mean ic run list?"),
        ("run crete", "did you mean ic run create or ic run reopen?"),
        ("status --run @", "give it without --run: ic status RUN\""),
        ("run advance --run @", "give it without --run: ic run advance RUN\""),
        ("undo --phase @", "add --help to see all options"),
    ] {
        let outcome = project.run(&format!("{line} --format json"));
        assert_eq!(outcome.code, Some(3), "{line}: {outcome:?}");
        assert!(outcome.stderr.contains(hint), "{line}: {outcome:?}");
    }
    for line in ["help run rollback", "run help rollback", "run rollback --help"] {
        assert!(project.ok(line).contains("ic run rollback @ --to-phase planned"), "{line}");
    }
}

/// What is proposed instead of a word of other tools must be there.
#[test]
fn every_command_that_is_meant_exists() {
    let project = Project::new();
    let words = "checkout resume revert verify prune start list save search export history op info annotate cat delete create stop abort \
                 continue ps sessions watch worktree merge setup web doctor";
    for word in words.split_whitespace() {
        let error = project.run(&format!("{word} --format json")).stderr;
        let hint = error.split("did you mean ").nth(1).and_then(|rest| rest.split('?').next());
        let hint = hint.unwrap_or_else(|| panic!("{word}: {error}"));
        for command in hint.split(", ").flat_map(|part| part.split(" or ")) {
            let words = command.trim_start_matches("or ").split(' ').skip(1).take_while(|word| !word.starts_with('-'));
            let help = project.run_words(words.chain(["--help"]));
            assert_eq!(help.code, Some(0), "{word}: {command}: {help:?}");
        }
    }
}

#[test]
fn a_mistyped_preview_is_never_the_deed() {
    let project = Project::new();
    story(&project);
    for flag in [
        "--dryrun", "--dry_run", "--dry-run=yes", "--dry-run=true", "--dry-run=false", "--dry", "--dry-ru",
        "--dry-runn", "--DRY-RUN", "-dry-run", "-- --dry-run", "dry-run", "--dry-run --dry-run", "--no-dry-run",
        "—dry-run",
    ] {
        let (exit, code) = project.refused(&format!("run rollback @ --to-phase planned {flag}"));
        assert_eq!((exit, code.as_str()), (3, "usage"), "{flag}");
    }
    assert_eq!(project.ok("run phase @"), "executing");
    for preview in ["--dry-run", "-n", "-ny"] {
        assert_eq!(project.json(&format!("run rollback @ {preview} --to-phase planned"))["status"], "planned");
    }
    assert_eq!(project.ok("run phase @"), "executing");
}

#[test]
fn a_flag_that_is_given_twice_is_refused() {
    let project = Project::new();
    story(&project);
    for line in [
        "run rollback @ --to-phase planned --to-phase strategized",
        "run rollback @ --to-phase planned --reason a --reason b",
        "run advance @ --priority 4 --priority 0",
        "run create --goal a --goal b",
        "run list --limit 1 --limit 2",
        "run list --db a --db b",
        "run set @ --complexity 1 --complexity 2",
        "dispatch complete 0a00000f --verdict pass --verdict fail",
    ] {
        assert_eq!(project.refused(line), (3, "usage".to_owned()), "{line}");
    }
}

#[test]
fn flags_that_need_each_other() {
    let project = Project::new();
    story(&project);
    for line in [
        "run advance @ --disable-gates",
        "run advance @ --reason 'no flag'",
        "run rollback @",
        "run rollback @ --include-target",
        "run rollback @ --to-phase planned --phase planned",
        "run rollback @ --phase planned",
        "run rollback @ --layer workflow",
        "dispatch list --phase planned",
        "dispatch record 0a00000f",
        "dispatch record 0a00000f --stdin --commit abcdef1",
        "dispatch tokens 0a00000f --in 1",
        "init --store x --db y",
    ] {
        assert_eq!(project.refused(line), (3, "usage".to_owned()), "{line}");
    }
}

#[test]
fn flags_for_what_is_not_there_yet_are_accepted_and_change_nothing() {
    let project = Project::new();
    chain(&project, "a,b,c", "a");
    let record = project.json("run advance @ --no-checkpoint");
    assert_eq!((&record["to_phase"], &record["checkpoint_id"]), (&"b".into(), &serde_json::Value::Null));
    assert_eq!(project.json("run rollback @ --to-phase a --yes")["status"], "rolled_back");
}

#[test]
fn the_working_directory_must_exist() {
    let project = Project::new();
    project.write("file", "x");
    assert_eq!(project.refused("run list -C nowhere"), (3, "invalid_value".to_owned()));
    assert_eq!(project.refused("run list -C file"), (3, "invalid_value".to_owned()));
}

#[test]
fn busy_timeouts_are_durations() {
    let project = Project::new();
    for good in ["0s", "500ms", "5s", "1h", "1m 30s"] {
        assert_eq!(project.run_words(["run", "list", "--busy-timeout", good]).code, Some(0), "{good}");
    }
    for bad in ["5", "2h", "-1s", "soon", "", "99999999999999999999s"] {
        let words = ["run", "list", &format!("--busy-timeout={bad}")];
        assert_eq!(project.refused_words(words), (3, "invalid_value".to_owned()), "{bad}");
    }
}

#[test]
fn a_missing_value_is_not_followed_by_an_empty_list() {
    let project = Project::new();
    let outcome = project.run("run list --limit");
    assert_eq!((outcome.code, outcome.error()), (Some(3), "invalid_value".to_owned()));
    assert!(outcome.stderr.contains("\"hint\":\"add --help to see all options\""), "{}", outcome.stderr);
}
