//! A hint names a command that works when it is typed, also in a pipe, where no person can confirm it.

use std::path::{Path, PathBuf};

use super::verbs::{leaves, own_arguments, tree};

/// It asks only when a rollback is resumed; what it is named for is mostly the way forward.
const ASKS_SELDOM: &str = "ic workflow resume";

pub(super) fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") && name != "tests.rs" {
            found.push(path);
        }
    }
}

#[test]
fn a_command_of_a_hint_needs_no_terminal() {
    let tree = tree();
    let asking: Vec<String> = leaves(&tree)
        .into_iter()
        .filter(|(_, command)| own_arguments(command).any(|argument| argument.get_id() == "yes"))
        .map(|(name, _)| name)
        .filter(|name| name != ASKS_SELDOM)
        .collect();
    assert!(asking.len() >= 10, "{asking:?}");
    let (mut files, mut seen) = (Vec::new(), 0);
    for part in ["checkpoint", "effects", "kernel", "ops", "phase", "rewind", "undo", "workflow", "worktree"] {
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(part).join("src"), &mut files);
    }
    for path in files {
        let text = std::fs::read_to_string(&path).expect("a source");
        let said = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for (line, name) in said.flat_map(|line| asking.iter().map(move |name| (line, name))) {
            // Names in backticks are spoken of, not offered; an argument follows what is offered.
            for (at, _) in line.match_indices(&format!("{name} ")).filter(|(at, _)| !line[..*at].ends_with('`')) {
                let call = line[at..].split([';', '"', '`', '(']).next().unwrap_or_default();
                seen += 1;
                assert!(call.contains("--yes") || call.contains("--dry-run"), "{}: {call}", path.display());
            }
        }
    }
    assert!(seen >= 20, "only {seen} were seen");
}
