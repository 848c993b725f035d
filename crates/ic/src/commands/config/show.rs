//! `ic config show`

use crate::commands::prelude::*;
use crate::views::config::ConfigJson;

/// Show every setting in force, and its source.
///
/// The file is .ic.yaml in the project's root, or the one in `IC_CONFIG`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic config show
  ic config show --json | jq '.[\"rollback.retention.keep-last\"].value'")]
pub(crate) struct ConfigShowArgs {}

impl ConfigShowArgs {
    #[allow(clippy::unused_self, reason = "every verb is run so")]
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let loaded = session.config(&session.place()?.root)?;
        session.output.record(&ConfigJson::from(&loaded), || views::config::table(&loaded))
    }
}
