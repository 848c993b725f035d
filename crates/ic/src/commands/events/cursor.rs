//! `ic events cursor ...`

mod commit;
mod list;
mod reset;

use ic_ledger::events::cursor::Cursor;

use crate::commands::prelude::*;
use crate::views::event::CursorJson;

verbs! {
    pub(crate) enum EventsCursorVerb {
        List(list::EventsCursorListArgs),
        Commit(commit::EventsCursorCommitArgs),
        Reset(reset::Reset),
    }
}

fn print(session: &mut CliSession, cursors: &[Cursor]) -> Result<ExitStatus> {
    let records: Vec<CursorJson> = cursors.iter().map(CursorJson::from).collect();
    session.output.list(&records, || views::event::cursors(cursors))
}
