//! `ic rewind inspect`

use std::path::PathBuf;

use ic_kernel::config::FILE_NAME;

use crate::commands::prelude::*;
use crate::views::rewind::database::RewindInspectJson;

/// Inspect a database and propose how to rewind it. Needs no ledger.
///
/// Text is the section `rewind` of a configuration, with remarks as comments; JSON also has the tables with their
/// keys, triggers and foreign keys.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic rewind inspect app.db
  ic rewind inspect app.db --write                          # into .ic.yaml
  ic rewind inspect app.db --json | jq '.tables[] | {name, order_candidates}'")]
pub(crate) struct Inspect {
    /// The database, a SQLite file
    database: PathBuf,
    /// Add the proposal to .ic.yaml, if it has no section `rewind`
    #[arg(long)]
    write: bool,
}

impl Inspect {
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let database = session.directory.join(input::path("DB", &self.database)?);
        // Without a ledger git alone says where the project ends: an inspection needs none.
        let root = match session.place() {
            Ok(place) => place.root,
            Err(_) => ic_ledger::project_root(&session.directory),
        };
        let inspection = ic_rewind::inspect(&database)?;
        let mut text = match &inspection.target {
            Some(target) => ic_undo::app_rewind::configuration_text(&root, target, &inspection.notes)?,
            None => inspection.notes.iter().map(|note| format!("# {note}\n")).collect(),
        };
        let file = session.named_config().unwrap_or_else(|| root.join(FILE_NAME));
        let written = match &inspection.target {
            Some(target) if self.write => {
                ic_undo::app_rewind::add_to_configuration(&file, &root, target, &inspection.notes)?;
                text.push_str(&format!("# written to {}\n", crate::text::path_text(&file)));
                Some(file)
            }
            _ => None,
        };
        let record = RewindInspectJson::new(&database, &inspection, written.as_deref());
        // Names of tables and columns come from the database, and may contain escape sequences.
        session.output.record(&record, || crate::text::visible(text.as_bytes()))?;
        // Exit 1 if there was nothing to propose, and so nothing was written.
        Ok(if self.write && written.is_none() { ExitStatus::No } else { ExitStatus::Done })
    }
}
