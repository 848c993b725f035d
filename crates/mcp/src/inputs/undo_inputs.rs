//! The arguments of undo and redo.

use ic_base::Result;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Input;
use crate::command_words::Words;
use crate::step::ConsentStep;

/// A layer of a rollback.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Layer {
    /// Phase pointer, skips, artifacts, dispatches, agents.
    Workflow,
    /// Outside effects, undone by their compensations.
    Effects,
    /// Files of the working tree.
    Files,
    /// HEAD, branch, index, stash.
    Git,
    /// Rows of the application's tables.
    Data,
}

impl Layer {
    fn as_str(self) -> &'static str {
        match self {
            Self::Workflow => "workflow",
            Self::Effects => "effects",
            Self::Files => "files",
            Self::Git => "git",
            Self::Data => "data",
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UndoInput {
    /// Undo the work at this point, as log names it, and what came after it. Default: the last work.
    point: Option<String>,
    /// Undo that work alone, and keep what came after it.
    #[serde(default)]
    only: bool,
    /// The run. Default: that of the point, else the open run here.
    run: Option<String>,
    /// The reason, recorded with the rollback.
    reason: Option<String>,
    /// Only these layers. Default: all.
    #[serde(default)]
    layers: Vec<Layer>,
    /// Keep what others changed, instead of refusing.
    #[serde(default)]
    keep_theirs: bool,
    /// The hash of the plan that is to be carried out, from the answer to the same call without it. Without it nothing is changed.
    expect_plan: Option<String>,
    /// Only show the plan, and do not ask the person.
    #[serde(default)]
    dry_run: bool,
}

impl Input for UndoInput {
    fn words(&self, _: Option<&str>) -> Result<Words> {
        // The server adds `--dry-run`, or the hash, for the step that is asked for. So both steps have the same words,
        // and the plan of the second is that of the first, unless something changed.
        let layers: Vec<&str> = self.layers.iter().map(|layer| layer.as_str()).collect();
        let layers = (!layers.is_empty()).then(|| layers.join(","));
        Words::of(&["undo"])
            .value_if("point", self.point.as_deref())?
            .flag_if("--run", self.run.as_deref())?
            .flag_if("--reason", self.reason.as_deref())?
            .flag_if("--layer", layers.as_deref())
            .map(|words| words.switch("--only", self.only).switch("--keep-theirs", self.keep_theirs))
    }

    fn step(&self) -> Option<ConsentStep> {
        Some(ConsentStep::of(self.expect_plan.as_ref(), self.dry_run))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RedoInput {
    /// The run. Default: the open run here, else the newest.
    run: Option<String>,
    /// The reason, recorded with the redo.
    reason: Option<String>,
    /// Redo the rest although outside effects that were undone are not made again.
    #[serde(default)]
    without_effects: bool,
    /// The hash of the plan that is to be carried out, from the answer to the same call without it. Without it nothing is changed.
    expect_plan: Option<String>,
    /// Only show the plan, and do not ask the person.
    #[serde(default)]
    dry_run: bool,
}

impl Input for RedoInput {
    fn words(&self, _: Option<&str>) -> Result<Words> {
        Words::of(&["redo"])
            .flag_if("--run", self.run.as_deref())?
            .flag_if("--reason", self.reason.as_deref())
            .map(|words| words.switch("--without-effects", self.without_effects))
    }

    fn step(&self) -> Option<ConsentStep> {
        Some(ConsentStep::of(self.expect_plan.as_ref(), self.dry_run))
    }
}
