//! `.ic.yaml`: what it sets, written out again, sets the same; what is wrong is said in a sentence with its place.

use std::fs;

use ic_base::Code;
use ic_kernel::config::{Config, Loaded, load};
use serde_json::{Map, Value};
use tempfile::TempDir;

/// A sentence about a file is never longer, whatever stands in it.
const LONGEST_SENTENCE: usize = 4096;

thread_local! {
    static ROOM: TempDir = tempfile::tempdir().expect("a directory");
}

fn parse(bytes: &[u8]) -> ic_base::Result<Loaded> {
    ROOM.with(|room| {
        fs::write(room.path().join(".ic.yaml"), bytes).expect("write the file");
        load(room.path(), None)
    })
}

/// Reads it.
pub fn config(bytes: &[u8]) {
    match parse(bytes) {
        Ok(loaded) => {
            let settings = loaded.settings();
            let mut tree = Value::Object(Map::new());
            for setting in settings.iter().filter(|setting| setting.key.starts_with("rollback.")) {
                let mut place = &mut tree;
                for part in setting.key.split('.') {
                    place = &mut place[part];
                }
                *place = setting.value.clone();
            }
            let again = parse(tree.to_string().as_bytes()).expect("what is in force can be written");
            assert_eq!(again.config, Config { rewind: None, ..loaded.config });
        }
        Err(error) => {
            assert_eq!(error.code(), Code::InvalidConfig);
            assert!(error.message().len() < LONGEST_SENTENCE, "{}", error.message());
            if let Some(line) = error.details().get("line").and_then(Value::as_u64) {
                let lines = bytes.split(|byte| matches!(byte, b'\n' | b'\r')).count() as u64;
                assert!((1..=lines + 1).contains(&line), "line {line} of {lines}");
            }
        }
    }
}
