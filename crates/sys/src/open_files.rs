//! What other processes have open: `/proc` on Linux, `lsof` elsewhere, which macOS has.
//!
//! A process of another user cannot be looked into (unless root asks), nor one in another container.

#[cfg_attr(linux_ways, path = "open_files/proc_files.rs")]
#[cfg_attr(not(linux_ways), path = "open_files/lsof.rs")]
mod system_files;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// A file that is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoughtFile {
    /// Its whole path. A process also counts that has it open under this name after it was deleted.
    pub path: PathBuf,
    /// Its device and inode, if it is there.
    pub identity: Option<(u64, u64)>,
    /// Whether it has other names, by which a process may have opened it.
    pub has_other_names: bool,
}

/// A process other than this one that has one of these files open; `None` if none was found. Errors: where the system does not tell.
pub fn holder_of(files: &[SoughtFile]) -> io::Result<Option<u32>> {
    system_files::holder_of(files)
}

/// The processes whose program has a name that begins so, and that work in a directory of which `is_sought` says yes. Errors: where the
/// system does not tell.
pub fn working_in(program: &str, is_sought: impl Fn(&Path) -> bool) -> io::Result<BTreeSet<u32>> {
    let found = system_files::working_directories(program)?;
    Ok(found.into_iter().filter(|(_, directory)| is_sought(directory)).map(|(pid, _)| pid).collect())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;
    use std::process::{Command, Stdio};

    use super::{SoughtFile, holder_of, working_in};

    #[test]
    fn a_process_is_found_by_file_and_by_directory() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let path = root.join("held");
        fs::write(&path, "x").unwrap();
        let stat = fs::metadata(&path).unwrap();
        let mut sought =
            SoughtFile { path: path.clone(), identity: Some((stat.dev(), stat.ino())), has_other_names: false };
        // Our own handle does not count.
        let own = File::open(&path).unwrap();
        if holder_of(std::slice::from_ref(&sought)).is_err() {
            println!("skipped: this system does not tell what is open");
            return;
        }
        assert_eq!(holder_of(std::slice::from_ref(&sought)).unwrap(), None);
        let mut sleep = Command::new("sleep");
        let mut sleep = sleep.arg("60").current_dir(&root).stdin(own).stdout(Stdio::null()).spawn().unwrap();
        let pid = sleep.id();
        let held = holder_of(std::slice::from_ref(&sought)).unwrap();
        let works = |place: &Path| working_in("sleep", |directory| directory == place).unwrap().contains(&pid);
        let places = (works(&root), works(&path));
        // By another name it is found where the file has several.
        fs::hard_link(&path, root.join("other")).unwrap();
        sought.path = root.join("other");
        sought.has_other_names = true;
        let held_by_other_name = holder_of(&[sought]).unwrap();
        sleep.kill().unwrap();
        sleep.wait().unwrap();
        assert_eq!((held, held_by_other_name), (Some(pid), Some(pid)));
        assert_eq!(places, (true, false));
    }
}
