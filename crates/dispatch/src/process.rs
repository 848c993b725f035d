//! Which process it is, beyond its number, and how a process or its group is ended.
//!
//! A pid is reused within minutes on a busy machine; pid, start time and boot together are not. Every signal is
//! sent only after the process was recognised, on Linux through a pidfd that was opened before the look, so that
//! a successor with the same number is never hit. A group is signalled as a whole, so that a process that forks
//! at that moment cannot escape.

#[cfg(test)]
mod tests;

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use ic_base::{Code, Diagnose, Diagnosis, Result};
use ic_sys::processes::{self, ProcessEntry, SignalTarget};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpgrp, kill_process_group};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// How long a killed process may take to disappear: it may be stuck in the kernel, waiting for a disk.
const KILL_LIMIT: Duration = Duration::from_secs(5);
// Between two looks at a process that was signalled: short at first, since most end at once, then doubled.
const FIRST_PAUSE: Duration = Duration::from_micros(500);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// One process of one boot of one machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// Its number, which another process may have later.
    pub pid: u32,
    /// When it started: on Linux clock ticks since boot, elsewhere seconds since 1970.
    pub start_time: u64,
    /// The boot it belongs to, as the kernel names it, then the machine and the namespace of its number. Empty where the system has no such
    /// names.
    pub boot_id: String,
}

/// The place of a process, seen from this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In the same table of processes as this one.
    Here,
    /// In an earlier boot of this machine.
    Past,
    /// On another machine or in another container: it cannot be told from here whether it lives.
    Elsewhere,
}

/// The boot and the place of our own processes: a hash of what tells this machine from others, and the namespace of process numbers.
fn own_boot() -> String {
    static PLACE: OnceLock<String> = OnceLock::new();
    let place = PLACE.get_or_init(|| {
        let Some((machine, space)) = processes::place() else { return String::new() };
        let mut digest = Sha256::new();
        for part in machine {
            digest.update(part);
            digest.update([0]);
        }
        let machine: String = digest.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{machine} {space}")
    });
    format!("{} {place}", processes::boot_id()).trim().to_owned()
}

fn entry_of(pid: u32) -> Result<Option<ProcessEntry>> {
    processes::entry(pid).while_doing(|| format!("looking up the process {pid}"))
}

/// What became of a process that was to be ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedProcess {
    /// It ended after SIGTERM, within the grace period.
    Terminated,
    /// It was killed after the grace period.
    Killed,
    /// It was gone before; nothing was signalled.
    WasGone,
}

impl ProcessIdentity {
    /// The identity of the process that has this number now; none if there is none. A zombie counts as gone.
    ///
    /// Errors: `io_error` when the table of processes cannot be read; `invalid_value` when the number is that of
    /// a thread which is not its process's first.
    pub fn of(pid: u32) -> Result<Option<Self>> {
        let boot_id = own_boot();
        let Some(entry) = entry_of(pid)?.filter(|entry| entry.alive) else { return Ok(None) };
        if processes::is_secondary_thread(pid) {
            return Err(Diagnosis::new(Code::InvalidValue, format!("{pid} is a thread, not a process.")));
        }
        Ok(Some(Self { pid, start_time: entry.start_time, boot_id }))
    }

    /// A process of this boot that had this number and has ended.
    pub fn of_ended(pid: u32) -> Self {
        // Tick 0 is the boot itself: a later process with this number started after it, and is not taken for this one.
        Self { pid, start_time: 0, boot_id: own_boot() }
    }

    /// How long ago it started, to a hundredth of a second; `None` where the system does not say.
    pub fn age(&self) -> Option<Duration> {
        processes::age(self.start_time)
    }

    /// When it started, to a second; `None` where the system does not say.
    pub fn began(&self) -> Option<SystemTime> {
        processes::began(self.start_time)
    }

    /// Whether it is on another machine or in another container, so that it cannot be told from here whether it lives.
    pub fn is_elsewhere(&self) -> bool {
        self.place() == Place::Elsewhere
    }

