//! `ic run create`

use std::path::PathBuf;

use ic_ops::run;
use ic_phase::Chain;
use ic_phase::gate::Gates;
use ic_phase::run::NewRun;

use crate::commands::prelude::*;
use crate::views::run::RunCreatedJson;

/// Create a run, at the first phase of its chain, and print its id.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  run=$(ic run create --goal 'Add a login')
  ic run create --goal 'Fix #12' --scope-id sprint-12 --complexity 3
  ic run create --goal 'Write docs' --phases draft,edit,done
  ic run create --goal 'Port' --phases a,b,c --gates '{\"a→b\": [{\"check\": \"artifact_exists\"}]}'

Without --phases the chain is brainstorm, brainstorm-reviewed, strategized, planned, executing, review, polish,
reflect, done, with its own gates (ic gate rules). A run with its own --phases has no gates unless --gates gives them.")]
pub(crate) struct RunCreateArgs {
    /// What the run is for
    #[arg(long, value_name = "TEXT")]
    goal: String,
    /// Its project [default: the top of the git work tree, else the ledger's directory]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Its chain of phases: a,b,c or a JSON array
    #[arg(long, value_name = "LIST")]
    phases: Option<String>,
    /// How much work it is
    #[arg(long, value_name = "1-5", value_parser = clap::value_parser!(i64).range(1..=5))]
    complexity: Option<i64>,
    /// Your own name for it, accepted as scope:NAME. The same call again answers the run that is open
    #[arg(long, value_name = "NAME")]
    scope_id: Option<String>,
    /// Your own data, a JSON object
    #[arg(long, value_name = "JSON", default_value = "{}", hide_default_value = true)]
    metadata: String,
    /// Advance automatically; if false, an advance pauses
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    auto_advance: bool,
    /// The gates of its transitions, as JSON or @FILE
    #[arg(long, value_name = "JSON|@FILE")]
    gates: Option<String>,
    #[command(flatten)]
    door: ForceFlags,
}

impl RunCreateArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let chain = self.phases.as_deref().map_or_else(|| Ok(Chain::default()), Chain::parse)?;
        let gates = match (&self.gates, &self.phases) {
            (Some(given), _) => Gates::parse(&input::inline_or_file(session, "--gates", given)?, &chain)?,
            (None, None) => Gates::defaults(),
            // The default gates are about phases of the default chain.
            (None, Some(_)) => Gates::default(),
        };
        let metadata = input::json_object("--metadata", &self.metadata)?;
        let kernel = session.kernel_for(self.door.as_deref())?;
        let project_dir = match &self.project {
            Some(project) => input::project(session, project)?,
            None => kernel.project.root.clone(),
        };
        let kept = session.kept_along_the_way(&kernel, &project_dir, true)?;
        let new = NewRun {
            goal: input::text("--goal", &self.goal)?.to_owned(),
            chain,
            project_dir,
            complexity: self.complexity,
            auto_advance: self.auto_advance,
            gates,
            scope_id: input::optional_label("--scope-id", self.scope_id.as_deref())?,
            metadata: serde_json::Value::Object(metadata).to_string(),
        };
        let created = run::create(&kernel, &new, kept.as_ref())?;
        session.output.warn_beside_value(&created.warnings);
        session.output.scalar(created.run.id.as_str(), &RunCreatedJson::from(&created))
    }
}
