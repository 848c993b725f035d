//! The table of processes: `/proc` (proc(5)), else `ps`.

use std::fs;
use std::io::ErrorKind;
use std::process::Command;
use std::sync::OnceLock;

use ic_base::{Code, Diagnose, Diagnosis, Result};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

/// A process as the table shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessEntry {
    pub(super) group: u32,
    pub(super) parent: u32,
    pub(super) start_time: u64,
    /// Whether it is not a zombie: a process that ended and was not collected.
    pub(super) alive: bool,
    /// The name of its program; empty where the table comes from `ps`.
    pub(super) name: Vec<u8>,
}

/// The name of this boot; empty where the system has none.
pub(super) fn boot_id() -> String {
    static BOOT_ID: OnceLock<String> = OnceLock::new();
    BOOT_ID
        .get_or_init(|| {
            fs::read_to_string("/proc/sys/kernel/random/boot_id")
                .map_or_else(|_| String::new(), |text| text.trim().to_owned())
        })
        .clone()
}

/// The place in which process numbers are unique: a hash of this machine's name and identity, and the namespace of process numbers, which
/// containers have of their own. Empty where the system names neither.
pub(super) fn place() -> String {
    static PLACE: OnceLock<String> = OnceLock::new();
    PLACE
        .get_or_init(|| {
            let Ok(space) = fs::read_link("/proc/self/ns/pid") else { return String::new() };
            let read = |path: &str| fs::read(path).unwrap_or_default();
            let mut digest = Sha256::new();
            // Containers of one image share one id, and a cloned machine may keep it, so the name of the host counts too.
            for part in [read("/etc/machine-id"), read("/proc/sys/kernel/hostname")] {
                digest.update(part.trim_ascii());
                digest.update([0]);
            }
            let machine: String = digest.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
            let space: String = space.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
            format!("{machine} {space}")
        })
        .clone()
}

/// Whether a later start time is a greater number.
pub(super) fn starts_are_ordered() -> bool {
    has_proc()
}

/// The process with this number, be it a zombie.
pub(super) fn entry(pid: u32) -> Result<Option<ProcessEntry>> {
    // No process has it: kill(2) takes it for the group of the caller.
    if pid == 0 {
        return Ok(None);
    }
    if has_proc() { proc_entry(pid) } else { Ok(ps_entries(&["-p", &pid.to_string()])?.pop()) }
}

/// All processes of a group, zombies too.
pub(super) fn members(group: u32) -> Result<Vec<ProcessEntry>> {
    let mut members = if has_proc() { proc_entries()? } else { ps_entries(&["-A"])? };
    members.retain(|member| member.group == group);
    Ok(members)
}

/// Whether the number is that of a thread, which `/proc/PID` answers to without listing it.
pub(super) fn is_secondary_thread(pid: u32) -> bool {
    let Ok(status) = fs::read(format!("/proc/{pid}/status")) else { return false };
    let tgid = status.split(|&b| b == b'\n').find_map(|line| line.strip_prefix(b"Tgid:"));
    tgid.and_then(number).is_some_and(|tgid| tgid != u64::from(pid))
}

fn has_proc() -> bool {
    // The directory alone does not tell: other systems have a `/proc` of another form.
    static HAS_PROC: OnceLock<bool> = OnceLock::new();
    *HAS_PROC.get_or_init(|| fs::read("/proc/self/stat").is_ok_and(|stat| parse_stat(&stat).is_some()))
}

fn proc_entry(pid: u32) -> Result<Option<ProcessEntry>> {
    let path = format!("/proc/{pid}/stat");
    let stat = match fs::read(&path) {
        Ok(stat) => stat,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        // The process ended between open and read.
        Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => return Ok(None),
        Err(error) => return Err(error).while_doing(|| format!("reading {path}")),
    };
    let Some(mut entry) = parse_stat(&stat) else {
        return Err(Diagnosis::new(Code::Io, format!("{path} does not have the form of proc(5).")));
    };
    if !entry.alive {
        // The first thread of a process may end before the others; then the process lives.
        let threads = fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
        entry.alive = threads > 1;
    }
    Ok(Some(entry))
}

