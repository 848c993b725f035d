//! Checkpoints: lists, cards, trees, and what a restore does.

mod headline;
mod retention;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use ic_base::{CheckpointId, Timestamp};
use ic_checkpoint::capture::Progress;
use ic_checkpoint::manifest::{Changed, Manifest, PathText};
use ic_checkpoint::record::{Checkpoint, Kind};
use ic_checkpoint::restore::plan::Action;
use ic_store::path_from_bytes;
use ic_worktree::{GitRestore, Report, Shown, Status, Watch};

use super::{Cell, Table, counted, git, path_text, plain, refused, second, style, styled, when};
use crate::json::FileJson;

pub(crate) use retention::{pruned, purged, repaired, verified};

/// More lines than this are counted, not shown.
const SHOWN: usize = 40;

/// A list of checkpoints that is filled one by one.
pub(crate) struct Rows {
    table: Table,
    now: Timestamp,
}

impl Rows {
    /// An empty list; `now`: what ages are counted from.
    pub(crate) fn new(now: Timestamp) -> Self {
        Self { table: Table::new(&["CHECKPOINT", "KIND", "CREATED", "CHANGES", "FILES", "ABOUT"]), now }
    }

    pub(crate) fn add(&mut self, checkpoint: &Checkpoint, manifest: Option<&Manifest>) {
        self.table.row(vec![
            Cell::new(style::STRONG, checkpoint.id.short()),
            Cell::new(kind_style(checkpoint.kind), checkpoint.kind.as_str()),
            Cell::new(style::DIM, &when(self.now, checkpoint.created_at)),
            summary(manifest).as_str().into(),
            checkpoint.counts.files.to_string().as_str().into(),
            about(checkpoint).as_str().into(),
        ]);
    }

    pub(crate) fn render(&self) -> String {
        self.table.render("No checkpoints.")
    }
}

/// Checkpoints to choose from, numbered.
pub(crate) fn choice(all: &[Shown]) -> String {
    let lines = all.iter().enumerate().map(|(i, shown)| format!("{:>3}  {}\n", i + 1, node(shown)));
    lines.collect()
}

/// How far a capture is.
pub(crate) fn capturing(progress: &Progress) -> String {
    format!(
        "capturing: {} names, {} read",
        progress.seen.load(Ordering::Relaxed),
        bytes(progress.read.load(Ordering::Relaxed))
    )
}

/// How far a restore is.
pub(crate) fn restoring(watch: &Watch) -> String {
    match watch.apply.done.load(Ordering::Relaxed) {
        0 => capturing(&watch.capture),
        done => format!("restoring: {done} paths"),
    }
}

/// Everything about one checkpoint, but its files.
pub(crate) fn card(checkpoint: &Checkpoint, manifest: Option<&Manifest>) -> String {
    let mut out = format!(
        "{}  {}\n",
        styled(style::STRONG, checkpoint.id.short()),
        styled(kind_style(checkpoint.kind), checkpoint.kind.as_str())
    );
    let mut row = |label: &str, value: &str| {
        out.push_str(&format!("  {}  {value}\n", styled(style::DIM, &format!("{label:<12}"))));
    };
    let link = &checkpoint.link;
    let named = [("name", &link.name), ("message", &link.message), ("conversation", &link.conversation)];
    let named = named.into_iter().chain([
        ("workflow", &link.workflow),
        ("phase", &link.phase),
        ("step", &link.step_name),
    ]);
    for (label, value) in named {
        if let Some(value) = value {
            row(label, &plain(value));
        }
    }
    if let Some(run) = &link.run_id {
        row("run", run.short());
    }
    if let Some(dispatch) = &link.dispatch_id {
        row("dispatch", dispatch.short());
    }
    row(
        "follows",
        checkpoint.parent_id.as_ref().map_or("nothing: the first of its lineage", |id| id.short()),
    );
    row("root", &path_text(&checkpoint.root));
    let counts = &checkpoint.counts;
    let counted = |n: u64, noun| counted(usize::try_from(n).unwrap_or(usize::MAX), noun);
    row(
        "holds",
        &format!(
            "{}, {}, {}, {}",
            counted(counts.files, "file"),
            counted(counts.directories, "directory"),
            counted(counts.symlinks, "link"),
            bytes(counts.bytes)
        ),
    );
    if let Some(git) = manifest.and_then(|m| m.git.as_ref()) {
        let branch = git.standing_on();
        let head = git.head.as_deref().map_or("no commit yet", |oid| &oid[..oid.len().min(12)]);
        let dirty = if git.dirty { ", with changes" } else { "" };
        row("git", &plain(&format!("{} at {head}{dirty}", branch.as_deref().unwrap_or("detached"))));
    }
    row("stored", &format!("{} in {} ms", bytes(checkpoint.stored.stored_bytes), checkpoint.duration_ms));
    row("created", &checkpoint.created_at.to_string());
    if let Some(at) = checkpoint.pruned_at {
        row("pruned", &at.to_string());
    }
    row("tree", &ic_events::hex(&checkpoint.tree));
    row("id", checkpoint.id.as_str());
    if let Some(manifest) = manifest {
        out.push_str(&details(manifest));
    }
    out
}

