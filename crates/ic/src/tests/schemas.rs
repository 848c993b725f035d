//! `docs/schemas/`: one JSON schema for each shape that a verb prints.

mod contract;

use std::collections::BTreeSet;

use contract::PROMISED;
use ic_base::Code;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::files::{assert_is, names};
use super::verbs::{leaves, tree};
use crate::failure::ErrorJson;
use crate::views::agent::AgentJson;
use crate::views::artifact::{ArtifactAddedJson, ArtifactJson};
use crate::views::blame::BlameJson;
use crate::views::cancel::{CancelJson, ReopenJson};
use crate::views::checkpoint::CheckpointJson;
use crate::views::checkpoint::content::DiffJson;
use crate::views::checkpoint::restore::RestoreJson;
use crate::views::checkpoint::retention::{PruneJson, PurgeJson, VerifyObjectsJson};
use crate::views::code::CodeJson;
use crate::views::compensation::CompensationJson;
use crate::views::compensation::compensation_report::UndoneJson;
use crate::views::compensation::coverage::CoverageJson;
use crate::views::config::ConfigJson;
use crate::views::conversation::ConversationJson;
use crate::views::dispatch::{DispatchJson, DispatchShowJson, ExecJson, RecordedJson};
use crate::views::event::{CursorJson, EventJson, RedactedJson, VerifyJson};
use crate::views::fork::{AdoptJson, CompareJson, DropJson, ForkJson};
use crate::views::gate::{AdvanceJson, GateCheckJson, GateRuleJson};
use crate::views::history::HistoryJson;
use crate::views::hooks::{HooksDoctorJson, HooksJson};
use crate::views::ledger::{BackupJson, HealthJson, InitJson, MigrateJson, VersionJson, WhereJson};
use crate::views::log::LogEntryJson;
use crate::views::man::ManJson;
use crate::views::mcp::InstallJson;
use crate::views::rewind::RewindJson;
use crate::views::rewind::database::{RewindInitJson, RewindInspectJson, RewindTargetJson};
use crate::views::rewind::preview::RewindPreviewJson;
use crate::views::rollback::RollbackJson;
use crate::views::rollback::record::{RollbackRecordJson, RollbackShowJson};
use crate::views::rollback::rollback_undo::RollbackUndoneJson;
use crate::views::run::{PhaseJson, RunCreatedJson, RunJson, RunStatusJson, SkipJson};
use crate::views::session::{SessionJson, SessionShowJson};
use crate::views::show::ShowJson;
use crate::views::status::StatusJson;
use crate::views::ui::UiJson;
use crate::views::wait::AwaitedJson;
use crate::views::workflow::WorkflowJson;
use crate::views::workflow::plan::{WorkflowPlanJson, WorkflowRollbackPlanJson};

