//! Whether there is a program to start, explained to the person who wrote the command.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::Program;
use super::gate::{ChildEnvironment, SHELL};

/// Where programs are looked for when there is no PATH (execvp(3)).
const DEFAULT_PATH: &str = "/bin:/usr/bin";
/// The kernel reads no more than this of a script's first line.
const LONGEST_INTERPRETER_LINE: u64 = 256;

/// The arguments to start, the program first; or a sentence that says why there is nothing to start.
pub(super) fn argv(
    program: &Program,
    directory: &Path,
    environment: &ChildEnvironment,
) -> Result<Vec<OsString>, String> {
    // This is asked here, because the error of a start does not tell whether the directory or the program is missing.
    match fs::metadata(directory) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => return Err(format!("The working directory {} is not a directory.", directory.display())),
        Err(error) => {
            let directory = directory.display();
            return Err(format!("The working directory {directory} cannot be used: {error}."));
        }
    }
    let argv = match program {
        Program::Shell(text) => return Ok(vec![SHELL.into(), "-c".into(), text.into()]),
        Program::Argv(argv) => argv,
    };
    let Some(name) = argv.first().filter(|name| !name.is_empty()) else {
        return Err("The command is empty: it names no program.".to_owned());
    };
    let found = find(name, directory, environment)?;
    check(name, &found, directory)?;
    let mut argv = argv.clone();
    // `env` takes a leading minus for an option and an equals sign for a variable.
    // A whole path avoids the minus. But a path with `=` in it is a variable, too, so a shell starts that one.
    if name.as_bytes().contains(&b'=') {
        argv[0] = found.into_os_string();
        argv.splice(0..0, [SHELL, "-c", r#"exec "$0" "$@""#].map(OsString::from));
    } else if name.as_bytes().starts_with(b"-") {
        argv[0] = found.into_os_string();
    }
    Ok(argv)
}

/// A program's name in a sentence.
pub(super) fn shown(name: &OsStr) -> String {
    format!("`{}`", name.display())
}

/// Why a program that was found did not become the gate's process, if `tail` ends with the line in which `env` says so. `None` when the
/// program is an `env` itself, which says the same of others.
pub(super) fn refused(name: &OsStr, tail: &[u8]) -> Option<String> {
    if Path::new(name).file_name() == Some(OsStr::new("env")) {
        return None;
    }
    let said = String::from_utf8_lossy(tail);
    // `/usr/bin/env: './tool': Permission denied`, with or without the directory of env.
    let (_, line) = said.trim_end().lines().next_back()?.split_once("env: ")?;
    let why = line.rsplit_once(": ").map_or(line, |(_, why)| why);
    Some(format!("{} could not be started: {why}.", shown(name)))
}

fn find(name: &OsStr, directory: &Path, environment: &ChildEnvironment) -> Result<PathBuf, String> {
    if name.as_bytes().contains(&b'/') {
        return Ok(directory.join(name));
    }
    let path = environment.get(OsStr::new("PATH")).map_or(OsStr::new(DEFAULT_PATH), OsString::as_os_str);
    let mut refused = None;
    for place in std::env::split_paths(path) {
        // An empty entry stands for the working directory, and a relative one lies in it.
        let candidate = directory.join(place).join(name);
        match fs::metadata(&candidate) {
            Ok(metadata) if metadata.is_file() && may_execute(&candidate) => return Ok(candidate),
            // As with execvp(3), this does not end the search. The file is named if no other is found.
            Ok(metadata) if metadata.is_file() => refused = Some(candidate),
            _ => {}
        }
    }
    let here = directory.join(name).is_file();
    let name = shown(name);
    Err(match refused {
        Some(file) => format!("{name} was not found in PATH: {} is not executable.", file.display()),
        None if here => {
            format!("{name} was not found in PATH; for the one in the working directory, write ./ before it.")
        }
        None => format!("{name} was not found in PATH."),
    })
}

fn check(name: &OsStr, file: &Path, directory: &Path) -> Result<(), String> {
    let name = shown(name);
    match fs::metadata(file) {
        Ok(metadata) if metadata.is_dir() => return Err(format!("{name} is a directory, not a program.")),
        Ok(metadata) if !metadata.is_file() => return Err(format!("{name} is not a program.")),
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(format!("{name} does not exist: there is no {}.", file.display()));
        }
        Err(error) => return Err(format!("{name} cannot be used: {error}.")),
    }
    if !may_execute(file) {
        return Err(format!("{name} is not executable; allow it with: chmod +x {}", file.display()));
    }
    // For a script without its interpreter, the kernel answers "no such file", as if the script were missing.
    let Some(interpreter) = interpreter(file) else { return Ok(()) };
    if directory.join(&interpreter).exists() {
        return Ok(());
    }
    if let Some(plain) = interpreter.as_bytes().strip_suffix(b"\r") {
        let plain = OsStr::from_bytes(plain).display();
        return Err(format!(
            "{name} cannot be run by {plain}: its first line ends with a carriage return, as on Windows."
        ));
    }
    Err(format!("{name} is to be run by {}, which does not exist.", interpreter.display()))
}

fn may_execute(file: &Path) -> bool {
    // This asks about the effective user, as the kernel does when the program is started.
    accessat(CWD, file, Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

/// The interpreter that a script's first line names; `None` for other programs, and for files that may not be read.
fn interpreter(file: &Path) -> Option<OsString> {
    let mut start = Vec::new();
    File::open(file).ok()?.take(LONGEST_INTERPRETER_LINE).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|&b| b == b'\n').next()?;
    let word = line.split(|b| matches!(b, b' ' | b'\t')).find(|word| !word.is_empty())?;
    Some(OsStr::from_bytes(word).to_owned())
}
