//! Moving a run forward: gather the facts, judge the gate, move, in one transaction.

pub(crate) mod authors;
mod facts;

use ic_base::{CheckpointId, Code, Diagnosis, DispatchId, Result, RunId, Seq, Timestamp};
use ic_checkpoint::record::CheckpointLink;
use ic_kernel::owner::OwnerLock;
use ic_ledger::events::{EventType, NewEvent};
use ic_ledger::{Snapshot, Transaction};
use ic_phase::gate::{AuthorRule, GateVerdict, Tier, evaluate};
use ic_phase::machine::{self, Expectation, PhaseStep};
use ic_phase::{Run, run, skip};
use serde_json::{Value, json};

use ic_kernel::Kernel;
use ic_worktree::auto::TakenTree;
use ic_worktree::capture::CaptureOccasion;
use ic_worktree::{CaptureSettings, Warning, retention};

/// How a run is to be advanced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AdvanceRequest<'a> {
    /// `P` or `P@EPOCH`: where the caller believes the run to be.
    pub expect: Option<&'a str>,
    /// 0 and 1: gates block; 2 and 3: they warn; 4 and above: they are not asked.
    pub priority: u32,
    /// The gates are not asked, for this reason.
    pub disable_gates: Option<&'a str>,
}

/// What became of an advance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdvanceOutcome {
    /// The run that was to move.
    pub run_id: RunId,
    /// What was recorded: an advance, an override, a block or a pause.
    pub event_type: EventType,
    /// Where the run was.
    pub from: String,
    /// Where it is, or would have gone.
    pub to: String,
    /// Whether it is completed there, or would be.
    pub completes: bool,
    /// What the gate said.
    pub verdict: GateVerdict,
    /// Why it was blocked, paused, overridden or not asked.
    pub reason: Option<String>,
    /// The run's epoch after it: a rollback raises it, so that work begun before is refused.
    pub epoch: i64,
    /// The event; `None` for an evaluation that writes nothing.
    pub seq: Option<Seq>,
    /// The checkpoint that was taken just before.
    pub checkpoint_id: Option<CheckpointId>,
    /// What went less well.
    pub warnings: Vec<Warning>,
}

impl AdvanceOutcome {
    /// Whether the run moved (or would move).
    pub fn advanced(&self) -> bool {
        matches!(self.event_type, EventType::Advance | EventType::Override)
    }
}

/// Moves a run one phase forward, or records what holds it back.
///
/// With `kept`, a configured state database is looked at before it moves, and where checkpoints are taken automatically the working
/// tree is captured. Errors: `rolling_back`, `stale_phase`, `terminal_phase`, `run_not_active`; `work_running` while another process
/// executes the run, and moves it by itself; a block or pause is no error.
pub fn advance(
    kernel: &Kernel,
    reference: &str,
    request: &AdvanceRequest<'_>,
    kept: Option<&CaptureSettings>,
) -> Result<AdvanceOutcome> {
    let judged = |snapshot: &Snapshot<'_>| {
        let run = kernel.run(snapshot, reference)?;
        if request.disable_gates.is_some() || Tier::of_priority(request.priority) != Tier::Hard {
            // As an override: a worker does not decide that its gate weighs less.
            require_another_at(kernel, snapshot, &run, &judge(snapshot, &run, &AdvanceRequest::default())?)?;
        }
        let outcome = by_hand(kernel, snapshot, &run, judge(snapshot, &run, request)?)?;
        Ok((run, outcome))
    };
    go(kernel, reference, kept, judged)
}

/// As [`advance`], in the transaction of the caller, and without a look at the tree.
pub(crate) fn advance_in(kernel: &Kernel, tx: &Transaction<'_>, now: Timestamp, run: &Run) -> Result<()> {
    let outcome = by_hand(kernel, tx, run, verdict(tx, run)?)?;
    record(tx, now, run, outcome, &TakenTree::nothing()).map(drop)
}

