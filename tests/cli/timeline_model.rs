//! A model of the timeline of a tree: a file is a list of lines with owners. Prompts of two sessions and a person change it by turns, by chance.
//! Whichever prompts are undone, alone or with what came after them in their session: no line of theirs is left where the exit is 0, no line of
//! others is lost, and where no other touched the same lines the file is the model's, byte for byte. Where others did, a decision takes these
//! lines or leaves them, and no others. Undone undos bring back the tree.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use ic_testkit::{Random, rounds, tell};
use serde_json::json;

use crate::agents::{Said, in_git, say};
use crate::blame::{after, before, read, stop};
use crate::support::Project;

/// The lines that are set, each far from the next.
const SLOTS: usize = 6;

/// The one that made a line: a prompt by its place in the story, or a person.
type Owner = Option<usize>;

/// What was written at a slot: by whom, and the text.
type Change = (Owner, String);

/// What stands at each path of a tree.
type Tree = BTreeMap<PathBuf, String>;

struct Prompt {
    session: &'static str,
    id: String,
    is_undone: bool,
    /// A file that it made.
    file: Option<String>,
}

struct Story {
    project: Project,
    prompts: Vec<Prompt>,
    /// The changes of each slot, oldest first.
    slots: Vec<Vec<Change>>,
    /// The undos that stand, newest last: the prompts that each took out, and the tree before it; `None`: others changed it since.
    undos: Vec<(Vec<usize>, Option<Tree>)>,
    /// Slots of which a decision took what others had made: what stands there is not what was written last.
    taken: BTreeSet<usize>,
    texts: usize,
    done: Vec<String>,
}

fn write(project: &Project, lines: &[String]) {
    let far = "-\n".repeat(4);
    let text: String = lines.iter().enumerate().map(|(at, line)| format!("{at}{far}{line}\n{far}")).collect();
    project.write("f", &text);
}

fn lines_of(project: &Project) -> Vec<String> {
    let text = read(project, "f");
    let is_slot = |line: &&str| line.starts_with("line ");
    text.lines().filter(is_slot).map(str::to_owned).collect()
}

impl Story {
    fn begin() -> Self {
        let project = in_git();
        let slots: Vec<Vec<Change>> = (0..SLOTS).map(|at| vec![(None, format!("line {at} first"))]).collect();
        write(&project, &slots.iter().map(|all| all[0].1.clone()).collect::<Vec<_>>());
        git(&project, &["add", "-A"]);
        git(&project, &["commit", "-qm", "first"]);
        Self {
            project,
            prompts: Vec::new(),
            slots,
            undos: Vec::new(),
            taken: BTreeSet::new(),
            texts: 0,
            done: Vec::new(),
        }
    }

    fn is_out(&self, owner: Owner) -> bool {
        owner.is_some_and(|prompt| self.prompts[prompt].is_undone)
    }

    /// What stands at each slot.
    fn standing(&self) -> Vec<String> {
        let last = |all: &Vec<Change>| {
            let mut standing = all.iter().rev().filter(|(owner, _)| !self.is_out(*owner));
            standing.next().map(|(_, text)| text.clone()).unwrap_or_default()
        };
        self.slots.iter().map(last).collect()
    }

    /// Sets a slot in the file, as `owner` does.
    fn set(&mut self, at: usize, owner: Owner) {
        self.texts += 1;
        let text = format!("line {at} text {}", self.texts);
        let mut lines = lines_of(&self.project);
        lines[at].clone_from(&text);
        write(&self.project, &lines);
        self.slots[at].push((owner, text));
    }

