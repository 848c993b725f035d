//! The differences of two states of a working tree: the list of files, and the content of the first ones.

use std::cmp::Ordering;
use std::path::Path;
use std::time::{Duration, Instant};

use ic_base::{Code, Diagnosis, Result};
use ic_checkpoint::capture::CaptureProgress;
use ic_checkpoint::diff::{DiffState, Difference, TreeChange};
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_checkpoint::rootfs::RootDir;
use ic_checkpoint::unified_diff::is_binary;
use ic_worktree::contents::Contents;
use ic_worktree::{Changes, Which, Workspace};
use maud::{Markup, html};

use crate::image;
use crate::lines::{self, compared};
use crate::page_request::Ask;
use crate::params::Params;
use crate::text::{EMPTY, PageLine, counted, in_hex, of_hex, path, query, size};

/// The most files on one page.
const FILES: usize = 60;

/// The most files whose lines are on the page at once. They have at most [`LINES`] lines in all, none is larger than [`SMALL`], and
/// comparing them takes at most [`PATIENCE`].
const OPENED: usize = 12;
const LINES: usize = 240;
const SMALL: u64 = 96 << 10;
const PATIENCE: Duration = Duration::from_millis(60);

/// The most lines of a file on a page of its own, if it has at most [`LARGE`] bytes.
const LINES_OF_ONE: usize = 4_000;
const LARGE: u64 = 1 << 20;

/// Makes the address of the page that a list is a part of, with these pairs in its query.
pub(crate) type ChangeAddress<'a> = dyn Fn(&[(&str, &str)]) -> String + 'a;

/// The layout of changed lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// Old and new lines below each other.
    Unified,
    /// The old lines beside the new ones.
    Split,
}

impl View {
    pub(crate) fn of(params: &Params) -> Self {
        if params.get("view") == Some("split") { Self::Split } else { Self::Unified }
    }
}

/// Two states that are compared: a checkpoint, and a later one or the working tree.
pub(crate) struct TreePair<'p> {
    pub(crate) from: &'p str,
    pub(crate) to: Option<&'p str>,
}

impl TreePair<'_> {
    /// The two sides, for the query of an address.
    pub(crate) fn pairs(&self) -> Vec<(&'static str, &str)> {
        vec![("from", self.from), ("to", self.to.unwrap_or("now"))]
    }
}

/// The numbers of changed files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Tally {
    added: usize,
    modified: usize,
    deleted: usize,
    /// Directories that are no files: empty ones that were made or removed, and ones with other permissions.
    directories: usize,
}

/// The differences on one page, and the numbers of all.
struct Part {
    tally: Tally,
    shown: Vec<Difference>,
    has_more: bool,
}

/// Opens both sides and calls `work`. Locks are released when it returns.
fn opened<T>(
    ask: &Ask<'_>,
    pair: &TreePair<'_>,
    work: impl FnOnce(&Workspace<'_>, Changes, Contents<'_>) -> Result<T>,
) -> Result<T> {
    let from: CheckpointRecord = ask.read(|snapshot| record::resolve(snapshot, pair.from))?;
    let settings = ask.app.project.settings(ask.kernel, &from.root)?;
    let workspace = Workspace::open(ask.kernel, from.root.clone(), &settings)?;
    let to = pair.to.map(Which::Id);
    let compared = ic_worktree::diff(&workspace, Which::Id(from.id.as_str()), to, &[], &CaptureProgress::default())?;
    // The newer side of a comparison with the tree is in no checkpoint: its content is read from the files.
    let tree = if pair.to.is_none() { Some(RootDir::open(&workspace.root)?) } else { None };
    let contents = Contents { objects: &workspace.objects, tree: tree.as_ref(), texts: &[] };
    let read: Vec<_> = [&compared.from].into_iter().chain(&compared.to).map(|one| &one.id).collect();
    let done = work(&workspace, compared.changes, contents);
    // A prune beside this request may remove what is read; the error then says so.
    ic_worktree::unless_pruned(&workspace, &read, done)
}

