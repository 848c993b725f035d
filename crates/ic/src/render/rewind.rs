//! Rewinds of an application's database.

use ic_rewind::journal::{Entry, Status};
use ic_rewind::{Profile, RollbackSnapshot, Task};
use ic_rows::{Configured, GitPlan, NOTE, Preview, Undone, restore_command, resume_command, stages_left};

use super::{Cell, Table, counted, path_text, plain, shell_word, style, styled, when};

/// What a rewind would do.
pub(crate) fn preview(preview: &Preview) -> String {
    if preview.is_at_target() {
        return nothing_to_do(preview);
    }
    let mut out =
        format!("Rewinding {} to {} would:\n", path_text(&preview.database), line(&preview.snapshot));
    if let Some(git) = &preview.git {
        out.push_str(&git_lines(git));
    }
    let counts = &preview.snapshot.affected_row_counts;
    out.push_str(&rows(counts.iter(), "delete", style::BAD));
    if let Some(argv) = &preview.vectors {
        let argv: Vec<String> = argv.iter().map(|word| shell_word(word)).collect();
        out.push_str(&format!("  {} {}\n", styled(style::WARN, "run    "), argv.join(" ")));
    }
    out.push_str(&format!("{}\n", styled(style::DIM, NOTE)));
    out
}

/// Everything is as a rewind would leave it.
pub(crate) fn nothing_to_do(preview: &Preview) -> String {
    let at = if preview.git.is_some() { ", and the tree is at its commit" } else { "" };
    format!(
        "{} has nothing newer than {}{at}; nothing to do.\n",
        path_text(&preview.database),
        line(&preview.snapshot)
    )
}

fn line(snapshot: &RollbackSnapshot) -> String {
    let task = snapshot.task_id.as_deref().unwrap_or("its beginning");
    format!("{} ({})", styled(style::STRONG, &plain(task)), plain(&snapshot.snapshot_created_at.to_string()))
}

fn git_lines(git: &GitPlan) -> String {
    let mut out = String::new();
    if !git.moves() {
        out.push_str(&format!("  {} the tree is at {}\n", styled(style::DIM, "git    "), short(&git.commit)));
        return out;
    }
    let from = match (&git.standing.branch, &git.standing.head) {
        (Some(branch), Some(head)) => {
            format!("{} at {}", plain(&String::from_utf8_lossy(branch)), short(head))
        }
        (Some(branch), None) => format!("{}, which has no commit", plain(&String::from_utf8_lossy(branch))),
        (None, Some(head)) => format!("a detached HEAD at {}", short(head)),
        (None, None) => "nothing".to_owned(),
    };
    out.push_str(&format!(
        "  {} check out {}; left: {from}\n",
        styled(style::WARN, "git    "),
        short(&git.commit)
    ));
    for path in git.losses.paths() {
        let path = plain(&String::from_utf8_lossy(path));
        out.push_str(&format!(
            "  {} {path}  only in the safety checkpoint\n",
            styled(style::WARN, "lose   ")
        ));
    }
    out
}

fn short(commit: &str) -> &str {
    &commit[..commit.len().min(8)]
}

/// `  delete   3  agent_logs`, one a table.
fn rows<'r>(counts: impl Iterator<Item = (&'r str, u64)>, word: &str, word_style: anstyle::Style) -> String {
    let mut table = Table::headless();
    for (name, rows) in counts {
        let style = if rows == 0 { style::DIM } else { word_style };
        let rows = counted(usize::try_from(rows).unwrap_or(usize::MAX), "row");
        table.row(vec!["".into(), Cell::new(style, word), rows.as_str().into(), name.into()]);
    }
    table.render("")
}

/// One rewind: what it did, how far it came, what is left.
pub(crate) fn entry(entry: &Entry) -> String {
    let mut out = head(entry);
    if let Some(commit) = &entry.git_commit {
        out.push_str(&format!("  {} {}\n", styled(style::DIM, "git    "), git_of(entry, commit)));
    }
    if let Some(deleted) = &entry.deleted.rows {
        let word = if entry.status == Status::Undone { "had" } else { "deleted" };
        out.push_str(&rows(deleted.iter().map(|(table, rows)| (table.as_str(), *rows)), word, style::BAD));
    }
    if let Some(error) = entry.error.as_ref().filter(|_| entry.status == Status::Stopped) {
        out.push_str(&format!("{}: {}\n", styled(style::BAD, "failed"), plain(&error.message)));
    }
    let left = stages_left(entry);
    if let Some(resume) = resume_command(entry) {
        out.push_str(&format!("Left: {}; to resume: {resume}\n", left.join(", ")));
    }
    match entry.status {
        Status::Done if entry.is_given_up() => {
            out.push_str("Its rows are no longer kept: it cannot be undone.\n");
            out.push_str(&tree_back(entry));
        }
        Status::Done => {
            let undo = format!("ic rewind undo {} --yes", entry.id.short());
            out.push_str(&format!("To restore the rows: {undo}\n"));
            out.push_str(&tree_back(entry));
        }
        Status::Stopped | Status::InProgress if entry.has_begun() => {
            out.push_str(&format!("To abort it: ic rewind undo {} --yes\n", entry.id.short()));
            out.push_str(&tree_back(entry));
        }
        _ => {}
    }
    out
}

