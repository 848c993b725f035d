//! What a workflow must not be: where it is refused, and with which words.

use ic_base::{Code, Diagnosis};
use serde_json::json;

use super::parse;

/// The file is refused at this place with exactly these words.
fn refused(text: impl AsRef<[u8]>, place: (u64, u64), says: &str) -> Diagnosis {
    let text = text.as_ref();
    let shown = String::from_utf8_lossy(&text[..text.len().min(300)]).into_owned();
    let error = parse(text).expect_err(&shown);
    let (line, column) = place;
    assert_eq!(error.message(), format!("flow.yaml, line {line}, column {column}: {says}."), "{shown}");
    assert_eq!(error.code(), Code::InvalidWorkflow, "{shown}");
    let details = error.details();
    assert_eq!(
        (&details["file"], &details["line"], &details["column"]),
        (&json!("flow.yaml"), &json!(line), &json!(column)),
        "{shown}"
    );
    assert!(error.get_hint().is_some(), "{shown}");
    error
}

/// A workflow of one step, whose sixth line this is.
fn line(text: &str) -> String {
    format!("name: n\nsteps:\n  - id: a\n    phase: p\n    run: x\n    {text}\n")
}

/// A workflow of these steps, from the third line on.
fn steps(steps: &[&str]) -> String {
    format!("name: n\nsteps:\n{}", steps.iter().map(|step| format!("- {{{step}}}\n")).collect::<String>())
}

#[test]
fn what_is_no_workflow_is_refused() {
    for (text, place, says) in [
        ("", (1, 1), "the workflow has no steps"),
        ("# nothing\n", (1, 1), "the workflow has no steps"),
        ("steps: []\n", (1, 8), "the workflow has no steps"),
        ("hello\n", (1, 1), "a mapping is expected, as in `key: value`"),
        ("- a\n", (1, 1), "a mapping is expected, as in `key: value`"),
        ("name: n\n", (1, 1), "the workflow has no steps"),
        ("name: n\nsteps:\n", (2, 6), "the workflow has no steps"),
        ("name: n\nsteps: []\n", (2, 8), "the workflow has no steps"),
        ("name: n\nsteps: {}\n", (2, 8), "a list is expected, as in [a, b]"),
        ("name: n\nsteps: a\n", (2, 8), "a list is expected, as in [a, b]"),
        ("name: n\nsteps: [a]\n", (2, 9), "a mapping is expected, as in `key: value`"),
        ("name: n\nsteps: [{}]\n", (2, 9), "the step `step-1` has no command"),
        ("name:\n", (1, 5), "nothing where a single text is expected"),
        ("name: [n]\n", (1, 7), "a single text is expected"),
        ("name: ' '\n", (1, 7), "the workflow's name must not be empty"),
        ("name: \"a\\nb\"\n", (1, 7), "the workflow's name must stand on one line, without tabs"),
        ("name: \"a\\0\"\n", (1, 7), "the workflow's name contains the control character U+0000"),
        ("name: n\ngoal: ''\n", (2, 7), "the goal must not be empty"),
        ("name: n\nname: m\n", (2, 1), "the key `name` appears twice"),
        ("name: n\n---\nname: m\n", (3, 1), "a second document begins; the file may hold one"),
        ("name: n\nsteps: [\n", (2, 8), "unclosed bracket '['"),
        ("name: *n\n", (1, 7), "the alias has no anchor"),
        ("name: n\nsteps: &a [*a]\n", (2, 12), "the alias stands inside its own anchor"),
    ] {
        refused(text, place, says);
    }
    refused(b"name: \xc3\xa9 \xff\n", (1, 9), "it is not UTF-8");
    refused(b"name: n\nsteps: \xff\xfe", (2, 8), "it is not UTF-8");
}