fn details(manifest: &Manifest) -> String {
    let mut out = String::new();
    if let Some(changes) = &manifest.changes {
        for (change, title) in [
            ("added", "Added"),
            ("modified", "Modified"),
            ("deleted", "Deleted"),
            ("mode", "Permissions"),
            ("attributes", "Owners and attributes"),
            ("type", "Type"),
        ] {
            let paths: Vec<&PathText> =
                changes.iter().filter(|c| c.change == change).map(|c| &c.path).collect();
            section(&mut out, title, &paths.iter().map(|path| text(path)).collect::<Vec<_>>());
        }
    }
    let skipped: Vec<String> = manifest
        .skipped
        .iter()
        .map(|s| format!("{}  {}", text(&s.path), styled(style::DIM, &s.reason)))
        .collect();
    section(&mut out, "Left out", &skipped);
    let unsettled: Vec<String> = manifest.unsettled.iter().map(text).collect();
    section(&mut out, "Changed at each read", &unsettled);
    section(&mut out, "Nested repositories", &manifest.nested_git.iter().map(text).collect::<Vec<_>>());
    out
}

fn section(out: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    out.push_str(&format!("{} ({})\n", styled(style::STRONG, title), lines.len()));
    for line in lines.iter().take(SHOWN) {
        out.push_str(&format!("  {line}\n"));
    }
    if lines.len() > SHOWN {
        out.push_str(&format!(
            "  {}\n",
            styled(style::DIM, &format!("and {} more: --json", lines.len() - SHOWN))
        ));
    }
}

/// What a checkpoint holds, one a line.
pub(crate) fn files(files: &[FileJson]) -> String {
    let mut table = Table::new(&["MODE", "SIZE", "SHA-256", "PATH"]);
    for file in files {
        table.row(file.cells());
    }
    table.render("Nothing.")
}

/// Checkpoints as a tree: what follows stands below; a branch is indented.
pub(crate) fn tree(all: &[Shown]) -> String {
    if all.is_empty() {
        return "No checkpoints.\n".to_owned();
    }
    let ids: BTreeSet<&str> = all.iter().map(|shown| shown.checkpoint.id.as_str()).collect();
    let mut below: BTreeMap<Option<&str>, Vec<&Shown>> = BTreeMap::new();
    for shown in all {
        let parent =
            shown.checkpoint.parent_id.as_ref().map(CheckpointId::as_str).filter(|id| ids.contains(id));
        below.entry(parent).or_default().push(shown);
    }
    let mut out = String::new();
    // Depth first without recursion: histories are long.
    let mut stack: Vec<(&Shown, String, &str)> =
        below.get(&None).into_iter().flatten().rev().map(|root| (*root, String::new(), "")).collect();
    while let Some((shown, prefix, branch)) = stack.pop() {
        out.push_str(&format!("{prefix}{branch}{}\n", node(shown)));
        let children = below.get(&Some(shown.checkpoint.id.as_str())).map_or(&[][..], Vec::as_slice);
        let inner = match branch {
            "├─" => format!("{prefix}│ "),
            _ => prefix.clone(),
        };
        // The newest goes on in the same column; older branches are drawn first, beside it.
        for (i, child) in children.iter().enumerate().rev() {
            let is_last = i + 1 == children.len();
            stack.push((child, inner.clone(), if is_last { "" } else { "├─" }));
        }
    }
    out
}

