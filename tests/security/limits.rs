//! Every input has an end.

use std::fs::File;
use std::process::Stdio;

use ic_testkit::write_in;

use crate::project::{ends, ends_with_input, project};

#[test]
fn endless_input_is_refused() {
    let cli = project();
    let run = cli.ok(["run", "create", "--goal", "g", "--phases", "a,b"]);
    let dispatch = cli.ok(["dispatch", "create", &run]);
    let zero = || Stdio::from(File::open("/dev/zero").expect("zeroes"));
    let refused = ends_with_input(&cli, &["dispatch", "record", &dispatch, "--stdin"], zero());
    assert_eq!((refused.code, refused.error().as_str()), (Some(3), "invalid_value"));
    let refused = ends(&cli, &["run", "create", "--goal", "g", "--gates", "@/dev/zero"]);
    assert_eq!((refused.code, refused.error().as_str()), (Some(3), "invalid_value"));
    for call in [["workflow", "validate"], ["workflow", "run"]] {
        let refused = ends(&cli, &[call[0], call[1], "/dev/zero"]);
        assert_eq!((refused.code, refused.error().as_str()), (Some(3), "invalid_workflow"));
    }
}

#[test]
fn long_values_are_refused() {
    let cli = project();
    let run = cli.ok(["run", "create", "--goal", "g", "--phases", "a,b"]);
    let long = "x".repeat(65 * 1024);
    let label = "x".repeat(201);
    let calls: [&[&str]; 7] = [
        &["run", "create", "--goal", &long],
        &["run", "skip", &run, "b", "--reason", &long],
        &["run", "cancel", &run, "--reason", &long],
        &["dispatch", "create", &run, "--name", &label],
        &["run", "artifact", "add", &run, "--path", &long],
        &["run", "create", "--goal", "g", "--phases", &label],
        &["checkpoint", "create", "--message", &long],
    ];
    for call in calls {
        assert_eq!(cli.refused(call), (Some(3), "invalid_value".to_owned()), "{:?}", &call[..2]);
    }
    let huge = write_in(cli.home(), "huge.yaml", vec![b'#'; 10 << 20]).to_string_lossy().into_owned();
    assert_eq!(cli.refused(["workflow", "validate", &huge]).1, "invalid_workflow");
    assert_eq!(cli.refused(["run", "create", "--goal", "g", "--gates", &format!("@{huge}")]).1, "invalid_value");
    std::fs::copy(&huge, cli.root().join(".ic.yaml")).expect("a copy");
    assert_eq!(cli.refused(["config", "show"]).1, "invalid_config");
}

#[test]
fn deep_and_multiplying_documents_are_refused_at_once() {
    let cli = project();
    let deep_json = format!("{{\"a\":{}", "[".repeat(100_000));
    let refused = ends(&cli, &["run", "create", "--goal", "g", "--metadata", &deep_json]);
    assert_eq!(refused.error(), "invalid_value");
    let gates = write_in(cli.home(), "gates.json", &deep_json).to_string_lossy().into_owned();
    assert_eq!(ends(&cli, &["run", "create", "--goal", "g", "--gates", &format!("@{gates}")]).error(), "invalid_value");
    // Each line stands for ten of the one before it.
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let below = format!("*a{}, ", level - 1).repeat(10);
        bomb.push_str(&format!("a{level}: &a{level} [{below}]\n"));
    }
    let documents = [
        format!("rollback: {}\n", "[".repeat(200_000)),
        format!("rollback: {}\n", "{a: ".repeat(200_000)),
        format!("workflow: {}\n", "- ".repeat(200_000)),
        format!("workflow:\n  {}", bomb.replace('\n', "\n  ")),
        bomb.clone(),
    ];
    for document in documents {
        write_in(cli.root(), ".ic.yaml", &document);
        assert_eq!(ends(&cli, &["config", "show"]).error(), "invalid_config", "{}", &document[..40]);
        let file = write_in(cli.home(), "w.yaml", &document).to_string_lossy().into_owned();
        assert_eq!(ends(&cli, &["workflow", "validate", &file]).error(), "invalid_workflow", "{}", &document[..40]);
    }
}
