//! Rewinds of an application's database.

pub(crate) mod database;
pub(crate) mod preview;

use std::path::Path;

use ic_rewind::SqlScalar;
use ic_rewind::journal::{RewindEntry, RewindStatus};
use ic_undo::app_rewind::{RewindPreview, UndoneRewind, restore_command, resume_command, stages_left};
use ic_worktree::Warning;
use serde_json::{Map, Value, json};

use crate::text::{Cell, TextTable, counted, path_text, plain, style, styled, when};
use crate::views::common_shapes::WarningJson;
use crate::views::exact;

shape! {
    /// A rewind: what it deleted, which stages are done, and what is left.
    #[derive(Default)]
    pub(crate) struct RewindJson from entry: &RewindEntry where
        lossy = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        git = entry.git_commit.as_ref().map(|commit| RewindGitJson {
            commit: commit.clone(),
            left_branch: entry.left.branch.as_ref().map(lossy),
            left_head: entry.left.head.clone(),
            kept_ref: entry.left.kept_ref.as_ref().map(lossy),
            safety_checkpoint_id: entry.safety_id.as_ref().map(ToString::to_string),
            restore: restore_command(entry),
        });
        archive = entry.deleted.rows.as_ref().and_then(|_| entry.kept_archive());
    {
        /// The rewind's id; null if there was nothing to do.
        id: Option<String> = Some(entry.id.to_string()),
        short_id: Option<String> = Some(entry.id.short().to_owned()),
        task_id: Option<String> = Some(entry.task_id.clone()),
        /// The order of the task, as the database stores it: a number or a text; a BLOB as its bytes.
        #[cfg_attr(test, schemars(with = "crate::views::tests::ScalarJson"))]
        snapshot_created_at: Value = scalar(&entry.deleted.snapshot_created_at),
        /// The number of deleted rows by table, in the order of deletion; null until they are deleted.
        #[cfg_attr(test, schemars(with = "Option<std::collections::BTreeMap<String, u64>>"))]
        deleted_row_counts: Option<Map<String, Value>> =
            entry.deleted.rows.as_deref().map(|rows| counts(pairs(rows))),
        /// For an undo, the number of restored rows by table; with `dry_run`, of rows that would be.
        #[cfg_attr(test, schemars(with = "Option<std::collections::BTreeMap<String, u64>>"))]
        restored_row_counts: Option<Map<String, Value>> = None,
        /// The last finished stage: planned, `git_done`, `db_done` or `vector_done`; null if there was nothing to do.
        #[cfg_attr(test, schemars(extend("enum" = crate::views::tests::schema_words::or_null(&ic_rewind::journal::Stage::WORDS))))]
        stage: Option<&'static str> = Some(entry.stage.as_str()),
        /// The move of the tree; null if it is not moved.
        git: Option<RewindGitJson> = git,
        /// done, stopped, `in_progress`, undone or `nothing_to_do`.
        #[cfg_attr(test, schemars(extend("enum" = crate::views::tests::schema_words::and(&ic_rewind::journal::RewindStatus::WORDS, "nothing_to_do"))))]
        status: &'static str = entry.status.as_str(),
        /// For an undo, what it undoes: rewind.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, schemars(extend("enum" = ["rewind"])))]
        undoes: Option<&'static str> = None,
        /// Whether nothing was changed (`undo --dry-run`).
        dry_run: bool = false,
        database: String = lossy_path(&entry.database),
        #[serde(skip_serializing_if = "Option::is_none")]
        database_b64: Option<String> = exact(&entry.database),
        /// The archive with the deleted rows; null if it is not kept any more, so that the rewind cannot be undone.
        archive: Option<String> = archive.map(lossy_path),
        #[serde(skip_serializing_if = "Option::is_none")]
        archive_b64: Option<String> = archive.and_then(exact),
        /// The failure that stopped it; null if none did.
        failure: Option<FailureJson> = entry
            .error
            .as_ref()
            .filter(|_| entry.status == RewindStatus::Stopped)
            .map(|error| FailureJson { code: error.code.clone(), message: error.message.clone() }),
        /// The remaining stages in their order: git, sqlite, vectors.
        stages_left: Vec<&'static str> = stages_left(entry),
        /// The command that resumes with the rest.
        resume: Option<String> = resume_command(entry),
        created_at: Option<String> = Some(entry.created_at.to_string()),
        seq: Option<i64> = Some(entry.seq),
        #[serde(skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<WarningJson> = Vec::new(),
    }

    /// The stage that failed, and its error.
    struct FailureJson {
        code: String,
        message: String,
    }

    /// The move of git in a rewind.
    #[derive(Default)]
    struct RewindGitJson {
        /// The commit that HEAD moves to.
        commit: String,
        /// The branch that HEAD left; null if it was detached, or did not move.
        left_branch: Option<String>,
        /// The commit that HEAD left.
        left_head: Option<String>,
        /// The ref that keeps that commit reachable.
        kept_ref: Option<String>,
        /// The checkpoint of the tree before the rewind; null if it was not moved.
        safety_checkpoint_id: Option<String>,
        /// The command that restores that tree.
        restore: Option<String>,
    }
}