/// The files that differ, from the one after `?after=` on, with the lines of the first ones. `at`: makes the address of this page.
pub(crate) fn list(ask: &Ask<'_>, pair: &TreePair<'_>, at: &ChangeAddress<'_>) -> Result<Markup> {
    let after = ask.params.get("after").and_then(of_hex);
    let view = View::of(ask.params);
    opened(ask, pair, |workspace, changes, contents| {
        let part = part(workspace, changes, after.as_deref())?;
        let mut budget = Budget { files: OPENED, lines: LINES, until: Instant::now() + PATIENCE };
        let mut files = Vec::new();
        for difference in &part.shown {
            files.push(file_card(pair, contents, difference, view, &mut budget)?);
        }
        let more = part.shown.last().filter(|_| part.has_more).map(|last| {
            let after = in_hex(&last.path);
            at(&[of_view(view), vec![("after", after.as_str())]].concat())
        });
        Ok(html! {
            (head(&part.tally, view, after.is_some(), at))
            @for file in &files { (file) }
            @if let Some(more) = more { p.more { a rel="next" href=(more) { "More files" } } }
        })
    })
}

fn part(workspace: &Workspace<'_>, changes: Changes, after: Option<&[u8]>) -> Result<Part> {
    let mut part = Part { tally: Tally::default(), shown: Vec::new(), has_more: false };
    ic_worktree::changes_of(workspace, changes, &mut |difference| {
        // All differences are visited, even where few are shown: the head of the list counts them.
        let Some(change) = difference.change() else { return Ok(()) };
        match change {
            _ if difference.is_of_directory() => part.tally.directories += 1,
            TreeChange::Added => part.tally.added += 1,
            TreeChange::Deleted => part.tally.deleted += 1,
            TreeChange::Modified | TreeChange::Mode | TreeChange::Attributes | TreeChange::Type => {
                part.tally.modified += 1;
            }
        }
        // The last path decides, and not a number: files that came or went since the last page shift no entry.
        if after.is_some_and(|after| order(&difference.path, after) != Ordering::Greater) {
            return Ok(());
        }
        // The rest is only counted, so that memory does not grow with it.
        if part.shown.len() < FILES {
            part.shown.push(difference);
        } else {
            part.has_more = true;
        }
        Ok(())
    })?;
    Ok(part)
}

/// The order of differences: by the names of directories, from the outermost on.
fn order(one: &[u8], other: &[u8]) -> Ordering {
    one.split(|byte| *byte == b'/').cmp(other.split(|byte| *byte == b'/'))
}

fn head(tally: &Tally, view: View, is_later: bool, at: &ChangeAddress<'_>) -> Markup {
    let all = tally.added + tally.modified + tally.deleted;
    if all + tally.directories == 0 {
        return html! { p.empty { "No file differs." } };
    }
    html! {
        div.changes-head {
            p {
                strong { (counted(all, "file")) }
                @if tally.added > 0 { span.created { "+" (tally.added) " added" } }
                @if tally.modified > 0 { span.modified { "~" (tally.modified) " modified" } }
                @if tally.deleted > 0 { span.deleted { "−" (tally.deleted) " deleted" } }
                @if tally.directories > 0 { span.quiet { (counted(tally.directories, "directory")) } }
            }
            (tabs(view, at))
        }
        @if is_later { p { a href=(at(&[])) { "From the first file" } } }
    }
}

/// The two ways in which lines are shown.
pub(crate) fn tabs(view: View, at: &ChangeAddress<'_>) -> Markup {
    html! {
        nav.tabs aria-label="How lines are shown" {
            a href=(at(&[])) aria-current=[(view == View::Unified).then_some("true")] { "Unified" }
            a href=(at(&[("view", "split")])) aria-current=[(view == View::Split).then_some("true")] { "Side by side" }
        }
    }
}

/// What is left of the limits on lines that are shown at once.
struct Budget {
    files: usize,
    lines: usize,
    until: Instant,
}

