//! What a path would be without a piece of work, and with it, after all that others did there.
//!
//! One merge with what stands there now does not tell who made a line what it is: others may have set it back, and made it so again since.
//! And what others did may be undone by now, which the work met in the file. So the history of the path is played again from its beginning,
//! twice: with the work and without it, and in neither what is undone.

use ic_base::{Result, Seq};
use ic_ledger::events::Hash;

use super::merge::MergeSide;
use super::path_reversal::{Backwards, PathChange, PathReversal, PathStep, SAME_LINES};
use super::path_state::is_same;
use super::work_changes::{LookPair, Own};
use crate::diff::DiffState;
use crate::objects::{Objects, hash_of};

/// A change in the history of a path.
#[derive(Debug, Clone)]
pub struct Past {
    /// The event of the look that saw it.
    pub seq: Seq,
    /// Whose change it is, as far as that is known.
    pub whose: ChangeOwner,
    /// What stood there before, and after.
    pub change: LookPair,
}

/// Who made a change in the history of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeOwner {
    /// The work that is to be undone, or to come back.
    Work,
    /// Another piece of work of the same or another run.
    Others,
    /// No work that is known: a person, or git for one.
    Person,
    /// It does not count: work that was undone alone, and the restores that undid such work or brought it back.
    Undone,
    /// A rollback that stands.
    Back {
        /// The event of the look to which it went back.
        to: Seq,
    },
}

/// What a person decided about lines that work changed, and others after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineDecision {
    /// They are to be as they were before the work. Neighbouring lines of others stay.
    Take,
    /// They stay as others left them.
    Leave,
}

impl LineDecision {
    /// The side that has these lines where a change of others is applied to the file without the work.
    fn side(self) -> MergeSide {
        match self {
            Self::Take => MergeSide::OursByLines,
            Self::Leave => MergeSide::Theirs,
        }
    }
}

/// When work was undone that comes back.
#[derive(Debug, Clone, Copy)]
pub struct ReplayedPath<'h> {
    /// The event by which the tree was without it.
    pub at: Seq,
    /// The history of the path until then, and who was undone by then.
    pub then: &'h [Past],
    /// What its undo decided about the path.
    pub decided: Option<LineDecision>,
}

/// How a history is played again.
#[derive(Clone, Copy)]
struct Replay<'r> {
    objects: &'r Objects,
    path: &'r [u8],
    /// Texts of its states that no checkpoint holds.
    texts: &'r [Vec<u8>],
    /// The work stands, and is to be undone.
    is_undone: bool,
    /// What is decided about lines that others changed after the work had; `None`: they are a clash.
    decision: Option<LineDecision>,
    /// What was decided about lines that others changed after work had that is undone by now.
    earlier: Option<LineDecision>,
}

/// What a history comes to, or with a clash what it came to before that; and the texts that were merged for it and that no checkpoint holds.
type End = (Moment, Vec<Vec<u8>>);

/// What a path is at one moment.
#[derive(Clone)]
struct Moment {
    seq: Seq,
    actual: Option<DiffState>,
    without: Option<DiffState>,
    with: Option<DiffState>,
    /// Others had changed what the work had changed, and no rollback has gone back past that yet.
    clash: Option<String>,
}

