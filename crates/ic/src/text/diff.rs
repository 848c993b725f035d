//! Prints the differences of two trees.

use std::cell::RefCell;
use std::io::{self, Write};

use anstyle::Style;
use ic_base::{Diagnose, Result};
use ic_checkpoint::diff::{DiffState, Difference, TreeChange};
use ic_checkpoint::unified_diff::{self, DiffSide, LineKind};
use ic_ledger::path_from_bytes;
use ic_worktree::contents::{Contents, LONGEST};

use super::{counted, path_text, style, styled, visible};

/// The form of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiffShape {
    Unified,
    NameStatus,
    Stat,
}

/// Prints differences. It decides about colours itself. The content of files is printed unchanged, except on a terminal, where control
/// characters become escapes.
pub(crate) struct Printer<'o> {
    pub(crate) contents: Contents<'o>,
    pub(crate) colours: bool,
    pub(crate) is_terminal: bool,
    /// Changes that the patch names only in a comment: `git apply` does not make them.
    pub(crate) unheld: RefCell<Vec<String>>,
}

impl Printer<'_> {
    /// Prints the differences in a form, after the requested paths that cannot be compared. Those are a part of the text itself, because
    /// without any difference it would be empty, as if the sides were equal.
    pub(crate) fn write(
        &self,
        shape: DiffShape,
        differences: &[Difference],
        skipped: &[(Vec<u8>, String)],
        sink: &mut dyn Write,
    ) -> Result<()> {
        for (path, reason) in skipped {
            let name = path_text(&path_from_bytes(path));
            let line = match shape {
                DiffShape::NameStatus => format!("?\t{name}"),
                DiffShape::Stat => format!(" {name} | not compared: {reason}"),
                DiffShape::Unified => {
                    self.unheld.borrow_mut().push(format!("{name}: not compared: {reason}"));
                    format!("# {name}: not compared: {reason}")
                }
            };
            written(writeln!(sink, "{}", self.styled(style::DIM, &line)))?;
        }
        match shape {
            DiffShape::NameStatus => differences.iter().try_for_each(|d| self.name_status(d, sink)),
            DiffShape::Stat => self.statistics(differences, sink),
            DiffShape::Unified => differences.iter().try_for_each(|d| self.patch(d, sink)),
        }
    }

    fn styled(&self, style: Style, text: &str) -> String {
        if self.colours { styled(style, text) } else { text.to_owned() }
    }

    fn name_status(&self, difference: &Difference, sink: &mut dyn Write) -> Result<()> {
        let Some(change) = difference.change() else { return Ok(()) };
        let (style, letter) = match change {
            TreeChange::Added => (style::GOOD, "A"),
            TreeChange::Modified => (style::WARN, "M"),
            TreeChange::Deleted => (style::BAD, "D"),
            TreeChange::Mode => (style::DIM, "P"),
            TreeChange::Attributes => (style::DIM, "O"),
            TreeChange::Type => (style::WARN, "T"),
        };
        written(writeln!(sink, "{}\t{}", self.styled(style, letter), path_text(&path_from_bytes(&difference.path))))
    }

    fn statistics(&self, differences: &[Difference], sink: &mut dyn Write) -> Result<()> {
        let (mut files, mut all_added, mut all_removed) = (0, 0, 0);
        for difference in differences {
            let name = path_text(&path_from_bytes(&difference.path));
            files += 1;
            if let Some(what) = without_lines(difference) {
                written(writeln!(sink, " {name} | {what}"))?;
                continue;
            }
            if is_too_large(difference) || self.contents.is_gone(difference)? {
                let why = if is_too_large(difference) { TOO_LARGE } else { GONE };
                written(writeln!(sink, " {name} | {why}"))?;
                continue;
            }
            let old = self.contents.older(difference)?.unwrap_or_default();
            let new = self.contents.newer(difference)?.unwrap_or_default();
            let line = if unified_diff::is_binary(&old) || unified_diff::is_binary(&new) {
                format!("{} -> {} bytes", old.len(), new.len())
            } else {
                let (added, removed) = unified_diff::stat(&old, &new);
                all_added += added;
                all_removed += removed;
                format!(
                    "{} {}",
                    self.styled(style::GOOD, &format!("+{added}")),
                    self.styled(style::BAD, &format!("-{removed}"))
                )
            };
            written(writeln!(sink, " {name} | {line}"))?;
        }
        written(writeln!(
            sink,
            " {} changed, {} added, {} removed",
            counted(files, "path"),
            counted(all_added, "line"),
            counted(all_removed, "line")
        ))
    }

    /// The numbers of lines that a change adds and removes; `None` where lines say nothing: a binary or too large file, a directory, a mode.
    pub(crate) fn line_counts(&self, difference: &Difference) -> Result<Option<(usize, usize)>> {
        if without_lines(difference).is_some() || is_too_large(difference) || self.contents.is_gone(difference)? {
            return Ok(None);
        }
        let old = self.contents.older(difference)?.unwrap_or_default();
        let new = self.contents.newer(difference)?.unwrap_or_default();
        let is_binary = unified_diff::is_binary(&old) || unified_diff::is_binary(&new);
        Ok((!is_binary).then(|| unified_diff::stat(&old, &new)))
    }

    /// The comment for what a patch cannot express, and whether a patch for the rest follows it.
    fn margin(&self, difference: &Difference) -> Result<(Option<String>, bool)> {
        let (before, after) = (difference.before.as_ref(), difference.after.as_ref());
        let name = path_text(&path_from_bytes(&difference.path));
        let any = |fits: fn(&DiffState) -> bool| [before, after].into_iter().flatten().any(fits);
        let change = difference.change();
        let is_directory = |state: &DiffState| matches!(state, DiffState::Directory { .. });
        // The first case that fits counts. Only the fourth asks the store: a change of the mode needs no content, so none can be gone.
        Ok(if any(is_directory) && change != Some(TreeChange::Type) {
            let what = without_lines(difference).unwrap_or_default();
            (Some(format!("directory {name}: {what}")), false)
        } else if change == Some(TreeChange::Attributes) {
            (Some(format!("{name}: attributes")), false)
        } else if is_too_large(difference) {
            (Some(format!("{name}: {TOO_LARGE}")), false)
        } else if change != Some(TreeChange::Mode) && self.contents.is_gone(difference)? {
            (Some(format!("{name}: {GONE}")), false)
        } else if let Some(mode) = unheld_directory(difference) {
            (Some(format!("directory {name}: {mode}")), true)
        } else {
            let mode = unheld_mode(difference).map(|mode| format!("{name}: {mode}"));
            (mode, change != Some(TreeChange::Mode) || git_mode(before) != git_mode(after))
        })
    }

    fn patch<'d>(&self, difference: &'d Difference, sink: &mut dyn Write) -> Result<()> {
        let (margin, has_patch) = self.margin(difference)?;
        if let Some(margin) = margin {
            written(writeln!(sink, "{}", self.styled(style::DIM, &format!("# {margin}"))))?;
            self.unheld.borrow_mut().push(margin);
        }
        if !has_patch {
            return Ok(());
        }
        // A directory has no patch of its own: its files are differences themselves.
        let file =
            |state: &'d Option<DiffState>| state.as_ref().filter(|state| !matches!(state, DiffState::Directory { .. }));
        let (before, after) = (file(&difference.before), file(&difference.after));
        let is_mode = difference.change() == Some(TreeChange::Mode);
        // If only the mode changed, no line is shown, so the content is not read.
        let (old, new) = if is_mode {
            (Some(Vec::new()), Some(Vec::new()))
        } else {
            (self.contents.of(before)?, self.contents.newer(difference)?)
        };
        if [&old, &new].into_iter().flatten().any(|content| unified_diff::is_binary(content)) {
            let name = path_text(&path_from_bytes(&difference.path));
            self.unheld.borrow_mut().push(format!("{name}: a binary file, for which git apply refuses all of it"));
        }
        let side = |state: Option<&DiffState>, content| DiffSide { content, mode: git_mode(state) };
        let (old, new) = (side(before, old.as_deref()), side(after, new.as_deref()));
        let mut line = |kind: LineKind, text: &[u8]| -> io::Result<()> {
            let shown = self.is_terminal.then(|| visible(text));
            let text = shown.as_deref().map_or(text, str::as_bytes);
            let style = match kind {
                _ if !self.colours => return sink.write_all(text),
                LineKind::Header => style::STRONG,
                LineKind::Added => style::GOOD,
                LineKind::Removed => style::BAD,
                LineKind::Context => return sink.write_all(text),
            };
            // The newline comes after the end of the colour, so that no colour runs on into the next line.
            let (body, end) = text.strip_suffix(b"\n").map_or((text, &b""[..]), |body| (body, b"\n"));
            write!(sink, "{}", style.render())?;
            sink.write_all(body)?;
            write!(sink, "{}", style.render_reset())?;
            sink.write_all(end)
        };
        if before.is_some() && after.is_some() && (old.mode & 0o170_000) != (new.mode & 0o170_000) {
            // For a patch, a file that became a link is one that was deleted and one that was added.
            let none = DiffSide { content: None, mode: 0 };
            return written(
                unified_diff::unified(&difference.path, old, none, &mut line)
                    .and_then(|()| unified_diff::unified(&difference.path, none, new, &mut line)),
            );
        }
        written(unified_diff::unified(&difference.path, old, new, &mut line))
    }
}

