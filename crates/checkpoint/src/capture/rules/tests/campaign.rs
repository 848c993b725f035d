//! Random rules over random trees: what we ignore is what the `git` program ignores.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use ic_ledger::path_from_bytes;
use ic_testkit::{Random, cases};

use super::super::{CaptureRules, Level, RuleOptions, RuleSources, RuleVerdict};

/// Names in the trees. Many are what a pattern of the other list could mean, or be mistaken for.
const NAMES: [&[u8]; 44] = [
    b"a", b"b", b"c", b"ab", b"abc", b"A", b"B", b"aB", b"build", b"dist", b"out", b"x.js", b"x.css", b"foo",
    b"foo.log", b"bar", b".b", b".env2", b"a b", b"a ", b"a\t", b"out\t", b"z", b"]", b"[", b"[z]", b"{a,b}", b"a{b",
    b"a}b", b"x.{js,css}", b"*", b"?", b"\\", b"a\\b", b"!", b"!a", b"#", b"#a", b"-", b"^", b"\xc3\xa9", b"\xff",
    b"a\r", b"$HOME",
];

/// What patterns are put together from, besides names.
const PIECES: [&[u8]; 58] = [
    b"*", b"*", b"*", b"**", b"**", b"?", b"?", b"/", b"/", b"/", b"/", b"**/", b"/**", b"/**/", b"!", b"\\", b"\\",
    b" ", b"\\ ", b"\t", b"\r", b"[a-c]", b"[!a]", b"[^a-b]", b"[abc]", b"[[:alpha:]]", b"[[:upper:]]",
    b"[[:lower:]b]", b"[[:digit:][:punct:]]", b"[[:space:]]", b"[![:alnum:]]", b"[[:cntrl:]]", b"[[:graph:]]",
    b"[[:print:]]", b"[[:blank:]]", b"[[:xdigit:]]", b"[[:bad:]]", b"[[:", b"[:alpha:]", b"[]a]", b"[]-a]", b"[a-]",
    b"[\\]z]", b"[\\a-\\c]", b"[A-C]", b"[A]", b"\\A", b"[/]", b"[", b"]", b"[!]", b"{a,b}", b"{", b"#", b"[a", b"***",
    b"[[]", b"\0",
];

pub(super) struct RandomTree {
    /// Each directory from the case's own, and each file in it; `.gitignore` files are not among them.
    pub(super) directories: BTreeSet<Vec<u8>>,
    pub(super) files: BTreeSet<Vec<u8>>,
}

/// Case directories below one work tree, so that one process of git's judges them all.
pub(super) struct RulesWorld {
    dir: tempfile::TempDir,
    trees: Vec<RandomTree>,
}

/// What git heeds besides the `.gitignore` files of a case, which are by their directory.
#[derive(Default)]
pub(super) struct Everywhere {
    info: Vec<u8>,
    user: Vec<u8>,
    fold: bool,
}

pub(super) type IgnoreFiles = BTreeMap<Vec<u8>, Vec<u8>>;

fn pick<'a, T: ?Sized>(random: &mut Random, from: &[&'a T]) -> &'a T {
    from[random.place_in(from.len())]
}

fn joined(directory: &[u8], name: &[u8]) -> Vec<u8> {
    crate::tree::join(directory, name)
}

impl RandomTree {
    fn random(random: &mut Random) -> Self {
        let mut tree = Self { directories: [Vec::new()].into(), files: BTreeSet::new() };
        for _ in 0..8 + random.below(12) {
            let above: Vec<_> = tree.directories.iter().cloned().collect();
            let above = &above[random.place_in(above.len())];
            let path = joined(above, pick(random, &NAMES));
            if tree.files.contains(&path) || tree.directories.contains(&path) {
                continue;
            }
            if random.below(3) == 0 && path.split(|byte| *byte == b'/').count() < 5 {
                tree.directories.insert(path);
            } else {
                tree.files.insert(path);
            }
        }
        tree
    }

