//! Counting what the gates ask for.

use ic_base::{DispatchId, Result, RunId, Seq};
use ic_dispatch::{Dispatch, WorkVerdict, dispatch};
use ic_ledger::Snapshot;
use ic_phase::Run;
use ic_phase::gate::{Artifacts, AuthorRule, CountedWork, Facts, GateCheck, OpenWork, Requirement};
use ic_runtrack::{Agent, Artifact, agent, artifact};

use ic_dispatch::worker::{Life, life};

use super::authors::KnownAgents;

/// Each requirement with what is counted for it; nothing that was rolled back is counted. `ending`: work that is about to end is taken
/// for ended.
pub(super) fn gather(
    snapshot: &Snapshot<'_>,
    run: &Run,
    requirements: &[Requirement],
    ending: Option<&DispatchId>,
) -> Result<Vec<(Requirement, Facts)>> {
    let mut gathered = Vec::new();
    for requirement in requirements {
        let mut facts = count(snapshot, run, requirement)?;
        // It is named when an agent stops: its work is `running` until the stop is recorded, and must not block its own gate.
        let is_left = |unfinished: &OpenWork| ending.is_none_or(|id| unfinished.id != id.as_str());
        match &mut facts {
            Facts::Work(work) => {
                let all = work.unfinished.len();
                work.unfinished.retain(is_left);
                // What is about to end is the work that the gate asks about.
                work.has_ended |= work.unfinished.len() < all;
            }
            Facts::Dispatches(unfinished) => unfinished.retain(is_left),
            Facts::Artifacts(_) | Facts::NewestVerdict(_) | Facts::Verdicts { .. } => {}
        }
        gathered.push((requirement.clone(), facts));
    }
    Ok(gathered)
}

fn count(snapshot: &Snapshot<'_>, run: &Run, requirement: &Requirement) -> Result<Facts> {
    let phase = requirement.phase.as_ref().map(ic_base::Label::as_str);
    let run_id = &run.id;
    if requirement.by == AuthorRule::Other {
        return count_of_others(snapshot, run, requirement.check, phase);
    }
    Ok(match requirement.check {
        GateCheck::ArtifactExists => Facts::Artifacts(present(run, registered(snapshot, run, phase)?)),
        GateCheck::AgentsComplete => Facts::Work(work(snapshot, run, phase)?),
        GateCheck::DispatchesComplete => Facts::Dispatches(dispatches(snapshot, run_id, phase)?),
        GateCheck::VerdictExists => {
            let newest = dispatch::verdicts(snapshot, run_id, phase)?.into_iter().next();
            Facts::NewestVerdict(newest.map(|(id, verdict, _)| (id.short().to_owned(), verdict == WorkVerdict::Pass)))
        }
        GateCheck::VerdictClean => {
            let (pass, fail) = dispatch::count_verdicts(snapshot, run_id, phase)?;
            Facts::Verdicts { pass, fail }
        }
    })
}

/// As [`count`], of what others recorded than the agents that did the work.
fn count_of_others(snapshot: &Snapshot<'_>, run: &Run, check: GateCheck, phase: Option<&str>) -> Result<Facts> {
    let workers = KnownAgents::workers(snapshot, run)?;
    let is_of_others = |seq: Seq, of: Option<&DispatchId>| -> Result<bool> {
        Ok(KnownAgents::authors(snapshot, seq, of)?.are_others_than(&workers))
    };
    if check == GateCheck::ArtifactExists {
        let mut of_others = Vec::new();
        for artifact in registered(snapshot, run, phase)? {
            if is_of_others(artifact.seq, artifact.dispatch_id.as_ref())? {
                of_others.push(artifact);
            }
        }
        return Ok(Facts::Artifacts(present(run, of_others)));
    }
    let mut of_others = Vec::new();
    for (id, verdict, seq) in dispatch::verdicts(snapshot, &run.id, phase)? {
        if is_of_others(seq, Some(&id))? {
            of_others.push((id.short().to_owned(), verdict == WorkVerdict::Pass));
        }
    }
    Ok(if check == GateCheck::VerdictClean {
        let passing = of_others.iter().filter(|(_, is_pass)| *is_pass).count();
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        Facts::Verdicts { pass: number(passing), fail: number(of_others.len() - passing) }
    } else {
        // `verdicts` has the newest first, and the newest decides.
        Facts::NewestVerdict(of_others.into_iter().next())
    })
}

