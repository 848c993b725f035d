//! The promise that scripts rely on.

/// What the contract promises from the first release on: a shape, where in it, and its fields.
pub(super) const PROMISED: &[(&str, &str, &str)] = &[
    (
        "run",
        "",
        "id short_id goal status phase phases project_dir complexity auto_advance scope_id metadata epoch created_at \
         updated_at finished_at",
    ),
    ("where", "", "db store config_file project_dir"),
    ("health", "", "ok db schema_version checks"),
    ("health", "CheckJson", "name ok detail"),
    (
        "advance",
        "",
        "run_id advanced event_kind from_phase to_phase gate_result gate_tier evidence reason epoch seq checkpoint_id",
    ),
    ("advance", "EvidenceJson", "conditions"),
    ("advance", "ConditionJson", "check phase result count detail"),
    (
        "rollback",
        "",
        "run_id rollback_id dry_run layers from_phase to_phase cut_seq epoch reason plan_hash rolled_back_phases \
         cancelled_dispatches marked_dispatches marked_artifacts failed_agents cleared_skips counts status seq",
    ),
    ("rollback", "DispatchRef", "id name phase status"),
    ("rollback", "ArtifactRef", "id phase path kind"),
    ("rollback", "AgentRef", "id name phase"),
    ("rollback", "CountsJson", "phases dispatches artifacts agents skips"),
    ("code", "", "run_id layer phases entries revert_order artifacts"),
    ("code", "EntryJson", "dispatch_id dispatch_name agent_kind phase status late commit_shas file_paths"),
    ("code", "CodeArtifact", "id phase path content_hash kind status"),
    (
        "checkpoint",
        "",
        "id kind name message conversation workflow run_id phase step step_number dispatch_id parent_id tree_sha256 created_at \
         seq complete settled retainable nested_git counts changes git",
    ),
    ("checkpoint", "CountsJson", "files dirs symlinks bytes new_objects stored_bytes duration_ms"),
    ("checkpoint", "ChangeJson", "path change"),
    ("checkpoint", "SkippedJson", "path reason"),
    ("checkpoint", "FileJson", "path kind mode size sha256"),
    ("checkpoint-diff", "", "from_checkpoint_id to_checkpoint_id changes"),
    (
        "restore",
        "",
        "checkpoint_id safety_checkpoint_id restored_checkpoint_id dry_run strategy status changes conflicts skipped failed git",
    ),
    ("restore", "RestoreChangeJson", "path change uncaptured"),
    ("restore", "FailedJson", "path error"),
    (
        "compensation",
        "",
        "id run_id step phase epoch ord kind status attempts description error created_at action dispatch_id \
         rolled_back_by",
    ),
    ("compensation-run", "", "run_id status results compensations_left resume"),
    ("compensation-run", "UndoneStepJson", "id step kind status attempts error"),
    ("coverage", "", "run_id steps percentage undeclared"),
    ("coverage", "CoveredJson", "step coverage"),
    ("rewind", "", "id short_id task_id snapshot_created_at deleted_row_counts stage git status"),
    ("rewind-preview", "", "task_id snapshot_created_at affected_row_counts git note"),
    ("workflow", "", "run_id workflow status steps failed_step error rollback resume"),
    (
        "workflow",
        "StepJson",
        "id phase status dispatch_id checkpoint_id compensation_id attempts exit_code error duration_ms log",
    ),
    ("workflow", "TakenBackJson", "strategy compensations compensations_left restored rollback_id to_phase error"),
    ("workflow", "RestoredJson", "checkpoint_id change_count git_restored failed"),
    ("workflow-plan", "", "workflow goal phases steps percentage undeclared"),
    ("workflow-plan", "PlannedStepJson", "id phase needs argv timeout_ms retries coverage"),
    ("config", "SettingJson", "value source"),
    ("event", "", "seq run_id source kind subject_id from to epoch reason payload created_at hash"),
    ("error", "ErrorBody", "code message hint details"),
];
