use std::path::PathBuf;

use ic_base::{Code, RunId, Timestamp};

use super::{Expectation, PhaseStep, check_rollback, check_skip, decide, destination};
use crate::gate::{Artifacts, AuthorRule, Facts, GateCheck, GateVerdict, Gates, Requirement, Tier, evaluate};
use crate::{Chain, Run, RunStatus};

fn run(status: RunStatus, phase: &str) -> Run {
    Run {
        id: RunId::from_ledger("01900000-0000-7000-8000-000000000001".into()),
        seq: 1,
        goal: "g".into(),
        status,
        phase: phase.into(),
        chain: Chain::parse("a,b,c,d").unwrap(),
        project_dir: PathBuf::from("/p"),
        complexity: None,
        auto_advance: true,
        gates: Gates::default(),
        scope_id: None,
        metadata: "{}".into(),
        epoch: 2,
        created_at: Timestamp(0),
        updated_at: Timestamp(0),
        completed_at: None,
    }
}

fn failing() -> GateVerdict {
    let requirement =
        Requirement { check: GateCheck::ArtifactExists, phase: None, tier: Tier::Hard, by: AuthorRule::Any };
    evaluate(&[(requirement, Facts::Artifacts(Artifacts::default()))], Tier::Hard)
}

#[test]
fn an_advance_moves_blocks_or_pauses() {
    let active = run(RunStatus::Active, "b");
    assert_eq!(decide(&active, "c", &GateVerdict::unasked()), PhaseStep::Advance { completes: false });
    assert_eq!(decide(&active, "d", &GateVerdict::unasked()), PhaseStep::Advance { completes: true });
    assert_eq!(decide(&active, "c", &failing()), PhaseStep::Block);
    let manual = Run { auto_advance: false, ..active };
    assert_eq!(decide(&manual, "c", &GateVerdict::unasked()), PhaseStep::Pause);
    assert_eq!(decide(&manual, "c", &failing()), PhaseStep::Pause);
}

#[test]
fn every_status_answers_an_advance() {
    let code = |status| destination(&run(status, "b"), &[]).map_err(|e| e.code());
    assert_eq!(code(RunStatus::Active), Ok("c".into()));
    assert_eq!(code(RunStatus::Completed), Err(Code::TerminalPhase));
    assert_eq!(code(RunStatus::RollingBack), Err(Code::RollingBack));
    assert_eq!(code(RunStatus::Cancelled), Err(Code::RunNotActive));
    assert_eq!(code(RunStatus::Failed), Err(Code::RunNotActive));
    assert_eq!(destination(&run(RunStatus::Active, "b"), &["c".into()]).unwrap(), "d");
}

#[test]
fn expectations_name_phase_and_epoch() {
    let run = run(RunStatus::Active, "b");
    let check = |text: &str| Expectation::parse(text, &run.chain).and_then(|e| e.check(&run)).map_err(|e| e.code());
    assert_eq!(check("b"), Ok(()));
    assert_eq!(check("b@2"), Ok(()));
    assert_eq!(check("b@1"), Err(Code::StalePhase));
    assert_eq!(check("a"), Err(Code::StalePhase));
    assert_eq!(check("z"), Err(Code::UnknownPhase));
    assert_eq!(check("b@x"), Err(Code::UnknownPhase));
}

#[test]
fn only_a_phase_ahead_can_be_skipped() {
    let code = |phase| check_skip(&run(RunStatus::Active, "b"), phase).map_err(|e| e.code());
    assert_eq!(code("c"), Ok(()));
    assert_eq!(code("b"), Err(Code::AlreadyAtPhase));
    assert_eq!(code("a"), Err(Code::PhasePassed));
    assert_eq!(code("d"), Err(Code::TerminalPhase));
    assert_eq!(code("z"), Err(Code::UnknownPhase));
}

#[test]
fn each_refusal_of_a_rollback_has_its_own_code() {
    let check = |status, target, include| check_rollback(&run(status, "c"), target, include).map_err(|e| e.code());
    assert_eq!(check(RunStatus::Active, "a", false), Ok(vec!["b".into(), "c".into()]));
    assert_eq!(check(RunStatus::Active, "b", true), Ok(vec!["b".into(), "c".into()]));
    assert_eq!(check(RunStatus::Active, "c", true), Ok(vec!["c".into()]));
    assert_eq!(check(RunStatus::Active, "c", false), Err(Code::AlreadyAtPhase));
    assert_eq!(check(RunStatus::Active, "d", false), Err(Code::PhaseAhead));
    assert_eq!(check(RunStatus::Active, "z", false), Err(Code::UnknownPhase));
    assert_eq!(check(RunStatus::Completed, "a", false), Ok(vec!["b".into(), "c".into()]));
    let ended = Run { phase: "d".into(), ..run(RunStatus::Completed, "d") };
    assert_eq!(check_rollback(&ended, "d", true).map_err(|e| e.code()), Err(Code::TerminalPhase));
    assert_eq!(check(RunStatus::Cancelled, "a", false), Err(Code::RunNotActive));
    assert_eq!(check(RunStatus::Failed, "a", false), Err(Code::RunNotActive));
    assert_eq!(check(RunStatus::RollingBack, "a", false), Err(Code::RollingBack));
}
