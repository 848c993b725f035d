//! Carrying out a durable compensation.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ic_base::{Code, Diagnose, Diagnosis, Result};
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::objects::{Objects, Writer};
use ic_checkpoint::restore::database;
use ic_checkpoint::rootfs::{self, EntryState, RootDir};
use ic_ledger::path_from_bytes;

use crate::action::{CompensatedFile, EffectAction, EffectBefore, How};
use crate::child::{self, ChildCommand, ChildExit, Program};
use crate::compensation::Compensation;
use crate::description::because;
use crate::tail::with_tail;
use ic_dispatch::process::{self, EndedProcess, ProcessIdentity};

/// How long a process may take to end when it is asked to.
pub const GRACE: Duration = Duration::from_secs(5);

/// The longest log of an undo, in bytes.
const LONGEST_LOG: u64 = 8 << 20;

/// The place in which a compensation is carried out.
pub struct Ground<'a> {
    /// The top of the working tree: paths of files start here.
    pub root: &'a Path,
    /// The project's directory, in which commands run.
    pub directory: &'a Path,
    /// The store of the contents of files.
    pub objects: &'a Objects,
    /// Variables for commands, beside those that every compensation has.
    pub environment: Vec<(OsString, OsString)>,
    /// The file to which the output of commands is appended.
    pub log: PathBuf,
}

/// The outcome of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoneEffect {
    /// The effect is undone, or never was.
    Done,
    /// Nothing was done about it, as declared.
    Skipped(String),
    /// It could not be undone.
    Failed(String),
}

/// The callbacks of one attempt.
pub struct EffectWatch<'w> {
    /// Records a command's process before the command begins; its error is returned, and nothing is run.
    pub born: &'w mut dyn FnMut(&ProcessIdentity) -> Result<()>,
    /// Gets the command's output as it comes.
    pub live: &'w mut (dyn FnMut(&[u8]) + Send),
    /// Whether the attempt is to end early.
    pub cancelled: &'w (dyn Fn() -> bool + Sync),
}

/// Makes one attempt to undo an effect. It may be made again after any outcome, and after a crash in its middle.
pub fn attempt(compensation: &Compensation, ground: &Ground<'_>, watch: &mut EffectWatch<'_>) -> Result<UndoneEffect> {
    let skipped = |what, reason: &Option<String>| Ok(UndoneEffect::Skipped(because(what, reason.as_ref())));
    match &compensation.action {
        EffectAction::Exec { argv, how } => {
            let argv = argv.iter().map(OsString::from).collect();
            run(&Program::Argv(argv), how, compensation, ground, watch)
        }
        EffectAction::Shell { line, how } => run(&Program::Shell(line.clone()), how, compensation, ground, watch),
        EffectAction::RestoreFiles { files } => Ok(restore_all(files, compensation, ground)),
        EffectAction::KillProcess { pid_file, identity, before } => {
            // What was recorded when the step ended comes first: others may have written the file since.
            let known = identity.clone().or_else(|| pid_file.as_ref().and_then(|file| written(ground.root, file)));
            // The process that the file named before the step began is another one's, and must live.
            let known = known.filter(|identity| before.as_ref() != Some(identity));
            // An undo is armed before its step begins, so it must succeed where there is nothing to undo.
            Ok(known.map_or(UndoneEffect::Done, |identity| end(&identity)))
        }
        EffectAction::Skip { reason } => skipped("declared to need no undo", reason),
        EffectAction::Retry { reason } => skipped("to be retried instead", reason),
        EffectAction::Pivot { reason } => skipped("it cannot be undone", reason),
    }
}

