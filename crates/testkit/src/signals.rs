//! The signals that ask a command to end, as a test sends them.

use std::process::Command;

/// The names of all that end a call, but those that this process ignores: what it starts then ignores them too, as under `nohup`.
pub fn that_end() -> Vec<&'static str> {
    const ALL: [(&str, u32); 4] = [("INT", 2), ("TERM", 15), ("HUP", 1), ("QUIT", 3)];
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    // SIGINT and SIGTERM are heard in any case.
    let is_heard = |name: &str, number: u32| matches!(name, "INT" | "TERM") || ignored >> (number - 1) & 1 == 0;
    ALL.into_iter().filter(|(name, number)| is_heard(name, *number)).map(|(name, _)| name).collect()
}

/// Sends a signal to a process, or with a negative number to a process group.
///
/// # Panics
/// If it cannot be sent.
pub fn send(name: &str, process: i32) {
    let sent = Command::new("kill").args(["-s", name, "--", &process.to_string()]).status().expect("kill");
    assert!(sent.success(), "SIG{name} to {process}");
}

/// Sends a signal to the process with this number.
///
/// # Panics
/// If it cannot be sent.
pub fn send_to(name: &str, pid: u32) {
    send(name, i32::try_from(pid).expect("a pid"));
}
