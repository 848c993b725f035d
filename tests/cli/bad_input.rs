//! Bad values for every argument: an error with a code, nothing changed, no panic.

use ic_testkit::verb_calls::ARGUMENTS;
use ic_testkit::verb_calls::Takes::{
    self, Gates, Json, Label, Number, Path, Phase, Phases, Reference, Sha, Text, Word,
};

use crate::support::{Project, story};

/// Values that are wrong for arguments of this kind, but for the empty and the very long one.
fn wrong(takes: Takes) -> &'static [&'static str] {
    match takes {
        Text | Label => &[" \t\n", "bell\u{7}", "clear\u{1b}[2J", "a\u{7f}b", "csi \u{9b}31m"],
        Path => &[],
        Json => &[" ", "{", "[]", "1", "null", "\"text\"", "{\"a\": 1", "{a: 1}", "{\"a\": 1} x", "{\"a\": 1e999}"],
        Gates => WRONG_GATES,
        Phases => &[" ", ",", "a", "a,a", "a,,b", "[\"a\"]", "[1, 2]", "[\"a\", \"b\"", "a,b\u{1b}", "{\"a\": 1}"],
        Phase => &[" ", "nowhere", "Planned", "planned ", "clear\u{1b}[2J", "' OR 1=1 --", "9223372036854775808"],
        Number => WRONG_NUMBERS,
        Reference => &[" ", "-1", "nowhere", "' OR 1=1 --", "0a00000%", "clear\u{1b}[2J", "０a000002"],
        Sha => &[" ", "abcdef", "main", "HEAD~1", "g123456", "' OR 1=1 --", "clear\u{1b}[2J", "abcdef\u{e9}1"],
        Word => &[" ", "nothing", "TRUE", "Pass", "' OR 1=1 --", "clear\u{1b}[2J", "1"],
    }
}

const WRONG_GATES: &[&str] = &[
    " ",
    "[]",
    "{\"a→b\": 1}",
    "{\"a→b\": [1]}",
    "{\"a→b\": [{}]}",
    "{\"a\": []}",
    "{\"b→a\": []}",
    "{\"a→b\": [{\"check\": 1}]}",
    "{\"a→b\": [{\"check\": \"artifact_exists\", \"tier\": \"none\"}]}",
    "@nowhere.json",
];

const WRONG_NUMBERS: &[&str] = &[
    " ",
    "-1",
    "-9223372036854775809",
    "9223372036854775808",
    "99999999999999999999999999",
    "1.5",
    "0x10",
    "1e3",
    "one",
    "１",
    "NaN",
    "' OR 1=1 --",
];

/// Every value that is wrong for arguments of this kind.
fn bad_values(takes: Takes) -> Vec<String> {
    let long = match takes {
        Json => format!("{{\"k\": {}{}}}", "[".repeat(500), "]".repeat(500)),
        Phases => format!("{}z", "x,".repeat(1000)),
        Sha => "a".repeat(100 * 1024),
        Reference => "0a000002".repeat(10_000),
        _ => "x".repeat(100 * 1024),
    };
    wrong(takes).iter().map(ToString::to_string).chain([String::new(), long]).collect()
}

/// The words of a call, with `value` in its place, whatever the value holds.
fn words(line: &str, value: &str) -> Vec<String> {
    line.split(' ').map(|word| word.replace("{}", value)).collect()
}

fn sweep(takes: Takes) {
    let project = Project::new();
    story(&project);
    let before = project.dump();
    let mut swept = 0;
    for (line, _) in ARGUMENTS.iter().filter(|(_, kind)| *kind == takes) {
        for value in bad_values(takes) {
            let shown: String = value.chars().take(40).collect();
            let outcome = project.run_words(words(line, &value));
            assert_eq!(outcome.stdout, "", "{line} {shown:?}");
            let code = outcome.error();
            let is_no = takes == Phase && outcome.code == Some(1);
            assert!(outcome.code == Some(3) || is_no, "{line} {shown:?}: {code}, {:?}", outcome.code);
            assert!(!outcome.stderr.contains("panicked"), "{line} {shown:?}: {outcome:?}");
            swept += 1;
        }
        assert_eq!(project.dump(), before, "{line} changed the ledger");
    }
    assert!(swept >= 6, "{swept} calls");
}

#[test]
fn texts() {
    sweep(Text);
}

#[test]
fn labels() {
    sweep(Label);
}

#[test]
fn paths() {
    sweep(Path);
}

#[test]
fn json() {
    sweep(Json);
}

#[test]
fn gates_and_phases() {
    sweep(Gates);
    sweep(Phases);
    sweep(Phase);
}

