//! The tools: their names, their descriptions, and the command that each one runs.

use std::sync::Arc;

use ic_base::{Code, Diagnosis, Result};
use rmcp::model::{JsonObject, Tool as Listed, ToolAnnotations};
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::command_words::Words;
use crate::inputs::{
    AdvanceInput, CheckpointInput, CompleteInput, DeclareCompensation, DiffInput, ForkInput, Input, LogInput,
    RecordWork, RedoInput, RegisterArtifact, StatusInput, UndoInput, WaitInput,
};
use crate::step::ConsentStep;

/// A tool that clients can list and call: one command under a name that an agent understands.
pub(crate) struct CatalogueTool {
    /// Its name, without a prefix such as `ic_`: clients put the server's name before it.
    pub(crate) name: &'static str,
    title: &'static str,
    about: &'static str,
    kind: Kind,
    /// The shapes of its answer: `docs/schemas/`.
    shapes: &'static [&'static str],
    schema: fn() -> Value,
    read: fn(JsonObject, Option<&str>) -> Result<CatalogueCall>,
}

/// What a tool does to the project; clients decide by it whether they ask their person before a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It reads, and changes nothing.
    Reads,
    /// It adds to the record, each time it is called.
    Adds,
    /// It adds to the record; the same again changes nothing more.
    AddsOnce,
    /// It undoes work, which may destroy files, and may run compensations.
    TakesBack,
}

/// A call of a tool, with its arguments read and checked.
#[derive(Debug, Clone)]
pub(crate) struct CatalogueCall {
    /// The command that it runs, with its arguments.
    pub(crate) words: Words,
    /// The step that is asked for, of a tool that first plans and then acts; `None` for every other tool.
    pub(crate) step: Option<ConsentStep>,
    /// The most entries of a page, for a list that is read by pages.
    pub(crate) page: Option<u32>,
    /// The arguments that the tool takes, to be named in an error.
    pub(crate) takes: Takes,
}

/// The arguments of a tool, by their schema. It is made only when an error names them: most calls need none.
#[derive(Debug, Clone)]
pub(crate) struct Takes(fn() -> Value);

