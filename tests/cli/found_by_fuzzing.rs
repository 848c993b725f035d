//! Faults that fuzzing found and that the command line shows.

use serde_json::json;

use crate::support::Project;

#[test]
fn fractions_of_metadata_are_kept_to_the_last_digit() {
    let project = Project::new();
    project.ok("run create --goal g --metadata '{\"d\": 1.4441674407370957e20}'");
    for n in 0..3 {
        project.ok(&format!("run set @ --metadata-merge '{{\"n\": {n}}}'"));
        let metadata = &project.json("run status @")["metadata"];
        assert_eq!(metadata, &json!({"d": 1.444_167_440_737_095_7e20, "n": n}));
    }
}

#[test]
fn a_gate_that_the_ledger_could_not_read_back_is_refused() {
    let project = Project::new();
    let chain = r#"["a", "b→c", "a→b", "c"]"#;
    let words = ["run", "create", "--goal", "g", "--phases", chain, "--gates", r#"{"a->b→c": []}"#];
    assert_eq!(project.refused_words(words), (3, "invalid_value".to_owned()));
    let words = ["run", "create", "--goal", "g", "--phases", chain, "--gates", r#"{"a->a→b": []}"#];
    assert_eq!(project.run_words(words).code, Some(0));
    assert_eq!(project.json("run status @")["phase"], "a");
}
