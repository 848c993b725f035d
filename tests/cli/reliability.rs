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

#[test]
fn every_fuzz_target_is_described() {
    let top = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let page = std::fs::read_to_string(top.join("docs/RELIABILITY.md")).expect("the page");
    let entries = std::fs::read_dir(top.join("fuzz/fuzz_targets")).expect("the targets");
    let targets: BTreeSet<String> = entries
        .map(|entry| {
            entry.expect("an entry").path().file_stem().expect("a name").to_string_lossy().into_owned()
        })
        .collect();
    let described: BTreeSet<String> =
        quoted(&page).filter_map(|word| word.strip_prefix("fuzz/")).map(str::to_owned).collect();
    assert_eq!(described, targets);
}
