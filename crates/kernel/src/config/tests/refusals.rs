//! What a configuration must not be.

use ic_base::{Code, Diagnosis};
use serde_json::json;

use super::{checkpointing, only, read, retention};
use crate::config::Config;

/// The file is refused at this place with these words.
fn refused(text: impl AsRef<[u8]>, place: (u64, u64), says: &str) -> Diagnosis {
    let text = text.as_ref();
    let shown = String::from_utf8_lossy(&text[..text.len().min(200)]).into_owned();
    let error = read(text).expect_err(&shown);
    assert_eq!(error.code(), Code::InvalidConfig, "{shown}");
    let (line, column) = place;
    let details = error.details();
    assert_eq!((&details["line"], &details["column"]), (&json!(line), &json!(column)), "{shown}: {error}");
    let file = details["file"].as_str().unwrap();
    let message = format!("{file}, line {line}, column {column}: ");
    assert!(error.message().starts_with(&message) && error.message().contains(says), "{shown}: {error}");
    assert!(error.message().len() < file.len() + 250 && error.get_hint().is_some(), "{shown}: {error}");
    error
}

#[test]
fn values_of_the_wrong_kind_are_refused() {
    for (line, column, says) in [
        ("auto: yes", 11, "the text \"yes\" where true or false is expected"),
        ("auto: 'true'", 11, "the text \"true\" where true or false"),
        ("auto: 1", 11, "`1` where true or false"),
        ("auto:", 9, "nothing where true or false"),
        ("auto: [true]", 11, "a list where true or false"),
        ("max-files: 1MB", 16, "the text \"1MB\" where a whole number, 1 or more, is expected"),
        ("max-files: '10'", 16, "the text \"10\" where a whole number"),
        ("max-files: 1.5", 16, "`1.5` where a whole number"),
        ("max-files: null", 16, "nothing where a whole number"),
        ("max-file-size: true", 20, "`true` where a size, as in 10MB or 64KiB, is expected"),
        ("max-file-size: 1.5", 20, "`1.5` where a size"),
        ("max-file-size: null", 20, "nothing where a size"),
        ("max-file-size: {a: 1}", 20, "a mapping where a size"),
        ("include-ignored: dist/", 22, "a list is expected"),
        ("include-ignored: {a: 1}", 22, "a list is expected"),
        ("include-ignored: [a, [b]]", 26, "a single text is expected"),
        ("include-ignored: [a, null]", 26, "nothing where a single text"),
    ] {
        refused(checkpointing(line), (3, column), says);
    }
    for (line, column, says) in [
        ("max-age: 7", 14, "`7` where a duration with its unit, as in 7d or 36h, is expected"),
        ("max-age: 0", 14, "`0` where a duration"),
        ("max-age: [7d]", 14, "a list where a duration"),
        ("keep-last: many", 16, "the text \"many\" where a whole number"),
    ] {
        refused(retention(line), (3, column), says);
    }
}

#[test]
fn values_out_of_range_are_refused() {
    for (line, column, says) in [
        ("max-files: 0", 16, "0 is too small; the least is 1"),
        ("max-files: -1", 16, "-1 is too small"),
        ("max-file-size: 0", 20, "\"0\" is too small for a size"),
        ("max-file-size: 0MB", 20, "\"0MB\" is too small for a size"),
        ("max-file-size: 99999999999GB", 20, "too large for a size"),
        ("max-file-size: 99999999999999999999B", 20, "too large for a size"),
    ] {
        refused(checkpointing(line), (3, column), says);
    }
    for (line, column, says) in [
        ("max-size: 0", 15, "too small for a size"),
        ("keep-last: -1", 16, "-1 is too small; the least is 0"),
        ("keep-last: 4294967296", 16, "4294967296 is too large"),
    ] {
        refused(retention(line), (3, column), says);
    }
}

#[test]
fn bad_units_are_refused() {
    for value in ["10mb", "10 XB", "3 parsecs", "1.5MB", "MB", "-1MB", "+1MB", "10MB 5KB", "''", "10\u{a0}MB"] {
        refused(checkpointing(&format!("max-file-size: {value}")), (3, 20), "is not a size; write 10MB");
    }
    for value in ["soon", "7 parsecs", "-1d", "d", "''", "99999999999999999999d"] {
        refused(retention(&format!("max-age: {value}")), (3, 14), "is not a duration; write 7d");
    }
}

