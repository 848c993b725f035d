//! The HTML of each page, without ids, times and hashes.

use ic_testkit::Cli;

use crate::served::{BINARY, Reply, Served, work, world};

fn snapshot(name: &str, reply: &Reply) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.add_filter(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "[id]");
    settings.add_filter(r"\b[0-9a-f]{64}\b", "[hash]");
    settings.add_filter(r"(%3A|\b)[0-9a-f]{8}\b", "${1}[short]");
    settings.add_filter(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "[time]");
    settings.add_filter(r">(just now|\d+ s ago|\d+ min ago)<", ">[age]<");
    settings.add_filter(r"/tmp/[^<]*?/project", "[project]");
    let lines = reply.main().replace("><", ">\n<");
    settings.bind(|| insta::assert_snapshot!(name, lines));
}

#[test]
fn each_page_says_what_is_so() {
    let world = world();
    let page = Served::of_world(&world);
    snapshot("timeline", &page.page("/"));
    snapshot("runs", &page.page("/runs"));
    let run = page.page(&format!("/runs/{}", world.run));
    snapshot("run", &run);
    snapshot("point", &page.page(&run.link("/point?")));
    let plan = page.page(&run.link("/undo?to=dispatch"));
    snapshot("plan", &plan);
    let id = world.cli.json(["dispatch", "list", &world.run, "--json"])[1]["id"].as_str().expect("an id").to_owned();
    snapshot("dispatch", &page.page(&format!("/dispatches/{id}")));
    snapshot("search", &page.page("/search?q=tidy"));
    world.ic(&["undo", "--run", &world.run, "--yes", "--reason", "too tidy"]);
    let rollback = world.cli.json(["rollback", "list", "--json"])[0]["id"].as_str().expect("an id").to_owned();
    snapshot("rollback", &page.page(&format!("/rollbacks/{rollback}")));
    snapshot("redo", &page.page(&format!("/rollbacks/{rollback}/redo")));
}

#[test]
fn a_project_without_runs_says_how_to_begin() {
    let cli = Cli::new(BINARY);
    let page = Served::of(&cli, &[]);
    let text = page.page("/").main();
    assert!(text.contains("Nothing is recorded yet") && text.contains("ic hooks install"), "{text}");
    let events = page.page("/events");
    assert!(events.main().contains("Events"), "{}", events.main());
    assert!(page.page("/events/verify").main().contains("as it was written"));
}

#[test]
fn a_run_whose_content_cannot_be_read_says_so() {
    let world = world();
    let page = Served::of_world(&world);
    let address = format!("/runs/{}", world.run);
    assert!(!page.page(&address).main().contains("What changed is not known"));
    std::fs::remove_file(world.cli.beside("objects.db")).expect("remove the store");
    let text = page.page(&address).main();
    assert!(text.contains("What changed is not known at every point"), "{text}");
    assert!(text.contains("The object store is missing"), "{text}");
}

#[test]
fn what_is_not_there_is_said_with_its_code() {
    let world = world();
    let page = Served::of_world(&world);
    for (path, status, code) in [
        ("/runs/aaaaaaaa", 404, "run_not_found"),
        ("/rollbacks/aaaaaaaa", 404, "rollback_not_found"),
        ("/dispatches/aaaaaaaa", 404, "dispatch_not_found"),
        ("/nothing/at/all", 404, "path_not_found"),
        ("/compare?from=aaaaaaaa", 404, "checkpoint_not_found"),
        ("/events?before=-1", 400, "invalid_value"),
    ] {
        let reply = page.get(path);
        assert_eq!(reply.status, status, "{path}: {}", reply.text());
        assert!(reply.main().contains(code), "{path}: {}", reply.main());
    }
}

#[test]
fn any_two_points_are_compared_and_the_tree_as_it_is() {
    let world = world();
    let page = Served::of_world(&world);
    let list = world.cli.json(["checkpoint", "list", "--json"]);
    let ids: Vec<&str> =
        list.as_array().expect("a list").iter().map(|one| one["id"].as_str().expect("an id")).collect();
    let (oldest, newest) = (ids[0], ids[ids.len() - 1]);
    world.write("new.txt", "<new>\n");
    let both = page.page(&format!("/compare?from={oldest}&to={newest}")).main();
    assert!(both.contains("menu.md") && both.contains("coffee 5") && !both.contains("new.txt"), "{both}");
    assert_eq!(page.page(&format!("/compare?from={newest}&to={oldest}")).main(), both, "the older one comes oldest");
    let now = page.page(&format!("/compare?from={oldest}")).main();
    assert!(now.contains("new.txt") && now.contains("&lt;new&gt;"), "{now}");
    let split = page.page(&format!("/compare?from={oldest}&view=split")).main();
    assert!(split.contains("diff split"), "{split}");
}