/// Which shape a verb prints with `--json`. Verbs with several shapes have a line for each.
const SHAPES: &[(&str, &str)] = &[
    ("ic status", "status"),
    ("ic log", "log"),
    ("ic show", "show"),
    ("ic diff", "checkpoint-diff"),
    ("ic blame", "blame"),
    ("ic exec", "exec"),
    ("ic fork", "fork"),
    ("ic compare", "compare"),
    ("ic adopt", "adopt"),
    ("ic drop", "drop"),
    ("ic init", "init"),
    ("ic where", "where"),
    ("ic version", "version"),
    ("ic backup", "backup"),
    ("ic health", "health"),
    ("ic migrate", "migrate"),
    ("ic man", "man"),
    ("ic undo", "rollback"),
    ("ic redo", "rollback-undone"),
    ("ic redo --json RESTORE", "restore"),
    ("ic redo --json REWIND", "rewind"),
    ("ic restore", "restore"),
    ("ic ui", "ui"),
    ("ic run create", "run-created"),
    ("ic run list", "run-list"),
    ("ic run status", "run-status"),
    ("ic run phase", "phase"),
    ("ic run current", "run"),
    ("ic run events", "event-list"),
    ("ic run history", "history"),
    ("ic run advance", "advance"),
    ("ic run skip", "skip"),
    ("ic run set", "run"),
    ("ic run cancel", "cancel"),
    ("ic run reopen", "reopen"),
    ("ic run rollback", "rollback"),
    ("ic run rollback --layer=code", "code"),
    ("ic run agent add", "agent"),
    ("ic run agent list", "agent-list"),
    ("ic run agent update", "agent"),
    ("ic run artifact add", "artifact"),
    ("ic run artifact list", "artifact-list"),
    ("ic checkpoint create", "checkpoint"),
    ("ic checkpoint list", "checkpoint-list"),
    ("ic checkpoint show", "checkpoint"),
    ("ic checkpoint diff", "checkpoint-diff"),
    ("ic checkpoint restore", "restore"),
    ("ic checkpoint prune", "prune"),
    ("ic checkpoint delete", "prune"),
    ("ic checkpoint purge", "purge"),
    ("ic checkpoint verify", "verify-objects"),
    ("ic compensation add", "compensation"),
    ("ic compensation list", "compensation-list"),
    ("ic compensation run", "compensation-run"),
    ("ic compensation coverage", "coverage"),
    ("ic config show", "config"),
    ("ic rollback list", "rollback-list"),
    ("ic rollback show", "rollback-show"),
    ("ic rollback resume", "rollback-show"),
    ("ic rollback abort", "rollback-undone"),
    ("ic rewind init", "rewind-init"),
    ("ic rewind inspect", "rewind-inspect"),
    ("ic rewind targets", "rewind-targets"),
    ("ic rewind to", "rewind"),
    ("ic rewind to --dry-run", "rewind-preview"),
    ("ic rewind resume", "rewind"),
    ("ic rewind status", "rewind"),
    ("ic rewind list", "rewind-list"),
    ("ic dispatch create", "dispatch"),
    ("ic dispatch start", "dispatch"),
    ("ic dispatch complete", "dispatch"),
    ("ic dispatch fail", "dispatch"),
    ("ic dispatch cancel", "dispatch"),
    ("ic dispatch record", "recorded"),
    ("ic dispatch tokens", "dispatch"),
    ("ic dispatch show", "dispatch-show"),
    ("ic dispatch beat", "dispatch"),
    ("ic wait", "wait"),
    ("ic dispatch list", "dispatch-list"),
    ("ic gate check", "gate-check"),
    ("ic gate override", "advance"),
    ("ic gate rules", "gate-rules"),
    ("ic events tail", "event-list"),
    ("ic events cursor list", "cursors"),
    ("ic events cursor commit", "cursor"),
    ("ic events cursor reset", "cursors"),
    ("ic events verify", "verify"),
    ("ic events redact", "redacted"),
    ("ic workflow run", "workflow"),
    ("ic workflow run --dry-run", "workflow-plan"),
    ("ic workflow resume", "workflow"),
    ("ic workflow rollback", "workflow"),
    ("ic workflow rollback --dry-run", "workflow-rollback-plan"),
    ("ic workflow checkpoints", "checkpoint-list"),
    ("ic workflow validate", "workflow-plan"),
    ("ic workflow show", "workflow"),
    ("ic hooks install", "hooks"),
    ("ic hooks doctor", "hooks-doctor"),
    ("ic install", "install"),
    ("ic uninstall", "install"),
    ("ic session continue", "conversation"),
    ("ic session list", "session-list"),
    ("ic session show", "session-show"),
    ("ic session attach", "session"),
];

/// Verbs whose output is a file's own bytes, or a script, in every form.
const RAW: &[&str] = &["ic mcp", "ic checkpoint cat", "ic run artifact cat", "ic completions", "ic hook"];

/// Every shape with its title, what it describes, and its schema.
pub(super) fn shapes() -> Vec<(&'static str, Value)> {
    [shapes_of_runs(), shapes_of_the_ledger(), shapes_of_agents(), shapes_of_the_rest()].concat()
}

pub(super) fn shapes_of_runs() -> Vec<(&'static str, Value)> {
    vec![
        ("run", schema::<RunJson>("Run")),
        ("run-created", schema::<RunCreatedJson>("Run that was created")),
        ("run-status", schema::<RunStatusJson>("Run with the tokens that its work used")),
        ("run-list", schema::<Vec<RunJson>>("Runs, oldest first")),
        ("phase", schema::<PhaseJson>("Phase of a run")),
        ("advance", schema::<AdvanceJson>("Advance")),
        ("gate-check", schema::<GateCheckJson>("Gate check")),
        ("gate-rules", schema::<Vec<GateRuleJson>>("Gate rules")),
        ("skip", schema::<SkipJson>("Skip")),
        ("cancel", schema::<CancelJson>("Cancelled run")),
        ("reopen", schema::<ReopenJson>("Reopened run")),
        ("session", schema::<SessionJson>("Session of a coding agent")),
    ]
}

pub(super) fn shapes_of_the_ledger() -> Vec<(&'static str, Value)> {
    vec![
        ("backup", schema::<BackupJson>("A copy of the ledger")),
        ("health", schema::<HealthJson>("Health of the ledger")),
        ("migrate", schema::<MigrateJson>("Migration of the ledger")),
    ]
}

