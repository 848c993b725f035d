use ic_base::{Seq, Timestamp};
use ic_ledger::OpenOptions;
use ic_testkit::{Random, rounds};

use super::{ChangeOwner, LineDecision, Own, Past, ReplayedPath};
use crate::attributes::Attributes;
use crate::diff::{DiffState, Difference};
use crate::objects::{Objects, hash_of};

/// A file of numbered lines whose history is written change by change.
struct File {
    _dir: tempfile::TempDir,
    objects: Objects,
    lines: Vec<String>,
    history: Vec<Past>,
}

impl File {
    const PATH: &'static [u8] = b"f";

    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let objects = Objects::open(&dir.path().join("objects.db"), OpenOptions::default()).unwrap();
        Self { _dir: dir, objects, lines: (0..30).map(|at| format!("line {at}")).collect(), history: Vec::new() }
    }

    fn state(&self) -> DiffState {
        let text = self.lines.join("\n") + "\n";
        let writer = self.objects.writer(Timestamp(1)).unwrap();
        let (hash, size) = writer.put_reader(&mut text.as_bytes()).unwrap();
        writer.finish().unwrap();
        DiffState::File { hash, size, mode: 0o644, attributes: Attributes::default() }
    }

    fn sets(&mut self, whose: ChangeOwner, set: &[(usize, &str)]) {
        let before = self.state();
        for (at, line) in set {
            (*line).clone_into(&mut self.lines[*at]);
        }
        let seq: Seq = self.history.len().try_into().unwrap();
        self.history.push(Past { seq, whose, change: (Some(before), Some(self.state())) });
    }

    /// What is known of the work once the history is played again.
    fn own(&self, earlier: Option<LineDecision>) -> Own {
        let mut own = Own::default();
        for Past { whose, change: (before, after), .. } in &self.history {
            let difference = Difference { path: Self::PATH.to_vec(), before: before.clone(), after: after.clone() };
            match whose {
                ChangeOwner::Work => own.add(difference),
                ChangeOwner::Others => own.add_since(difference),
                _ => {}
            }
        }
        own.replay(&self.objects, Self::PATH, &self.history, earlier, None).unwrap();
        own
    }

    /// The file without the work, if its lines are taken and if those of others stay; the same twice where nothing clashes.
    fn without(&self, own: &Own) -> [Vec<String>; 2] {
        let lines = |state: &Option<DiffState>| -> Vec<String> {
            let Some(DiffState::File { hash, .. }) = state else { panic!("{state:?}") };
            let text = own.texts.get(hash).cloned().unwrap_or_else(|| self.objects.read(hash).unwrap());
            assert_eq!(hash_of(&text), *hash);
            String::from_utf8(text).unwrap().lines().map(str::to_owned).collect()
        };
        if let Some([taken, left]) = own.ways.get(Self::PATH).map(Vec::as_slice) {
            return [lines(&taken.0), lines(&left.0)];
        }
        assert!(own.clashes.is_empty(), "{own:?}");
        let [(without, _)] = own.pairs(Self::PATH) else { panic!("{own:?}") };
        [lines(without), lines(without)]
    }
}

use ChangeOwner::{Others, Undone, Work};

#[test]
fn each_line_is_told_apart_with_any_owner_in_between() {
    let mut random = Random::seeded();
    for _ in rounds(40) {
        let mut file = File::new();
        let [mut taken, mut left] = [file.lines.clone(), file.lines.clone()];
        file.sets(Work, &[(0, "of the work")]);
        for n in 0..8 {
            let (at, line) = (5 * random.place_in(6), format!("set {n}"));
            if random.below(2) == 0 {
                file.sets(Work, &[(at, &line)]);
                continue;
            }
            // Where the work had a hand in the line, it stays as it was before the work.
            if taken[at] == file.lines[at] {
                taken[at].clone_from(&line);
            }
            left[at].clone_from(&line);
            file.sets(Others, &[(at, &line)]);
        }
        assert_eq!(file.without(&file.own(None)), [taken, left], "{:#?}", file.history);
    }
}

#[test]
fn neighbouring_lines_are_one_conflict_and_others_are_none() {
    let mut file = File::new();
    let before = file.lines.clone();
    file.sets(Work, &[(3, "work"), (20, "work")]);
    file.sets(Others, &[(4, "others"), (10, "others")]);
    let [taken, left] = file.without(&file.own(None));
    let with = |set: &[usize]| {
        let mut lines = before.clone();
        for at in set {
            "others".clone_into(&mut lines[*at]);
        }
        lines
    };
    assert_eq!(taken, with(&[4, 10]));
    let mut wanted = with(&[4, 10]);
    "work".clone_into(&mut wanted[3]);
    assert_eq!(left, wanted);
}

#[test]
fn what_was_decided_of_undone_work_is_no_conflict_of_other_work() {
    for (decision, line) in [(LineDecision::Take, "line 3"), (LineDecision::Leave, "others")] {
        let mut file = File::new();
        file.sets(Undone, &[(3, "undone"), (25, "undone")]);
        file.sets(Others, &[(3, "others")]);
        file.sets(Undone, &[(3, line), (25, "line 25")]);
        let before = file.lines.clone();
        file.sets(Work, &[(15, "work")]);
        assert_eq!(file.without(&file.own(Some(decision))), [before.clone(), before], "{decision:?}");
        assert!(file.own(None).clashes.contains_key(File::PATH), "undecided, it clashes");
    }
}

#[test]
fn decided_work_comes_back_beside_what_others_did_since() {
    let mut file = File::new();
    file.sets(Work, &[(3, "work"), (25, "work")]);
    file.sets(Others, &[(3, "others")]);
    let whole = file.lines.clone();
    file.sets(Undone, &[(3, "line 3"), (25, "line 25")]);
    let at = file.history[2].seq;
    file.sets(Others, &[(15, "later")]);
    let mut own = Own::default();
    own.know([File::PATH.to_vec()].into());
    let undone = ReplayedPath { at, then: &file.history[..3], decided: Some(LineDecision::Take) };
    own.replay(&file.objects, File::PATH, &file.history, None, Some(undone)).unwrap();
    let [with, _] = file.without(&own);
    let mut wanted = whole;
    "later".clone_into(&mut wanted[15]);
    assert_eq!(with, wanted);
}
