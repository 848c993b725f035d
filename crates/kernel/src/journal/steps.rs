//! The table `rollback_steps`: how far a rollback over several layers is, and which way it goes.
//!
//! ```text
//!   pending ── begins ──▶ running ── succeeds ──▶ done ── begins back ──▶ running ── is undone ──▶ pending
//!                          │   ▲
//!                    fails ▼   │ begins again: resumed, or its process died
//!                         failed ── is skipped ──▶ skipped
//! ```
//!
//! Forward, a step that is `done` has undone the work in its layer. An undo or abort restores that, and the step is `pending` again. The
//! last step, the settlement, remembers the direction.
//!
//! The direction (`course`) and the code of a failure (`error_code`) are columns of their own, because a redaction empties `error`. An
//! unknown word in a row is `corrupt`: a step that is read wrongly would be made in the wrong direction.

mod state;

use ic_base::{Code, Diagnosis, Result, RollbackId, Timestamp};
use ic_ledger::{LedgerRow, Snapshot, Transaction};

use crate::journal::force_flags::Force;
use crate::journal::step_detail::StepDetail;
use crate::journal::table::RollbackRecord;

pub use state::RollbackStepState;
pub use state::StepEvent;
use state::next;

ic_base::words! {
    /// The part of a rollback that a step covers.
    pub enum StepKind {
        /// Outside effects, first, because the programs that undo them lie in the tree.
        Effects = "effects",
        /// Git's state and files.
        Tree = "tree",
        /// Rows of the application's tables.
        Data = "data",
        /// The run itself, last.
        Settle = "settle",
    }
}

ic_base::words! {
    /// Which way a rollback goes that is not finished.
    pub enum Course {
        /// To the phase or point that was asked for.
        Forward = "forward",
        /// It was done, and is being undone.
        Undo = "undo",
        /// It is being aborted.
        Abort = "abort",
        /// Its undo was aborted: forward again, to the same place.
        Reapply = "reapply",
    }
}

impl Course {
    /// Which way a rollback goes once what it does now is aborted.
    #[must_use]
    pub fn aborted(self) -> Self {
        match self {
            Self::Forward | Self::Abort => Self::Abort,
            Self::Undo | Self::Reapply => Self::Reapply,
        }
    }

    /// Whether the rollback is being reverted: by an undo or an abort.
    pub fn is_back(self) -> bool {
        match self {
            Self::Undo | Self::Abort => true,
            Self::Forward | Self::Reapply => false,
        }
    }
}

/// Which way a rollback with these steps goes, or went last. One without steps is one transaction: it only goes forward.
pub fn course(all: &[RollbackStep]) -> Course {
    all.iter().find_map(|step| step.course).unwrap_or(Course::Forward)
}

/// The steps that an undo or abort skipped: what they took away is kept until they are undone after all.
pub fn not_put_back<'s>(remembered: &RollbackRecord, all: &'s [RollbackStep]) -> Vec<&'s RollbackStep> {
    let is_left = |step: &&RollbackStep| {
        matches!(step.kind, StepKind::Tree | StepKind::Data) && step.state == RollbackStepState::Skipped
    };
    all.iter().filter(|step| !remembered.status.stands() && is_left(step)).collect()
}

/// Whether a step may have changed something that an undo or abort restores. It was begun, or it is the tree, which undone effects may have
/// changed.
pub fn may_have_changed(step: &RollbackStep, all: &[RollbackStep]) -> bool {
    // The step of the effects keeps a checkpoint of the tree from before it undid the first of them.
    let is_kept = |other: &RollbackStep| !other.detail.goes.is_empty();
    step.state != RollbackStepState::Pending || step.kind == StepKind::Tree && all.iter().any(is_kept)
}

/// Whether a rollback left something in the tree: a part, or of an undo of works all, because that step was skipped before it did anything.
/// The record of a run goes back in any case.
pub fn is_in_part(of: &RollbackRecord, all: &[RollbackStep]) -> bool {
    let skipped = (StepKind::Tree, RollbackStepState::Skipped, 0);
    let is_skipped = |step: &RollbackStep| (step.kind, step.state, step.detail.changes) == skipped;
    all.iter().any(|step| step.detail.parts_left > 0 || of.is_of_works() && is_skipped(step))
}

/// A step of a rollback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollbackStep {
    /// Its place, from 1.
    pub ord: i64,
    /// The layer that it covers.
    pub kind: StepKind,
    /// How far it is.
    pub state: RollbackStepState,
    /// What it found and did.
    pub detail: StepDetail,
    /// Which way the rollback goes; of the settlement alone.
    pub course: Option<Course>,
    /// The code of its failure. A redaction keeps it.
    pub code: Option<Code>,
    /// Why it failed, for people.
    pub error: Option<String>,
}