const GONE: &str = "its content was purged, or lost";
const TOO_LARGE: &str = "too large to be compared";

/// Whether a side is longer than what is read of it.
fn is_too_large(difference: &Difference) -> bool {
    let sides = [&difference.before, &difference.after];
    sides.into_iter().flatten().any(|state| matches!(state, DiffState::File { size, .. } if *size > LONGEST))
}

/// The change of a path whose content did not change; `None` if it did.
fn without_lines(difference: &Difference) -> Option<String> {
    use DiffState::{Directory, File};
    let (before, after) = (difference.before.as_ref(), difference.after.as_ref());
    let modes = match (before, after) {
        (Some(File { mode, .. }), Some(File { mode: other, .. }))
        | (Some(Directory { mode, .. }), Some(Directory { mode: other, .. })) => Some((mode, other)),
        _ => None,
    };
    let is_directory = [before, after].into_iter().flatten().any(|state| matches!(state, Directory { .. }));
    match (difference.change()?, modes) {
        (TreeChange::Mode, Some((mode, other))) => Some(format!("mode {mode:o} -> {other:o}")),
        (TreeChange::Attributes, _) => Some("owner, attributes or other names".to_owned()),
        (TreeChange::Added, _) if is_directory => Some("empty directory, added".to_owned()),
        (TreeChange::Deleted, _) if is_directory => Some("empty directory, deleted".to_owned()),
        (TreeChange::Type, _) => Some(format!("{} -> {}", kind(before), kind(after))),
        _ => None,
    }
}

