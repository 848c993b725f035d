//! What coding agents call their events, what they obey, and where their hooks are configured. Seen with the real programs: Claude Code
//! 2.1.330, Codex 0.169.0, Gemini CLI 0.61.0.

pub(crate) mod tools;

use serde_json::{Value, json};

ic_base::words! {
    /// A coding agent that calls `ic hook`.
    pub(crate) enum Client {
        /// Claude Code.
        ClaudeCode = "claude-code",
        /// Codex.
        Codex = "codex",
        /// Gemini CLI.
        Gemini = "gemini",
    }
}

/// What happens in a client that is recorded or answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// A session begins, or is resumed.
    SessionBegins,
    /// A person typed a prompt.
    Prompt,
    /// The agent is about to use a tool.
    BeforeCall,
    /// The agent has used a tool.
    AfterCall,
    /// The agent stopped.
    Stops,
    /// The session is over.
    SessionEnds,
}

impl Client {
    /// The events that are asked for, in the order in which they come.
    pub(crate) fn events(self) -> [(&'static str, Occasion); 6] {
        use Occasion as O;
        match self {
            Self::ClaudeCode | Self::Codex => [
                ("SessionStart", O::SessionBegins),
                ("UserPromptSubmit", O::Prompt),
                ("PreToolUse", O::BeforeCall),
                ("PostToolUse", O::AfterCall),
                ("Stop", O::Stops),
                ("SessionEnd", O::SessionEnds),
            ],
            Self::Gemini => [
                ("SessionStart", O::SessionBegins),
                ("BeforeAgent", O::Prompt),
                ("BeforeTool", O::BeforeCall),
                ("AfterTool", O::AfterCall),
                ("AfterAgent", O::Stops),
                ("SessionEnd", O::SessionEnds),
            ],
        }
    }

    /// Whose payload this is: what is configured in the format of Claude Code is called by Codex, too, where both load one plugin.
    pub(crate) fn speaking(self, payload: &Value) -> Self {
        let is_rollout = payload["transcript_path"]
            .as_str()
            .is_some_and(|path| path.rsplit('/').next().is_some_and(|name| name.starts_with("rollout-")));
        match self {
            Self::ClaudeCode if is_rollout || payload["turn_id"].is_string() => Self::Codex,
            named => named,
        }
    }

    /// What an event of this name is; `None` for one that is let through.
    pub(crate) fn occasion(self, event: &str) -> Option<Occasion> {
        self.events().into_iter().find(|(name, _)| *name == event).map(|(_, occasion)| occasion)
    }

    /// The answer that refuses a tool call; its reason reaches the model.
    pub(crate) fn refuse(self, reason: &str) -> Value {
        match self {
            // `{"continue": false}` is ignored by Codex: the tool runs.
            Self::ClaudeCode | Self::Codex => json!({ "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": reason,
            } }),
            Self::Gemini => json!({ "decision": "deny", "reason": reason }),
        }
    }

    /// The answer that adds text to what the model reads.
    pub(crate) fn tell(event: &str, text: &str) -> Value {
        json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": text } })
    }

    /// Whether what is told at a session's beginning stays apart from what the person types.
    pub(crate) fn listens_at_begin(self) -> bool {
        // Called with a prompt, Gemini puts it before that: `/name` is no command any more then.
        self != Self::Gemini
    }

    /// The variable with which its shell names its session.
    pub(crate) fn shell_variable(self) -> Option<&'static str> {
        match self {
            Self::ClaudeCode => Some("CLAUDE_CODE_SESSION_ID"),
            Self::Codex => Some("CODEX_THREAD_ID"),
            Self::Gemini => None,
        }
    }

    /// Its file of hooks: of a project, and of a person below the home directory.
    pub(crate) fn settings(self) -> [&'static str; 2] {
        match self {
            // The project's file that git does not share: it names a program by its place on this machine.
            Self::ClaudeCode => [".claude/settings.local.json", ".claude/settings.json"],
            Self::Codex => [".codex/hooks.json", ".codex/hooks.json"],
            Self::Gemini => [".gemini/settings.json", ".gemini/settings.json"],
        }
    }

    /// How long it waits for a hook of this event, in its own unit.
    pub(crate) fn timeout(self, event: &str) -> u32 {
        match self {
            // More is cut to that, with a warning at every start.
            Self::Codex if event == "SessionEnd" => 3,
            Self::ClaudeCode | Self::Codex => 30,
            Self::Gemini => 30_000,
        }
    }
}
