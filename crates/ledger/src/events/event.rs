//! What an event is, as the ledger keeps it.

use crate::LedgerRow;
use ic_base::{Result, RunId, Seq, Timestamp};

use crate::actor::Actor;
use crate::hash::Hash;

ic_base::words! {
    /// What kind of thing an event is about.
    pub enum EventSource {
        /// The run itself, as a whole.
        Run = "run",
        /// Its pointer in the chain of phases.
        Phase = "phase",
        /// A piece of work, from its creation to its end.
        Dispatch = "dispatch",
        /// An agent that is registered with a run.
        Agent = "agent",
        /// A file that a run recorded as its result.
        Artifact = "artifact",
        /// A place to which a run can go back.
        Point = "point",
        /// A checkpoint, its content, or a restore of it.
        Checkpoint = "checkpoint",
        /// The compensation of an effect.
        Compensation = "compensation",
        /// A rollback over several layers.
        Rollback = "rollback",
        /// A session of a coding agent.
        Session = "session",
        /// A rewind of an application's database.
        Rewind = "rewind",
    }
}

/// Whether a type blocks the undo of a rollback. Each type says so itself: a new one gets no answer by default. Late reports, checkpoints,
/// refusals and redactions are quiet, because an undo loses nothing of them.
macro_rules! blocks_undo {
    (blocks) => {
        true
    };
    (quiet) => {
        false
    };
}