impl RewindJson {
    /// A rewind after its undo.
    pub(crate) fn undone(undone: &UndoneRewind) -> Self {
        Self {
            restored_row_counts: Some(counts(pairs(&undone.restored))),
            undoes: Some("rewind"),
            dry_run: undone.is_dry_run,
            ..Self::from(&undone.entry)
        }
    }

    /// Adds the warnings of the call.
    pub(crate) fn with_warnings(mut self, warnings: &[Warning]) -> Self {
        self.warnings = warnings.iter().map(WarningJson::from).collect();
        self
    }

    /// A rewind that was not begun, because everything was in its target state already.
    pub(crate) fn nothing_to_do(preview: &RewindPreview, warning: Option<&Warning>) -> Self {
        let git = preview.git.as_ref();
        let git = git.map(|git| RewindGitJson { commit: git.commit.clone(), ..RewindGitJson::default() });
        Self {
            task_id: preview.snapshot.task_id.clone(),
            snapshot_created_at: scalar(&preview.snapshot.snapshot_created_at),
            deleted_row_counts: Some(counts(preview.snapshot.affected_row_counts.iter())),
            git,
            status: "nothing_to_do",
            database: lossy_path(&preview.database),
            database_b64: exact(&preview.database),
            warnings: warning.map(WarningJson::from).into_iter().collect(),
            ..Self::default()
        }
    }
}

pub(crate) fn lossy_path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Numbers of rows by table, in the given order.
pub(crate) fn counts<'r>(rows: impl IntoIterator<Item = (&'r str, u64)>) -> Map<String, Value> {
    rows.into_iter().map(|(table, rows)| (table.to_owned(), json!(rows))).collect()
}

/// The same pairs, borrowed.
fn pairs(rows: &[(String, u64)]) -> impl Iterator<Item = (&str, u64)> {
    rows.iter().map(|(table, rows)| (table.as_str(), *rows))
}

pub(crate) fn scalar(value: &SqlScalar) -> Value {
    json!(value)
}

pub(crate) fn short(commit: &str) -> &str {
    &commit[..commit.len().min(8)]
}

/// The rows of each table, as in `  delete   3  agent_logs`.
pub(crate) fn rows<'r>(counts: impl Iterator<Item = (&'r str, u64)>, word: &str, word_style: anstyle::Style) -> String {
    let mut table = TextTable::headless();
    for (name, rows) in counts {
        let style = if rows == 0 { style::DIM } else { word_style };
        let rows = counted(usize::try_from(rows).unwrap_or(usize::MAX), "row");
        table.row(vec!["".into(), Cell::new(style, word), rows.as_str().into(), name.into()]);
    }
    table.render("")
}