fn file_card(
    pair: &TreePair<'_>,
    contents: Contents<'_>,
    difference: &Difference,
    view: View,
    budget: &mut Budget,
) -> Result<Markup> {
    let address = format!(
        "/compare/file?{}",
        query(&[pair.pairs(), vec![("path", &in_hex(&difference.path))], of_view(view)].concat())
    );
    let is_small = sizes(difference).into_iter().all(|bytes| bytes <= SMALL);
    // The time counts, too: comparing is slow for some contents, and a page should come at once.
    let is_shown = is_small && budget.files > 0 && budget.lines > 0 && Instant::now() < budget.until;
    let body = if is_shown {
        budget.files -= 1;
        // Some lines in any case: a file of which only two are shown helps no reader.
        let (body, lines) = content(contents, difference, view, budget.lines.max(20))?;
        budget.lines = budget.lines.saturating_sub(lines);
        body
    } else {
        html! { p.later { a href=(address) { "Show" } @if !is_small { span.quiet { " " (sizes_said(difference)) } } } }
    };
    Ok(html! {
        section.file data-row {
            header {
                (letter(difference))
                h2 { a href=(address) data-open { (PageLine(&path(&difference.path))) } }
                @if let Some(note) = note(difference) { span.quiet { (note) } }
            }
            (body)
        }
    })
}

fn of_view(view: View) -> Vec<(&'static str, &'static str)> {
    if view == View::Split { vec![("view", "split")] } else { Vec::new() }
}

/// One file of a comparison, up to the limits.
///
/// Errors: `path_not_found` if the file does not differ.
pub(crate) fn one(ask: &Ask<'_>, pair: &TreePair<'_>, wanted: &[u8], view: View) -> Result<Markup> {
    opened(ask, pair, |workspace, changes, contents| {
        let mut found = None;
        ic_worktree::changes_of(workspace, changes, &mut |difference| {
            if difference.path == wanted && difference.change().is_some() {
                found = Some(difference);
            }
            Ok(())
        })?;
        let Some(difference) = found else {
            return Err(Diagnosis::new(Code::PathNotFound, format!("{} does not differ.", path(wanted))));
        };
        // Images may be larger than texts: they are shown by the browser, and not compared line by line.
        let is_over = |most: u64| sizes(&difference).into_iter().any(|bytes| bytes > most);
        let body = if is_over(image::LARGEST) {
            None
        } else if is_over(LARGE) {
            image::seen(contents, &difference)?
        } else {
            Some(content(contents, &difference, view, LINES_OF_ONE)?.0)
        };
        let body = body.unwrap_or_else(|| too_large(pair, &difference));
        Ok(html! {
            section.file {
                header {
                    (letter(&difference))
                    h2 { (PageLine(&path(wanted))) }
                    @if let Some(note) = note(&difference) { span.quiet { (note) } }
                }
                (body)
            }
        })
    })
}

fn too_large(pair: &TreePair<'_>, difference: &Difference) -> Markup {
    let to = pair.to.map(|to| format!(" {}", crate::flags::short(to))).unwrap_or_default();
    let from = crate::flags::short(pair.from);
    // A name that is not UTF-8 cannot be typed from the page, so the command then shows all files.
    let name = std::str::from_utf8(&difference.path).ok().map(ic_base::shell_word);
    html! {
        p.later { "Too large for a page: " (sizes_said(difference)) ". To see it:" }
        pre { code { "ic checkpoint diff " (from) (to) @if let Some(name) = &name { " -- " (PageLine(name)) } } }
    }
}

