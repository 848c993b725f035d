//! `OpenCode`: a script of ours, that it loads, calls `ic hook`.

use std::path::Path;
use std::process::Command;

use ic_base::{Code, Diagnose, Diagnosis, Result};
use serde_json::{Value, json};

use crate::conversation::{self, ConversationCut, Conversations};

use super::{Client, Dialect, HookOccasion, ServerList, USUAL};

pub(super) static CLIENT: Client = Client {
    name: "opencode",
    title: "OpenCode",
    // A subagent has a session of its own, whose end our script tells with the agent's name.
    events: &[
        ("session.created", HookOccasion::SessionBegins),
        ("chat.message", HookOccasion::Prompt),
        ("tool.execute.before", HookOccasion::BeforeCall),
        ("tool.execute.after", HookOccasion::AfterCall),
        ("session.idle", HookOccasion::Stops),
        ("session.deleted", HookOccasion::SessionEnds),
    ],
    dialect: &OpenCode,
    // The script sets it.
    shell_variable: Some("IC_OPENCODE_SESSION"),
    hook_files: [".opencode/plugins/ic.js", ".config/opencode/plugins/ic.js"],
    script: Some(include_str!("opencode.js")),
    server_files: ["opencode.json", ".config/opencode/opencode.json"],
    server_list: ServerList::Json("mcp"),
    readers: "list lsp plan_enter plan_exit question read skill todoread todowrite webfetch",
    editors: "edit write",
    directory: ".local/share/opencode",
    records: &["storage", "log", "plans"],
    conversations: Some(&OpenCode),
    // The script has no answer to give at a prompt, and hears of a stop when it is over.
    listens_at_prompts: false,
    can_hold: false,
    ..USUAL
};

#[derive(Debug)]
struct OpenCode;

impl Dialect for OpenCode {
    fn refuse(&self, reason: &str) -> Value {
        // The script throws it as an error, which refuses the call.
        json!({ "refuse": reason })
    }

    fn server(&self, program: &str) -> Value {
        json!({ "type": "local", "command": [program, "mcp"], "enabled": true })
    }
}

impl Conversations for OpenCode {
    /// Its sessions are rows of its database, so it exports one and imports the copy itself, into the place where it is to be continued.
    fn before(&self, cut: &ConversationCut<'_>) -> Result<Vec<String>> {
        let exported = told(cut.project, &["export", cut.session])?;
        // What it prints before the JSON does not belong to the session.
        let start = exported.find('{').ok_or_else(|| conversation::unknown("OpenCode exported no session."))?;
        let session: Value = serde_json::from_str(&exported[start..])
            .map_err(|_| conversation::unknown("OpenCode exported a session that is not read here."))?;
        let (copy, id) = copy(session, cut)?;
        if copy["messages"].as_array().is_none_or(Vec::is_empty) {
            return Ok(conversation::words(["opencode"]));
        }
        let file = cut.store.join(format!("{}.json", cut.new_id));
        conversation::write_copy(&file, copy.to_string().as_bytes())?;
        let imported = told(cut.place, &["import", &file.to_string_lossy()]);
        // The session is in its database now; a file that stays is no harm.
        let _ = std::fs::remove_file(&file);
        imported?;
        Ok(conversation::words(["opencode", "--session", &id]))
    }
}

/// The session before a prompt, with new ids: what has an id that its database knows is not imported again.
fn copy(mut session: Value, cut: &ConversationCut<'_>) -> Result<(Value, String)> {
    let messages = session["messages"].as_array_mut().map(std::mem::take).unwrap_or_default();
    let at = messages.iter().position(|message| cut.prompt.is_some_and(|id| message["info"]["id"] == id));
    let at = at.ok_or_else(|| conversation::unknown("OpenCode does not know the prompt any more."))?;
    session["messages"] = messages.into_iter().take(at).collect();
    for gone in ["revert", "share"] {
        session["info"].as_object_mut().map(|info| info.remove(gone));
    }
    // The session's own id is the first: its new one is a word of the command.
    let mut ids = Vec::from([cut.session.to_owned()]);
    for message in session["messages"].as_array().into_iter().flatten() {
        let parts = message["parts"].as_array().into_iter().flatten().map(|part| &part["id"]);
        ids.extend([&message["info"]["id"]].into_iter().chain(parts).filter_map(|id| id.as_str().map(str::to_owned)));
    }
    let mut text = session.to_string();
    let mut new_session = String::new();
    for (number, old) in ids.iter().enumerate() {
        // The beginning of an id is its time, by which messages are sorted; the end is chance.
        const CHANCE: usize = 14;
        // It is taken from the end of our new id, which is chance, too: the beginning is its time.
        let unique: String = cut.new_id.chars().filter(char::is_ascii_hexdigit).rev().take(CHANCE - 4).collect();
        let kept = old.len().checked_sub(CHANCE).and_then(|end| old.get(..end));
        let kept = kept.ok_or_else(|| conversation::unknown("OpenCode's ids are of another form than known."))?;
        let new = format!("{kept}{number:04x}{unique}");
        text = text.replace(old.as_str(), &new);
        if number == 0 {
            new_session = new;
        }
    }
    let copy = serde_json::from_str(&text).map_err(|_| conversation::unknown("The copy could not be made."))?;
    Ok((copy, new_session))
}

/// What the client prints when it is called in a directory. Errors: `no_conversation` if it fails; `io_error` if it is not there.
fn told(directory: &Path, arguments: &[&str]) -> Result<String> {
    let doing = || format!("running opencode {}", arguments.join(" "));
    let output = Command::new("opencode").args(arguments).current_dir(directory).output().while_doing(doing)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    Err(Diagnosis::new(Code::NoConversation, format!("opencode {} failed: {said}", arguments.join(" "))))
}
