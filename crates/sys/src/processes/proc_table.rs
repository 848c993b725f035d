//! The table of processes in `/proc`.

use std::fs;
use std::io::{self, ErrorKind};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use rustix::io::Errno;

use super::ProcessEntry;

/// Whether this system has such a table, and may be asked by it.
pub(super) fn is_there() -> bool {
    // The directory alone does not tell: other systems have a `/proc` of another form.
    static IS_THERE: OnceLock<bool> = OnceLock::new();
    *IS_THERE.get_or_init(|| cfg!(linux_ways) && fs::read("/proc/self/stat").is_ok_and(|stat| parse(&stat).is_some()))
}

#[cfg(not(macos_ways))]
pub(super) fn boot_id() -> String {
    static BOOT_ID: OnceLock<String> = OnceLock::new();
    let read = || fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned();
    BOOT_ID.get_or_init(read).clone()
}

#[cfg(not(macos_ways))]
pub(super) fn place() -> Option<(Vec<Vec<u8>>, String)> {
    let space = fs::read_link("/proc/self/ns/pid").ok()?;
    let read = |path: &str| fs::read(path).unwrap_or_default().trim_ascii().to_vec();
    // Containers of one image share one id, and a cloned machine may keep it, so the name of the host counts too.
    let machine = vec![read("/etc/machine-id"), read("/proc/sys/kernel/hostname")];
    Some((machine, space.to_string_lossy().chars().filter(char::is_ascii_digit).collect()))
}

pub(super) fn is_secondary_thread(pid: u32) -> bool {
    let Ok(status) = fs::read(format!("/proc/{pid}/status")) else { return false };
    let tgid = status.split(|&b| b == b'\n').find_map(|line| line.strip_prefix(b"Tgid:"));
    tgid.and_then(number).is_some_and(|tgid| tgid != u64::from(pid))
}

pub(super) fn age(start_time: u64) -> Option<Duration> {
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    Duration::try_from_secs_f64(uptime).ok()?.checked_sub(since_boot(start_time))
}

pub(super) fn began(start_time: u64) -> Option<SystemTime> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let boot = text.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse::<u64>().ok())?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(boot) + since_boot(start_time))
}

fn since_boot(ticks: u64) -> Duration {
    Duration::from_millis(ticks.saturating_mul(1000) / rustix::param::clock_ticks_per_second().max(1))
}

pub(super) fn entry(pid: u32) -> io::Result<Option<ProcessEntry>> {
    let path = format!("/proc/{pid}/stat");
    let stat = match fs::read(&path) {
        Ok(stat) => stat,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        // The process ended between open and read.
        Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => return Ok(None),
        Err(error) => return Err(error),
    };
    let unknown = || io::Error::new(ErrorKind::InvalidData, format!("{path} does not have the form of proc(5)"));
    let mut entry = parse(&stat).ok_or_else(unknown)?;
    if !entry.alive {
        // The first thread of a process may end before the others; then the process lives.
        let threads = fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
        entry.alive = threads > 1;
    }
    Ok(Some(entry))
}

pub(super) fn entries() -> io::Result<Vec<ProcessEntry>> {
    let mut entries = Vec::new();
    for file in fs::read_dir("/proc")? {
        let Some(pid) = file?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        match entry(pid) {
            Ok(entry) => entries.extend(entry),
            // A security module may hide the processes of others.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {}
            Err(error) => return Err(error),
        }
    }
    Ok(entries)
}

/// `PID (NAME) STATE PPID PGRP ... STARTTIME ...`; the name may hold blanks, parentheses and line ends.
fn parse(stat: &[u8]) -> Option<ProcessEntry> {
    let open = stat.iter().position(|&b| b == b'(')?;
    let close = stat.iter().rposition(|&b| b == b')')?;
    let name = stat.get(open + 1..close)?.to_vec();
    let fields: Vec<&[u8]> =
        stat[close + 1..].split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).collect();
    // A process that is just being removed from the table has the group -1.
    let parent = number(fields.get(1)?).and_then(|parent| u32::try_from(parent).ok())?;
    let group = fields.get(2).filter(|group| **group != b"-1");
    // Field 22 of proc(5) is the twentieth after the name.
    let start_time = number(fields.get(19)?)?;
    let alive = group.is_some() && !matches!(*fields.first()?, b"Z" | b"X" | b"x");
    let group = group.map_or(Some(0), |group| number(group)).and_then(|group| u32::try_from(group).ok())?;
    Some(ProcessEntry { group, parent, start_time, alive, name })
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_name_may_hold_anything() {
        let tail = " S 1 77 77 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 1 1";
        for name in ["sh", "a b", "x) S 1 2 3 (y", ") R", "(", "a\nb", ""] {
            let entry = parse(format!("5 ({name}){tail}").as_bytes()).unwrap();
            assert_eq!((entry.parent, entry.group, entry.start_time), (1, 77, 987_654), "{name}");
            assert!(entry.alive, "{name}");
            assert_eq!(entry.name, name.as_bytes());
        }
        assert!(!parse(format!("5 (z){}", tail.replace('S', "Z")).as_bytes()).unwrap().alive);
        assert!(!parse(format!("5 (z){}", tail.replacen("77 77", "-1 -1", 1)).as_bytes()).unwrap().alive);
    }

    #[test]
    fn what_is_no_entry_is_refused() {
        for text in ["", "5", "5 (x", "5 )x(", "5 (x) S 1", "5 (x) S 1 a 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18"] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
}
