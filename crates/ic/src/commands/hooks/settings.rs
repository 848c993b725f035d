//! A client's file of hooks or of MCP servers: our entries are added and removed, and everything else stays.

use std::fs;
use std::path::Path;

use ic_base::{Code, Diagnosis, Result, shell_word};
use ic_session::clients::Client;
use serde_json::{Map, Value, json};

use super::file::{Copies, Edit, Location, copy_of, refused};
use super::{numbers, script, server};

/// The present content of a client's file.
pub(crate) struct HooksSettings {
    pub(super) location: Location,
    /// Its bytes; `None` if it does not exist.
    pub(super) before: Option<Vec<u8>>,
    /// Its content, if it is JSON; else empty.
    pub(super) root: Map<String, Value>,
}

impl HooksSettings {
    /// Reads the file of a client's hooks, or what `edited` is about to make of it. Errors: `config_not_changed` for what is no regular
    /// file, or no JSON object.
    pub(super) fn read(location: &Location, client: &Client, edited: Option<&Edit>) -> Result<Self> {
        let is_json = client.script.is_none();
        let settings = Self::found(location, is_json)?.edited(edited, is_json)?;
        match settings.root.get("hooks") {
            Some(hooks) if !is_lists(hooks) => Err(unknown_form(&location.file)),
            _ => Ok(settings),
        }
    }

    /// Reads a file of a client. Errors: `config_not_changed` for what is no regular file, or, if `is_json`, no JSON object.
    pub(super) fn found(location: &Location, is_json: bool) -> Result<Self> {
        let settings = Self { location: location.clone(), before: None, root: Map::new() };
        match location.read()? {
            Some(bytes) => settings.saying(bytes, is_json),
            None => Ok(settings),
        }
    }

    /// The same file with the result of another edit, if that is an edit of this file.
    pub(super) fn edited(self, edit: Option<&Edit>, is_json: bool) -> Result<Self> {
        match edit.filter(|edit| edit.location.file == self.location.file) {
            Some(Edit { after: Some(bytes), .. }) => self.saying(bytes.clone(), is_json),
            // The other edit removes the file.
            Some(_) => Ok(Self { before: None, root: Map::new(), ..self }),
            None => Ok(self),
        }
    }

    /// The same file with these bytes as its content.
    fn saying(self, bytes: Vec<u8>, is_json: bool) -> Result<Self> {
        if !is_json {
            return Ok(Self { before: Some(bytes), root: Map::new(), ..self });
        }
        match parsed(&self.location.file, &bytes)? {
            Value::Object(root) => Ok(Self { before: Some(bytes), root, ..self }),
            _ => Err(unknown_form(&self.location.file)),
        }
    }

    /// The file with our entries, each once and in its newest form. `program`: the path of this program.
    pub(super) fn with(&self, client: &Client, program: &str) -> Result<Edit> {
        if let Some(script) = client.script {
            if self.before.as_deref().is_some_and(|bytes| !script::is_ours(client, bytes)) {
                return Err(refused(&self.location.file, "ic did not write its current content")
                    .hint("move it to another name, then call again"));
            }
            let text = script::text(client, script, Path::new(program)).into_bytes();
            return Ok(self.edit(Some(text), Vec::new(), Copies::Older));
        }
        let program = &shell_word(program);
        let mut root = self.root.clone();
        // Removed and added again, so that an entry of an older version gets its newest form.
        let left = remove(&mut root, client, None);
        // Only the first entry makes a copy: later on, the file has our entries, and the copy is of the file without them.
        let is_first = root == self.root && left.is_empty() && !server::is_in(&root, client);
        let copies = if is_first { Copies::Kept } else { Copies::Older };
        let hooks = root.entry("hooks").or_insert_with(|| json!({}));
        for (event, _) in client.events {
            let entries = hooks[event].take();
            let mut entries = entries.as_array().cloned().unwrap_or_default();
            // An entry that a person changed still calls ic. With ours beside it, each event would be reported twice.
            if !left.iter().any(|one| one == event) {
                entries.push(entry(client, event, program));
            }
            hooks[event] = Value::Array(entries);
        }
        let is_same = root == self.root;
        let after = if is_same { self.before.clone() } else { Some(pretty(&root)?) };
        Ok(self.edit(after, Vec::new(), if is_same { Copies::Older } else { copies }))
    }

