//! References to runs, dispatches and agents.

use serde_json::json;

use crate::support::{Project, chain, story};

#[test]
fn a_run_is_named_by_its_id_or_the_end_of_it() {
    let project = Project::new();
    let run = chain(&project, "a,b", "a");
    let digits = run.replace('-', "");
    let mut names = vec![run.clone(), digits.clone(), run.to_uppercase(), format!("{{{run}}}")];
    let last = names.pop().expect("a name");
    assert_eq!(project.refused(&format!("run phase {last}")), (3, "invalid_reference".to_owned()));
    for length in 6..=32 {
        names.push(digits[32 - length..].to_owned());
    }
    names.push(digits[24..].to_uppercase());
    names.push(run[run.len() - 20..].to_owned());
    for name in names {
        assert_eq!(project.json(&format!("run status {name}"))["id"], run.as_str(), "{name}");
    }
}

#[test]
fn dispatches_and_agents_are_named_in_the_same_way() {
    let project = Project::new();
    let story = story(&project);
    let (dispatch, agent) = (&story.builder[28..], story.agent[30..].to_uppercase());
    assert_eq!(project.json(&format!("dispatch show {dispatch}"))["id"], story.builder.as_str());
    let updated = project.json(&format!("run agent update {agent} --status completed"));
    assert_eq!(updated["id"], story.agent.as_str());
}

#[test]
fn what_is_no_reference_is_told_from_what_does_not_exist() {
    let project = Project::new();
    chain(&project, "a,b", "a");
    for (name, code) in [
        ("00002", "invalid_reference"),
        ("xyzxyz", "invalid_reference"),
        ("0a00000200000000000000000000000000", "invalid_reference"),
        ("''", "invalid_reference"),
        ("@@", "invalid_reference"),
        ("@0a000002", "invalid_reference"),
        ("latest", "invalid_reference"),
        ("%000002", "invalid_reference"),
        ("999999", "run_not_found"),
        ("00000000-0000-7000-8000-000000000000", "run_not_found"),
        ("scope:", "run_not_found"),
        ("scope:nowhere", "run_not_found"),
    ] {
        assert_eq!(project.refused(&format!("run status {name}")), (3, code.to_owned()), "{name}");
        assert_eq!(project.refused(&format!("run advance {name}")), (3, code.to_owned()), "{name}");
    }
    assert_eq!(project.refused("dispatch show 999999"), (3, "dispatch_not_found".to_owned()));
    assert_eq!(project.refused("dispatch show @"), (3, "invalid_reference".to_owned()));
    assert_eq!(project.refused("run agent update 999999 --status failed"), (3, "agent_not_found".to_owned()));
}

#[test]
fn several_ids_with_the_same_end_are_listed() {
    let project = Project::new();
    let create = |seed: u64| {
        let mut command = project.command(["run", "create", "--goal", "g", "--phases", "a,b"]);
        let output = command.env("IC_TEST_IDS", seed.to_string()).output().expect("run ic");
        String::from_utf8(output.stdout).expect("an id").trim().to_owned()
    };
    let (one, two) = (create(0x1_abcd_ef01), create(0x2_abcd_ef01));
    let outcome = project.run("run advance abcdef01");
    assert_eq!((outcome.code, outcome.error().as_str()), (Some(3), "ambiguous_id"));
    let error: serde_json::Value = serde_json::from_str(&outcome.stderr).expect("JSON");
    let mut ids: Vec<&str> =
        error["error"]["details"]["ids"].as_array().expect("ids").iter().filter_map(|id| id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [one.as_str(), two.as_str()]);
    assert_eq!(project.json("run status 1abcdef01")["id"], one.as_str());
    assert_eq!(project.json(&format!("run status {two}"))["id"], two.as_str());
}

#[test]
fn at_is_the_only_active_run_of_the_project() {
    let project = Project::new();
    assert_eq!(project.refused("run status @"), (3, "run_not_found".to_owned()));
    assert_eq!(project.refused("run current"), (1, "no_active_run".to_owned()));
    let first = chain(&project, "a,b", "a");
    assert_eq!(project.ok("run current"), first);
    assert_eq!(project.json("run status @")["id"], first.as_str());

    let second = chain(&project, "a,b", "a");
    let outcome = project.run("run advance @");
    assert_eq!((outcome.code, outcome.error().as_str()), (Some(3), "ambiguous_run"));
    assert!(outcome.stderr.contains(&first) && outcome.stderr.contains(&second), "both are listed: {outcome:?}");
    assert_eq!(project.refused("run current"), (3, "ambiguous_run".to_owned()));

    project.ok(&format!("run cancel {first}"));
    assert_eq!(project.ok("run current"), second);
    project.ok(&format!("run advance {second}"));
    assert_eq!(project.refused("run current"), (1, "no_active_run".to_owned()), "a completed run is not active");
    project.ok(&format!("run rollback {second} --to-phase a"));
    assert_eq!(project.ok("run current"), second, "a rollback makes it active again");
}

#[test]
fn at_looks_from_the_working_directory_to_the_root() {
    let project = Project::new();
    std::fs::create_dir_all(project.root().join("part/deep")).expect("directories");
    let whole = chain(&project, "a,b", "a");
    let part = project.ok("run create --goal Part --phases a,b --project part");
    assert_eq!(project.ok("run current"), whole);
    assert_eq!(project.ok("run current -C part"), part);
    assert_eq!(project.ok("run current -C part/deep"), part);
    assert_eq!(project.ok("run current --project part"), part);
    project.ok(&format!("run cancel {part}"));
    assert_eq!(project.ok("run current -C part/deep"), whole);
    assert_eq!(project.refused("run current --project part"), (1, "no_active_run".to_owned()));
}

