//! Artifacts: what is hashed, and how their paths are recorded.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use serde_json::{Value, json};

use crate::support::{Project, chain};

const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const HELLO: &str = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";

fn project() -> Project {
    let project = Project::new();
    chain(&project, "a,b", "a");
    project.write("docs/hello.txt", "hello\n");
    project.write("docs/empty.txt", "");
    project
}

#[test]
fn an_existing_file_gets_its_hash() {
    let project = project();
    let hash = |path: &str| project.json(&format!("run artifact add @ --path {path}"))["content_hash"].clone();
    assert_eq!(hash("docs/hello.txt"), HELLO);
    assert_eq!(hash("docs/empty.txt"), EMPTY);
    assert_eq!(hash("docs/missing.txt"), Value::Null);
    assert_eq!(hash("docs"), Value::Null, "a directory has no content");
    std::os::unix::fs::symlink("docs/hello.txt", project.root().join("link")).expect("a link");
    assert_eq!(hash("link"), HELLO, "a link to a file is read");
    std::os::unix::fs::symlink("nowhere", project.root().join("dangling")).expect("a link");
    assert_eq!(hash("dangling"), Value::Null);
    std::fs::write(project.root().join("docs/hello.txt"), "changed").expect("write");
    let list = project.json("run artifact list @");
    assert_eq!(list[0]["content_hash"], HELLO, "what was registered stays");
}

#[test]
fn paths_are_recorded_from_the_root() {
    let project = project();
    let root = project.root().display().to_string();
    for (directory, path, recorded) in [
        (".", "docs/hello.txt", "docs/hello.txt"),
        ("docs", "hello.txt", "docs/hello.txt"),
        ("docs", "./hello.txt", "docs/hello.txt"),
        ("docs", "../docs/hello.txt", "docs/hello.txt"),
        (".", "docs//hello.txt", "docs/hello.txt"),
        ("docs", &format!("{root}/docs/hello.txt"), "docs/hello.txt"),
        ("docs", "../new.md", "new.md"),
        (".", "/etc/hostname.missing", "/etc/hostname.missing"),
    ] {
        let record = project.json(&format!("-C {directory} run artifact add @ --path {path}"));
        assert_eq!(record["path"], recorded, "{path} from {directory}");
        assert!(record.get("path_b64").is_none(), "{record}");
        assert_eq!(record["content_hash"].is_string(), path.ends_with("hello.txt"), "{path} from {directory}");
    }
    let outside = project.json("run artifact add @ --path ../outside.md");
    let wanted = project.root().parent().expect("a parent").join("outside.md");
    assert_eq!(outside["path"], wanted.to_str().expect("UTF-8"));
}

#[test]
fn a_path_that_is_not_utf8_keeps_its_bytes() {
    let project = project();
    let name = OsStr::from_bytes(b"b\xffd name.md");
    std::fs::write(project.root().join(name), "hello\n").expect("write the file");
    let call = |words: &[&OsStr]| {
        let output = project.command(words).output().expect("run ic");
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    let words = ["run", "artifact", "add", "@", "--json", "--path"].map(OsStr::new);
    let record = call(&[&words[..], &[name]].concat());
    assert_eq!((&record["path"], &record["path_b64"]), (&json!("b\u{fffd}d name.md"), &json!("Yv9kIG5hbWUubWQ=")));
    assert_eq!(record["content_hash"], HELLO);
    assert_eq!(project.json("run artifact list @")[0]["path_b64"], "Yv9kIG5hbWUubWQ=");

    let dispatch = project.ok("dispatch create @");
    let words = ["dispatch", "record", &dispatch, "--json", "--commit", "abcdef1", "--file"].map(OsStr::new);
    assert_eq!(call(&[&words[..], &[name]].concat())["file_count"], 1);
    assert_eq!(project.json(&format!("dispatch show {dispatch}"))["files"][0]["path_b64"], "Yv9kIG5hbWUubWQ=");
    let report = project.json("run rollback @ --layer=code");
    assert_eq!(report["entries"][0]["file_paths_b64"], json!(["Yv9kIG5hbWUubWQ="]));
    assert_eq!(report["artifacts"][0]["path_b64"], "Yv9kIG5hbWUubWQ=");
    let log = b"\"b\\377d name.md\"\n";
    let sha = "c".repeat(40);
    let input = [sha.as_bytes(), b"\n\n", log].concat();
    let recorded = project.run_with_input(&format!("dispatch record {dispatch} --stdin"), &input).json();
    assert_eq!((&recorded["commit_count"], &recorded["file_count"]), (&json!(1), &json!(1)));
}

#[test]
fn the_same_path_may_be_registered_again() {
    let project = project();
    let first = project.ok("run artifact add @ --path docs/hello.txt");
    let second = project.ok("run artifact add @ --path docs/hello.txt");
    assert_ne!(first, second);
    assert_eq!(project.json("run artifact list @").as_array().map(Vec::len), Some(2));
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_and_registers_nothing() {
    let project = project();
    let link = project.root().join("loop");
    std::os::unix::fs::symlink("loop", &link).expect("a link");
    assert_eq!(project.json("run artifact add @ --path loop")["content_hash"], Value::Null);
    let memory = project.root().join("memory");
    std::os::unix::fs::symlink("/proc/self/mem", &memory).expect("a link");
    assert_eq!(project.refused("run artifact add @ --path memory"), (2, "io_error".to_owned()));
}

#[test]
fn content_above_the_limit_is_said_not_to_be_kept() {
    let project = project();
    project.write(".ic.yaml", "rollback: {checkpointing: {max-file-size: 8}}\n");
    project.write("small.txt", "12345678");
    project.write("large.txt", "123456789");
    let small = project.json("run artifact add @ --path small.txt");
    assert_eq!((&small["content_kept"], small.get("warnings")), (&json!(true), None));
    let large = project.json("run artifact add @ --path large.txt");
    assert_eq!((&large["content_kept"], &large["warnings"][0]["code"]), (&json!(false), &json!("content_not_kept")));
    assert!(large["content_hash"].is_string(), "{large}");
    let id = large["id"].as_str().expect("an id");
    assert_eq!(project.refused(&format!("run artifact cat {id}")), (3, "path_not_found".to_owned()));
    // A pipe gets the id alone on standard output; the warning is beside it.
    let piped = project.run("run artifact add @ --path large.txt");
    assert_eq!(piped.stdout.lines().count(), 1);
    let said: Value = serde_json::from_str(&piped.stderr).expect("one line of JSON");
    assert_eq!(said["warning"]["code"], "content_not_kept");
    let shown = project.run("run artifact add @ --path large.txt --format text");
    assert!(shown.stderr.starts_with("warning: large.txt has 9 bytes, and max-file-size is 8"), "{shown:?}");
    assert_eq!(project.run("run artifact add @ --path small.txt").stderr, "");
    for absent in ["docs", "docs/missing.txt", "https://example.org/a"] {
        assert_eq!(project.json(&format!("run artifact add @ --path {absent}"))["content_kept"], false, "{absent}");
    }
}

#[test]
fn an_address_is_recorded_as_it_was_given() {
    let project = project();
    for address in ["https://example.org/a//b", "s3://bucket/key", "file.txt"] {
        let added = project.json(&format!("run artifact add @ --path {address}"));
        assert_eq!(added["path"], address);
    }
    // A path has one slash where two were typed, and no scheme.
    assert_eq!(project.json("run artifact add @ --path docs//x")["path"], "docs/x");
    assert_eq!(project.json("run artifact add @ --path ./a://b")["path"], "a:/b");
}
