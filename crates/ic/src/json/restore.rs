//! Restores.

use ic_checkpoint::manifest::PathText;
use ic_worktree::{GitRestore, Report};
use serde::Serialize;

use super::checkpoint::SkippedJson;
use super::{PathJson, RefusalJson, WarningJson};

/// What a restore did, or would do.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RestoreJson {
    checkpoint_id: String,
    /// The restore that is undone or redone; left out where neither is.
    #[serde(skip_serializing_if = "Option::is_none")]
    of_restore: Option<OfRestoreJson>,
    /// What was about to change; null where nothing was written.
    safety_checkpoint_id: Option<String>,
    /// What the restore left.
    restored_checkpoint_id: Option<String>,
    dry_run: bool,
    /// full, partial, files-only or git-only.
    #[cfg_attr(test, schemars(extend("enum" = ic_checkpoint::restore::Strategy::WORDS)))]
    strategy: &'static str,
    /// restored, partial (a path could not be changed, or one that the checkpoint holds stays as it is), planned or `up_to_date`.
    #[cfg_attr(test, schemars(extend("enum" = ic_worktree::Status::WORDS)))]
    status: &'static str,
    /// The hash of the plan, for --expect-plan.
    plan_hash: String,
    changes: Vec<RestoreChangeJson>,
    conflicts: Vec<SkippedJson>,
    /// Paths that are left alone, and paths that cannot be compared with the checkpoint.
    skipped: Vec<SkippedJson>,
    /// What the checkpoint's tree had at a path and a restore cannot restore.
    not_kept: Vec<SkippedJson>,
    failed: Vec<FailedJson>,
    /// What is not as the checkpoint has it after the restore, though nothing above says so: others worked meanwhile, or a branch is left
    /// to another work tree. Git's state is named `.git`.
    differs: Vec<SkippedJson>,
    /// Of a dry run: why the real call would be refused; left out if it would not be.
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<RefusalJson>,
    git: Option<GitRestoreJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<WarningJson>,
}

/// A restore that is undone or redone.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OfRestoreJson {
    id: String,
    /// The checkpoint that it restored.
    checkpoint_id: String,
    /// The run of that checkpoint; null if it belongs to none.
    run_id: Option<String>,
    /// When it was made.
    created_at: String,
}

impl OfRestoreJson {
    fn of(report: &Report) -> Option<Self> {
        let restore = report.of_restore.as_ref()?;
        Some(Self {
            id: restore.id.to_string(),
            checkpoint_id: restore.target_id.to_string(),
            run_id: report.target.link.run_id.as_ref().map(ToString::to_string),
            created_at: restore.created_at.to_string(),
        })
    }
}

/// A change that a restore makes.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RestoreChangeJson {
    #[serde(flatten)]
    path: PathJson,
    /// create, modify, delete, chmod, attributes, link or replace.
    #[cfg_attr(test, schemars(extend("enum" = ic_checkpoint::restore::plan::Action::WORDS)))]
    change: &'static str,
    /// Whether only the safety checkpoint holds what stands there now.
    uncaptured: bool,
}

/// A path that could not be changed.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FailedJson {
    #[serde(flatten)]
    path: PathJson,
    error: String,
}

impl From<&Report> for RestoreJson {
    fn from(report: &Report) -> Self {
        let because =
            |(path, reason): (&PathText, &String)| SkippedJson { path: path.into(), reason: reason.clone() };
        Self {
            checkpoint_id: report.target.id.to_string(),
            of_restore: OfRestoreJson::of(report),
            safety_checkpoint_id: report.safety_id.as_ref().map(ToString::to_string),
            restored_checkpoint_id: report.restored_id.as_ref().map(ToString::to_string),
            dry_run: report.dry_run,
            strategy: report.strategy.as_str(),
            status: report.status.as_str(),
            plan_hash: report.plan_hash.clone(),
            changes: report
                .plan
                .steps
                .iter()
                .map(|step| RestoreChangeJson {
                    path: (&step.path).into(),
                    change: step.action.as_str(),
                    uncaptured: step.uncaptured,
                })
                .collect(),
            conflicts: report.conflicts.iter().map(|c| because((&c.path, &c.reason))).collect(),
            skipped: report
                .plan
                .skipped
                .iter()
                .chain(&report.not_compared)
                .map(|(path, reason)| because((path, reason)))
                .collect(),
            not_kept: report.plan.not_kept.iter().map(|(path, reason)| because((path, reason))).collect(),
            failed: report
                .failed
                .iter()
                .map(|(path, error)| FailedJson { path: path.into(), error: error.clone() })
                .collect(),
            differs: report.differs.iter().map(|(path, reason)| because((path, reason))).collect(),
            refusal: report.refusal.as_ref().map(RefusalJson::from),
            git: report.git.as_ref().map(GitRestoreJson::from),
            warnings: report.warnings.iter().map(WarningJson::from).collect(),
        }
    }
}

/// What a restore does about git.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct GitRestoreJson {
    branch: Option<String>,
    head: Option<String>,
    moved: Vec<MovedJson>,
    /// Whether HEAD goes to another branch or commit of its own.
    moves_head: bool,
    /// Whether the index changes.
    moves_index: bool,
    /// Whether the stash changes.
    moves_stash: bool,
    /// Below which refs the tips of what moved stay; null where nothing was written.
    kept_below: Option<String>,
}

/// A branch that is made, moved or removed.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct MovedJson {
    r#ref: String,
    /// Where it was; null if it is made.
    from_sha: Option<String>,
    /// Where it goes; null if it is removed.
    to_sha: Option<String>,
}

impl From<&GitRestore> for GitRestoreJson {
    fn from(git: &GitRestore) -> Self {
        let moved = git.plan.refs.iter().map(|moved| MovedJson {
            r#ref: String::from_utf8_lossy(&moved.name).into_owned(),
            from_sha: moved.from.clone(),
            to_sha: moved.to.clone(),
        });
        Self {
            branch: git.target.branch.as_ref().map(|name| String::from_utf8_lossy(&name.0).into_owned()),
            head: git.target.head.clone(),
            moved: moved.collect(),
            moves_head: git.plan.head,
            moves_index: git.plan.index,
            moves_stash: git.plan.stash,
            kept_below: git.kept_below.clone(),
        }
    }
}
