//! The part `rewind`.

use std::path::Path;

use ic_base::Code;
use ic_rewind::{Follow, Order, Profile, RewindTarget, TableConfig, Triggers};
use serde_json::json;

use super::read;

#[test]
fn a_profile_says_everything_but_the_database() {
    let loaded = read("rewind: {profile: devs}\n").unwrap();
    let setup = loaded.config.rewind.as_ref().unwrap().setup(Path::new("/p"), Path::new("/p/.ic"));
    assert_eq!(setup.target, RewindTarget::of_profile(Profile::Devs, Path::new("/p/.ic/state.db")));
    assert_eq!(setup.vectors, None);
    let set: Vec<_> = loaded.settings().into_iter().filter(|setting| setting.from_file).collect();
    assert_eq!((set[0].key, &set[0].value), ("rewind.profile", &json!("devs")));
    let loaded = read("rewind: {profile: langgraph, database: data/t.db}\n").unwrap();
    let setup = loaded.config.rewind.unwrap().setup(Path::new("/p"), Path::new("/p/.ic"));
    assert_eq!(setup.target, RewindTarget::of_profile(Profile::Langgraph, Path::new("/p/data/t.db")));
}

#[test]
fn every_key_can_be_set() {
    let loaded = read(
        "rewind:\n  database: /x/app.db\n  anchor: {table: t, key: k, order: o, commit: c, scope: [s]}\n  tables:\n    \
         - {name: t, order: o, triggers: fire}\n    - {name: u, follow: parent}\n    \
         - {name: v, follow: {table: t, on: [[a, b]]}}\n  audit: {table: log, event: e}\n  \
         vectors: {exec: [./prune, --after]}\n",
    )
    .unwrap();
    let setup = loaded.config.rewind.unwrap().setup(Path::new("/p"), Path::new("/p/.ic"));
    assert_eq!(setup.vectors, Some(vec!["./prune".to_owned(), "--after".to_owned()]));
    let target = setup.target;
    assert_eq!((target.database.as_path(), target.profile), (Path::new("/x/app.db"), None));
    assert_eq!((target.anchor.commit.as_deref(), target.anchor.scope), (Some("c"), vec!["s".to_owned()]));
    assert_eq!(target.tables[0], TableConfig::by_column("t", "o").firing());
    assert_eq!(target.tables[1].order, Order::FollowParent(Follow::ForeignKey("parent".into())));
    assert_eq!(target.tables[2].triggers, Triggers::Refuse);
    assert_eq!(target.audit.unwrap().event, "e");
}

#[test]
fn what_the_profile_decides_is_shown_and_not_as_of_the_file() {
    let loaded = read("rewind:\n  profile: devs\n  vectors: {exec: [./prune]}\n").unwrap();
    let shown: Vec<_> = loaded.settings().into_iter().filter(|one| one.key.starts_with("rewind.")).collect();
    let from_file: Vec<_> = shown.iter().filter(|one| one.from_file).map(|one| one.key).collect();
    assert_eq!(from_file, ["rewind.profile", "rewind.vectors"]);
    let of = |key: &str| shown.iter().find(|one| one.key == key).unwrap_or_else(|| panic!("no {key}"));
    let devs = RewindTarget::of_profile(Profile::Devs, Path::new(""));
    assert_eq!(of("rewind.vectors").value, json!(["./prune"]));
    assert_eq!(of("rewind.anchor").value, json!(devs.anchor));
    assert_eq!(of("rewind.audit").value, json!(devs.audit));
    assert_eq!(of("rewind.database").note, Some("state.db beside the ledger"));
    assert_eq!(of("rewind.anchor").note, Some("as the profile has it"));
    assert_eq!(of("rewind.profile").note, None);
}

#[test]
fn every_setting_of_the_page_is_shown_and_no_other() {
    let page = include_str!("../../../../../docs/CONFIGURATION.md");
    let named = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`')).map(|(key, _)| key);
    let shown: Vec<_> = read("").unwrap().settings().into_iter().map(|one| one.key).collect();
    assert_eq!(named.collect::<Vec<_>>(), shown);
}

#[test]
fn mistakes_are_named_with_their_place() {
    for (text, what) in [
        ("rewind:\n  profile: dev\n", "line 2, column 12"),
        ("rewind:\n  profile: devs\n  anker: {}\n", "line 3, column 3: unknown key `anker`"),
        ("rewind:\n  profile: langgraph\n", "names no `database`"),
        ("rewind:\n  database: a.db\n", "has no `anchor`"),
        ("rewind:\n  database: ''\n  profile: devs\n", "is empty"),
        ("rewind:\n  profile: devs\n  vectors: {exec: []}\n", "names no program"),
        ("rewind:\n  profile: devs\n  vectors: {exec: ['']}\n", "names no program"),
        ("rewind:\n  profile: devs\n  vectors: {}\n", "line 3"),
        ("rewind:\n  database: a\n  anchor: {table: t, key: k}\n", "line 3"),
        ("rewind:\n  profile: devs\n  tables:\n    - {name: t}\n", "either an order column or a parent"),
        ("rewind: devs\n", "line 1"),
    ] {
        let error = read(text).unwrap_err();
        assert_eq!(error.code(), Code::InvalidConfig, "{text}");
        assert!(error.message().contains(what), "{text}: {error}");
        assert!(error.message().contains(", line "), "{text}: {error}");
    }
}