#[test]
fn unknown_keys_are_refused_with_what_was_meant() {
    for (text, place, key, hint) in [
        (retention("keep_last: 3"), (3, 5), "`keep_last`", "did you mean `keep-last`?"),
        (retention("keepLast: 3"), (3, 5), "`keepLast`", "did you mean `keep-last`?"),
        (retention("keep-lats: 3"), (3, 5), "`keep-lats`", "did you mean `keep-last`?"),
        (retention("maxAge: 3d"), (3, 5), "`maxAge`", "did you mean `max-age`?"),
        (retention("MAX_SIZE: 3"), (3, 5), "`MAX_SIZE`", "did you mean `max-size`?"),
        (checkpointing("Auto: true"), (3, 5), "`Auto`", "did you mean `auto`?"),
        (retention("size: 3"), (3, 5), "`size`", "known here: max-age, keep-last, points, keep-manual, max-size"),
        (
            "rollback:\n  include_git: true\n".to_owned(),
            (2, 3),
            "`include_git`",
            "did you mean `rollback.checkpointing.include-git`?",
        ),
        ("rollback:\n  onFailure:\n".to_owned(), (2, 3), "`onFailure`", "did you mean `on-failure`?"),
        ("rolback:\n  enabled: true\n".to_owned(), (1, 1), "`rolback`", "did you mean `rollback`?"),
        (
            "rollback.enabled: true\n".to_owned(),
            (1, 1),
            "`rollback.enabled`",
            "keys are nested: `rollback:`, `enabled:` on lines of their own",
        ),
        (
            "rollback:\n  rewind: {}\n".to_owned(),
            (2, 3),
            "`rewind`",
            "known here: enabled, checkpointing, retention, on-failure",
        ),
        ("logging: true\n".to_owned(), (1, 1), "`logging`", "known here: rollback, hooks, rewind, workflow"),
        ("1: 2\n".to_owned(), (1, 1), "`1`", "known here: rollback, hooks, rewind, workflow"),
        ("\"a\\nb\": 1\n".to_owned(), (1, 1), "\"a\\nb\"", "known here: rollback, hooks, rewind, workflow"),
    ] {
        let error = refused(&text, place, &format!("unknown key {key}"));
        assert_eq!(error.get_hint(), Some(hint), "{text}");
    }
    refused(format!("? {}\n: 1\n", "k".repeat(500_000)), (1, 3), "unknown key \"kkk");
}

#[test]
fn what_is_no_configuration_is_refused() {
    for (text, place, says) in [
        ("- a\n", (1, 1), "a mapping is expected"),
        ("hello\n", (1, 1), "a mapping is expected"),
        ("rollback: 5\n", (1, 11), "a mapping is expected"),
        ("rollback:\n  retention: [1]\n", (2, 14), "a mapping is expected"),
        ("rollback: {}\nrollback: {}\n", (2, 1), "the key `rollback` appears twice"),
        ("rollback:\n  enabled: true\n  enabled: false\n", (3, 3), "the key `enabled` appears twice"),
        ("workflow: {}\nworkflow: {}\n", (2, 1), "the key `workflow` appears twice"),
        ("rollback: {}\n---\nrollback: {}\n", (3, 1), "a second document"),
        ("rollback: {enabled: true\n", (1, 11), "unclosed bracket"),
        ("rollback:\n\t- x\n", (2, 2), ""),
        ("rollback:\n  enabled: \"tr\n", (3, 1), "quoted scalar"),
        ("rollback:\n  enabled: *on\n", (2, 12), "the alias has no anchor"),
        ("rollback: &a\n  enabled: *a\n", (2, 12), "the alias stands inside its own anchor"),
    ] {
        refused(text, place, says);
    }
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    refused(b"rollback: # \xc3\xa9\n  enabled: \xc3\xa9\xff\n", (2, 13), "it is not UTF-8");
    refused(b"\xff\xfe", (1, 1), "it is not UTF-8");
    assert_eq!(only("\u{feff}rollback:\r\n  enabled: false\r\n"), json!(false), "a mark, and lines as on Windows");
}

#[test]
fn anchors_are_text_that_stands_twice() {
    let text = "workflow: &age 3d\nrollback:\n  retention:\n    max-age: *age\n";
    assert_eq!(only(text), json!("3d"));
    refused(text.replace("3d", "soon"), (4, 14), "\"soon\" is not a duration");
}

#[test]
fn small_files_that_unfold_to_large_ones_are_refused() {
    let too_much = |text: String| {
        let error = read(&text).expect_err(&text[..60]);
        assert_eq!(error.code(), Code::InvalidConfig);
        assert!(error.message().contains("too much nesting"), "{error}");
    };
    let mut laughs = "workflow:\n  a: &a [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (of, name) in "abcdefghi".chars().zip("bcdefghij".chars()) {
        laughs += &format!("  {name}: &{name} [{}]\n", vec![format!("*{of}"); 10].join(","));
    }
    too_much(laughs);
    let copies = |key: &str| format!("{key}: [&a {}{}]\n", "x".repeat(500_000), ",*a".repeat(20_000));
    too_much(copies("workflow"));
    too_much(format!("rollback: {{checkpointing: {{{}}}}}\n", copies("include-ignored").trim_end()));
    too_much(format!("workflow: {}{}\n", "[".repeat(200), "]".repeat(200)));
}

#[test]
fn no_depth_exhausts_the_stack() {
    let deep = format!("workflow: {}\n", "[".repeat(900_000));
    assert_eq!(read(deep).unwrap_err().code(), Code::InvalidConfig);
    let deep: String = (1..900).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    assert_eq!(read(format!("workflow:\n{deep}")).unwrap_err().code(), Code::InvalidConfig);
}

#[test]
fn a_file_is_at_most_a_megabyte() {
    assert_eq!(read(vec![b'#'; 1_000_000]).unwrap().config, Config::default());
    let error = read(vec![b'#'; 1_000_001]).unwrap_err();
    assert_eq!(error.code(), Code::InvalidConfig);
    assert!(error.message().ends_with("it is not a file of at most 1 MB."), "{error}");
}
