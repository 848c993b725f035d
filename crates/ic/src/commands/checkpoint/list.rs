//! `ic checkpoint list`

use clap::Args;
use ic_base::Result;
use ic_ops::checkpoint::{self, Workspace};

use super::Selection;
use crate::exit::Exit;
use crate::json::CheckpointJson;
use crate::render;
use crate::session::Session;

/// List the checkpoints of this working tree, oldest first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic checkpoint list
  ic checkpoint list --run @ --json | jq -r '.[] | [.id, .phase, .created_at] | @tsv'
  ic checkpoint list --conversation \"$CHAT\"")]
pub(crate) struct List {
    #[command(flatten)]
    selection: Selection,
}

impl List {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        let kernel = session.kernel()?;
        let settings = session.checkpoint_settings(&kernel)?;
        let workspace = Workspace::here(&kernel, &settings)?;
        session.warn_of_interruption(&workspace)?;
        let run = self.selection.run(&kernel)?;
        let filter = self.selection.filter(&workspace, run.as_ref())?;
        let mut rows = render::checkpoint::Rows::default();
        let mut list = session.output.begin_list();
        checkpoint::list(&workspace, filter, |shown| {
            let record = CheckpointJson::brief(&shown.checkpoint, shown.manifest.as_ref());
            list.push(&record, || {
                rows.add(&shown.checkpoint, shown.manifest.as_ref());
                String::new()
            })
        })?;
        list.end_with(|| rows.render())?;
        Ok(Exit::Done)
    }
}
