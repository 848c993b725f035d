//! What coding agents call their events, what they obey, and where their hooks are configured. Seen with the real programs: Claude Code
//! 2.1.330, Codex 0.169.0, Gemini CLI 0.61.0, Copilot CLI 1.0.102, `OpenCode` 1.18.33.

pub(crate) mod lenient;
pub(crate) mod tools;
pub(crate) mod transcript;

use std::time::Duration;

use serde_json::{Value, json};

ic_base::words! {
    /// A coding agent that calls `ic hook`.
    pub(crate) enum Client {
        /// Claude Code: its hooks are entries of its settings, and its format of payloads is the one that the others are translated into.
        ClaudeCode = "claude-code",
        /// Codex: its payloads are those of Claude Code, with `turn_id`.
        Codex = "codex",
        /// Gemini CLI: its events have names of their own, and it has none for subagents.
        Gemini = "gemini",
        /// Copilot CLI. It reads hooks in the format of Claude Code, those that Claude Code itself is given included.
        Copilot = "copilot",
        /// `OpenCode`: a script of ours, that it loads, calls `ic hook`.
        OpenCode = "opencode",
    }
}

/// What happens in a client that is recorded or answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookOccasion {
    /// A session begins, or is resumed.
    SessionBegins,
    /// A person typed a prompt.
    Prompt,
    /// The agent is about to use a tool.
    BeforeCall,
    /// The agent has used a tool.
    AfterCall,
    /// The agent stopped, and waits for the next prompt.
    Stops,
    /// A subagent stopped, and its result goes back to the agent that began it.
    SubagentStops,
    /// The session is over.
    SessionEnds,
}

impl HookOccasion {
    /// Whether the tree is captured at this event. `may_write`: whether the tool of the call may change files.
    pub(crate) fn looks(self, may_write: bool) -> bool {
        match self {
            Self::SessionBegins => false,
            Self::BeforeCall | Self::AfterCall => may_write,
            Self::Prompt | Self::Stops | Self::SubagentStops | Self::SessionEnds => true,
        }
    }
}