fn run(
    program: &Program,
    how: &How,
    compensation: &Compensation,
    ground: &Ground<'_>,
    watch: &mut EffectWatch<'_>,
) -> Result<UndoneEffect> {
    let directory = how
        .directory
        .as_ref()
        .map_or_else(|| ground.directory.to_owned(), |below| ground.directory.join(path_from_bytes(&below.0)));
    let mut environment = ground.environment.clone();
    let mut set = |key: &str, value: &str| environment.push((key.into(), value.into()));
    // A later value replaces an earlier one: the file overrides the step's outputs, and the names of `ic` override both.
    compensation.outputs.iter().chain(&how.environment).for_each(|(key, value)| set(key, value));
    set("IC_IDEMPOTENCY_KEY", compensation.id.as_str());
    set("IC_RUN", compensation.run_id.as_str());
    set("IC_STEP", &compensation.step);
    let command = ChildCommand {
        program,
        directory: &directory,
        environment,
        // An undo must not report as the work of the dispatch that it undoes.
        removed: vec!["IC_DISPATCH".into()],
        timeout: Some(how.timeout()),
        grace: GRACE,
        log: &ground.log,
        longest_log: LONGEST_LOG,
    };
    let outcome = child::run(&command, watch.born, watch.live, watch.cancelled)?;
    Ok(match outcome.exit {
        ChildExit::Code(0) => UndoneEffect::Done,
        // An interruption and a timeout count as failures, too: a failed undo can be tried again.
        other => UndoneEffect::Failed(with_tail(&describe(&other), &outcome.tail)),
    })
}

/// How a command ended, for people.
pub fn describe(exit: &ChildExit) -> String {
    match exit {
        ChildExit::Code(code) => format!("it ended with exit code {code}"),
        ChildExit::Signal(signal) => format!("it was ended by signal {signal}"),
        ChildExit::TimedOut => "it timed out and was ended".to_owned(),
        ChildExit::Cancelled => "it was interrupted".to_owned(),
        ChildExit::NotStarted(why) => why.trim_end_matches('.').to_owned(),
    }
}

fn end(identity: &ProcessIdentity) -> UndoneEffect {
    match process::end_group(identity, GRACE).and_then(|_| process::end(identity, GRACE)) {
        Ok(EndedProcess::Terminated | EndedProcess::Killed | EndedProcess::WasGone) => UndoneEffect::Done,
        Err(error) => UndoneEffect::Failed(error.message().to_owned()),
    }
}

/// The process whose number a step wrote into a file; `None` if there is none, or if the process with that number began after the file was
/// written, and so is another one.
pub fn written(root: &Path, pid_file: &PathText) -> Option<ProcessIdentity> {
    // No link is followed: the file of another tree could name a process of others.
    let mut file = RootDir::open(root).ok()?.open_file(&pid_file.0).ok()?;
    let changed = file.metadata().ok()?.modified().ok()?;
    let mut text = String::new();
    // The number of a process is short. A longer file is none, and is not read whole.
    (&mut file).take(64).read_to_string(&mut text).ok()?;
    let identity = ProcessIdentity::of(text.trim().parse().ok()?).ok()??;
    began_before(&identity, changed).then_some(identity)
}

/// Whether a process began before that moment, by the kernel's clock; `true` where that cannot be told.
fn began_before(identity: &ProcessIdentity, moment: SystemTime) -> bool {
    /// The clocks of files and of processes differ by less than this.
    const SLACK: Duration = Duration::from_secs(1);
    let Some(began) = identity.began() else { return true };
    began <= moment + SLACK
}

/// What is at these paths now, for a compensation that restores it. Contents go to `writer`, which the caller finishes.
///
/// Errors: `invalid_value` for a directory, or what is neither file nor link.
pub fn remember_files(writer: &Writer<'_>, root: &Path, paths: &[PathText]) -> Result<Vec<CompensatedFile>> {
    let directory = RootDir::open(root)?;
    let remember = |path: &PathText| {
        let name = || String::from_utf8_lossy(&path.0).into_owned();
        let found = directory.state(&path.0).while_doing(|| format!("looking at {}", name()))?;
        let before = match found {
            EntryState::Absent => EffectBefore::Absent,
            EntryState::File(stat) => {
                let mut file = directory.open_file(&path.0).while_doing(|| format!("reading {}", name()))?;
                let (hash, _) = writer.put_file(&mut file)?.ok_or_else(|| was_purged(&name()))?;
                EffectBefore::File { hash, mode: stat.mode }
            }
            EntryState::Symlink(_, target) => EffectBefore::Symlink { target: PathText(target) },
            EntryState::Directory(_) | EntryState::Special => {
                return Err(Diagnosis::new(
                    Code::InvalidValue,
                    format!("{} is neither a file nor a link, and cannot be restored as one.", name()),
                )
                .hint("name the files in it, or undo it with a command"));
            }
        };
        Ok(CompensatedFile { path: path.clone(), before })
    };
    paths.iter().map(remember).collect()
}

fn was_purged(name: &str) -> Diagnosis {
    Diagnosis::new(Code::InvalidValue, format!("The content of {name} was purged, and is never stored again."))
        .hint("undo it with a command, or change the file first")
}

