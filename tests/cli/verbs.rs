//! Every verb on a page of its own: done for people, done for a script, and refused.

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::verbs;

pub(crate) mod checkpoint;
mod compensation;
mod day;
mod dispatch;
mod events;
mod gate;
mod hooks;
mod ledger;
mod man;
mod mcp;
mod repetition;
pub(crate) mod rewind;
mod rollback;
mod run;
mod tracks;
pub(crate) mod workflow;

#[test]
fn every_verb_has_a_page() {
    let directory = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cli/snapshots"));
    let pages: BTreeSet<String> = std::fs::read_dir(directory)
        .expect("the snapshots")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter_map(|name| Some(name.strip_prefix("verb-")?.strip_suffix(".snap")?.to_owned()))
        .collect();
    let wanted: BTreeSet<String> = verbs()
        .iter()
        // Their output is a file, and nothing else.
        .filter(|(verb, _)| !verb.ends_with(" cat") && verb != "ic completions" && verb != "ic hook")
        // It is served until it is ended: tests/ui.
        .filter(|(verb, _)| verb != "ic ui")
        .map(|(verb, _)| verb["ic ".len()..].replace([' ', '='], "-").replace("---", "-"))
        .collect();
    assert_eq!(pages, wanted);
}
