//! Tokens of well-known shapes do not reach the ledger, the logs, or what is shown. What is run stays exact.

use std::fmt::Write;

use ic_testkit::write_in;
use serde_json::Value;

use crate::forms::{Form, forms};
use crate::project::{below, holding, project};

/// The secret part of a token; it is put together so that no scanner of this file takes it for a real one.
fn body() -> String {
    "a1B2c3".repeat(6)
}

fn token() -> String {
    format!("ghp_{}", body())
}

#[test]
fn recorded_words_are_masked_in_every_row() {
    let cli = project();
    let said = format!("because of {} in the log", token());
    let run = cli.ok(["run", "create", "--goal", &said, "--phases", "a,b,c,d,e"]);
    cli.ok(["run", "skip", &run, "b", "--reason", &said]);
    cli.ok(["run", "advance", &run, "--disable-gates", "--reason", &said]);
    for ending in [["complete", "--summary"], ["fail", "--error"], ["cancel", "--reason"]] {
        let dispatch = cli.ok(["dispatch", "create", &run]);
        cli.ok(["dispatch", ending[0], &dispatch, ending[1], &said]);
    }
    cli.ok(["compensation", "add", &run, "--step", "s", "--skip", "--description", &said]);
    cli.ok(["checkpoint", "create", "--run", &run, "--message", &said]);
    cli.ok(["gate", "override", &run, "--reason", &said]);
    cli.ok(["run", "cancel", &run, "--reason", &said]);

    let all = cli.dump();
    assert!(!all.contains(&body()), "{all}");
    assert!(all.matches("because of ghp_…[masked] in the log").count() >= 12, "{all}");
    assert_eq!(holding(&cli.root().join(".ic"), &body()), Vec::<std::path::PathBuf>::new());
    assert_eq!(cli.json(["run", "status", &run, "--json"])["goal"], "because of ghp_…[masked] in the log");
    assert_eq!(cli.json(["events", "verify", "--json"])["ok"], true);
}

#[test]
fn what_programs_read_back_is_kept_as_it_is() {
    let cli = project();
    let metadata = format!("{{\"key\": \"{}\"}}", token());
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let run = cli.ok(["run", "create", "--goal", "g", "--phases", "a,b", "--metadata", &metadata]);
    let dispatch = cli.ok(["dispatch", "create", &run]);
    cli.ok(["dispatch", "record", &dispatch, "--commit", commit]);
    cli.ok(["dispatch", "complete", &dispatch, "--summary", &format!("{commit} of {run}")]);
    assert_eq!(cli.json(["run", "status", &run, "--json"])["metadata"]["key"], token());
    let shown = cli.json(["dispatch", "show", &dispatch, "--json"]);
    assert_eq!(shown["summary"], format!("{commit} of {run}"));
}

/// A step that says a token in two halves, on both streams, and fails with it.
fn leaking(undo: &str) -> String {
    let (first, second) = (&token()[..10], &token()[10..]);
    format!(
        "name: w\nsteps:\n  - id: a\n    phase: p\n    run: \"printf 'out {first}'; sleep 0.2; echo '{second} out'; \
         echo 'https://me:{}@example.org' >&2; echo 'bad {}'; exit 3\"\n    compensate: {{shell: \"{undo}\"}}\n",
        body(),
        token()
    )
}

#[test]
fn logs_and_errors_of_steps_are_masked() {
    let cli = project();
    write_in(cli.root(), "w.yaml", leaking(&format!("echo undo {}; exit 1", token())));
    let outcome = cli.run(["workflow", "run", "w.yaml", "--on-failure", "rollback", "--json"]);
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    let report: Value = outcome.json();
    assert_eq!(report["steps"][0]["error"], "it ended with exit code 3: bad ghp_…[masked]");
    let log = std::fs::read_to_string(report["steps"][0]["log"].as_str().expect("a log")).expect("the log");
    assert_eq!(log, "out ghp_…[masked] out\nhttps://me:…[masked]@example.org\nbad ghp_…[masked]\n");
    let undo = &report["rollback"]["compensations"][0];
    assert_eq!(undo["error"], "it ended with exit code 1: undo ghp_…[masked]");
    let logs = below(&cli.root().join(".ic/logs"));
    assert!(logs.iter().any(|path| path.to_string_lossy().contains("undo-")), "{logs:?}");
    assert_eq!(holding(&cli.root().join(".ic/logs"), &body()), Vec::<std::path::PathBuf>::new());
    assert!(!outcome.stderr.contains(&body()), "{outcome:?}");
    for call in [["events", "tail"], ["dispatch", "list"], ["compensation", "list"]] {
        let said = cli.ok([call[0], call[1], if call[0] == "events" { "--all" } else { "@" }, "--json"]);
        assert!(!said.contains(&body()), "{call:?}: {said}");
    }
}

#[test]
fn what_is_run_is_exact_and_shown_masked() {
    let cli = project();
    let run = cli.ok(["run", "create", "--goal", "g", "--phases", "a,b"]);
    let out = cli.root().join("out");
    let script = format!("printf %s \"$0\" > {}", out.display());
    cli.ok(["compensation", "add", &run, "--step", "s", "--exec", "--", "sh", "-c", &script, &token()]);
    for form in ["json", "text"] {
        let listed = cli.ok(["compensation", "list", &run, "--format", form]);
        assert!(!listed.contains(&body()) && listed.contains("ghp_…[masked]"), "{form}: {listed}");
        let planned = cli.ok(["compensation", "run", &run, "--dry-run", "--format", form]);
        assert!(!planned.contains(&body()), "{form}: {planned}");
    }
    cli.ok(["compensation", "run", &run, "--yes"]);
    assert_eq!(std::fs::read_to_string(out).expect("what was run"), token());
}

