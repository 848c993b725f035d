//! What a rewind would do.

use ic_rewind::RollbackSnapshot;
use ic_undo::app_rewind::{GitStagePlan, NOTE, RewindPreview};
use ic_worktree::Warning;
use serde_json::{Map, Value};

use crate::text::{path_text, plain, shell_word, style, styled};
use crate::views::common_shapes::WarningJson;
use crate::views::exact;
use crate::views::rewind::{counts, lossy_path, rows, scalar, short};

shape! {
    /// What a rewind would do.
    pub(crate) struct RewindPreviewJson from (preview: &RewindPreview, warning: Option<&Warning>) {
        task_id: Option<String> = preview.snapshot.task_id.clone(),
        /// The order of the task, as the database stores it: a number or a text; a BLOB as its bytes.
        #[cfg_attr(test, schemars(with = "crate::views::tests::ScalarJson"))]
        snapshot_created_at: Value = scalar(&preview.snapshot.snapshot_created_at),
        /// The number of rows that would be deleted, by table in the order of deletion.
        #[cfg_attr(test, schemars(with = "std::collections::BTreeMap<String, u64>"))]
        affected_row_counts: Map<String, Value> = counts(preview.snapshot.affected_row_counts.iter()),
        /// The move of the tree; null if it would not be moved.
        git: Option<GitPreviewJson> = preview.git.as_ref().map(GitPreviewJson::from),
        /// What a rewind does not do.
        note: &'static str = NOTE,
        database: String = lossy_path(&preview.database),
        #[serde(skip_serializing_if = "Option::is_none")]
        database_b64: Option<String> = exact(&preview.database),
        /// The command that prunes vectors.
        vectors: Option<Vec<String>> = preview.vectors.clone(),
        #[serde(skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<WarningJson> = warning.map(WarningJson::from).into_iter().collect(),
    }

    /// The move of git in a planned rewind.
    struct GitPreviewJson from git: &GitStagePlan where
        lossy = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    {
        /// The commit that HEAD would move to.
        commit: String = git.commit.clone(),
        /// The branch that is checked out; null: HEAD is detached.
        branch: Option<String> = git.standing.branch.as_ref().map(lossy),
        /// The commit that is checked out.
        head: Option<String> = git.standing.head.clone(),
        /// Whether any file of the tree would change.
        moves: bool = git.moves(),
        /// Local changes that only the safety checkpoint would have afterwards.
        losses: Vec<String> = git.losses.paths().map(lossy).collect(),
    }
}

/// The plan of a rewind, as text.
pub(crate) fn preview(preview: &RewindPreview) -> String {
    if preview.is_at_target() {
        return nothing_to_do(preview);
    }
    let mut out = format!("Rewinding {} to {} would:\n", path_text(&preview.database), line(&preview.snapshot));
    if let Some(git) = &preview.git {
        out += &git_lines(git);
    }
    let counts = &preview.snapshot.affected_row_counts;
    out += &rows(counts.iter(), "delete", style::BAD);
    if let Some(argv) = &preview.vectors {
        let argv: Vec<String> = argv.iter().map(|word| shell_word(word)).collect();
        out += &format!("  {} {}\n", styled(style::WARN, "run    "), argv.join(" "));
    }
    out += &format!("{}\n", styled(style::DIM, NOTE));
    out
}

/// The text for a rewind whose target is the present state.
pub(crate) fn nothing_to_do(preview: &RewindPreview) -> String {
    let at = if preview.git.is_some() { ", and the tree is at its commit" } else { "" };
    format!("{} has nothing newer than {}{at}; nothing to do.\n", path_text(&preview.database), line(&preview.snapshot))
}

pub(crate) fn line(snapshot: &RollbackSnapshot) -> String {
    let task = snapshot.task_id.as_deref().unwrap_or("its beginning");
    format!("{} ({})", styled(style::STRONG, &plain(task)), plain(&snapshot.snapshot_created_at.to_string()))
}

fn git_lines(git: &GitStagePlan) -> String {
    let mut out = String::new();
    if !git.moves() {
        out += &format!("  {} the tree is at {}\n", styled(style::DIM, "git    "), short(&git.commit));
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
    out += &format!("  {} check out {}; left: {from}\n", styled(style::WARN, "git    "), short(&git.commit));
    for path in git.losses.paths() {
        let path = plain(&String::from_utf8_lossy(path));
        out += &format!("  {} {path}  only in the safety checkpoint\n", styled(style::WARN, "lose   "));
    }
    out
}
