//! A shell in which a reader types.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_ic");

/// `ic` as the reader finds it. Each call has its own ids and comes a few seconds after the last one, and where the output
/// goes to what stands for the terminal, it is text, as on a terminal.
const IC: &str = r#"#!/bin/sh
read -r calls <"$STAGE/calls"
calls=$((calls + 1))
echo "$calls" >"$STAGE/calls"
[ /dev/fd/1 -ef "$STAGE/terminal" ] && IC_FORMAT=${IC_FORMAT-text} && export IC_FORMAT
IC_TEST_IDS=$((calls * 2654435761 % 4294967296)) IC_TEST_CLOCK=$((1771606515000 + calls * 4000))
export IC_TEST_IDS IC_TEST_CLOCK IC_TEST_ACTOR=ann@laptop:/home/ann/shop
exec "$STAGE/ic" "$@"
"#;

/// A shell, and what is around it.
pub(crate) struct Session {
    home: PathBuf,
    directory: PathBuf,
    shell: Child,
    ends: BufReader<ChildStdout>,
    stage: PathBuf,
    _rooms: [TempDir; 2],
}

impl Session {
    /// A shell in an empty home directory, where git knows who it is for.
    pub(crate) fn new() -> Self {
        let rooms = [tempfile::tempdir().expect("a home"), tempfile::tempdir().expect("a stage")];
        let [home, stage] = [0, 1].map(|at: usize| fs::canonicalize(rooms[at].path()).expect("its path"));
        fs::create_dir(stage.join("bin")).expect("a directory");
        fs::write(stage.join("bin/ic"), IC).expect("the program");
        fs::set_permissions(stage.join("bin/ic"), fs::Permissions::from_mode(0o755)).expect("its mode");
        std::os::unix::fs::symlink(BINARY, stage.join("ic")).expect("a link");
        fs::write(stage.join("calls"), "0\n").expect("the number of calls");
        fs::write(home.join(".gitconfig"), "[user]\n\tname = Ann\n\temail = ann@example.org\n")
            .expect("git's configuration");
        // Where pages say that the sources are.
        fs::create_dir(home.join("src")).expect("a directory");
        std::os::unix::fs::symlink(super::source(""), home.join("src/ic")).expect("a link");
        let terminal = || File::options().append(true).create(true).open(stage.join("terminal")).expect("the terminal");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("bash");
        shell.args(["--noprofile", "--norc"]).env_clear().current_dir(&home).stderr(terminal());
        shell.env("PATH", format!("{}:{path}", stage.join("bin").display())).env("HOME", &home);
        shell.env("STAGE", &stage).env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C.UTF-8").env("TZ", "UTC");
        for who in ["AUTHOR", "COMMITTER"] {
            shell.env(format!("GIT_{who}_DATE"), "2026-02-20T17:55:15Z");
        }
        let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("bash");
        let ends = BufReader::new(shell.stdout.take().expect("its output"));
        let mut session = Self { directory: home.clone(), home, shell, ends, stage, _rooms: rooms };
        // What tells how a command ended is out of the commands' way.
        session.say("exec 9>&1 1>&2");
        session
    }

    /// A file in the directory where the shell is.
    pub(crate) fn write(&self, name: &str, content: &str) {
        fs::write(self.directory.join(name), content).expect("write a file");
    }

    /// What a command says, with how it ended if not with 0.
    pub(crate) fn answer(&mut self, command: &str) -> String {
        let before = self.said().len();
        fs::write(self.stage.join("command"), format!("{command}\n")).expect("the command");
        self.say(r#". "$STAGE/command" </dev/null 9>&-; printf '%d %s\n' "$?" "$PWD" >&9"#);
        let mut end = String::new();
        self.ends.read_line(&mut end).expect("how it ended");
        let (code, directory) = end.trim_end().split_once(' ').unwrap_or_else(|| panic!("{command:?} ended the shell"));
        self.directory = PathBuf::from(directory);
        let mut said = String::new();
        for line in String::from_utf8_lossy(&self.said()[before..]).lines() {
            // A shell that is typed into says less about a program that was killed.
            let is_killed = line.starts_with(&*self.stage.to_string_lossy()) && line.contains(" Killed ");
            let _ = writeln!(said, "{}", if is_killed { "Killed" } else { line });
        }
        if code != "0" {
            let _ = writeln!(said, "[exit {code}]");
        }
        said.replace(&*self.home.to_string_lossy(), "/home/ann")
    }

    fn say(&mut self, line: &str) {
        let mut input = self.shell.stdin.as_ref().expect("the shell's input");
        writeln!(input, "{line}").expect("say something to the shell");
    }

    fn said(&self) -> Vec<u8> {
        fs::read(self.stage.join("terminal")).expect("what was said")
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

/// Text in which it does not matter how long something took, nor how wide a column is for it, nor what the number of a process
/// is, nor a digest: digests cover the path of the project.
pub(crate) fn lasting(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        for at in 0..words.len() {
            if at > 0 && matches!(words[at], "ms" | "s") && words[at - 1].parse::<f64>().is_ok() {
                (words[at - 1], words[at]) = ("some", "time");
            }
            if at > 0 && words[at - 1] == "process" && words[at].parse::<u32>().is_ok() {
                words[at] = "number";
            }
            let digest = words[at].rsplit(':').next().unwrap_or_default();
            if digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                words[at] = "digest";
            }
        }
        let _ = writeln!(out, "{}", words.join(" "));
    }
    out
}