macro_rules! event_types {
    ($($(#[$doc:meta])* $name:ident = $source:ident, $text:literal, $undo:tt;)*) => {
        /// What happened. Texts are stable; consumers match on them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum EventType {
            $($(#[$doc])* $name,)*
        }

        impl EventType {
            /// The text in the ledger and in JSON.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The type with this text.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$name),)* _ => None }
            }

            /// What kind of thing it happened to.
            pub fn source(self) -> EventSource {
                match self { $(Self::$name => EventSource::$source,)* }
            }

            /// Whether a run in which it happened since a rollback has moved on, so that the rollback cannot be undone any more.
            pub fn blocks_undo(self) -> bool {
                match self { $(Self::$name => blocks_undo!($undo),)* }
            }
        }
    };
}

event_types! {
    /// A run was created.
    RunCreated = Run, "run_created", blocks;
    /// Settings of a run were changed.
    RunSet = Run, "run_set", blocks;
    /// A run was cancelled.
    RunCancelled = Run, "run_cancelled", blocks;
    /// A cancelled run was made active again, or a completed one whose session was resumed.
    RunReopened = Run, "run_reopened", blocks;
    /// The text of an event was taken out; `subject_id` is its seq.
    Redacted = Run, "redacted", quiet;
    /// The run moved forward.
    Advance = Phase, "advance", blocks;
    /// A hard gate blocked the run.
    Block = Phase, "block", quiet;
    /// The run was told not to advance by itself.
    Pause = Phase, "pause", quiet;
    /// A phase was marked to be skipped.
    Skip = Phase, "skip", blocks;
    /// The run moved forward past its gate, by decision.
    Override = Phase, "override", blocks;
    /// The run was rolled back (seed 001: `EventRollback`).
    Rollback = Phase, "rollback", blocks;
    /// A rollback over several layers began: the run is closed.
    RollbackBegun = Rollback, "rollback_begun", blocks;
    /// A step of a rollback was done.
    RollbackStepDone = Rollback, "rollback_step_done", blocks;
    /// A step of a rollback was skipped, by decision.
    RollbackStepSkipped = Rollback, "rollback_step_skipped", blocks;
    /// A step of a rollback failed; the rest waits.
    RollbackStopped = Rollback, "rollback_stopped", blocks;
    /// The abort of a rollback began; the run stays closed.
    RollbackAbortBegun = Rollback, "rollback_abort_begun", blocks;
    /// A rollback was aborted: what it had changed is as before it.
    RollbackAborted = Rollback, "rollback_aborted", blocks;
    /// The undo of a rollback began: the run is closed.
    RollbackUndoBegun = Rollback, "rollback_undo_begun", blocks;
    /// The undo of a rollback was aborted: the rollback stands.
    RollbackUndoAborted = Rollback, "rollback_undo_aborted", blocks;
    /// A rollback was undone.
    RollbackUndone = Rollback, "rollback_undone", blocks;
    /// A dispatch was created.
    DispatchCreated = Dispatch, "dispatch_created", blocks;
    /// The worker of a dispatch began.
    DispatchStarted = Dispatch, "dispatch_started", blocks;
    /// The worker of a dispatch reported success.
    DispatchCompleted = Dispatch, "dispatch_completed", blocks;
    /// The worker of a dispatch reported failure.
    DispatchFailed = Dispatch, "dispatch_failed", blocks;
    /// A dispatch did not end within its time limit.
    DispatchTimedOut = Dispatch, "dispatch_timed_out", blocks;
    /// What ran a dispatch was ended from outside.
    DispatchInterrupted = Dispatch, "dispatch_interrupted", blocks;
    /// A dispatch was cancelled (seed 001: `EventDispatchCancelled`).
    DispatchCancelled = Dispatch, "dispatch_cancelled", blocks;
    /// Commits or files of a dispatch were recorded.
    DispatchRecorded = Dispatch, "dispatch_recorded", quiet;
    /// Tokens of a dispatch were recorded.
    DispatchTokens = Dispatch, "dispatch_tokens", quiet;
    /// An agent was registered with the run.
    AgentAdded = Agent, "agent_added", blocks;
    /// An agent ended well.
    AgentCompleted = Agent, "agent_completed", blocks;
    /// An agent ended badly, or its work was rolled back.
    AgentFailed = Agent, "agent_failed", blocks;
    /// An artifact was registered.
    ArtifactAdded = Artifact, "artifact_added", blocks;
    /// A place was marked to which the run can go back; `subject_id`: the step, dispatch, prompt or command that begins there.
    PointCreated = Point, "point_created", quiet;
    /// A coding agent began to work for the run; `to` is its client.
    SessionBegun = Session, "session_begun", quiet;
    /// A client said that its session is over.
    SessionEnded = Session, "session_ended", quiet;
    /// The working tree was captured.
    CheckpointCreated = Checkpoint, "checkpoint_created", quiet;
    /// A restore of the working tree began; `to` is its target.
    RestoreBegun = Checkpoint, "restore_begun", quiet;
    /// A restore of the working tree was finished.
    CheckpointRestored = Checkpoint, "checkpoint_restored", quiet;
    /// A checkpoint was pruned: its content may go.
    CheckpointPruned = Checkpoint, "checkpoint_pruned", quiet;
    /// The content of a path was taken out everywhere.
    ContentPurged = Checkpoint, "content_purged", blocks;
    /// Content of checkpoints was found to be lost.
    ContentLost = Checkpoint, "content_lost", blocks;
    /// What would undo an outside effect was declared.
    CompensationRegistered = Compensation, "compensation_registered", blocks;
    /// The effect is about to be made.
    CompensationArmed = Compensation, "compensation_armed", blocks;
    /// The compensation of an effect began.
    CompensationStarted = Compensation, "compensation_started", blocks;
    /// An effect was undone.
    CompensationDone = Compensation, "compensation_done", blocks;
    /// The compensation of an effect failed; the effect stands.
    CompensationFailed = Compensation, "compensation_failed", blocks;
    /// An effect was not undone, as its compensation declares.
    CompensationSkipped = Compensation, "compensation_skipped", blocks;
    /// The undoing of a run's effects began: no other process moves the run until it ends.
    CompensatingBegun = Run, "compensating_begun", blocks;
    /// The undoing of a run's effects ended.
    CompensatingEnded = Run, "compensating_ended", blocks;
    /// A rewind of an application's database began; `to` is its task.
    RewindBegun = Rewind, "rewind_begun", blocks;
    /// The tree is at the task's commit, which `to` names.
    RewindGitDone = Rewind, "rewind_git_done", blocks;
    /// The rows after the task are archived and gone.
    RewindDbDone = Rewind, "rewind_db_done", blocks;
    /// Every stage of a rewind is done.
    RewindDone = Rewind, "rewind_done", blocks;
    /// A stage failed, `from` where it stood; later ones did not run.
    RewindStopped = Rewind, "rewind_stopped", blocks;
    /// The rows that a rewind took are back.
    RewindUndone = Rewind, "rewind_undone", blocks;
}

/// One event, as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its place in the total order, from 1, without gaps.
    pub seq: Seq,
    /// The run it belongs to.
    pub run_id: Option<RunId>,
    /// What kind of thing it is about.
    pub source: String,
    /// What happened: the text of an [`EventType`], or one of a newer version.
    pub event_type: String,
    /// The id of the thing it is about, where that is not the run.
    pub subject_id: Option<String>,
    /// The phase or status before.
    pub from: Option<String>,
    /// The phase or status after.
    pub to: Option<String>,
    /// The run's epoch when it happened; of a dispatch's event, the epoch that its work belongs to.
    pub epoch: Option<i64>,
    /// `pass`, `fail` or `none`, for moves and refusals.
    pub gate_result: Option<String>,
    /// `hard`, `soft` or `none`.
    pub gate_tier: Option<String>,
    /// Why, in the words of who asked for it.
    pub reason: Option<String>,
    /// Facts, as a JSON object.
    pub payload: Option<String>,
    /// Who wrote it; `None`: a program that did not say.
    pub actor: Option<Actor>,
    /// When, by the program's clock.
    pub created_at: Timestamp,
    /// The hash of the event before.
    pub prev_hash: Hash,
    /// The hash of this event.
    pub hash: Hash,
    /// What stands for a redacted reason in the chain.
    pub reason_hash: Option<Hash>,
    /// What stands for a redacted payload in the chain.
    pub payload_hash: Option<Hash>,
}

impl Event {
    pub(crate) const COLUMNS: &'static str = "seq, run_id, source, type, subject_id, from_state, to_state, \
        epoch, gate_result, gate_tier, reason, payload, actor, created_at, prev_hash, hash, reason_hash, payload_hash";

    pub(crate) fn from_row(row: &LedgerRow<'_>) -> Result<Self> {
        // In the order of COLUMNS.
        Ok(Self {
            seq: row.get(0)?,
            run_id: row.get::<Option<String>>(1)?.map(RunId::from_ledger),
            source: row.get(2)?,
            event_type: row.get(3)?,
            subject_id: row.get(4)?,
            from: row.get(5)?,
            to: row.get(6)?,
            epoch: row.get(7)?,
            gate_result: row.get(8)?,
            gate_tier: row.get(9)?,
            reason: row.get(10)?,
            payload: row.get(11)?,
            actor: row.get::<Option<String>>(12)?.as_deref().map(Actor::from_text).transpose()?,
            created_at: Timestamp(row.get(13)?),
            prev_hash: row.get(14)?,
            hash: row.get(15)?,
            reason_hash: row.get(16)?,
            payload_hash: row.get(17)?,
        })
    }
}
