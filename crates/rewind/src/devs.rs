//! Making the tables of the profile `devs`.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use ic_base::{Code, Diagnose, Diagnosis, Result};

use crate::config::{DEVS_SQL, Profile, RewindTarget};
use crate::plan::CutPlan;
use crate::schema::Catalog;
use crate::session::DatabaseSession;

/// Makes the four tables of seed 002 in the database at `path`, which is made if it does not exist. Returns whether they were made, and not
/// there already.
///
/// Errors: `table_conflict` when some of the names belong to other tables: nothing is changed; `path_not_found` without its directory;
/// `foreign_database`, `busy`, `permission_denied`.
pub fn create_devs(path: &Path, busy_timeout: Duration) -> Result<bool> {
    match File::options().write(true).create_new(true).open(path) {
        // An empty file is an empty database.
        Ok(_) => {}
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
        Err(e) if e.kind() == ErrorKind::NotFound => return Err(no_directory(path)),
        Err(e) => return Err(e).while_doing(|| format!("making {}", path.display())),
    }
    let session = DatabaseSession::open(path, busy_timeout)?;
    let target = RewindTarget::of_profile(Profile::Devs, path);
    session.writing(|| {
        let before = Catalog::read(&session)?;
        let has = |name: &str| before.tables.iter().any(|table| table.name.eq_ignore_ascii_case(name));
        let taken: Vec<&str> = target.tables.iter().map(|table| table.name.as_str()).filter(|name| has(name)).collect();
        if taken.is_empty() {
            session.batch(DEVS_SQL)?;
        }
        // Tables that were there may be those of an earlier call: they are, if the profile's plan fits them. An error rolls back what
        // was made here.
        CutPlan::new(&target, &Catalog::read(&session)?).map_err(|misfit| {
            Diagnosis::new(
                Code::TableConflict,
                format!(
                    "{} has tables that differ from those of the profile devs: {}.",
                    path.display(),
                    taken.join(", ")
                ),
            )
            .hint("describe what is there instead: ic rewind inspect DB --write")
            .detail("tables", taken.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
            .caused_by(misfit)
        })?;
        Ok(taken.is_empty())
    })
}

/// The directory is not made, because the path may be mistyped: the configuration would name a database that no application fills.
fn no_directory(path: &Path) -> Diagnosis {
    let directory = path.parent().unwrap_or(path).display().to_string();
    Diagnosis::new(Code::PathNotFound, format!("There is no directory {directory} for the database."))
        .hint(format!("make it first: mkdir -p {directory}"))
        .detail("path", path.to_string_lossy().into_owned())
}