    fn turn(&mut self, random: &mut Random) {
        let session = ["A", "B"][random.place_in(2)];
        let at = self.prompts.len();
        let text = format!("prompt {at}");
        say(&self.project, &Said::new("claude-code", session, "UserPromptSubmit").prompt(&text, &text));
        self.prompts.push(Prompt { session, id: String::new(), is_undone: false, file: None });
        let calls = 1 + random.below(2);
        for call in 0..calls {
            let id = format!("c{at}-{call}");
            before(&self.project, session, &id, "Bash", json!({ "command": "make" }));
            self.set(random.place_in(SLOTS), Some(at));
            if random.below(3) == 0 {
                let file = format!("d{at}/own");
                self.project.write(&file, &text);
                self.prompts[at].file = Some(file);
            }
            if random.below(6) == 0 {
                git(&self.project, &["add", "-A"]);
                git(&self.project, &["commit", "-qm", &text]);
            }
            after(&self.project, session, &id, "Bash");
            if random.below(4) == 0 {
                self.set(random.place_in(SLOTS), None);
            }
        }
        stop(&self.project, session);
        self.done.push(format!("{text} of {session}, {calls} calls"));
        self.forget_trees();
    }

    /// From here on no redo needs to make the tree from before its undo again.
    fn forget_trees(&mut self) {
        self.undos.iter_mut().for_each(|(_, tree)| *tree = None);
    }

    /// The id of a prompt, by the log.
    fn id_of(&mut self, at: usize) -> String {
        if self.prompts[at].id.is_empty() {
            let log = self.project.json("log --all");
            for entry in log.as_array().expect("a list") {
                let title = entry["title"].as_str().and_then(|text| text.strip_prefix("prompt "));
                let Some(number) = title.and_then(|number| number.parse::<usize>().ok()) else { continue };
                let reference = entry["reference"].as_str().and_then(|text| text.split_once(':'));
                reference.expect("a reference").1.clone_into(&mut self.prompts[number].id);
            }
        }
        self.prompts[at].id.clone()
    }

    fn by_hand(&mut self, random: &mut Random) {
        self.set(random.place_in(SLOTS), None);
        if random.below(3) == 0 {
            git(&self.project, &["add", "-A"]);
            git(&self.project, &["commit", "-qm", "by hand"]);
        }
        self.done.push("by hand".to_owned());
        self.forget_trees();
    }

    fn undo(&mut self, random: &mut Random) {
        let standing: Vec<usize> = (0..self.prompts.len()).filter(|at| !self.prompts[*at].is_undone).collect();
        if standing.is_empty() {
            return;
        }
        let first = standing[random.place_in(standing.len())];
        let is_alone = random.below(2) == 0;
        let is_of_thread = |at: &usize| *at > first && self.prompts[*at].session == self.prompts[first].session;
        let set: Vec<usize> =
            standing.iter().copied().filter(|at| *at == first || (!is_alone && is_of_thread(at))).collect();
        let only = if is_alone { " --only" } else { "" };
        let words = format!("undo {}{only} --yes", self.id_of(first));
        let (before, lines) = (ic_testkit::tree(self.project.root()), lines_of(&self.project));
        let outcome = self.project.run(&words);
        self.done.push(format!("undo {set:?}{only}: {:?}", outcome.code));
        let when = format!("{:#?}\n{outcome:?}", self.done);
        let is_met = self.is_met(&set);
        match outcome.code {
            Some(0) => {
                for at in &set {
                    self.prompts[*at].is_undone = true;
                }
                self.assert_out(&set, (&lines, is_met), &when);
                self.undos.push((set, Some(before)));
            }
            Some(1) => {
                assert_eq!(outcome.error(), "file_conflict", "{when}");
                assert!(is_met, "no other touched the same lines: {when}");
                assert_eq!(ic_testkit::tree(self.project.root()), before, "a refusal changes nothing: {when}");
                self.undo_decided(set, &words, (&lines, before), random);
            }
            _ => panic!("{when}"),
        }
    }