#[test]
fn unknown_keys_are_refused_with_what_was_meant() {
    for (text, place, key, hint) in [
        ("on_failure: stop\n".to_owned(), (1, 1), "on_failure", "did you mean `on-failure`?"),
        ("jobs: 2\n".to_owned(), (1, 1), "jobs", "known here: name, goal, on-failure, strategy, shell, steps"),
        (line("timeuot: 5s"), (6, 5), "timeuot", "did you mean `timeout`?"),
        (line("depends_on: [b]"), (6, 5), "depends_on", "did you mean `needs`?"),
        (line("script: x"), (6, 5), "script", "did you mean `run`?"),
        (line("Compensate: skip"), (6, 5), "Compensate", "did you mean `compensate`?"),
        (line("undo: x"), (6, 5), "undo", "did you mean `compensate`?"),
        (
            line("image: x"),
            (6, 5),
            "image",
            "known here: id, phase, needs, run, shell, cwd, env, timeout, retries, compensate",
        ),
        (line("retries: {count: 2}"), (6, 15), "count", "did you mean `max`?"),
        (line("retries: {times: 2}"), (6, 15), "times", "known here: max, backoff"),
        (line("compensate: {restore_file: a}"), (6, 18), "restore_file", "did you mean `restore-file`?"),
        (line("compensate: {exec: [a], onFailure: true}"), (6, 29), "onFailure", "did you mean `on-failure`?"),
    ] {
        let error = refused(&text, place, &format!("unknown key `{key}`"));
        assert_eq!(error.get_hint(), Some(hint), "{text}");
    }
}

#[test]
fn choices_that_are_none_are_refused() {
    let rest = "name: n\nsteps: [{id: a, phase: p, run: x}]\n";
    for (text, column, says, hint) in [
        (
            "on-failure: rolback\n",
            13,
            "\"rolback\" where one of rollback, stop, continue is expected",
            "did you mean `rollback`?",
        ),
        (
            "on-failure: \"\"\n",
            13,
            "\"\" where one of rollback, stop, continue is expected",
            "write one of: rollback, stop, continue",
        ),
        (
            "strategy: files_only\n",
            11,
            "\"files_only\" where one of full, partial, files-only, git-only is expected",
            "did you mean `files-only`?",
        ),
    ] {
        let error = refused(format!("{text}{rest}"), (1, column), says);
        assert_eq!(error.get_hint(), Some(hint));
    }
}

#[test]
fn bad_values_of_a_step_are_refused() {
    for (text, column, says) in [
        ("timeout: 5", 14, "`5` where a duration with its unit, as in 10m or 90s, is expected"),
        ("timeout:", 12, "nothing where a duration with its unit, as in 10m or 90s, is expected"),
        ("timeout: [5s]", 14, "a list where a duration with its unit, as in 10m or 90s, is expected"),
        ("timeout: soon", 14, "\"soon\" is not a duration; write 10m, 90s or 1h 30m"),
        ("timeout: -5s", 14, "\"-5s\" is not a duration; write 10m, 90s or 1h 30m"),
        ("timeout: 99999999999999999999d", 14, "\"99999999999999999999d\" is not a duration; write 10m, 90s or 1h 30m"),
        ("timeout: 366d", 14, "\"366d\" is too long; the most is 365d"),
        ("timeout: 0s", 14, "a timeout must be longer than 0"),
        ("retries: -1", 14, "-1 is too small; the least is 0"),
        ("retries: 1001", 14, "1001 is too large; the most is 1000"),
        ("retries: two", 14, "the text \"two\" where a whole number, or {max: 2, backoff: 5s}, is expected"),
        ("retries:", 12, "nothing where a whole number, or {max: 2, backoff: 5s}, is expected"),
        ("retries: [2]", 14, "a list where a whole number, or {max: 2, backoff: 5s}, is expected"),
        ("retries: {backoff: 1s}", 14, "`max` is missing"),
        ("retries: {max: 1.5}", 20, "`1.5` where a whole number, or {max: 2, backoff: 5s}, is expected"),
        ("retries: {max: 1, backoff: 5}", 32, "`5` where a duration with its unit, as in 10m or 90s, is expected"),
        ("cwd: /tmp", 10, "the path \"/tmp\" is absolute; paths lead from the project's root into it"),
        ("cwd: a/../b", 10, "the path \"a/../b\" contains `..`; paths lead from the project's root into it"),
        ("cwd: ''", 10, "the path is empty"),
        ("cwd: \"a\\0\"", 10, "the path \"a\\0\" contains a NUL byte"),
        ("cwd: [a]", 10, "a single text is expected"),
        ("env: [a]", 10, "a mapping is expected, as in `key: value`"),
        ("env: {A=B: c}", 11, "\"A=B\" is not a variable's name"),
        ("env: {'': c}", 11, "\"\" is not a variable's name"),
        ("env: {A: }", 12, "nothing where a single text is expected"),
        ("env: {A: [b]}", 14, "a single text is expected"),
        ("env: {A: b, A: c}", 17, "the key `A` appears twice"),
        ("env: {A: \"\\0\"}", 14, "a NUL byte, which no program can be given"),
        ("env: {IC_RUN: a}", 11, "the variable IC_RUN is set by ic for every step, and cannot be set here"),
        ("env: {IC_DB: a}", 11, "the variable IC_DB is set by ic for every step, and cannot be set here"),
        ("needs: b", 12, "a list is expected, as in [a, b]"),
        ("needs: [[b]]", 13, "a single text is expected"),
    ] {
        refused(line(text), (6, column), says);
    }
}