fn node(shown: &Shown) -> String {
    let checkpoint = &shown.checkpoint;
    let mut line = format!(
        "{} {}  {}  {}",
        styled(kind_style(checkpoint.kind), "●"),
        styled(style::STRONG, checkpoint.id.short()),
        styled(kind_style(checkpoint.kind), &format!("{:<8}", checkpoint.kind.as_str())),
        styled(style::DIM, &second(checkpoint.created_at)),
    );
    let changes = summary(shown.manifest.as_ref());
    if !changes.is_empty() {
        line.push_str(&format!("  {changes}"));
    }
    let about = about(checkpoint);
    if !about.is_empty() {
        line.push_str(&format!("  {}", plain(&about)));
    }
    line
}

/// Which restore is undone or made again: it need not be what was done last here.
fn of_restore(report: &Report) -> String {
    let Some(restore) = &report.of_restore else { return String::new() };
    let run = report.target.link.run_id.as_ref();
    let run = run.map_or_else(String::new, |run| format!(" of the run {}", run.short()));
    format!(
        "The last restore here is that of checkpoint {}{run}, made at {}.\n",
        styled(style::STRONG, restore.target_id.short()),
        restore.created_at
    )
}

/// What a restore did, or would do.
pub(crate) fn report(report: &Report) -> String {
    let mut out = of_restore(report) + &headline::of(report);
    let steps = &report.plan.steps;
    let moves_git = report.git.as_ref().is_some_and(|git| !git.plan.is_empty());
    if steps.is_empty() && !moves_git && report.status == Status::Planned {
        out.push_str("  change nothing\n");
    }
    let unsaved = match report.status {
        Status::Planned => styled(style::WARN, "  in no checkpoint yet"),
        _ => styled(style::WARN, "  only in the safety checkpoint"),
    };
    for step in steps.iter().take(SHOWN) {
        let note = if step.uncaptured { unsaved.as_str() } else { "" };
        out.push_str(&format!("  {}  {}{note}\n", action(step.action), text(&step.path)));
    }
    if steps.len() > SHOWN {
        out.push_str(&format!("  and {} more: --json\n", steps.len() - SHOWN));
    }
    if let Some(git) = &report.git {
        out.push_str(&git_lines(git));
    }
    let because =
        |(path, reason): (&PathText, &str)| format!("{}  {}", text(path), styled(style::DIM, &plain(reason)));
    let list = |pairs: &[(PathText, String)]| {
        pairs.iter().map(|(path, reason)| because((path, reason))).collect::<Vec<_>>()
    };
    let conflicts: Vec<String> = report.conflicts.iter().map(|c| because((&c.path, &c.reason))).collect();
    section(&mut out, "Changed by others", &conflicts);
    section(&mut out, "Left alone", &list(&report.plan.skipped));
    section(&mut out, "Not compared", &list(&report.not_compared));
    section(&mut out, "Not kept", &list(&report.plan.not_kept));
    section(&mut out, "Failed", &list(&report.failed));
    section(&mut out, "Different from the checkpoint", &list(&report.differs));
    let uncaptured = steps.iter().filter(|step| step.uncaptured).count();
    match (&report.safety_id, report.status) {
        (Some(safety), _) => out.push_str(&format!(
            "What was there before is checkpoint {}; to go back: {}\n",
            styled(style::STRONG, safety.short()),
            way_back(report, safety)
        )),
        (None, Status::Planned) if uncaptured > 0 => out.push_str(&format!(
            "{} no checkpoint yet: a safety checkpoint is taken first.\n",
            if uncaptured == 1 {
                "1 of these is in".to_owned()
            } else {
                format!("{uncaptured} of these are in")
            }
        )),
        _ => {}
    }
    out + &report.refusal.as_ref().map(refused).unwrap_or_default()
}

