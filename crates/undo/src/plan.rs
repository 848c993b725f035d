//! What a rollback will do, listed before it is done.

use crate::points::PointPosition;
use ic_base::{Code, Diagnosis, DispatchId, Result, RollbackId, RunId, Seq};
use ic_dispatch::{Dispatch, DispatchStatus, cancel, dispatch};
use ic_kernel::journal::table::{self, CHOSEN, EXACT, REINSTATED, RollbackRecord, WORKS};
use ic_ledger::Snapshot;
use ic_ledger::events::Cut;
use ic_phase::skip::{self, SkipRecord};
use ic_phase::{Run, RunStatus, machine};
use ic_runtrack::{Agent, AgentStatus, Artifact, agent, artifact};
use ic_session::call;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::cut;
use super::events::{LEFT_PHASES, PlanCounts};

/// Everything that a rollback over the workflow layer changes, with the states before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollbackPlan {
    /// The run, before the rollback.
    pub run: Run,
    /// The phase that it goes back to.
    pub to_phase: String,
    /// Whether what was done in that phase is rolled back too.
    pub include_target: bool,
    /// The point that it goes back to, by its reference; `None`: it goes back to the phase.
    pub point: Option<String>,
    /// The cut, with the rolled-back phases.
    pub cut: Cut,
    /// Unfinished dispatches: they are cancelled and marked. Oldest first.
    pub cancelled_dispatches: Vec<Dispatch>,
    /// Finished dispatches: they are marked. Oldest first.
    pub marked_dispatches: Vec<Dispatch>,
    /// Artifacts: they are marked. Oldest first.
    pub artifacts: Vec<Artifact>,
    /// Active agents: they become failed and are marked. Oldest first.
    pub failed_agents: Vec<Agent>,
    /// Agents that had ended: they are marked. Oldest first.
    pub marked_agents: Vec<Agent>,
    /// Skips: they are cleared. Oldest first.
    pub skips: Vec<SkipRecord>,
    /// Undos of single work that lie after the cut, though what was done lies before it: it counts again. Oldest first.
    pub reinstated: Vec<RollbackId>,
    /// Those of the dispatches that began before the cut and are covered because of what they did after it. Oldest first.
    pub straddling: Vec<DispatchId>,
    /// The dispatches whose work alone is undone, without what they began. Oldest first; empty where the run goes back.
    pub chosen: Vec<DispatchId>,
    /// Whether the tree goes back exactly, because only the chosen work changed it since it began.
    pub is_exact: bool,
}

/// Plans the rollback of `run` to `to_phase`; reads only.
///
/// Errors: `unknown_phase`, `phase_ahead`, `already_at_phase`, `run_not_active`, `rolling_back`.
pub fn make(snapshot: &Snapshot<'_>, run: Run, to_phase: &str, include_target: bool) -> Result<RollbackPlan> {
    let phases = machine::check_rollback(&run, to_phase, include_target)?;
    let seq = cut::find(snapshot, &run, to_phase, include_target)?.ok_or_else(|| {
        Diagnosis::new(
            Code::Corrupt,
            format!("The run {} is beyond {to_phase}, but no event says how it got there.", run.id),
        )
        .hint("run `ic events verify`")
    })?;
    let cut = Cut { run_id: run.id.clone(), seq, phases, works: Vec::new() };
    of_cut(snapshot, run, cut, (to_phase, include_target))
}

/// Plans the rollback of `run` to a place: what was recorded after it, whatever its phase. The phases that are left only move the pointer.
///
/// Errors: those of [`make`].
pub(super) fn make_at(snapshot: &Snapshot<'_>, run: Run, place: PointPosition) -> Result<RollbackPlan> {
    // The target is included: a place may lie within the phase at which the run is.
    machine::check_rollback(&run, &place.phase, true).map_err(|error| at_the_end(&run, &place, error))?;
    let cut = Cut { run_id: run.id.clone(), seq: place.seq, phases: Vec::new(), works: Vec::new() };
    let plan = of_cut(snapshot, run, cut, (&place.phase, false))?;
    Ok(RollbackPlan { point: Some(place.reference), ..plan })
}

/// A refusal for a place within a phase gets another hint: the caller named no phase that could be replaced by another.
fn at_the_end(run: &Run, place: &PointPosition, error: Diagnosis) -> Diagnosis {
    if error.code() != Code::TerminalPhase {
        return error;
    }
    let earlier =
        format!("name a point from before the run was completed, of those that ic log {} lists", run.id.short());
    match place.reference.strip_prefix("checkpoint:") {
        Some(id) => error.hint(format!("the files alone: ic checkpoint restore {id} --yes; or {earlier}")),
        None => error.hint(earlier),
    }
}

