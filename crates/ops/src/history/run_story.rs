//! A run as a story: which phases it went through, which attempts were rolled back, and by what.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use ic_base::{CheckpointId, DispatchId, Result, RollbackId, Seq, Timestamp};
use ic_checkpoint::record;
use ic_dispatch::dispatch;
use ic_kernel::journal::table::{self, RollbackRecord};
use ic_ledger::Snapshot;
use ic_ledger::events::Event;
use ic_phase::Run;
use ic_runtrack::artifact;

use super::UndoneMoves;

/// A stay of the run in a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseStay {
    /// The phase that the run stayed in.
    pub phase: String,
    /// How often the run had come there then, from 1.
    pub attempt: usize,
    /// The event that brought it there.
    pub seq: Seq,
    /// When the run came there.
    pub at: Timestamp,
    /// The stay it came from: a place in [`Story::stays`]; `None` for the beginning.
    pub from: Option<usize>,
    /// The rollback that stands and undid it; of a stay that a rollback began, that rollback, once it is undone itself.
    pub rolled_back_by: Option<RollbackId>,
    /// The tree as it was when the run left it for here.
    pub checkpoint_id: Option<CheckpointId>,
    /// Work that was handed out during it.
    pub dispatches: usize,
    /// What was registered during it.
    pub artifacts: usize,
    /// How often a gate held the run back during it.
    pub blocks: usize,
}

/// Something that moved the run other than forward.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The rollback that moved it.
    pub rollback_id: RollbackId,
    /// `rolled_back`, `undone` or `aborted`.
    pub kind: &'static str,
    /// The event that records it.
    pub seq: Seq,
    /// When it was recorded.
    pub at: Timestamp,
    /// The stay that it left.
    pub from: usize,
    /// The stay that it went back to.
    pub to: usize,
    /// The reason given for it.
    pub reason: Option<String>,
    /// The layers that were rolled back.
    pub layers: Vec<&'static str>,
    /// The dispatches whose work alone was undone, oldest first: the run stayed where it was. Empty for any other rollback.
    pub alone: Vec<DispatchId>,
}

/// A run as a story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Story {
    /// The run whose story it is.
    pub run: Run,
    /// Its stays, in the order of coming there.
    pub stays: Vec<PhaseStay>,
    /// Rollbacks and their undoing, oldest first.
    pub turns: Vec<Turn>,
    /// The stay that it is in.
    pub current: usize,
}

/// The story of a run.
pub fn story(snapshot: &Snapshot<'_>, run: &Run) -> Result<Story> {
    let taken_back = UndoneMoves::of_run(snapshot, &run.id)?;
    let rollbacks = table::of_run(snapshot, &run.id)?;
    // Stays are a tree: `from` leads to the stay that the run came from. A turn makes an older one current.
    //
    //   planned 1 ─▶ executing 1 ─▶ review 1       the turn leads from `review 1` to `planned 1`
    //      └───────▶ executing 2                   what comes next begins a new branch there
    let mut teller = Teller {
        rollbacks: rollbacks.iter().map(|rollback| (rollback.id.as_str(), rollback)).collect(),
        story: Story { stays: Vec::new(), turns: Vec::new(), current: 0, run: run.clone() },
    };
    ic_ledger::events::each_of_run(snapshot, &run.id, |event| {
        let rolled_back_by = match event.event_type.as_str() {
            // It may begin a stay.
            "rollback" => taken_back.covers(event.seq),
            _ => taken_back.includes(&event),
        };
        teller.hear(&event, rolled_back_by);
        Ok(ControlFlow::Continue(()))
    })?;
    let mut story = teller.story;
    for stay in &mut story.stays {
        stay.checkpoint_id = record::of_advance(snapshot, stay.seq)?.map(|checkpoint| checkpoint.id);
    }
    for dispatch in dispatch::of_run(snapshot, &run.id)? {
        if let Some(stay) = story.during(dispatch.seq) {
            stay.dispatches += 1;
        }
    }
    for artifact in artifact::list(snapshot, &run.id, artifact::ArtifactFilter::default())? {
        if let Some(stay) = story.during(artifact.seq) {
            stay.artifacts += 1;
        }
    }
    Ok(story)
}

