//! `plugins/`: what coding agents load is what the code says, and nothing else lies there.

mod plugin_files;

use std::collections::BTreeSet;
use std::path::Path;

use super::files::{assert_at_top, top};

#[test]
fn the_plugins_are_what_the_code_says() {
    let mut written = BTreeSet::new();
    for (path, text) in plugin_files::files() {
        assert_at_top(&path, &text);
        written.insert(path);
    }
    let mut found = BTreeSet::new();
    collect(&top("plugins"), &top(""), &mut found);
    collect(&top(".claude-plugin"), &top(""), &mut found);
    assert_eq!(found, written);
}

fn collect(directory: &Path, top: &Path, into: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(directory).expect("the directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, top, into);
        } else {
            into.insert(path.strip_prefix(top).expect("a path below").to_string_lossy().into_owned());
        }
    }
}
