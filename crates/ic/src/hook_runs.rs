//! Hooks that capture and have not ended: a small file each beside the ledger, locked while its process lives. A file that is not locked is
//! left from a hook that was killed, mostly by its client's limit: the next hook moves it into `hooks.log`.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ic_base::Timestamp;
use ic_ledger::lock::{LockMode, wait};
use ic_ledger::private;

use crate::environment::CliEnvironment;
use crate::hook_log::{self, HookLogLine};
use crate::text::{counted, plain};

/// The code of a hook that began and was killed before it ended.
pub(crate) const CUT_OFF: &str = "hook_cut_off";

/// How often a running hook updates its file: the time of its death is known as exactly as this.
const BEAT: Duration = Duration::from_millis(250);

/// The extension of a file that is not locked yet. A crash within these microseconds leaves it, and it is ignored.
const NEW: &str = "new";

/// The file of a hook that runs, removed when it ends.
pub(crate) struct HookRun {
    path: PathBuf,
    _file: File,
}

impl HookRun {
    /// Writes down that a hook begins, and settles those that were killed before. `None` if it cannot be written: that stops no agent.
    pub(crate) fn begin(store: &Path, line: &HookLogLine) -> Option<Self> {
        // The file of one hook:
        //
        //     ID.new ── written, locked ──► ID ── its end ──► removed
        //                                   └── killed: the lock is gone ──► moved into hooks.log by the next hook
        settle(store);
        let directory = directory(store);
        private::directory(&directory).ok()?;
        let path = directory.join(format!("{}-{}", line.at, std::process::id()));
        let new = path.with_extension(NEW);
        let mut file = private::create_new(&new).ok()?;
        file.write_all(&serde_json::to_vec(line).ok()?).ok()?;
        // Locked before it has its name: a process that finds it unlocked knows that its owner is gone.
        wait(&file, LockMode::Exclusive, Duration::ZERO).ok()?.then_some(())?;
        fs::rename(&new, &path).ok()?;
        if let Ok(beating) = file.try_clone() {
            // The thread ends with the process; the file's time is then that of the last beat.
            let _ = std::thread::Builder::new().spawn(move || beat(&beating));
        }
        Some(Self { path, _file: file })
    }
}

impl Drop for HookRun {
    fn drop(&mut self) {
        // The lock is still held: it goes with the file below, so no other hook finds this one dead.
        let _ = fs::remove_file(&self.path);
    }
}

fn beat(file: &File) {
    loop {
        std::thread::sleep(BEAT);
        if file.set_modified(at(CliEnvironment::context().now().millis())).is_err() {
            return;
        }
    }
}

/// The hooks that were killed and are not in the log yet, oldest first.
pub(crate) fn cut_off(store: &Path) -> Vec<HookLogLine> {
    let mut lines: Vec<HookLogLine> = of_the_dead(store).map(|(_, line, _)| line).collect();
    lines.sort_by_key(|line| line.at);
    lines
}

/// A warning if hooks were killed within the last 24 hours; `None` if none was.
pub(crate) fn said_lately(store: &Path, now: Timestamp) -> Option<String> {
    const LATELY: i64 = 24 * 60 * 60 * 1000;
    let mut lines = hook_log::read(store);
    lines.extend(cut_off(store));
    lines.retain(|line| line.code.as_deref() == Some(CUT_OFF) && now.millis() - line.at < LATELY);
    let last = lines.last()?;
    let count = counted(lines.len(), "hook");
    Some(format!(
        "{count} began and did not end within a day, the last at {} ({}): what was done then may be recorded without a look; see: ic hooks doctor",
        last.ended_at(),
        plain(&last.event)
    ))
}

/// Moves the hooks that began and did not end into the log.
fn settle(store: &Path) {
    for (path, line, _owner) in of_the_dead(store) {
        // The lock is held until the file is gone: of two hooks that find it, only one writes it down.
        if fs::remove_file(&path).is_ok() {
            hook_log::append(store, &line);
        }
    }
}

fn directory(store: &Path) -> PathBuf {
    store.join("hooks.running")
}

fn of_the_dead(store: &Path) -> impl Iterator<Item = (PathBuf, HookLogLine, File)> {
    let entries = fs::read_dir(directory(store)).into_iter().flatten().flatten();
    // Files with an extension are not locked yet, and their owners are still writing them.
    let paths = entries.map(|entry| entry.path()).filter(|path| path.extension().is_none());
    paths.filter_map(|path| {
        let file = File::open(&path).ok()?;
        // This does not wait: a hook whose lock is held lives, and holds it until it ends.
        wait(&file, LockMode::Exclusive, Duration::ZERO).ok()?.then_some(())?;
        // Another hook may have moved it into the log between the listing and this lock.
        let line = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
        let beat = file.metadata().ok()?.modified().ok()?;
        Some((path, ended(line, beat), file))
    })
}

fn at(millis: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(millis.unsigned_abs())
}

/// The line of a hook that was killed; `line.at` was when it began, and becomes when it ended.
fn ended(line: HookLogLine, beat: SystemTime) -> HookLogLine {
    // This is zero if the clock was set back between its beginning and the last beat.
    let took = beat.duration_since(at(line.at)).unwrap_or_default();
    let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let at = line.at.saturating_add_unsigned(ms);
    let message = format!(
        "it began and did not end: killed after about {:.1} s, mostly by its client's limit; exclude large directories (.gitignore), or raise \
         the hook's timeout and IC_HOOK_LIMIT",
        took.as_secs_f64()
    );
    HookLogLine { at, ms, ..line }.saying(CUT_OFF, &message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_whose_process_lives_is_told_from_one_that_was_killed() {
        let place = tempfile::tempdir().expect("a directory");
        let line = HookLogLine::new("codex", "Stop", Duration::ZERO);
        let living = HookRun::begin(place.path(), &line).expect("a run");
        assert!(cut_off(place.path()).is_empty());
        // As a process leaves it that is killed: the file, and no lock.
        let dead = directory(place.path()).join("1-1");
        fs::write(&dead, serde_json::to_vec(&line).expect("JSON")).expect("a file");
        let found = cut_off(place.path());
        assert_eq!((found.len(), found[0].code.as_deref()), (1, Some(CUT_OFF)));
        settle(place.path());
        assert!(!dead.exists() && cut_off(place.path()).is_empty());
        let logged = hook_log::read(place.path());
        assert_eq!((logged.len(), logged[0].event.as_str()), (1, "Stop"));
        drop(living);
        assert_eq!(fs::read_dir(directory(place.path())).expect("a directory").count(), 0);
    }
}