    /// The file without our entries. If nothing else has changed since, the result is the former content, byte for byte.
    pub(super) fn without(&self, client: &Client) -> Result<Edit> {
        if client.script.is_some() {
            let before = self.before.as_deref().unwrap_or_default();
            let left = if script::is_edited(client, before) { vec!["plugin".to_owned()] } else { Vec::new() };
            let after = self.before.clone().filter(|bytes| !script::is_ours(client, bytes));
            return Ok(self.edit(after, left, Copies::Older));
        }
        let was = self.was();
        let mut root = self.root.clone();
        let left = remove(&mut root, client, was.as_ref());
        // While any entry still calls ic, the copy of the former content stays.
        let is_over = !calls_us(&root, client) && !server::is_in(&root, client);
        let copies = if is_over { Copies::Gone } else { Copies::Older };
        let after = if root == self.root { self.before.clone() } else { self.restored(&root)? };
        Ok(self.edit(after, left, copies))
    }

    /// The bytes for this content: those of the copy, if it has the same content. `None`: the file did not exist.
    pub(super) fn restored(&self, root: &Map<String, Value>) -> Result<Option<Vec<u8>>> {
        let is_blank = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_whitespace);
        Ok(match self.copy() {
            Some(bytes) if self.was() == Some(Value::Object(root.clone())) => Some(bytes),
            // A blank file reads as an empty object, and must not become one by an installation and its removal.
            Some(bytes) if is_blank(&bytes) && root.is_empty() => Some(bytes),
            // There is no copy: the installation made the file, and nothing else has come into it since.
            None if root.is_empty() => None,
            _ => Some(pretty(root)?),
        })
    }

    /// The copy of the former content, if there is one.
    pub(super) fn copy(&self) -> Option<Vec<u8>> {
        fs::read(copy_of(&self.location.file)).ok()
    }

    /// The former content; `None` if there is no copy, or if it cannot be read.
    fn was(&self) -> Option<Value> {
        parsed(&self.location.file, &self.copy()?).ok()
    }

    /// Whether the former content has this key.
    pub(super) fn had(&self, key: &str) -> bool {
        self.was().is_some_and(|was| was.get(key).is_some())
    }

    /// The events of our entries, each with the index of the entry in its list.
    pub(super) fn places(&self, client: &Client) -> Vec<(String, usize)> {
        let events = self.root.get("hooks").and_then(Value::as_object).into_iter().flatten();
        let mut found = Vec::new();
        for (event, entries) in events {
            let entries = entries.as_array().into_iter().flatten().enumerate();
            let ours = entries.filter(|(_, entry)| is_ours(entry, client, event));
            found.extend(ours.map(|(at, _)| (event.clone(), at)));
        }
        found
    }

    pub(super) fn edit(&self, after: Option<Vec<u8>>, left: Vec<String>, copies: Copies) -> Edit {
        Edit { location: self.location.clone(), after, before: self.before.clone(), left, copies }
    }
}

/// Parses a file; a blank one is an empty object. Errors: `config_not_changed` for what is no JSON.
fn parsed(file: &Path, bytes: &[u8]) -> Result<Value> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(json!({}));
    }
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return Err(refused(file, "it begins with a byte order mark, which is no JSON")
            .hint("save it as UTF-8 without one, then call again"));
    }
    let no_json = |why: &str| refused(file, &format!("it is no JSON ({why})"));
    let text =
        std::str::from_utf8(bytes).map_err(|e| no_json(&e.to_string()).hint("save it as UTF-8, then call again"))?;
    // Restoring the numbers would change that text, too.
    if numbers::is_marked(text) {
        return Err(refused(file, "it has a text that ic marks numbers with"));
    }
    // Numbers become texts first, because parsing would round those that are too long for us.
    serde_json::from_str(&numbers::kept(text)).map_err(|e| {
        let has_comments = text.contains("//") || text.contains("/*");
        let hint = if has_comments {
            "JSON has no comments; remove them, then call again"
        } else {
            "correct it, then call again"
        };
        no_json(&e.to_string()).hint(hint)
    })
}

