//! Lists: order, pages, filters.

use serde_json::Value;

use crate::support::{Project, chain, story};

fn ids(list: &Value) -> Vec<String> {
    list.as_array().expect("a list").iter().map(|item| item["id"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn runs_come_oldest_first_in_pages_from_the_newest_that_lose_none() {
    let project = Project::new();
    let created: Vec<String> =
        (0..7).map(|i| project.ok(&format!("run create --goal 'run {i}' --phases a,b"))).collect();
    assert_eq!(ids(&project.json("run list")), created);
    let mut pages: Vec<String> = Vec::new();
    let mut before = String::new();
    loop {
        let page = ids(&project.json(&format!("run list --limit 3 {before}")));
        let Some(first) = page.first() else { break };
        assert!(page.len() <= 3);
        before = format!("--before {first}");
        pages.splice(..0, page);
        // A run that begins in between is on no later page.
        project.ok("run create --goal between --phases a,b");
    }
    assert_eq!(pages, created);
    assert_eq!(ids(&project.json(&format!("run list --limit 1 --before {}", &created[6][28..]))), created[5..6]);
    for bad in ["0", "-1", "x", "100001", "9223372036854775808"] {
        assert_eq!(project.refused(&format!("run list --limit={bad}")), (3, "invalid_value".to_owned()), "{bad}");
    }
    assert_eq!(project.refused("run list --before @"), (3, "invalid_reference".to_owned()));
}

#[test]
fn runs_are_filtered_by_project_and_by_being_open() {
    let project = Project::new();
    std::fs::create_dir(project.root().join("part")).expect("a directory");
    let open = chain(&project, "a,b", "a");
    let done = chain(&project, "a,b", "b");
    let part = project.ok("run create --goal part --phases a,b --project part");
    assert_eq!(ids(&project.json("run list")), [open.clone(), done.clone(), part.clone()]);
    assert_eq!(ids(&project.json("run list --active")), [open.clone(), part.clone()]);
    assert_eq!(ids(&project.json("run list --project .")), [open.clone(), done.clone()]);
    assert_eq!(ids(&project.json("run list --project . --active")), std::slice::from_ref(&open));
    assert_eq!(ids(&project.json("run list --project part/../part --active")), std::slice::from_ref(&part));
    assert_eq!(ids(&project.json("run list -C part --project .")), [part]);
    assert_eq!(project.refused("run list --project nowhere"), (3, "invalid_value".to_owned()));
    project.ok(&format!("run rollback {done} --to-phase a"));
    assert_eq!(ids(&project.json("run list --active")).len(), 3, "open again");
}

#[test]
fn dispatches_are_filtered_by_run_phase_and_state() {
    let project = Project::new();
    let story = story(&project);
    let other = project.ok("run create --goal other --phases planned,b");
    let third = project.ok(&format!("dispatch create {other}"));
    let (builder, planner) = (story.builder.clone(), story.planner.clone());
    let list = |flags: &str| ids(&project.json(&format!("dispatch list {flags}")));
    assert_eq!(list(""), [planner.clone(), builder.clone(), third.clone()]);
    assert_eq!(list("--limit 1"), std::slice::from_ref(&third));
    assert_eq!(list(&story.run), [planner.clone(), builder.clone()]);
    assert_eq!(list(&format!("{} --phase planned", story.run)), std::slice::from_ref(&planner));
    assert_eq!(list("--status running"), std::slice::from_ref(&builder));
    assert_eq!(list("--status pending"), std::slice::from_ref(&third));
    assert_eq!(list(&format!("{} --status completed", story.run)), std::slice::from_ref(&planner));
    assert_eq!(list(&format!("{} --status pending", story.run)), Vec::<String>::new());
    assert_eq!(list(&format!("{} --phase executing --status running", story.run)), std::slice::from_ref(&builder));
    project.ok(&format!("run rollback {} --to-phase planned", story.run));
    assert_eq!(list("--status cancelled"), [builder]);
    for status in ["timed_out", "failed"] {
        assert_eq!(list(&format!("--status {status}")), Vec::<String>::new());
    }
    assert_eq!(project.refused(&format!("dispatch list {} --phase z", story.run)), (3, "unknown_phase".to_owned()));
    assert_eq!(project.refused("dispatch list --status RUNNING"), (3, "invalid_value".to_owned()));
}

#[test]
fn artifacts_and_agents_come_oldest_first() {
    let project = Project::new();
    chain(&project, "a,b,c", "b");
    let artifacts: Vec<String> =
        ["c", "a", "b"].iter().map(|p| project.ok(&format!("run artifact add @ --path {p}.md --phase {p}"))).collect();
    assert_eq!(ids(&project.json("run artifact list @")), artifacts);
    assert_eq!(ids(&project.json("run artifact list @ --phase a")), artifacts[1..2]);
    let agents: Vec<String> = (0..3).map(|i| project.ok(&format!("run agent add @ --type t{i}"))).collect();
    assert_eq!(ids(&project.json("run agent list @")), agents);
    assert_eq!(project.refused("run artifact list @ --phase z"), (3, "unknown_phase".to_owned()));
}

#[test]
fn the_runs_of_a_directory_that_is_gone_are_found() {
    let project = Project::new();
    let root = project.root().to_owned();
    std::fs::create_dir_all(root.join("shop/deep")).expect("directories");
    std::fs::create_dir(root.join("kept")).expect("a directory");
    std::os::unix::fs::symlink("shop", root.join("link")).expect("a link");
    let run = project.ok("run create --goal gone --phases a,b --project shop/deep");
    project.ok("run create --goal other --phases a,b --project kept");

    std::fs::remove_dir(root.join("shop/deep")).expect("removed");
    let absolute = root.join("shop/deep");
    let absolute = absolute.to_string_lossy();
    for place in [&absolute, "shop/deep", "shop/./deep/", "link/deep", "kept/../shop/x/../deep"] {
        assert_eq!(ids(&project.json(&format!("run list --project {place}"))), std::slice::from_ref(&run), "{place}");
        assert_eq!(project.ok(&format!("run current --project {place}")), run, "{place}");
    }
    // A new run needs a place to work in.
    let refusal = (3, "invalid_value".to_owned());
    assert_eq!(project.refused("run create --goal more --phases a,b --project shop/deep"), refusal);
    assert_eq!(project.refused("run list --project shop/dep"), refusal);

    // The directory above is gone too, and then a file has its name.
    std::fs::remove_dir(root.join("shop")).expect("removed");
    assert_eq!(ids(&project.json("run list --project shop/deep")), std::slice::from_ref(&run));
    project.write("shop", "a file");
    assert_eq!(ids(&project.json("run list --project shop/deep")), std::slice::from_ref(&run));
    assert_eq!(project.refused("run list --project shop"), refusal);

    project.ok(&format!("run cancel {run}"));
    assert_eq!(ids(&project.json("run list --project shop/deep")), std::slice::from_ref(&run));
    assert_eq!(project.refused("run current --project shop/deep"), (1, "no_active_run".to_owned()));
}