#[test]
fn numbers() {
    sweep(Number);
}

#[test]
fn references() {
    sweep(Reference);
}

#[test]
fn commits_and_words() {
    sweep(Sha);
    sweep(Word);
}

#[test]
fn every_argument_with_a_value_is_swept() {
    let manual = std::fs::read_to_string(crate::support::docs("CLI.md")).expect("docs/CLI.md");
    let mut missing = Vec::new();
    // Flags that are not recorded and have tests of their own.
    let elsewhere = ["--store", "--project", "--dispatch", "--path", "--root", "--keep-theirs"];
    for section in manual.split("\n## ic ").skip(1) {
        let verb = section.lines().next().expect("a verb");
        let flags =
            section.lines().filter_map(|line| line.strip_prefix("| `--")?.split_once('`')).map(|(flag, _)| flag);
        for flag in flags.filter(|flag| flag.contains([' ', '['])) {
            let flag = format!("--{}", flag.split([' ', '[']).next().expect("a flag"));
            let swept = ARGUMENTS
                .iter()
                .any(|(line, _)| line.starts_with(&format!("{verb} ")) && line.contains(&format!("{flag}={{}}")));
            if !swept && !elsewhere.contains(&flag.as_str()) {
                missing.push(format!("{verb} {flag}"));
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn texts_from_outside_are_kept_and_shown_safely() {
    let project = Project::new();
    let odd = "Robert'); DROP TABLE runs;-- \"q\" $1 %s {0} \\ \u{202e}gpj 計劃 🙂\n\tsecond line";
    let outcome = project.run_words(["run", "create", "--goal", odd, "--phases", "a b,'; --,計劃"]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let status = project.json("run status @");
    assert_eq!(status["goal"], odd);
    assert_eq!(status["phases"], serde_json::json!(["a b", "'; --", "計劃"]));
    let text = project.ok("run status @ --format text");
    assert!(!text.contains('\u{202e}') && text.contains("DROP TABLE"), "{text}");
    assert_eq!(project.run_words(["run", "skip", "@", "'; --", "--reason=--"]).code, Some(0));
    assert_eq!(project.json("run advance @")["to_phase"], "計劃");
}

#[test]
fn what_stands_after_two_dashes_is_a_value() {
    let project = Project::new();
    for line in ["run create --goal g -- --phases", "run status -- @", "run status -- --json"] {
        let (exit, _) = project.refused(line);
        assert_eq!(exit, 3, "{line}");
    }
    story(&project);
    assert_eq!(project.run("run status -- @").code, Some(0));
    assert_eq!(project.run("run skip @ --reason=-- review").code, Some(0));
}

#[test]
fn reports_on_standard_input_are_read_or_refused_whole() {
    let project = Project::new();
    story(&project);
    let line = "dispatch record 0a00000f --stdin";
    let before = project.dump();
    let good = "c".repeat(40);
    for bad in [
        "hello".to_owned(),
        "{".to_owned(),
        "[]".to_owned(),
        "{\"commit\": 1}".to_owned(),
        "{\"commit\": \"main\"}".to_owned(),
        format!("{{\"commit\": \"{good}\"}}\n{{\"comit\": \"{good}\"}}"),
        format!("{{\"commit\": \"{good}\"}}\nnonsense"),
        format!("{{\"commit\": \"{good}\", \"files\": [\"\"]}}"),
        format!("{{\"commit\": \"{good}\", \"files\": [\"a\\u0000b\"]}}"),
        format!("{{\"commit\": \"{good}\", \"files\": \"a\"}}"),
        format!("{{\"commit\": \"{good}\", \"files\": [\"{}\"]}}", "x".repeat(5000)),
        format!("src/a.rs\n{good}\n"),
        format!("{good}\n\n\"a\\000b\"\n"),
    ] {
        let outcome = project.run_with_input(line, bad.as_bytes());
        let shown: String = bad.chars().take(60).collect();
        assert_eq!((outcome.code, outcome.error().as_str()), (Some(3), "invalid_value"), "{shown}");
        assert_eq!(project.dump(), before, "{shown}");
    }
    for nothing in ["", "\n", "  \n\n"] {
        let recorded = project.run_with_input(line, nothing.as_bytes()).json();
        assert_eq!((&recorded["commit_count"], &recorded["seq"]), (&serde_json::json!(0), &serde_json::Value::Null));
    }
    assert_eq!(project.dump(), before);
    let binary: Vec<u8> = (0..=255).collect();
    assert_eq!(project.run_with_input(line, &binary).code, Some(3));
}