fn restore_all(files: &[CompensatedFile], compensation: &Compensation, ground: &Ground<'_>) -> UndoneEffect {
    // Each is tried: a file that is in the way must not keep the others from being restored.
    let mut failed: Vec<String> = files
        .iter()
        .filter_map(|file| {
            let error = restore(file, compensation, ground).err()?;
            Some(format!("{}: {}", String::from_utf8_lossy(&file.path.0), error.message()))
        })
        .collect();
    // The names are flushed, too: after a power cut, a file that the record calls restored must not be the old one again.
    let flushed = RootDir::open(ground.root).and_then(|root| root.sync());
    failed.extend(flushed.err().map(|error| error.message().to_owned()));
    if failed.is_empty() { UndoneEffect::Done } else { UndoneEffect::Failed(failed.join("; ")) }
}

/// Restores one path. Whatever is there is replaced, except a directory.
fn restore(file: &CompensatedFile, compensation: &Compensation, ground: &Ground<'_>) -> Result<()> {
    let root = RootDir::open(ground.root)?;
    let path = &file.path.0;
    let temporary = temporary(compensation);
    let found = root.state(path).while_doing(|| "looking at it".to_owned())?;
    // Checked again by each write: another program may change the path in between.
    let still = |now: &EntryState| *now == found;
    if matches!(found, EntryState::Directory(_)) {
        return Err(Diagnosis::new(Code::FileConflict, "There is a directory now."));
    }
    let comes = match &file.before {
        EffectBefore::File { hash, .. } => Some(hash),
        EffectBefore::Absent | EffectBefore::Symlink { .. } => None,
    };
    // Only one file is restored: beside the log of another state of it, SQLite would destroy a database.
    // It is held to the end: while it lives, SQLite lets no program begin to use the database.
    let _unused = database::require_alone(&root, ground.objects, path, comes)?;
    match &file.before {
        EffectBefore::Absent if found == EntryState::Absent => Ok(()),
        EffectBefore::Absent => root.remove_file(path, &still),
        EffectBefore::File { hash, mode } => {
            clear_the_way(&root, path, &temporary)?;
            root.write_file(path, *mode, &temporary, &still, &mut |out| {
                ground.objects.read_to(hash, out)?;
                // Its end is recorded after this, so the content must be on the disk first.
                out.sync_data().while_doing(|| "writing it".to_owned())
            })
        }
        EffectBefore::Symlink { target } => {
            clear_the_way(&root, path, &temporary)?;
            root.make_symlink(path, &target.0, &temporary, &still)
        }
    }
}

/// The beginning of the names under which the files of a compensation are written.
fn temporary(compensation: &Compensation) -> Vec<u8> {
    [b".ic-restore-", compensation.id.as_str().as_bytes()].concat()
}

/// Removes what an attempt whose process died left in the working tree at `root` under a temporary name. It need not be repeated.
pub fn clear_up(compensation: &Compensation, root: &Path) -> Result<()> {
    let EffectAction::RestoreFiles { files } = &compensation.action else { return Ok(()) };
    let root = RootDir::open(root)?;
    // Each directory is cleared once, because it is listed as a whole.
    let parents: BTreeSet<&[u8]> = files.iter().map(|file| rootfs::split(&file.path.0).0).collect();
    for directory in parents {
        match root.remove_temporary(directory, &temporary(compensation)) {
            // A directory that is gone holds no temporary file.
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            removed => drop(removed.while_doing(|| "clearing up after an undo that died".to_owned())?),
        }
    }
    Ok(())
}

/// Makes the directories above a path that are gone, whose permissions are not known. Removes what an attempt whose process died left under
/// the temporary name, which only this compensation uses.
fn clear_the_way(root: &RootDir, path: &[u8], temporary: &[u8]) -> Result<()> {
    // The mode of directories under the usual umask.
    const USUAL_MODE: u32 = 0o755;
    for end in path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at) {
        let parent = &path[..end];
        let found = root.state(parent).while_doing(|| "looking above it".to_owned())?;
        if found == EntryState::Absent {
            root.make_directory(parent)?;
            root.set_mode(parent, USUAL_MODE, &|_| true)?;
        }
    }
    root.remove_temporary(rootfs::split(path).0, temporary).while_doing(|| "clearing up beside it".to_owned())?;
    Ok(())
}
