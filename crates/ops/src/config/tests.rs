use std::time::Duration;

use ic_base::{Code, Diagnosis};

use super::{Config, load};

fn read(text: &str) -> Result<super::Loaded, Diagnosis> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(".ic.yaml"), text).unwrap();
    load(dir.path(), None)
}

#[test]
fn without_a_file_the_defaults_are_in_force() {
    let dir = tempfile::tempdir().unwrap();
    let loaded = load(dir.path(), None).unwrap();
    assert_eq!(loaded.config, Config::default());
    assert!(loaded.settings().iter().all(|setting| !setting.from_file));
    let missing = load(dir.path(), Some(&dir.path().join("x.yaml"))).unwrap_err();
    assert_eq!(missing.code(), Code::InvalidConfig);
    for empty in ["", "\n", "# nothing\n", "rollback:\n"] {
        assert_eq!(read(empty).unwrap().config, Config::default(), "{empty:?}");
    }
}

#[test]
fn every_key_of_the_seed_can_be_set() {
    let loaded = read(
        "rollback:\n  enabled: false\n  checkpointing:\n    auto: false\n    include-git: false\n    \
         max-file-size: 64KiB\n    max-files: 10\n    include-ignored: [dist/, '*.log']\n    include-secrets: [.env]\n  \
         retention:\n    max-age: 14d\n    keep-last: 2\n    keep-manual: false\n    max-size: 1GB\n  \
         on-failure:\n    prompt: false\n    auto-rollback: true\nrewind: {database: x}\n",
    )
    .unwrap();
    assert!(loaded.settings().iter().all(|setting| setting.from_file), "{:?}", loaded.settings());
    let config = loaded.config;
    assert!(!config.enabled && !config.checkpointing.auto && !config.checkpointing.include_git);
    assert_eq!(config.checkpointing.max_file_size, 65_536);
    assert_eq!(config.checkpointing.include_ignored, ["dist/", "*.log"]);
    assert_eq!(config.retention.max_age, Duration::from_hours(14 * 24));
    assert_eq!((config.retention.keep_last, config.retention.max_size), (2, Some(1_000_000_000)));
    assert!(config.on_failure.auto_rollback && !config.on_failure.prompt);
}

#[test]
fn mistakes_are_named_with_their_place() {
    let keys = "rollback:\n  retention:\n    ";
    for (text, line, says) in [
        (format!("{keys}keep_last: 3\n"), 3, "unknown key `keep_last`"),
        (format!("{keys}keep-lats: 3\n"), 3, "unknown key `keep-lats`"),
        (format!("{keys}keep-last: many\n"), 3, "keep-last"),
        (format!("{keys}keep-last: -1\n"), 3, ""),
        (format!("{keys}max-age: soon\n"), 3, "not a duration"),
        (format!("{keys}max-size: 3 parsecs\n"), 3, "not a size"),
        (format!("{keys}max-size: 0\n"), 3, "size of 0"),
        (format!("{keys}keep-last: 1\n    keep-last: 2\n"), 4, "twice"),
        ("rolback:\n  enabled: true\n".to_owned(), 1, "unknown key `rolback`"),
        ("rollback:\n  enabled: maybe\n".to_owned(), 2, ""),
        ("rollback: [1, 2]\n".to_owned(), 1, ""),
        ("rollback:\n\t- x\n".to_owned(), 2, ""),
        ("a: &a [*a]\n".to_owned(), 1, ""),
    ] {
        let error = read(&text).unwrap_err();
        assert_eq!(error.code(), Code::InvalidConfig, "{text}");
        assert_eq!(error.details()["line"], line, "{text}: {error}");
        let said = error.message().contains(says) || says == "keep-last";
        assert!(said, "{text}: {error}");
    }
    assert_eq!(
        read(&format!("{keys}keep_last: 3\n")).unwrap_err().get_hint(),
        Some("did you mean `keep-last`?")
    );
    assert_eq!(read(&format!("{keys}maxAge: 3d\n")).unwrap_err().get_hint(), Some("did you mean `max-age`?"));
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(".ic.yaml"), b"rollback:\n  enabled: \xff\n").unwrap();
    assert_eq!(load(dir.path(), None).unwrap_err().details()["line"], 2);
    std::fs::write(dir.path().join(".ic.yaml"), vec![b'#'; 2 << 20]).unwrap();
    assert_eq!(load(dir.path(), None).unwrap_err().code(), Code::InvalidConfig);
}