impl RollbackStep {
    /// A step that is only planned.
    pub fn planned(kind: StepKind) -> Self {
        Self {
            ord: 0,
            kind,
            state: RollbackStepState::Pending,
            detail: StepDetail::default(),
            course: None,
            code: None,
            error: None,
        }
    }

    /// Its state in text and in JSON. `course`: the direction in which the rollback goes, or last went; `stands`: whether it still counts.
    /// After an undo or abort, a step that is `pending` in the ledger is `as_before`: it was undone, or never begun. The settlement is
    /// `as_before` only when the undo or abort has ended.
    pub fn shown(&self, course: Course, stands: bool) -> &'static str {
        let is_back = course.is_back() && (self.kind != StepKind::Settle || !stands);
        match self.state {
            RollbackStepState::Pending if is_back => "as_before",
            state => state.as_str(),
        }
    }
}

const COLUMNS: &str = "s.ord, s.layer, s.state, s.detail, s.course, s.error_code, s.error";

fn from_row(row: &LedgerRow<'_>) -> Result<RollbackStep> {
    const TABLE: &str = "rollback_steps";
    // A null cannot be parsed as text, so it is asked about first.
    let is_there = |index| row.get::<Option<String>>(index).map(|text| text.is_some());
    let kind = row.parse(1, TABLE, StepKind::parse)?;
    // There is no default direction: a settlement without one is `corrupt`, and is made in neither direction.
    let course = match kind {
        StepKind::Settle => Some(row.parse(4, TABLE, Course::parse)?),
        StepKind::Effects | StepKind::Tree | StepKind::Data => None,
    };
    let parse = |text: &str| Code::ALL.iter().copied().find(|code| code.as_str() == text);
    let code = if is_there(5)? { Some(row.parse(5, TABLE, parse)?) } else { None };
    let parse = |text: &str| serde_json::from_str(text).ok();
    let detail = if is_there(3)? { row.parse(3, TABLE, parse)? } else { StepDetail::default() };
    Ok(RollbackStep {
        ord: row.get(0)?,
        kind,
        state: row.parse(2, TABLE, RollbackStepState::parse)?,
        detail,
        course,
        code,
        error: row.get(6)?,
    })
}

/// The steps of a rollback, in order. Rollbacks of the workflow layer alone have none: they are one transaction.
pub fn of_rollback(snapshot: &Snapshot<'_>, id: &RollbackId) -> Result<Vec<RollbackStep>> {
    snapshot.query_all(
        &format!("SELECT {COLUMNS} FROM rollback_steps s WHERE s.rollback_id = $1 ORDER BY s.ord"),
        &[&id.as_str()],
        from_row,
    )
}

/// The steps of all rollbacks that can be undone or aborted, or of which an undo or abort skipped a step.
pub fn of_ways_back(snapshot: &Snapshot<'_>) -> Result<Vec<RollbackStep>> {
    // There are three kinds: rollbacks that are unfinished; those that are done in an open run; those whose tree an undo or
    // abort skipped. For rows that were skipped, an archive is kept and not a checkpoint (`needs_no_archive`).
    snapshot.query_all(
        &format!(
            "SELECT {COLUMNS} FROM rollback_steps s \
             JOIN rollbacks b ON b.id = s.rollback_id JOIN runs r ON r.id = b.run_id \
             WHERE b.status IN ('in_progress', 'stopped') OR (b.status = 'done' AND r.status IN ('active', 'rolling_back')) \
             OR (b.status IN ('undone', 'aborted') AND EXISTS (SELECT 1 FROM rollback_steps p \
             WHERE p.rollback_id = b.id AND p.layer = 'tree' AND p.state = 'skipped'))"
        ),
        &[],
        from_row,
    )
}

/// The command that resumes a rollback that is not finished: with the flag that decides why a step failed, where that stays so until a
/// person decides.
pub fn next_command(id: &RollbackId, all: &[RollbackStep]) -> String {
    let failed = all.iter().find(|step| step.state == RollbackStepState::Failed);
    let is_back = course(all).is_back();
    let decided = failed.and_then(|step| match step.kind {
        // An undo or abort asks for everything at once: a decision about it is not remembered from one call to the next.
        StepKind::Tree if is_back => step.code.and_then(Force::of_tree).map(|_| Force::ALL),
        StepKind::Tree => step.code.and_then(Force::of_tree),
        StepKind::Data if !is_back && step.detail.by_force => Some(Force { files: true, ..Force::default() }),
        StepKind::Data | StepKind::Effects | StepKind::Settle => None,
    });
    let flags: String = decided.iter().flat_map(|force| force.flags()).map(|flag| format!(" {flag}")).collect();
    format!("ic rollback resume {}{flags} --yes", id.short())
}

/// The words before and after the name of an effect that could not be undone. They are stored in the ledger and read back, so they must not
/// change.
const EFFECT_OF: (&str, &str) = ("the effect of ", " could not be undone: ");

