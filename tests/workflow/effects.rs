//! What the steps of workflows left outside, and what must be so of it.

use std::collections::{BTreeMap, BTreeSet};

use ic_testkit::TestWorld;

/// A line of the log of effects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Act {
    pub(crate) what: String,
    pub(crate) step: String,
    pub(crate) key: String,
}

/// The log of effects.
pub(crate) trait Effects {
    /// What was done and undone outside, in order.
    fn log(&self) -> Vec<Act>;

    /// The steps in the order in which they were undone, each once.
    fn undone(&self) -> Vec<String>;

    /// Asserts that no two copies of a step ever met.
    fn assert_no_complaints(&self);

    /// Asserts that of each of these steps one effect stands, and was made under one key.
    fn assert_each_stands_once(&self, steps: &[(&str, &[&str])], context: &str);

    /// Asserts that no effect stands.
    fn assert_nothing_stands(&self, steps: &[(&str, &[&str])], context: &str);

    /// The keys under which each step was done, and those under which it was undone.
    fn effects(&self) -> BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)>;
}

impl Effects for TestWorld {
    fn log(&self) -> Vec<Act> {
        let act = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let [what, step, key] = words[..] else { panic!("an odd line: {line}") };
            Act { what: what.to_owned(), step: step.to_owned(), key: key.to_owned() }
        };
        self.outside.text("log").lines().map(act).collect()
    }

    fn undone(&self) -> Vec<String> {
        let mut undone: Vec<String> = Vec::new();
        for act in self.log().into_iter().filter(|act| act.what == "undone") {
            if !undone.contains(&act.step) {
                undone.push(act.step);
            }
        }
        undone
    }

    fn assert_no_complaints(&self) {
        assert_eq!(self.outside.text("complaints"), "", "{}", self.outside.text("log"));
    }

    fn assert_each_stands_once(&self, steps: &[(&str, &[&str])], context: &str) {
        let effects = self.effects();
        for (step, _) in steps {
            let (done, undone) = effects.get(*step).cloned().unwrap_or_default();
            let standing: Vec<_> = done.difference(&undone).collect();
            assert_eq!(standing.len(), 1, "{context}: {step}: {}", self.outside.text("log"));
        }
        assert_order(self, steps, context);
    }

    fn assert_nothing_stands(&self, steps: &[(&str, &[&str])], context: &str) {
        for (step, (done, undone)) in self.effects() {
            let left: Vec<_> = done.difference(&undone).collect();
            assert!(left.is_empty(), "{context}: {step}: {}", self.outside.text("log"));
        }
        assert_order(self, steps, context);
    }

    fn effects(&self) -> BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)> {
        let mut effects: BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)> = BTreeMap::new();
        for act in self.log() {
            let (done, undone) = effects.entry(act.step).or_default();
            match act.what.as_str() {
                "done" => done.insert(act.key),
                "undone" => undone.insert(act.key),
                _ => continue,
            };
        }
        effects
    }
}

/// Asserts that the undo of a step begins only after everything that depends on it is undone.
fn assert_order(world: &TestWorld, steps: &[(&str, &[&str])], context: &str) {
    let mut standing: BTreeSet<(String, String)> = BTreeSet::new();
    for act in world.log() {
        match act.what.as_str() {
            "done" => {
                standing.insert((act.step, act.key));
            }
            "undone" => {
                standing.remove(&(act.step, act.key));
            }
            _ => {
                let dependents = dependents(steps, &act.step);
                let early: Vec<_> = standing.iter().filter(|(step, _)| dependents.contains(step.as_str())).collect();
                assert!(early.is_empty(), "{context}: {} before {early:?}: {}", act.step, world.outside.text("log"));
            }
        }
    }
}

/// The steps that need a step, directly or through others.
fn dependents<'s>(steps: &[(&'s str, &[&'s str])], step: &str) -> BTreeSet<&'s str> {
    let mut found = BTreeSet::new();
    let mut open = vec![step];
    while let Some(at) = open.pop() {
        for (name, _) in steps.iter().filter(|(_, needs)| needs.contains(&at)) {
            if found.insert(*name) {
                open.push(name);
            }
        }
    }
    found
}
