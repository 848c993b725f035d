//! `ic run set`

use ic_ops::run;
use ic_phase::run::RunSettings;

use crate::commands::prelude::*;
use crate::views::run::RunJson;

/// Change settings of a run. A rollback does not restore them.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("change").required(true).multiple(true))]
#[command(after_help = "Examples:
  ic run set @ --auto-advance false
  ic run set @ --complexity 4
  ic run set @ --metadata-merge '{\"ticket\": 12, \"draft\": null}'    # null removes a key")]
pub(crate) struct Set {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
    /// How much work it is
    #[arg(long, value_name = "1-5", group = "change", value_parser = clap::value_parser!(i64).range(1..=5))]
    complexity: Option<i64>,
    /// Advance automatically; if false, an advance pauses
    #[arg(long, value_name = "BOOL", group = "change")]
    auto_advance: Option<bool>,
    /// Merge these keys into its metadata
    #[arg(long, value_name = "JSON", group = "change")]
    metadata_merge: Option<String>,
    #[command(flatten)]
    door: ForceFlags,
}

impl Set {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let merge = self.metadata_merge.as_deref();
        let settings = RunSettings {
            complexity: self.complexity,
            auto_advance: self.auto_advance,
            metadata_merge: merge.map(|json| input::json_object("--metadata-merge", json)).transpose()?,
        };
        let kernel = session.kernel_for(self.door.as_deref())?;
        let run = run::set(&kernel, &self.run, &settings)?;
        session.output.record(&RunJson::from(&run), || views::run::card(&run, &[], &[]))
    }
}
