//! The table `rollback_steps`: how far a rollback over several layers is, and which way it goes.
//!
//! Forward, a step that is `done` has taken its layer back. On the way back it is `pending` again once that is put back. The last
//! step, the settlement, remembers the way.

use ic_base::{Code, Result, RollbackId, Timestamp};
use ic_store::{Row, Snapshot, Transaction};
use serde_json::Value;

use super::table::Remembered;

/// What a step takes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// Outside effects, first, because the programs that undo them lie in the tree.
    Effects,
    /// Git's state and files.
    Tree,
    /// Rows of the application's tables.
    Data,
    /// The run itself, last.
    Settle,
}

impl StepKind {
    const ALL: [Self; 4] = [Self::Effects, Self::Tree, Self::Data, Self::Settle];

    /// The text in the ledger and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Effects => "effects",
            Self::Tree => "tree",
            Self::Data => "data",
            Self::Settle => "settle",
        }
    }
}

/// How far a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepState {
    /// It was not begun.
    Pending,
    /// It goes on, or its process died.
    Running,
    /// It is done.
    Done,
    /// It failed.
    Failed,
    /// It was passed over, by decision.
    Skipped,
}

impl StepState {
    const ALL: [Self; 5] = [Self::Pending, Self::Running, Self::Done, Self::Failed, Self::Skipped];

    /// The text in the ledger and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }

    /// Whether nothing is left to do about it.
    pub fn is_over(self) -> bool {
        match self {
            Self::Done | Self::Skipped => true,
            Self::Pending | Self::Running | Self::Failed => false,
        }
    }
}

/// Which way a rollback goes that is not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Course {
    /// To its phase.
    Forward,
    /// It was done, and is being undone.
    Undo,
    /// It is being given up.
    Abandon,
    /// Its undo was given up: to its phase again.
    Stand,
}

impl Course {
    const ALL: [Self; 4] = [Self::Forward, Self::Undo, Self::Abandon, Self::Stand];

    /// The text in the ledger and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Undo => "undo",
            Self::Abandon => "abandon",
            Self::Stand => "stand",
        }
    }

    /// Whether what was taken back is being put back.
    pub fn is_back(self) -> bool {
        match self {
            Self::Undo | Self::Abandon => true,
            Self::Forward | Self::Stand => false,
        }
    }
}

/// Which way a rollback with these steps goes, or went last.
pub fn course(all: &[Step]) -> Course {
    let kept =
        all.iter().find(|step| step.kind == StepKind::Settle).and_then(|step| step.detail["course"].as_str());
    Course::ALL.into_iter().find(|course| kept == Some(course.as_str())).unwrap_or(Course::Forward)
}

/// The steps that were passed over when a rollback was taken back: what they took is kept until they are made after all.
pub fn not_put_back<'s>(remembered: &Remembered, all: &'s [Step]) -> Vec<&'s Step> {
    let is_left = |step: &&Step| {
        matches!(step.kind, StepKind::Tree | StepKind::Data) && step.state == StepState::Skipped
    };
    all.iter().filter(|step| !remembered.status.stands() && is_left(step)).collect()
}

/// Whether a step may have changed something that a way back puts back: it was begun, or it is the tree, which effects that were undone
/// may have changed.
pub(super) fn may_have_changed(step: &Step, all: &[Step]) -> bool {
    // As effects keep it.
    let is_kept = |other: &Step| other.detail["before"].is_string();
    step.state != StepState::Pending || step.kind == StepKind::Tree && all.iter().any(is_kept)
}

/// A step of a rollback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its place, from 1.
    pub ord: i64,
    /// What it takes back.
    pub kind: StepKind,
    /// How far it is.
    pub state: StepState,
    /// What it found and did.
    pub detail: Value,
    /// Why it failed.
    pub error: Option<String>,
}

fn from_row(row: &Row<'_>) -> Result<Step> {
    let kind = |text: &str| StepKind::ALL.into_iter().find(|kind| kind.as_str() == text);
    let state = |text: &str| StepState::ALL.into_iter().find(|state| state.as_str() == text);
    let detail = match row.get::<Option<String>>(3)? {
        Some(_) => row.parse(3, "rollback_steps", |text| serde_json::from_str(text).ok())?,
        None => Value::Null,
    };
    Ok(Step {
        ord: row.get(0)?,
        kind: row.parse(1, "rollback_steps", kind)?,
        state: row.parse(2, "rollback_steps", state)?,
        detail,
        error: row.get(4)?,
    })
}

