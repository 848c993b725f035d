//! Large runs and large changes: each page stays small, everything is on one of them, and a cut is mentioned.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::served::{Served, work, world};

/// Debug builds are slower than what people use; `docs/UI.md` has the figures of those.
const PATIENCE: Duration = Duration::from_secs(5);

#[test]
fn five_thousand_files_and_a_huge_one_are_pages() {
    const FILES: usize = 5_000;
    let world = world();
    let id = work(&world, "generate", || {
        for n in 0..FILES {
            world.write(&format!("out/{:02}/{n}.txt", n % 50), &format!("{n}\n"));
        }
        // Not more than a checkpoint takes.
        world.write("huge.txt", &"a line of a huge file\n".repeat(9_000_000 / 22));
    });
    let page = Served::of_world(&world);
    let run = page.page(&format!("/runs/{}", world.run));
    let begin = Instant::now();
    let first = page.page(&run.link(&format!("ref=dispatch%3A{}", &id[id.len() - 8..])));
    assert!(begin.elapsed() < PATIENCE, "{:?}", begin.elapsed());
    assert!(first.main().contains("5001 files") && first.main().contains("More files"), "{}", first.main());
    assert!(first.body.len() < 400_000, "{}", first.body.len());
    // Each file is on exactly one page.
    let mut seen = BTreeSet::new();
    let mut shown = first.clone();
    loop {
        let text = shown.main();
        let paths = text.split("&amp;path=").skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned);
        let paths: BTreeSet<String> = paths.collect();
        for path in paths {
            assert!(seen.insert(path.clone()), "{path} is shown twice");
        }
        if !text.contains("More files") {
            break;
        }
        let begin = Instant::now();
        shown = page.page(&shown.link("&after="));
        assert!(begin.elapsed() < PATIENCE, "{:?}", begin.elapsed());
    }
    assert_eq!(seen.len(), FILES + 1);
    let huge: String = "huge.txt".bytes().map(|byte| format!("{byte:02x}")).collect();
    let one = page.page(&first.link(&format!("path={huge}")));
    assert!(one.main().contains("Too large for a page") && one.main().contains("ic checkpoint diff"), "{}", one.main());
    assert!(one.body.len() < 20_000, "{}", one.body.len());
    let plan = page.page(&run.link("/undo?to=dispatch"));
    assert!(
        plan.main().contains("5052 paths") && plan.main().contains("more, which the undo includes"),
        "{}",
        plan.main()
    );
}

#[test]
fn every_point_of_a_long_run_is_on_one_page() {
    let world = world();
    for n in 0..60 {
        work(&world, &format!("work {n}"), || {});
    }
    let page = Served::of_world(&world);
    let listed = world.cli.json(["log", &world.run, "--all", "-n", "1000", "--json"]);
    let wanted: Vec<String> = listed
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["reference"].as_str().expect("a reference").to_owned())
        .collect();
    let mut seen = Vec::new();
    let mut shown = page.page(&format!("/runs/{}", world.run));
    assert!(shown.main().contains("<svg"), "{}", shown.main());
    loop {
        let text = shown.main();
        let (_, list) = text.split_once("<ol class=\"log\">").expect("the list");
        let rows = list.split("<code><bdi>").skip(1).filter_map(|rest| rest.split('<').next());
        seen.extend(
            rows.take_while(|row| !row.starts_with("ic "))
                .filter(|row| row.contains(':') || *row == "created")
                .map(str::to_owned),
        );
        if !text.contains("rel=\"next\"") {
            break;
        }
        shown = page.page(&shown.link("before="));
    }
    assert_eq!(seen, wanted);
}
