//! Undos and redos from the page: they change the disk, git and the record, exactly as the plan showed.

use std::time::{Duration, Instant};

use ic_testkit::{Cli, TestWorld, tree};

use crate::served::{BINARY, Served, encoded, work, world};

#[test]
fn an_undo_is_planned_confirmed_done_and_redone() {
    let world = world();
    let before = (tree(world.root()), world.head());
    let page = Served::of_world(&world);
    let run = page.page(&format!("/runs/{}", world.run));
    let plan = page.page(&run.link("/undo?to=dispatch"));
    assert_eq!((tree(world.root()), world.head()), before, "a plan changes nothing");
    let said = plan.main();
    for part in
        ["tidy up", "prices.csv", "README.md", "1 commit", "Nothing has been changed yet", "refs/ic/rolled-back/"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    let done = page.confirm(
        &plan,
        &format!("/runs/{}/undo", world.run),
        &format!("&to={}&reason=too+tidy", encoded(&plan.field("to"))),
    );
    assert_eq!(done.status, 200, "{}", done.text());
    assert!(done.main().contains("It is done") && done.main().contains("too tidy"), "{}", done.main());
    assert_eq!((world.text("prices.csv").as_str(), world.text("README.md").as_str()), ("tea,4\n", "# A shop\n"));
    assert_eq!(world.text("menu.md"), "coffee 5\n", "what came before stays");
    assert_ne!(world.head(), before.1, "the commit left its branch");
    let list = world.cli.json(["rollback", "list", "--json"]);
    assert_eq!((list[0]["status"].as_str(), list[0]["reason"].as_str()), (Some("done"), Some("too tidy")));
    assert_eq!(list[0]["plan_hash"], plan.field("plan").as_str(), "the plan that was shown is the one on record");

    let redo = page.page(&done.link("/redo"));
    assert!(redo.main().contains("What would") || redo.main().contains("what would come back"), "{}", redo.main());
    let id = list[0]["id"].as_str().expect("an id");
    let back = page.confirm(&redo, &format!("/rollbacks/{id}/redo"), "");
    assert!(back.main().contains("It was undone itself"), "{}", back.main());
    assert_eq!((tree(world.root()), world.head()), before, "a redo gives back what was");
    world.cli.assert_sound("after a redo");
}

#[test]
fn the_plan_that_was_shown_is_done_or_nothing() {
    let world = world();
    let page = Served::of_world(&world);
    let run = page.page(&format!("/runs/{}", world.run));
    let plan = page.page(&run.link("/undo?to=dispatch"));
    // After the plan was shown, more is done in the run.
    work(&world, "serve tea", || world.write("tea.md", "green\n"));
    let before = (tree(world.root()), world.head(), world.cli.json(["rollback", "list", "--json"]));
    let path = format!("/runs/{}/undo", world.run);
    let to = format!("&to={}", encoded(&plan.field("to")));
    let refused = page.confirm(&plan, &path, &to);
    assert_eq!(refused.status, 409, "{}", refused.text());
    let said = refused.main();
    assert!(said.contains("The plan has changed") && said.contains("serve tea") && said.contains("tea.md"), "{said}");
    assert_eq!((tree(world.root()), world.head(), world.cli.json(["rollback", "list", "--json"])), before);
    assert_ne!(refused.field("plan"), plan.field("plan"));
    // The new plan is shown there, and can be confirmed.
    let done = page.confirm(&refused, &path, &to);
    assert!(done.main().contains("It is done"), "{}", done.main());
    assert_eq!((world.read("tea.md"), world.text("prices.csv").as_str()), (None, "tea,4\n"));
    // The same form once more is no plan any more.
    let replayed = page.confirm(&refused, &path, &to);
    assert_eq!(replayed.status, 409, "{}", replayed.text());
    let list = world.cli.json(["rollback", "list", "--json"]);
    assert_eq!(list.as_array().map(Vec::len), Some(1), "nothing was done twice");
}

#[test]
fn a_redo_is_done_as_it_was_shown_or_not_at_all() {
    let world = world();
    let page = Served::of_world(&world);
    world.ic(&["undo", "--run", &world.run, "--yes"]);
    let run = page.page(&format!("/runs/{}", world.run));
    let redo = page.page(&run.link("/redo"));
    // After the plan was shown, a person changes a file that would be restored.
    world.write("prices.csv", "tea,5\n");
    let before = tree(world.root());
    let id = world.cli.json(["rollback", "list", "--json"])[0]["id"].as_str().expect("an id").to_owned();
    let refused = page.confirm(&redo, &format!("/rollbacks/{id}/redo"), "");
    assert_eq!(refused.status, 409, "{}", refused.text());
    assert!(refused.main().contains("prices.csv"), "{}", refused.main());
    assert_eq!(tree(world.root()), before);
}

#[test]
fn a_rollback_that_was_redone_is_counted_no_more() {
    let world = world();
    let page = Served::of_world(&world);
    world.ic(&["undo", "--run", &world.run, "--yes"]);
    let runs = page.page("/runs").main();
    assert!(runs.contains(">1 rollback<"), "{runs}");
    world.ic(&["redo", "--run", &world.run, "--yes"]);
    let runs = page.page("/runs").main();
    assert!(!runs.contains(" rollback"), "{runs}");
}

#[test]
fn one_dispatch_is_undone_alone() {
    let world = world();
    let page = Served::of_world(&world);
    let run = page.page(&format!("/runs/{}", world.run));
    let id = world.cli.json(["dispatch", "list", &world.run, "--json"])[0]["id"].as_str().expect("an id").to_owned();
    let dispatch = page.page(&run.link(&format!("/dispatches/{id}")));
    let plan = page.page(&dispatch.link("/undo?only="));
    assert!(plan.main().contains("menu.md") && !plan.main().contains("prices.csv"), "{}", plan.main());
    let done = page.confirm(&plan, &format!("/runs/{}/undo", world.run), &format!("&only={id}"));
    assert!(done.main().contains("It is done"), "{}", done.main());
    assert_eq!((world.read("menu.md"), world.read("prices.csv")), (None, None), "later work stays");
    assert_eq!(world.text("README.md"), "# Shop\n");
    let shown = page.page(&format!("/dispatches/{id}"));
    assert!(shown.main().contains("It was undone"), "{}", shown.main());
}

#[test]
fn what_stands_in_the_way_is_decided_on_the_page() {
    let world = world();
    // Another run's work in the same tree, after the work had ended.
    let other = world.ic(&["run", "create", "--goal", "Another", "--phases", "a,b"]);
    let id = world.ic(&["dispatch", "create", &other, "--name", "rename"]);
    world.ic(&["dispatch", "start", &id]);
    world.write("README.md", "# My shop\n");
    world.ic(&["dispatch", "record", &id, "--file", "README.md"]);
    world.ic(&["dispatch", "complete", &id]);
    let page = Served::of_world(&world);
    let run = page.page(&format!("/runs/{}", world.run));
    let plan = page.page(&run.link("/undo?to=dispatch"));
    let said = plan.main();
    assert!(said.contains("In the way") && said.contains("README.md") && said.contains("--force-files"), "{said}");
    assert!(!said.contains("name=\"plan\""), "nothing can be confirmed that would be refused: {said}");
    let keep = page.page(&plan.link("keep=1"));
    assert!(keep.main().contains("Keep what others changed"), "{}", keep.main());
    let to = format!("&to={}&keep=1", encoded(&keep.field("to")));
    let done = page.confirm(&keep, &format!("/runs/{}/undo", world.run), &to);
    assert!(done.main().contains("It is done"), "{}", done.main());
    assert_eq!((world.text("README.md").as_str(), world.text("prices.csv").as_str()), ("# My shop\n", "tea,4\n"));
}

#[test]
fn a_page_that_only_looks_changes_nothing() {
    let world = world();
    let page = Served::of(&world.cli, &["--read-only"]);
    let run = page.page(&format!("/runs/{}", world.run));
    let plan = page.page(&run.link("/undo?to=dispatch"));
    assert!(plan.main().contains("read-only") && !plan.main().contains("method=\"post\""), "{}", plan.main());
    let token =
        plan.text().split("name=\"token\" value=\"").nth(1).and_then(|rest| rest.split('"').next().map(str::to_owned));
    let hash = plan
        .main()
        .split("--expect-plan ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next().map(str::to_owned))
        .expect("a hash");
    let before = (tree(world.root()), world.cli.dump());
    let body = format!("token={}&plan={hash}&to=created", token.expect("a token"));
    for path in [
        format!("/runs/{}/undo", world.run),
        "/rollbacks/abcdef12/redo".to_owned(),
        "/rollbacks/abcdef12/resume".to_owned(),
    ] {
        let refused = page.post(&path, &body);
        assert_eq!(refused.status, 403, "{path}: {}", refused.text());
        assert!(refused.main().contains("read-only"), "{}", refused.main());
    }
    assert_eq!((tree(world.root()), world.cli.dump()), before);
}

/// A world whose work made something outside, and whose undo of it takes long.
fn slow() -> TestWorld {
    let world = world();
    let undo = format!("touch {0}/begun; sleep 5; touch {0}/undone", world.root().join("..").display());
    world.ic(&["compensation", "add", &world.run, "--step", "server", "--shell", &undo]);
    world
}

#[test]
fn a_page_that_is_killed_in_an_undo_leaves_what_a_resume_finishes() {
    let world = slow();
    let page = Served::of_world(&world);
    let run = page.page(&format!("/runs/{}", world.run));
    let plan = page.page(&run.link("/undo?to=created"));
    assert!(plan.main().contains("server"), "{}", plan.main());
    let body = format!("token={}&plan={}&to=created", plan.field("token"), plan.field("plan"));
    let answer = page.post(&format!("/runs/{}/undo", world.run), &body);
    // It takes longer than a browser waits: it is led to where it is shown how far it is, and asks there again.
    let to = answer.header("location").map(str::to_owned);
    let to = to.filter(|to| answer.status == 303 && to.starts_with("/acts/"));
    let to = to.unwrap_or_else(|| panic!("{} {}", answer.status, answer.text()));
    for _ in 0..2 {
        let shown = page.page(&to);
        assert!(shown.main().contains("It is being done"), "{}", shown.main());
        assert!(shown.text().contains("http-equiv=\"refresh\""), "it asks again without a script");
    }
    let second = page.post(&format!("/runs/{}/undo", world.run), &body);
    assert_eq!(second.status, 409, "{}", second.text());
    assert!(second.main().contains("One thing at a time"), "{}", second.main());
    let begun = world.root().join("../begun");
    wait(|| begun.exists());
    drop(page);
    assert!(!world.root().join("../undone").exists(), "it was killed in the middle");
    let page = Served::of_world(&world);
    let shown = page.page(&format!("/runs/{}", world.run));
    assert!(shown.main().contains("Unfinished") && shown.main().contains("ic rollback resume"), "{}", shown.main());
    assert!(shown.main().contains("interrupted") && !shown.main().contains("under way"), "{}", shown.main());
    let rollback = page.page(&shown.link("/rollbacks/"));
    assert!(rollback.main().contains("the run stays closed"), "{}", rollback.main());
    // A person who begins another undo is shown this one, and the page does not claim an undo that was not made.
    let body = format!("token={}&plan={}&to=created", rollback.field("token"), plan.field("plan"));
    let refused = page.post(&format!("/runs/{}/undo", world.run), &body);
    assert_eq!(refused.status, 409, "{}", refused.text());
    assert!(
        refused.main().contains("It is not finished") && !refused.main().contains("Nothing was undone"),
        "{}",
        refused.main()
    );
    // From the page, as from the command line.
    let token = rollback.field("token");
    let id = world.cli.json(["rollback", "list", "--json"])[0]["id"].as_str().expect("an id").to_owned();
    page.post(&format!("/rollbacks/{id}/resume"), &format!("token={token}"));
    wait(|| world.cli.json(["rollback", "list", "--json"])[0]["status"] == "done");
    assert!(world.root().join("../undone").exists());
    assert_eq!(world.text("prices.csv"), "tea,4\n");
    world.cli.assert_sound("after a resume");
}

#[test]
fn a_page_that_is_interrupted_ends_in_good_order() {
    ends_in_good_order_on(&["INT"]);
}

#[test]
fn a_page_whose_terminal_is_closed_ends_in_good_order() {
    // The shell of the terminal tells it, and the system does.
    ends_in_good_order_on(&["HUP", "HUP"]);
}

fn ends_in_good_order_on(signals: &[&str]) {
    let world = slow();
    let mut page = Served::of_world(&world);
    let run = page.page(&format!("/runs/{}", world.run));
    let plan = page.page(&run.link("/undo?to=created"));
    let body = format!("token={}&plan={}&to=created", plan.field("token"), plan.field("plan"));
    page.post(&format!("/runs/{}/undo", world.run), &body);
    let begun = world.root().join("../begun");
    wait(|| begun.exists());
    // A browser listens, and never reads.
    let listener = page.connect();
    for signal in signals {
        interrupt(page.child.id(), signal);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let ended = page.child.wait().expect("its end");
    assert_eq!(ended.code(), Some(0));
    drop(listener);
    let status = world.cli.json(["rollback", "list", "--json"])[0]["status"].clone();
    assert_eq!(status, "stopped", "it is on record that it was interrupted");
    world.ic(&["rollback", "resume", &world.run, "--yes"]);
    assert!(world.root().join("../undone").exists());
    assert_eq!(world.text("prices.csv"), "tea,4\n");
}

fn interrupt(pid: u32, signal: &str) {
    let number = pid.to_string();
    let done = std::process::Command::new("kill").args(["-s", signal, &number]).status().expect("kill");
    assert!(done.success());
}

fn wait(until: impl Fn() -> bool) {
    let begin = Instant::now();
    while !until() {
        assert!(begin.elapsed() < Duration::from_secs(30), "it did not happen");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn without_a_ledger_there_is_no_page() {
    let cli = Cli::without_ledger(BINARY);
    assert_eq!(cli.refused(["ui", "--json"]), (Some(3), "no_ledger".to_owned()));
}

#[test]
fn port_zero_is_any_that_is_free() {
    let world = world();
    let mut command = world.cli.command(["ui", "--json", "--port", "0"]);
    let mut page = command.stdout(std::process::Stdio::piped()).spawn().expect("start it");
    let mut line = String::new();
    let output = page.stdout.take().expect("a pipe");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).expect("its address");
    let said: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    let port = said["port"].as_u64().and_then(|port| u16::try_from(port).ok()).expect("a port");
    assert!(port > 0 && said["url"].as_str().is_some_and(|url| url.contains(&format!(":{port}/"))), "{said}");
    std::net::TcpStream::connect(("127.0.0.1", port)).expect("it listens there");
    interrupt(page.id(), "TERM");
    assert_eq!(page.wait().expect("its end").code(), Some(0));
}

#[test]
fn a_port_that_is_taken_is_named() {
    let world = world();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("its address").port().to_string();
    let outcome = world.cli.run(["ui", "--json", "--port", &port]);
    assert_eq!((outcome.code, outcome.error()), (Some(2), "io_error".to_owned()));
    assert!(outcome.stderr.contains(&port) && outcome.stderr.contains("leave --port out"), "{}", outcome.stderr);
}
