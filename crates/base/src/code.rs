//! Every error code, once. A code never changes its name or its exit status after a release.

/// What a failed command means to the script that called it; each has one exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// An expected no: blocked, stale, refused in this state. Exit 1.
    No,
    /// I/O, corruption, busy past the timeout. Exit 2.
    Failure,
    /// Bad flags or values, or a reference to something that does not exist. Exit 3.
    Usage,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $kind:ident;)*) => {
        /// A stable error code. Each has a page in `docs/errors/`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// All codes, in the order of their declaration.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// The code as scripts see it, in `snake_case`.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => $text,)* }
            }

            /// What the code means to the caller; decides the exit status.
            pub fn kind(self) -> ErrorKind {
                match self { $(Code::$name => ErrorKind::$kind,)* }
            }
        }
    };
}

codes! {
    /// The command line itself is wrong: unknown flag, missing argument.
    Usage = "usage", Usage;
    /// A value has the wrong form or is out of range.
    InvalidValue = "invalid_value", Usage;
    /// A reference is neither an id nor at least six hex digits of one.
    InvalidReference = "invalid_reference", Usage;
    /// No ledger at the named place or above the working directory.
    NoLedger = "no_ledger", Usage;
    /// No run with this id, or scope, or no active one here.
    RunNotFound = "run_not_found", Usage;
    /// No dispatch with this id.
    DispatchNotFound = "dispatch_not_found", Usage;
    /// No agent with this id.
    AgentNotFound = "agent_not_found", Usage;
    /// No artifact with this id.
    ArtifactNotFound = "artifact_not_found", Usage;
    /// No event with this seq.
    EventNotFound = "event_not_found", Usage;
    /// No cursor with this name.
    CursorNotFound = "cursor_not_found", Usage;
    /// Several ids end in these digits.
    AmbiguousId = "ambiguous_id", Usage;
    /// Several runs fit `@` or a scope.
    AmbiguousRun = "ambiguous_run", Usage;
    /// No rollback with this id.
    RollbackNotFound = "rollback_not_found", Usage;
    /// The run has no point that is named so.
    PointNotFound = "point_not_found", Usage;
    /// The point belongs to another run.
    PointOfOtherRun = "point_of_other_run", Usage;
    /// No compensation with this id.
    CompensationNotFound = "compensation_not_found", Usage;
    /// No session has this id.
    SessionNotFound = "session_not_found", Usage;
    /// No checkpoint with this id or name.
    CheckpointNotFound = "checkpoint_not_found", Usage;
    /// No fork of this work tree has this name or directory.
    ForkNotFound = "fork_not_found", Usage;
    /// The checkpoint holds nothing at this path.
    PathNotFound = "path_not_found", Usage;
    /// A verb that writes outside the ledger needs a yes.
    ConfirmationRequired = "confirmation_required", Usage;
    /// The configuration file is not valid.
    InvalidConfig = "invalid_config", Usage;
    /// The workflow file is not valid.
    InvalidWorkflow = "invalid_workflow", Usage;
    /// No rewind with this id.
    RewindNotFound = "rewind_not_found", Usage;
    /// The anchor table of the state database has no such task.
    UnknownTask = "unknown_task", Usage;
    /// The phase is not in the run's chain.
    UnknownPhase = "unknown_phase", Usage;

    /// A query for the active run of a project found none.
    NoActiveRun = "no_active_run", No;
    /// The run has moved since the caller looked.
    StalePhase = "stale_phase", No;
    /// The calling dispatch was rolled back.
    StaleDispatch = "stale_dispatch", No;
    /// The dispatch has already ended.
    DispatchFinished = "dispatch_finished", No;
    /// The dispatch was already started.
    DispatchRunning = "dispatch_running", No;
    /// The agent has already ended.
    AgentFinished = "agent_finished", No;
    /// The process of the work is gone, and the work did not end on record.
    ProcessGone = "process_gone", No;
    /// A conversation cannot be continued from before the prompt.
    NoConversation = "no_conversation", No;
    /// The work has been silent for longer than it may be.
    Lost = "lost", No;
    /// The work did not end within the time that was given.
    TimedOut = "timed_out", No;
    /// A hard gate does not hold.
    GateBlocked = "gate_blocked", No;
    /// A consumer's command failed; its event is left.
    ConsumerFailed = "consumer_failed", No;
    /// The ledger has lost events that a consumer has read.
    HistoryForked = "history_forked", No;
    /// The run does not advance by itself.
    Paused = "paused", No;
    /// The run is completed, cancelled or failed.
    RunNotActive = "run_not_active", No;
    /// Another run of the project is open under this scope.
    ScopeTaken = "scope_taken", No;
    /// The run is in the middle of a rollback.
    RollingBack = "rolling_back", No;
    /// The rollback's target lies ahead of the run.
    PhaseAhead = "phase_ahead", No;
    /// The phase to be skipped lies behind the run.
    PhasePassed = "phase_passed", No;
    /// The run already is at that phase.
    AlreadyAtPhase = "already_at_phase", No;
    /// The run is at the end of its chain, or the end was to be skipped.
    TerminalPhase = "terminal_phase", No;
    /// A rollback that stands took the run back to before the point.
    PointTakenBack = "point_taken_back", No;
    /// The checkpoint was taken before the run began.
    PointBeforeRun = "point_before_run", No;
    /// The plan is not the one that the caller approved.
    PlanChanged = "plan_changed", No;
    /// What is asked contradicts what is there. Of the tasks of a program alone: every refusal of `ic` has a code of its own.
    Conflict = "conflict", No;
    /// The dispatch belongs to another run.
    DispatchOfOtherRun = "dispatch_of_other_run", No;
    /// The event has no text that could be redacted.
    NothingToRedact = "nothing_to_redact", No;
    /// No step of the rollback has failed.
    NothingToSkip = "nothing_to_skip", No;
    /// The rollback was made by a program's own tasks, which no journal can undo.
    NotUndoable = "not_undoable", No;
    /// The commit of a task cannot be checked out here.
    CommitUnusable = "commit_unusable", No;
    /// The configuration file was not changed.
    ConfigNotChanged = "config_not_changed", No;
    /// Something that was begun has to be finished first.
    NotFinished = "not_finished", No;
    /// A value of the order column has no order in time.
    NoOrder = "no_order", No;
    /// The archive that would be written is another rewind's.
    ArchiveInUse = "archive_in_use", No;
    /// A table of the application is not as it has to be.
    TableConflict = "table_conflict", No;
    /// Something that is not finished needs the checkpoint.
    CheckpointNeeded = "checkpoint_needed", No;
    /// The file that would be made is there already.
    FileExists = "file_exists", No;
    /// A ledger on a server does not do this yet.
    NotOnServer = "not_on_server", No;
    /// The project has its ledger elsewhere.
    LedgerExists = "ledger_exists", No;
    /// The workflow has done nothing that could be rolled back.
    NothingToRollBack = "nothing_to_roll_back", No;
    /// Other steps began after the one that would go back alone.
    StepsOverlap = "steps_overlap", No;
    /// The run was not started by a workflow.
    NoWorkflow = "no_workflow", No;
    /// There is no checkpoint here yet.
    NoCheckpoint = "no_checkpoint", No;
    /// There is no restore to undo or redo.
    NothingToUndo = "nothing_to_undo", No;
    /// A worker still works in the root.
    WorkRunning = "work_running", No;
    /// The root is no project: `/` or the home directory.
    UnsafeRoot = "unsafe_root", No;
    /// The tree has more files, or more bytes, than a checkpoint may have.
    TreeTooLarge = "tree_too_large", No;
    /// The checkpoint belongs to another root.
    ForeignRoot = "foreign_root", No;
    /// Commits after the checkpoint belong to another run, or to you.
    ForeignCommits = "foreign_commits", No;
    /// The work switched branches, so what it did alone cannot be told.
    BranchSwitched = "branch_switched", No;
    /// Others changed files that would be replaced.
    FileConflict = "file_conflict", No;
    /// Rows are not as the call needs them: another run works with the same database, or some are in the way.
    RowConflict = "row_conflict", No;
    /// A step that cannot be undone came after what would be undone.
    Pivot = "pivot", No;
    /// An effect could not be undone.
    EffectFailed = "effect_failed", No;
    /// A rollback undid effects, which cannot be made again.
    EffectsUndone = "effects_undone", No;
    /// The run went on since the rollback that would be undone.
    RunChanged = "run_changed", No;
    /// It was interrupted before it began.
    Interrupted = "interrupted", No;
    /// Nothing was begun that is not finished.
    NothingToResume = "nothing_to_resume", No;
    /// A merge, rebase or the like is in progress.
    GitInProgress = "git_in_progress", No;
    /// Another git command holds the index or a ref, or moved a ref during the call.
    GitBusy = "git_busy", No;
    /// The repository uses something that is not restored: sparse checkout, submodule changes, a branch checked out elsewhere.
    GitUnsupported = "git_unsupported", No;

    /// The ledger was written by a newer version of this program.
    NewerSchema = "newer_schema", Failure;
    /// The ledger on a server is of an older version, and is not migrated by the way.
    MigrationNeeded = "migration_needed", Failure;
    /// The server of the ledger cannot be reached, or was lost.
    Unreachable = "unreachable", Failure;
    /// The server's certificate is not to be trusted.
    UntrustedServer = "untrusted_server", Failure;
    /// The file is a database, but not a ledger.
    ForeignDatabase = "foreign_database", Failure;
    /// The object store belongs to another ledger.
    ForeignStore = "foreign_store", Failure;
    /// The log beside the ledger was written for another file.
    ForeignLog = "foreign_log", Failure;
    /// The store remembers a newer event than the ledger has.
    LedgerBehind = "ledger_behind", Failure;
    /// The file system cannot hold a ledger safely.
    UnsupportedFs = "unsupported_fs", Failure;
    /// Another process held the ledger past the timeout.
    Busy = "busy", Failure;
    /// The ledger, or an object in it, is damaged.
    Corrupt = "corrupt", Failure;
    /// The chain of events does not verify.
    ChainBroken = "chain_broken", Failure;
    /// No space left for the ledger or the output.
    DiskFull = "disk_full", Failure;
    /// The ledger or its directory may not be written or read.
    PermissionDenied = "permission_denied", Failure;
    /// A migration of the ledger did not succeed; nothing was changed.
    MigrationFailed = "migration_failed", Failure;
    /// A git command failed.
    GitFailed = "git_failed", Failure;
    /// Reading or writing a file failed.
    Io = "io_error", Failure;
    /// A fault of this program.
    Internal = "internal", Failure;
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{Code, ErrorKind};

    #[test]
    fn a_reference_to_nothing_is_wrong_usage() {
        let unknown = |text: &str| text.ends_with("_not_found") || text.starts_with("unknown_");
        let all: Vec<&Code> = Code::ALL.iter().filter(|code| unknown(code.as_str())).collect();
        assert!(all.len() >= 12, "{all:?}");
        for code in all {
            assert_eq!(code.kind(), ErrorKind::Usage, "{}", code.as_str());
        }
    }

    #[test]
    fn codes_are_distinct_snake_case() {
        let mut seen = HashSet::new();
        for code in Code::ALL {
            let text = code.as_str();
            assert!(seen.insert(text), "{text} stands twice");
            assert!(text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{text} is not snake_case");
        }
    }
}
