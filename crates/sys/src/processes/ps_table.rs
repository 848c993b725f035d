//! The table of processes as `ps` prints it, which every system has.

use std::io;
use std::process::Command;

use super::ProcessEntry;

pub(super) fn entries(selection: &[&str]) -> io::Result<Vec<ProcessEntry>> {
    let output = Command::new("ps")
        .args(["-o", "pgid=,ppid=,stat=,lstart=,comm="])
        .args(selection)
        // The form of the start time must not follow the user's settings.
        .env("LC_ALL", "C")
        .env("TZ", "UTC")
        .output()?;
    // Its exit code is not looked at: `ps` ends with 1 where there is no such process.
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(parse).collect())
}

/// `PGID PPID STATE Mon Jan 2 15:04:05 2006 NAME`; macOS prints the whole path of the program.
fn parse(line: &str) -> Option<ProcessEntry> {
    let mut fields = line.split_whitespace();
    let group = fields.next()?.parse().ok()?;
    let parent = fields.next()?.parse().ok()?;
    let alive = !fields.next()?.starts_with('Z');
    let [_weekday, month, day, time, year] = [(); 5].map(|()| fields.next());
    let start_time = seconds(year?, month?, day?, time?)?;
    let name = fields.collect::<Vec<_>>().join(" ");
    let name = name.rsplit('/').next().unwrap_or_default().as_bytes().to_vec();
    Some(ProcessEntry { group, parent, start_time, alive, name })
}

/// The seconds from 1970 to a moment of UTC.
fn seconds(year: &str, month: &str, day: &str, time: &str) -> Option<u64> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = u32::try_from(MONTHS.iter().position(|name| *name == month)? + 1).ok()?;
    let date = chrono::NaiveDate::from_ymd_opt(year.parse().ok()?, month, day.parse().ok()?)?;
    let time = chrono::NaiveTime::parse_from_str(time, "%H:%M:%S").ok()?;
    u64::try_from(date.and_time(time).and_utc().timestamp()).ok()
}

#[cfg(test)]
mod tests {
    use super::{entries, parse};

    #[test]
    fn a_start_is_told_in_seconds() {
        let entry = parse(" 4242 1 Ss   Fri Nov 21 10:03:00 2025 /bin/a b").unwrap();
        assert_eq!((entry.group, entry.parent, entry.start_time, entry.alive), (4242, 1, 1_763_719_380, true));
        assert_eq!(entry.name, b"a b");
        assert!(!parse("4242 1 Z  Fri Nov 21  10:03:00 2025").unwrap().alive);
        assert_eq!(parse("4242 1 S  Fri Nov  1  10:03:01 2025").unwrap().start_time, 1_761_991_381);
        for line in ["", "4242 1 S", "4242 1 S Fri Nov 31 10:03:01 2025", "4242 1 S Fri Foo 1 10:03:01 2025"] {
            assert_eq!(parse(line), None, "{line}");
        }
    }

    #[test]
    fn ps_knows_the_processes_of_the_table() {
        let own = std::process::id();
        let by_ps = entries(&["-p", &own.to_string()]).unwrap();
        let entry = super::super::entry(own).unwrap().unwrap();
        assert_eq!(by_ps.len(), 1);
        assert_eq!((by_ps[0].group, by_ps[0].parent, &by_ps[0].name), (entry.group, entry.parent, &entry.name));
        assert!(entries(&["-A"]).unwrap().len() > 1);
        assert_eq!(entries(&["-p", "4194305"]).unwrap(), []);
    }
}
