//! `ic config show`: the settings in force, their sources, and the errors of a file.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use serde_json::{Value, json};

use crate::support::{Project, assert_shape};

const KEYS: [&str; 23] = [
    "rollback.enabled",
    "rollback.checkpointing.auto",
    "rollback.checkpointing.include-git",
    "rollback.checkpointing.max-file-size",
    "rollback.checkpointing.max-files",
    "rollback.checkpointing.include-ignored",
    "rollback.checkpointing.include-secrets",
    "rollback.checkpointing.flush",
    "rollback.retention.max-age",
    "rollback.retention.keep-last",
    "rollback.retention.points",
    "rollback.retention.keep-manual",
    "rollback.retention.max-size",
    "rollback.on-failure.prompt",
    "rollback.on-failure.auto-rollback",
    "hooks.guard",
    "hooks.gate",
    "rewind.profile",
    "rewind.database",
    "rewind.anchor",
    "rewind.tables",
    "rewind.audit",
    "rewind.vectors",
];

/// A project whose configuration is this.
fn configured(text: &str) -> Project {
    let project = Project::new();
    project.write(".ic.yaml", text);
    project
}

fn setting(value: impl Into<Value>, source: &str) -> Value {
    json!({ "value": value.into(), "source": source })
}

#[test]
fn every_key_stands_once_and_in_order() {
    let project = configured("");
    for form in ["--json", "--format jsonl", "--json --pretty"] {
        let outcome = project.run(&format!("config show {form}"));
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{form}");
        let record = outcome.json();
        assert_shape("config", &record);
        let keys: Vec<&str> = record.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(keys, KEYS, "{form}");
        assert!(record.as_object().expect("an object").values().all(|setting| setting["source"] == "default"));
    }
    let text = project.ok("config show --format text");
    let keys: Vec<&str> = text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(keys, KEYS);
    let page = std::fs::read_to_string(crate::support::docs("CONFIGURATION.md")).expect("docs/CONFIGURATION.md");
    let documented: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    assert_eq!(documented, KEYS);
}

#[test]
fn values_are_typed_and_say_where_they_come_from() {
    let project = configured(
        "rollback:\n  checkpointing: {max-file-size: 64KiB, include-ignored: [dist/, '*.log']}\n  \
         retention: {max-age: 2w, keep-last: 5, max-size: null}\n",
    );
    let record = project.json("config show");
    assert_shape("config", &record);
    for (key, expected) in [
        ("rollback.enabled", setting(json!(true), "default")),
        ("rollback.checkpointing.max-file-size", setting(json!(65_536), "file")),
        ("rollback.checkpointing.max-files", setting(json!(1_000_000), "default")),
        ("rollback.checkpointing.include-ignored", setting(json!(["dist/", "*.log"]), "file")),
        ("rollback.retention.max-age", setting(json!("14d"), "file")),
        ("rollback.retention.keep-last", setting(json!(5), "file")),
        ("rollback.retention.max-size", setting(json!(null), "file")),
    ] {
        assert_eq!(record[key], expected, "{key}");
    }
    let text = project.ok("config show --format text");
    let file = project.root().join(".ic.yaml");
    let from_file = text.lines().filter(|line| line.ends_with(file.to_str().expect("its path"))).count();
    assert_eq!(from_file, 5, "{text}");
}

#[test]
fn the_file_is_that_of_the_root() {
    let project = configured("rollback: {retention: {keep-last: 9}}\n");
    std::fs::create_dir(project.root().join("src")).expect("a directory");
    project.write("src/.ic.yaml", "rollback: {retention: {keep-last: 1}}\n");
    let record = project.json("config show -C src");
    assert_eq!(record["rollback.retention.keep-last"], setting(json!(9), "file"));
}

#[test]
fn the_environment_names_another_file() {
    let project = configured("rollback: {enabled: false}\n");
    std::fs::create_dir(project.root().join("src")).expect("a directory");
    project.write("src/ci.yaml", "rollback: {retention: {keep-last: 9}}\n");
    let exact = project.root().join("src/ci.yaml");
    for (named, line) in [
        (exact.as_os_str(), "config show --json"),
        (OsStr::new("src/ci.yaml"), "config show --json"),
        (OsStr::new("ci.yaml"), "config show --json -C src"),
    ] {
        let record = project.run_with("IC_CONFIG", named, line).json();
        assert_eq!(record["rollback.retention.keep-last"], setting(json!(9), "file"), "{named:?}");
        assert_eq!(record["rollback.enabled"], setting(json!(true), "default"), "{named:?}");
    }
    let record = project.run_with("IC_CONFIG", "", "config show --json").json();
    assert_eq!(record["rollback.enabled"], setting(json!(false), "file"), "an empty name is none");
}

#[test]
fn the_name_of_the_file_is_bytes() {
    let project = configured("");
    let name = OsStr::from_bytes(b"c\xff i.yaml");
    project.write(name, "rollback: {retention: {keep-last: 9}}\n");
    let record = project.run_with("IC_CONFIG", name, "config show --json").json();
    assert_eq!(record["rollback.retention.keep-last"], setting(json!(9), "file"));
    assert_eq!(project.run_with("IC_CONFIG", name, "config show --format text").code, Some(0));
}

#[test]
fn a_file_that_is_named_must_be_there() {
    let project = configured("");
    for name in ["missing.yaml", ".ic.yaml/missing.yaml", "."] {
        let outcome = project.run_with("IC_CONFIG", name, "config show --json");
        assert_eq!((outcome.code, outcome.error().as_str()), (Some(3), "invalid_config"), "{name}");
        assert_eq!(outcome.stdout, "");
    }
    std::fs::remove_file(project.root().join(".ic.yaml")).expect("the file");
    assert_eq!(project.json("config show")["rollback.enabled"], setting(json!(true), "default"));
}

#[test]
fn mistakes_are_refused_with_their_place() {
    let project = configured("rollback:\n  retention:\n    max-age: soon\n");
    let outcome = project.run("config show --json");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(3), ""));
    let line: Value = serde_json::from_str(&outcome.stderr).expect("one line");
    assert_shape("error", &line);
    let file = project.root().join(".ic.yaml");
    let file = file.to_str().expect("its path");
    assert_eq!(line["error"]["details"], json!({ "file": file, "line": 3, "column": 14 }));
    let text = project.run("config show --format text");
    let expected =
        format!("error: {file}, line 3, column 14: \"soon\" is not a duration; write 7d, 2w or 36h.\nhint: ");
    assert!(text.stderr.starts_with(&expected), "{}", text.stderr);
}

#[test]
fn a_mistake_stops_what_would_act_on_it_and_nothing_else() {
    let project = configured("rollback: {enabled: maybe}\n");
    assert_eq!(project.refused("checkpoint create"), (3, "invalid_config".to_owned()));
    for line in ["run list", "where", "health"] {
        assert_eq!(project.run(line).code, Some(0), "{line}");
    }
}

#[test]
fn without_a_ledger_there_is_no_project() {
    let project = Project::without_ledger();
    assert_eq!(project.refused("config show"), (3, "no_ledger".to_owned()));
}
