//! The values that an argument can take.

use std::any::TypeId;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::Arg;
use ic_base::Result;
use ic_dispatch::DispatchStatus;
use ic_phase::Chain;
use ic_rewind::journal::RewindStatus;

use super::ledger::{self, Looked, look};
use super::position::Position;
use super::{Candidate, files};
use crate::environment::CliEnvironment;

/// The kind of value that an argument takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CompletionKind {
    Run,
    RunId,
    Dispatch,
    Checkpoint,
    CheckpointName,
    Conversation,
    Workflow,
    Rollback,
    Rewind,
    /// A rollback, restore or rewind that stands.
    JournalEntry,
    Task,
    Agent,
    Artifact,
    Phase,
    Point,
    /// Work of this place or a checkpoint, by the reference that a log prints.
    Entry,
    ExpectedPhase,
    Step,
    Event,
    Cursor,
    DispatchStatus,
    File,
    Directory,
    /// JSON on the command line, or `@FILE`.
    InlineOrFile,
    Client,
    Session,
    /// One of a few words that the parser knows.
    Choice,
    /// Only the caller knows it, as a text or a number.
    Own,
}

/// The kind of value that an argument of a verb takes.
pub(super) fn kind(path: &[&str], argument: &Arg) -> CompletionKind {
    let is_path = argument.get_value_parser().type_id() == TypeId::of::<PathBuf>();
    let is_directory = argument.get_value_names().unwrap_or_default().iter().any(|name| name.as_str() == "DIR");
    // The verb decides, too: an `id` is a dispatch, a checkpoint or a rollback. The first line that fits counts.
    match (path, argument.get_id().as_str()) {
        _ if !argument.get_possible_values().is_empty() => CompletionKind::Choice,
        (["run", "list"], "before") => CompletionKind::RunId,
        (["hook" | "hooks" | "mcp" | "install" | "uninstall", ..], "client") => CompletionKind::Client,
        (["session", _], "id" | "session") | (["log"], "session") => CompletionKind::Session,
        (_, "run") => CompletionKind::Run,
        (_, "dispatch") | (["dispatch", _], "id") | (["wait"], "references") | (["exec"], "killed") => {
            CompletionKind::Dispatch
        }
        (["dispatch", "list"], "status") => CompletionKind::DispatchStatus,
        (["checkpoint", "restore"], "name") => CompletionKind::CheckpointName,
        (["diff"], "from" | "to")
        | (["show" | "fork"] | ["session", "continue"], "reference")
        | (["restore"], "before")
        | (["undo"], "point") => CompletionKind::Entry,
        (["checkpoint", "diff"], "from" | "to") | (["checkpoint", _] | ["workflow", "rollback"], "id") => {
            CompletionKind::Checkpoint
        }
        (["checkpoint", _], "conversation") => CompletionKind::Conversation,
        (["checkpoint", _] | ["workflow", "checkpoints"], "workflow") => CompletionKind::Workflow,
        (["rollback", _], "id") => CompletionKind::Rollback,
        (["redo"], "id") => CompletionKind::JournalEntry,
        (["rewind", _], "id") => CompletionKind::Rewind,
        (["rewind", "to"], "task") => CompletionKind::Task,
        (["run", "agent", _], "agent") => CompletionKind::Agent,
        (["run", "artifact", "cat"], "id") => CompletionKind::Artifact,
        (_, "expect_phase") => CompletionKind::ExpectedPhase,
        (_, "phase" | "to_phase") => CompletionKind::Phase,
        (["run", "rollback"], "to") => CompletionKind::Point,
        (["compensation", "run"], "step" | "skip") | (["rollback", "resume"], "skip_effect") => CompletionKind::Step,
        (["events", "tail"], "cursor") | (["events", "cursor", _], "name") => CompletionKind::Cursor,
        (["events", "tail"], "since") | (["events", "redact"] | ["events", "cursor", _], "seq") => {
            CompletionKind::Event
        }
        (["run", "create"], "gates") => CompletionKind::InlineOrFile,
        (["compensation", "add"] | ["exec"], "command") | (["fork"] | ["session", "continue"], "arguments") => {
            CompletionKind::File
        }
        (["adopt" | "drop"], "fork") | (["compare"], "forks") => CompletionKind::Directory,
        _ if is_directory => CompletionKind::Directory,
        _ if is_path => CompletionKind::File,
        _ => CompletionKind::Own,
    }
}

/// The values of `argument` that begin with `typed`, and perhaps more: the caller filters.
pub(super) fn of(at: &Position<'_>, argument: &Arg, typed: &OsStr, environment: &CliEnvironment) -> Vec<Candidate> {
    let Some(delimiter) = argument.get_value_delimiter() else {
        return one(at, argument, typed, environment);
    };
    // Only what comes after the last delimiter is completed: the `fi` of `git,fi`.
    let bytes = typed.as_bytes();
    let cut = bytes.iter().rposition(|byte| char::from(*byte) == delimiter).map_or(0, |at| at + 1);
    let (before, last) = (OsStr::from_bytes(&bytes[..cut]), OsStr::from_bytes(&bytes[cut..]));
    let mut found = one(at, argument, last, environment);
    // A value is not offered again if the list, or the same option before it, has it already.
    let given: Vec<&[u8]> = at
        .values(argument)
        .chain([before])
        .flat_map(|list| list.as_bytes().split(|byte| char::from(*byte) == delimiter))
        .collect();
    found.retain(|candidate| !given.contains(&candidate.value.as_bytes()));
    found.into_iter().map(|candidate| candidate.behind(before)).collect()
}