/// The command that brings back what a restore replaced. An undo restores a safety checkpoint, and is not itself undone by another.
fn way_back(report: &Report, safety: &CheckpointId) -> String {
    let undo = match report.target.kind {
        Kind::Safety => format!("ic checkpoint restore {}", safety.short()),
        Kind::Manual | Kind::Auto | Kind::Restored => "ic checkpoint undo".to_owned(),
    };
    files_back(report).unwrap_or(undo)
}

/// The command that brings files alone back, where git's state of before cannot come back: it has content that was purged.
fn files_back(report: &Report) -> Option<String> {
    let safety = report.safety_id.as_ref().filter(|_| report.strategy.has_git())?;
    let is_purged = report.warnings.iter().any(|warning| warning.code == "purged_in_git");
    is_purged.then(|| format!("ic checkpoint restore {} --strategy files-only", safety.short()))
}

fn git_lines(restore: &GitRestore) -> String {
    let mut out = String::new();
    for (what, how) in git::moves(restore) {
        out.push_str(&format!(
            "  {}  {}\n",
            styled(style::WARN, &format!("{:<7}", plain(&what))),
            plain(&how)
        ));
    }
    out + &git::kept(restore)
}

fn action(action: Action) -> String {
    let (style, word) = match action {
        Action::Create => (style::GOOD, "create "),
        Action::Modify => (style::WARN, "modify "),
        Action::Delete => (style::BAD, "delete "),
        Action::Chmod => (style::DIM, "chmod  "),
        Action::Attributes => (style::DIM, "attrs  "),
        Action::Link => (style::DIM, "link   "),
        Action::Replace => (style::WARN, "replace"),
    };
    styled(style, word)
}

/// `+2 ~1 -3`: added, modified, deleted.
fn summary(manifest: Option<&Manifest>) -> String {
    let Some(changes) = manifest.and_then(|m| m.changes.as_ref()) else { return String::new() };
    let count =
        |wanted: &[&str]| changes.iter().filter(|c: &&Changed| wanted.contains(&c.change.as_str())).count();
    format!(
        "+{} ~{} -{}",
        count(&["added"]),
        count(&["modified", "mode", "attributes", "type"]),
        count(&["deleted"])
    )
}

/// What a checkpoint is about, in a few words.
fn about(checkpoint: &Checkpoint) -> String {
    let link = &checkpoint.link;
    let mut words: Vec<String> = Vec::new();
    words.extend(link.name.clone());
    words.extend(link.step_name.clone().or_else(|| link.phase.clone()));
    words.extend(link.message.clone());
    words.join(" · ")
}

fn kind_style(kind: Kind) -> anstyle::Style {
    match kind {
        Kind::Manual => style::GOOD,
        Kind::Auto => style::NONE,
        Kind::Safety => style::DIM,
        Kind::Restored => style::WARN,
    }
}

fn text(path: &PathText) -> String {
    path_text(&path_from_bytes(&path.0))
}

/// `1.5 MB`, in powers of 1000.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let (mut whole, mut rest, mut unit) = (count, 0, 0);
    while whole >= 1000 && unit + 1 < UNITS.len() {
        rest = whole % 1000 / 100;
        whole /= 1000;
        unit += 1;
    }
    if unit == 0 { format!("{whole} B") } else { format!("{whole}.{rest} {}", UNITS[unit]) }
}