/// Plans to undo what these dispatches did, with the work that they began, and nothing else. The run stays where it is, and so does what
/// others did since. `chosen`: oldest first, not empty. `in_calls`: also those that are in the middle of a tool call.
///
/// Errors: `point_taken_back` if one of them was rolled back already, `work_running` if one is at work, or a subagent of it is in the middle
/// of a tool call, `run_not_active`, `rolling_back`.
pub(super) fn make_of_works(
    snapshot: &Snapshot<'_>,
    run: Run,
    chosen: &[Dispatch],
    in_calls: bool,
) -> Result<RollbackPlan> {
    // In a completed run, too, work can be undone. The run stays completed.
    if run.status != RunStatus::Completed {
        run.require_active()?;
    }
    let mut works: Vec<Dispatch> = Vec::new();
    for one in chosen {
        require_takeable(snapshot, one, in_calls)?;
        let begun = dispatch::descendants(snapshot, &one.id)?;
        begun.iter().try_for_each(|begun| require_between_calls(snapshot, one, begun))?;
        works.extend(std::iter::once(one.clone()).chain(begun));
    }
    // One chosen prompt may have begun another chosen one, which is then in the list twice. No two dispatches have one
    // place, so equal ids are neighbours after the sort.
    works.sort_by_key(Dispatch::place);
    works.dedup_by(|one, other| one.id == other.id);
    // `Cut::covers` asks a set for its works alone. The event of the cut says to which checkpoint an exact undo
    // restores the tree.
    let seq = match chosen.first() {
        Some(first) => crate::points::place_of(snapshot, &run, first)?.seq,
        None => run.seq,
    };
    let works = works.into_iter().map(|one| one.id).collect();
    let cut = Cut { run_id: run.id.clone(), seq, phases: Vec::new(), works };
    // The run does not move, so its target is its current phase.
    let phase = run.phase.clone();
    let plan = of_cut(snapshot, run, cut, (&phase, false))?;
    Ok(RollbackPlan { chosen: chosen.iter().map(|one| one.id.clone()).collect(), ..plan })
}

/// Errors: `point_taken_back` if work was rolled back already, `work_running` if it is at work.
fn require_takeable(snapshot: &Snapshot<'_>, dispatch: &Dispatch, in_call: bool) -> Result<()> {
    let id = dispatch.id.short();
    if let Some(by) = &dispatch.rolled_back_by {
        let by = by.short();
        let back = format!("bring it back: ic redo {by} --yes");
        let (part, hint) = match dispatch.undone_in_part_from() {
            Some(cut) => (
                format!(", what it did after event {cut}"),
                format!("{back}; or undo the rest of it too, with all that came after: ic undo dispatch:{id} --yes"),
            ),
            None => (String::new(), back),
        };
        return Err(Diagnosis::new(
            Code::PointTakenBack,
            format!("The work of the dispatch {id} was rolled back already{part}, by the rollback {by}."),
        )
        .hint(hint)
        .detail("dispatch_id", dispatch.id.as_str()));
    }
    if dispatch.status == DispatchStatus::Running && !is_told(snapshot, dispatch, in_call)? {
        return Err(Diagnosis::new(
            Code::WorkRunning,
            format!("The dispatch {id} is still running, so its changes are not known yet."),
        )
        .hint(format!(
            "end it first: ic dispatch complete {id}, or ic dispatch fail {id} --error WHY if its agent was stopped; or undo it with all that came \
             after it: ic undo dispatch:{id} --yes"
        ))
        .detail("dispatch_id", dispatch.id.as_str()));
    }
    Ok(())
}

/// Whether the client of running work reports each call, and none of them is under way, unless that is allowed: it changes nothing until
/// its next call, which is refused.
fn is_told(snapshot: &Snapshot<'_>, dispatch: &Dispatch, in_call: bool) -> Result<bool> {
    let is_told = !call::told_by_calls(snapshot, std::iter::once(&dispatch.id))?.is_empty();
    Ok(is_told && (in_call || !call::is_running(snapshot, &dispatch.id)?))
}

/// Errors: `work_running` if a subagent is in the middle of a tool call: it would write into what is being undone. Between two calls it is
/// refused at its next one.
fn require_between_calls(snapshot: &Snapshot<'_>, parent: &Dispatch, subagent: &Dispatch) -> Result<()> {
    if subagent.rolled_back_by.is_some() || !call::is_running(snapshot, &subagent.id)? {
        return Ok(());
    }
    let named = subagent.work.name.as_deref().map_or_else(|| subagent.id.short().to_owned(), ic_base::title);
    let message = format!("A subagent of the dispatch {} is in the middle of a tool call: {named}.", parent.id.short());
    Err(Diagnosis::new(Code::WorkRunning, message)
        .hint("wait for its end, then call again")
        .detail("dispatch_id", subagent.id.as_str()))
}

