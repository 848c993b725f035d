use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use ic_base::{Code, Diagnosis};

use super::{ChildExit, Program, Stage, argv, run, shell};

fn executable(stage: &Stage, name: &str, text: &str) {
    fs::write(stage.path(name), text).unwrap();
    fs::set_permissions(stage.path(name), fs::Permissions::from_mode(0o755)).unwrap();
}

fn why_not(stage: &Stage, program: &Program) -> String {
    let outcome = stage.run(program, |_| {});
    let ChildExit::NotStarted(why) = outcome.exit else { panic!("{program:?}: {outcome:?}") };
    why
}

#[test]
fn the_identity_is_recorded_before_the_command_begins() {
    let stage = Stage::new();
    let program = shell("touch began; echo $$; cut -d' ' -f5 /proc/$$/stat");
    let log = stage.path("log");
    let mut seen = None;
    let outcome = run(
        &stage.command(&program, &log),
        &mut |identity| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            assert!(identity.is_alive() && !stage.path("began").exists());
            seen = Some(identity.pid);
            Ok(())
        },
        &mut |_| {},
        &|| false,
    )
    .unwrap();
    assert_eq!(outcome.exit, ChildExit::Code(0));
    let pid = seen.unwrap();
    assert_eq!(stage.log(), format!("{pid}\n{pid}\n"), "the same process, leading its group");
}

#[test]
fn nothing_runs_when_the_identity_cannot_be_recorded() {
    let stage = Stage::new();
    let program = argv(&["touch", "began"]);
    let log = stage.path("log");
    let mut seen = None;
    let error = run(
        &stage.command(&program, &log),
        &mut |identity| {
            seen = Some(identity.clone());
            Err(Diagnosis::new(Code::DiskFull, "The ledger is full."))
        },
        &mut |_| {},
        &|| false,
    )
    .unwrap_err();
    assert_eq!(error.code(), Code::DiskFull);
    assert!(!seen.unwrap().is_alive() && !stage.path("began").exists());
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let stage = Stage::new();
    fs::create_dir(stage.path("sub")).unwrap();
    fs::write(stage.path("plain"), "x").unwrap();
    executable(&stage, "here", "#!/bin/sh\n");
    executable(&stage, "odd", "#! /no/such/interpreter -x\n");
    executable(&stage, "dos", "#!/bin/sh\r\necho\r\n");
    let cases: [(&[&str], &str); 10] = [
        (&["no-such-program", "x"], "`no-such-program` was not found in PATH."),
        (&["here"], "`here` was not found in PATH; for the one in the working directory, write ./ before it."),
        (&["./none"], "`./none` does not exist: there is no "),
        (&["./sub"], "`./sub` is a directory, not a program."),
        (&["./plain"], "`./plain` is not executable; allow it with: chmod +x "),
        (&["./plain/x"], "`./plain/x` cannot be used: Not a directory"),
        (&["./odd"], "`./odd` is to be run by /no/such/interpreter, which does not exist."),
        (&["./dos"], "`./dos` cannot be run by /bin/sh: its first line ends with a carriage return"),
        (&[], "The command is empty"),
        (&[""], "The command is empty"),
    ];
    for (words, expected) in cases {
        let why = why_not(&stage, &argv(words));
        assert!(why.starts_with(expected), "{why}");
        assert!(stage.born.lock().unwrap().is_none());
    }
    let huge = "x".repeat(200_000);
    assert!(why_not(&stage, &argv(&["echo", &huge])).contains("Argument list too long"));
    assert!(why_not(&stage, &argv(&["echo", "a\0b"])).starts_with("`echo` could not be started"));
}

#[test]
fn a_working_directory_that_is_not_there_is_named() {
    let stage = Stage::new();
    fs::write(stage.path("file"), "").unwrap();
    for (name, expected) in [("none", "cannot be used: No such file"), ("file", "is not a directory.")] {
        let directory = stage.path(name);
        let outcome = stage.run(&shell("true"), |command| command.directory = &directory);
        let ChildExit::NotStarted(why) = outcome.exit else { panic!("{:?}", outcome.exit) };
        assert!(why.starts_with("The working directory ") && why.contains(expected), "{why}");
    }
}

#[test]
fn the_path_is_the_commands_own() {
    let stage = Stage::new();
    fs::create_dir(stage.path("bin")).unwrap();
    executable(&stage, "bin/tool", "#!/bin/sh\necho \"$0\"\n");
    let program = argv(&["tool"]);
    for path in ["/none:bin", &format!("{}", stage.path("bin").display())] {
        let outcome = stage.run(&program, |command| command.environment = vec![("PATH".into(), path.into())]);
        assert_eq!(outcome.exit, ChildExit::Code(0));
        assert!(outcome.tail.ends_with(b"bin/tool\n"));
    }
    assert_eq!(stage.run(&argv(&["true"]), |command| command.removed = vec!["PATH".into()]).exit, ChildExit::Code(0));
    fs::set_permissions(stage.path("bin/tool"), fs::Permissions::from_mode(0o644)).unwrap();
    let outcome = stage.run(&program, |command| command.environment = vec![("PATH".into(), "bin".into())]);
    let ChildExit::NotStarted(why) = outcome.exit else { panic!("{:?}", outcome.exit) };
    assert!(why.ends_with("bin/tool is not executable."), "{why}");
}

