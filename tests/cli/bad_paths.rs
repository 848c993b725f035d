//! Ledgers in places with names that mean something to a URI, a shell or SQL.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use crate::support::{Project, args};

fn names() -> Vec<OsString> {
    [
        "a?b#c%20 d".as_bytes(),
        b"line\nbreak",
        b"trailing space ".as_slice(),
        "file:x?mode=memory".as_bytes(),
        ":memory:".as_bytes(),
        "'; DROP TABLE runs; --".as_bytes(),
        "計劃 🙂".as_bytes(),
        "-rf".as_bytes(),
        b"not \xff\xfe utf8",
        b"back\\slash",
    ]
    .map(|name: &[u8]| OsString::from_vec(name.to_vec()))
    .into()
}

fn directory(project: &Project, name: &OsStr) -> PathBuf {
    let directory = project.root().join(name);
    std::fs::create_dir(&directory).expect("make the directory");
    directory
}

#[test]
fn a_ledger_works_in_any_directory() {
    for name in names() {
        let project = Project::without_ledger();
        let directory = directory(&project, &name);
        let call = |line: &str| {
            let mut command = project.command(args(line));
            let output = command.current_dir(&directory).output().expect("run ic");
            assert!(output.status.success(), "{line} in {name:?}: {output:?}");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        call("init");
        assert!(directory.join(".ic/ic.db").exists(), "{name:?}");
        call("run create --goal g --phases a,b,c");
        call("run artifact add @ --path x.md");
        call("run advance @");
        call("run rollback @ --to-phase a");
        call("health");
        call("events verify");
        let entries: Vec<OsString> = std::fs::read_dir(project.root())
            .expect("the project")
            .map(|e| e.expect("an entry").file_name())
            .filter(|name| name != ".ic.yaml")
            .collect();
        assert_eq!(entries, std::slice::from_ref(&name), "nothing was made beside it");
        let status: serde_json::Value = serde_json::from_str(&call("run status @ --json")).expect("JSON");
        let is_utf8 = directory.to_str().is_some();
        assert_eq!(status.get("project_dir_b64").is_none(), is_utf8, "{status}");
        assert_eq!(is_utf8, status["project_dir"].as_str() == directory.to_str());
    }
}

#[test]
fn a_ledger_is_found_by_any_name() {
    for name in names() {
        let project = Project::without_ledger();
        let db = directory(&project, OsStr::new("store")).join(&name);
        let call = |words: &[&OsStr]| project.command(words).output().expect("run ic");
        let flag = OsStr::from_bytes(b"--db");
        let word = OsStr::new;
        assert!(call(&[word("init"), flag, db.as_os_str()]).status.success(), "{name:?}");
        assert!(db.exists(), "{name:?}");
        assert!(call(&[word("run"), word("list"), flag, db.as_os_str()]).status.success(), "{name:?}");
        let output = project.command(["run", "list"]).env("IC_DB", &db).output().expect("run ic");
        assert!(output.status.success(), "{name:?}: {output:?}");
    }
}

#[test]
fn a_pointer_leads_to_any_directory() {
    for name in names() {
        let project = Project::without_ledger();
        let store = project.root().join("stores").join(&name);
        let mut store_flag = OsString::from("--store=");
        store_flag.push(&store);
        let output = project.command([OsStr::new("init"), &store_flag]).output().expect("run ic");
        assert!(output.status.success(), "{name:?}: {output:?}");
        assert!(store.join("ic.db").exists(), "{name:?}");
        assert_eq!(project.run("run list").stdout, "[]\n", "{name:?}: the pointer is followed");
    }
}

/// A worktree may be removed under a shell or an agent that works in it.
#[test]
fn a_working_directory_that_is_gone_is_said_to_be() {
    let project = Project::new();
    let ic = project.command(["status"]);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "mkdir gone && cd gone && rmdir ../gone && exec \"$0\" status"]).arg(ic.get_program());
    shell.current_dir(project.root()).env_clear();
    shell.envs(ic.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let outcome = ic_testkit::CliOutcome::of(&mut shell);
    assert_eq!((outcome.code, outcome.error().as_str()), (Some(3), "invalid_value"), "{outcome:?}");
    assert!(outcome.stderr.contains("The working directory was removed"), "{outcome:?}");
}

#[test]
fn artifacts_of_any_name_are_registered() {
    let project = Project::new();
    project.ok("run create --goal g --phases a,b");
    for name in names() {
        std::fs::write(project.root().join(&name), "content").expect("write a file");
        let mut flag = OsString::from("--path=");
        flag.push(&name);
        let words = ["run", "artifact", "add", "@", "--json"].map(OsStr::new);
        let output = project.command([&words[..], &[&flag]].concat()).output().expect("run ic");
        let record: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert!(record["content_hash"].is_string(), "{name:?}: {record}");
        assert_eq!(record["path"].as_str(), Some(&*name.to_string_lossy()), "{name:?}");
    }
    let text = project.ok("run artifact list @ --format text");
    assert_eq!(text.lines().count(), names().len() + 1, "one line each, whatever the names: {text}");
}
