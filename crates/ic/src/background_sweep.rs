//! Starts the sweep of old content in a process of its own, so that no call waits for it.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use ic_base::Result;
use ic_kernel::Kernel;
use ic_worktree::{CaptureSettings, Workspace, retention};

use crate::session::CliSession;

/// Starts `ic checkpoint prune` in the background if a sweep is due. The sweep continues after this call has ended.
/// `settings`: those with which the call captured; `None`: it captured nothing, and no sweep is started.
///
/// A failure does not fail the call: a later call tries again within the hour, and `ic checkpoint prune` can be called by hand.
pub(crate) fn sweep(session: &CliSession, kernel: &Kernel, settings: Option<&CaptureSettings>, project: &Path) {
    let _ = settings.map(|settings| start(session, kernel, settings, project));
}

fn start(session: &CliSession, kernel: &Kernel, settings: &CaptureSettings, project: &Path) -> Result<()> {
    // This is asked first, because usually nothing is due, and the question opens no store.
    if !retention::is_sweep_due(kernel) {
        return Ok(());
    }
    let root = ic_worktree::root_of(project);
    let workspace = Workspace::open(kernel, root.clone(), settings)?;
    // Claimed before it is started: of two calls at the same time only one starts a sweep.
    if !retention::claim_sweep(&workspace)? {
        return Ok(());
    }
    // Without the path of this program nothing is started; a later call tries again.
    let Ok(program) = std::env::current_exe() else { return Ok(()) };
    let mut prune = Command::new(program);
    prune.args(["checkpoint", "prune", "--automatic", "--quiet", "--db"]).arg(session.place()?.name());
    prune.arg("-C").arg(root);
    // The path is absolute: a relative IC_CONFIG would be read from the directory that `-C` names.
    if let Some(config) = session.named_config() {
        prune.env("IC_CONFIG", config);
    }
    // Without a caller: the dispatch of this call may have ended by then, and a sweep is no dispatch's work.
    prune.env_remove("IC_DISPATCH");
    // A group of its own, so that Ctrl-C does not reach it; no open streams, so that a pipe's reader does not wait for it.
    prune.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Not waited for: the sweep continues after this call.
    let _ = prune.spawn();
    Ok(())
}
