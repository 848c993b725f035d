//! Rules that are often read otherwise than by git, one by one.

use std::collections::BTreeSet;
use std::fs;

use ic_testkit::Random;

use super::super::Patterns;
use super::campaign::{Everywhere, RandomTree, RulesWorld, show};

/// Rules, a path, and whether git ignores it: what tools often read otherwise. A pair that a campaign finds is kept here.
const KEPT: [(&[u8], &str, bool); 46] = [
    (b"*.{js,css}\n", "app.js", false),
    (b"*.{js,css}\n", "x.{js,css}", true),
    (b"{build,dist}/\n", "build/gen.py", false),
    (b"{build,dist}/\n", "{build,dist}/f", true),
    (b"a{b\n", "a{b", true),
    (b"a}b\n", "a}b", true),
    (b"out\t\n", "out/o", false),
    (b"out\t\n", "out\t/o", true),
    (b"out \n", "out/o", true),
    (b"out\\ \n", "out /o", true),
    (b"out\\ \n", "out/o", false),
    (b" out\n", "out/o", false),
    (b"out\r\n", "out/o", true),
    (b"out\r", "out/o", true),
    (b"out\r\r\n", "out\r", true),
    (b"out\0rest\n", "out/o", true),
    (b"[[:alpha:]]\n", "a", true),
    (b"[[:alpha:]]\n", "ab", false),
    (b"[[:alpha:]]\n", "1", false),
    (b"[[:upper:]]*\n", "Build/x", true),
    (b"[[:upper:]]*\n", "build/x", false),
    (b"[[:letters:]]*\n", "build/x", false),
    (b"src[/]build\n", "src/build", false),
    (b"src?build\n", "src/build", false),
    (b"[\\]z]\n", "z", true),
    (b"[\\]z]\n", "]", true),
    (b"[]z]\n", "]", true),
    (b"[z\n", "[z", false),
    (b"[^a]\n", "b", true),
    (b"[!a]\n", "a", false),
    (b"\xef\xbb\xbfbuild/\n", "build/x", true),
    (b"build/\n\xef\xbb\xbfdist/\n", "dist/x", false),
    (b"*.log\n!\n", "a.log", true),
    (b"*.log\n!/\n", "a.log", true),
    (b"!\n", "a", false),
    (b"\\!n\n", "!n", true),
    (b"\\#h\n", "#h", true),
    (b"#h\n", "#h", false),
    (b"a\\\n", "a\\", false),
    (b"/foo**/bar\n", "foo/x/bar", true),
    (b"/foo**/*\n", "foo", true),
    (b"src/**\n", "src/a/b", true),
    (b"a/**/b\n", "a/b", true),
    (b"**/foo/bar\n", "x/foo/bar", true),
    (b"/*\n!/src/\n", "src/a", false),
    (b"build/\n!build/keep\n", "build/keep", true),
];

#[test]
fn rules_that_are_often_read_otherwise_ignore_what_git_ignores() {
    let tree = |path: &str| {
        let mut directories: BTreeSet<Vec<u8>> = [Vec::new()].into();
        directories.extend(path.match_indices('/').map(|(end, _)| path.as_bytes()[..end].to_vec()));
        RandomTree { directories, files: [path.as_bytes().to_vec()].into() }
    };
    let world = RulesWorld::new(KEPT.iter().map(|(_, path, _)| tree(path)).collect(), &mut Random::seeded());
    for (case, (rules, ..)) in KEPT.iter().enumerate() {
        fs::write(world.top(case).join(".gitignore"), rules).unwrap();
    }
    let everywhere = Everywhere::default();
    for (case, by_git) in world.shown_by_git(&everywhere).into_iter().enumerate() {
        let (rules, path, is_ignored) = KEPT[case];
        let ignore_files = [(Vec::new(), rules.to_vec())].into();
        let by_us = world.shown_by_us(case, &ignore_files, &everywhere);
        assert_eq!(!by_git.contains(path.as_bytes()), is_ignored, "git: {} {path:?}", show(rules));
        assert_eq!(!by_us.contains(path.as_bytes()), is_ignored, "we: {} {path:?}", show(rules));
    }
}

/// Equal but for case, with `core.ignoreCase`: an escaped capital letter and one in a class match nothing then, as in git.
#[test]
fn case_is_ignored_as_git_ignores_it() {
    for (rules, path, is_ignored) in [
        ("BUILD/", "build", true),
        ("/src/*.LOG", "src/a.log", true),
        ("*.Log", "A.LOG", true),
        ("[A-C]x", "bX", true),
        ("[[:upper:]]x", "bx", true),
        ("\\Ab", "ab", false),
        ("[A]b", "Ab", false),
    ] {
        let (directory, path) = (rules.ends_with('/'), path.as_bytes());
        assert_eq!(
            Patterns::parse(rules.as_bytes(), true).verdict(path, directory),
            is_ignored.then_some(true),
            "{rules}"
        );
    }
    assert_eq!(Patterns::parse(b"BUILD/", false).verdict(b"build", true), None);
}

#[test]
fn a_pattern_takes_no_longer_than_its_length_and_that_of_the_name_allow() {
    let name = "a".repeat(4_000);
    let stars = "*a".repeat(60) + "b";
    let deep = "**/".to_owned() + &"*a*/".repeat(60) + "b";
    let path = "a/".repeat(2_000) + "c";
    for (pattern, path) in [(&stars, &name), (&deep, &path), (&("x/".to_owned() + &stars), &path)] {
        assert_eq!(Patterns::parse(pattern.as_bytes(), false).verdict(path.as_bytes(), false), None);
    }
}
