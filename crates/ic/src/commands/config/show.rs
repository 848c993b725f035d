//! `ic config show`

use clap::Args;
use ic_base::Result;

use crate::exit::Exit;
use crate::json::ConfigJson;
use crate::render;
use crate::session::Session;

/// Show every setting in force, and its source.
///
/// The file is .ic.yaml in the project's root, or the one in `IC_CONFIG`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic config show
  ic config show --json | jq '.[\"rollback.retention.keep-last\"].value'")]
pub(crate) struct Show {}

impl Show {
    pub(crate) fn run(session: &mut Session) -> Result<Exit> {
        let loaded = session.config(&session.place()?.root)?;
        session.output.record(&ConfigJson::from(&loaded), || render::config::table(&loaded))?;
        Ok(Exit::Done)
    }
}
