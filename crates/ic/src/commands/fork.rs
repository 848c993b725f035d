//! `ic fork`

use ic_base::Diagnosis;
use ic_worktree::forks::{self, Fork};
use ic_worktree::{CreateRequest, RestoreRequest, RestoreWatch, Which, Workspace};

use crate::commands::prelude::*;
use crate::views::fork::ForkJson;

/// Fork this work tree: a linked work tree beside it, with the same files.
///
/// The fork has the files as they are here now, untracked ones too, or as they were at REF. Ignored files do not come along, and nothing is
/// staged. Work in it is recorded apart and undone there. `ic adopt` merges it into this work tree, and `ic drop` removes it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic fork                        # a fork named 1, in ../PROJECT.forks/1
  cd \"$(ic fork --name try)\"
  ic fork 3f9a12c4 --name other   # as the files were before this work
  ic adopt try                   # merge what it became into this work tree
  ic drop try")]
pub(crate) struct ForkArgs {
    /// The work before which, or the checkpoint at which, the files were as in the fork [default: now]
    #[arg(value_name = "REF")]
    reference: Option<String>,
    /// The name of the fork, and of its directory [default: the next free number]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

impl ForkArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let (fork, warnings) = make(session, self.reference.as_deref(), self.name.as_deref())?;
        session.output.warn_beside_value(&warnings);
        session.output.path(&fork.root, &ForkJson::from(&fork))
    }
}

/// Makes a fork of the work tree in which a session stands.
pub(crate) fn make(
    session: &mut CliSession,
    reference: Option<&str>,
    name: Option<&str>,
) -> Result<(Fork, Vec<ic_worktree::Warning>)> {
    let kernel = session.kernel_to_change(None)?;
    let settings = session.checkpoint_settings(&kernel)?;
    let workspace = Workspace::here(&kernel, &settings)?;
    let name = match name {
        Some(name) => named(name)?,
        None => forks::free_name(&workspace.root),
    };
    let directory = forks::directory_of(&workspace.root, &name);
    let from = match reference {
        Some(reference) => {
            let id = ic_undo::points::checkpoint_meant(&kernel, None, reference)?;
            kernel.read(|snapshot| ic_worktree::find(snapshot, &workspace.root, Which::Id(id.as_str())))?
        }
        None => workspace.record_look(None)?,
    };
    forks::make(&workspace, &from, &directory)?;
    // Git makes their directories and leaves them empty.
    let has_submodules = workspace.root.join(".gitmodules").exists();
    session.within(&directory, |session| fill(session, from.id.as_str(), &name, has_submodules))
}

/// A name that can be a directory's. Errors: `invalid_value`.
fn named(name: &str) -> Result<String> {
    let label = input::optional_label("--name", Some(name))?.unwrap_or_default();
    let is_plain = !label.contains('/') && !label.starts_with(['.', '-']);
    if is_plain {
        return Ok(label);
    }
    let message = "--name must be the name of a directory: without / and with no dot or dash at its beginning.";
    Err(Diagnosis::new(Code::InvalidValue, message).detail("value", "--name"))
}

/// Gives the fork in which the session stands the files of a checkpoint, and records that it begins.
fn fill(
    session: &mut CliSession,
    checkpoint: &str,
    name: &str,
    has_submodules: bool,
) -> Result<(Fork, Vec<ic_worktree::Warning>)> {
    let kernel = session.kernel()?;
    let settings = session.checkpoint_settings(&kernel)?;
    let request = RestoreRequest {
        which: Which::Id(checkpoint),
        strategy: Some(ic_checkpoint::restore::Strategy::FilesOnly),
        force: ic_kernel::journal::Force { files: true, ..ic_kernel::journal::Force::default() },
        into: true,
        ..RestoreRequest::default()
    };
    let restored = ic_worktree::restore(&kernel, &settings, &request, &RestoreWatch::default())?;
    let request = CreateRequest { name: Some(forks::BASE), ..CreateRequest::default() };
    let created =
        ic_worktree::create(&kernel, &settings, &request, &ic_checkpoint::capture::CaptureProgress::default())?;
    let mut warnings = created.warnings;
    let left = restored.failed.iter().map(|(path, why)| (path, why));
    warnings.extend(left.map(|(path, why)| ic_worktree::Warning {
        code: "not_restored",
        message: format!("{} is not in the fork: {why}", String::from_utf8_lossy(&path.0)),
    }));
    if has_submodules {
        let message = "submodules are not checked out in the fork: git submodule update --init there".to_owned();
        warnings.push(ic_worktree::Warning { code: "submodules", message });
    }
    Ok((Fork { name: name.to_owned(), root: kernel.project.root.clone(), base: created.checkpoint }, warnings))
}