#[test]
fn commands_that_are_none_are_refused() {
    for (text, column, says) in [
        ("run:", 8, "nothing where a command, as text or as a list, is expected"),
        ("run: 5", 10, "`5` where a command, as text or as a list, is expected"),
        ("run: {exec: [a]}", 10, "a mapping where a command, as text or as a list, is expected"),
        ("run: ' '", 10, "the command is empty"),
        ("run: []", 10, "the command is empty"),
        ("run: ['', a]", 11, "the program's name is empty"),
        ("run: \"a\\0\"", 10, "a NUL byte, which no program can be given"),
        ("run: [a, \"b\\0\"]", 14, "a NUL byte, which no program can be given"),
        ("run: [a, [b]]", 14, "a single text is expected"),
        ("run: [a, ~]", 14, "nothing where a single text is expected"),
    ] {
        refused(format!("name: n\nsteps:\n  - id: a\n    phase: p\n    {text}\n"), (5, column), says);
    }
    refused(steps(&["id: a, phase: p"]), (3, 3), "the step `a` has no command");
}

#[test]
fn compensations_that_are_none_are_refused() {
    for (text, column, says) in [
        ("", 15, "nothing where skip, pivot, retry or a mapping is expected"),
        (" 5", 17, "`5` where skip, pivot, retry or a mapping is expected"),
        (" [skip]", 17, "a list where skip, pivot, retry or a mapping is expected"),
        (" ./undo.sh", 17, "\"./undo.sh\" where skip, pivot, retry or a mapping is expected"),
        (" {}", 17, "the compensation has no action"),
        (" {cwd: a}", 17, "the compensation has no action"),
        (" {exec: [a], shell: b}", 36, "a second action, `shell` beside `exec`"),
        (" {skip: why, exec: [b]}", 35, "a second action, `exec` beside `skip`"),
        (" {exec: a}", 24, "a list is expected, as in [a, b]"),
        (" {exec: []}", 24, "the command is empty"),
        (" {exec: ['']}", 25, "the program's name is empty"),
        (" {shell: ''}", 25, "the command is empty"),
        (" {restore-file: /a}", 32, "the path \"/a\" is absolute; paths lead from the project's root into it"),
        (" {restore-file: ./}", 32, "the path is the project's root itself"),
        (" {restore-file: []}", 32, "the list of paths is empty"),
        (
            " {restore-file: [a, ../b]}",
            36,
            "the path \"../b\" contains `..`; paths lead from the project's root into it",
        ),
        (" {restore-file: 5}", 32, "`5` where a path or a list of paths is expected"),
        (" {restore-file: {a: b}}", 32, "a mapping where a path or a list of paths is expected"),
        (" {kill-process: 77}", 32, "`77` where the path of a file that holds a process id is expected"),
        (" {kill-process: ../p}", 32, "the path \"../p\" contains `..`; paths lead from the project's root into it"),
        (" {skip: }", 22, "nothing where a single text is expected"),
        (" {pivot: ''}", 25, "the reason must not be empty"),
        (" {skip: why, timeout: 5s}", 38, "`timeout` means nothing for `skip`"),
        (" {retry: why, on-failure: true}", 42, "`on-failure` means nothing for `retry`"),
        (" {restore-file: a, cwd: b}", 40, "`cwd` means nothing for `restore-file`"),
        (" {kill-process: a, env: {B: c}}", 41, "`env` means nothing for `kill-process`"),
        (" {exec: [a], on-failure: no}", 41, "the text \"no\" where true or false is expected"),
        (" {exec: [a], timeout: x}", 38, "\"x\" is not a duration; write 10m, 90s or 1h 30m"),
    ] {
        refused(line(&format!("compensate:{text}")), (6, column), says);
    }
    let error =
        refused(line("compensate: skipp"), (6, 17), "\"skipp\" where skip, pivot, retry or a mapping is expected");
    assert_eq!(error.get_hint(), Some("did you mean `skip`?"));
}