fn kind(state: Option<&DiffState>) -> &'static str {
    match state {
        Some(DiffState::File { .. }) => "file",
        Some(DiffState::Symlink(_)) => "link",
        Some(DiffState::Directory { .. }) => "directory",
        Some(DiffState::Passed(_)) | None => "nothing",
    }
}

/// The mode that git would record.
fn git_mode(state: Option<&DiffState>) -> u32 {
    match state {
        Some(DiffState::Symlink(_)) => 0o120_000,
        Some(DiffState::File { mode, .. }) if mode & 0o100 != 0 => 0o100_755,
        _ => 0o100_644,
    }
}

/// Whether git would create a file with this mode under some usual umask: it records only whether a file is executable.
fn is_usual(mode: u32) -> bool {
    matches!(mode, 0o644 | 0o664 | 0o755 | 0o775)
}

/// Permission bits that a patch does not restore: `git apply` writes each file anew, even if its bits did not change.
fn unheld_mode(difference: &Difference) -> Option<String> {
    let mode = |state: &Option<DiffState>| match state {
        Some(DiffState::File { mode, .. }) => Some(*mode),
        _ => None,
    };
    match (mode(&difference.before), mode(&difference.after)) {
        (Some(mode), Some(other)) if mode != other => {
            // Git records one bit. If that changes, and both modes are usual, the patch has all of the change.
            let is_held = git_mode(difference.before.as_ref()) != git_mode(difference.after.as_ref());
            (!is_held || !is_usual(mode) || !is_usual(other)).then(|| format!("mode {mode:o} -> {other:o}"))
        }
        (Some(mode), _) | (None, Some(mode)) => (!is_usual(mode)).then(|| format!("mode {mode:o}")),
        (None, None) => None,
    }
}

/// What a patch does not express about a directory that took a file's place, or left it to a file.
fn unheld_directory(difference: &Difference) -> Option<String> {
    let of = |state: &Option<DiffState>, what: &str| match state {
        Some(DiffState::Directory { is_empty: true, .. }) => Some(format!("empty directory, {what}")),
        Some(DiffState::Directory { mode, .. }) if !is_usual(*mode) => Some(format!("mode {mode:o}, {what}")),
        _ => None,
    };
    of(&difference.before, "deleted").or_else(|| of(&difference.after, "added"))
}

fn written(result: io::Result<()>) -> Result<()> {
    result.while_doing(|| "writing to standard output".to_owned())
}
