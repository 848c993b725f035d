//! The sweep of old content, which no call waits for.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use ic_base::Result;
use ic_kernel::Kernel;
use ic_worktree::{Settings, Workspace, retention};

use crate::session::Session;

/// Starts the sweep that retention waits for, if it does: `ic checkpoint prune`, which goes on when this call has ended.
///
/// What goes wrong is no error of the call: the sweep is made within the next hour, or by `ic checkpoint prune`.
pub(crate) fn sweep(session: &Session, kernel: &Kernel, settings: &Settings, project: &Path) {
    let _ = start(session, kernel, settings, project);
}

fn start(session: &Session, kernel: &Kernel, settings: &Settings, project: &Path) -> Result<()> {
    if !retention::is_sweep_due(kernel) {
        return Ok(());
    }
    let root = ic_worktree::root_of(project);
    let workspace = Workspace::open(kernel, root.clone(), settings)?;
    if !retention::claim_sweep(&workspace)? {
        return Ok(());
    }
    let Ok(program) = std::env::current_exe() else { return Ok(()) };
    let mut prune = Command::new(program);
    prune.args(["checkpoint", "prune", "--automatic", "--quiet", "--db"]).arg(session.place()?.name());
    prune.arg("-C").arg(root);
    if let Some(config) = session.named_config() {
        prune.env("IC_CONFIG", config);
    }
    // The dispatch of this call may have ended by then, and a sweep is nobody's work.
    prune.env_remove("IC_DISPATCH");
    // Neither an interrupt of the caller's group nor a reader who waits for the end of its output meets the sweep.
    prune.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _ = prune.spawn();
    Ok(())
}