impl Own {
    /// Knows of a path what its history says, oldest first: the change is from what would be there without the work to what would be there
    /// with it; the other way round for work that comes back. Where others changed what the work had changed, it knows what it knew, and
    /// that only they can say what is whose. Errors: `corrupt` if an object cannot be read.
    pub fn replay(
        &mut self,
        objects: &Objects,
        path: &[u8],
        history: &[Past],
        earlier: Option<LineDecision>,
        undone: Option<ReplayedPath<'_>>,
    ) -> Result<()> {
        let states = history.iter().flat_map(|past| [&past.change.0, &past.change.1]);
        let texts = states.filter_map(|state| match state {
            Some(DiffState::File { hash, .. }) => self.texts.get(hash).cloned(),
            _ => None,
        });
        let replay = Replay {
            objects,
            path,
            texts: &texts.collect::<Vec<_>>(),
            is_undone: undone.is_none(),
            decision: None,
            earlier,
        };
        // Its undo took nothing out here. If the looks show something to take out, the path was gone before any look
        // saw it, and nothing comes back.
        if let Some(undone) = undone
            && self.pairs(path).is_empty()
            && was_changed_unseen(replay, undone.then)?
        {
            return Ok(());
        }
        if since_the_work(history).any(|past| past.whose == ChangeOwner::Person) {
            self.by_persons.insert(path.to_vec());
        }
        let mut found = end(replay, history)?;
        if let Some(undone) = undone {
            // What an undo took out comes back as it was, if that is still so; otherwise as its decision tells it from what others did since.
            // By its history, the path is the same without the work where it was taken out though others had made it again.
            let is_as_it_was = match &found.0 {
                Moment { clash: None, with, without, .. } => {
                    is_same(without.as_ref(), with.as_ref()) && is_unchanged_since(history, undone.at)
                }
                _ => is_as_it_was(history, undone.at),
            };
            if is_as_it_was {
                return Ok(());
            }
            if found.0.clash.is_some() && undone.decided.is_some() {
                found = end(Replay { decision: undone.decided, ..replay }, history)?;
            }
        }
        let (end, texts) = found;
        self.texts.extend(by_hash(texts));
        if let Some(why) = end.clash {
            self.clash(path, history, replay.is_undone, why);
            if replay.is_undone {
                self.before_clash.insert(path.to_vec(), end.without);
                self.know_ways(replay, history)?;
            }
            return Ok(());
        }
        let pair = if replay.is_undone { (end.without, end.with) } else { (end.with, end.without) };
        let known = self.replace(path, pair);
        self.replayed.insert(path.to_vec(), known);
        if !has_others(history) {
            self.alone.insert(path.to_vec());
        }
        Ok(())
    }

    /// Knows what a path with a clash would be without the work in both ways to decide it: others' changes of lines that the work had changed
    /// do not count, or they stay.
    fn know_ways(&mut self, replay: Replay<'_>, history: &[Past]) -> Result<()> {
        let mut ways = Vec::new();
        for decision in [LineDecision::Take, LineDecision::Leave] {
            let (end, texts) = end(Replay { decision: Some(decision), ..replay }, history)?;
            if end.clash.is_some() {
                return Ok(());
            }
            self.texts.extend(by_hash(texts));
            ways.push((end.without, end.with));
        }
        self.ways.insert(replay.path.to_vec(), ways);
        Ok(())
    }

    /// Others changed at a path what the work had changed.
    fn clash(&mut self, path: &[u8], history: &[Past], is_undone: bool, why: String) {
        self.clashes.insert(path.to_vec(), why);
        // Others may have met the path while the work was undone, and it came back since: what they made there says nothing of the work.
        self.forget_others(path);
        // Where its undo took out nothing, what the work did is what is to come back.
        if !is_undone && self.pairs(path).is_empty() {
            let works = history.iter().filter(|past| past.whose == ChangeOwner::Work).rev();
            let pairs = works.map(|past| (past.change.1.clone(), past.change.0.clone()));
            self.changes.insert(path.to_vec(), pairs.collect());
        }
    }
}

/// What a path was at an event.
fn state_at(history: &[Past], at: Seq) -> Option<&DiffState> {
    let before = history.iter().rev().find(|past| past.seq <= at).map(|past| &past.change.1);
    before.or_else(|| history.first().map(|first| &first.change.0)).and_then(Option::as_ref)
}

/// Whether a path is as it was at an event, and nothing that stands changed it since: what others set back is theirs. Where nothing is, they
/// have nothing.
fn is_as_it_was(history: &[Past], at: Seq) -> bool {
    let Some(Past { change: (_, now), .. }) = history.last() else { return false };
    is_same(now.as_ref(), state_at(history, at)) && (now.is_none() || is_unchanged_since(history, at))
}

/// Whether nothing that stands changed a path since an event.
fn is_unchanged_since(history: &[Past], at: Seq) -> bool {
    history.iter().filter(|past| past.seq > at).all(|past| past.whose == ChangeOwner::Undone)
}