/// One rewind: what it did, which stages are done, what is left.
pub(crate) fn entry(entry: &RewindEntry) -> String {
    let mut out = head(entry);
    if let Some(commit) = &entry.git_commit {
        out += &format!("  {} {}\n", styled(style::DIM, "git    "), git_of(entry, commit));
    }
    if let Some(deleted) = &entry.deleted.rows {
        let word = if entry.status == RewindStatus::Undone { "had" } else { "deleted" };
        out += &rows(pairs(deleted), word, style::BAD);
    }
    if let Some(error) = entry.error.as_ref().filter(|_| entry.status == RewindStatus::Stopped) {
        out += &format!("{}: {}\n", styled(style::BAD, "failed"), plain(&error.message));
    }
    let left = stages_left(entry);
    if let Some(resume) = resume_command(entry) {
        out += &format!("Left: {}; to resume: {resume}\n", left.join(", "));
    }
    match entry.status {
        RewindStatus::Done if entry.is_given_up() => {
            out += "Its rows are no longer kept: it cannot be undone.\n";
            out += &tree_back(entry);
        }
        RewindStatus::Done => {
            let undo = format!("ic undo {} --yes", entry.id.short());
            out += &format!("To restore the rows: {undo}\n");
            out += &tree_back(entry);
        }
        // Before it began nothing outside of the ledger was changed, so there is nothing to abort.
        RewindStatus::Stopped | RewindStatus::InProgress if entry.has_begun() => {
            out += &format!("To abort it: ic undo {} --yes\n", entry.id.short());
            out += &tree_back(entry);
        }
        _ => {}
    }
    out
}

pub(crate) fn head(entry: &RewindEntry) -> String {
    let id = styled(style::STRONG, entry.id.short());
    let task = styled(style::STRONG, &plain(&entry.task_id));
    let order = plain(&entry.deleted.snapshot_created_at.to_string());
    let state = match entry.status {
        RewindStatus::Done => styled(style::GOOD, "done"),
        RewindStatus::Stopped => styled(style::BAD, &format!("stopped ({})", entry.stage.as_str())),
        RewindStatus::InProgress => {
            styled(style::WARN, &format!("under way, or its process died ({})", entry.stage.as_str()))
        }
        RewindStatus::Undone => styled(style::DIM, "undone"),
    };
    format!("Rewind {id} of {} to {task} ({order}): {state}\n", path_text(&entry.database))
}

fn git_of(entry: &RewindEntry, commit: &str) -> String {
    let Some(head) = &entry.left.head else { return format!("at {}", short(commit)) };
    let from = match &entry.left.branch {
        Some(branch) => format!("{} at {}", plain(&String::from_utf8_lossy(branch)), short(head)),
        None => format!("a detached HEAD at {}", short(head)),
    };
    format!("to {}; left: {from}", short(commit))
}

fn tree_back(entry: &RewindEntry) -> String {
    restore_command(entry).map_or_else(String::new, |command| format!("To restore the tree: {command}\n"))
}

/// A rewind after its undo, or before it in a dry run.
pub(crate) fn undone(undone: &UndoneRewind) -> String {
    let mut out = head(&undone.entry);
    let (word, style) = if undone.is_dry_run { ("would come back", style::WARN) } else { ("restored", style::GOOD) };
    out += &rows(pairs(&undone.restored), word, style);
    if undone.is_dry_run {
        return out + &styled(style::DIM, "The tree is unchanged.") + "\n";
    }
    out += &tree_back(&undone.entry);
    out
}

/// Rewinds, one a line.
pub(crate) fn list(all: &[RewindEntry], now: ic_base::Timestamp) -> String {
    let mut table = TextTable::new(&["REWIND", "STATUS", "STAGE", "TASK", "ROWS", "BEGUN"]);
    for entry in all {
        let rows = entry.deleted.rows.as_ref().map(|rows| rows.iter().map(|(_, rows)| rows).sum::<u64>());
        let kept = if entry.is_given_up() { ", not kept" } else { "" };
        let status_style = match entry.status {
            RewindStatus::Done => style::GOOD,
            RewindStatus::Stopped => style::BAD,
            RewindStatus::InProgress => style::WARN,
            RewindStatus::Undone => style::DIM,
        };
        table.row(vec![
            Cell::new(style::STRONG, entry.id.short()),
            Cell::new(status_style, entry.status.as_str()),
            entry.stage.as_str().into(),
            entry.task_id.as_str().into(),
            rows.map(|rows| format!("{rows}{kept}")).unwrap_or_default().into(),
            Cell::new(style::DIM, &when(now, entry.created_at)),
        ]);
    }
    table.render("No rewinds.")
}
