//! Random histories: a dry run is the real run and changes nothing, and the ledger agrees with a model that is written
//! from the rules alone.

mod model;

use std::ops::ControlFlow;

use ic_base::{Code, Diagnosis, DispatchId, RunId};
use ic_dispatch::dispatch::{self, DispatchEnding, DispatchFilter, DispatchWork};
use ic_dispatch::report::{DispatchReport, ReportedCommit};
use ic_dispatch::{DispatchStatus, WorkVerdict};
use ic_kernel::{Caller, Kernel};
use ic_ops::advance::{self, advance, override_gate};
use ic_phase::gate::Gates;
use ic_phase::{Chain, run, skip};
use ic_runtrack::{AgentStatus, agent, artifact};
use ic_testkit::{cases, kernel, new_run};
use ic_undo::code::{self, CodeScope};
use ic_undo::{RollbackRequest, RollbackSummary, RollbackTarget, rollback};
use proptest::prelude::*;

use model::{Model, Refusal, Row};

const PHASES: [&str; 5] = ["a", "b", "c", "d", "e"];
const GATES: &str = r#"{"b→c": [{"check": "artifact_exists"}], "d→e": [{"check": "verdict_exists"}]}"#;

/// One thing that a user does. Numbers name phases and earlier things, modulo how many there are.
#[derive(Debug, Clone)]
enum Deed {
    Advance,
    Override,
    Skip(usize),
    Dispatch(Option<usize>),
    Start(usize),
    End(usize, Option<bool>),
    Record(usize),
    Artifact(Option<usize>),
    Agent,
    EndAgent(usize),
    Rollback { to: usize, include: bool },
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        6 => Just(Deed::Advance),
        3 => Just(Deed::Override),
        2 => (0..5_usize).prop_map(Deed::Skip),
        3 => prop::option::of(0..5_usize).prop_map(Deed::Dispatch),
        1 => any::<usize>().prop_map(Deed::Start),
        3 => (any::<usize>(), prop::option::of(any::<bool>())).prop_map(|(i, v)| Deed::End(i, v)),
        3 => any::<usize>().prop_map(Deed::Record),
        3 => prop::option::of(0..5_usize).prop_map(Deed::Artifact),
        1 => Just(Deed::Agent),
        1 => any::<usize>().prop_map(Deed::EndAgent),
        4 => (0..5_usize, any::<bool>()).prop_map(|(to, include)| Deed::Rollback { to, include }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(300, 20_000), ..ProptestConfig::default() })]
    #[test]
    fn the_ledger_agrees_with_the_model(deeds in prop::collection::vec(deed(), 1..40)) {
        let mut world = World::new();
        for deed in &deeds {
            world.act(deed);
            world.compare();
        }
        world.replay();
    }
}

/// The ledger and the model, side by side.
struct World {
    kernel: Kernel,
    run: String,
    model: Model,
    commits: usize,
}

impl World {
    fn new() -> Self {
        let kernel = kernel();
        let mut new = new_run("a,b,c,d,e");
        new.gates = Gates::parse(GATES, &Chain::parse("a,b,c,d,e").unwrap()).unwrap();
        let run = ic_ops::run::create(&kernel, &new, None).unwrap().run.id.to_string();
        Self { kernel, run, model: Model::new(), commits: 0 }
    }

    fn act(&mut self, deed: &Deed) {
        match *deed {
            Deed::Advance => {
                let moved =
                    advance(&self.kernel, &self.run, &advance::AdvanceRequest::default(), None).map(|o| o.advanced());
                assert_eq!(moved.map_err(|e| refusal(&e)), self.model.advance(false));
            }
            Deed::Override => {
                let moved = override_gate(&self.kernel, &self.run, "because", None).map(|o| o.advanced());
                assert_eq!(moved.map_err(|e| refusal(&e)), self.model.advance(true));
            }
            Deed::Skip(phase) => {
                let done = ic_ops::run::skip(&self.kernel, &self.run, PHASES[phase], "no").map(|(.., new)| new);
                assert_eq!(done.map_err(|e| refusal(&e)), self.model.skip(phase));
            }
            Deed::Dispatch(phase) => {
                let made = ic_ops::dispatch::create(
                    &self.kernel,
                    &self.run,
                    phase.map(|p| PHASES[p]),
                    &DispatchWork::default(),
                    None,
                );
                let id = made.map(|(d, _)| d.id.to_string()).map_err(|e| refusal(&e));
                self.model.dispatch(id, phase);
            }
            Deed::Start(i) => self.on_dispatch(
                i,
                |kernel, id| ic_ops::dispatch::start(kernel, id, None, None, None).map(|_| ()),
                Model::start,
            ),
            Deed::End(i, verdict) => {
                let said = verdict.map(|pass| if pass { WorkVerdict::Pass } else { WorkVerdict::Fail });
                let ending = DispatchEnding::Completed { summary: None, verdict: said };
                self.on_dispatch(
                    i,
                    |kernel, id| ic_ops::dispatch::finish(kernel, id, &ending, None).map(|_| ()),
                    |model, i| model.end(i, verdict),
                );
            }
            Deed::Record(i) => self.record(i),
            Deed::Artifact(phase) => self.artifact(phase),
            Deed::Agent => {
                let id = ic_ops::agent::add(&self.kernel, &self.run, "codex", None).map(|a| a.id.to_string());
                self.model.agent(id.map_err(|e| refusal(&e)));
            }
            Deed::EndAgent(i) => {
                if let Some(row) = pick(&self.model.agents, i) {
                    let done = ic_ops::agent::finish(&self.kernel, &self.model.agents[row].id, AgentStatus::Completed);
                    assert_eq!(done.map(|_| ()).map_err(|e| refusal(&e)), self.model.end_agent(row));
                }
            }
            Deed::Rollback { to, include } => self.roll_back(to, include),
        }
    }