/// Whether an undo that changed nothing at a path would have had something to change in what the looks say was there: then it was not there
/// any more, and it is not known who removed it.
fn was_changed_unseen(replay: Replay<'_>, then: &[Past]) -> Result<bool> {
    let (end, texts) = end(replay, then)?;
    if end.clash.is_some() {
        return Ok(false);
    }
    let Replay { objects, path, .. } = replay;
    let mut own = Own::default();
    own.texts.extend(by_hash(texts));
    let pairs = [(end.without, end.with)];
    let actual = end.actual.as_ref();
    let back = Backwards { objects, root: None, own: &own, side: None }.back(path, &pairs, actual)?;
    Ok(!matches!(back, PathReversal::To { state, .. } if is_same(state.as_ref(), actual)))
}

fn by_hash(texts: Vec<Vec<u8>>) -> impl Iterator<Item = (Hash, Vec<u8>)> {
    texts.into_iter().map(|text| (hash_of(&text), text))
}

/// Whether others changed the path after the work: what stands there may be theirs.
fn has_others(history: &[Past]) -> bool {
    let is_of_others =
        |past: &Past| matches!(past.whose, ChangeOwner::Others | ChangeOwner::Person | ChangeOwner::Back { .. });
    since_the_work(history).any(is_of_others)
}

fn since_the_work(history: &[Past]) -> impl Iterator<Item = &Past> {
    history.iter().skip_while(|past| past.whose != ChangeOwner::Work)
}

/// Leaves out of a history what a person removed and returned: a stash, a switch or a rebase takes content away and returns it, and it is
/// still of the work that made it.
pub fn without_returns(history: &mut [Past]) {
    let is_persons: Vec<bool> = history.iter().map(|past| past.whose == ChangeOwner::Person).collect();
    for last in 0..history.len() {
        let run = is_persons[..=last].iter().rev().take_while(|is_persons| **is_persons).count();
        let left = history[last].change.1.clone();
        let is_return = |past: &Past| is_same(past.change.0.as_ref(), left.as_ref());
        // These are the changes by persons that end here, without others in between. If one of them began with what the last
        // one left, all from that one on came to nothing.
        let from = last + 1 - run;
        if let Some(first) = history[from..=last].iter().position(is_return) {
            history[from + first..=last].iter_mut().for_each(|past| past.whose = ChangeOwner::Undone);
        }
    }
}

/// What a history comes to; to a clash where at some step others changed what the work had changed, and no rollback went back past that.
fn end(replay: Replay<'_>, history: &[Past]) -> Result<End> {
    let begin = history.first().and_then(|past| past.change.0.clone());
    let mut now = Moment { seq: Seq::MIN, actual: begin.clone(), without: begin.clone(), with: begin, clash: None };
    let (mut moments, mut texts) = (vec![now.clone()], replay.texts.to_vec());
    for past in history {
        let back = match past.whose {
            // Both sides are again what they were at the moment that the rollback went back to.
            ChangeOwner::Back { to } => moments.iter().rev().find(|moment| moment.seq <= to),
            _ => None,
        };
        // If the rollback left another state than the one it went back to, it is not known since when the path has it.
        match back.filter(|moment| is_same(moment.actual.as_ref(), past.change.1.as_ref())) {
            Some(moment) => now = moment.clone(),
            None if now.clash.is_none() => {
                now.clash = now.change(replay, past, &mut texts)?;
            }
            // After a clash nothing more is applied: only a rollback past it can end it.
            None => {}
        }
        (now.seq, now.actual) = (past.seq, past.change.1.clone());
        moments.push(now.clone());
    }
    Ok((now, texts))
}