    fn write(&self, top: &Path, random: &mut Random) {
        for directory in &self.directories {
            fs::create_dir_all(top.join(path_from_bytes(directory))).unwrap();
        }
        for file in &self.files {
            let path = top.join(path_from_bytes(file));
            // A link to a directory is no directory, for rules that end with a slash.
            if random.below(8) == 0 {
                std::os::unix::fs::symlink(".", path).unwrap();
            } else {
                fs::write(path, "").unwrap();
            }
        }
    }

    /// A line: put together from pieces, or made from a path of the tree.
    fn pattern(&self, random: &mut Random) -> Vec<u8> {
        let paths: Vec<&Vec<u8>> = self.files.iter().chain(&self.directories).collect();
        let mut line = Vec::new();
        if random.below(2) == 0 {
            for _ in 0..=random.below(4) {
                let piece = if random.below(2) == 0 { pick(random, &NAMES) } else { pick(random, &PIECES) };
                line.extend_from_slice(piece);
            }
        } else {
            line.clone_from(paths[random.place_in(paths.len())]);
            for _ in 0..random.below(4) {
                let at = random.place_in(line.len() + 1);
                let until = (at + random.place_in(3)).min(line.len());
                line.splice(at..until, pick(random, &PIECES).iter().copied());
            }
        }
        match random.below(8) {
            0 => line.insert(0, b'/'),
            1 => line.insert(0, b'!'),
            2 => line.push(b'/'),
            3 => line.splice(..0, *b"**/").for_each(drop),
            _ => {}
        }
        line
    }

    fn rules(&self, random: &mut Random, most: u64) -> Vec<u8> {
        let mut text = Vec::new();
        if random.below(20) == 0 {
            text.extend_from_slice(b"\xef\xbb\xbf");
        }
        for _ in 0..=random.below(most) {
            text.extend_from_slice(&self.pattern(random));
            text.extend_from_slice(pick(random, &[&b"\n"[..], b"\n", b"\n", b"\r\n", b" \n", b"\t\n", b"\n\n"]));
        }
        if random.below(4) == 0 {
            text.pop();
        }
        text
    }

    fn ignore_files(&self, random: &mut Random) -> IgnoreFiles {
        let mut files: IgnoreFiles = [(Vec::new(), self.rules(random, 3))].into();
        for directory in &self.directories {
            if random.below(4) == 0 {
                files.insert(directory.clone(), self.rules(random, 2));
            }
        }
        files
    }
}

impl RulesWorld {
    fn random(cases: usize, random: &mut Random) -> Self {
        Self::new((0..cases).map(|_| RandomTree::random(random)).collect(), random)
    }

    pub(super) fn new(trees: Vec<RandomTree>, random: &mut Random) -> Self {
        let world = Self { dir: tempfile::tempdir().unwrap(), trees };
        assert!(world.git().args(["init", "-q", "."]).status().unwrap().success());
        for (case, tree) in world.trees.iter().enumerate() {
            tree.write(&world.top(case), random);
        }
        world
    }

    pub(super) fn top(&self, case: usize) -> std::path::PathBuf {
        self.dir.path().join(format!("{case:04}"))
    }