    fn on_dispatch(
        &mut self,
        i: usize,
        real: impl FnOnce(&Kernel, &str) -> Result<(), Diagnosis>,
        model: impl FnOnce(&mut Model, usize) -> Result<(), Refusal>,
    ) {
        if let Some(row) = pick(&self.model.dispatches, i) {
            let done = real(&self.kernel, &self.model.dispatches[row].id).map_err(|e| refusal(&e));
            assert_eq!(done, model(&mut self.model, row));
        }
    }

    fn artifact(&mut self, phase: Option<usize>) {
        let request = ic_ops::artifact::ArtifactRequest {
            path: std::path::Path::new("no/such/file"),
            phase: phase.map(|p| PHASES[p]),
            kind: "file",
        };
        let id =
            ic_ops::artifact::add(&self.kernel, &self.run, &request, None).map(|added| added.artifact.id.to_string());
        self.model.artifact(id.map_err(|e| refusal(&e)), phase);
    }

    fn record(&mut self, i: usize) {
        let Some(row) = pick(&self.model.dispatches, i) else { return };
        self.commits += 1;
        let sha = format!("{:040x}", self.commits);
        let report =
            DispatchReport { commits: vec![ReportedCommit { sha: sha.clone(), files: vec![] }], files: vec![] };
        let (_, recorded) = ic_ops::dispatch::record(&self.kernel, &self.model.dispatches[row].id, &report).unwrap();
        assert_eq!(recorded.late, self.model.record(row, sha));
    }

    fn roll_back(&mut self, to: usize, include: bool) {
        let request = |dry_run, expect_plan| RollbackRequest {
            run: &self.run,
            to: RollbackTarget::Phase { name: PHASES[to], include_target: include },
            reason: None,
            dry_run,
            expect_plan,
        };
        let before = self.changes();
        let dry = rollback(&self.kernel, &request(true, None));
        assert_eq!(self.changes(), before, "a dry run changes no row");
        let expected = self.model.plan(to, include);
        let dry = match (dry, expected) {
            (Ok(dry), Ok(expected)) => {
                assert_eq!(named(&dry), expected);
                dry
            }
            (Err(error), Err(expected)) => {
                let code = error.code();
                assert_eq!(refusal(&error), expected);
                let real = rollback(&self.kernel, &request(false, None)).map_err(|e| e.code());
                assert_eq!(real.err(), Some(code), "the real call refuses what the dry run refuses");
                return;
            }
            (dry, expected) => panic!("{dry:?} where the model says {expected:?}"),
        };
        let stale = rollback(&self.kernel, &request(false, Some("another plan"))).map_err(|e| e.code());
        assert_eq!(stale.err(), Some(Code::PlanChanged));
        let real = rollback(&self.kernel, &request(false, Some(&dry.plan_hash))).unwrap();
        assert_eq!(RollbackSummary { done: None, ..real }, dry, "the preview is the plan");
        self.model.apply(to, include);
        for include in [false, true] {
            self.compare_code(to, include);
        }
    }

    /// The commits that came after the cut, newest first.
    fn compare_code(&self, to: usize, include: bool) {
        let scope = CodeScope::After { to_phase: PHASES[to], include_target: include };
        let report = self.kernel.read(|s| code::report(s, &run::get(s, &self.id())?, scope)).unwrap();
        assert_eq!(report.revert_order, self.model.commits_after(to, include));
    }

    /// Rows changed by this connection so far.
    fn changes(&self) -> i64 {
        self.kernel.read(|s| s.query_opt("SELECT total_changes()", &[], |row| row.get(0))).unwrap().unwrap()
    }

    fn id(&self) -> RunId {
        RunId::from_ledger(self.run.clone())
    }