fn head(entry: &Entry) -> String {
    let id = styled(style::STRONG, entry.id.short());
    let task = styled(style::STRONG, &plain(&entry.task_id));
    let order = plain(&entry.deleted.snapshot_created_at.to_string());
    let state = match entry.status {
        Status::Done => styled(style::GOOD, "done"),
        Status::Stopped => styled(style::BAD, &format!("stopped ({})", entry.stage.as_str())),
        Status::InProgress => {
            styled(style::WARN, &format!("under way, or its process died ({})", entry.stage.as_str()))
        }
        Status::Undone => styled(style::DIM, "undone"),
    };
    format!("Rewind {id} of {} to {task} ({order}): {state}\n", path_text(&entry.database))
}

fn git_of(entry: &Entry, commit: &str) -> String {
    let Some(head) = &entry.left.head else { return format!("at {}", short(commit)) };
    let from = match &entry.left.branch {
        Some(branch) => format!("{} at {}", plain(&String::from_utf8_lossy(branch)), short(head)),
        None => format!("a detached HEAD at {}", short(head)),
    };
    format!("to {}; left: {from}", short(commit))
}

fn tree_back(entry: &Entry) -> String {
    restore_command(entry).map_or_else(String::new, |command| format!("To restore the tree: {command}\n"))
}

/// A rewind that was undone by this call, or would be.
pub(crate) fn undone(undone: &Undone) -> String {
    let mut out = head(&undone.entry);
    out.push_str(&rows(
        undone.restored.iter().map(|(table, rows)| (table.as_str(), *rows)),
        if undone.is_dry_run { "would come back" } else { "restored" },
        if undone.is_dry_run { style::WARN } else { style::GOOD },
    ));
    if undone.is_dry_run {
        return out + &styled(style::DIM, "The tree stays as it is.") + "\n";
    }
    out.push_str(&tree_back(&undone.entry));
    out
}

/// Rewinds, one a line.
pub(crate) fn list(all: &[Entry], now: ic_base::Timestamp) -> String {
    let mut table = Table::new(&["REWIND", "STATUS", "STAGE", "TASK", "ROWS", "BEGUN"]);
    for entry in all {
        let rows = entry.deleted.rows.as_ref().map(|rows| rows.iter().map(|(_, rows)| rows).sum::<u64>());
        let kept = if entry.is_given_up() { ", not kept" } else { "" };
        let status_style = match entry.status {
            Status::Done => style::GOOD,
            Status::Stopped => style::BAD,
            Status::InProgress => style::WARN,
            Status::Undone => style::DIM,
        };
        table.row(vec![
            Cell::new(style::STRONG, entry.id.short()),
            Cell::new(status_style, entry.status.as_str()),
            entry.stage.as_str().into(),
            entry.task_id.as_str().into(),
            rows.map(|rows| format!("{rows}{kept}")).unwrap_or_default().as_str().into(),
            Cell::new(style::DIM, &when(now, entry.created_at)),
        ]);
    }
    table.render("No rewinds.")
}

/// Tasks that a rewind can go to, one a line.
pub(crate) fn targets(tasks: &[Task]) -> String {
    let mut table = Table::new(&["TASK", "ORDER", "COMMIT", "SCOPE"]);
    for task in tasks {
        let scope: Vec<String> =
            task.scope.iter().map(|(column, value)| format!("{column}={value}")).collect();
        table.row(vec![
            Cell::new(style::STRONG, &task.task_id),
            task.created_at.to_string().as_str().into(),
            task.commit.as_deref().unwrap_or_default().into(),
            scope.join(" ").as_str().into(),
        ]);
    }
    table.render("No tasks to rewind to.")
}

/// What was set up.
pub(crate) fn configured(configured: &Configured) -> String {
    let database = path_text(&configured.database);
    let mut out = match (configured.profile, configured.has_made_tables, configured.is_there) {
        (Profile::Devs, true, _) => format!("Made the tables of the profile devs in {database}\n"),
        (Profile::Devs, false, _) => format!("The tables of the profile devs are in {database}\n"),
        (Profile::Langgraph, _, true) => format!("{database} is the database of a LangGraph checkpointer\n"),
        (Profile::Langgraph, _, false) => format!("{database} is not there yet; the checkpointer makes it\n"),
    };
    out.push_str(&format!("Added the section `rewind` to {}\n", path_text(&configured.file)));
    out
}