impl Moment {
    /// Applies a change of the history to each side that it belongs to; returns why that is not possible.
    fn change(&mut self, replay: Replay<'_>, past: &Past, texts: &mut Vec<Vec<u8>>) -> Result<Option<String>> {
        match past.whose {
            ChangeOwner::Undone => Ok(None),
            ChangeOwner::Work => {
                let has_without = self.without.is_some();
                // Lines that were taken with undone work are the work's no more. Where nothing was decided, they stand in place of what is
                // undone.
                let mut step = changed(replay, (self.with.as_ref(), replay.earlier), &past.change, texts)?;
                if matches!(step, PathStep::Conflict(_)) && replay.is_undone {
                    step = changed(replay, (self.with.as_ref(), Some(LineDecision::Leave)), &past.change, texts)?;
                }
                match step {
                    // It changed what is undone by now, and was left in its place: without the work neither of the two stands, and what
                    // came of it is what stood there then. To bring it back would bring back the other, too; and what would go is for a
                    // person to decide.
                    PathStep::Conflict(_) => match &past.change.1 {
                        after if replay.is_undone && has_without => self.with.clone_from(after),
                        _ => return Ok(Some("the work changed what is undone by now".to_owned())),
                    },
                    step => match applied(step, self.with.as_ref(), &past.change, texts) {
                        Ok((state, _)) => self.with = state,
                        Err(why) => return Ok(Some(why)),
                    },
                }
                Ok(None)
            }
            ChangeOwner::Others | ChangeOwner::Person | ChangeOwner::Back { .. } => {
                Ok(self.change_of_others(replay, past, texts)?.err())
            }
        }
    }

    /// Applies a change of others to both sides.
    fn change_of_others(
        &mut self,
        replay: Replay<'_>,
        past: &Past,
        texts: &mut Vec<Vec<u8>>,
    ) -> Result<std::result::Result<(), String>> {
        // With the work, only what is undone by now can be in conflict, and that was decided when it was undone.
        let step = changed(replay, (self.with.as_ref(), replay.earlier), &past.change, texts)?;
        let (with, earlier) = match applied(step, self.with.as_ref(), &past.change, texts) {
            Ok(applied) => applied,
            Err(why) => return Ok(Err(why)),
        };
        let decision = if earlier.is_empty() { replay.decision } else { replay.earlier };
        let step = changed(replay, (self.without.as_ref(), decision), &past.change, texts)?;
        let (without, regions) = match applied(step, self.without.as_ref(), &past.change, texts) {
            Ok(applied) => applied,
            Err(why) => return Ok(Err(why)),
        };
        // The decision was about those lines and no others.
        if !earlier.is_empty() && earlier != regions {
            return Ok(Err(SAME_LINES.to_owned()));
        }
        (self.with, self.without) = (with, without);
        Ok(Ok(()))
    }
}

/// What a step makes of a side, and the regions that were decided on the way; or why it makes nothing of it.
fn applied(
    step: PathStep,
    side: Option<&DiffState>,
    change: &LookPair,
    texts: &mut Vec<Vec<u8>>,
) -> std::result::Result<(Option<DiffState>, Vec<String>), String> {
    match step {
        PathStep::To(state) | PathStep::Again(state) => Ok((state, Vec::new())),
        PathStep::Merged(state, merged) => {
            texts.push(merged.text.into_bytes());
            Ok((Some(state), merged.regions))
        }
        PathStep::Stays(_) | PathStep::Conflict(_) if !is_of_files(side, change) => {
            Err("others changed what this work had changed".to_owned())
        }
        PathStep::Stays(why) | PathStep::Conflict(why) => Err(why),
    }
}

/// Whether a step was about files alone: then the reason of its conflict is true whichever side made the change.
fn is_of_files(state: Option<&DiffState>, (from, to): &LookPair) -> bool {
    [state, from.as_ref(), to.as_ref()].iter().all(|one| matches!(one, Some(DiffState::File { .. })))
}

/// A state with a change that was made in another.
fn changed(
    replay: Replay<'_>,
    (state, decision): (Option<&DiffState>, Option<LineDecision>),
    (from, to): &LookPair,
    texts: &[Vec<u8>],
) -> Result<PathStep> {
    // Nothing is known of others here: who made it so again does not matter.
    let own = Own::default();
    // The change is turned round: `step` takes a change out, and this one is to go in.
    let change = PathChange { path: replay.path, at: 0, before: to.as_ref(), after: from.as_ref() };
    let side = decision.map(LineDecision::side);
    Backwards { objects: replay.objects, root: None, own: &own, side }.step(change, state, texts)
}
