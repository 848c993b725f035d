//! What git returned of a work in a change that the work did not make.

use ic_checkpoint::diff::{DiffState, Difference};
use ic_worktree::Workspace;

use super::Parcels;
use super::change::{Change, PathVersion, brought, part, version_of};

/// The reason for a path that is unsure because what git returned there is merged with changes of the same lines.
pub(crate) const CHANGED_ON_RETURN: &str =
    "git returned what this work had made there, and others changed the same lines";

/// The reason for a path that is unsure because both this work and a person put something onto the stash.
pub(crate) const STASHED_BY_BOTH: &str =
    "it came off the stash, where not only this work put something, so it may be yours";

//   work: edits, commits on `side`, switches back ── looks show no change
//   a person: merges `side`, or picks, squashes, pops ── a look shows the change, and no call made it
//
// The change is then the work's, applied to what stood there, and the rest of it is the person's.

/// A change that the work did not make, in its parts.
pub(crate) enum Returned {
    /// It has nothing of the work.
    Nothing,
    /// The parts, oldest first, and whether each is the work's; and the texts in between.
    Parts(Vec<(bool, Difference)>, Vec<Vec<u8>>),
    /// It may have something of the work, and why that is not known; the parts and texts, where it is said to be the work's.
    Unsure(&'static str, Vec<(bool, Difference)>, Vec<Vec<u8>>),
}

impl Parcels {
    /// The parts of a change that the work did not make: what git returned of the work, and then what others did. `texts`: contents that no
    /// checkpoint may hold.
    pub(crate) fn returned(&self, workspace: &Workspace<'_>, difference: &Difference, texts: &[Vec<u8>]) -> Returned {
        let Difference { path, before, after } = difference;
        let Some(changes) = self.0.get(path) else { return Returned::Nothing };
        let [had, has] = [before, after].map(|state| version_of(workspace, path, state.as_ref(), texts));
        let (Ok(had), Ok(has)) = (had, has) else { return Returned::Nothing };
        let (mut steps, mut may_be_yours) = (Steps::new(difference, had, has.clone()), false);
        // The change may have been made of the work's and of others' changes in the same lines: then it is asked about.
        let unsure = || Returned::Unsure(CHANGED_ON_RETURN, vec![(true, difference.clone())], Vec::new());
        let is_gone = |change: &Change| has.is_none() && change.is_returned;
        for change in changes {
            let with_branch = change.with_branch(steps.at.as_ref());
            let is_out = change.is_in(with_branch.as_ref().or(steps.at.as_ref())) == Some(false);
            if !is_out || change.is_in(has.as_ref()) == Some(false) && !is_gone(change) {
                continue;
            }
            if with_branch.is_some() {
                steps.go(false, with_branch);
            }
            if steps.at.is_none() && change.from.is_some() {
                // The whole file came, as with another branch: what it was without the work came with it.
                let back = Change { from: change.to.clone(), to: change.from.clone(), ..Change::default() };
                let Ok(without) = back.onto(has.clone()) else { return unsure() };
                steps.go(false, without);
            }
            // Said to be the work's, it gives way to what was committed there, and not to what stood there before both.
            if let Some(met) = change.conflict(has.as_ref()) {
                let of_others = brought(difference, met);
                let first = part(path, before.clone(), Some(of_others.clone()));
                let parts = vec![(false, first), (true, part(path, Some(of_others), after.clone()))];
                return Returned::Unsure(CHANGED_ON_RETURN, parts, vec![met.to_vec()]);
            }
            let Ok(next) = change.onto(steps.at.clone()) else { return unsure() };
            steps.go(true, next);
            may_be_yours |= change.may_be_yours;
        }
        if steps.parts.is_empty() {
            return Returned::Nothing;
        }
        // What went again may have another name, as what goes after any other change of the work.
        if steps.at != has && has.is_some() {
            steps.go(false, has);
        }
        if may_be_yours {
            return Returned::Unsure(STASHED_BY_BOTH, steps.parts, steps.texts);
        }
        Returned::Parts(steps.parts, steps.texts)
    }
}

/// A change of a path on its way, in parts.
struct Steps<'d> {
    of: &'d Difference,
    end: Option<PathVersion>,
    /// What stands there by now.
    at: Option<PathVersion>,
    state: Option<DiffState>,
    /// Whether each part is the work's.
    parts: Vec<(bool, Difference)>,
    /// What stood there in between: no checkpoint may hold it.
    texts: Vec<Vec<u8>>,
}

impl<'d> Steps<'d> {
    fn new(of: &'d Difference, at: Option<PathVersion>, end: Option<PathVersion>) -> Self {
        Self { of, end, at, state: of.before.clone(), parts: Vec::new(), texts: Vec::new() }
    }

    fn go(&mut self, is_its: bool, next: Option<PathVersion>) {
        let beside = self.state.as_ref().or(self.of.after.as_ref());
        let state = if next == self.end {
            self.of.after.clone()
        } else {
            next.as_ref().map(|next| next.state(self.of, beside))
        };
        self.texts.extend(next.as_ref().map(|next| next.text.clone()));
        self.parts.push((is_its, part(&self.of.path, self.state.take(), state.clone())));
        (self.at, self.state) = (next, state);
    }
}
