//! Counting what the gates ask for.

use ic_base::{Result, RunId};
use ic_dispatch::dispatch;
use ic_phase::gate::{Check, Facts, Requirement};
use ic_runtrack::{agent, artifact};
use ic_store::Snapshot;

/// Each requirement with what is counted for it; nothing that was rolled back is counted.
pub(super) fn gather(
    snapshot: &Snapshot<'_>,
    run_id: &RunId,
    requirements: &[Requirement],
) -> Result<Vec<(Requirement, Facts)>> {
    requirements
        .iter()
        .map(|requirement| Ok((requirement.clone(), count(snapshot, run_id, requirement)?)))
        .collect()
}

fn count(snapshot: &Snapshot<'_>, run_id: &RunId, requirement: &Requirement) -> Result<Facts> {
    let phase = requirement.phase.as_ref().map(ic_base::Label::as_str);
    Ok(match requirement.check {
        Check::ArtifactExists => Facts::Artifacts(artifact::count_active(snapshot, run_id, phase)?),
        Check::AgentsComplete => Facts::ActiveAgents(agent::count_active(snapshot, run_id, phase)?),
        Check::DispatchesComplete => {
            Facts::UnfinishedDispatches(dispatch::count_unfinished(snapshot, run_id, phase)?)
        }
        Check::VerdictExists | Check::VerdictClean => {
            let (pass, fail) = dispatch::count_verdicts(snapshot, run_id, phase)?;
            Facts::Verdicts { pass, fail }
        }
    })
}