impl Client {
    /// The events that its hooks are configured for, in the order in which they come, each with its meaning here.
    pub(crate) fn events(self) -> &'static [(&'static str, HookOccasion)] {
        use HookOccasion as O;
        match self {
            Self::ClaudeCode | Self::Codex | Self::Copilot => &[
                ("SessionStart", O::SessionBegins),
                ("UserPromptSubmit", O::Prompt),
                ("PreToolUse", O::BeforeCall),
                ("PostToolUse", O::AfterCall),
                ("SubagentStop", O::SubagentStops),
                ("Stop", O::Stops),
                ("SessionEnd", O::SessionEnds),
            ],
            // It has no event of a subagent, and no name for one.
            Self::Gemini => &[
                ("SessionStart", O::SessionBegins),
                ("BeforeAgent", O::Prompt),
                ("BeforeTool", O::BeforeCall),
                ("AfterTool", O::AfterCall),
                ("AfterAgent", O::Stops),
                ("SessionEnd", O::SessionEnds),
            ],
            // A subagent has a session of its own, whose end our script tells with the agent's name.
            Self::OpenCode => &[
                ("session.created", O::SessionBegins),
                ("chat.message", O::Prompt),
                ("tool.execute.before", O::BeforeCall),
                ("tool.execute.after", O::AfterCall),
                ("session.idle", O::Stops),
                ("session.deleted", O::SessionEnds),
            ],
        }
    }

    /// The client that really sent a payload: Codex and Copilot load a plugin in the format of Claude Code, and Copilot reads the settings
    /// of Claude Code, too. Their hooks then call `ic hook claude-code`.
    pub(crate) fn speaking(self, payload: &Value) -> Self {
        let transcript = payload["transcript_path"].as_str();
        let is_rollout =
            transcript.and_then(|path| path.rsplit('/').next()).is_some_and(|name| name.starts_with("rollout-"));
        // Copilot sends a timestamp, which Claude Code does not, and a path of its own or none.
        let is_copilots = transcript.is_none_or(|path| path.contains("/.copilot/"));
        match self {
            Self::ClaudeCode if is_rollout || payload["turn_id"].is_string() => Self::Codex,
            Self::ClaudeCode if is_copilots && !payload["timestamp"].is_null() => Self::Copilot,
            named => named,
        }
    }

    /// The payload with the keys of Claude Code, whatever the client's own format calls them. A subagent's `session_id` becomes its
    /// parent's.
    pub(crate) fn spelled(self, mut payload: Value) -> Value {
        if self != Self::Copilot {
            return payload;
        }
        let Some(keys) = payload.as_object_mut() else { return payload };
        for (own, known) in [
            ("sessionId", "session_id"),
            ("transcriptPath", "transcript_path"),
            ("toolName", "tool_name"),
            ("toolArgs", "tool_input"),
            ("agentId", "agent_id"),
            ("agentType", "agent_type"),
            ("parentAgentId", "parent_agent_id"),
        ] {
            if let Some(value) = keys.remove(own) {
                keys.insert(known.to_owned(), value);
            }
        }
        // A subagent has a session of its own, and its work belongs to the one that began it.
        if let Some(parent) = keys.get("parent_agent_id").filter(|parent| parent.is_string()).cloned() {
            keys.insert("session_id".to_owned(), parent);
        }
        payload
    }

    /// The meaning of an event with this name; `None`: the event is ignored.
    pub(crate) fn occasion(self, event: &str) -> Option<HookOccasion> {
        let event = match (self, event) {
            // The names of its own format.
            (Self::Copilot, "sessionStart") => "SessionStart",
            (Self::Copilot, "userPromptSubmitted") => "UserPromptSubmit",
            (Self::Copilot, "preToolUse") => "PreToolUse",
            (Self::Copilot, "postToolUse") => "PostToolUse",
            (Self::Copilot, "agentStop") => "Stop",
            (Self::Copilot, "subagentStop") => "SubagentStop",
            (Self::Copilot, "sessionEnd") => "SessionEnd",
            _ => event,
        };
        self.events().iter().find(|(name, _)| *name == event).map(|(_, occasion)| *occasion)
    }

    /// The answer that refuses a tool call; its reason reaches the model.
    pub(crate) fn refuse(self, reason: &str) -> Value {
        // Codex puts its own full stop behind it.
        let reason = if self == Self::Codex { reason.trim_end_matches('.') } else { reason };
        match self {
            // `{"continue": false}` is ignored by Codex and Copilot: the tool runs.
            Self::ClaudeCode | Self::Codex => json!({ "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": reason,
            } }),
            Self::Gemini => json!({ "decision": "deny", "reason": reason }),
            // In the format of Claude Code and in its own: which one it reads depends on how the hook was configured.
            Self::Copilot => json!({
                "permissionDecision": "deny",
                "permissionDecisionReason": reason,
                "hookSpecificOutput": {
                    "hookEventName": "PreToolUse",
                    "permissionDecision": "deny",
                    "permissionDecisionReason": reason,
                },
            }),
            // The script that we install throws it as an error, which refuses the call.
            Self::OpenCode => json!({ "refuse": reason }),
        }
    }

    /// Whether a hook can keep its agent from stopping.
    pub(crate) fn can_hold(self) -> bool {
        self != Self::OpenCode
    }

    /// The answer that makes an agent continue instead of stopping; the model reads the reason.
    pub(crate) fn hold(self, reason: &str) -> Value {
        let decision = if self == Self::Gemini { "deny" } else { "block" };
        json!({ "decision": decision, "reason": reason })
    }

    /// The answer that lets the person decide about a tool call; `None`: a hook of this client cannot ask the person.
    pub(crate) fn ask(self, reason: &str) -> Option<Value> {
        // The hooks of all others know only yes and no.
        (self == Self::ClaudeCode).then(|| {
            json!({ "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "ask",
                "permissionDecisionReason": reason,
            } })
        })
    }

    /// The answer that adds text to what the model reads.
    pub(crate) fn tell(event: &str, text: &str) -> Value {
        json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": text } })
    }

    /// Whether text of a hook at the beginning of a session stays apart from the prompt.
    pub(crate) fn listens_at_begin(self) -> bool {
        // Gemini puts that text before a prompt that it was started with, so that a prompt `/name` would not be read as a command.
        matches!(self, Self::ClaudeCode | Self::Codex)
    }

    /// Whether the model reads what a hook adds to a prompt. Where it does not, the next tool call is refused once, with that text as the
    /// reason.
    pub(crate) fn listens_at_prompts(self) -> bool {
        !matches!(self, Self::Copilot | Self::OpenCode)
    }

    /// Whether its hooks are a script that it loads, and not entries of its settings.
    pub(crate) fn loads_script(self) -> bool {
        self == Self::OpenCode
    }

    /// The environment variable that holds the session's id in its shell; `None`: the client sets none.
    pub(crate) fn shell_variable(self) -> Option<&'static str> {
        match self {
            Self::ClaudeCode => Some("CLAUDE_CODE_SESSION_ID"),
            Self::Codex => Some("CODEX_THREAD_ID"),
            Self::Gemini => None,
            Self::Copilot => Some("COPILOT_AGENT_SESSION_ID"),
            // The script that we install sets it.
            Self::OpenCode => Some("IC_OPENCODE_SESSION"),
        }
    }

    /// The files of its hooks, relative: the first to the project, the second to the home directory.
    pub(crate) fn settings(self) -> [&'static str; 2] {
        match self {
            // The settings that git does not share, because the entry names this program by its path on this machine.
            Self::ClaudeCode => [".claude/settings.local.json", ".claude/settings.json"],
            Self::Codex => [".codex/hooks.json", ".codex/hooks.json"],
            Self::Gemini => [".gemini/settings.json", ".gemini/settings.json"],
            Self::Copilot => [".github/hooks/ic.json", ".copilot/hooks/ic.json"],
            Self::OpenCode => [".opencode/plugins/ic.js", ".config/opencode/plugins/ic.js"],
        }
    }

    /// The files of its MCP servers, relative: the first to the project, the second to the home directory.
    pub(crate) fn servers(self) -> [&'static str; 2] {
        match self {
            Self::ClaudeCode => [".mcp.json", ".claude.json"],
            Self::Codex => [".codex/config.toml", ".codex/config.toml"],
            // The same file as that of its hooks.
            Self::Gemini => [".gemini/settings.json", ".gemini/settings.json"],
            Self::Copilot => [".github/mcp.json", ".copilot/mcp-config.json"],
            Self::OpenCode => ["opencode.json", ".config/opencode/opencode.json"],
        }
    }

    /// How long a capture in a hook of this event may take: four fifths of the client's limit. The rest is for the record, and for a busy
    /// machine.
    pub(crate) fn capture_limit(self, event: &str) -> Duration {
        let unit = if self == Self::Gemini { Duration::from_millis(1) } else { Duration::from_secs(1) };
        unit * self.timeout(event) * 4 / 5
    }

    /// How long the client waits for a hook of this event: milliseconds for Gemini, seconds for all others.
    pub(crate) fn timeout(self, event: &str) -> u32 {
        match self {
            // Codex cuts a longer limit to 3 seconds, and warns of it at every start.
            Self::Codex if event == "SessionEnd" => 3,
            Self::ClaudeCode | Self::Codex | Self::Copilot | Self::OpenCode => 30,
            Self::Gemini => 30_000,
        }
    }
}