/// The content of both sides, and the number of lines that it takes.
fn content(contents: Contents<'_>, difference: &Difference, view: View, at_most: usize) -> Result<(Markup, usize)> {
    let change = difference.change();
    if matches!(change, Some(TreeChange::Mode | TreeChange::Attributes)) || has_directory(difference) {
        return Ok((EMPTY, 0));
    }
    if contents.is_gone(difference)? {
        // Said instead of an error, so that the other files of the page are shown.
        return Ok((html! { p.later { "Its content was purged, or lost." } }, 0));
    }
    let (old, new) = (contents.older(difference)?, contents.newer(difference)?);
    let images = [(&difference.before, &old), (&difference.after, &new)];
    if image::is_among(&images) {
        // Pictures count as a few lines, so that many of them use up the page, too.
        return Ok((image::pictures(contents, images)?, 4));
    }
    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
    if is_binary(&old) || is_binary(&new) {
        return Ok((html! { p.later { "Not text: " (sizes_said(difference)) "." } }, 1));
    }
    let lines = compared(&old, &new, at_most);
    let drawn = match view {
        View::Unified => lines::unified(&lines),
        View::Split => lines::side_by_side(&lines),
    };
    Ok((drawn, lines.rows.len()))
}

fn has_directory(difference: &Difference) -> bool {
    let sides = [difference.before.as_ref(), difference.after.as_ref()];
    difference.change() != Some(TreeChange::Type)
        && sides.into_iter().flatten().any(|state| matches!(state, DiffState::Directory { .. }))
}

fn sizes(difference: &Difference) -> Vec<u64> {
    let sides = [difference.before.as_ref(), difference.after.as_ref()];
    let size = |state: &DiffState| match state {
        DiffState::File { size, .. } => Some(*size),
        DiffState::Symlink(_) | DiffState::Directory { .. } | DiffState::Passed(_) => None,
    };
    sides.into_iter().flatten().filter_map(size).collect()
}

fn sizes_said(difference: &Difference) -> String {
    let of = |state: &Option<DiffState>| match state {
        Some(DiffState::File { size: bytes, .. }) => size(*bytes),
        Some(DiffState::Symlink(_)) => "a link".to_owned(),
        Some(DiffState::Directory { .. }) => "a directory".to_owned(),
        Some(DiffState::Passed(_)) | None => "nothing".to_owned(),
    };
    format!("{} → {}", of(&difference.before), of(&difference.after))
}

fn letter(difference: &Difference) -> Markup {
    let (letter, class, said) = match difference.change() {
        Some(TreeChange::Added) => ("+", "created", "added"),
        Some(TreeChange::Deleted) => ("−", "deleted", "deleted"),
        Some(TreeChange::Mode) => ("m", "modified", "other permissions"),
        Some(TreeChange::Attributes) => ("o", "modified", "other owner or attributes"),
        Some(TreeChange::Type) => ("t", "modified", "something else"),
        Some(TreeChange::Modified) | None => ("~", "modified", "modified"),
    };
    html! { span.letter.(class) title=(said) role="img" aria-label=(said) { (letter) } }
}

/// A note about a change other than that of the content.
fn note(difference: &Difference) -> Option<String> {
    let mode = |state: &Option<DiffState>| match state {
        Some(DiffState::File { mode, .. } | DiffState::Directory { mode, .. }) => Some(*mode),
        _ => None,
    };
    match (difference.change(), mode(&difference.before), mode(&difference.after)) {
        (Some(TreeChange::Mode | TreeChange::Modified), Some(old), Some(new)) if old != new => {
            Some(format!("mode {old:o} → {new:o}"))
        }
        (Some(TreeChange::Attributes), ..) => Some("owner, attributes or other names".to_owned()),
        (Some(TreeChange::Type), ..) => Some(sizes_said(difference)),
        _ if has_directory(difference) => Some("empty directory".to_owned()),
        _ => None,
    }
}

/// The root of a comparison, if it is not this project's.
pub(crate) fn place(root: &Path, own: &Path) -> Markup {
    if root == own {
        EMPTY
    } else {
        html! { span.path { " in " (PageLine(&crate::text::of_path(root))) } }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::order;

    #[test]
    fn files_come_in_the_order_of_their_directories() {
        assert_eq!(order(b"a/b", b"a-b"), Ordering::Less, "the directory `a` comes before the file `a-b`");
        assert_eq!(order(b"a", b"a/b"), Ordering::Less);
        assert_eq!(order(b"a/b", b"a/b"), Ordering::Equal);
        assert_eq!(order(b"b", b"a/z"), Ordering::Greater);
    }
}
