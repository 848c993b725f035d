//! Whether a run's project is at home in this ledger. A copy of a repository has a ledger whose runs still name the original, and a backup of
//! a ledger names the project whose ledger it is a copy of.

use std::fs;
use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnosis, Result};
use ic_ledger::{Lookup, locate};
use ic_phase::Run;

use crate::kernel::Kernel;

/// Errors: `foreign_root` when the run's project has a ledger of its own and this one is that of another project: what is done there
/// belongs into the other one; or when this one is a copy of that.
pub fn require_own_project(kernel: &Kernel, run: &Run) -> Result<()> {
    //     the run's project      this ledger
    //     has no other ledger    any                                  allowed
    //     has another ledger     is a copy of that one                refused: a backup
    //     has another ledger     is that of the caller's project      refused: a copied repository
    //     has another ledger     was named (--db, IC_DB)              allowed
    let own = real(kernel.ledger.path());
    let Some(other) = ledger_of(&run.project_dir).filter(|ledger| *ledger != own) else { return Ok(()) };
    let is_backup = kernel.ledger.is_also(&other);
    // A ledger that was named, and is not its project's own, may have the runs of several.
    if !is_backup && ledger_of(&kernel.project.root).is_none_or(|ledger| ledger != own) {
        return Ok(());
    }
    let project = run.project_dir.display();
    Err(Diagnosis::new(
        Code::ForeignRoot,
        format!("The run {} is of {project}, which has a ledger of its own.", run.id.short()),
    )
    .hint(format!("work there: ic -C {project} ...; to roll back the record of this copy alone: --layer=workflow"))
    .detail("root", project.to_string()))
}

/// The ledger that commands in a directory use, if there is one.
fn ledger_of(directory: &Path) -> Option<PathBuf> {
    let place = locate(&Lookup { db: None, env_db: None, directory }).ok()?;
    Some(real(&place.db))
}

fn real(path: &Path) -> PathBuf {
    // One ledger may be found by two paths, through a link.
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
