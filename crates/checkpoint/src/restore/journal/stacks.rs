//! Which restores can be undone, and which of the undone ones can be made again: pure.
//!
//! ```text
//!   restore ──▶ [ can be undone ] ── undo ──▶ [ can be made again ] ── redo ──▶ back again
//! ```
//!
//! As in an editor: both are last in, first out, and a new restore forgets what could be made again.

use ic_base::RestoreId;

use super::{RestoreKind, RestoreRecord};

/// A restore in a stack, with its undos and redos; the last one of all put it there.
struct StackedRestore<'r> {
    own: &'r RestoreRecord,
    turns: Vec<&'r RestoreRecord>,
}

impl<'r> StackedRestore<'r> {
    fn last(&self) -> &'r RestoreRecord {
        self.turns.last().copied().unwrap_or(self.own)
    }

    /// As itself, or as one of its turns.
    fn named(&self, id: &RestoreId) -> Option<&'r RestoreRecord> {
        std::iter::once(self.own).chain(self.turns.iter().copied()).find(|one| one.id == *id)
    }
}

/// Where a restore, an undo or a redo is among those of its root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestorePlace<'r> {
    /// It is the next one to be undone; where it is an undo itself, by a redo.
    Next,
    /// This newer one has to be undone first.
    Below(&'r RestoreRecord),
    /// This undo of it stands.
    Undone(&'r RestoreRecord),
    /// It was undone, and so is that, or newer restores came since.
    Past,
}

/// The restores that can be undone, and those that were undone and can be made again; the next one is the last.
pub fn stacks(restores: &[RestoreRecord]) -> (Vec<&RestoreRecord>, Vec<&RestoreRecord>) {
    let (undo, redo) = stacked(restores);
    (undo.iter().map(|one| one.own).collect(), redo.iter().map(|one| one.own).collect())
}

/// Where the one with this id is among all of its root, oldest first.
pub fn place<'r>(restores: &'r [RestoreRecord], id: &RestoreId) -> RestorePlace<'r> {
    let (undo, redo) = stacked(restores);
    for (stack, is_undone) in [(undo, false), (redo, true)] {
        let Some((at, one, named)) = found(&stack, id) else { continue };
        let is_undo = named.kind == RestoreKind::Undo;
        return match stack.last() {
            // A restore or redo is undone from the first stack, an undo from the second. If a restore has several undos,
            // only the last one stands.
            Some(top) if is_undo == is_undone && (!is_undo || named.id == one.last().id) => {
                if at + 1 == stack.len() {
                    RestorePlace::Next
                } else {
                    RestorePlace::Below(top.last())
                }
            }
            _ if is_undone && !is_undo => RestorePlace::Undone(one.last()),
            _ => RestorePlace::Past,
        };
    }
    RestorePlace::Past
}

type FoundRestore<'s, 'r> = (usize, &'s StackedRestore<'r>, &'r RestoreRecord);

fn found<'s, 'r>(stack: &'s [StackedRestore<'r>], id: &RestoreId) -> Option<FoundRestore<'s, 'r>> {
    stack.iter().enumerate().find_map(|(at, one)| Some((at, one, one.named(id)?)))
}

fn stacked(restores: &[RestoreRecord]) -> (Vec<StackedRestore<'_>>, Vec<StackedRestore<'_>>) {
    let (mut undo, mut redo): (Vec<StackedRestore<'_>>, Vec<StackedRestore<'_>>) = (Vec::new(), Vec::new());
    for record in restores {
        let (from, to) = match record.kind {
            RestoreKind::Restore => {
                redo.clear();
                undo.push(StackedRestore { own: record, turns: Vec::new() });
                continue;
            }
            RestoreKind::Undo => (&mut undo, &mut redo),
            RestoreKind::Redo => (&mut redo, &mut undo),
        };
        // A restore that was marked as lost is not in the list: its undo finds nothing here.
        if let Some(mut one) = from.pop() {
            one.turns.push(record);
            to.push(one);
        }
    }
    (undo, redo)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use ic_base::{CheckpointId, RestoreId, Timestamp};

    use super::{RestoreKind, RestorePlace, RestoreRecord, place, stacks};
    use crate::restore::Strategy;
    use crate::restore::journal::RestoreProgress;

    /// Restores named `0`, `1`, ... in the order of `kinds`: r a restore, u an undo, d a redo.
    fn journal(kinds: &str) -> Vec<RestoreRecord> {
        let one = |(n, kind): (usize, char)| RestoreRecord {
            id: RestoreId::from_ledger(n.to_string()),
            seq: i64::try_from(n).unwrap(),
            root: PathBuf::from("/p"),
            kind: match kind {
                'r' => RestoreKind::Restore,
                'u' => RestoreKind::Undo,
                _ => RestoreKind::Redo,
            },
            progress: RestoreProgress::Applied,
            strategy: Strategy::FilesOnly,
            target_id: CheckpointId::from_ledger(format!("t{n}")),
            safety_id: CheckpointId::from_ledger(format!("s{n}")),
            restored_id: Some(CheckpointId::from_ledger(format!("l{n}"))),
            plan: [0; 32],
            created_at: Timestamp(0),
        };
        kinds.chars().enumerate().map(one).collect()
    }

    /// The place of each: `!` if it is next, `<n` below a newer one, `=n` where that undid it, or `-`.
    fn places(kinds: &str) -> String {
        let all = journal(kinds);
        let told = |one: &RestoreRecord| match place(&all, &one.id) {
            RestorePlace::Next => "!".to_owned(),
            RestorePlace::Below(top) => format!("<{}", top.id),
            RestorePlace::Undone(by) => format!("={}", by.id),
            RestorePlace::Past => "-".to_owned(),
        };
        all.iter().map(told).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_place_of_a_journal_is_told() {
        let table = [
            ("r", "!"),
            ("rr", "<1 !"),
            ("ru", "=1 !"),
            ("rud", "! - !"),
            // The newer undo is named, and not the first one.
            ("rudu", "=3 - =3 !"),
            ("rudud", "! - ! - !"),
            ("rru", "! =2 !"),
            ("rruu", "=3 =2 <3 !"),
            ("rruud", "! =2 ! - !"),
            ("rur", "- - !"),
            ("uu", "- -"),
        ];
        for (kinds, wanted) in table {
            assert_eq!(places(kinds), wanted, "{kinds}");
        }
    }

    #[test]
    fn stacks_hold_restores_and_no_undos_of_them() {
        let all = journal("rrudur");
        let (undo, redo) = stacks(&all);
        let ids = |stack: Vec<&RestoreRecord>| stack.iter().map(|one| one.id.to_string()).collect::<Vec<_>>();
        assert_eq!((ids(undo), ids(redo)), (vec!["0".to_owned(), "5".to_owned()], Vec::new()));
    }
}
