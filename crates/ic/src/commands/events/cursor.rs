//! `ic events cursor ...`

mod commit;
mod list;
mod reset;

use ic_events::cursor::Cursor;

use crate::commands::prelude::*;
use crate::views::event::CursorJson;

verbs! {
    pub(crate) enum Verb {
        List(list::List),
        Commit(commit::Commit),
        Reset(reset::Reset),
    }
}

fn print(session: &mut Session, cursors: &[Cursor]) -> Result<Exit> {
    let records: Vec<CursorJson> = cursors.iter().map(CursorJson::from).collect();
    session.output.list(&records, || views::event::cursors(cursors))
}