#[test]
fn a_program_that_vanishes_at_the_gate_was_not_started() {
    let stage = Stage::new();
    let log = stage.path("log");
    for (text, leave) in [("#!/bin/sh\n", false), ("#!/bin/sh\n", true)] {
        executable(&stage, "tool", text);
        let program = argv(&["./tool"]);
        let mut born = |_: &_| {
            if leave {
                fs::set_permissions(stage.path("tool"), fs::Permissions::from_mode(0o644)).unwrap();
            } else {
                fs::remove_file(stage.path("tool")).unwrap();
            }
            Ok(())
        };
        let outcome = run(&stage.command(&program, &log), &mut born, &mut |_| {}, &|| false).unwrap();
        let ChildExit::NotStarted(why) = outcome.exit else { panic!("{:?}", outcome.exit) };
        let reason = if leave { "Permission denied" } else { "No such file or directory" };
        assert_eq!(why, format!("`./tool` could not be started: {reason}."));
    }
}

#[test]
fn a_command_that_ends_with_the_shells_codes_was_started() {
    let stage = Stage::new();
    for code in [125, 126, 127, 255] {
        let text = format!("exit {code}");
        assert_eq!(stage.run(&shell(&text), |_| {}).exit, ChildExit::Code(code));
        assert_eq!(stage.run(&argv(&["sh", "-c", &text]), |_| {}).exit, ChildExit::Code(code));
        executable(&stage, "tool", &format!("#!/bin/sh\nexit {code}\n"));
        assert_eq!(stage.run(&argv(&["./tool"]), |_| {}).exit, ChildExit::Code(code));
    }
    assert_eq!(stage.run(&shell("no-such-program"), |_| {}).exit, ChildExit::Code(127));
    assert_eq!(stage.run(&shell("exec no-such-program"), |_| {}).exit, ChildExit::Code(127));
    assert_eq!(stage.run(&argv(&["env", "no-such-program"]), |_| {}).exit, ChildExit::Code(127));
}

#[test]
fn arguments_and_environment_arrive_byte_for_byte() {
    let stage = Stage::new();
    let bytes = OsString::from_vec((1..=255).chain(*b"'\"$(x)`\\\n\n").collect());
    let text = "cat /proc/$$/cmdline >cmdline; cat /proc/$$/environ >environ";
    let program =
        Program::Argv(["sh", "-c", text, "x"].map(OsString::from).into_iter().chain([bytes.clone()]).collect());
    let names = ["IC_PLAIN", "npm_config_//host/:_token", "BASH_FUNC_f%%", "a.b"];
    let outcome = stage.run(&program, |command| {
        command.environment = names.map(|name| (name.into(), bytes.clone())).to_vec();
        command.environment.push(("IC_TWICE".into(), "1".into()));
        command.environment.push(("IC_TWICE".into(), "2".into()));
        command.removed = vec!["HOME".into(), "IC_PLAIN".into()];
    });
    assert_eq!(outcome.exit, ChildExit::Code(0), "{}", stage.log());
    let bytes = bytes.into_vec();
    let expected = [b"sh\0-c\0", text.as_bytes(), b"\0x\0", &bytes, b"\0"].concat();
    assert_eq!(fs::read(stage.path("cmdline")).unwrap(), expected);
    let environ = fs::read(stage.path("environ")).unwrap();
    let variables: Vec<&[u8]> = environ.split(|&b| b == 0).collect();
    for name in names {
        assert!(variables.contains(&[name.as_bytes(), b"=", &bytes].concat().as_slice()), "{name}");
    }
    assert!(variables.contains(&b"IC_TWICE=2".as_slice()));
    assert!(!variables.iter().any(|variable| variable.starts_with(b"HOME=")));
}

#[test]
fn odd_program_names_are_started() {
    let stage = Stage::new();
    for name in ["a=b", "-n", "with blank", "it's", "--"] {
        executable(&stage, name, "#!/bin/sh\necho \"$#:$1:$2\"\n");
        let by_path = format!("./{name}");
        for word in [name, &by_path] {
            let here = vec![("PATH".into(), format!("{}:/usr/bin:/bin", stage.path("").display()).into())];
            let outcome = stage.run(&argv(&[word, "-x", "c=d"]), |command| command.environment = here);
            assert_eq!(String::from_utf8_lossy(&outcome.tail), "2:-x:c=d\n", "{word}: {:?}", outcome.exit);
        }
    }
}

#[test]
fn nothing_of_ours_is_inherited_but_output() {
    let stage = Stage::new();
    let words = ["sh", "-c", "readlink /proc/$$/fd/0; ls /proc/$$/fd"];
    let outcome = stage.run(&argv(&words), |_| {});
    // The process that runs the tests may have left files open.
    let plain = std::process::Command::new(words[0]).args(&words[1..]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&outcome.tail), String::from_utf8_lossy(&plain.stdout));
    assert!(outcome.tail.starts_with(b"/dev/null\n"));
    let outcome = stage.run(&shell("cat; read x"), |_| {});
    assert_eq!((outcome.exit, outcome.output_bytes), (ChildExit::Code(1), 0));
}

#[test]
fn starting_costs_a_few_milliseconds() {
    let stage = Stage::new();
    let program = argv(&["true"]);
    let start = std::time::Instant::now();
    for _ in 0..50 {
        assert_eq!(stage.run(&program, |_| {}).exit, ChildExit::Code(0));
    }
    let ours = start.elapsed() / 50;
    let start = std::time::Instant::now();
    for _ in 0..50 {
        std::process::Command::new("true").status().unwrap();
    }
    let plain = start.elapsed() / 50;
    println!("{ours:?} against {plain:?}");
    // Generous, because other tests run at the same time.
    assert!(ours < plain + std::time::Duration::from_millis(50), "{ours:?} against {plain:?}");
}
