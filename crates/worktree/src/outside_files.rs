//! Files outside of the project that a tool call named: looked at as the call begins and ends, and replaced by an undo.
//!
//! Only what is the user's own is touched: a file in a directory that the caller owns, in no other project, no system directory and no
//! store. All else is looked at without its content, so that an undo can say that it changed.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ic_base::{Diagnose, Result, shell_word};
use ic_checkpoint::capture::{is_ignored, looks_secret};
use ic_checkpoint::outside_state::OutsideStanding;
use ic_checkpoint::rootfs::{EntryState, RootDir};
use ic_ledger::events::hex;
use ic_ledger::{path_bytes, regular_file::open_regular_itself};

use super::skipped_files::{digest_of, state_of};
use super::workspace::Workspace;

/// Directories of the system, where nothing is changed even for root.
const SYSTEM: [&str; 14] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/run", "/sbin", "/sys", "/usr",
    "/var",
];

/// The reason that is given for a client's own file: the work does not include it.
pub const OF_CLIENT: &str = "a record of the client's own, which stays";

/// The temporary name of a file that is written.
const TEMPORARY: &[u8] = b".ic-restore-outside";

impl Workspace<'_> {
    /// What stands at a path, with its content in the store.
    pub fn keep_outside(&self, path: &Path) -> Result<OutsideStanding> {
        let unkept =
            |reason: String, file: Option<&Metadata>| OutsideStanding::Unkept { reason, seen: file.map(state_of) };
        let file = match path.symlink_metadata() {
            Ok(file) => Some(file),
            Err(error) if is_missing(&error) => None,
            Err(_) => return Ok(unkept("unreadable".to_owned(), None)),
        };
        // Before the file is told to be absent: what a call makes in such a place is not removed by an undo either.
        if let Some(reason) = self.not_ours(path) {
            return Ok(unkept(reason, file.as_ref()));
        }
        let Some(file) = file else { return Ok(OutsideStanding::Absent { above: first_missing(path) }) };
        if let Some(reason) = self.unkept(path, &file) {
            return Ok(unkept(reason.to_owned(), Some(&file)));
        }
        let writer = self.objects.writer(self.kernel.context.now())?;
        let kept = open_regular_itself(path).ok().map(|mut file| writer.put_file(&mut file)).transpose()?;
        Ok(match kept {
            Some(Some((hash, size))) => {
                writer.finish()?;
                OutsideStanding::File { hash: hex(&hash), size, mode: file.mode() & 0o7777 }
            }
            Some(None) => unkept("purged".to_owned(), Some(&file)),
            None => unkept("unreadable".to_owned(), Some(&file)),
        })
    }

    /// Why the content of a file is not kept, as far as its looks say.
    fn unkept(&self, path: &Path, file: &Metadata) -> Option<&'static str> {
        let name = path.file_name().map(|name| path_bytes(Path::new(name)).to_vec()).unwrap_or_default();
        match () {
            () if !file.is_file() => Some("special"),
            () if looks_secret(&name) => Some("secret"),
            () if file.size() > self.options().max_file_size => Some("oversize"),
            // To replace the file would part it from its other names.
            () if file.nlink() > 1 => Some("it has other names"),
            () => None,
        }
    }

    /// Why [`Workspace::keep_outside`] would keep no content; nothing is stored.
    pub fn may_keep_outside(&self, path: &Path) -> std::result::Result<(), String> {
        let reason = path.symlink_metadata().ok().and_then(|file| self.unkept(path, &file));
        reason.map_or(Ok(()), |reason| Err(format!("{reason}: no content of it is kept")))
    }

    /// Whether no capture has this file of the project, because a rule ignores it: an undo can bring it back only as one outside of it.
    ///
    /// Errors: `invalid_config` if a pattern of the configuration is not one; `io_error` where the store cannot be written.
    pub fn is_ignored(&self, path: &Path) -> Result<bool> {
        is_ignored(&self.objects, &self.root, &self.options(), path_bytes(path))
    }

    /// What stands at a path; `like`: what is expected there. Nothing is stored.
    pub fn outside_now(&self, path: &Path, like: &OutsideStanding) -> OutsideStanding {
        let file = match path.symlink_metadata() {
            Ok(file) => file,
            Err(error) if is_missing(&error) && !matches!(like, OutsideStanding::Unkept { .. }) => {
                return OutsideStanding::Absent { above: None };
            }
            Err(_) => return OutsideStanding::Unkept { reason: String::new(), seen: None },
        };
        // What is not kept may be of any size: it is told by its state alone.
        let is_kept = !matches!(like, OutsideStanding::Unkept { .. });
        match is_kept.then(|| digest_of(&mut open_regular_itself(path).ok()?)).flatten() {
            Some((hash, size)) => OutsideStanding::File { hash: hex(&hash), size, mode: file.mode() & 0o7777 },
            None => OutsideStanding::Unkept { reason: String::new(), seen: Some(state_of(&file)) },
        }
    }

    /// Why a path is never changed from here; `None`: it may be, as far as its place says.
    pub fn not_ours(&self, path: &Path) -> Option<String> {
        // Without links, as `path` is: people keep a client's directory elsewhere, and link to it.
        if self.settings.records.iter().any(|record| real(record, 0).is_some_and(|record| path.starts_with(record))) {
            return Some(OF_CLIENT.to_owned());
        }
        if path.components().any(|part| part.as_os_str() == ".git") {
            return Some("it belongs to a git repository".to_owned());
        }
        let store = self.objects.path().parent();
        if store.is_some_and(|store| path.starts_with(store)) {
            return Some("it belongs to the store".to_owned());
        }
        // These are below /var but hold users' files; the second is where macOS has each user's temporary directory.
        let is_temporary = ["/var/tmp", "/var/folders"].iter().any(|place| path.starts_with(place));
        // A user's own directory may be below one of the system, as /run/user/1000 is. Root owns all of them, so to
        // own one proves nothing there.
        if SYSTEM.iter().any(|place| path.starts_with(place)) && !is_temporary && !owns_parent(path, false) {
            return Some("it is in a system directory".to_owned());
        }
        let other =
            path.ancestors().skip(1).find(|place| place.join(".git").exists() || place.join(".ic/ic.db").exists());
        let other = other.filter(|place| *place != self.root)?;
        let place = shell_word(&other.to_string_lossy());
        Some(format!("it belongs to another project: ic -C {place} log"))
    }

    /// Replaces what stands at a path: `from` by `to`. Returns why not; then it is as it was.
    pub fn replace_outside(
        &self,
        path: &Path,
        from: &OutsideStanding,
        to: &OutsideStanding,
    ) -> std::result::Result<(), String> {
        self.may_replace(path, from, to)?;
        self.write_outside(path, from, to).map_err(|error| error.message().to_owned())
    }

    /// Why [`Workspace::replace_outside`] would not; nothing is changed.
    pub fn may_replace(
        &self,
        path: &Path,
        from: &OutsideStanding,
        to: &OutsideStanding,
    ) -> std::result::Result<(), String> {
        for standing in [from, to] {
            if let OutsideStanding::Unkept { reason, .. } = standing {
                return Err(format!("{reason}: no content of it is kept"));
            }
        }
        if let Some(why) = self.not_ours(path) {
            return Err(why);
        }
        if !owns_parent(path, true) {
            return Err("its directory belongs to another user, or may not be written into".to_owned());
        }
        if fs::symlink_metadata(path).is_ok_and(|file| file.uid() != euid()) {
            return Err("it belongs to another user".to_owned());
        }
        // The nearest directory that exists has to be its own real path. What is missing below it is made by this call.
        let existing = path.ancestors().skip(1).find(|place| place.exists());
        let is_same = |place: &Path| place.canonicalize().is_ok_and(|real| real == place);
        if !existing.is_some_and(is_same) {
            return Err("a directory above it was replaced by a link since".to_owned());
        }
        match to.content().map(|hash| self.objects.has(&hash)) {
            Some(Ok(false) | Err(_)) => Err("its content is not kept any more".to_owned()),
            _ => Ok(()),
        }
    }

    fn write_outside(&self, path: &Path, from: &OutsideStanding, to: &OutsideStanding) -> Result<()> {
        let doing = || format!("changing {}", path.display());
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
        let name = path_bytes(Path::new(name));
        if to.content().is_some() {
            fs::create_dir_all(parent).while_doing(doing)?;
        }
        let root = RootDir::open(parent)?;
        let before = root.state(name).while_doing(doing)?;
        // Checked again just before the change: what others wrote since the plan must not be lost.
        let is_expected = || self.outside_now(path, from).is_as(from);
        let still = |now: &EntryState| *now == before && is_expected();
        if let (OutsideStanding::File { mode, .. }, Some(hash)) = (to, to.content()) {
            // A killed call may have left one.
            root.remove_temporary(b"", TEMPORARY).while_doing(doing)?;
            root.write_file(name, *mode, TEMPORARY, &still, &mut |file: &mut File| {
                self.objects.read_to(&hash, file).map(drop)
            })?;
        } else {
            root.remove_file(name, &still)?;
            if let OutsideStanding::Absent { above: Some(above) } = to {
                remove_empty(parent, Path::new(above));
            }
        }
        root.sync()
    }
}

