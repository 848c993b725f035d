mod refusals;
mod rewind;

use std::fs;
use std::path::Path;
use std::time::Duration;

use ic_base::{Code, Diagnosis};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::units::{Size, written};
use super::{Config, Guard, Loaded, OwnHooks, Setting, load, own_hooks};

fn read(text: impl AsRef<[u8]>) -> Result<Loaded, Diagnosis> {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(".ic.yaml"), text).unwrap();
    load(dir.path(), None)
}

/// The value of the one setting that a file sets.
fn only(text: &str) -> Value {
    let loaded = read(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    let mut set: Vec<_> = loaded.settings().into_iter().filter(|setting| setting.from_file).collect();
    assert_eq!(set.len(), 1, "{text}: {set:?}");
    set.remove(0).value
}

fn checkpointing(line: &str) -> String {
    format!("rollback:\n  checkpointing:\n    {line}\n")
}

fn retention(line: &str) -> String {
    format!("rollback:\n  retention:\n    {line}\n")
}

#[test]
fn without_a_file_the_defaults_are_in_force() {
    let dir = tempfile::tempdir().unwrap();
    let loaded = load(dir.path(), None).unwrap();
    assert_eq!((&loaded.config, &loaded.file), (&Config::default(), &None));
    let settings: Vec<_> = loaded.settings().into_iter().map(|s| (s.key, s.value, s.from_file)).collect();
    assert_eq!(
        settings,
        [
            ("rollback.enabled", json!(true), false),
            ("rollback.checkpointing.auto", json!(true), false),
            ("rollback.checkpointing.include-git", json!(true), false),
            ("rollback.checkpointing.max-file-size", json!(10_000_000), false),
            ("rollback.checkpointing.max-files", json!(1_000_000), false),
            ("rollback.checkpointing.include-ignored", json!([]), false),
            ("rollback.checkpointing.include-secrets", json!([]), false),
            ("rollback.checkpointing.flush", json!("auto"), false),
            ("rollback.retention.max-age", json!("7d"), false),
            ("rollback.retention.keep-last", json!(5), false),
            ("rollback.retention.points", json!(200), false),
            ("rollback.retention.keep-manual", json!(true), false),
            ("rollback.retention.max-size", json!(5_000_000_000_u64), false),
            ("rollback.on-failure.prompt", json!(true), false),
            ("rollback.on-failure.auto-rollback", json!(false), false),
            ("hooks.guard", json!("ask"), false),
            ("hooks.gate", json!(false), false),
            ("rewind.profile", json!(null), false),
            ("rewind.database", json!(null), false),
            ("rewind.anchor", json!(null), false),
            ("rewind.tables", json!(null), false),
            ("rewind.audit", json!(null), false),
            ("rewind.vectors", json!(null), false),
        ]
    );
}

#[test]
fn a_file_that_says_nothing_changes_nothing() {
    for text in ["", "\n", "# nothing\n", "---\n...\n", "null\n", "{}\n", "rollback:\n", "rollback: {retention: }\n"] {
        let loaded = read(text).unwrap_or_else(|e| panic!("{text:?}: {e}"));
        assert_eq!(loaded.config, Config::default(), "{text:?}");
        assert!(loaded.file.is_some() && loaded.settings().iter().all(|setting| !setting.from_file), "{text:?}");
    }
}

#[test]
fn every_key_of_the_seed_can_be_set() {
    let loaded = read(
        "rollback:\n  enabled: false\n  checkpointing:\n    auto: false\n    include-git: false\n    \
         max-file-size: 64KiB\n    max-files: 10\n    include-ignored: [dist/, '*.log']\n    include-secrets: [.env]\n    flush: always\n  \
         retention:\n    max-age: 14d\n    keep-last: 2\n    points: 3\n    keep-manual: false\n    max-size: 1GB\n  \
         on-failure:\n    prompt: false\n    auto-rollback: true\n",
    )
    .unwrap();
    let of_the_seed = |setting: &Setting| setting.key.starts_with("rollback.");
    assert!(
        loaded.settings().iter().all(|setting| setting.from_file == of_the_seed(setting)),
        "{:?}",
        loaded.settings()
    );
    let config = loaded.config;
    assert!(!config.enabled && !config.checkpointing.auto && !config.checkpointing.include_git);
    assert_eq!((config.checkpointing.max_file_size, config.checkpointing.max_files), (65_536, 10));
    assert_eq!(config.checkpointing.include_ignored, ["dist/", "*.log"]);
    assert_eq!(config.checkpointing.include_secrets, [".env"]);
    assert_eq!(config.checkpointing.flush.as_str(), "always");
    assert_eq!(config.retention.max_age, Duration::from_hours(14 * 24));
    assert_eq!((config.retention.keep_last, config.retention.max_size), (2, Some(1_000_000_000)));
    assert!(config.on_failure.auto_rollback && !config.on_failure.prompt && !config.retention.keep_manual);
}

#[test]
fn what_is_set_to_its_default_comes_from_the_file() {
    assert_eq!(only(&retention("keep-last: 5")), json!(5));
    for null in ["max-size: null", "max-size: ~", "max-size:"] {
        assert_eq!(only(&retention(null)), json!(null));
    }
    assert_eq!(only(&checkpointing("include-ignored: []")), json!([]));
}

#[test]
fn values_are_read_as_people_write_them() {
    for (line, value) in [
        ("max-file-size: 1", json!(1)),
        ("max-file-size: 4096", json!(4096)),
        ("max-file-size: 7B", json!(7)),
        ("max-file-size: 10 MB", json!(10_000_000)),
        ("max-file-size: '2KB'", json!(2_000)),
        ("max-file-size: 2KiB", json!(2_048)),
        ("max-file-size: 3MiB", json!(3 << 20)),
        ("max-file-size: 4GiB", json!(4_u64 << 30)),
        ("max-file-size: 18446744073709551615", json!(u64::MAX)),
        ("max-files: 1", json!(1)),
        ("include-ignored: [2024, true]", json!(["2024", "true"])),
        ("include-ignored:\n    - '[a-z].tmp'", json!(["[a-z].tmp"])),
        ("auto: True", json!(true)),
    ] {
        assert_eq!(only(&checkpointing(line)), value, "{line}");
    }
    for (line, value) in [
        ("max-age: 2w", json!("14d")),
        ("max-age: 36h", json!("1d 12h")),
        ("max-age: 90m 5s", json!("1h 30m 5s")),
        ("max-age: 0s", json!("0s")),
        ("keep-last: 0", json!(0)),
        ("keep-last: 4294967295", json!(u32::MAX)),
        ("max-size: 500MB", json!(500_000_000)),
    ] {
        assert_eq!(only(&retention(line)), value, "{line}");
    }
}

#[test]
fn parts_that_have_a_form_of_their_own_are_not_looked_into() {
    for text in
        ["workflow:\n  steps: [{run: a}, !shell b]\n  rollback: [1]\n", "workflow: text\n", "rewind:\nworkflow: []\n"]
    {
        assert_eq!(read(text).unwrap_or_else(|e| panic!("{text}: {e}")).config, Config::default());
    }
}

#[test]
fn a_named_file_stands_in_place_of_the_usual_one() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(".ic.yaml"), "rollback: {enabled: false}\n").unwrap();
    let other = dir.path().join("ci.yaml");
    fs::write(&other, "rollback: {retention: {keep-last: 9}}\n").unwrap();
    let loaded = load(dir.path(), Some(&other)).unwrap();
    assert_eq!(loaded.file.as_deref(), Some(other.as_path()));
    assert!(loaded.config.enabled && loaded.config.retention.keep_last == 9);
}