    fn git(&self) -> Command {
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_")) {
            command.env_remove(name);
        }
        command.current_dir(self.dir.path()).env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", self.dir.path());
        command
    }

    /// The files of each case that git shows.
    pub(super) fn shown_by_git(&self, everywhere: &Everywhere) -> Vec<BTreeSet<Vec<u8>>> {
        fs::write(self.dir.path().join(".git/info/exclude"), &everywhere.info).unwrap();
        fs::write(self.dir.path().join(".git/user"), &everywhere.user).unwrap();
        let fold = format!("core.ignoreCase={}", everywhere.fold);
        let listed = self
            .git()
            .args(["-c", "core.excludesFile=.git/user", "-c", &fold])
            .args(["ls-files", "-o", "-z", "--exclude-standard"])
            .output()
            .unwrap();
        assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
        let mut shown = vec![BTreeSet::new(); self.trees.len()];
        for path in listed.stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
            let (case, path) = path.split_at(5);
            let case: usize = std::str::from_utf8(&case[..4]).unwrap().parse().unwrap();
            shown[case].insert(path.to_vec());
        }
        shown
    }

    /// The files of a case that we capture.
    pub(super) fn shown_by_us(
        &self,
        case: usize,
        ignore_files: &IgnoreFiles,
        everywhere: &Everywhere,
    ) -> BTreeSet<Vec<u8>> {
        let sources = RuleSources {
            ignores_case: everywhere.fold,
            texts: vec![everywhere.info.clone(), everywhere.user.clone()],
            ..RuleSources::default()
        };
        let options = RuleOptions::default();
        let rules = CaptureRules::new(self.dir.path(), &sources, &options, &[]).unwrap();
        let root = rules.enter(&rules.top(), b"", None, false);
        let name = format!("{case:04}").into_bytes();
        let mut levels: BTreeMap<Vec<u8>, Arc<Level>> = BTreeMap::new();
        if rules.judge(&root, &name, true, true) == RuleVerdict::Capture {
            let text = ignore_files.get(&Vec::new()).map(Vec::as_slice);
            levels.insert(Vec::new(), rules.enter(&root, &name, text, false));
        }
        let tree = &self.trees[case];
        for directory in tree.directories.iter().filter(|path| !path.is_empty()) {
            let path = joined(&name, directory);
            let Some(above) = levels.get(parent(directory)) else { continue };
            if rules.judge(above, &path, true, true) == RuleVerdict::Capture {
                let text = ignore_files.get(directory).map(Vec::as_slice);
                levels.insert(directory.clone(), rules.enter(above, &path, text, false));
            }
        }
        let ignore_files = ignore_files.keys().map(|directory| joined(directory, b".gitignore"));
        let is_shown = |file: &Vec<u8>| {
            let level = levels.get(parent(file));
            level.is_some_and(|level| rules.judge(level, &joined(&name, file), false, true) == RuleVerdict::Capture)
        };
        tree.files.iter().cloned().chain(ignore_files).filter(is_shown).collect()
    }
}

fn parent(path: &[u8]) -> &[u8] {
    path.iter().rposition(|byte| *byte == b'/').map_or(&[], |at| &path[..at])
}

#[test]
fn random_rules_ignore_what_git_ignores() {
    const CASES: usize = 100;
    let pairs = usize::try_from(cases(2_000, 120_000)).unwrap();
    let mut random = Random::seeded();
    let mut world = RulesWorld::random(CASES, &mut random);
    for round in 0..pairs / CASES {
        // Trees vary too, but making them costs more than judging them.
        if round % 40 == 39 {
            world = RulesWorld::random(CASES, &mut random);
        }
        let mut everywhere = Everywhere { fold: random.below(4) == 0, ..Everywhere::default() };
        let tree = &world.trees[random.place_in(CASES)];
        if random.below(4) == 0 {
            everywhere.info = tree.rules(&mut random, 2);
        }
        if random.below(4) == 0 {
            everywhere.user = tree.rules(&mut random, 2);
        }
        let ignore_files: Vec<_> = world.trees.iter().map(|tree| tree.ignore_files(&mut random)).collect();
        let paths = |case: usize| {
            let top = world.top(case);
            ignore_files[case]
                .iter()
                .map(move |(directory, text)| (top.join(path_from_bytes(&joined(directory, b".gitignore"))), text))
        };
        for (path, text) in (0..CASES).flat_map(paths) {
            fs::write(path, text).unwrap();
        }
        for (case, by_git) in world.shown_by_git(&everywhere).into_iter().enumerate() {
            let by_us = world.shown_by_us(case, &ignore_files[case], &everywhere);
            let differ: Vec<_> = by_git.symmetric_difference(&by_us).map(|path| show(path)).collect();
            assert!(
                differ.is_empty(),
                "shown by one alone: {differ:?}\nrules: {:?}\ninfo: {}\nuser: {}\nfold: {}",
                ignore_files[case].iter().map(|(at, text)| (show(at), show(text))).collect::<Vec<_>>(),
                show(&everywhere.info),
                show(&everywhere.user),
                everywhere.fold,
            );
        }
        for (path, _) in (0..CASES).flat_map(paths) {
            fs::remove_file(path).unwrap();
        }
    }
}

pub(super) fn show(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}
