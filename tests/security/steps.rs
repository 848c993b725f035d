//! What steps and undos are given, and what they can pass on.

use ic_testkit::write_in;

use crate::project::{ends, pipe, project};

#[test]
fn outputs_of_a_step_do_not_steer_its_undo() {
    let cli = project();
    let names = [
        "PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "BASH_ENV", "ENV", "IFS", "PS4", "SHELLOPTS",
        "HOME", "GIT_SSH_COMMAND", "GIT_DIR", "PYTHONPATH", "PYTHONSTARTUP", "NODE_OPTIONS", "PERL5OPT", "RUBYOPT",
        "JAVA_TOOL_OPTIONS", "IC_RUN", "IC_DB", "XDG_CONFIG_HOME",
    ];
    let steering: String = names.iter().map(|name| format!("{name}=/steered\n")).collect();
    let said = write_in(cli.home(), "said", format!("{steering}ID=42\nurl=https://example.org/?a=b\n"));
    let seen = cli.home().join("seen");
    let workflow = format!(
        "name: w\nsteps:\n  - id: a\n    phase: p\n    run: 'cat {} >> $IC_OUTPUTS; exit 1'\n    compensate: {{shell: 'env > {}'}}\n",
        said.display(),
        seen.display()
    );
    write_in(cli.root(), "w.yaml", workflow);
    assert_eq!(cli.run(["workflow", "run", "w.yaml", "--on-failure", "rollback"]).code, Some(1));
    let seen = std::fs::read_to_string(seen).expect("what the undo saw");
    assert!(!seen.contains("/steered"), "{seen}");
    assert!(seen.contains("\nID=42\n") && seen.contains("\nurl=https://example.org/?a=b\n"), "{seen}");
}

#[test]
fn what_a_step_puts_in_the_place_of_its_outputs_is_not_waited_for_or_followed() {
    let cli = project();
    let secret = write_in(cli.home(), "secret", "KEY=of-another-user\n");
    for put in ["mkfifo $IC_OUTPUTS".to_owned(), format!("ln -s {} $IC_OUTPUTS", secret.display())] {
        let seen = cli.home().join("seen");
        let workflow = format!(
            "name: w\nsteps:\n  - id: a\n    phase: p\n    run: 'rm $IC_OUTPUTS; {put}; exit 1'\n    compensate: {{shell: 'env > {}'}}\n",
            seen.display()
        );
        write_in(cli.root(), "w.yaml", workflow);
        assert_eq!(ends(&cli, &["workflow", "run", "w.yaml", "--on-failure", "rollback"]).code, Some(1), "{put}");
        let seen = std::fs::read_to_string(seen).expect("what the undo saw");
        assert!(!seen.contains("of-another-user"), "{put}: {seen}");
    }
}

#[test]
fn nothing_of_a_configuration_is_run_by_moving_on() {
    let cli = project();
    let ran = cli.home().join("ran");
    write_in(
        cli.root(),
        ".ic.yaml",
        format!(
            "rewind:\n  profile: langgraph\n  database: app.db\n  vectors: {{exec: [touch, {0}]}}\nworkflow:\n  run: touch {0}\n",
            ran.display()
        ),
    );
    pipe(&cli.root().join("app.db"));
    let run = cli.ok(["run", "create", "--goal", "g", "--phases", "a,b,c"]);
    for call in [
        &["run", "advance", &run][..],
        &["run", "rollback", &run, "--to-phase", "a", "--dry-run"],
        &["run", "rollback", &run, "--to-phase", "a"],
        &["checkpoint", "create"],
        &["config", "show"],
        &["gate", "check", &run],
    ] {
        assert_eq!(ends(&cli, call).code, Some(0), "{call:?}");
    }
    assert!(!ran.exists());
}

#[test]
fn no_path_of_a_workflow_leads_out_of_the_project() {
    let cli = project();
    for (key, path) in
        [("restore-file", "../x"), ("restore-file", "/etc/passwd"), ("kill-process", "../x.pid"), ("cwd", "..")]
    {
        let (step, undo) = if key == "cwd" {
            (format!("cwd: {path}"), "skip: no".to_owned())
        } else {
            ("env: {}".to_owned(), format!("{key}: {path}"))
        };
        let workflow = format!(
            "name: w\nsteps:\n  - id: a\n    phase: p\n    run: 'true'\n    {step}\n    compensate: {{{undo}}}\n"
        );
        write_in(cli.root(), "w.yaml", workflow);
        assert_eq!(cli.refused(["workflow", "validate", "w.yaml"]).1, "invalid_workflow", "{key} {path}");
    }
    let run = cli.ok(["run", "create", "--goal", "g", "--phases", "a,b"]);
    std::os::unix::fs::symlink(cli.home(), cli.root().join("out")).expect("a link");
    for path in ["../x", "/etc/passwd", "out/x", ".git/hooks/x"] {
        let outcome = cli.run(["compensation", "add", &run, "--step", "s", "--restore-file", path]);
        assert_ne!(outcome.code, Some(0), "{path}: {outcome:?}");
    }
}
