//! A step fails at its first failing line, whatever follows it.

use crate::calls::Calls as _;
use crate::project::plain;

/// How a step of these lines ends: its state, and whether the line after the failing one ran.
fn ends(lines: &str) -> (String, bool) {
    let world = plain();
    world.write("flow.yaml", &format!("name: n\nsteps:\n  - id: a\n    phase: p\n    compensate: skip\n{lines}"));
    let outcome = world.call("workflow run flow.yaml --on-failure stop");
    let state = outcome.json()["steps"][0]["status"].as_str().expect("a state").to_owned();
    assert_eq!(outcome.code == Some(0), state == "succeeded", "{outcome:?}");
    (state, world.cli.root().join("after").exists())
}

fn is_failed(lines: &str) {
    assert_eq!(ends(lines), ("failed".to_owned(), false), "{lines}");
}

fn has_succeeded(lines: &str) {
    assert_eq!(ends(lines), ("succeeded".to_owned(), true), "{lines}");
}

#[test]
fn the_first_failing_line_ends_the_step() {
    is_failed("    run: |\n      false\n      : > after\n");
    is_failed("    run: |\n      echo $NO_SUCH_VARIABLE\n      : > after\n");
    is_failed("    run: |\n      (exit 3)\n      : > after\n");
    has_succeeded("    run: |\n      false || true\n      : > after\n");
    has_succeeded("    run: |\n      if false; then exit 1; fi\n      : > after\n");
}

#[test]
fn under_bash_so_does_a_failing_part_of_a_pipe() {
    is_failed("    shell: bash\n    run: |\n      false | cat\n      : > after\n");
    is_failed("    shell: bash\n    run: |\n      false\n      : > after\n");
    has_succeeded("    shell: bash\n    run: |\n      [[ a == a ]] | cat\n      : > after\n");
}

#[test]
fn a_shell_of_its_own_says_itself_when_it_fails() {
    has_succeeded("    shell: [sh, -c]\n    run: |\n      false\n      : > after\n");
    has_succeeded("    shell: [perl, -e]\n    run: open(F, '>', 'after')\n");
    is_failed("    shell: [no-such-shell, -c]\n    run: ': > after'\n");
}

#[test]
fn a_shell_that_is_none_is_refused_with_its_place() {
    let world = plain();
    for (line, says) in [
        ("shell: zsh, run: x", "`zsh` is no shell"),
        ("shell: [], run: x", "empty"),
        ("shell: 5, run: x", "shell"),
        ("shell: {a: b}, run: x", "shell"),
        ("shell: bash, run: [x]", "without a shell"),
    ] {
        world.write("flow.yaml", &format!("name: n\nsteps:\n  - {{id: a, phase: p, {line}}}\n"));
        let outcome = world.call("workflow validate flow.yaml");
        assert_eq!((outcome.code, outcome.error().as_str()), (Some(3), "invalid_workflow"), "{line}");
        assert!(outcome.stderr.contains(says) && outcome.stderr.contains("line 3,"), "{line}: {}", outcome.stderr);
    }
}