#[test]
fn names_that_do_not_fit_together_are_refused() {
    for (list, place, says) in [
        (&["id: a, phase: done, run: x"][..], (3, 18), "the phase `done` ends every chain, and no step runs in it"),
        (&["id: a, phase: \"a\\tb\", run: x"], (3, 18), "the phase must stand on one line, without tabs"),
        (&["id: '', phase: p, run: x"], (3, 8), "the step's id must not be empty"),
        (&["id: ' a', phase: p, run: x"], (3, 8), "the step's id must not begin or end with white space"),
        (&["id: a, phase: p, run: x", "id: a, run: x"], (4, 8), "the id `a` is that of the step on line 3"),
        (
            &["id: a, phase: p, run: x", "id: b, phase: q, run: x", "id: c, phase: p, run: x"],
            (5, 18),
            "the phase `p` returns after `q`",
        ),
        (&["id: a, phase: p, run: x, needs: [a]"], (3, 37), "`a` needs itself"),
        (&["id: a, phase: p, run: x", "id: b, run: x, needs: [a, a]"], (4, 30), "`a` stands twice"),
        (&["id: a, phase: p, run: x, needs: [\"b\\n\"]"], (3, 37), "there is no step \"b\\n\""),
        (
            &["id: a, phase: p, run: x, needs: [b]", "id: b, phase: q, run: x"],
            (3, 37),
            "`a` runs in the phase `p` and needs `b` of the later phase `q`",
        ),
    ] {
        refused(steps(list), place, says);
    }
    let typo = steps(&["id: review, phase: p, run: x", "id: b, run: x, needs: [reveiw]"]);
    let error = refused(typo, (4, 27), "there is no step `reveiw`");
    assert_eq!(error.get_hint(), Some("did you mean `review`?"));
    let long = "x".repeat(201);
    refused(
        steps(&[&format!("id: {long}, phase: p, run: x")]),
        (3, 8),
        "the step's id is 201 bytes long; at most 200 are allowed",
    );
}