/// A move that a caller asks for who does not execute the run. Errors: `work_running` while another process does.
fn by_hand(kernel: &Kernel, snapshot: &Snapshot<'_>, run: &Run, mut outcome: AdvanceOutcome) -> Result<AdvanceOutcome> {
    // The lock is only looked at: this also runs under the ledger's write lock, where no other lock may be waited for. The operating system
    // frees the lock of an owner that was killed, so a dead executor blocks no move.
    if let Err(held) = OwnerLock::require_free(kernel.store(), &run.id) {
        // A run without a workflow has no executor: the lock is held by a rollback that reopened the run and is about to end.
        let is_executed = (kernel.above.has_workflow)(snapshot, &run.id)?;
        if is_executed || held.code() != Code::WorkRunning {
            return Err(held);
        }
    }
    let left = if outcome.completes { (kernel.above.steps_left)(snapshot, run)? } else { Vec::new() };
    if !left.is_empty() {
        let names: Vec<&str> = left.iter().map(|step| step.name.as_str()).collect();
        let (steps, id) = (names.join(", "), run.id.short());
        let message = format!(
            "Steps of its workflow did not succeed ({steps}), and a completed run resumes none; to make it active again, go back to a \
             point of it: ic log {id}"
        );
        outcome.warnings.push(Warning { code: "steps_left", message });
    }
    Ok(outcome)
}

/// Moves a run from where the caller saw it to its next phase, for an executor that cannot go on without.
///
/// Errors: those of [`advance`]; `gate_blocked` if its gate holds the run back, `paused` if it does not advance by itself.
pub fn one_phase(kernel: &Kernel, run: &Run, kept: &CaptureSettings) -> Result<()> {
    // A rollback or another advance since the executor looked changes the phase or the epoch, and this move is refused then.
    let expect = format!("{}@{}", run.phase, run.epoch);
    let request = AdvanceRequest { expect: Some(&expect), ..AdvanceRequest::default() };
    let judged = |snapshot: &Snapshot<'_>| {
        let run = run::get(snapshot, &run.id)?;
        // Not by hand: the executor itself holds the lock that such a move would be refused for.
        let outcome = judge(snapshot, &run, &request)?;
        Ok((run, outcome))
    };
    let outcome = go(kernel, run.id.as_str(), Some(kept), judged)?;
    if outcome.advanced() {
        return Ok(());
    }
    let id = run.id.short();
    let why = outcome.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let message = format!("The run does not get from {} to {}{why}.", outcome.from, outcome.to);
    let (code, way) = if outcome.event_type == EventType::Pause {
        (Code::Paused, format!("ic run set {id} --auto-advance true, or ic gate override {id} --reason WHY"))
    } else {
        (Code::GateBlocked, format!("ic gate check {id}, or ic gate override {id} --reason WHY"))
    };
    Err(Diagnosis::new(code, message)
        .hint(format!("{way}; then: ic workflow resume {id}"))
        .detail("run_id", run.id.as_str())
        .detail("from", outcome.from.as_str())
        .detail("to", outcome.to.as_str())
        .detail("reason", outcome.reason.as_deref()))
}

/// What [`advance`] would do now; nothing is written.
pub fn check(kernel: &Kernel, reference: &str, priority: u32) -> Result<AdvanceOutcome> {
    kernel.read(|snapshot| {
        let run = kernel.run(snapshot, reference)?;
        judge(snapshot, &run, &AdvanceRequest { priority, ..AdvanceRequest::default() })
    })
}

/// Moves a run one phase forward past its gate, whatever the gate says. The decision is that of the person or process that gives the
/// reason.
///
/// It is itself the advance: one event, used up. Errors: `rolling_back`, `terminal_phase`, `run_not_active`, `work_running` as
/// for [`advance`].
pub fn override_gate(
    kernel: &Kernel,
    reference: &str,
    reason: &str,
    kept: Option<&CaptureSettings>,
) -> Result<AdvanceOutcome> {
    let judged = |snapshot: &Snapshot<'_>| {
        let run = kernel.run(snapshot, reference)?;
        // The verdict stops nothing here, unless it asks for the word of another. The event keeps it as the gate's answer.
        let mut outcome = judge(snapshot, &run, &AdvanceRequest::default())?;
        require_another_at(kernel, snapshot, &run, &outcome)?;
        outcome.event_type = EventType::Override;
        outcome.reason = Some(reason.to_owned());
        // The gate may have blocked it: whether the run completes depends on the destination alone.
        outcome.completes = outcome.to == run.chain.last();
        let outcome = by_hand(kernel, snapshot, &run, outcome)?;
        Ok((run, outcome))
    };
    go(kernel, reference, kept, judged)
}

