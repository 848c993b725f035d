//! Outputs that cannot be written, and readers that leave.

use std::fs::File;
use std::io::Read;
use std::process::Stdio;

use crate::filled::Filled;

#[test]
fn a_full_output_is_not_success() {
    let filled = Filled::new();
    let helps = ["--help", "-h", "--version", "help run", "run --help", "run list -h"];
    let helps = helps.iter().map(|words| words.split(' ').collect());
    for verb in filled.reads().into_iter().chain(helps) {
        let full = File::options().write(true).open("/dev/full").expect("/dev/full");
        let output = filled.cli.command(&verb).stdout(full).output().expect("start ic");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{verb:?}: {stderr}");
        assert!(stderr.contains("\"code\":\"disk_full\""), "{verb:?}: {stderr}");
    }
}

#[test]
fn what_was_done_before_its_output_was_lost_stands_and_the_error_says_so() {
    let filled = Filled::new();
    let runs = || filled.cli.json(["run", "list"]).as_array().expect("a list").len();
    let before = runs();
    let full = File::options().write(true).open("/dev/full").expect("/dev/full");
    let words = ["run", "create", "--goal", "once", "--phases", "a,b"];
    let output = filled.cli.command(words).stdout(full).output().expect("start ic");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("what it did is done"), "{stderr}");
    assert_eq!((output.status.code(), runs()), (Some(2), before + 1));
}

#[test]
fn a_command_whose_output_is_lost_is_no_success() {
    let filled = Filled::new();
    let exec = |line: &str, to: File| {
        let mut command = filled.cli.command(["exec", "--no-checkpoint", "--", "sh", "-c", line]);
        command.stdin(Stdio::null()).stdout(to).output().expect("start ic")
    };
    let full = || File::options().write(true).open("/dev/full").expect("/dev/full");
    let lost = exec("echo done > made; echo told", full());
    let stderr = String::from_utf8_lossy(&lost.stderr);
    assert_eq!(lost.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("\"code\":\"disk_full\"") && stderr.contains("what the command did stands"), "{stderr}");
    assert!(filled.cli.root().join("made").exists(), "{stderr}");
    assert_eq!(exec("exit 0", full()).status.code(), Some(0), "nothing was to be passed on");
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let filled = Filled::new();
    for i in 0..400 {
        filled.cli.ok(["run", "artifact", "add", &filled.run, "--path", &format!("{i:0200}")]);
    }
    for verb in [
        &["run", "events", &filled.run, "--format", "jsonl"][..],
        &["run", "artifact", "list", &filled.run],
        &["events", "tail", "--since", "0"],
    ] {
        let mut child =
            filled.cli.command(verb).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start ic");
        drop(child.stdout.take());
        let mut stderr = String::new();
        child.stderr.take().expect("stderr").read_to_string(&mut stderr).expect("read stderr");
        assert_eq!(child.wait().expect("wait").code(), Some(0), "{verb:?}: {stderr}");
        assert_eq!(stderr, "", "{verb:?}");
    }
}

#[test]
fn a_lost_answer_of_what_was_done_is_no_success() {
    let filled = Filled::new();
    let runs = || filled.cli.json(["run", "list"]).as_array().expect("a list").len();
    let before = runs();
    for format in ["json", "text"] {
        let words = ["run", "create", "--goal", "once", "--phases", "a,b", "--format", format];
        let mut child = filled.cli.command(words);
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = child.stdout(writer).output().expect("start ic");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{format}: {stderr}");
        assert!(stderr.contains("what it did is done"), "{format}: {stderr}");
    }
    for closed in [">&-", "<&- >&-"] {
        let script = format!("exec \"$0\" run create --goal once --phases a,b {closed}");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_ic")]).current_dir(filled.cli.root()).env_clear();
        let output = shell.stdin(Stdio::null()).output().expect("start sh");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{closed}: {stderr}");
        assert!(stderr.contains("what it did is done"), "{closed}: {stderr}");
        // Who wants nothing printed gets what they want.
        let script = "exec \"$0\" run create --goal once --phases a,b <>/dev/null >&0";
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", script, env!("CARGO_BIN_EXE_ic")]).current_dir(filled.cli.root()).env_clear();
        assert_eq!(shell.status().expect("start sh").code(), Some(0), "{closed}");
    }
    assert_eq!(runs(), before + 6, "all are on record");
    filled.cli.ok(["events", "verify"]);
    // Who only asked lost nothing.
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let status = filled.cli.command(["run", "status", &filled.run]).stdout(writer).status().expect("start ic");
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_cursor_stays_where_its_reader_left() {
    let filled = Filled::new();
    let mut child =
        filled.cli.command(["events", "tail", "--cursor", "leaver"]).stdout(Stdio::piped()).spawn().expect("start ic");
    drop(child.stdout.take());
    child.wait().expect("wait");
    let full = File::options().write(true).open("/dev/full").expect("/dev/full");
    let status = filled.cli.command(["events", "tail", "--cursor", "full"]).stdout(full).status().expect("start ic");
    assert_eq!(status.code(), Some(2));
    let cursors = filled.cli.json(["events", "cursor", "list"]);
    let moved: Vec<_> = cursors.as_array().expect("a list").iter().filter(|c| c["name"] == "full").collect();
    assert!(moved.is_empty(), "{cursors}");
    let read = filled.cli.json(["events", "tail", "--cursor", "full"]);
    assert_eq!(read[0]["seq"], 1, "nothing was lost");
}

#[test]
fn closed_streams_are_survived() {
    let filled = Filled::new();
    let binary = env!("CARGO_BIN_EXE_ic");
    for closed in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
        let script = format!("exec \"$0\" run status \"$1\" {closed}");
        let status = std::process::Command::new("sh")
            .args(["-c", &script, binary, &filled.run])
            .current_dir(filled.cli.root())
            .env_clear()
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("start sh");
        assert_eq!(status.code(), Some(0), "{closed}");
        filled.cli.ok(["events", "verify"]);
    }
}