fn registered(snapshot: &Snapshot<'_>, run: &Run, phase: Option<&str>) -> Result<Vec<Artifact>> {
    let filter = artifact::ArtifactFilter { phase, status: Some(artifact::ArtifactStatus::Active) };
    artifact::list(snapshot, &run.id, filter)
}

/// The artifacts that count, by whether their files exist now: the record of a file that never came, or is gone, proves nothing.
fn present(run: &Run, registered: Vec<Artifact>) -> Artifacts {
    // The project of a run on another machine cannot be looked at from here: there the record decides.
    let is_here = run.project_dir.is_dir();
    let mut found = Artifacts::default();
    for artifact in registered {
        if is_here && is_absent(&artifact, run) {
            found.missing.push(artifact.path.to_string_lossy().into_owned());
        } else {
            found.present += 1;
        }
    }
    found
}

/// Whether an artifact is a file that does not exist. A path that cannot be looked at may be there.
fn is_absent(artifact: &Artifact, run: &Run) -> bool {
    use std::io::ErrorKind;
    let is_file = !artifact.is_address() && !artifact.is_redacted();
    is_file
        && std::fs::metadata(run.project_dir.join(&artifact.path))
            // `NotADirectory`: `docs/plan.md` was registered, and `docs` is a file now.
            .is_err_and(|e| matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
}

fn work(snapshot: &Snapshot<'_>, run: &Run, phase: Option<&str>) -> Result<CountedWork> {
    let mut unfinished: Vec<OpenWork> = agent::active(snapshot, &run.id, phase)?.iter().map(unfinished_agent).collect();
    unfinished.extend(dispatches(snapshot, &run.id, phase)?);
    // What is unfinished decides; only a gate that nothing holds is asked whether anything was done at all.
    let has_ended = !unfinished.is_empty() || {
        let since: Seq = ic_ledger::events::entered(snapshot, &run.id, phase.unwrap_or(&run.phase))?;
        agent::has_ended_since(snapshot, &run.id, since)? || dispatch::has_ended_since(snapshot, &run.id, since)?
    };
    Ok(CountedWork { unfinished, has_ended })
}

fn dispatches(snapshot: &Snapshot<'_>, run_id: &RunId, phase: Option<&str>) -> Result<Vec<OpenWork>> {
    Ok(dispatch::unfinished(snapshot, run_id, phase)?.iter().map(unfinished_dispatch).collect())
}

fn unfinished_agent(agent: &Agent) -> OpenWork {
    let short_id = agent.id.short().to_owned();
    OpenWork {
        kind: "agent",
        id: agent.id.to_string(),
        name: agent.name.clone().or_else(|| Some(agent.kind.clone())),
        status: agent.status.as_str(),
        command: format!("ic run agent update {short_id} --status completed"),
        other_commands: vec![format!("ic run agent update {short_id} --status failed")],
        short_id,
    }
}

fn unfinished_dispatch(dispatch: &Dispatch) -> OpenWork {
    let short_id = dispatch.id.short().to_owned();
    let complete = format!("ic dispatch complete {short_id}");
    let fail = |why: &str| format!("ic dispatch fail {short_id} --error {why}");
    // A worker that ended without a word did not say that it had done its work.
    let (command, other) = match life(dispatch) {
        Some(Life::Gone) => (fail("'its process is gone'"), complete),
        Some(Life::Lost) => (fail("'it has been silent for too long' --timed-out"), complete),
        Some(Life::Alive | Life::Unknown) | None => (complete, fail("WHY")),
    };
    OpenWork {
        kind: "dispatch",
        id: dispatch.id.to_string(),
        name: dispatch.work.name.clone().or_else(|| dispatch.work.agent_type.clone()),
        status: dispatch.status.as_str(),
        command,
        other_commands: vec![other],
        short_id,
    }
}