impl Takes {
    fn hint(&self) -> String {
        let known = (self.0)();
        let names = known["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        format!("it takes: {}", names.collect::<Vec<_>>().join(", "))
    }

    /// Replaces a hint that names flags by one that names the tool's arguments: a model that calls a tool types no flags.
    pub(crate) fn explained(&self, error: Diagnosis) -> Diagnosis {
        // A hint that names `--help` is for the command line.
        let is_of_flags = error.get_hint().is_some_and(|hint| hint.contains("--help"));
        if error.code() == Code::Usage || is_of_flags { error.hint(self.hint()) } else { error }
    }
}

macro_rules! tool {
    ($name:literal, $title:literal, $kind:ident, $input:ty, $shapes:expr, $about:literal) => {
        CatalogueTool {
            // The functions are instances for one input type, so that the table of tools can be a constant.
            name: $name,
            title: $title,
            about: $about,
            kind: Kind::$kind,
            shapes: &$shapes,
            schema: input_schema::<$input>,
            read: read::<$input>,
        }
    };
}

/// The tools, in the order in which they are listed.
pub(crate) const TOOLS: &[CatalogueTool] = &[
    tool!(
        "status",
        "Where the run is",
        Reads,
        StatusInput,
        [include_str!("../../../docs/schemas/status.json")],
        "Show the run here: its phase, what its gate asks, the dispatch that this client works for and whether it was rolled back, who \
         else works, what is unfinished, and the command to type next. Call it first."
    ),
    tool!(
        "log",
        "Points to go back to",
        Reads,
        LogInput,
        [include_str!("../../../docs/schemas/log.json")],
        "List the points that the run can go back to and its rollbacks, newest first, by pages. Each point has a reference for undo and \
         diff; it stands before the work that its title names."
    ),
    tool!(
        "diff",
        "What changed since a point",
        Reads,
        DiffInput,
        [include_str!("../../../docs/schemas/checkpoint-diff.json")],
        "Show what changed in the files between a point and another one, or the working tree: the paths, and a patch up to max_bytes."
    ),
    tool!(
        "checkpoint",
        "Capture the working tree",
        Adds,
        CheckpointInput,
        [include_str!("../../../docs/schemas/checkpoint.json")],
        "Capture the working tree now, before something risky: undo and diff can name the checkpoint. Ignored files and likely secrets \
         are left out."
    ),
    tool!(
        "undo",
        "Undo work",
        TakesBack,
        UndoInput,
        [include_str!("../../../docs/schemas/rollback.json"), include_str!("../../../docs/schemas/restore.json")],
        "Undo work: record, outside effects, git, files and rows go back to before a point (default: the last prompt, dispatch or step). \
         Two steps: without expect_plan nothing changes, and the answer is the plan with its hash; show the person what would go back. With \
         expect_plan exactly that plan is carried out, or refused if it has changed. Where the client can ask its person, the first call \
         asks, and does the plan if the person accepts."
    ),
    tool!(
        "redo",
        "Redo what was undone last",
        TakesBack,
        RedoInput,
        [
            include_str!("../../../docs/schemas/rollback-undone.json"),
            include_str!("../../../docs/schemas/restore.json")
        ],
        "Undo the last undo. Two steps, as undo: without expect_plan nothing changes, and the answer is the plan with its hash."
    ),
    tool!(
        "advance",
        "Advance the run",
        Adds,
        AdvanceInput,
        [include_str!("../../../docs/schemas/advance.json")],
        "Move the run to its next phase, if its gate passes. If it does not, `advanced` is false, and the answer says which conditions \
         fail. Gates are not skipped from here."
    ),
    tool!(
        "register_artifact",
        "Register an artifact",
        Adds,
        RegisterArtifact,
        [include_str!("../../../docs/schemas/artifact.json")],
        "Record a file that the run produced, with its SHA-256: a plan, a report, what a gate asks for."
    ),
    tool!(
        "record_work",
        "Record commits and files",
        AddsOnce,
        RecordWork,
        [include_str!("../../../docs/schemas/recorded.json")],
        "Record the commits and files of a dispatch, so that an undo knows whose they are. The same again changes nothing."
    ),
    tool!(
        "complete",
        "Complete a dispatch",
        Adds,
        CompleteInput,
        [include_str!("../../../docs/schemas/dispatch.json")],
        "Mark a dispatch completed, with a summary, and the verdict if it was a review."
    ),
    tool!(
        "fork",
        "Fork the work tree",
        Adds,
        ForkInput,
        [include_str!("../../../docs/schemas/fork.json")],
        "Make a linked work tree beside this one with the same files, untracked ones too, to try something without touching them. Work there, \
         then tell the person its name: ic compare shows it, ic adopt merges it, ic drop removes it."
    ),
    tool!(
        "wait",
        "Wait for work",
        Reads,
        WaitInput,
        [include_str!("../../../docs/schemas/wait.json")],
        "Wait until dispatches or runs end, or the first of them does: the work of other agents that must be done before yours. Each entry has \
         its status, and a code if it has not ended (timed_out, process_gone, lost, not_finished)."
    ),
    tool!(
        "declare_compensation",
        "Declare how to undo an effect",
        Adds,
        DeclareCompensation,
        [include_str!("../../../docs/schemas/compensation.json")],
        "Declare how to undo an outside effect (a deployment, a queue, a message) BEFORE making it. Give one of exec, shell, \
         restore_files, kill_pid, skip and pivot. The undo must succeed when there is nothing to undo, and when it runs twice."
    ),
];

/// The tool of this name.
pub(crate) fn named(name: &str) -> Option<&'static CatalogueTool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

impl CatalogueTool {
    /// The tool as clients list it: its description, its schemas, and what it does to the project.
    pub(crate) fn listed(&self) -> Listed {
        Listed::new(self.name, self.about, Arc::new(object((self.schema)())))
            .with_title(self.title)
            .with_raw_output_schema(Arc::new(object(output_schema(self.shapes))))
            .with_annotations(self.kind.annotations())
    }

    /// A call with these arguments, of a client that works for the dispatch `own`. Errors: `invalid_value`, with what the tool takes.
    pub(crate) fn call(&self, arguments: Option<JsonObject>, own: Option<&str>) -> Result<CatalogueCall> {
        (self.read)(arguments.unwrap_or_default(), own).map_err(|error| error.detail("tool", self.name))
    }
}

impl Kind {
    fn annotations(self) -> ToolAnnotations {
        let (reads, destroys) = (self == Self::Reads, self == Self::TakesBack);
        ToolAnnotations::new()
            .read_only(reads)
            .destructive(destroys)
            .idempotent(matches!(self, Self::Reads | Self::AddsOnce))
            // Compensations of outside effects are made by an undo alone.
            .open_world(destroys)
    }
}

fn read<I: Input>(arguments: JsonObject, own: Option<&str>) -> Result<CatalogueCall> {
    let input: I = serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        Diagnosis::new(Code::InvalidValue, format!("The arguments cannot be read: {error}."))
            .hint(Takes(input_schema::<I>).hint())
    })?;
    Ok(CatalogueCall {
        words: input.words(own)?,
        step: input.step(),
        page: input.page(),
        takes: Takes(input_schema::<I>),
    })
}