fn one(at: &Position<'_>, argument: &Arg, typed: &OsStr, environment: &CliEnvironment) -> Vec<Candidate> {
    // No name in the ledger begins with bytes that are not UTF-8. The caller removes what does not fit.
    let text = typed.to_str().unwrap_or_default();
    let files = |typed: &OsStr, only_directories| {
        // `-C` itself is completed from the shell's directory: the directory that it names is not known yet.
        let is_place = argument.get_id() == "directory";
        let from = if is_place { std::fs::canonicalize(".").ok() } else { ledger::directory(at, environment) };
        from.map_or_else(Vec::new, |from| files::named(typed, &from, environment.home.as_deref(), only_directories))
    };
    let words = |words: &[&str]| words.iter().map(|word| Candidate::new(*word, "")).collect();
    match kind(&at.path, argument) {
        CompletionKind::Choice => choices(argument),
        CompletionKind::DispatchStatus => words(&DispatchStatus::WORDS),
        CompletionKind::File => files(typed, false),
        CompletionKind::Directory => files(typed, true),
        CompletionKind::InlineOrFile => {
            // Only the caller knows what JSON is to be typed.
            let Some(file) = typed.as_bytes().strip_prefix(b"@") else { return Vec::new() };
            let found = files(OsStr::from_bytes(file), false);
            found.into_iter().map(|candidate| candidate.behind(OsStr::new("@"))).collect()
        }
        CompletionKind::Client => words(&ic_session::clients::Client::WORDS),
        CompletionKind::Own => Vec::new(),
        // Without a run, the rules are those of the default chain.
        CompletionKind::Phase if at.path == ["gate", "rules"] && !at.has("run") => words(&Chain::default().names()),
        // Tasks are in the application's database, which the configuration names.
        CompletionKind::Task => look(at, environment, |looked| looked.tasks(environment.config.as_deref())),
        kind => look(at, environment, |looked| from_ledger(looked, kind, at, argument, text)),
    }
}

fn choices(argument: &Arg) -> Vec<Candidate> {
    let values = argument.get_possible_values();
    let shown = values.iter().filter(|value| !value.is_hide_set());
    shown.map(|value| Candidate::new(value.get_name(), super::first_line(value.get_help()))).collect()
}

fn from_ledger(
    looked: &Looked<'_>,
    kind: CompletionKind,
    at: &Position<'_>,
    argument: &Arg,
    typed: &str,
) -> Result<Vec<Candidate>> {
    let verb = at.path.last().copied().unwrap_or_default();
    match kind {
        CompletionKind::Run => looked.runs(typed),
        CompletionKind::RunId => looked.run_ids(typed),
        CompletionKind::Dispatch => {
            // `--dispatch` names the calling dispatch, which has not ended, whatever the verb.
            let is_caller = argument.get_id() == "dispatch";
            looked.dispatches(typed, |status| match verb {
                _ if is_caller => !status.is_finished(),
                "start" => status == DispatchStatus::Pending,
                "complete" | "fail" | "cancel" => !status.is_finished(),
                _ => true,
            })
        }
        CompletionKind::Checkpoint => looked.checkpoint_ids(typed),
        CompletionKind::CheckpointName => looked.checkpoint_words(|checkpoint| checkpoint.link.name.as_deref()),
        CompletionKind::Conversation => looked.checkpoint_words(|checkpoint| checkpoint.link.conversation.as_deref()),
        CompletionKind::Workflow => looked.checkpoint_words(|checkpoint| checkpoint.link.workflow.as_deref()),
        CompletionKind::Session => looked.sessions(typed),
        CompletionKind::Rollback => looked.rollbacks(typed, |rollback| match verb {
            "resume" | "abort" => !rollback.status.is_over(),
            _ => true,
        }),
        CompletionKind::Rewind => looked.rewinds(typed, |_| true),
        CompletionKind::JournalEntry => Ok([
            looked.rollbacks(typed, |rollback| rollback.status.stands())?,
            looked.last_restore(typed)?,
            looked.rewinds(typed, |status| status != RewindStatus::Undone)?,
        ]
        .concat()),
        CompletionKind::Agent => looked.agents(typed),
        CompletionKind::Artifact => looked.artifacts(typed),
        CompletionKind::Phase => phases(looked, at, argument),
        CompletionKind::Point => looked.points(),
        CompletionKind::Entry => looked.entries(typed),
        CompletionKind::ExpectedPhase => Ok(looked.expectable()),
        CompletionKind::Step => looked.steps(),
        CompletionKind::Event => looked.events(),
        CompletionKind::Cursor => looked.cursors(),
        // The values of other options are not in the ledger.
        _ => Ok(Vec::new()),
    }
}

/// The phases that fit: those behind the run for a rollback, those ahead of it for a skip, else all.
fn phases(looked: &Looked<'_>, at: &Position<'_>, argument: &Arg) -> Result<Vec<Candidate>> {
    if at.path == ["run", "skip"] {
        return looked.skippable();
    }
    if argument.get_id() != "to_phase" {
        return Ok(looked.phases(|_, _| true));
    }
    let with_current = at.has("include_target");
    // The nearest comes first, because most rollbacks go back one phase.
    let mut phases = looked.phases(|phase, current| phase < current || (with_current && phase == current));
    phases.reverse();
    Ok(phases)
}