/// Errors: `gate_blocked` if the gate asks for the word of another, which is missing, and the caller did the work.
fn require_another_at(kernel: &Kernel, snapshot: &Snapshot<'_>, run: &Run, outcome: &AdvanceOutcome) -> Result<()> {
    let missing = outcome.verdict.conditions.iter().find(|one| one.by == AuthorRule::Other && !one.holds);
    missing.map_or(Ok(()), |missing| authors::require_another(kernel, snapshot, run, &missing.detail))
}

/// Looks at what is kept if the run would move, then judges again and records what is so in one transaction.
///
/// The run that is seen first is the one that moves: a call that had to wait asked for a move from there (seed 001: an advance is
/// optimistic), and not for one more.
fn go(
    kernel: &Kernel,
    reference: &str,
    kept: Option<&CaptureSettings>,
    judged: impl Fn(&Snapshot<'_>) -> Result<(Run, AdvanceOutcome)>,
) -> Result<AdvanceOutcome> {
    let (seen, taken) = look(kernel, reference, kept, &judged)?;
    let expected = Expectation { phase: seen.phase, epoch: Some(seen.epoch) };
    // This is judged again. The first time only decided, without a lock, whether to capture the tree, which may take
    // seconds. This time counts: work may have ended, and artifacts may have come, while the tree was read.
    let (mut outcome, project_dir) = kernel.write(|tx, now| match judged(tx) {
        Ok((run, outcome)) => {
            expected.check(&run)?;
            Ok((record(tx, now, &run, outcome, &taken)?, run.project_dir))
        }
        // The run moved while this call waited: that is the reason to give.
        Err(error) => expected.check(&run::get(tx, &seen.id)?).and(Err(error)),
    })?;
    let was_taken = taken.id().is_some();
    // Pruning waits for the store's locks, which `taken` still has.
    drop(taken);
    if let Some(settings) = kept.filter(|_| was_taken) {
        outcome.warnings.extend(retention::tidy(kernel, settings, &project_dir));
    }
    Ok(outcome)
}

/// The run as recorded, and what is kept of it if it would move now. What blocks the move is reported by the transaction that follows.
fn look(
    kernel: &Kernel,
    reference: &str,
    kept: Option<&CaptureSettings>,
    judged: impl Fn(&Snapshot<'_>) -> Result<(Run, AdvanceOutcome)>,
) -> Result<(Run, TakenTree)> {
    let Some(settings) = kept else {
        let run = kernel.read(|snapshot| kernel.run(snapshot, reference))?;
        return Ok((run, TakenTree::nothing()));
    };
    let (run, outcome, dispatch_id) = kernel.read(|snapshot| {
        // A call that will be refused is refused here, before the tree is walked.
        let (run, outcome) = judged(snapshot)?;
        let dispatch_id = kernel.dispatch_in(snapshot, &run.id)?;
        Ok((run, outcome, dispatch_id))
    })?;
    // Only an advance or an override keeps a checkpoint: for a block or a pause the walk of the tree would be for nothing.
    if !outcome.advanced() {
        return Ok((run, TakenTree::nothing()));
    }
    let link = CheckpointLink {
        run_id: Some(run.id.clone()),
        phase: Some(run.phase.clone()),
        dispatch_id,
        ..CheckpointLink::default()
    };
    let taken = TakenTree::take(kernel, settings, &run.project_dir, link);
    Ok((run, taken))
}

/// As [`check`], of a run at the priority at which gates block.
pub(crate) fn verdict(snapshot: &Snapshot<'_>, run: &Run) -> Result<AdvanceOutcome> {
    judge(snapshot, run, &AdvanceRequest::default())
}

/// What the gate to the next phase of an open run would say once this work has ended.
pub(crate) fn verdict_after(snapshot: &Snapshot<'_>, run: &Run, ending: &DispatchId) -> Result<GateVerdict> {
    let to = machine::destination(run, &skip::skipped_phases(snapshot, &run.id)?)?;
    let asked = run.gates.at(&run.phase, &to, &run.chain);
    Ok(evaluate(&facts::gather(snapshot, run, asked, Some(ending))?, Tier::Hard))
}

fn judge(snapshot: &Snapshot<'_>, run: &Run, request: &AdvanceRequest<'_>) -> Result<AdvanceOutcome> {
    // This comes before the expectation: the error for a run in the middle of a rollback is `rolling_back`, and not
    // `stale_phase`.
    run.require_settled()?;
    if let Some(expected) = request.expect {
        Expectation::parse(expected, &run.chain)?.check(run)?;
    }
    let to = machine::destination(run, &skip::skipped_phases(snapshot, &run.id)?)?;
    let verdict = if request.disable_gates.is_some() {
        GateVerdict::unasked()
    } else {
        let asked = facts::gather(snapshot, run, run.gates.at(&run.phase, &to, &run.chain), None)?;
        evaluate(&asked, Tier::of_priority(request.priority))
    };
    let step = machine::decide(run, &to, &verdict);
    let (event_type, reason) = match step {
        PhaseStep::Advance { .. } => (EventType::Advance, request.disable_gates.map(str::to_owned)),
        PhaseStep::Block => (EventType::Block, Some(verdict.complaint())),
        PhaseStep::Pause => (EventType::Pause, Some("auto-advance is off".to_owned())),
    };
    Ok(AdvanceOutcome {
        run_id: run.id.clone(),
        event_type,
        from: run.phase.clone(),
        to,
        completes: step == PhaseStep::Advance { completes: true },
        verdict,
        reason,
        epoch: run.epoch,
        seq: None,
        checkpoint_id: None,
        warnings: Vec::new(),
    })
}

fn record(
    tx: &Transaction<'_>,
    now: Timestamp,
    run: &Run,
    mut outcome: AdvanceOutcome,
    taken: &TakenTree,
) -> Result<AdvanceOutcome> {
    // A tree captured for a move that another process made first belongs to no move.
    let checkpoint_id = if outcome.advanced() { taken.id() } else { None };
    let event = NewEvent {
        from: Some(&outcome.from),
        to: Some(&outcome.to),
        gate_result: Some(outcome.verdict.result.as_str()),
        gate_tier: Some(outcome.verdict.tier.as_str()),
        reason: outcome.reason.as_deref(),
        payload: Some(evidence(&outcome.verdict, checkpoint_id)),
        ..NewEvent::of(&run.id, run.epoch, outcome.event_type)
    };
    let append = || ic_ledger::events::append(tx, now, &event);
    let occasion = CaptureOccasion { run_id: &run.id, epoch: run.epoch, phase: &run.phase };
    // The checkpoint is announced right before the event of the move: its content is what was there at that cut.
    let seq = if outcome.advanced() { taken.record(tx, now, occasion, append)? } else { append()? };
    outcome.seq = Some(seq);
    if outcome.advanced() {
        outcome.checkpoint_id = checkpoint_id.cloned();
        outcome.warnings.extend(taken.warnings.iter().cloned());
        outcome.warnings.extend(idle(&outcome));
        // This moves the pointer only from the phase and the epoch that were judged; otherwise the whole transaction
        // fails.
        run::advance_phase(tx, now, run, &outcome.to, outcome.completes)?;
    }
    Ok(outcome)
}

/// A gate that waits for work blocks while there is none. The warning says so, in case the work was done but not recorded.
fn idle(outcome: &AdvanceOutcome) -> Option<Warning> {
    outcome.verdict.conditions.iter().any(|condition| condition.is_idle).then(|| Warning {
        code: "no_work_recorded",
        message: format!("No work was recorded in {}: no agent and no dispatch ended there.", outcome.from),
    })
}

fn evidence(verdict: &GateVerdict, checkpoint_id: Option<&CheckpointId>) -> Value {
    let conditions: Vec<Value> = verdict
        .conditions
        .iter()
        .map(|c| {
            json!({
                "check": c.check.as_str(),
                "phase": c.phase.as_ref().map(ic_base::Label::as_str),
                "tier": c.tier.as_str(),
                "result": if c.holds { "pass" } else { "fail" },
                "count": c.count,
                "detail": c.detail,
            })
        })
        .collect();
    match checkpoint_id {
        Some(id) => json!({ "conditions": conditions, "checkpoint_id": id.as_str() }),
        None => json!({ "conditions": conditions }),
    }
}
