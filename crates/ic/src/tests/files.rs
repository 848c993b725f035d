//! Files that are generated, and compared from then on.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A path under `docs/`.
pub(super) fn docs(path: &str) -> PathBuf {
    top("docs").join(path)
}

/// A path from the top of the repository.
pub(super) fn top(path: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path)
}

/// Fails if the file under `docs/` does not hold exactly this text; with `IC_UPDATE=1` it is written.
pub(super) fn assert_is(path: &str, text: &str) {
    assert_at_top(&format!("docs/{path}"), text);
}

/// The same for a path from the top of the repository.
pub(super) fn assert_at_top(path: &str, text: &str) {
    let file = top(path);
    if std::env::var_os("IC_UPDATE").is_some_and(|value| value == "1") {
        std::fs::create_dir_all(file.parent().expect("a directory")).expect("make the directory");
        std::fs::write(&file, text).expect("write the file");
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    let differs = found.lines().zip(text.lines()).position(|(a, b)| a != b);
    assert!(
        found == text,
        "{path} is not what the code says (first difference near line {}); \
         IC_UPDATE=1 cargo test -p ic --lib writes it",
        differs.map_or(found.lines().count().min(text.lines().count()), |line| line) + 1
    );
}

/// The names (without the extension) of the files with this extension in a directory under `docs/`.
pub(super) fn names(directory: &str, extension: &str) -> BTreeSet<String> {
    std::fs::read_dir(docs(directory))
        .expect("the directory")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect()
}