    /// Undoes what others are in the way of, with a decision about their lines.
    fn undo_decided(&mut self, set: Vec<usize>, words: &str, (lines, before): (&[String], Tree), random: &mut Random) {
        let takes = random.below(2) == 0;
        let flag = if takes { "--force-files" } else { "--keep-theirs" };
        let outcome = self.project.run(&format!("{words} {flag}"));
        self.done.push(format!("undo {set:?} {flag}: {:?}", outcome.code));
        let (when, now) = (format!("{:#?}\n{outcome:?}", self.done), lines_of(&self.project));
        assert_eq!(outcome.code, Some(if takes { 0 } else { 4 }), "{when}");
        self.assert_nothing_undone_is_back(lines, &when);
        let of_set = self.texts_of(|owner| owner.is_some_and(|prompt| set.contains(&prompt)));
        // Where an earlier decision was about the same lines, only the whole file can be left, and the report names no lines of it.
        let is_whole = outcome.stdout.contains("kept: others changed the same lines since\"");
        for (at, (was, is)) in lines.iter().zip(&now).enumerate() {
            let when = format!("slot {at}, {was}, {is}: {when}");
            let touched = self.slots[at].iter().any(|(owner, _)| owner.is_some_and(|prompt| set.contains(&prompt)));
            if !touched || (!takes && !of_set.contains(was.as_str())) {
                assert_eq!(is, was, "a line of others is lost: {when}");
            } else if takes || !is_whole && !self.is_met_at(at, &set) {
                assert!(!of_set.contains(is.as_str()), "a line of what was undone is left: {when}");
            }
        }
        self.undos.push((set, Some(before)));
        if takes && random.below(2) == 0 {
            let (set, _) = &self.undos[self.undos.len() - 1];
            let met = (0..SLOTS).filter(|at| self.is_met_at(*at, set));
            let met: Vec<usize> = met.collect();
            for at in set {
                self.prompts[*at].is_undone = true;
            }
            self.taken.extend(met);
        } else {
            self.redo();
        }
    }

    /// Whether others touched a slot of these prompts after them, or what is undone already is among the changes of it.
    fn is_met(&self, set: &[usize]) -> bool {
        (0..SLOTS).any(|at| self.is_met_at(at, set))
    }

    fn is_met_at(&self, at: usize, set: &[usize]) -> bool {
        let is_of_set = |(owner, _): &Change| owner.is_some_and(|prompt| set.contains(&prompt));
        let all = &self.slots[at];
        all.iter().position(is_of_set).is_some_and(|first| {
            self.taken.contains(&at)
                || all[first..].iter().any(|one| !is_of_set(one))
                || all.iter().any(|(owner, _)| self.is_out(*owner))
        })
    }

    fn assert_out(&self, set: &[usize], (lines, is_met): (&[String], bool), when: &str) {
        let now = lines_of(&self.project);
        let of_set: BTreeSet<&str> = self.texts_of(|owner| owner.is_some_and(|prompt| set.contains(&prompt)));
        let left: Vec<&String> = now.iter().filter(|line| of_set.contains(line.as_str())).collect();
        assert!(left.is_empty(), "lines of what was undone are left: {left:?}: {when}");
        let theirs = lines.iter().filter(|line| !of_set.contains(line.as_str()));
        let lost: Vec<&String> = theirs.filter(|line| !now.contains(line)).collect();
        assert!(lost.is_empty(), "lines of others are lost: {lost:?}: {when}");
        self.assert_nothing_undone_is_back(lines, when);
        if !is_met {
            self.assert_standing(when);
        }
        for (at, prompt) in self.prompts.iter().enumerate() {
            let Some(file) = &prompt.file else { continue };
            assert_eq!(self.project.root().join(file).exists(), !prompt.is_undone, "{file} of {at}: {when}");
            let directory = self.project.root().join(format!("d{at}"));
            assert_eq!(directory.exists(), !prompt.is_undone, "its directory: {when}");
        }
    }

