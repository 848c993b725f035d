use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use ic_base::Code;

use super::{ChildExit, Stage, argv, run, shell};

#[test]
fn output_and_errors_are_one_stream_in_order() {
    let stage = Stage::new();
    let outcome = stage.run(&shell("for i in 1 2 3 4 5 6 7 8 9; do echo o$i; echo e$i >&2; done"), |_| {});
    let expected: String = (1..=9).map(|i| format!("o{i}\ne{i}\n")).collect();
    assert_eq!(stage.log(), expected);
    assert_eq!(*stage.live.lock().unwrap(), expected.as_bytes());
    assert_eq!((outcome.tail, outcome.output_bytes), (expected.clone().into_bytes(), expected.len() as u64));
    assert_eq!(fs::metadata(stage.path("log")).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(outcome.log_error.is_none());
}

#[test]
fn a_second_run_is_appended() {
    let stage = Stage::new();
    stage.run(&shell("echo one"), |_| {});
    stage.run(&shell("echo two"), |_| {});
    assert_eq!(stage.log(), "one\ntwo\n");
}

#[test]
fn output_need_not_be_text() {
    let stage = Stage::new();
    stage.run(&shell(r"printf '\377\000\200x'"), |_| {});
    assert_eq!(fs::read(stage.path("log")).unwrap(), b"\xff\0\x80x");
}

#[test]
fn output_may_be_closed_early() {
    let stage = Stage::new();
    let outcome = stage.run(&shell("echo first; exec >&- 2>&-; sleep 0.2; touch done; exit 5"), |_| {});
    assert_eq!(outcome.exit, ChildExit::Code(5));
    assert!(stage.path("done").exists() && outcome.duration >= Duration::from_millis(200));
    assert_eq!(outcome.tail, b"first\n");
}

#[test]
fn output_comes_while_the_command_runs() {
    let stage = Stage::new();
    // It goes on only when its first line was seen, and cancels the run if that takes too long.
    let program = shell("echo seen; while ! test -e go; do sleep 0.01; done; echo gone");
    let log = stage.path("log");
    let go = stage.path("go");
    let mut live = |bytes: &[u8]| {
        if bytes.starts_with(b"seen") {
            fs::write(&go, "").unwrap();
        }
    };
    let outcome = run(&stage.command(&program, &log), &mut |_| Ok(()), &mut live, &|| false).unwrap();
    assert_eq!((outcome.exit, outcome.tail), (ChildExit::Code(0), b"seen\ngone\n".to_vec()));
}

#[test]
fn the_log_is_bounded_and_says_what_it_left_out() {
    let stage = Stage::new();
    let outcome = stage.run(&shell("seq 1 200000"), |command| command.longest_log = 20);
    assert_eq!(outcome.output_bytes, 1_288_895);
    assert_eq!(stage.log(), "1\n2\n3\n4\n5\n\n[... 1288875 bytes left out ...]\n99\n200000\n");
    assert_eq!(outcome.tail.len(), 4096);
    assert!(outcome.tail.ends_with(b"199999\n200000\n"));
}

#[test]
fn a_log_that_cannot_be_written_disturbs_nothing() {
    let stage = Stage::new();
    let missing = stage.path("none/log");
    for (log, code) in [(missing.as_path(), Code::Io), (Path::new("/dev/full"), Code::DiskFull)] {
        let outcome = stage.run(&shell("seq 1 50000; exit 3"), |command| command.log = log);
        assert_eq!((outcome.exit, outcome.output_bytes), (ChildExit::Code(3), 288_894));
        assert_eq!(outcome.log_error.unwrap().code(), code);
        assert!(outcome.tail.ends_with(b"50000\n"));
    }
}

#[test]
fn a_flood_of_output_takes_no_memory() {
    let stage = Stage::new();
    let resident = || -> u64 {
        let statm = fs::read_to_string("/proc/self/statm").unwrap();
        statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
    };
    let before = resident();
    let program = argv(&["head", "-c", "1G", "/dev/zero"]);
    let log = stage.path("log");
    let (mut peak, mut seen) = (0, 0);
    let mut live = |bytes: &[u8]| {
        seen += bytes.len() as u64;
        peak = peak.max(resident());
    };
    let start = Instant::now();
    let outcome = run(&stage.command(&program, &log), &mut |_| Ok(()), &mut live, &|| false).unwrap();
    println!("{:?}, {} KiB more", start.elapsed(), peak.saturating_sub(before) / 1024);
    assert_eq!((outcome.exit, outcome.output_bytes, seen), (ChildExit::Code(0), 1 << 30, 1 << 30));
    // Other tests of this process run at the same time.
    assert!(peak < before + (32 << 20), "{} more bytes", peak - before);
    assert!(fs::metadata(&log).unwrap().len() < (1 << 20) + 100);
}