fn shapes_of_agents() -> Vec<(&'static str, Value)> {
    vec![
        ("hooks", schema::<HooksJson>("Settings of a coding agent")),
        ("hooks-doctor", schema::<Vec<HooksDoctorJson>>("Hooks of coding agents")),
        ("install", schema::<InstallJson>("Hooks and MCP server of a coding agent")),
        ("exec", schema::<ExecJson>("Command that was run as a piece of work")),
        ("fork", schema::<ForkJson>("Fork of a work tree")),
        ("compare", schema::<Vec<CompareJson>>("Forks with their work, by name")),
        ("adopt", schema::<AdoptJson>("Adopted fork")),
        ("drop", schema::<DropJson>("Removed fork")),
    ]
}

pub(super) fn shapes_of_the_rest() -> Vec<(&'static str, Value)> {
    vec![
        ("rollback", schema::<RollbackJson>("Rollback")),
        ("rollback-list", schema::<Vec<RollbackRecordJson>>("Rollbacks, oldest first")),
        ("rollback-show", schema::<RollbackShowJson>("Rollback with its steps")),
        ("rollback-undone", schema::<RollbackUndoneJson>("Undone rollback")),
        ("history", schema::<HistoryJson>("A run as a story")),
        ("status", schema::<StatusJson>("A run at a glance")),
        ("blame", schema::<BlameJson>("Which work changed a file, newest first")),
        ("log", schema::<Vec<LogEntryJson>>("Points and rollbacks of a run, newest first")),
        ("show", schema::<ShowJson>("An entry of the log, and what it did")),
        ("code", schema::<CodeJson>("Code report")),
        ("dispatch", schema::<DispatchJson>("Dispatch")),
        ("dispatch-show", schema::<DispatchShowJson>("Dispatch with its commits and files")),
        ("conversation", schema::<ConversationJson>("Command that continues a conversation")),
        ("wait", schema::<Vec<AwaitedJson>>("Dispatches and runs at the end of a wait")),
        ("dispatch-list", schema::<Vec<DispatchJson>>("Dispatches, oldest first")),
        ("recorded", schema::<RecordedJson>("Recorded commits and files")),
        ("artifact", schema::<ArtifactAddedJson>("Artifact")),
        ("artifact-list", schema::<Vec<ArtifactJson>>("Artifacts of a run, oldest first")),
        ("agent", schema::<AgentJson>("Agent")),
        ("agent-list", schema::<Vec<AgentJson>>("Agents of a run, oldest first")),
        ("event", schema::<EventJson>("Event")),
        ("event-list", schema::<Vec<EventJson>>("Events, oldest first")),
        ("cursor", schema::<CursorJson>("Cursor")),
        ("cursors", schema::<Vec<CursorJson>>("Cursors, by name")),
        ("verify", schema::<VerifyJson>("Verification of the events")),
        ("redacted", schema::<RedactedJson>("Redaction")),
        ("checkpoint", schema::<CheckpointJson>("Checkpoint")),
        ("checkpoint-list", schema::<Vec<CheckpointJson>>("Checkpoints, oldest first")),
        ("checkpoint-diff", schema::<DiffJson>("What differs between two trees")),
        ("restore", schema::<RestoreJson>("Restore")),
        ("prune", schema::<PruneJson>("Pruned checkpoints")),
        ("purge", schema::<PurgeJson>("Content taken out")),
        ("verify-objects", schema::<VerifyObjectsJson>("Verification of checkpoints")),
        ("compensation", schema::<CompensationJson>("Compensation")),
        ("compensation-list", schema::<Vec<CompensationJson>>("Compensations, in the order of their effects")),
        ("compensation-run", schema::<UndoneJson>("What was undone")),
        ("coverage", schema::<CoverageJson>("Coverage of a run by compensations")),
        ("rewind", schema::<RewindJson>("Rewind")),
        ("rewind-list", schema::<Vec<RewindJson>>("Rewinds, oldest first")),
        ("rewind-targets", schema::<Vec<RewindTargetJson>>("Tasks that a rewind can go to, newest first")),
        ("rewind-preview", schema::<RewindPreviewJson>("What a rewind would do")),
        ("rewind-init", schema::<RewindInitJson>("What can be rewound, as it was set up")),
        ("rewind-inspect", schema::<RewindInspectJson>("A database, and how it could be rewound")),
        ("workflow", schema::<WorkflowJson>("Workflow")),
        ("workflow-plan", schema::<WorkflowPlanJson>("What a workflow's file says")),
        ("workflow-rollback-plan", schema::<WorkflowRollbackPlanJson>("A workflow's rollback, planned")),
        ("config", schema::<ConfigJson>("Configuration in force")),
        ("where", schema::<WhereJson>("Place of the ledger")),
        ("init", schema::<InitJson>("New or existing ledger")),
        ("version", schema::<VersionJson>("Versions")),
        ("man", schema::<ManJson>("Manual in a directory")),
        ("ui", schema::<UiJson>("Address of the page")),
        ("session-list", schema::<Vec<SessionJson>>("Sessions of coding agents, oldest first")),
        ("session-show", schema::<SessionShowJson>("Session with its prompts")),
        ("error", error_schema()),
    ]
}

