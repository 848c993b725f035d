//! What a rollback covers, and which decisions were made about it: before it is begun from its request, then from its journal. Layers ask
//! here, so that a preview and the rollback itself see the same.

use ic_base::{Code, Diagnosis, Result};
use ic_checkpoint::restore::Strategy;
use ic_kernel::Kernel;
use ic_kernel::journal::{Choices, Force, LayerName, RollbackRecord};
use ic_ledger::events::Cut;
use ic_phase::{Run, run};
use ic_rewind::RewindTarget;
use ic_worktree::{CaptureSettings, Workspace};

use super::plan::RollbackPlan;
use super::request::LayeredRequest;

/// What a rollback covers.
pub(super) struct Covered {
    /// The run that it covers, read anew.
    pub(super) run: Run,
    /// The event after which work is undone, and whose work.
    pub(super) cut: Cut,
    /// The layers that go back, sorted.
    pub(super) layers: Vec<LayerName>,
    basis: Basis,
}

enum Basis {
    /// It is only planned: nothing of it is recorded.
    Planned(PlannedCoverage),
    /// It was begun: its row is the basis.
    Begun(RollbackRecord),
}

/// What only the caller of a plan supplies.
pub(super) struct PlannedCoverage {
    /// The decisions of the call.
    choices: Choices,
    /// The point that it goes back to, by its reference.
    pub(super) point: Option<String>,
    /// The same, where the work after it can be undone alone.
    pub(super) point_of_one: Option<String>,
    /// Whether the tree goes back exactly, though only work is undone.
    is_exact: bool,
}

impl PlannedCoverage {
    /// Whether files that others changed too stay unchanged.
    pub(super) fn keeps_theirs(&self) -> bool {
        self.choices.keep_theirs
    }
}

impl Covered {
    /// What a plan covers.
    pub(super) fn planned(
        plan: &RollbackPlan,
        layers: &[LayerName],
        request: &LayeredRequest<'_>,
        settings: &CaptureSettings,
    ) -> Self {
        // The call does not decide the strategy: the look at the tree finds it, and the fence records it.
        let choices = Choices::new(request.force, request.keep_theirs, request.mine, None, settings.state.as_ref());
        let choices = choices.with_paths(&request.decisions);
        let planned = PlannedCoverage {
            choices,
            point: plan.point.clone(),
            point_of_one: plan.point_of_one().map(str::to_owned),
            is_exact: plan.is_exact,
        };
        Self { run: plan.run.clone(), cut: plan.cut.clone(), layers: layers.to_vec(), basis: Basis::Planned(planned) }
    }

    /// What a rollback that was begun covers. Errors: `corrupt` if its plan cannot be read.
    pub(super) fn begun(kernel: &Kernel, remembered: &RollbackRecord) -> Result<Self> {
        Ok(Self {
            run: kernel.read(|snapshot| run::get(snapshot, &remembered.run_id))?,
            cut: cut_of(remembered)?,
            layers: remembered.layers.clone(),
            basis: Basis::Begun(remembered.clone()),
        })
    }

    /// The rollback, if it was begun.
    pub(super) fn remembered(&self) -> Option<&RollbackRecord> {
        match &self.basis {
            Basis::Begun(remembered) => Some(remembered),
            Basis::Planned(_) => None,
        }
    }

    /// What the caller of a plan says; `None`: it was begun.
    pub(super) fn as_planned(&self) -> Option<&PlannedCoverage> {
        match &self.basis {
            Basis::Planned(planned) => Some(planned),
            Basis::Begun(_) => None,
        }
    }

    /// The decisions. Errors: `corrupt` if a journal cannot be read.
    pub(super) fn choices(&self) -> Result<Choices> {
        match &self.basis {
            Basis::Planned(planned) => Ok(planned.choices.clone()),
            Basis::Begun(remembered) => Choices::of(remembered),
        }
    }

    /// Whether what the works did is taken out of the tree, and what others did stays there. Otherwise the tree goes back to a checkpoint.
    pub(super) fn is_merged(&self) -> bool {
        let is_exact = match &self.basis {
            Basis::Planned(planned) => planned.is_exact,
            Basis::Begun(remembered) => remembered.is_exact(),
        };
        self.cut.is_of_works() && !is_exact
    }

    /// The refusals that are passed: by this call, and by earlier decisions.
    pub(super) fn force(&self, of_call: Force) -> Result<Force> {
        Ok(of_call.or(self.choices()?.force))
    }

    /// The part of the tree that is restored. Files and git are files alone where there is no git, or where it is not recorded.
    pub(super) fn strategy(&self, workspace: &Workspace<'_>) -> Result<Strategy> {
        if let Basis::Begun(remembered) = &self.basis {
            // The journal decides: git may have come or gone since the rollback began.
            return self.choices()?.strategy(remembered);
        }
        let (files, git) = (self.layers.contains(&LayerName::Files), self.layers.contains(&LayerName::Git));
        Ok(match (files, git) {
            (true, true) if workspace.has_git() => Strategy::Full,
            (true, _) => Strategy::FilesOnly,
            (false, _) => Strategy::GitOnly,
        })
    }

    /// The state database. The restored tree may hold another configuration, so the journal keeps its own; only a database that the journal
    /// could not name comes from the configuration.
    ///
    /// Errors: `invalid_config` if nothing names one; `corrupt` if the journal cannot be read.
    pub(super) fn database(&self, settings: &CaptureSettings) -> Result<RewindTarget> {
        if let Basis::Begun(remembered) = &self.basis
            && let Some(kept) = Choices::of(remembered)?.state(remembered)?
        {
            return Ok(kept);
        }
        settings.state.clone().ok_or_else(|| {
            Diagnosis::new(
                Code::InvalidConfig,
                "The configuration has no section `rewind`: there is no state database.",
            )
            .hint(format!("ic rewind init --profile devs, or {}", self.without_data()))
        })
    }

    /// How to leave rows out; a plan says which layers to choose instead.
    pub(super) fn without_data(&self) -> String {
        ic_kernel::journal::layer::without_data(self.as_planned().map(|_| &self.layers[..]))
    }
}

/// The cut that a rollback was made with. Errors: `corrupt` if its plan cannot be read.
pub(super) fn cut_of(remembered: &RollbackRecord) -> Result<Cut> {
    // The row has a column for the event of the cut, and none for the phases or the works.
    let phases = serde_json::from_value(remembered.plan["rolled_back_phases"].clone()).map_err(|e| {
        Diagnosis::new(Code::Corrupt, format!("The plan of the rollback {} is damaged: {e}.", remembered.id))
    })?;
    let (run_id, works) = (remembered.run_id.clone(), remembered.works());
    Ok(Cut { run_id, seq: remembered.cut_seq, phases, works })
}
