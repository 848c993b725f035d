//! `ic man`

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use ic_base::Diagnose;

use crate::cli::CommandLine;
use crate::commands::prelude::*;
use crate::man::{ManualPage, pages};
use crate::text::{counted, path_text};
use crate::views::man::ManJson;

/// Write the manual pages into a directory: one for `ic`, each noun and each verb.
///
/// The directory is created if it is missing. All pages are written, or none. Pages without changes are not rewritten,
/// and other files are left alone.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic man ~/.local/share/man/man1     # then: man ic-run-rollback
  ic man pages                       # then: man -l pages/ic.1")]
pub(crate) struct Man {
    /// The directory, created if it is missing
    #[arg(value_name = "DIR")]
    pages: PathBuf,
}

impl Man {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let directory = session.directory.join(&self.pages);
        let pages = pages(CommandLine::command());
        let written = write(&pages, &directory)?;
        let (all, changed) = (counted(pages.len(), "page"), written.len());
        session.output.record(&ManJson::new(&directory, pages.len(), written), || match changed {
            0 => format!("The manual is already there: {all} in {}\n", path_text(&directory)),
            _ => format!("Wrote {changed} of {all} into {}\n", path_text(&directory)),
        })
    }
}

/// Writes the pages that are missing or differ, and returns their names.
///
/// Errors: `invalid_value` if `directory` is no directory and cannot be made. If it or a page cannot be written, nothing is changed.
fn write(pages: &[ManualPage], directory: &Path) -> Result<Vec<String>> {
    // Remembered, so that a failure leaves no empty directory behind.
    let is_new = !directory.is_dir();
    fs::create_dir_all(directory).or_else(|error| match error.kind() {
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => Err(not_a_directory(directory, "is not a directory")),
        _ => Err(error).while_doing(|| format!("making the directory {}", directory.display())),
    })?;
    let is_same =
        |page: &&ManualPage| fs::read(directory.join(&page.name)).is_ok_and(|text| text == page.text.as_bytes());
    let changed: Vec<&ManualPage> = pages.iter().filter(|page| !is_same(page)).collect();
    let result = if changed.is_empty() { Ok(()) } else { lay(&changed, directory) };
    if result.is_err() && is_new {
        let _ = fs::remove_dir(directory);
    }
    result.map(|()| changed.iter().map(|page| page.name.clone()).collect())
}

/// Writes all pages, then renames each. After the first rename, only a failure of the directory itself leaves some pages old.
fn lay(pages: &[&ManualPage], directory: &Path) -> Result<()> {
    // A directory in the place of a page would fail its rename after other pages were replaced.
    if let Some(place) = pages.iter().map(|page| directory.join(&page.name)).find(|place| place.is_dir()) {
        return Err(not_a_directory(&place, "is a directory, where a page belongs"));
    }
    // The stage is within the directory, because a rename works within one file system only. Its name begins with a dot, so that man does
    // not find it if it stays.
    let stage = tempfile::Builder::new().prefix(".ic-man-").tempdir_in(directory);
    let stage = stage.while_doing(|| format!("writing into {}", directory.display()))?;
    let staged = |page: &ManualPage| stage.path().join(&page.name);
    for page in pages {
        fs::write(staged(page), &page.text).while_doing(|| format!("writing {}", page.name))?;
    }
    for page in pages {
        fs::rename(staged(page), directory.join(&page.name)).while_doing(|| format!("writing {}", page.name))?;
    }
    Ok(())
}

fn not_a_directory(path: &Path, what: &str) -> Diagnosis {
    Diagnosis::new(Code::InvalidValue, format!("{} {what}.", path.display()))
        .hint("name a directory for manual pages, as in: ic man ~/.local/share/man/man1")
        .detail("value", "DIR")
}
