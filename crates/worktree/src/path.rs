//! Paths as they are recorded.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use ic_checkpoint::restore::database::sides_of;
use ic_ledger::path_bytes;

/// The recorded form of a path: from the project's root if it lies inside, else absolute. Links are not followed.
pub fn recorded_path(path: &Path, directory: &Path, root: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in directory.join(path).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    // The root itself keeps its full path: an empty one would name nothing.
    match clean.strip_prefix(root) {
        Ok(inside) if !inside.as_os_str().is_empty() => inside.to_owned(),
        _ => clean,
    }
}

/// The files of a database that lies in the tree, from the root. Where its rows are a layer of their own, its files stay.
pub fn files_of_database(root: &Path, database: &Path) -> BTreeSet<Vec<u8>> {
    // A database that was not made yet has no real path. Then its name decides, as it was given.
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let database = real(database);
    let Ok(below) = database.strip_prefix(real(root)) else { return BTreeSet::new() };
    let below = path_bytes(below);
    sides_of(below).chain([below.to_vec()]).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::recorded_path;

    #[test]
    fn paths_are_recorded_from_the_root() {
        let recorded = |path: &str, directory: &str| {
            recorded_path(Path::new(path), Path::new(directory), Path::new("/p")).display().to_string()
        };
        assert_eq!(recorded("docs/a.md", "/p"), "docs/a.md");
        assert_eq!(recorded("./a.md", "/p/docs"), "docs/a.md");
        assert_eq!(recorded("../x/a.md", "/p/docs"), "x/a.md");
        assert_eq!(recorded("../../a.md", "/p/docs"), "/a.md");
        assert_eq!(recorded("/tmp/a.md", "/p"), "/tmp/a.md");
        assert_eq!(recorded("/p", "/p"), "/p");
    }
}
