//! Open files and working directories by `lsof`, in its form for programs: a letter, then the value.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::SoughtFile;

pub(super) fn holder_of(files: &[SoughtFile]) -> io::Result<Option<u32>> {
    let own = std::process::id();
    // It finds an open file by device and inode, whatever its name is. What is not there cannot be asked for.
    let there: Vec<&OsStr> =
        files.iter().filter(|file| file.identity.is_some()).map(|file| file.path.as_os_str()).collect();
    if there.is_empty() {
        return Ok(None);
    }
    let mut command = lsof();
    command.args(["-F", "p", "--"]).args(there);
    let lines = lines(&mut command)?;
    Ok(lines.iter().filter_map(|line| pid_of(line)).find(|pid| *pid != own))
}

pub(super) fn working_directories(program: &str) -> io::Result<Vec<(u32, PathBuf)>> {
    let mut command = lsof();
    command.args(["-a", "-c", program, "-d", "cwd", "-Fpn"]);
    let (mut found, mut process) = (Vec::new(), None);
    for line in lines(&mut command)? {
        match (pid_of(&line), line.strip_prefix(b"n"), process) {
            (Some(pid), ..) => process = Some(pid),
            (None, Some(path), Some(pid)) => found.push((pid, PathBuf::from(OsStr::from_bytes(path)))),
            _ => {}
        }
    }
    Ok(found)
}

fn lsof() -> Command {
    let mut command = Command::new("lsof");
    // Without warnings, and without questions to name servers.
    command.args(["-w", "-n", "-P"]).stdin(Stdio::null()).stderr(Stdio::null());
    command
}

fn lines(command: &mut Command) -> io::Result<Vec<Vec<u8>>> {
    let output = command.output()?;
    // It ends with 1 where it found nothing, and then prints nothing.
    if output.status.code().is_none_or(|code| code > 1) {
        return Err(io::Error::new(ErrorKind::Unsupported, "lsof failed"));
    }
    Ok(output.stdout.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect())
}

fn pid_of(line: &[u8]) -> Option<u32> {
    std::str::from_utf8(line.strip_prefix(b"p")?).ok()?.parse().ok()
}