/// Why undoing the effects failed, naming the first that could not be undone.
pub fn not_undone(step: &str, why: &str) -> String {
    format!("{}{step}{}{why}", EFFECT_OF.0, EFFECT_OF.1)
}

/// The effect because of which undoing them failed; `None` where it was none of them, or the words were redacted.
pub fn failed_effect(step: &RollbackStep) -> Option<&str> {
    let failed = step.state == RollbackStepState::Failed && step.kind == StepKind::Effects;
    let (_, named) = step.error.as_deref().filter(|_| failed)?.split_once(EFFECT_OF.0)?;
    named.split_once(EFFECT_OF.1).map(|(name, _)| name)
}

/// Records the steps that a rollback will make.
pub fn insert(tx: &Transaction<'_>, now: Timestamp, id: &RollbackId, kinds: &[StepKind]) -> Result<()> {
    for (ord, kind) in (1_i64..).zip(kinds) {
        let course = (*kind == StepKind::Settle).then(|| Course::Forward.as_str());
        tx.execute_one(
            "INSERT INTO rollback_steps (rollback_id, ord, layer, state, course, updated_at) \
             VALUES ($1, $2, $3, 'pending', $4, $5)",
            &[&id.as_str(), &ord, &kind.as_str(), &course, &now.millis()],
        )?;
    }
    Ok(())
}

/// Records which way a rollback goes from now on, and that its settlement is to come.
pub fn set_course(
    tx: &Transaction<'_>,
    now: Timestamp,
    id: &RollbackId,
    all: &[RollbackStep],
    course: Course,
) -> Result<()> {
    for step in all.iter().filter(|step| step.kind == StepKind::Settle) {
        // Whichever way it goes, the settlement is the last step and has not been made in that direction.
        set(tx, now, id, step.ord, StepEvent::IsToCome, None)?;
        tx.execute_one(
            "UPDATE rollback_steps SET course = $1 WHERE rollback_id = $2 AND ord = $3",
            &[&course.as_str(), &id.as_str(), &step.ord],
        )?;
    }
    Ok(())
}

/// Records what happened to a step; a `None` leaves what is known of what it did.
///
/// Errors: `internal` if that cannot follow what the ledger holds: nothing is written.
pub fn set(
    tx: &Transaction<'_>,
    now: Timestamp,
    id: &RollbackId,
    ord: i64,
    happening: StepEvent,
    detail: Option<&StepDetail>,
) -> Result<()> {
    // The caller may have read the step before it was begun; what counts is what the ledger holds now.
    let from = tx.query_opt(
        "SELECT state FROM rollback_steps WHERE rollback_id = $1 AND ord = $2",
        &[&id.as_str(), &ord],
        |row| row.parse(0, "rollback_steps", RollbackStepState::parse),
    )?;
    let from = from.ok_or_else(|| Diagnosis::new(Code::Internal, "A step of a rollback is not there."))?;
    let state = next(from, happening)?;
    // A decision to skip a step leaves the reason for its failure on record.
    let keeps_error = happening == StepEvent::IsSkipped;
    let detail = detail.map(serde_json::to_string).transpose();
    let detail = detail.map_err(|e| Diagnosis::new(Code::Internal, format!("writing what a step did: {e}.")))?;
    tx.execute_one(
        "UPDATE rollback_steps SET state = $1, detail = coalesce($2, detail), \
         error = CASE WHEN $3 = 1 THEN error END, error_code = CASE WHEN $3 = 1 THEN error_code END, updated_at = $4 \
         WHERE rollback_id = $5 AND ord = $6",
        &[&state.as_str(), &detail, &keeps_error, &now.millis(), &id.as_str(), &ord],
    )
}

/// Records that a step failed, with the code and `why`, for people.
pub fn fail(
    tx: &Transaction<'_>,
    now: Timestamp,
    id: &RollbackId,
    ord: i64,
    code: Code,
    why: &str,
    detail: Option<&StepDetail>,
) -> Result<()> {
    // In this order: the change of state empties the error of an earlier attempt.
    set(tx, now, id, ord, StepEvent::Fails, detail)?;
    set_error(tx, id, ord, Some(code), Some(why))
}

/// Records that a step has its state and error from `before` its rollback changed direction again.
pub fn restore(tx: &Transaction<'_>, now: Timestamp, id: &RollbackId, before: &RollbackStep) -> Result<()> {
    // The state is set first: its change empties the error, which is set after it.
    set(tx, now, id, before.ord, StepEvent::IsAsBefore(before.state), None)?;
    set_error(tx, id, before.ord, before.code, before.error.as_deref())
}

fn set_error(tx: &Transaction<'_>, id: &RollbackId, ord: i64, code: Option<Code>, error: Option<&str>) -> Result<()> {
    tx.execute_one(
        "UPDATE rollback_steps SET error_code = $1, error = $2 WHERE rollback_id = $3 AND ord = $4",
        &[&code.map(Code::as_str), &error, &id.as_str(), &ord],
    )
}