fn proc_entries() -> Result<Vec<ProcessEntry>> {
    let mut entries = Vec::new();
    for file in fs::read_dir("/proc").while_doing(|| "reading /proc".to_owned())? {
        let file = file.while_doing(|| "reading /proc".to_owned())?;
        let Some(pid) = file.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        match proc_entry(pid) {
            Ok(entry) => entries.extend(entry),
            // A security module may hide the processes of others.
            Err(error) if error.code() == Code::PermissionDenied => {}
            Err(error) => return Err(error),
        }
    }
    Ok(entries)
}

/// `PID (NAME) STATE PPID PGRP ... STARTTIME ...`; the name may hold blanks, parentheses and line ends.
fn parse_stat(stat: &[u8]) -> Option<ProcessEntry> {
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

fn ps_entries(selection: &[&str]) -> Result<Vec<ProcessEntry>> {
    let output = Command::new("ps")
        .args(["-o", "pgid=,ppid=,stat=,lstart="])
        .args(selection)
        // The start time is only ever compared with itself, so its form must not follow the user's settings.
        .env("LC_ALL", "C")
        .env("TZ", "UTC")
        .output()
        .while_doing(|| "asking ps for the processes".to_owned())?;
    // Its exit code is not looked at: `ps` ends with 1 where there is no such process.
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(parse_ps).collect())
}

/// `PGID PPID STATE Mon Jan 2 15:04:05 2006`.
fn parse_ps(line: &str) -> Option<ProcessEntry> {
    let mut fields = line.split_whitespace();
    let group = fields.next()?.parse().ok()?;
    let parent = fields.next()?.parse().ok()?;
    let alive = !fields.next()?.starts_with('Z');
    let started = fields.collect::<Vec<_>>().join(" ");
    // This number can only be compared for equality: `starts_are_ordered` says so to those who would order it.
    let hash = Sha256::digest(started.as_bytes());
    let start_time = hash.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte));
    Some(ProcessEntry { group, parent, start_time, alive, name: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::{entry, parse_ps, parse_stat, ps_entries};

    #[test]
    fn a_name_may_hold_anything() {
        let tail = " S 1 77 77 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 1 1";
        for name in ["sh", "a b", "x) S 1 2 3 (y", ") R", "(", "a\nb", ""] {
            let entry = parse_stat(format!("5 ({name}){tail}").as_bytes()).unwrap();
            assert_eq!((entry.parent, entry.group, entry.start_time), (1, 77, 987_654), "{name}");
            assert!(entry.alive, "{name}");
            assert_eq!(entry.name, name.as_bytes());
        }
        assert!(!parse_stat(format!("5 (z){}", tail.replace('S', "Z")).as_bytes()).unwrap().alive);
        assert!(!parse_stat(format!("5 (z){}", tail.replacen("77 77", "-1 -1", 1)).as_bytes()).unwrap().alive);
    }

    #[test]
    fn what_is_no_entry_is_refused() {
        for text in ["", "5", "5 (x", "5 )x(", "5 (x) S 1", "5 (x) S 1 a 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18"] {
            assert_eq!(parse_stat(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn ps_shows_the_same_start_again() {
        let line = " 4242 1 Ss   Fri Nov 21 10:03:00 2025";
        let entry = parse_ps(line).unwrap();
        assert_eq!((entry.group, entry.parent, entry.alive), (4242, 1, true));
        assert_eq!(parse_ps("4242 1 Z  Fri Nov 21  10:03:00 2025").unwrap().start_time, entry.start_time);
        assert_ne!(parse_ps("4242 1 S  Fri Nov 21  10:03:01 2025").unwrap().start_time, entry.start_time);
    }

    #[test]
    fn ps_and_proc_know_the_same_processes() {
        let own = std::process::id();
        let Ok(by_ps) = ps_entries(&["-p", &own.to_string()]) else { return };
        assert_eq!(by_ps.len(), 1);
        assert_eq!(by_ps[0].group, entry(own).unwrap().unwrap().group);
        assert!(ps_entries(&["-A"]).unwrap().len() > 1);
        assert_eq!(ps_entries(&["-p", "4194305"]).unwrap(), []);
    }
}