#[test]
fn a_scope_is_its_open_run_else_the_newest_that_ended() {
    let project = Project::new();
    let create = "run create --goal g --phases a,b --scope-id";
    let first = project.ok(&format!("{create} s1"));
    assert_eq!(project.json("run status scope:s1")["id"], first.as_str());
    std::fs::create_dir(project.root().join("sub")).expect("a directory");
    let second = project.ok(&format!("{create} s1 --project sub"));
    assert_eq!(project.refused("run status scope:s1"), (3, "ambiguous_run".to_owned()));
    project.ok(&format!("run cancel {second}"));
    assert_eq!(project.json("run status scope:s1")["id"], first.as_str());
    project.ok(&format!("run cancel {first}"));
    assert_eq!(project.json("run status scope:s1")["id"], second.as_str());
    let odd = project.ok(&format!("{create} 'a b:c@d'"));
    assert_eq!(project.json("run status 'scope:a b:c@d'")["id"], odd.as_str());
}

#[test]
fn a_scope_names_one_open_run_of_a_project() {
    let project = Project::new();
    let create = "run create --goal 'Fix #12' --phases a,b --scope-id s1";
    let first = project.json(create);
    assert_eq!((&first["created"], first.get("warnings")), (&json!(true), None));
    let before = project.dump();
    let again = project.json(create);
    assert_eq!((&again["id"], &again["created"]), (&first["id"], &json!(false)), "a retry makes no second run");
    assert_eq!(again["warnings"][0]["code"], "run_exists");
    // A script gets the id, and the warning beside it.
    let piped = project.run(create);
    assert_eq!(piped.stdout.trim(), first["id"].as_str().expect("an id"));
    assert!(piped.stderr.contains("run_exists"), "{piped:?}");
    for other in [
        "run create --goal Other --phases a,b --scope-id s1",
        "run create --goal 'Fix #12' --phases a,b,c --scope-id s1",
    ] {
        assert_eq!(project.refused(other), (1, "scope_taken".to_owned()), "{other}");
    }
    assert_eq!(project.dump(), before, "nothing was written");
    let id = first["id"].as_str().expect("an id");
    project.ok(&format!("run cancel {id}"));
    assert_ne!(project.ok(create), id, "one that has ended is not answered");
}

#[test]
fn many_creates_of_one_scope_at_once_make_one_run() {
    let project = Project::new();
    let create = "run create --goal g --phases a,b --scope-id s1";
    let calls: Vec<_> = (0..6)
        .map(|_| {
            let mut command = project.command(crate::support::args(create));
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
            command.spawn().expect("start ic")
        })
        .collect();
    let ids: Vec<String> = calls
        .into_iter()
        .map(|call| {
            let outcome = ic_testkit::CliOutcome::at_end_of(call);
            assert_eq!(outcome.code, Some(0), "{outcome:?}");
            outcome.stdout.trim().to_owned()
        })
        .collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(project.json("run list").as_array().map(Vec::len), Some(1));
}

/// Verbs that read the configuration of the run's project before they act.
const CONFIGURED: [&str; 8] = [
    "run advance REF",
    "gate override REF --reason r",
    "run rollback REF --to-phase a --layer=files --yes",
    "rollback resume REF --yes",
    "rollback abort REF --yes",
    "rollback abort REF --dry-run",
    "redo REF --yes",
    "redo REF --dry-run",
];

#[test]
fn a_reference_that_names_no_one_run_never_leads_to_the_configuration_of_the_caller() {
    let project = Project::new();
    std::fs::create_dir(project.root().join("sub")).expect("a directory");
    project.ok("run create --goal g --phases a,b --scope-id s1");
    project.ok("run create --goal g --phases a,b");
    project.ok("run create --goal g --phases a,b --scope-id s1 --project sub");
    project.write(".ic.yaml", "nonsense: [");
    assert_eq!(project.refused("checkpoint create").1, "invalid_config", "it would be said if it were read");
    let before = project.dump();
    for verb in CONFIGURED {
        for reference in ["@", "scope:s1"] {
            let call = verb.replace("REF", reference);
            assert_eq!(project.refused(&call), (3, "ambiguous_run".to_owned()), "{call}");
        }
        let (call, is_of_rollback) =
            (verb.replace("REF", "999999"), verb.starts_with("rollback") || verb.starts_with("redo"));
        let missing = if is_of_rollback { "rollback_not_found" } else { "run_not_found" };
        assert_eq!(project.refused(&call), (3, missing.to_owned()), "{call}");
    }
    assert_eq!(project.dump(), before, "nothing was changed");
}

#[test]
fn a_ledger_that_cannot_be_read_is_busy_and_no_missing_run() {
    let project = Project::new();
    let run = chain(&project, "a,b", "a");
    project.write(".ic.yaml", "nonsense: [");
    let before = project.dump();
    let holder = project.database();
    holder.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").expect("hold the ledger");
    for verb in CONFIGURED {
        let call = format!("{} --busy-timeout 50ms", verb.replace("REF", &run));
        let outcome = project.run(&call);
        assert_eq!((outcome.code, outcome.error().as_str()), (Some(2), "busy"), "{call}");
    }
    drop(holder);
    assert_eq!(project.dump(), before, "nothing was changed");
}

#[test]
fn a_run_without_an_open_rollback_says_so_whoever_asks() {
    let project = Project::new();
    let run = chain(&project, "a,b", "a");
    for call in ["rollback resume @ --yes", "rollback abort @ --yes", "rollback abort @ --dry-run"] {
        assert_eq!(project.refused(call), (1, "nothing_to_resume".to_owned()), "{call}");
    }
    assert_eq!(project.refused(&format!("rollback show {run}")), (3, "rollback_not_found".to_owned()));
}
