//! The prompts that a person can choose at a client, as `/undo` in its menu.

use ic_base::{Diagnosis, Result};
use rmcp::model::{GetPromptResult, Prompt, PromptArgument, PromptMessage, Role};

use crate::command_words::Words;
use crate::commands::Said;
use crate::inputs::{DiffInput, Input};

/// One of the prompts that clients list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PromptName {
    /// `undo`: shows the plan of an undo, and asks the agent to wait for a yes.
    Undo,
    /// `what-changed`: has the agent sum up what changed since a point.
    WhatChanged,
}

/// All prompts with their arguments, as clients list them.
pub(crate) fn all() -> Vec<Prompt> {
    let point = |about: &str| Some(vec![PromptArgument::new("point").with_description(about).with_required(false)]);
    vec![
        Prompt::new(
            PromptName::Undo.as_str(),
            Some("Show what undoing the last work would do, and do it once you say so"),
            point("Go back to before this point, as log names it [default: the last work]"),
        )
        .with_title("Undo"),
        Prompt::new(
            PromptName::WhatChanged.as_str(),
            Some("Say what changed since a point, and how to undo it"),
            point("Since this point, as log names it [default: list the points]"),
        )
        .with_title("What changed"),
    ]
}

/// What a person reads if the command of the prompt fails, such as an undo that is refused.
pub(crate) fn in_the_way(error: &Diagnosis) -> Said {
    // The text goes into a prompt unescaped, so control characters are removed here.
    let visible = |text: &str| -> String { text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect() };
    let hint = error.get_hint().map(|hint| format!("\nhint: {}", visible(hint))).unwrap_or_default();
    Said { text: format!("error: {}{hint}", visible(error.message())), ..Said::default() }
}

impl PromptName {
    /// The prompt of this name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        [Self::Undo, Self::WhatChanged].into_iter().find(|prompt| prompt.as_str() == name)
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Undo => "undo",
            Self::WhatChanged => "what-changed",
        }
    }

    /// The command whose output the prompt begins with. It changes nothing.
    pub(crate) fn words(self, point: Option<&str>) -> Result<Words> {
        match (self, point) {
            (Self::Undo, _) => Ok(Words::of(&["undo"]).value_if("point", point)?.switch("--dry-run", true)),
            (Self::WhatChanged, Some(point)) => DiffInput::since(point).words(None),
            (Self::WhatChanged, None) => Words::of(&["log"]).flag("--number", "10"),
        }
    }

    /// The prompt, with what the command said.
    pub(crate) fn told(self, said: &str, point: Option<&str>) -> GetPromptResult {
        // A point may have any name, so it is quoted with escapes: the text goes to a model, and onto a screen.
        let text = match (self, point) {
            (Self::Undo, _) => format!(
                "I want to undo work. ic says what would go back; nothing was changed yet:\n\n{said}\n\nTell me in a few lines which \
                 prompts, files and commits would go back, and wait for my yes. Then call the tool undo{} for the plan and its hash, and \
                 once more with expect_plan. If it is refused, tell me why in one sentence, and do nothing else.",
                point.map(|point| format!(" with point {point:?}")).unwrap_or_default()
            ),
            (Self::WhatChanged, Some(point)) => format!(
                "What changed since {point:?}? ic says:\n\n{said}\n\nTell me in a few lines, by what it was for and not by files. Change \
                 nothing. Call the tool diff for more of it."
            ),
            (Self::WhatChanged, None) => format!(
                "What changed here? These are the newest points that I can go back to:\n\n{said}\n\nCall the tool diff from the oldest \
                 point that matters, and tell me in a few lines what changed since, by what it was for. Change nothing."
            ),
        };
        GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)])
    }
}