fn of_cut(snapshot: &Snapshot<'_>, run: Run, cut: Cut, (to_phase, included): (&str, bool)) -> Result<RollbackPlan> {
    let dispatches = cancel::taken_back(snapshot, &cut)?;
    // An agent goes with its dispatch, in whatever phase it joined (ADR 0007): what it still reports must count for
    // nothing.
    let agents = agent::taken_back(snapshot, &cut, &dispatches.iter().map(|d| &d.id).collect())?;
    let (marked_dispatches, cancelled_dispatches) = dispatches.into_iter().partition(|d| d.status.is_finished());
    let (failed_agents, marked_agents) = agents.into_iter().partition(|a| a.status == AgentStatus::Active);
    Ok(RollbackPlan {
        artifacts: artifact::taken_back(snapshot, &cut)?,
        skips: skip::taken_back(snapshot, &cut, to_phase)?,
        cancelled_dispatches,
        marked_dispatches,
        failed_agents,
        marked_agents,
        reinstated: reinstated(snapshot, &cut)?,
        include_target: included,
        ..RollbackPlan::empty(run, to_phase.to_owned(), cut)
    })
}

fn reinstated(snapshot: &Snapshot<'_>, cut: &Cut) -> Result<Vec<RollbackId>> {
    // An undo of works leaves the run where it is, so it goes back before no other undo.
    if cut.is_of_works() {
        return Ok(Vec::new());
    }
    undone_across(snapshot, &cut.run_id, cut.seq)
}

/// The undos of single work that stand, were made after the event `seq`, and undid work from before it. Oldest first.
pub(super) fn undone_across(snapshot: &Snapshot<'_>, run: &RunId, seq: Seq) -> Result<Vec<RollbackId>> {
    // The work stood at the cut, and its undo did not exist yet:
    //   work (one.cut_seq) ──▶ cut (seq) ──▶ undo of the work (one.seq) ──▶ now
    let is_across = |one: &RollbackRecord| one.is_of_works() && one.cut_seq < seq && seq < one.seq;
    let all = table::standing_of(snapshot, run)?;
    Ok(all.into_iter().filter(is_across).map(|one| one.id).collect())
}

impl RollbackPlan {
    /// The point that it goes back to, where the work after that point can be undone alone: it has ended, and stands.
    pub fn point_of_one(&self) -> Option<&str> {
        let point = self.point.as_deref()?;
        let (_, id) = point.split_once(':')?;
        self.marked_dispatches.iter().any(|one| one.id.as_str().ends_with(id)).then_some(point)
    }

    /// The plan with work that began before the cut too, and the agents that work on it. `straddling`: oldest first.
    pub(super) fn with_straddling(mut self, snapshot: &Snapshot<'_>, straddling: Vec<Dispatch>) -> Result<Self> {
        if straddling.is_empty() {
            return Ok(self);
        }
        self.straddling = straddling.iter().map(|one| one.id.clone()).collect();
        let (marked, cancelled): (Vec<_>, Vec<_>) = straddling.into_iter().partition(|one| one.status.is_finished());
        for (list, more) in [(&mut self.marked_dispatches, marked), (&mut self.cancelled_dispatches, cancelled)] {
            list.extend(more);
            // The hash of the plan covers the order of its lists: a preview and the call that is held to it must list
            // alike.
            list.sort_by_key(|one| one.seq);
        }
        let dispatches = self.cancelled_dispatches.iter().chain(&self.marked_dispatches);
        // Looked up anew: agents that work on the added dispatches are covered, too.
        let agents = agent::taken_back(snapshot, &self.cut, &dispatches.map(|one| &one.id).collect())?;
        (self.failed_agents, self.marked_agents) = agents.into_iter().partition(|a| a.status == AgentStatus::Active);
        Ok(self)
    }

    /// The event after which work of this dispatch is rolled back; `None`: all of it is.
    pub fn undone_in_part_from(&self, dispatch: &Dispatch) -> Option<Seq> {
        self.straddling.contains(&dispatch.id).then_some(self.cut.seq)
    }

    /// The epoch that the run will have: a new one where the run goes back.
    pub fn next_epoch(&self) -> i64 {
        // Others continue to work in the run during an undo of works. A new epoch would make all of their reports late.
        self.run.epoch + i64::from(!self.cut.is_of_works())
    }

    /// Whether the run is completed: a rollback makes it active again.
    pub fn reopens(&self) -> bool {
        self.run.status == RunStatus::Completed && !self.cut.is_of_works()
    }

    /// The phases that the run leaves, in chain order. A run that goes back to a point leaves phases too, but no record is covered for its
    /// phase alone.
    pub fn rolled_back_phases(&self) -> Vec<String> {
        match &self.point {
            Some(_) => self.run.chain.phases_after(&self.to_phase, &self.run.phase),
            None => self.cut.phases.clone(),
        }
    }