#[test]
fn redacting_an_error_takes_it_out_of_what_repeats_it() {
    // Of no shape that is known, so that only a person can tell.
    const SECRET: &str = "correct-horse-battery-staple";
    let cli = project();
    let workflow = format!(
        "name: w\nsteps:\n  - id: a\n    phase: p\n    run: \"cat {0}/secret; exit 3\"\n    compensate: {{shell: \"cat {0}/secret; exit 1\"}}\n",
        cli.home().display()
    );
    write_in(cli.home(), "secret", format!("{SECRET}\n"));
    write_in(cli.root(), "w.yaml", workflow);
    assert_eq!(cli.run(["workflow", "run", "w.yaml", "--on-failure", "rollback"]).code, Some(4));
    assert!(cli.dump().contains(SECRET));
    let events = cli.json(["events", "tail", "--all", "--since", "0", "--json"]);
    for event in events.as_array().expect("events").iter().filter(|event| event.to_string().contains(SECRET)) {
        cli.ok(["events", "redact", &event["seq"].to_string(), "--reason", "a password was shown"]);
    }
    assert!(!cli.dump().contains(SECRET), "{}", cli.dump());
    assert_eq!(cli.json(["events", "verify", "--json"])["ok"], true);
}

fn assert_hidden(sink: &str, said: &str, forms: &[Form]) {
    let shown = forms.iter().flat_map(|form| &form.secrets).filter(|secret| said.contains(secret.as_str()));
    let shown: Vec<&String> = shown.collect();
    assert!(shown.is_empty(), "{sink}: {shown:?}\n{said}");
}

#[test]
fn each_form_of_a_secret_is_masked_in_the_log_of_a_step_and_in_its_error() {
    let cli = project();
    let forms = forms();
    let all = forms.iter().map(|form| format!("{}\n", form.text)).collect::<String>();
    write_in(cli.home(), "said", &all);
    let (home, mut steps) = (cli.home().display(), String::from("name: w\nsteps:\n"));
    let _ = writeln!(steps, "  - {{id: a, phase: p, run: 'cat {home}/said; tail -n 8 {home}/said >&2; exit 3'}}");
    write_in(cli.root(), "w.yaml", steps);
    let outcome = cli.run(["workflow", "run", "w.yaml", "--on-failure", "stop", "--json"]);
    assert_hidden("the terminal", &outcome.stderr, &forms);
    let report: Value = outcome.json();
    let log = std::fs::read_to_string(report["steps"][0]["log"].as_str().expect("a log")).expect("the log");
    assert_eq!(log.lines().count(), all.lines().count() + 8, "no line is lost: {log}");
    assert_hidden("the log", &log, &forms);
    assert!(report["steps"][0]["error"].as_str().is_some_and(|error| error.contains("[masked]")), "{report}");
    assert_hidden("the report", &outcome.stdout, &forms);
    assert_hidden("the ledger", &cli.dump(), &forms);
}

#[test]
fn each_form_of_a_secret_is_masked_in_events_and_in_rows() {
    let cli = project();
    // A text with what steers a terminal is refused.
    let forms: Vec<Form> = forms().into_iter().filter(|form| !form.text.contains('\u{1b}')).collect();
    for form in forms.iter().step_by(3) {
        let run = cli.ok(["run", "create", "--goal", "g", "--phases", "a,b"]);
        cli.ok(["run", "cancel", &run, &format!("--reason={}", form.text)]);
    }
    let other = cli.ok(["run", "create", "--goal", &forms[1].text, "--phases", "a,b"]);
    assert_hidden("the goal", &cli.ok(["run", "status", &other, "--json"]), &forms);
    let tail = cli.ok(["events", "tail", "--all", "--since", "0", "--json"]);
    assert!(tail.matches("[masked]").count() >= forms.len() / 3, "{tail}");
    assert_hidden("events", &tail, &forms);
}

#[test]
fn each_form_of_a_secret_is_masked_in_the_title_of_a_prompt() {
    let cli = project();
    let forms = forms();
    for (at, form) in forms.iter().enumerate().step_by(4) {
        let payload = serde_json::json!({
            "session_id": "s", "cwd": cli.root(), "prompt": format!("do {}", form.text), "prompt_id": format!("p{at}"),
        });
        cli.run_with_input(["hook", "claude-code", "UserPromptSubmit"], payload.to_string().as_bytes());
    }
    let listed = cli.ok(["log", "--all", "--json"]);
    assert!(listed.matches("masked").count() >= forms.len() / 8, "{listed}");
    assert_hidden("titles", &listed, &forms);
    assert_hidden("the ledger", &cli.dump(), &forms);
}

#[test]
fn each_form_of_a_secret_is_masked_in_an_error() {
    let cli = project();
    let forms = forms();
    for form in forms.iter().step_by(5) {
        for format in ["json", "text"] {
            let outcome = cli.run(["run", "status", &form.text, "--format", format]);
            assert_ne!(outcome.code, Some(0), "{outcome:?}");
            assert_hidden("an error", &outcome.stderr, std::slice::from_ref(form));
        }
    }
}
