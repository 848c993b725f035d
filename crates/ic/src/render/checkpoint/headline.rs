//! The first line about a restore: it claims no more than was compared, and no more than was done.

use ic_worktree::{Report, Status};

use crate::render::{style, styled};

/// What became of a restore, in a line.
pub(super) fn of(report: &Report) -> String {
    let target = styled(style::STRONG, report.target.id.short());
    let but =
        if report.plan.not_kept.is_empty() && report.differs.is_empty() { "" } else { ", but not all of it" };
    let what = match (report.is_whole, report.strategy.has_files()) {
        (_, false) => "Git's state",
        (true, true) => "The tree",
        (false, true) => "What was to be restored",
    };
    let is_compared = report.plan.skipped.is_empty() && report.not_compared.is_empty();
    match report.status {
        Status::UpToDate if !is_compared && !report.is_whole => {
            format!("Nothing to do; what is named below was not compared with checkpoint {target}.\n")
        }
        Status::UpToDate if !is_compared => {
            format!("Nothing to do: all that can be restored is as checkpoint {target} has it{but}.\n")
        }
        Status::UpToDate if but.is_empty() => {
            format!("{what} is as checkpoint {target} has it; nothing to do.\n")
        }
        Status::UpToDate => format!("{what} is as checkpoint {target} has it{but}.\n"),
        Status::Partial if report.safety_id.is_none() => {
            format!("Nothing was changed: what checkpoint {target} holds could not be restored.\n")
        }
        Status::Planned => format!("Restoring checkpoint {target} ({}) would:\n", report.strategy),
        Status::Restored => format!("Restored checkpoint {target} ({}){but}.\n", report.strategy),
        Status::Partial => format!("Restored checkpoint {target} ({}) in part.\n", report.strategy),
    }
}