#[test]
fn cycles_are_refused_and_named() {
    let text = steps(&[
        "id: d, phase: p, run: x, needs: [c]",
        "id: a, run: x, needs: [b]",
        "id: b, run: x, needs: [f, a]",
        "id: c, run: x, needs: [a]",
        "id: f, run: x",
    ]);
    let error = refused(text, (4, 27), "steps need each other: `a` -> `b` -> `a`");
    assert_eq!(error.details()["cycle"], json!(["a", "b"]));
    let across = steps(&["id: a, phase: p, run: x, needs: [b]", "id: b, phase: q, run: x, needs: [a]"]);
    refused(across, (3, 37), "steps need each other: `a` -> `b` -> `a`");
    let ring = |length: usize| -> String {
        let step = |i| format!("id: s{i}, phase: p, run: x, needs: [s{}]", (i + 1) % length);
        steps(&(0..length).map(step).collect::<Vec<_>>().iter().map(String::as_str).collect::<Vec<_>>())
    };
    let first = "`s0` -> `s1` -> `s2` -> `s3` -> `s4` -> `s5` -> `s6` -> `s7`";
    refused(ring(9), (3, 38), &format!("steps need each other: {first} -> `s8` -> `s0`"));
    let error = refused(ring(10_000), (3, 38), &format!("steps need each other: {first} -> ... (9992 more) -> `s0`"));
    assert_eq!(error.details()["cycle"].as_array().map(Vec::len), Some(10_000));
}

#[test]
fn more_than_anybody_plans_is_refused() {
    let flow = |count: usize, phase: fn(usize) -> usize| {
        let step = |i| format!("- {{id: s{i}, phase: p{}, run: x}}\n", phase(i));
        format!("name: n\nsteps:\n{}", (0..count).map(step).collect::<String>())
    };
    assert_eq!(parse(flow(10_000, |_| 0)).unwrap().steps.len(), 10_000);
    refused(flow(10_001, |_| 0), (10_003, 3), "more than 10000 steps");
    assert_eq!(parse(flow(999, |i| i)).unwrap().phases.len(), 1_000);
    refused(flow(1_000, |i| i), (1_002, 21), "more than 1000 phases, with `done`");
    let error = parse(vec![b'#'; 1_000_001]).unwrap_err();
    assert_eq!(error.message(), "flow.yaml: it is longer than 1 MB.");
    assert_eq!(parse(vec![b'#'; 1_000_000]).unwrap_err().code(), Code::InvalidWorkflow);
}

#[test]
fn small_files_that_unfold_to_large_ones_are_refused() {
    let too_much = |text: String| {
        let error = parse(&text).expect_err(&text[..60]);
        assert_eq!(error.code(), Code::InvalidWorkflow);
        assert!(error.message().contains("too much nesting, or too many aliases, for a workflow"), "{error}");
    };
    let mut laughs = "- {id: &a x, phase: p, run: &aa [x,x,x,x,x,x,x,x,x,x]}\n".to_owned();
    for (of, name) in "abcdefghi".chars().zip("bcdefghij".chars()) {
        laughs +=
            &format!("- {{id: {name}, run: x, needs: &{name}{name} [{}]}}\n", vec![format!("*{of}{of}"); 10].join(","));
    }
    // Already the first of them nests lists where texts are due.
    assert!(parse(format!("name: n\nsteps:\n{laughs}")).is_err());
    too_much(format!(
        "name: n\nsteps:\n- id: a\n  phase: p\n  run: [&a {}{}]\n",
        "x".repeat(100_000),
        ",*a".repeat(200)
    ));
    too_much(format!("name: n\nsteps:\n- &a {{id: a, phase: p, run: x}}\n{}", "- *a\n".repeat(100_000)));
    too_much(format!("name: n\nsteps: [{{run: {{a: {}{}}}}}]\n", "[".repeat(100), "]".repeat(100)));
    let deep = format!("name: n\nsteps: {}\n", "[".repeat(900_000));
    assert_eq!(parse(deep).unwrap_err().code(), Code::InvalidWorkflow);
    let deep: String = (1..900).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    assert_eq!(parse(format!("name: n\nsteps:\n{deep}")).unwrap_err().code(), Code::InvalidWorkflow);
}