    fn place(&self) -> Place {
        // BOOT MACHINE SPACE, as in `0c9d4f1e-… 9f3a0c51d2e84b67 4026531836`:
        //
        //     boot     machine   space
        //     same     any       same     Here
        //     another  same      any      Past
        //     all others                  Elsewhere
        let own = own_boot();
        let (boot, place) = self.boot_id.split_once(' ').unwrap_or((&self.boot_id, ""));
        let (own_boot, own_place) = own.split_once(' ').unwrap_or((&own, ""));
        let (machine, space) = place.split_once(' ').unwrap_or((place, ""));
        let (own_machine, own_space) = own_place.split_once(' ').unwrap_or((own_place, ""));
        // Where the system names neither machine nor namespace, the boot alone decides.
        let is_unnamed = place.is_empty();
        // A boot belongs to one machine, whose name may have changed since; each container has numbers of its own.
        if boot == own_boot && (is_unnamed || space == own_space) {
            return Place::Here;
        }
        if boot != own_boot && (is_unnamed || machine == own_machine) {
            return Place::Past;
        }
        Place::Elsewhere
    }

    /// Whether this very process still runs here. A zombie does not, nor does one of another machine. When the table of processes cannot be
    /// read it counts as running, because what follows from "gone" cannot be undone.
    pub fn is_alive(&self) -> bool {
        self.entry().map_or(true, |entry| entry.is_some_and(|entry| entry.alive))
    }

    /// Whether this very process still runs, or a member of the group that it leads or led.
    pub fn has_living_group(&self) -> bool {
        self.is_alive() || self.living_members().map_or(true, |members| !members.is_empty())
    }

    /// Whether it is this program itself or one of its ancestors; `false` where that cannot be looked up.
    pub fn is_caller_or_ancestor(&self) -> bool {
        /// No process descends from more; a table that changes while it is read might show a circle.
        const DEEPEST: usize = 4096;
        let mut pid = std::process::id();
        for _ in 0..DEEPEST {
            let Ok(Some(entry)) = entry_of(pid) else { return false };
            if pid == self.pid {
                return entry.start_time == self.start_time && self.place() == Place::Here;
            }
            pid = entry.parent;
        }
        false
    }

    /// The entry of this process, be it a zombie; none when it is gone or the number belongs to another.
    fn entry(&self) -> Result<Option<ProcessEntry>> {
        if self.place() != Place::Here {
            return Ok(None);
        }
        Ok(entry_of(self.pid)?.filter(|entry| entry.start_time == self.start_time))
    }

    /// The living members of the group that this process leads or led; empty when that cannot be said for certain.
    fn living_members(&self) -> Result<Vec<ProcessEntry>> {
        if self.place() != Place::Here {
            return Ok(Vec::new());
        }
        let leader = entry_of(self.pid)?;
        let mut members =
            processes::members(self.pid).while_doing(|| format!("looking up the process group {}", self.pid))?;
        let same_group = match leader {
            // If another process has the number by now, the group of this one is gone.
            Some(leader) => leader.start_time == self.start_time,
            // The kernel does not reuse a pid that still names a group, and no process joins a group before it is made.
            None => members.iter().all(|m| m.start_time >= self.start_time),
        };
        members.retain(|member| same_group && member.alive);
        Ok(members)
    }

    /// The pid to signal. Errors: `io_error`, `invalid_value` for processes that must never be signalled, whatever the record says.
    fn refuse_own(&self) -> Result<Pid> {
        if self.is_elsewhere() {
            return Err(Diagnosis::new(
                Code::Io,
                format!("Process {} is one of another machine or container. Nothing was signalled.", self.pid),
            )
            .hint("end it there"));
        }
        let what = match self.pid {
            0 => "the process number 0, which stands for our own group",
            1 => "process 1, which holds up the system",
            pid if pid == std::process::id() => "this program itself",
            _ => {
                return i32::try_from(self.pid)
                    .ok()
                    .and_then(Pid::from_raw)
                    .ok_or_else(|| Diagnosis::new(Code::InvalidValue, format!("{} is no process number.", self.pid)));
            }
        };
        Err(Diagnosis::new(Code::InvalidValue, format!("Asked to end {what}. Nothing was signalled.")))
    }
}

/// Ends one process: SIGTERM, and SIGKILL if it still runs after `grace`.
///
/// When it returns Ok the process is gone, or a zombie that its parent has not collected. Errors: `invalid_value`
/// for pid 0, 1 and our own; `permission_denied` when the process is another user's; `io_error` when it outlives
/// even SIGKILL, or the table of processes cannot be read.
pub fn end(identity: &ProcessIdentity, grace: Duration) -> Result<EndedProcess> {
    let pid = identity.refuse_own()?;
    let target = RecognisedTarget { identity, target: SignalTarget::of(pid) };
    let ended =
        until_gone(grace, || Ok(identity.entry()?.is_none_or(|entry| !entry.alive)), |signal| target.signal(signal))?;
    ended.ok_or_else(|| outlived(&format!("Process {pid}")))
}