    fn compare(&self) {
        let id = self.id();
        let filter = DispatchFilter { run_id: Some(&id), phase: None, status: None, limit: i64::MAX };
        self.kernel
            .read(|s| {
                let run = run::get(s, &id)?;
                assert_eq!(run.phase, PHASES[self.model.at]);
                assert_eq!(run.epoch, self.model.epoch);
                assert_eq!(run.status.as_str(), if self.model.completed { "completed" } else { "active" });
                let skipped: Vec<usize> =
                    skip::skipped_phases(s, &id)?.iter().map(|p| run.chain.index_of(p).unwrap()).collect();
                assert_eq!(skipped, self.model.standing_skips());

                let mut dispatches = dispatch::list(s, &filter)?;
                dispatches.reverse();
                let found: Vec<_> = dispatches
                    .iter()
                    .map(|d| (d.id.to_string(), d.status.as_str().to_owned(), d.rolled_back_by.is_some()))
                    .collect();
                assert_eq!(found, states(&self.model.dispatches));

                let found: Vec<_> = artifact::list(s, &id, artifact::ArtifactFilter::default())?
                    .iter()
                    .map(|a| (a.id.to_string(), a.status.as_str().to_owned(), a.rolled_back_by.is_some()))
                    .collect();
                assert_eq!(found, states(&self.model.artifacts));

                let found: Vec<_> = agent::list(s, &id)?
                    .iter()
                    .map(|a| (a.id.to_string(), a.status.as_str().to_owned(), a.rolled_back_by.is_some()))
                    .collect();
                assert_eq!(found, states(&self.model.agents));
                Ok(())
            })
            .unwrap();
    }

    /// Replaying the events gives the stored phase and epoch, and the chain of hashes holds.
    fn replay(&self) {
        let (mut phase, mut epoch) = (PHASES[0].to_owned(), 0);
        self.kernel
            .read(|s| {
                ic_ledger::events::each_of_run(s, &self.id(), |event| {
                    match event.event_type.as_str() {
                        "advance" | "override" => {
                            assert_eq!((event.from.as_deref(), event.epoch), (Some(phase.as_str()), Some(epoch)));
                            phase = event.to.unwrap();
                        }
                        "rollback" => {
                            assert_eq!(event.from.as_deref(), Some(phase.as_str()));
                            (phase, epoch) = (event.to.unwrap(), epoch + 1);
                        }
                        _ => {}
                    }
                    Ok(ControlFlow::Continue(()))
                })?;
                assert_eq!(ic_ledger::events::verify(s, None)?.first_bad, None);
                Ok(())
            })
            .unwrap();
        assert_eq!((phase.as_str(), epoch), (PHASES[self.model.at], self.model.epoch));
    }
}

fn pick<T>(rows: &[T], i: usize) -> Option<usize> {
    (!rows.is_empty()).then(|| i % rows.len())
}

fn states(rows: &[Row]) -> Vec<(String, String, bool)> {
    rows.iter().map(|r| (r.id.clone(), r.status.to_owned(), r.marked)).collect()
}

/// The ids that a plan names, by kind, in its order.
fn named(rollback: &RollbackSummary) -> model::Plan {
    let plan = &rollback.plan;
    let ids = |list: &[dispatch::Dispatch]| list.iter().map(|d| d.id.to_string()).collect::<Vec<_>>();
    let counts = plan.counts();
    let named = model::Plan {
        phases: plan.cut.phases.clone(),
        cancelled: ids(&plan.cancelled_dispatches),
        marked: ids(&plan.marked_dispatches),
        artifacts: plan.artifacts.iter().map(|a| a.id.to_string()).collect(),
        failed_agents: plan.failed_agents.iter().map(|a| a.id.to_string()).collect(),
        marked_agents: plan.marked_agents.iter().map(|a| a.id.to_string()).collect(),
        skips: plan.skips.iter().map(|s| s.phase.clone()).collect(),
    };
    assert_eq!(counts.dispatches, named.cancelled.len() + named.marked.len());
    assert_eq!(counts.artifacts, named.artifacts.len());
    assert_eq!(counts.agents, named.failed_agents.len() + named.marked_agents.len());
    assert_eq!((counts.phases, counts.skips), (named.phases.len(), named.skips.len()));
    named
}

fn refusal(error: &Diagnosis) -> Refusal {
    Refusal(error.code().as_str())
}

#[test]
fn a_rolled_back_dispatch_closes_the_door() {
    let mut world = World::new();
    world.act(&Deed::Artifact(Some(1)));
    world.act(&Deed::Advance);
    world.act(&Deed::Dispatch(None));
    let id = world.model.dispatches[0].id.clone();
    world.act(&Deed::Rollback { to: 0, include: false });
    world.kernel.caller = Some(Caller { reference: id.clone(), explicit: true });
    let refused = advance(&world.kernel, &world.run, &advance::AdvanceRequest::default(), None).map_err(|e| e.code());
    assert_eq!(refused.err(), Some(Code::StaleDispatch));
    let status = world.kernel.read(|s| dispatch::get(s, &DispatchId::from_ledger(id))).unwrap().status;
    assert_eq!(status, DispatchStatus::Cancelled);
}
