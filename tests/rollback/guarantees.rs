//! The guarantees in `docs/ROLLBACK.md` name the tests that hold them; they must exist.

use std::path::Path;

#[test]
fn every_guarantee_names_tests_that_exist() {
    let top = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let page = std::fs::read_to_string(top.join("docs/ROLLBACK.md")).expect("the page");
    let (rows, mut named): (Vec<&str>, usize) =
        (page.lines().filter(|line| line.starts_with("| ") && line.contains("::")).collect(), 0);
    assert!(rows.len() > 15, "{} guarantees", rows.len());
    for row in rows {
        let tests: Vec<&str> = row.split('`').skip(1).step_by(2).filter(|word| word.contains("::")).collect();
        assert!(!tests.is_empty(), "{row}");
        for test in tests {
            let (file, name) = test.split_once("::").expect("a file and a name");
            let path = top.join("tests").join(file).with_extension("rs");
            let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{test}: {e}"));
            assert!(text.contains(&format!("fn {name}()")), "there is no test {test}");
            named += 1;
        }
    }
    assert!(named > 20, "{named} tests");
}
