//! Files that are no ledgers, or not yet ours to read. Each has its code, and is not changed.

use ic_testkit::Cli;
use rusqlite::Connection;

#[test]
fn each_wrong_file_has_its_code_and_stays_as_it_is() {
    let cli = Cli::new(env!("CARGO_BIN_EXE_ic"));
    let ledger = std::fs::read(cli.db()).expect("a ledger");
    let at = |name: &str| cli.home().join(name);
    std::fs::write(at("text"), "# not a database\n".repeat(100)).expect("a text file");
    std::fs::write(at("empty"), "").expect("an empty file");
    std::fs::write(at("short"), &ledger[..60]).expect("a short file");
    std::fs::write(at("newer"), &ledger).expect("a newer ledger");
    Connection::open(at("newer"))
        .and_then(|c| {
            c.execute_batch("PRAGMA user_version=99; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode=DELETE;")
        })
        .expect("a newer ledger");
    Connection::open(at("foreign")).and_then(|c| c.execute_batch("CREATE TABLE notes(t)")).expect("another database");
    std::fs::create_dir(at("directory")).expect("a directory");
    for (name, codes) in [
        ("text", &["foreign_database"][..]),
        ("empty", &["no_ledger"]),
        ("short", &["foreign_database", "corrupt"]),
        ("newer", &["newer_schema"]),
        ("foreign", &["foreign_database"]),
        ("directory", &["no_ledger"]),
        ("missing", &["no_ledger"]),
        ("missing/deeper", &["no_ledger"]),
        ("text/deeper", &["no_ledger", "io_error"]),
    ] {
        let path = at(name);
        let before = std::fs::read(&path).ok();
        for verb in [&["run", "list"][..], &["run", "create", "--goal", "x"], &["health"]] {
            let outcome = cli.run(verb.iter().map(std::ffi::OsStr::new).chain(["--db".as_ref(), path.as_os_str()]));
            assert!(matches!(outcome.code, Some(2 | 3)), "{name}: {outcome:?}");
            assert!(codes.contains(&outcome.error().as_str()), "{name}: {outcome:?}");
        }
        assert_eq!(std::fs::read(&path).ok(), before, "{name} was changed");
    }
}

#[test]
fn init_takes_over_nothing_that_is_somebody_elses() {
    let cli = Cli::without_ledger(env!("CARGO_BIN_EXE_ic"));
    let path = cli.home().join("notes.db");
    Connection::open(&path).and_then(|c| c.execute_batch("CREATE TABLE notes(t)")).expect("another database");
    let before = std::fs::read(&path).expect("its bytes");
    let refused = cli.run(["init".as_ref(), "--db".as_ref(), path.as_os_str()]);
    assert_eq!((refused.code, refused.error()), (Some(2), "foreign_database".to_owned()));
    assert_eq!(std::fs::read(&path).expect("its bytes"), before);
}
