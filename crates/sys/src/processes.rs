//! The table of processes: `/proc` on Linux (proc(5)), the kernel's own table on macOS, and `ps` where these do not say.

#[cfg(macos_ways)]
mod kernel_table;
mod proc_table;
mod ps_table;

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
    #[cfg(macos_ways)]
    return kernel_table::boot_id();
    #[cfg(not(macos_ways))]
    if proc_table::is_there() { proc_table::boot_id() } else { String::new() }
}

/// What tells this machine from others, and the namespace of process numbers, which containers have of their own. `None` where the system
/// names neither.
#[must_use]
pub fn place() -> Option<(Vec<Vec<u8>>, String)> {
    #[cfg(macos_ways)]
    return kernel_table::place();
    #[cfg(not(macos_ways))]
    proc_table::is_there().then(proc_table::place)?
}

/// The process with this number, be it a zombie.
pub fn entry(pid: u32) -> io::Result<Option<ProcessEntry>> {
    // No process has it: kill(2) takes it for the group of the caller.
    if pid == 0 {
        return Ok(None);
    }
    if proc_table::is_there() {
        return proc_table::entry(pid);
    }
    #[cfg(macos_ways)]
    if let Some(entry) = kernel_table::entry(pid) {
        return Ok(Some(entry));
    }
    Ok(ps_table::entries(&["-p", &pid.to_string()])?.pop())
}

/// All processes of a group, zombies too.
pub fn members(group: u32) -> io::Result<Vec<ProcessEntry>> {
    let mut members = if proc_table::is_there() { proc_table::entries()? } else { ps_table::entries(&["-A"])? };
    members.retain(|member| member.group == group);
    Ok(members)
}

/// Whether the number is that of a thread, which `/proc/PID` answers to without listing it.
#[must_use]
pub fn is_secondary_thread(pid: u32) -> bool {
    proc_table::is_there() && proc_table::is_secondary_thread(pid)
}

/// How long ago a process with this start time started, to a hundredth of a second; `None` where start times are whole seconds.
#[must_use]
pub fn age(start_time: u64) -> Option<Duration> {
    proc_table::is_there().then(|| proc_table::age(start_time))?
}

/// When a process with this start time started, to a second; `None` where the system does not say.
#[must_use]
pub fn began(start_time: u64) -> Option<SystemTime> {
    if proc_table::is_there() {
        return proc_table::began(start_time);
    }
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(start_time))
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

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use super::{age, entry, proc_table};

    #[test]
    fn an_age_is_exact_or_is_not_told() {
        let before = Instant::now();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let after = Instant::now();
        let start_time = entry(child.id()).unwrap().expect("it runs").start_time;
        sleep(Duration::from_millis(300));
        let (least, age, most) = (after.elapsed(), age(start_time), before.elapsed());
        child.kill().unwrap();
        child.wait().unwrap();
        // A start in whole seconds would make it as much as a second too old.
        let Some(age) = age else { return assert!(!proc_table::is_there()) };
        let tick = Duration::from_millis(20);
        assert!(proc_table::is_there() && age + tick > least && age < most + tick, "{least:?} {age:?} {most:?}");
    }
}
