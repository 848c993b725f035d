//! The state machine of a run: what an advance, a skip or a rollback leads to. Pure.

use ic_base::{Code, Diagnosis, Result};

use crate::chain::Chain;
use crate::gate::GateVerdict;
use crate::run::{Run, RunStatus};

/// What an advance does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseStep {
    /// The run moves; it is completed if that is the end of its chain.
    Advance {
        /// Whether it reaches the end.
        completes: bool,
    },
    /// A hard gate blocks the move.
    Block,
    /// The run does not advance by itself.
    Pause,
}

/// What the caller believes of a run's position: `P` or `P@EPOCH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    /// The phase at which the caller believes the run to be.
    pub phase: String,
    /// The epoch in which it believes that; `None`: any.
    pub epoch: Option<i64>,
}

impl Expectation {
    /// Reads `P` or `P@EPOCH` for a run: a phase name may contain an `@`, so the chain decides what is a name.
    ///
    /// Errors: `unknown_phase` if neither reading names a phase of the chain.
    pub fn parse(text: &str, chain: &Chain) -> Result<Self> {
        if chain.contains(text) {
            return Ok(Self { phase: text.to_owned(), epoch: None });
        }
        if let Some((phase, epoch)) = text.rsplit_once('@')
            && let Ok(epoch) = epoch.parse()
            && chain.contains(phase)
        {
            return Ok(Self { phase: phase.to_owned(), epoch: Some(epoch) });
        }
        // Neither reading names a phase, so this is always the error, with the chain in its details.
        chain.require(text).map(|_| Self { phase: text.to_owned(), epoch: None })
    }

    /// Errors: `stale_phase`, with where the run is in the details.
    pub fn check(&self, run: &Run) -> Result<()> {
        if self.phase == run.phase && self.epoch.is_none_or(|epoch| epoch == run.epoch) {
            return Ok(());
        }
        let wanted = match self.epoch {
            Some(epoch) => format!("{}@{epoch}", self.phase),
            None => self.phase.clone(),
        };
        Err(Diagnosis::new(
            Code::StalePhase,
            format!("The run was expected at {wanted}; it is at {}@{}.", run.phase, run.epoch),
        )
        .hint(format!("it moved, or you expected another phase; see: ic run status {}", run.id.short()))
        .detail("expected", wanted)
        .detail("phase", run.phase.as_str())
        .detail("epoch", run.epoch))
    }
}

/// Where an advance of this run leads. Errors: `terminal_phase`, `run_not_active`, `rolling_back`.
pub fn destination(run: &Run, skipped: &[String]) -> Result<String> {
    // This comes before `require_active`, which would say `run_not_active`, as for a cancelled run. Only a completed
    // run has reached its end.
    if run.status == RunStatus::Completed {
        return Err(Diagnosis::new(
            Code::TerminalPhase,
            format!("The run is completed: {} is the end of its chain.", run.phase),
        )
        .hint(format!("to redo a part of it: ic run rollback {} --to-phase PHASE --yes", run.id.short())));
    }
    run.require_active()?;
    run.chain
        .next(&run.phase, skipped)
        .map(str::to_owned)
        .ok_or_else(|| Diagnosis::new(Code::TerminalPhase, format!("{} is the end of the run's chain.", run.phase)))
}

/// What an advance to `to` does, by the verdict of its gate.
pub fn decide(run: &Run, to: &str, verdict: &GateVerdict) -> PhaseStep {
    // Before the gate: a run that does not move by itself pauses whether or not its gate would let it.
    if !run.auto_advance {
        PhaseStep::Pause
    } else if verdict.blocks() {
        PhaseStep::Block
    } else {
        PhaseStep::Advance { completes: to == run.chain.last() }
    }
}

/// Errors if `phase` of this run may not be marked to be skipped.
///
/// Errors: `unknown_phase`; `already_at_phase` and `phase_passed` when the run is at it or beyond;
/// `terminal_phase` for the end of the chain; `run_not_active`, `rolling_back`.
pub fn check_skip(run: &Run, phase: &str) -> Result<()> {
    let target = run.chain.require(phase)?;
    run.require_active()?;
    let current = run.chain.require(&run.phase)?;
    let refuse = |code, message: String| Err(Diagnosis::new(code, message).detail("phase", phase));
    // A skip of the last phase would leave a chain without an end.
    if phase == run.chain.last() {
        return refuse(Code::TerminalPhase, format!("{phase} is the end of the chain and cannot be skipped."));
    }
    match target.cmp(&current) {
        std::cmp::Ordering::Greater => Ok(()),
        std::cmp::Ordering::Equal => {
            refuse(Code::AlreadyAtPhase, format!("The run already is at {phase}; only a phase ahead can be skipped."))
        }
        std::cmp::Ordering::Less => {
            refuse(Code::PhasePassed, format!("The run has passed {phase}; it is at {}.", run.phase))
        }
    }
}

/// The phases that a rollback of this run to `target` leaves, in chain order.
///
/// Errors: `unknown_phase`; `phase_ahead`; `already_at_phase` (the current phase, unless it is included);
/// `terminal_phase` for the end of the chain; `run_not_active` for cancelled and failed runs; `rolling_back`.
pub fn check_rollback(run: &Run, target: &str, include_target: bool) -> Result<Vec<String>> {
    // A completed run may go back: that makes it active again.
    if run.status != RunStatus::Completed {
        run.require_active()?;
    }
    let to = run.chain.require(target)?;
    let current = run.chain.require(&run.phase)?;
    if to > current {
        return Err(Diagnosis::new(
            Code::PhaseAhead,
            format!("{target} lies ahead: the run is at {}. A rollback only goes back.", run.phase),
        )
        .hint(format!("to go forward: ic run advance {}", run.id.short()))
        .detail("phase", run.phase.as_str())
        .detail("to_phase", target));
    }
    // This comes before the check of the end of the chain: a completed run is already at that end. Its hint differs,
    // because `--include-target` would only meet the refusal below.
    if to == current && !include_target {
        let way = if target == run.chain.last() {
            "name a phase before it: the end of the chain is not a target".to_owned()
        } else {
            let (id, phase) = (run.id.short(), ic_base::shell_word(target));
            format!(
                "to roll back what was done in this phase too: ic run rollback {id} --to-phase {phase} --include-target --dry-run; \
                 with --layer=all its effects, files and rows as well"
            )
        };
        return Err(Diagnosis::new(Code::AlreadyAtPhase, format!("The run already is at {target}."))
            .hint(way)
            .detail("phase", target));
    }
    if target == run.chain.last() {
        return Err(Diagnosis::new(
            Code::TerminalPhase,
            format!("{target} is the end of the chain: a run that goes back to it could not be completed again."),
        )
        .hint("name the phase before it")
        .detail("to_phase", target));
    }
    // The phases are in chain order: the target comes before the phases that follow it.
    let mut phases = run.chain.phases_after(target, &run.phase);
    if include_target {
        phases.insert(0, target.to_owned());
    }
    Ok(phases)
}

#[cfg(test)]
mod tests;