fn unknown_form(file: &Path) -> Diagnosis {
    refused(file, "it does not have the form of that client's settings")
}

/// Whether any hook calls ic, in whatever form.
pub(super) fn calls_us(root: &Map<String, Value>, client: &Client) -> bool {
    let events = root.get("hooks").and_then(Value::as_object);
    events.is_some_and(|events| events.iter().any(|(event, entries)| has_call(entries, client, event)))
}

/// Whether an entry, or a list of them, calls ic, in whatever form.
fn has_call(entries: &Value, client: &Client, event: &str) -> bool {
    entries.to_string().contains(&call(client, event))
}

/// Whether the hooks have the known form: a list for each event.
fn is_lists(hooks: &Value) -> bool {
    hooks.as_object().is_some_and(|events| events.values().all(Value::is_array))
}

pub(super) fn pretty(root: &Map<String, Value>) -> Result<Vec<u8>> {
    let text = serde_json::to_string_pretty(root)
        .map_err(|e| Diagnosis::new(Code::Internal, format!("The settings cannot be written: {e}.")))?;
    Ok((numbers::restored(&text) + "\n").into_bytes())
}

/// The command of a hook: one line for a shell. It succeeds even if the program is gone or fails, so that the client is never hindered.
pub(super) fn command(client: &Client, event: &str, program: &str) -> String {
    format!("command -v {program} >/dev/null 2>&1 || exit 0; {program} {} || exit 0", call(client, event))
}

fn call(client: &Client, event: &str) -> String {
    format!("hook {} {event}", client.name)
}

/// One hook as an entry of a client's settings. `program`: this program, quoted for a shell.
pub(crate) fn entry(client: &Client, event: &str, program: &str) -> Value {
    let mut hook = json!({
        "type": "command",
        "command": command(client, event, program),
        "timeout": client.dialect.timeout(event),
    });
    if let Some(name) = client.dialect.hook_name(event) {
        hook["name"] = json!(name);
    }
    json!({ "hooks": [hook] })
}

/// Removes our entries, and the lists that become empty, except those that were empty in the former content `was`. Returns the events with
/// entries that call ic and were changed by hand.
fn remove(root: &mut Map<String, Value>, client: &Client, was: Option<&Value>) -> Vec<String> {
    let was = was.and_then(|was| was.get("hooks"));
    let mut left = Vec::new();
    let Some(hooks) = root.get_mut("hooks").and_then(Value::as_object_mut) else { return left };
    let mut emptied = Vec::new();
    for (event, entries) in hooks.iter_mut() {
        let Some(list) = entries.as_array_mut() else { continue };
        let count = list.len();
        list.retain(|entry| !is_ours(entry, client, event));
        if list.iter().any(|entry| has_call(entry, client, event)) {
            left.push(event.clone());
        }
        if list.is_empty() && count > 0 && was.is_none_or(|was| was.get(event).is_none()) {
            emptied.push(event.clone());
        }
    }
    // `hooks` itself is removed only if nothing else was in it, and the former content had none.
    let is_ours = !emptied.is_empty() && emptied.len() == hooks.len() && was.is_none();
    for event in emptied {
        // `swap_remove` is not used: the order of all other keys must stay for the file to be as before, byte for byte.
        hooks.shift_remove(&event);
    }
    if is_ours {
        root.shift_remove("hooks");
    }
    left
}

/// Whether an entry is exactly what some version of ic wrote, for a program at any path.
fn is_ours(found: &Value, client: &Client, event: &str) -> bool {
    let Some(text) = found["hooks"][0]["command"].as_str() else { return false };
    let end = format!(" {} || exit 0", call(client, event));
    let program = text.strip_prefix("command -v ").and_then(|rest| rest.split_once(" >/dev/null 2>&1 || exit 0; "));
    let Some((program, rest)) = program else { return false };
    // A line that a person changed, if only by a flag, is theirs and stays.
    rest.strip_suffix(&end) == Some(program) && *found == entry(client, event, program)
}

#[cfg(test)]
mod tests;