/// The steps of a rollback, in order. Rollbacks of the workflow layer alone have none: they are one transaction.
pub fn of_rollback(snapshot: &Snapshot<'_>, id: &RollbackId) -> Result<Vec<Step>> {
    snapshot.query_all(
        "SELECT ord, layer, state, detail, error FROM rollback_steps WHERE rollback_id = $1 ORDER BY ord",
        &[&id.as_str()],
        from_row,
    )
}

/// The steps of all rollbacks that can be taken back, or given up, or of which something was passed over then.
pub(super) fn of_ways_back(snapshot: &Snapshot<'_>) -> Result<Vec<Step>> {
    snapshot.query_all(
        "SELECT s.ord, s.layer, s.state, s.detail, s.error FROM rollback_steps s \
         JOIN rollbacks b ON b.id = s.rollback_id JOIN runs r ON r.id = b.run_id \
         WHERE b.status IN ('in_progress', 'stopped') OR (b.status = 'done' AND r.status IN ('active', 'rolling_back')) \
         OR (b.status IN ('undone', 'abandoned') AND EXISTS (SELECT 1 FROM rollback_steps p \
         WHERE p.rollback_id = b.id AND p.layer = 'tree' AND p.state = 'skipped'))",
        &[],
        from_row,
    )
}

/// In the detail of a step that failed: `--force` decides it.
pub(super) const BY_FORCE: &str = "by_force";

/// The command that goes on with a rollback that is not finished: with `--force` where a step failed because of what somebody
/// else did, which stays so until somebody decides.
pub fn next_command(id: &RollbackId, all: &[Step]) -> String {
    const DECIDED_BY_FORCE: [Code; 3] = [Code::Conflict, Code::ForeignCommits, Code::WorkRunning];
    let failed = all.iter().find(|step| step.state == StepState::Failed);
    let needs_force = failed.is_some_and(|step| {
        let code = step.error.as_deref().and_then(|error| error.split(':').next());
        match step.kind {
            StepKind::Tree => DECIDED_BY_FORCE.iter().any(|known| code == Some(known.as_str())),
            StepKind::Data => !course(all).is_back() && step.detail[BY_FORCE] == true,
            StepKind::Effects | StepKind::Settle => false,
        }
    });
    format!("ic rollback resume {}{} --yes", id.short(), if needs_force { " --force" } else { "" })
}

/// Records the steps that a rollback will make.
pub(super) fn insert(
    tx: &Transaction<'_>,
    now: Timestamp,
    id: &RollbackId,
    kinds: &[StepKind],
) -> Result<()> {
    for (ord, kind) in (1_i64..).zip(kinds) {
        tx.execute_one(
            "INSERT INTO rollback_steps (rollback_id, ord, layer, state, updated_at) VALUES ($1, $2, $3, 'pending', $4)",
            &[&id.as_str(), &ord, &kind.as_str(), &now.millis()],
        )?;
    }
    Ok(())
}

/// Records which way a rollback goes from now on, and that its settlement is to come.
pub(super) fn set_course(
    tx: &Transaction<'_>,
    now: Timestamp,
    id: &RollbackId,
    all: &[Step],
    course: Course,
) -> Result<()> {
    let mut settle = all.iter().filter(|step| step.kind == StepKind::Settle);
    let detail = serde_json::json!({ "course": course.as_str() });
    settle.try_for_each(|step| set(tx, now, id, step.ord, StepState::Pending, (Some(&detail), None)))
}

/// Records how far a step is; a `None` leaves what is known of what it did.
pub(super) fn set(
    tx: &Transaction<'_>,
    now: Timestamp,
    id: &RollbackId,
    ord: i64,
    state: StepState,
    (detail, error): (Option<&Value>, Option<&str>),
) -> Result<()> {
    tx.execute_one(
        "UPDATE rollback_steps SET state = $1, detail = coalesce($2, detail), error = $3, updated_at = $4 \
         WHERE rollback_id = $5 AND ord = $6",
        &[&state.as_str(), &detail.map(Value::to_string), &error, &now.millis(), &id.as_str(), &ord],
    )
}
