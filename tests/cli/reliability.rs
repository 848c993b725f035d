//! `docs/RELIABILITY.md` names tests and fuzz targets that hold what it promises; they must exist, and no fuzz target may be
//! missing there.

use std::collections::BTreeSet;
use std::path::Path;

/// The words in backticks.
fn quoted(page: &str) -> impl Iterator<Item = &str> {
    page.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

#[test]
fn every_promise_names_tests_that_exist() {
    let top = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let page = std::fs::read_to_string(top.join("docs/RELIABILITY.md")).expect("the page");
    let mut named = 0;
    for (file, test) in quoted(&page).filter_map(|word| word.split_once("::")) {
        let path = top.join(file).with_extension("rs");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(text.contains(&format!("fn {test}(")), "there is no test {test} in {file}");
        named += 1;
    }
    assert!(named > 50, "{named} tests");
    let promises = page.lines().filter(|line| line.starts_with("| ") && line.contains("::"));
    assert!(promises.count() > 15, "each row of the promises names its tests");
}

/// A test that is not run on a server is one that there is, with a reason; and they are few.
#[test]
fn what_is_tried_in_a_file_alone_is_known_and_little() {
    let top = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let text = std::fs::read_to_string(top.join("tests/sqlite_only.txt")).expect("the list");
    let (mut reason, mut alone) = (None, 0);
    for line in text.lines() {
        if let Some(why) = line.strip_prefix("# ") {
            reason = Some(why);
        }
        let Some((binary, path)) = line.split_once(' ').filter(|_| !line.starts_with('#')) else { continue };
        assert!(reason.is_some_and(|why| why.ends_with('.')), "{line} has no reason");
        let (start, is_whole) = (path.trim_end_matches('*'), !path.ends_with('*'));
        let of = |(file, name): &&(String, String)| {
            let path =
                [file.as_str(), name].iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join("::");
            if is_whole { path == start } else { path.starts_with(start) }
        };
        let found = tests_of(&top.join("tests").join(binary)).iter().filter(of).count();
        assert!(found > 0, "there is no test {path} in {binary}");
        alone += found;
    }
    let all: usize = ["tests", "crates"].iter().map(|part| tests_of(&top.join(part)).len()).sum();
    assert!(alone * 100 <= all * 6, "{alone} of {all} tests are run with the ledger in a file alone");
}

/// The tests below a directory: the path of each one's module there, and its name.
fn tests_of(directory: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut waiting = vec![(directory.to_owned(), Vec::<String>::new())];
    while let Some((at, modules)) = waiting.pop() {
        for entry in std::fs::read_dir(&at).into_iter().flatten().map(|entry| entry.expect("an entry").path()) {
            let name = entry.file_stem().expect("a name").to_string_lossy().into_owned();
            let within = |name: String| modules.iter().cloned().chain([name]).collect::<Vec<_>>();
            if entry.is_dir() {
                waiting.push((entry, within(name)));
            } else if entry.extension().is_some_and(|end| end == "rs") {
                let text = std::fs::read_to_string(&entry).expect("a file of tests");
                let module = if name == "main" { modules.join("::") } else { within(name).join("::") };
                let mut lines = text.lines().map(str::trim);
                while lines.by_ref().any(|line| line == "#[test]") {
                    let line = lines.by_ref().find(|line| line.contains("fn ")).expect("a test");
                    let name = line.split("fn ").nth(1).and_then(|rest| rest.split('(').next());
                    found.push((module.clone(), name.expect("its name").to_owned()));
                }
            }
        }
    }
    found
}

#[test]
fn every_fuzz_target_is_described() {
    let top = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let page = std::fs::read_to_string(top.join("docs/RELIABILITY.md")).expect("the page");
    let entries = std::fs::read_dir(top.join("fuzz/fuzz_targets")).expect("the targets");
    let targets: BTreeSet<String> = entries
        .map(|entry| entry.expect("an entry").path().file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    let described: BTreeSet<String> =
        quoted(&page).filter_map(|word| word.strip_prefix("fuzz/")).map(str::to_owned).collect();
    assert_eq!(described, targets);
}
