//! `ic dispatch ...`

mod beat;
mod cancel;
mod complete;
mod create;
mod fail;
mod list;
mod record;
mod show;
mod start;
mod tokens;

use std::path::PathBuf;

use ic_dispatch::dispatch::DispatchEnding;
use ic_kernel::Kernel;
use ic_ledger::Snapshot;
use ic_ops::dispatch;
use ic_phase::Run;
use ic_worktree::{CaptureSettings, Warning};

use crate::background_sweep;
use crate::commands::prelude::*;
use crate::views::dispatch::DispatchJson;

verbs! {
    pub(crate) enum DispatchVerb {
        Create(create::DispatchCreateArgs),
        Start(start::DispatchStartArgs),
        Beat(beat::BeatArgs),
        Complete(complete::DispatchCompleteArgs),
        Fail(fail::Fail),
        Cancel(cancel::DispatchCancelArgs),
        Record(record::DispatchRecordArgs),
        Tokens(tokens::DispatchTokensArgs),
        Show(show::DispatchShowArgs),
        List(list::DispatchListArgs),
    }
}

/// The settings for the tree around the work of a dispatch; `None` if it is not captured.
struct Kept {
    settings: Option<CaptureSettings>,
    project: PathBuf,
}

/// The settings and the project of a dispatch. The configuration of its run's project counts, not the caller's.
fn kept(session: &CliSession, kernel: &Kernel, id: &str, wanted: bool) -> Result<Kept> {
    kept_of(session, kernel, wanted, |snapshot| {
        let dispatch = ic_dispatch::dispatch::resolve(snapshot, id)?;
        ic_phase::run::get(snapshot, &dispatch.run_id)
    })
}

/// The same for a dispatch that is about to be created in a run.
fn kept_for_run(session: &CliSession, kernel: &Kernel, run: &str, wanted: bool) -> Result<Kept> {
    kept_of(session, kernel, wanted, |snapshot| kernel.run(snapshot, run))
}

fn kept_of(
    session: &CliSession,
    kernel: &Kernel,
    wanted: bool,
    run: impl Fn(&Snapshot<'_>) -> Result<Run>,
) -> Result<Kept> {
    // A ledger on a server has no checkpoints, so nothing is captured.
    if !kernel.ledger.is_of_one_host() {
        return Ok(Kept { settings: None, project: kernel.project.root.clone() });
    }
    let project = kernel.read(|snapshot| run(snapshot))?.project_dir;
    Ok(Kept { settings: session.kept_along_the_way(kernel, &project, wanted)?, project })
}

/// Starts the sweep of old content that a capture may have made due.
fn swept(session: &mut CliSession, kernel: &Kernel, kept: &Kept) {
    background_sweep::sweep(session, kernel, kept.settings.as_ref(), &kept.project);
}

/// As [`swept`], and prints the warnings of the capture.
fn captured(session: &mut CliSession, kernel: &Kernel, kept: &Kept, warnings: &[Warning]) {
    swept(session, kernel, kept);
    session.output.warn_all(warnings);
}

/// Ends a dispatch. `captures`: whether the working tree is captured as the work left it.
fn finish(
    session: &mut CliSession,
    id: &str,
    door: &ForceFlags,
    ending: &DispatchEnding<'_>,
    captures: bool,
) -> Result<ExitStatus> {
    let kernel = session.kernel_for(door.as_deref())?;
    let kept = kept(session, &kernel, id, captures)?;
    // The state of a database is recorded where work begins; where it ends, only the tree is captured.
    let capturing = kept.settings.as_ref().filter(|settings| settings.checkpointing.auto);
    let (dispatch, warnings) = dispatch::finish(&kernel, id, ending, capturing)?;
    captured(session, &kernel, &kept, &warnings);
    session.output.record(&DispatchJson::from(&dispatch).warned(&warnings), || views::dispatch::one_line(&dispatch))
}