#[test]
fn a_named_file_must_be_there_and_be_a_file() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.yaml"), "").unwrap();
    for (name, says) in
        [("x.yaml", "does not exist"), ("a.yaml/x", "does not exist"), ("", "not a file of at most 1 MB")]
    {
        let path = dir.path().join(name);
        let error = load(Path::new("/"), Some(&path)).unwrap_err();
        assert_eq!(error.code(), Code::InvalidConfig, "{name}");
        assert_eq!(error.details()["file"], path.to_str().unwrap());
        assert!(error.message().contains(says) && error.get_hint().is_some(), "{error}");
    }
}

#[test]
fn own_settings_that_a_link_leads_nowhere_to_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let own = home.path().join(".config/ic");
    assert_eq!(own_hooks(Some(home.path())).unwrap(), OwnHooks::default());
    fs::create_dir_all(&own).unwrap();
    std::os::unix::fs::symlink("moved.yaml", own.join("config.yaml")).unwrap();
    let refusal = own_hooks(Some(home.path())).unwrap_err();
    assert!(refusal.code() == Code::InvalidConfig && refusal.message().contains("dangling link"), "{refusal:?}");
    fs::write(own.join("moved.yaml"), "hooks: {guard: deny}\n").unwrap();
    assert_eq!(own_hooks(Some(home.path())).unwrap().guard, Some(Guard::Deny));
    // As where the directory is a link into a disk that is not mounted.
    for above in [".config/ic", ".config"] {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join(above).parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("nowhere", home.path().join(above)).unwrap();
        assert_eq!(own_hooks(Some(home.path())).unwrap_err().code(), Code::InvalidConfig, "{above}");
    }
}

#[test]
fn a_link_that_leads_nowhere_is_not_an_absent_file() {
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join(".ic.yaml");
    std::os::unix::fs::symlink(dir.path().join("shared.yaml"), &link).unwrap();
    let error = load(dir.path(), None).unwrap_err();
    assert_eq!(error.code(), Code::InvalidConfig);
    assert!(error.message().ends_with("it is a dangling link."), "{error}");
    fs::write(dir.path().join("shared.yaml"), "rollback: {enabled: false}\n").unwrap();
    assert!(!load(dir.path(), None).unwrap().config.enabled);
}

proptest! {
    #[test]
    fn a_duration_is_written_as_it_is_read(seconds in 0..=u64::MAX / 4, nanos in 0..1_000_000_000_u32) {
        let duration = Duration::new(seconds, nanos);
        prop_assert_eq!(humantime::parse_duration(&written(duration)), Ok(duration));
    }

    #[test]
    fn a_size_in_bytes_is_itself(bytes in 1..=u64::MAX) {
        prop_assert_eq!(Size::parse(&format!("{bytes}B")), Ok(Size(bytes)));
    }

    #[test]
    fn any_bytes_are_a_configuration_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Err(error) = read(&bytes) {
            prop_assert_eq!(error.code(), Code::InvalidConfig);
        }
    }

    #[test]
    fn any_value_is_taken_or_refused_where_it_stands(value in "[-+0-9a-zA-Z.'\"&*!|>%@`#,: ]{0,12}") {
        for key in ["max-age", "max-size", "keep-last", "points", "keep-manual"] {
            if let Err(error) = read(retention(&format!("{key}: {value}"))) {
                prop_assert_eq!(error.code(), Code::InvalidConfig);
                prop_assert!(error.details().contains_key("line"), "{}", error);
            }
        }
    }
}