#[test]
fn images_stand_beside_each_other() {
    let world = world();
    let png = |last: u8| [b"\x89PNG\r\n\x1a\n", &[0, 1, 2, last][..]].concat();
    std::fs::write(world.root().join("logo.png"), png(1)).expect("an image");
    world.ic(&["checkpoint", "create", "--run", &world.run]);
    std::fs::write(world.root().join("logo.png"), png(2)).expect("an image");
    world.ic(&["checkpoint", "create", "--run", &world.run]);
    let list = world.cli.json(["checkpoint", "list", "--json"]);
    let ids: Vec<&str> =
        list.as_array().expect("a list").iter().map(|one| one["id"].as_str().expect("an id")).collect();
    let page = Served::of_world(&world);
    let shown = page.page(&format!("/compare?from={}&to={}", ids[ids.len() - 2], ids[ids.len() - 1])).main();
    let images: Vec<&str> = shown.split("src=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(images.len(), 2, "{shown}");
    for (image, last) in images.into_iter().zip([1, 2]) {
        let reply = page.page(image);
        assert_eq!((reply.header("content-type"), reply.body.as_slice()), (Some("image/png"), png(last).as_slice()));
        assert!(reply.header("content-security-policy").is_some_and(|policy| policy.contains("sandbox")));
    }
}

#[test]
fn events_are_filtered_and_paged() {
    let world = world();
    let page = Served::of_world(&world);
    let all = page.page("/events").main();
    assert!(
        all.contains("run created") && all.contains("dispatch created") && all.contains("checkpoint created"),
        "{all}"
    );
    let some = page.page(&format!("/events?run={}&source=dispatch", world.run)).main();
    assert!(
        some.contains("dispatch created") && !some.contains("run created") && !some.contains("checkpoint created"),
        "{some}"
    );
    let older = page.page("/events?before=4").main();
    assert!(older.contains("id=\"e3\"") && !older.contains("id=\"e4\""), "{older}");
}

#[test]
fn what_an_address_says_is_understood_or_refused() {
    let world = world();
    let page = Served::of_world(&world);
    for (address, said) in [
        ("/events?source=zzz", "There is no kind of events"),
        (&format!("/search?q={}", "x".repeat(201)), "200 bytes at most"),
        (&format!("/runs/{}/undo?to=created&only=x", world.run), "names a point and a dispatch"),
        (&format!("/runs/{}/undo", world.run), "names no point and no dispatch"),
    ] {
        let answer = page.get(address);
        assert_eq!(answer.status, 400, "{address}: {}", answer.main());
        assert!(answer.main().contains(said) && answer.main().contains("Nothing was changed"), "{}", answer.main());
    }
}

#[test]
fn a_timeline_says_that_something_is_older_only_where_it_is() {
    let world = world();
    world.ic(&["dispatch", "create", &world.run, "--name", "waits"]);
    let page = Served::of_world(&world);
    let shown = page.page(&format!("/runs/{}", world.run)).main();
    assert!(shown.contains("timeline") && !shown.contains("are drawn"), "{shown}");
    for n in 0..202 {
        let id = world.ic(&["dispatch", "create", &world.run, "--name", &format!("work {n}")]);
        world.ic(&["dispatch", "start", &id]);
    }
    let shown = page.page(&format!("/runs/{}", world.run)).main();
    assert!(shown.contains("Only the newest 200 dispatches are looked at"), "{shown}");
}

#[test]
fn a_decision_keeps_the_reason_and_can_be_made_otherwise() {
    let world = world();
    world.write("prices.csv", "mine\n");
    let page = Served::of_world(&world);
    let plan = page.page(&format!("/runs/{}/undo?to=created&files=1&reason=too+tidy", world.run));
    assert!(plan.text().contains("value=\"too tidy\""), "{}", plan.main());
    assert!(
        plan.main().contains("--force-files --reason &#39;too tidy&#39;")
            || plan.main().contains("--force-files --reason 'too tidy'"),
        "{}",
        plan.main()
    );
    let otherwise = page.page(&plan.link("/undo?to=created"));
    assert!(!otherwise.main().contains("Decided: "), "{}", otherwise.main());
    assert!(otherwise.text().contains("value=\"too tidy\""), "{}", otherwise.main());
}

#[test]
fn an_image_is_shown_though_a_text_of_its_size_is_not() {
    let world = world();
    let png = |size: usize| {
        let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
        bytes.resize(size, 7);
        bytes
    };
    let id = work(&world, "draw", || {
        std::fs::write(world.root().join("large.png"), png(3 << 20)).expect("an image");
        std::fs::write(world.root().join("large.txt"), vec![b'x'; 3 << 20]).expect("a text");
    });
    let page = Served::of_world(&world);
    let run = page.page(&format!("/runs/{}", world.run));
    let point = page.page(&run.link(&format!("ref=dispatch%3A{}", &id[id.len() - 8..])));
    for (name, is_shown) in [("large.png", true), ("large.txt", false)] {
        let hex: String = name.bytes().map(|byte| format!("{byte:02x}")).collect();
        let one = page.page(&point.link(&format!("path={hex}")));
        assert_eq!(one.main().contains("<img"), is_shown, "{name}: {}", one.main());
        assert_eq!(one.main().contains("Too large for a page"), !is_shown, "{name}");
        if is_shown {
            let image = one.main().split("src=\"").nth(1).and_then(|rest| rest.split('"').next().map(str::to_owned));
            let image = page.get(&image.expect("its address"));
            assert_eq!((image.status, image.body.len()), (200, 3 << 20), "{name}");
        }
    }
}
