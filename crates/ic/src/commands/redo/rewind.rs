//! The undo of a rewind: its rows are restored exactly.

use ic_base::RewindId;
use ic_undo::app_rewind::{preview_undo, undo};

use crate::commands::prelude::*;
use crate::commands::rewind::DOES;
use crate::text;
use crate::views::rewind::RewindJson;

/// Undoes a rewind. If rows written since are in conflict, they are named and nothing changes. The tree stays where it is: the output names
/// the checkpoint from before the rewind, and the command that restores it.
pub(super) fn undo_rewind(
    session: &mut CliSession,
    rewind: &RewindId,
    is_dry_run: bool,
    is_sure: bool,
) -> Result<ExitStatus> {
    let kernel = session.kernel_to_change(None)?;
    let busy_timeout = session.options().busy_timeout;
    let preview = || preview_undo(&kernel, busy_timeout, rewind.as_str());
    if is_dry_run {
        let preview = preview()?;
        let text = || views::rewind::undone(&preview) + &text::to_do_it();
        return session.output.record(&RewindJson::undone(&preview), text);
    }
    let shown = || preview().map(|preview| views::rewind::undone(&preview));
    let look = format!("ic undo {} --dry-run", rewind.short());
    let question = Question { does: DOES, look: Some(&look), asks: "Restore its rows?" };
    if !session.confirm(is_sure, &question, shown)? {
        return Ok(ExitStatus::No);
    }
    let undone = undo(&kernel, busy_timeout, rewind.as_str())?;
    session.output.record(&RewindJson::undone(&undone), || views::rewind::undone(&undone))
}
