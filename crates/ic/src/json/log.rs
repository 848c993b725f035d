//! What a run can go back to.

use ic_phase::Run;
use ic_point::Listed;
use ic_point::log::{Entry, Files, What};
use serde::Serialize;

use super::RollbackRecordJson;

/// A point or a rollback of a run (`log`).
#[derive(Serialize)]
#[serde(untagged)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) enum LogEntryJson {
    /// A place to which the run can go back.
    Point(Box<PointEntryJson>),
    /// The run went back.
    Rollback(Box<RollbackEntryJson>),
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PointEntryJson {
    run_id: String,
    #[serde(flatten)]
    point: PointJson,
    /// What changed from here to the next point, or to the newest checkpoint of the run; null where that is not known.
    file_counts: Option<FileCountsJson>,
    /// How many commits its dispatch recorded; null for a point that stands before no dispatch.
    commit_count: Option<usize>,
    /// The newest rollback that stands and went back to before it: then it is not a target. Null: it counts.
    rolled_back_by: Option<String>,
}

/// A place to which a run can go back.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PointJson {
    /// How it is named: in `run rollback --to`.
    reference: String,
    #[cfg_attr(test, schemars(extend("enum" = ["created", "phase", "step", "dispatch", "prompt", "guard", "checkpoint"])))]
    kind: &'static str,
    /// The work that began what it stands before: a prompt, for a subagent's; null: a person or a script began it.
    parent_id: Option<String>,
    /// What was recorded after this event lies after the point.
    seq: i64,
    /// Where the run was.
    phase: String,
    /// For people, on one line; may be empty.
    title: String,
    /// The tree as it was there; null if it was not captured.
    checkpoint_id: Option<String>,
    /// Whether the content of that checkpoint is gone.
    pruned: bool,
    created_at: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FileCountsJson {
    created: usize,
    modified: usize,
    deleted: usize,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RollbackEntryJson {
    #[cfg_attr(test, schemars(extend("enum" = ["rollback"])))]
    kind: &'static str,
    #[serde(flatten)]
    rollback: RollbackRecordJson,
    /// The newest rollback in force that went back to before this one; null: there is none.
    rolled_back_by: Option<String>,
}

impl LogEntryJson {
    pub(crate) fn new(run: &Run, entry: &Entry) -> Self {
        let rolled_back_by = entry.taken_back_by.first().map(ToString::to_string);
        match &entry.what {
            What::Point { point, files, commits } => Self::Point(Box::new(PointEntryJson {
                run_id: run.id.to_string(),
                point: (&**point).into(),
                file_counts: files.map(FileCountsJson::from),
                commit_count: *commits,
                rolled_back_by,
            })),
            What::Rollback(rollback) => Self::Rollback(Box::new(RollbackEntryJson {
                kind: "rollback",
                rollback: (&**rollback).into(),
                rolled_back_by,
            })),
        }
    }
}

impl From<&Listed> for PointJson {
    fn from(point: &Listed) -> Self {
        Self {
            reference: point.reference.clone(),
            kind: point.kind,
            parent_id: point.parent_id.as_ref().map(ToString::to_string),
            seq: point.seq,
            phase: point.phase.clone(),
            title: point.title.clone(),
            checkpoint_id: point.checkpoint_id.as_ref().map(ToString::to_string),
            pruned: point.is_pruned,
            created_at: point.created_at.to_string(),
        }
    }
}

impl From<Files> for FileCountsJson {
    fn from(files: Files) -> Self {
        Self { created: files.created, modified: files.modified, deleted: files.deleted }
    }
}