    /// An undo brings no line of a prompt back that was undone before. `lines`: what stood there before it.
    fn assert_nothing_undone_is_back(&self, lines: &[String], when: &str) {
        let undone = self.texts_of(|owner| self.is_out(owner));
        for (was, is) in lines.iter().zip(lines_of(&self.project)) {
            assert!(*was == is || !undone.contains(is.as_str()), "a line of undone work is back: {is}: {when}");
        }
    }

    fn assert_standing(&self, when: &str) {
        for (at, (is, standing)) in lines_of(&self.project).iter().zip(self.standing()).enumerate() {
            assert!(self.taken.contains(&at) || *is == standing, "slot {at}, {is}, {standing}: {when}");
        }
    }

    fn texts_of(&self, is_wanted: impl Fn(Owner) -> bool) -> BTreeSet<&str> {
        let all = self.slots.iter().flatten();
        all.filter(|(owner, _)| is_wanted(*owner)).map(|(_, text)| text.as_str()).collect()
    }

    fn redo(&mut self) {
        let Some((set, tree)) = self.undos.pop() else { return };
        let outcome = self.project.run("redo --yes");
        self.done.push(format!("redo of {set:?}: {:?}", outcome.code));
        let when = format!("{:#?}\n{outcome:?}", self.done);
        let is_met = self.is_met(&set);
        match (outcome.code, &tree) {
            (Some(1), None) => {
                assert_eq!(outcome.error(), "file_conflict", "{when}");
                assert!(is_met, "no other touched the same lines: {when}");
                // The older ones wait behind it.
                self.undos.clear();
                return;
            }
            (Some(4), None) => assert!(outcome.stdout.contains("these commits stay off the branch"), "{when}"),
            (code, _) => assert_eq!(code, Some(0), "{when}"),
        }
        for at in &set {
            self.prompts[*at].is_undone = false;
        }
        match tree {
            Some(tree) => assert_eq!(ic_testkit::tree(self.project.root()), tree, "{when}"),
            None if !is_met => self.assert_standing(&when),
            None => {}
        }
        let has = |file: &String| self.project.root().join(file).exists();
        assert!(set.iter().filter_map(|at| self.prompts[*at].file.as_ref()).all(has), "a file stays away: {when}");
    }
}

fn git(project: &Project, words: &[&str]) -> String {
    let person = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
    ic_testkit::git_in(project.root(), &[&person[..], words].concat())
}

fn is_seeded() -> bool {
    std::env::var_os("IC_TEST_SEED").is_some()
}

/// Plays this many stories, the same in each call; at length, as many others as fit into the time.
fn play(first: u64) {
    const SHORT: usize = 125;
    let (mut undone, mut stories) = (0, 0);
    for (round, seed) in rounds(SHORT).zip(first..) {
        let mut random = if round < SHORT && !is_seeded() { Random::of(seed) } else { Random::seeded() };
        println!("story {seed}");
        let mut story = Story::begin();
        for _ in 0..6 + random.below(6) {
            match random.below(10) {
                0..=3 => story.turn(&mut random),
                4 => story.by_hand(&mut random),
                5..=7 => story.undo(&mut random),
                _ => story.redo(),
            }
        }
        while !story.undos.is_empty() {
            story.redo();
        }
        undone += story.done.iter().filter(|one| one.starts_with("undo") && one.ends_with("Some(0)")).count();
        stories += 1;
    }
    tell(&format!("{stories} stories, {undone} undos"));
    assert!(undone * 2 > stories, "{undone} undos in {stories} stories");
}

// Several tests, so that they run next to one another.
#[test]
fn prompts_of_two_sessions_are_undone_in_any_order() {
    play(0);
}

#[test]
fn prompts_of_two_sessions_are_undone_in_any_other_order() {
    play(1_000);
}

#[test]
fn prompts_of_two_sessions_are_undone_in_a_third_order() {
    play(2_000);
}

#[test]
fn prompts_of_two_sessions_are_undone_in_a_fourth_order() {
    play(3_000);
}