fn input_schema<I: Input>() -> Value {
    // The schema for reading: in one for writing, every property with a default would be required.
    let generator = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true).into_generator();
    let mut schema = generator.into_root_schema_for::<I>().to_value();
    // Every type is written out in place, so the schema has no references.
    without_formats(&mut schema);
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("title");
        // Clients refuse an object without any.
        schema.entry("properties").or_insert_with(|| json!({}));
    }
    schema
}

/// The schema of an answer that has one of these shapes. The protocol wants an object, so a list becomes its property `entries`.
fn output_schema(shapes: &[&str]) -> Value {
    let mut defined = Map::new();
    let mut parts: Vec<Value> = Vec::new();
    for shape in shapes {
        // A test holds them to be JSON.
        let mut shape: Value = serde_json::from_str(shape).unwrap_or_default();
        without_formats(&mut shape);
        if let Some(Value::Object(of_shape)) = shape.as_object_mut().and_then(|shape| shape.remove("$defs")) {
            // If two shapes of a tool define the same name, they define it in the same way: a test requires it.
            defined.extend(of_shape);
        }
        if let Some(shape) = shape.as_object_mut() {
            shape.remove("$schema");
        }
        parts.push(if shape["type"] == "array" { paged(&shape) } else { shape });
    }
    // The answers of undo and redo have two shapes: both verbs undo restores as well as rollbacks.
    let mut schema = match parts.len() {
        1 => parts.remove(0),
        _ => json!({ "type": "object", "anyOf": parts }),
    };
    // No command prints it: it is added to the answer.
    schema["properties"]["notes"] = json!({
        "type": "array",
        "items": { "type": "string" },
        "description": "What is to be said beside it: what to call next, and warnings. Left out if there is nothing.",
    });
    if !defined.is_empty() {
        schema["$defs"] = Value::Object(defined);
    }
    schema
}

/// Removes every `format`: clients warn of those that they do not know, such as `uint`.
fn without_formats(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if object.get("format").is_some_and(Value::is_string) {
                object.remove("format");
            }
            object.values_mut().for_each(without_formats);
        }
        Value::Array(list) => list.iter_mut().for_each(without_formats),
        _ => {}
    }
}

fn paged(list: &Value) -> Value {
    json!({
        "type": "object",
        "properties": {
            "entries": list,
            "next_before": {
                "type": ["integer", "null"],
                "description": "For the next page: give it as before. Null: there is none. A page may hold fewer entries than limit, where another one follows.",
            },
        },
        "required": ["entries", "next_before"],
    })
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn each_tool_says_what_it_takes_and_answers() {
        for tool in TOOLS {
            let listed = tool.listed();
            assert_eq!(listed.input_schema["type"], "object", "{}", tool.name);
            assert_eq!(listed.input_schema["additionalProperties"], false, "{}", tool.name);
            for (name, property) in listed.input_schema["properties"].as_object().expect("properties") {
                assert!(property["description"].is_string(), "{}: {name} is not described", tool.name);
            }
            let output = listed.output_schema.expect("an output schema");
            assert_eq!(output["type"], "object", "{}", tool.name);
            assert!(tool.about.chars().count() > 40, "{}", tool.name);
        }
    }

    #[test]
    fn what_two_shapes_define_is_the_same() {
        for tool in TOOLS {
            let mut seen: BTreeMap<String, Value> = BTreeMap::new();
            for shape in tool.shapes {
                let shape: Value = serde_json::from_str(shape).expect("a schema");
                for (name, definition) in shape["$defs"].as_object().into_iter().flatten() {
                    let first = seen.entry(name.clone()).or_insert_with(|| definition.clone());
                    assert_eq!(first, definition, "{}: {name} has two meanings", tool.name);
                }
            }
        }
    }

    #[test]
    fn arguments_that_a_tool_does_not_know_are_refused() {
        let arguments = json!({ "point": "created", "force": true });
        let arguments = arguments.as_object().expect("an object").clone();
        let refused = named("undo").expect("a tool").call(Some(arguments), None).expect_err("unknown");
        assert_eq!(refused.code(), Code::InvalidValue);
        assert!(refused.get_hint().expect("a hint").contains("keep_theirs"), "{refused:?}");
    }

    #[test]
    fn a_dispatch_is_named_or_of_the_environment() {
        let complete = named("complete").expect("a tool");
        assert_eq!(complete.call(None, None).expect_err("none").code(), Code::InvalidReference);
        let own = complete.call(None, Some("3f9a12c4")).expect("the environment's");
        assert_eq!(own.words.as_slice(), ["dispatch", "complete", "3f9a12c4"]);
    }
}
