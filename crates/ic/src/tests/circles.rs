//! No circle of imports inside a crate has more than two files: who reads one of them would have to read all of them first.
//!
//! A file imports another by a path that begins with `crate` or `super`, and a parent imports a child by passing its items on
//! (`pub use`). A parent that declares a child, or calls it, imports nothing: together they are one room.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::hints::sources;

/// Circles that are still there, each by its first file.
const STANDING: [&str; 0] = [];

type Module = Vec<String>;
/// The files of a crate, by the paths of their modules.
type Texts = BTreeMap<Module, String>;

fn texts(crate_dir: &Path) -> Texts {
    let (src, mut files) = (crate_dir.join("src"), Vec::new());
    sources(&src, &mut files);
    let named = files.into_iter().map(|path| {
        let name = path.strip_prefix(&src).expect("a path below").with_extension("");
        let name: Module = name.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        let text = plain(&fs::read_to_string(&path).expect("a source"));
        if name == ["lib"] { (Module::new(), text) } else { (name, text) }
    });
    // What `main.rs` imports is a crate of its own.
    named.filter(|(name, _)| *name != ["main"]).collect()
}

/// The code alone, a line a line: no comments, no text in quotes, no tests at the end.
fn plain(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    let text = text.lines().filter(is_code).collect::<Vec<_>>().join("\n");
    let text = ["'\"'", "\\\\", "\\\""].iter().fold(text, |text, quote| text.replace(quote, ""));
    let code = text.split('"').step_by(2).collect::<Vec<_>>().join("_");
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default().trim());
    let lines = lines.map(|line| format!("\n{line}")).collect::<String>();
    let passing_on = ["pub use ", "pub(crate) use ", "pub(super) use "];
    passing_on.iter().fold(lines, |text, way| text.replace(&format!("\n{way}"), "\nuse pub "))
}

/// The paths that a file names, and whether each is passed on.
fn paths(text: &str) -> Vec<(Module, bool)> {
    let parts = |path: &str| path.split("::").map(str::to_owned).collect();
    let mut found = Vec::new();
    for (at, part) in text.split("\nuse ").enumerate() {
        let (tree, code) = if at == 0 { ("", part) } else { part.split_once(';').unwrap_or((part, "")) };
        let passed_on = tree.strip_prefix("pub ");
        found.extend(leaves(passed_on.unwrap_or(tree)).iter().map(|path| (parts(path), passed_on.is_some())));
        let words = code.split(|c: char| !c.is_alphanumeric() && !"_:".contains(c));
        let words = words.filter(|word| word.starts_with("crate::") || word.starts_with("super::"));
        found.extend(words.map(|word| (parts(word), false)));
    }
    found
}

/// Every path of a tree of `use`, as text.
fn leaves(tree: &str) -> Vec<String> {
    let (mut above, mut word, mut found) = (vec![String::new()], String::new(), Vec::new());
    for c in tree.chars().filter(|c| *c != '\n').chain([',']) {
        if !"{},".contains(c) {
            word.push(c);
            continue;
        }
        let name = std::mem::take(&mut word);
        let path = format!("{}{}", above.last().expect("a beginning"), name.trim());
        match c {
            '{' => above.push(path),
            _ if name.trim().is_empty() => {}
            _ => found.push(path.split(" as ").next().unwrap_or_default().to_owned()),
        }
        if c == '}' {
            above.pop();
        }
    }
    found
}

/// The file that a path leads to from a file; `None` if that is none of the crate's.
fn target(path: &[String], from: &Module, is_passed_on: bool, all: &Texts) -> Option<Module> {
    let ups = path.iter().take_while(|part| *part == "super").count();
    let (mut at, rest) = match path.first()?.as_str() {
        "crate" => (Module::new(), &path[1..]),
        "super" => (from[..from.len().checked_sub(ups)?].to_vec(), &path[ups..]),
        "self" => (from.clone(), &path[1..]),
        _ if is_passed_on => (from.clone(), path),
        _ => return None,
    };
    for part in rest {
        let below: Module = at.iter().chain([part]).cloned().collect();
        if !all.contains_key(&below) {
            break;
        }
        at = below;
    }
    (at != *from && all.contains_key(&at)).then_some(at)
}

/// Every circle of more than two files.
fn circles(all: &Texts) -> BTreeSet<Vec<String>> {
    let imports = |from| paths(&all[from]).into_iter().filter_map(move |(path, on)| target(&path, from, on, all));
    let direct: BTreeMap<&Module, Vec<Module>> = all.keys().map(|from| (from, imports(from).collect())).collect();
    let reached = |from: &Module| {
        let (mut seen, mut open) = (BTreeSet::new(), direct[from].clone());
        while let Some(at) = open.pop() {
            if seen.insert(at.clone()) {
                open.extend(direct[&at].iter().cloned());
            }
        }
        seen
    };
    let reach: BTreeMap<&Module, BTreeSet<Module>> = all.keys().map(|from| (from, reached(from))).collect();
    let circle = |from: &Module| -> Vec<String> {
        let both = reach[from].iter().filter(|other| reach[other].contains(from));
        both.map(|module| if module.is_empty() { "lib".to_owned() } else { module.join("/") }).collect()
    };
    all.keys().map(circle).filter(|circle| circle.len() > 2).collect()
}

#[test]
fn no_circle_of_imports_has_more_than_two_files() {
    let mut faults = Vec::new();
    for part in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).expect("the crates") {
        let part = part.expect("an entry").path();
        let name = part.file_name().expect("a name").to_string_lossy().into_owned();
        let shown = circles(&texts(&part)).into_iter().map(|circle| format!("{name}: {}", circle.join(", ")));
        faults.extend(shown.filter(|circle| !STANDING.iter().any(|known| circle.starts_with(known))));
    }
    assert!(faults.is_empty(), "move what they share below them:\n{}", faults.join("\n"));
}

#[test]
fn a_circle_is_found_by_names_and_by_what_is_passed_on() {
    let of = |texts: [(&str, &str); 3]| {
        let named = texts.map(|(name, text)| (name.split_terminator('/').map(str::to_owned).collect(), plain(text)));
        Vec::from_iter(circles(&named.into_iter().collect()))
    };
    let (a, b) = (("a", "use crate::b::{x::X, B};"), ("b", "use super::c;"));
    assert_eq!(of([a, b, ("c", "// crate::b\nfn c() -> crate::a::A {}")]), [["a", "b", "c"]]);
    assert!(of([a, b, ("c", "// crate::a\nfn c() -> crate::b::B {}")]).is_empty(), "two files");
    let (a, b) = (("a", "use crate::B;"), ("b", "use super::A;"));
    assert_eq!(of([("", "mod a;\npub use a::A;\npub use b::B;"), a, b]), [["lib", "a", "b"]]);
    assert!(of([("", "mod a;\nuse a::A;\nfn f() { b::b() }"), a, b]).is_empty(), "it passes nothing on");
}
