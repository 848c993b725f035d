//! Files that change while they are looked at. The seed is printed; `IC_TEST_SEED` repeats what the writer does.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use ic_testkit::{Random, rounds};

use super::*;
use crate::tree::TreeNode;

/// The smallest page of a file's content in memory.
const PAGE: usize = 4096;

/// What every path held at some moment, and holds now.
#[derive(Default)]
struct History {
    held: BTreeMap<String, HashSet<Vec<u8>>>,
    now: BTreeMap<String, Vec<u8>>,
}

impl History {
    /// Before it happens: a capture may see it as soon as it does.
    fn will_hold(&mut self, path: &str, content: &[u8]) {
        self.held.entry(path.to_owned()).or_default().insert(content.to_vec());
    }
}

/// Writes, appends, replaces, renames and deletes until it is told to stop.
fn write_beside(root: &Path, random: &mut Random, stop: &AtomicBool) -> History {
    let mut history = History::default();
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        number += 1;
        let name = |random: &mut Random| format!("d{}/f{}", random.place_in(3), random.place_in(8));
        let (path, other) = (name(random), name(random));
        let at = root.join(&path);
        // Of two lengths, so that mostly only times tell them apart.
        let content = format!("{number:>0width$}", width = 20 + 3_000 * random.place_in(2)).into_bytes();
        match random.place_in(6) {
            0 => {
                history.will_hold(&path, b"");
                history.will_hold(&path, &content);
                fs::write(&at, &content).unwrap();
                history.now.insert(path, content);
            }
            1 => {
                history.will_hold(&path, &content);
                let new = root.with_file_name("new");
                fs::write(&new, &content).unwrap();
                fs::rename(new, &at).unwrap();
                history.now.insert(path, content);
            }
            2 => {
                let Some(before) = history.now.get(&path).filter(|before| before.len() < 20_000) else {
                    continue;
                };
                let whole = [&before[..], &content].concat();
                // What is written goes into the file page by page, and can be read before the last one is there.
                let begun = before.len();
                history.will_hold(&path, &whole);
                for end in (0..whole.len()).step_by(PAGE).filter(|end| *end > begun) {
                    history.will_hold(&path, &whole[..end]);
                }
                fs::File::options().append(true).open(&at).unwrap().write_all(&content).unwrap();
                history.now.insert(path, whole);
            }
            3 if path != other => {
                let Some(content) = history.now.remove(&path) else { continue };
                history.will_hold(&other, &content);
                fs::rename(&at, root.join(&other)).unwrap();
                history.now.insert(other, content);
            }
            4 if history.now.remove(&path).is_some() => fs::remove_file(&at).unwrap(),
            5 => std::thread::sleep(std::time::Duration::from_micros(random.place_in(3_000) as u64)),
            _ => {}
        }
    }
    history
}

/// Every file in a tree, by path.
fn files(objects: &Objects, captured: &Captured) -> BTreeMap<String, Vec<u8>> {
    let (mut found, mut waiting) = (BTreeMap::new(), vec![(String::new(), captured.root)]);
    while let Some((above, hash)) = waiting.pop() {
        for entry in objects.tree(&hash).unwrap().entries {
            let path = format!("{above}{}", String::from_utf8(entry.name).unwrap());
            match entry.node {
                TreeNode::Directory(below) => waiting.push((format!("{path}/"), below)),
                TreeNode::File { hash, .. } => drop(found.insert(path, objects.read(&hash).unwrap())),
                _ => {}
            }
        }
    }
    found
}

#[test]
fn what_is_captured_of_a_file_is_what_it_was_at_some_moment() {
    let mut random = Random::seeded();
    for round in rounds(3) {
        println!("round {round}");
        let project = Project::new();
        for directory in ["d0", "d1", "d2"] {
            fs::create_dir(project.root().join(directory)).unwrap();
        }
        project.write("still", "still");
        let stop = AtomicBool::new(false);
        let root = project.root();
        let (captures, history) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| write_beside(&root, &mut random, &stop));
            let captures: Vec<Captured> = (0..60).map(|_| project.capture()).collect();
            stop.store(true, Ordering::Relaxed);
            (captures, writer.join().unwrap())
        });
        for captured in &captures {
            let unsettled: BTreeSet<&[u8]> = captured.unsettled.iter().map(Vec::as_slice).collect();
            for (path, content) in files(&project.objects, captured) {
                let held = history.held.get(&path).is_some_and(|held| held.contains(&content));
                assert!(
                    path == "still" || held || unsettled.contains(path.as_bytes()),
                    "{path} never held {:?}",
                    String::from_utf8_lossy(&content)
                );
            }
        }
        // At rest it is the tree, to the last byte, though much of it is too young to be told by its stat.
        let last = project.capture();
        let mut at_rest = files(&project.objects, &last);
        assert_eq!(at_rest.remove("still").as_deref(), Some(&b"still"[..]));
        assert_eq!(at_rest, history.now);
        let other = Project::new();
        let anew = capture(&other.objects, &root, Timestamp(1), &other.options, &CaptureProgress::default());
        assert_eq!(anew.unwrap().root, last.root, "as without a cache");
    }
}
