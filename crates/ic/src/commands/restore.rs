//! `ic restore`

use std::path::PathBuf;

use ic_checkpoint::restore::Strategy;
use ic_kernel::journal::Force;
use ic_worktree::Workspace;

use crate::commands::checkpoint::RestoreFlags;
use crate::commands::prelude::*;

/// Restore files as they were before a piece of work, no matter who changed them.
///
/// What stands there now is saved in a safety checkpoint first, so `ic redo` brings it back. Only these paths change; the
/// record, commits and effects of the work stay. To undo the work itself: ic undo.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic restore src/main.rs --dry-run      # as before the newest work that changed it
  ic restore src/main.rs --yes
  ic restore --before 3f9a12c4 src docs/a.md --yes
  ic restore --before @~2 . --yes       # the whole tree
  ic restore --before good config.toml --yes   # as in the checkpoint good
  ic redo --yes                         # bring back what stood there

Exit 1 while others work in the tree, unless --force is given. Exit 4 when a path could not be restored: it is named.")]
pub(crate) struct RestoreArgs {
    /// Before this work, as ic log prints it [default: the newest work that changed the paths]
    #[arg(long, value_name = "REF")]
    before: Option<String>,
    /// The paths, with what is below them; . for all
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    plan: PlanFlags,
    /// Go ahead while workers still run
    #[arg(long)]
    force: bool,
}

impl RestoreArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let checkpoint = self.checkpoint(session)?;
        let flags = RestoreFlags {
            plan: self.plan.clone(),
            strategy: Some(Strategy::FilesOnly),
            // The caller names the paths: who changed them last does not matter, and what stands there is saved first.
            force: Force { files: true, workers: self.force, ..Force::default() },
            paths: self.paths.clone(),
            keep_theirs: false,
        };
        flags.restore(session, &checkpoint)
    }

    /// The checkpoint before the work that is named, or before the newest work that changed the paths.
    fn checkpoint(&self, session: &CliSession) -> Result<String> {
        let kernel = session.kernel()?;
        let named = |text: &str| ic_undo::points::checkpoint_meant(&kernel, None, text).map(|id| id.to_string());
        if let Some(before) = &self.before {
            return named(before);
        }
        let settings = session.checkpoint_settings(&kernel)?;
        let workspace = Workspace::here(&kernel, &settings)?;
        let mut newest: Option<(String, PathBuf)> = None;
        for (path, shown) in ic_worktree::paths_in_root(&workspace, &self.paths)?.into_iter().zip(&self.paths) {
            // Each path is looked up by itself: all must lead to the same work, because one restore goes to one checkpoint.
            let found = ic_undo::newest_change(&workspace, session.options(), &[path])?;
            let reference = found.ok_or_else(|| unchanged(shown))?.dispatch.id.short().to_owned();
            match &newest {
                Some((other, path)) if *other != reference => {
                    return Err(apart((path, other), (shown, &reference)));
                }
                _ => newest = Some((reference, shown.clone())),
            }
        }
        // clap requires a path, so one was found.
        named(&newest.map(|(reference, _)| reference).unwrap_or_default())
    }
}

fn unchanged(path: &std::path::Path) -> Diagnosis {
    let path = ic_base::display::path_text(path);
    Diagnosis::new(Code::PointNotFound, format!("No recorded work that is not undone changed {path}."))
        .hint("name what it is to be as before: ic restore --before REF PATH; see: ic log, ic checkpoint list")
        .detail("path", path.as_str())
}

fn apart((one, before): (&std::path::Path, &str), (other, before_other): (&std::path::Path, &str)) -> Diagnosis {
    let (one, other) = (ic_base::display::path_text(one), ic_base::display::path_text(other));
    let message = format!("{one} was changed last by {before}, and {other} by {before_other}.");
    Diagnosis::new(Code::Usage, message)
        .hint(format!("restore them one by one, or name one moment for both: ic restore --before {before} PATH..."))
}
