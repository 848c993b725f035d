//! The plugins for coding agents: hooks, commands and a skill, as files. A test keeps `plugins/` equal to what this module writes.
//!
//! One directory is in the format of Claude Code, which Codex and Copilot read, too; Gemini has a format of its own. The hooks are those
//! that `ic hooks install` writes. Nothing in a plugin undoes anything: a command shows the plan, and a person types the line that does it.

use ic_session::clients::Client;
use serde_json::{Map, Value, json};

use crate::commands::hooks::entry;

/// A command of a person in a client: `/ic:NAME`.
struct Command {
    name: &'static str,
    /// Its description in the client's list of commands: one line.
    what: &'static str,
    /// The command line that it runs, which changes nothing.
    line: &'static str,
    /// Whether words that are typed after the command are passed to it.
    takes_words: bool,
    /// Instructions for the agent about the output.
    then: &'static str,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "undo",
        what: "Show what undoing the last prompt would do, and the line that does it",
        line: "ic undo --dry-run --format text",
        takes_words: true,
        then: "Nothing was changed yet. Say in a few lines what would go back: which prompts, which files, which commits. Then give the \
               person this line to type, with the point after \"before\" and the hash of the plan's last line:\n\n    \
               ! ic undo POINT --expect-plan HASH --yes\n\n\
               Do not run it yourself, and call no other tool. If the plan was refused, say why in one sentence.",
    },
    Command {
        name: "redo",
        what: "Show what bringing back the last undo would do, and the line that does it",
        line: "ic redo --dry-run --format text",
        takes_words: false,
        then: "Nothing was changed yet. Say in a few lines what would come back. Then give the person this line to type:\n\n    \
               ! ic redo --yes\n\n\
               Do not run it yourself, and call no other tool. If there is nothing to bring back, say so in one sentence.",
    },
    Command {
        name: "log",
        what: "List the prompts that can be undone, newest first",
        line: "ic log --format text",
        takes_words: false,
        then: "Show that list unchanged, and call no tool. `/ic:undo POINT` shows what going back to before one of them would do.",
    },
    Command {
        name: "status",
        what: "Say what is recorded of this session, and what can be undone",
        line: "ic status --format text",
        takes_words: false,
        then: "Say that in a few lines, and call no tool.",
    },
];

const WHAT: &str = "Records each prompt with the tree before and after it, so that ic undo undoes whatever it did: edits, \
    deletions, what a shell changed, commits.";

const SKILL: &str = include_str!("skill.md");
const README: &str = include_str!("readme.md");
const AUTHOR: &str = "The ic project";
const LICENSE: &str = env!("CARGO_PKG_LICENSE");
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Every file of the plugins, by its path from the top of the repository.
pub(super) fn files() -> Vec<(String, String)> {
    [marketplace(), of_claude(), of_gemini()].concat()
}

/// The file in which Claude Code and Codex find the plugin.
fn marketplace() -> Vec<(String, String)> {
    let plugin = json!({ "name": "ic", "source": "./plugins/ic", "description": WHAT, "version": VERSION });
    let found = json!({
        "name": "ic",
        "description": "The undo of agent-driven development",
        "owner": { "name": AUTHOR },
        "plugins": [plugin],
    });
    vec![(".claude-plugin/marketplace.json".to_owned(), pretty(&found))]
}

fn of_claude() -> Vec<(String, String)> {
    let at = |path: &str| format!("plugins/ic/{path}");
    let plugin = json!({
        "name": "ic",
        "version": VERSION,
        "description": WHAT,
        "author": { "name": AUTHOR },
        "license": LICENSE,
        // The hooks and commands open no connection.
        "network": { "hosts": [] },
    });
    let mut files = vec![
        (at(".claude-plugin/plugin.json"), pretty(&plugin)),
        (at("hooks/hooks.json"), pretty(&hooks("claude-code", "codex"))),
        (at("skills/ic/SKILL.md"), SKILL.to_owned()),
        (at("README.md"), README.to_owned()),
    ];
    for command in COMMANDS {
        let Command { name, what, line, takes_words, then } = command;
        let hint = if *takes_words { "argument-hint: \"[point]\"\n" } else { "" };
        let words = if *takes_words { " $ARGUMENTS" } else { "" };
        let text = format!(
            "---\ndescription: {what}\n{hint}allowed-tools: Bash({line}:*)\ndisable-model-invocation: true\n---\n\
             /ic:{name} says:\n\n!`{line}{words}`\n\n{then}\n"
        );
        files.push((at(&format!("commands/{name}.md")), text));
    }
    files
}

fn of_gemini() -> Vec<(String, String)> {
    let at = |path: &str| format!("plugins/gemini/{path}");
    let extension = json!({ "name": "ic", "version": VERSION, "description": WHAT });
    let mut files = vec![
        (at("gemini-extension.json"), pretty(&extension)),
        (at("hooks/hooks.json"), pretty(&hooks("gemini", "gemini"))),
        (at("skills/ic/SKILL.md"), SKILL.to_owned()),
    ];
    for Command { name, what, line, takes_words, then } in COMMANDS {
        let words = if *takes_words { " {{args}}" } else { "" };
        // Gemini sends no other mark of a prompt that is only this command. The hooks recognize it by `/ic:NAME`, so the text has to begin
        // with that.
        let text = format!(
            "description = \"{what}\"\nprompt = \"\"\"\n/ic:{name} says:\n\n!{{{line}{words}}}\n\n{then}\n\"\"\"\n"
        );
        files.push((at(&format!("commands/ic/{name}.toml")), text));
    }
    files
}

/// The hooks, as a client's settings have them. `ic` is found on the person's own PATH. `shortest`: the client with the shortest limits of
/// those that read this file.
fn hooks(client: &str, shortest: &str) -> Value {
    let named = |name| Client::parse(name).expect("a client");
    let mut events = Map::new();
    for (event, _) in named(client).events {
        let mut entry = entry(named(client), event, "ic");
        // Codex reads the same file as Claude Code, and warns of a timeout longer than its own limit.
        entry["hooks"][0]["timeout"] = json!(named(shortest).dialect.timeout(event));
        events.insert((*event).to_owned(), json!([entry]));
    }
    json!({ "hooks": events })
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}