/// Removes the directories that were made for a file, as far as they are empty.
fn remove_empty(parent: &Path, above: &Path) {
    for directory in parent.ancestors().take_while(|directory| directory.starts_with(above)) {
        if fs::remove_dir(directory).is_err() {
            return;
        }
    }
}

fn first_missing(path: &Path) -> Option<String> {
    let missing = path.ancestors().skip(1).take_while(|place| !place.exists()).last();
    missing.map(|place| place.to_string_lossy().into_owned())
}

fn is_missing(error: &io::Error) -> bool {
    // Below a file there is nothing, so a directory that became one counts as missing.
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn euid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether the caller owns the directory that holds a path, or would hold it; `and_writes`: and may write into it. Root owns too much to
/// say so of a system directory.
fn owns_parent(path: &Path, and_writes: bool) -> bool {
    let Some(place) = path.ancestors().skip(1).find(|place| place.exists()) else { return false };
    // In a directory like /tmp, where everyone may write and only owners may remove (the sticky bit), a user's own files are safe to
    // replace.
    let is_shared = |meta: &Metadata| meta.mode() & 0o1002 == 0o1002;
    let is_own =
        fs::metadata(place).is_ok_and(|meta| meta.is_dir() && (meta.uid() == euid() || and_writes && is_shared(&meta)));
    let may_write = || rustix::fs::access(place, rustix::fs::Access::WRITE_OK).is_ok();
    if and_writes { is_own && may_write() } else { is_own && euid() != 0 }
}

/// Where a path that a tool was given leads, links followed, if that is outside of the root. The file need not be there yet.
pub fn outside(root: &Path, path: &Path) -> Option<PathBuf> {
    let real = real(path, 0)?;
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    (!real.starts_with(root)).then_some(real)
}

fn real(path: &Path, depth: usize) -> Option<PathBuf> {
    if let Ok(real) = path.canonicalize() {
        return Some(real);
    }
    // A link may lead to a file that is made by writing through it.
    // At most eight, because links may lead in a circle.
    if let Some(target) = path.read_link().ok().filter(|_| depth < 8) {
        return real(&path.parent()?.join(target), depth + 1);
    }
    let existing = path.ancestors().skip(1).find(|place| place.exists())?;
    Some(existing.canonicalize().ok()?.join(path.strip_prefix(existing).ok()?))
}
