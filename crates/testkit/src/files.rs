//! Files for tests: written and read below a directory.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Writes a file below a directory, and the directories on the way to it. Returns its path.
///
/// # Panics
/// If it cannot be written.
pub fn write_in(directory: &Path, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
    let path = directory.join(path);
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("its directory");
    std::fs::write(&path, content).unwrap_or_else(|e| panic!("write {}: {e}", path.display()));
    path
}

/// What a file below a directory holds; `None` if there is none.
///
/// # Panics
/// If it is there and cannot be read, or is not text.
pub fn read_in(directory: &Path, path: impl AsRef<Path>) -> Option<String> {
    let path = directory.join(path);
    match std::fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(e) if is_absent(&e) => None,
        Err(e) => panic!("read {}: {e}", path.display()),
    }
}

/// A file in place of a directory on the way is an absence too.
fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

/// Makes a path what another one is: a copy with its times and modes, or nothing where that one is not there.
///
/// # Panics
/// If that fails.
pub fn copy_over(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to).or_else(|_| std::fs::remove_file(to));
    if from.exists() {
        let status = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("start cp");
        assert!(status.success(), "copy {} to {}", from.display(), to.display());
    }
}

/// A directory that tests put files into and look at.
#[derive(Debug, Clone)]
pub struct TestDirectory(PathBuf);

impl TestDirectory {
    /// The directory of this path, which is made when something is put there.
    pub fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// The directory itself.
    pub fn directory(&self) -> &Path {
        &self.0
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Puts a file there, and returns its path.
    pub fn put(&self, name: &str, text: &str) -> PathBuf {
        write_in(&self.0, name, text)
    }

    /// Whether there is something of this name.
    pub fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// What a file holds; nothing if there is none.
    pub fn text(&self, name: &str) -> String {
        read_in(&self.0, name).unwrap_or_default()
    }

    /// Removes a file.
    ///
    /// # Panics
    /// If there is none.
    pub fn remove(&self, name: &str) {
        std::fs::remove_file(self.path(name)).unwrap_or_else(|e| panic!("remove {name}: {e}"));
    }
}