/// Ends the whole process group that this process leads, or led: its members may outlive it.
///
/// The process itself is ended too when it has left its group. Without its leader a group is taken for the same
/// one when all its members started no earlier than the leader.
/// Errors: as [`end`]; `invalid_value` also for our own group.
pub fn end_group(identity: &ProcessIdentity, grace: Duration) -> Result<EndedProcess> {
    let pid = identity.refuse_own()?;
    if pid == getpgrp() {
        return Err(Diagnosis::new(
            Code::InvalidValue,
            "Asked to end this program's own process group. Nothing was signalled.",
        ));
    }
    let ended = until_gone(
        grace,
        || Ok(identity.living_members()?.is_empty()),
        // A group has no pidfd. A member was found just now, and with one the kernel does not reuse the number.
        |signal| sent(kill_process_group(pid, signal), &format!("process group {pid}")),
    )?;
    let ended = ended.ok_or_else(|| outlived(&format!("Process group {pid}")))?;
    match (ended, end(identity, grace)?) {
        (ended, EndedProcess::WasGone) => Ok(ended),
        (EndedProcess::Killed, _) | (_, EndedProcess::Killed) => Ok(EndedProcess::Killed),
        _ => Ok(EndedProcess::Terminated),
    }
}

/// Waits until this program and its guard, which leads their group, are all that lives of it, or until the limit.
pub fn wait_for_others_of_guard(limit: Duration) -> Result<()> {
    let guard = ProcessIdentity::of(getpgrp().as_raw_nonzero().get().unsigned_abs())?;
    let is_alone = || guard.as_ref().map_or(Ok(true), |guard| Ok(guard.living_members()?.len() <= 2));
    wait_for(is_alone, limit).map(drop)
}

/// The name of the program that a process, be it a zombie, runs or ran; empty where that cannot be known.
pub fn program_name(pid: u32) -> Vec<u8> {
    entry_of(pid).ok().flatten().map_or_else(Vec::new, |entry| entry.name)
}

/// TERM, wait, KILL, wait. `signal` says whether there was anything to signal. `None`: it survived SIGKILL.
fn until_gone(
    grace: Duration,
    gone: impl Fn() -> Result<bool>,
    signal: impl Fn(Signal) -> Result<bool>,
) -> Result<Option<EndedProcess>> {
    // Checked first: when the process is gone, its number may belong to another.
    if gone()? || !signal(Signal::TERM)? {
        return Ok(Some(EndedProcess::WasGone));
    }
    // A stopped process receives its signals only when it continues.
    signal(Signal::CONT)?;
    if wait_for(&gone, grace)? {
        return Ok(Some(EndedProcess::Terminated));
    }
    signal(Signal::KILL)?;
    Ok(wait_for(&gone, KILL_LIMIT)?.then_some(EndedProcess::Killed))
}

fn wait_for(gone: impl Fn() -> Result<bool>, limit: Duration) -> Result<bool> {
    // This polls: the process need not be a child of this one, and a group has no handle that could be waited for.
    let start = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        if gone()? {
            return Ok(true);
        }
        let left = limit.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Ok(false);
        }
        thread::sleep(pause.min(left));
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// A process whose number does not change its meaning while this exists, where the system offers that.
struct RecognisedTarget<'a> {
    identity: &'a ProcessIdentity,
    target: SignalTarget,
}

impl RecognisedTarget<'_> {
    /// Whether the process was there to be signalled.
    fn signal(&self, signal: Signal) -> Result<bool> {
        // Looked up after the target was taken hold of: a process that is recognised now is the one that it is.
        if self.identity.entry()?.is_none() {
            return Ok(false);
        }
        sent(self.target.signal(signal), &format!("process {}", self.identity.pid))
    }
}

fn sent(result: rustix::io::Result<()>, what: &str) -> Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(Errno::SRCH) => Ok(false),
        Err(Errno::PERM) => {
            Err(Diagnosis::new(Code::PermissionDenied, format!("May not signal {what}: it belongs to another user.")))
        }
        Err(error) => Err(Diagnosis::new(Code::Io, format!("Could not signal {what}: {error}."))),
    }
}

fn outlived(what: &str) -> Diagnosis {
    Diagnosis::new(Code::Io, format!("{what} still runs {} s after it was killed.", KILL_LIMIT.as_secs()))
        .hint("it hangs in the kernel, often on a disk or a network file system; see: ps -o stat,wchan")
}