/// The schema of what is written (not of what would be read): a field that is always written is required.
fn schema<T: JsonSchema>(title: &str) -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let generated = generator.into_root_schema_for::<T>().to_value();
    let described = generated["description"].as_str().map_or_else(|| format!("{title}."), str::to_owned);
    let mut schema = json!({ "$schema": generated["$schema"], "title": title, "description": described });
    for (key, value) in generated.as_object().into_iter().flatten() {
        if schema.get(key).is_none() {
            schema[key] = value.clone();
        }
    }
    schema
}

fn error_schema() -> Value {
    let mut schema = schema::<ErrorJson<'static>>("Error");
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    schema["$defs"]["ErrorBody"]["properties"]["code"]["enum"] = json!(codes);
    schema
}

#[test]
fn what_was_promised_stays() {
    let shapes = shapes();
    for (shape, part, fields) in PROMISED {
        let (_, schema) = shapes.iter().find(|(name, _)| name == shape).expect("a shape");
        let object = if part.is_empty() { schema } else { &schema["$defs"][part] };
        for field in fields.split_whitespace() {
            assert!(object["properties"].get(field).is_some(), "{shape} {part}: {field} is gone");
            let required = object["required"].as_array().is_some_and(|r| r.iter().any(|f| f == field));
            assert!(required, "{shape} {part}: {field} is not always there");
        }
    }
}

#[test]
fn each_shape_has_its_schema() {
    for (shape, schema) in shapes() {
        let text = serde_json::to_string_pretty(&schema).expect("a schema") + "\n";
        assert_is(&format!("schemas/{shape}.json"), &text);
    }
    let known: BTreeSet<String> = shapes().into_iter().map(|(shape, _)| shape.to_owned()).collect();
    assert_eq!(names("schemas", "json"), known, "docs/schemas holds other schemas than there are shapes");
}

#[test]
fn each_shape_is_described_and_open() {
    for (shape, schema) in shapes() {
        assert!(schema["description"].as_str().is_some_and(|text| !text.is_empty()), "{shape}");
        let text = schema.to_string();
        assert!(!text.contains("additionalProperties\":false"), "{shape} is closed to new fields");
        assert!(jsonschema::validator_for(&schema).is_ok(), "{shape} is not a schema");
    }
}

#[test]
fn each_verb_has_a_shape() {
    let tree = tree();
    let verbs: BTreeSet<String> =
        leaves(&tree).into_iter().map(|(name, _)| name).filter(|name| !RAW.contains(&name.as_str())).collect();
    let listed: BTreeSet<String> =
        SHAPES.iter().map(|(verb, _)| verb.split(" --").next().expect("a verb").to_owned()).collect();
    assert_eq!(listed, verbs);
    let shapes: BTreeSet<&str> = shapes().iter().map(|(shape, _)| *shape).collect();
    for (verb, shape) in SHAPES {
        assert!(shapes.contains(shape), "{verb} prints {shape}, which has no schema");
    }
}

#[test]
fn the_table_of_shapes_is_written() {
    let mut text = String::from(
        "# Output schemas

One JSON schema (draft 2020-12) for each shape that `ic` prints with `--json`. The tests validate real output
against these files. They are written from the code: `IC_UPDATE=1 cargo test -p ic --lib`.

Fields are added in later releases, never renamed or removed; so ignore what you do not know. A list that is empty is `[]`.
With `--format jsonl` a list is printed one record a line, each of the shape of the list's items. Times are RFC 3339,
UTC, with milliseconds. A path that is not UTF-8 stands as lossy text, with its exact bytes in base64 under
`<name>_b64` beside it.

| verb | prints |
|---|---|
",
    );
    for (verb, shape) in SHAPES {
        text.push_str(&format!("| `{verb}` | [{shape}]({shape}.json) |\n"));
    }
    text.push_str(
        "| any, on stderr, when it fails | [error](error.json) |

Verbs that create something, and `run phase`, `run current` and `where`, print just the value (an id, a phase, a path)
unless JSON is asked for in the call. `redo` tells by the key `undoes` what it prints: rollback, restore or rewind; `undo` with the id of
one prints the same. One event, as a line of `--format jsonl`, is [event](event.json).
",
    );
    assert_is("schemas/README.md", &text);
}
