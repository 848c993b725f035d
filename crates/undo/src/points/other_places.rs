//! What is on record in other places of the project: other work trees that share the ledger.

use std::path::{Path, PathBuf};

use ic_base::{Result, shell_word};
use ic_kernel::Kernel;
use ic_ledger::{Snapshot, project_root};
use ic_phase::run;

/// The most work trees that are named with their commands.
const NAMED: usize = 3;

/// One line with the commands that show what other work trees of the project have on record; `None`: no other one has anything.
pub fn elsewhere(kernel: &Kernel, snapshot: &Snapshot<'_>) -> Result<Option<String>> {
    let places = places(snapshot, &kernel.project.root)?;
    let log = |place: &PathBuf| format!("ic -C {} log", shell_word(&place.to_string_lossy()));
    let commands: Vec<String> = places.iter().take(NAMED).map(log).collect();
    let (what, more) = match places.len() {
        0 => return Ok(None),
        1 => ("another work tree of this project has entries", String::new()),
        n if n > NAMED => ("other work trees of this project have entries", format!("; and {} more", n - NAMED)),
        _ => ("other work trees of this project have entries", String::new()),
    };
    Ok(Some(format!("{what}: {}{more}", commands.join("; "))))
}

/// The other work trees in which a run was begun and that still exist, those of the newest runs first.
fn places(snapshot: &Snapshot<'_>, own: &Path) -> Result<Vec<PathBuf>> {
    let mut places: Vec<PathBuf> = Vec::new();
    for project in run::projects(snapshot)? {
        let place = project_root(&project);
        if place != own && place.is_dir() && !places.contains(&place) {
            places.push(place);
        }
    }
    Ok(places)
}
