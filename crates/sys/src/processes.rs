//! The table of processes: `/proc` on Linux (proc(5)), the kernel's own table on macOS, and `ps` where these do not say.

mod ps_table;
#[cfg_attr(linux_ways, path = "processes/proc_table.rs")]
#[cfg_attr(macos_ways, path = "processes/kernel_table.rs")]
#[cfg_attr(not(any(linux_ways, macos_ways)), path = "processes/no_table.rs")]
mod system_table;

use std::io;
use std::time::{Duration, SystemTime};

use rustix::process::{Pid, Signal, kill_process};

/// A process as the table shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessEntry {
    /// The number of its process group.
    pub group: u32,
    /// The number of its parent.
    pub parent: u32,
    /// When it started. A later process has no smaller number. On Linux ticks of the clock since boot, otherwise seconds since 1970.
    pub start_time: u64,
    /// Whether it is not a zombie: a process that ended and was not collected.
    pub alive: bool,
    /// The name of its program, of which a system may keep only the beginning.
    pub name: Vec<u8>,
}

/// The name of this boot; empty where the system has none.
#[must_use]
pub fn boot_id() -> String {
    system_table::boot_id()
}

/// What tells this machine from others, and the namespace of process numbers, which containers have of their own. `None` where the system
/// names neither.
#[must_use]
pub fn place() -> Option<(Vec<Vec<u8>>, String)> {
    system_table::place()
}

/// The process with this number, be it a zombie.
pub fn entry(pid: u32) -> io::Result<Option<ProcessEntry>> {
    // No process has it: kill(2) takes it for the group of the caller.
    if pid == 0 {
        return Ok(None);
    }
    match system_table::entry(pid) {
        None => Ok(ps_table::entries(&["-p", &pid.to_string()])?.pop()),
        Some(found) => found,
    }
}

/// All processes of a group, zombies too.
pub fn members(group: u32) -> io::Result<Vec<ProcessEntry>> {
    let mut members = system_table::entries().unwrap_or_else(|| ps_table::entries(&["-A"]))?;
    members.retain(|member| member.group == group);
    Ok(members)
}

/// Whether the number is that of a thread, which Linux answers to without listing it.
#[must_use]
pub fn is_secondary_thread(pid: u32) -> bool {
    system_table::is_secondary_thread(pid)
}

/// How long ago a process with this start time started; `None` where the system does not say.
#[must_use]
pub fn age(start_time: u64) -> Option<Duration> {
    system_table::age(start_time)
}

/// When a process with this start time started, to a second; `None` where the system does not say.
#[must_use]
pub fn began(start_time: u64) -> Option<SystemTime> {
    system_table::began(start_time)
}

/// When a process started whose start time is in seconds since 1970.
fn began_at(seconds: u64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

#[allow(clippy::disallowed_methods, reason = "it is compared with what the kernel's clock said")]
fn age_since(began: SystemTime) -> Option<Duration> {
    SystemTime::now().duration_since(began).ok()
}

/// A process whose number cannot change its meaning while this exists, where the system offers that.
#[derive(Debug)]
pub struct SignalTarget {
    pid: Pid,
    #[cfg(linux_ways)]
    handle: Option<rustix::fd::OwnedFd>,
}

impl SignalTarget {
    /// Takes hold of the process that has this number now.
    #[must_use]
    pub fn of(pid: Pid) -> Self {
        Self {
            pid,
            // An old kernel or a sandbox may refuse it; then the number itself is signalled.
            #[cfg(linux_ways)]
            handle: rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok(),
        }
    }

    /// Sends it a signal. Errors: `ESRCH` if it is gone, `EPERM` if it is another user's.
    pub fn signal(&self, signal: Signal) -> rustix::io::Result<()> {
        #[cfg(linux_ways)]
        if let Some(handle) = &self.handle {
            return rustix::process::pidfd_send_signal(handle, signal);
        }
        kill_process(self.pid, signal)
    }
}
