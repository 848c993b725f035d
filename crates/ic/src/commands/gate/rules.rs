//! `ic gate rules`

use ic_phase::Chain;
use ic_phase::gate::Gates;

use crate::commands::prelude::*;
use crate::views::gate::GateRuleJson;

/// List the gates of a run, or those of the default chain.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic gate rules
  ic gate rules @ --phase planned

The checks: artifact_exists (the phase has an artifact whose file exists), agents_complete (no agent is active, no dispatch is pending or
running), dispatches_complete (no dispatch is pending or running), verdict_exists (the newest verdict of the phase is pass),
verdict_clean (there is a verdict, and none is fail). Rolled-back records do not count. The tiers: hard blocks, soft
warns. docs/GATES.md has the JSON of --gates. An advance over a skipped phase still checks the gate of the phase that
it leaves.")]
pub(crate) struct GateRulesArgs {
    /// The run [default: the default chain]
    run: Option<String>,
    /// Only the gates for leaving this phase
    #[arg(long, value_name = "P")]
    phase: Option<String>,
}

impl GateRulesArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let (chain, gates) = match &self.run {
            Some(reference) => {
                let run = kernel.read(|snapshot| kernel.run(snapshot, reference))?;
                (run.chain, run.gates)
            }
            None => (Chain::default(), Gates::defaults()),
        };
        if let Some(phase) = &self.phase {
            chain.require(phase)?;
        }
        let records: Vec<GateRuleJson> = gates
            .iter()
            .filter(|(from, ..)| self.phase.as_deref().is_none_or(|phase| phase == *from))
            .map(GateRuleJson::from)
            .collect();
        session.output.list(&records, || views::gate::rules(&records))
    }
}