    /// The plan of a rollback that finds its run at the target already. `cut`: that of the rollback that moved it there.
    pub(super) fn of_nothing(run: Run, cut: Seq) -> Self {
        let cut = Cut { run_id: run.id.clone(), seq: cut, phases: Vec::new(), works: Vec::new() };
        let to_phase = run.phase.clone();
        Self::empty(run, to_phase, cut)
    }

    fn empty(run: Run, to_phase: String, cut: Cut) -> Self {
        Self {
            run,
            to_phase,
            include_target: false,
            point: None,
            cut,
            cancelled_dispatches: Vec::new(),
            marked_dispatches: Vec::new(),
            artifacts: Vec::new(),
            failed_agents: Vec::new(),
            marked_agents: Vec::new(),
            skips: Vec::new(),
            reinstated: Vec::new(),
            straddling: Vec::new(),
            chosen: Vec::new(),
            is_exact: false,
        }
    }

    /// What is marked, cancelled or cleared in the record, by its ids.
    pub(super) fn marks(&self) -> [Vec<String>; 4] {
        let ids = |list: &[Dispatch]| list.iter().map(|one| one.id.to_string()).collect::<Vec<_>>();
        let agents = self.failed_agents.iter().chain(&self.marked_agents);
        let mut dispatches = [ids(&self.cancelled_dispatches), ids(&self.marked_dispatches)].concat();
        dispatches.sort();
        [
            dispatches,
            self.artifacts.iter().map(|one| one.id.to_string()).collect(),
            agents.map(|one| one.id.to_string()).collect(),
            self.skips.iter().map(|one| one.seq.to_string()).collect(),
        ]
    }

    /// How many rows of each kind are changed.
    pub fn counts(&self) -> PlanCounts {
        PlanCounts {
            phases: self.rolled_back_phases().len(),
            dispatches: self.cancelled_dispatches.len() + self.marked_dispatches.len(),
            artifacts: self.artifacts.len(),
            agents: self.failed_agents.len() + self.marked_agents.len(),
            skips: self.skips.len(),
        }
    }

    /// The SHA-256 of the plan's JSON, in hex: the same for a dry run and the real call over the same ledger.
    pub fn hash(&self) -> String {
        ic_ledger::events::hex(&Sha256::digest(self.to_json().to_string().as_bytes()).into())
    }

    /// The plan as the row of the rollback keeps it: ids, with the states before.
    pub fn to_json(&self) -> Value {
        let dispatches = |list: &[Dispatch]| -> Vec<Value> {
            list.iter().map(|d| json!([d.id.as_str(), d.status.as_str()])).collect()
        };
        let agents =
            |list: &[Agent]| -> Vec<Value> { list.iter().map(|a| json!([a.id.as_str(), a.status.as_str()])).collect() };
        let mut plan = json!({
            "version": 1,
            "run_id": self.run.id.as_str(),
            "run_status": self.run.status.as_str(),
            "epoch": self.run.epoch,
            // This is the plan of the record alone. The hash over several layers includes its hash (`preflight::hash`).
            "layers": ["workflow"],
            "from_phase": self.run.phase,
            "to_phase": self.to_phase,
            "include_target": self.include_target,
            "cut_seq": self.cut.seq,
            "rolled_back_phases": self.cut.phases,
            "cancelled_dispatches": dispatches(&self.cancelled_dispatches),
            "marked_dispatches": dispatches(&self.marked_dispatches),
            "artifacts": self.artifacts.iter().map(|a| a.id.as_str()).collect::<Vec<_>>(),
            "failed_agents": agents(&self.failed_agents),
            "marked_agents": agents(&self.marked_agents),
            "skips": self.skips.iter().map(|s| s.seq).collect::<Vec<_>>(),
        });
        // A member only where there is a point: the plan of a phase has the same hash whether it was named as a phase or as its point.
        if let Some(point) = &self.point {
            plan["point"] = json!(point);
            plan[LEFT_PHASES] = json!(self.rolled_back_phases());
        }
        if self.cut.is_of_works() {
            plan[WORKS] = json!(self.cut.works.iter().map(DispatchId::as_str).collect::<Vec<_>>());
            plan[CHOSEN] = json!(self.chosen.iter().map(DispatchId::as_str).collect::<Vec<_>>());
        }
        if self.is_exact {
            plan[EXACT] = json!(true);
        }
        if !self.straddling.is_empty() {
            plan["straddling"] = json!(self.straddling.iter().map(DispatchId::as_str).collect::<Vec<_>>());
        }
        if !self.reinstated.is_empty() {
            plan[REINSTATED] = json!(self.reinstated.iter().map(RollbackId::as_str).collect::<Vec<_>>());
        }
        plan
    }
}