impl Story {
    /// The stay in which the run was when something was recorded.
    fn during(&mut self, seq: Seq) -> Option<&mut PhaseStay> {
        // The last of both decides where the run was: a move forward adds a stay, and a turn goes to an older one.
        let turned = self.turns.iter().rev().find(|turn| turn.seq < seq).map(|turn| (turn.seq, turn.to));
        let came = self.stays.iter().rposition(|stay| stay.seq < seq);
        let at = match (turned, came) {
            (Some((turned, to)), Some(came)) if self.stays[came].seq < turned => to,
            (_, Some(came)) => came,
            (Some((_, to)), None) => to,
            (None, None) => return None,
        };
        self.stays.get_mut(at)
    }
}

struct Teller<'r> {
    rollbacks: BTreeMap<&'r str, &'r RollbackRecord>,
    story: Story,
}

impl Teller<'_> {
    fn hear(&mut self, event: &Event, rolled_back_by: Option<&RollbackId>) {
        match event.event_type.as_str() {
            "run_created" => self.come(event, None, None),
            "advance" | "override" => self.come(event, Some(self.story.current), rolled_back_by),
            "block" => {
                let current = self.story.current;
                if let Some(stay) = self.story.stays.get_mut(current) {
                    stay.blocks += 1;
                }
            }
            "rollback" => {
                self.turn(event, "rolled_back");
                self.begin_anew(event, rolled_back_by);
            }
            "rollback_undone" => self.turn(event, "undone"),
            _ => {}
        }
    }

    fn come(&mut self, event: &Event, from: Option<usize>, rolled_back_by: Option<&RollbackId>) {
        let Some(phase) = event.to.clone() else { return };
        let story = &mut self.story;
        story.stays.push(PhaseStay {
            attempt: story.stays.iter().filter(|stay| stay.phase == phase).count() + 1,
            phase,
            seq: event.seq,
            at: event.created_at,
            from,
            rolled_back_by: rolled_back_by.cloned(),
            checkpoint_id: None,
            dispatches: 0,
            artifacts: 0,
            blocks: 0,
        });
        story.current = story.stays.len() - 1;
    }

    /// What was done in the target went too: the run is in it once more, from where it had come there.
    fn begin_anew(&mut self, event: &Event, rolled_back_by: Option<&RollbackId>) {
        let named = event.subject_id.as_deref().and_then(|id| self.rollbacks.get(id)).copied();
        let Some(rollback) = named.filter(|rollback| rollback.include_target) else { return };
        let stands = rollback.status.stands();
        let from = match self.story.stays.get_mut(self.story.current) {
            Some(left) => {
                if stands && left.rolled_back_by.is_none() {
                    left.rolled_back_by = Some(rollback.id.clone());
                }
                left.from
            }
            None => None,
        };
        // The stay that a rollback began is over once that rollback was undone: the run is in the older one again.
        self.come(event, from, rolled_back_by.or_else(|| (!stands).then_some(&rollback.id)));
        let now = self.story.current;
        if let Some(turn) = self.story.turns.last_mut() {
            turn.to = now;
        }
    }

    /// Goes to the last stay in the phase that the event names: back to where a branch begins, or to where one ended.
    fn turn(&mut self, event: &Event, kind: &'static str) {
        let named = event.subject_id.as_deref().and_then(|id| self.rollbacks.get(id)).copied();
        let (Some(rollback), Some(phase)) = (named, event.to.as_deref()) else { return };
        let story = &mut self.story;
        let is_there = |stay: &PhaseStay| stay.phase == phase;
        let to = match kind {
            // The turn of the rollback itself is looked for: several stays may be in the phase that it left.
            "undone" => story.turns.iter().rev().find(|turn| turn.rollback_id == rollback.id).map(|turn| turn.from),
            // Only along its own branch: a stay in the same phase on a branch that was left is not where it went.
            _ => path(&story.stays, story.current).into_iter().find(|at| is_there(&story.stays[*at])),
        };
        // An undo of works goes nowhere.
        let to = if rollback.is_of_works() { Some(story.current) } else { to };
        let Some(to) = to.or_else(|| story.stays.iter().rposition(is_there)) else { return };
        story.turns.push(Turn {
            rollback_id: rollback.id.clone(),
            kind,
            seq: event.seq,
            at: event.created_at,
            from: story.current,
            to,
            reason: event.reason.clone(),
            layers: rollback.layers.iter().map(|layer| layer.as_str()).collect(),
            alone: rollback.chosen(),
        });
        story.current = to;
    }
}

/// The stays that led to one, itself first.
fn path(stays: &[PhaseStay], from: usize) -> Vec<usize> {
    let mut path = Vec::new();
    let mut next = Some(from);
    while let Some(at) = next {
        path.push(at);
        next = stays.get(at).and_then(|stay| stay.from);
    }
    path
}
