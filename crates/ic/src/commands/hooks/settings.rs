//! A client's file of hooks or of MCP servers: what is there stays, what is ours is added or removed.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnose, Diagnosis, Result, shell_word};
use serde_json::{Map, Value, json};

use super::{numbers, script, server};
use crate::clients::Client;

/// A file of a client, as it is.
pub(crate) struct Settings {
    pub(super) file: PathBuf,
    /// Its bytes; `None`: there is none.
    pub(super) before: Option<Vec<u8>>,
    /// What it says, if it is JSON.
    pub(super) root: Map<String, Value>,
    /// How many directories the client wants around it: those that we made go with it.
    depth: usize,
}

/// What a file is to be.
pub(crate) struct Edit {
    /// The file.
    pub(crate) file: PathBuf,
    /// Its bytes; `None`: it is removed.
    pub(super) after: Option<Vec<u8>>,
    before: Option<Vec<u8>>,
    /// Entries that call us and were changed by hand: their events, or the name of the server.
    pub(crate) left: Vec<String>,
    copies: Copies,
}

/// What becomes of the copy of what was there, beside the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Copies {
    /// One is made of what is there, if anything is; an older one goes.
    Kept,
    /// An older one stays.
    Older,
    /// It goes.
    Gone,
}

impl Settings {
    /// The file of a client's hooks. Errors: `config_not_changed` for what is no plain file, or no JSON object.
    /// `edited`: what another edit is about to make of a file.
    pub(super) fn read(file: &Path, client: Client, edited: Option<&Edit>) -> Result<Self> {
        let is_json = !client.loads_script();
        let settings = Self::found(file, client.settings(), is_json)?.edited(edited, is_json)?;
        match settings.root.get("hooks") {
            Some(hooks) if !is_lists(hooks) => Err(unknown_form(file)),
            _ => Ok(settings),
        }
    }

    /// A file that a client names so in a project and at home. Errors: `config_not_changed` for what is no plain file, or no JSON object
    /// where it is to be one.
    pub(super) fn found(file: &Path, names: [&str; 2], is_json: bool) -> Result<Self> {
        let refused = |why: &str| refused(file, why);
        let [of_project, of_user] = names;
        let is_projects = file.ends_with(of_project);
        let depth = Path::new(if is_projects { of_project } else { of_user }).components().count() - 1;
        // A repository could lead what is written for it anywhere; a person keeps the home directory as it suits.
        if file.ancestors().skip(1).take(if is_projects { depth } else { 1 }).any(Path::is_symlink) {
            return Err(
                refused("its directory is a link").hint("make the change in the directory that it leads to")
            );
        }
        match fs::symlink_metadata(file) {
            Err(e) if e.kind() == ErrorKind::NotFound => {
                return Ok(Self { file: file.to_owned(), before: None, root: Map::new(), depth });
            }
            Ok(found) if found.is_symlink() => {
                return Err(refused("it is a link").hint("make the change in the file that it leads to"));
            }
            Ok(found) if !found.is_file() => return Err(refused("it is no file")),
            Ok(found) if found.permissions().mode() & 0o200 == 0 => {
                return Err(refused("it may not be written"));
            }
            _ => {}
        }
        let bytes = fs::read(file).while_doing(|| format!("reading {}", file.display()))?;
        let settings = Self { file: file.to_owned(), before: None, root: Map::new(), depth };
        settings.saying(bytes, is_json)
    }

    /// The same file as another edit is about to leave it, if it is of this file.
    pub(super) fn edited(self, edit: Option<&Edit>, is_json: bool) -> Result<Self> {
        match edit.filter(|edit| edit.file == self.file) {
            Some(Edit { after: Some(bytes), .. }) => self.saying(bytes.clone(), is_json),
            Some(_) => Ok(Self { before: None, root: Map::new(), ..self }),
            None => Ok(self),
        }
    }

    /// The same file, if it held these bytes.
    fn saying(self, bytes: Vec<u8>, is_json: bool) -> Result<Self> {
        if !is_json {
            return Ok(Self { before: Some(bytes), root: Map::new(), ..self });
        }
        match parsed(&self.file, &bytes)? {
            Value::Object(root) => Ok(Self { before: Some(bytes), root, ..self }),
            _ => Err(unknown_form(&self.file)),
        }
    }

    /// The file with our entries, each once and as they are made now. `program`: where we are.
    pub(super) fn with(&self, client: Client, program: &str) -> Result<Edit> {
        if client.loads_script() {
            if self.before.as_deref().is_some_and(|bytes| !script::is_ours(bytes)) {
                return Err(refused(&self.file, "ic did not write its current content")
                    .hint("move it to another name, then call again"));
            }
            let text = script::text(Path::new(program)).into_bytes();
            return Ok(self.edit(Some(text), Vec::new(), Copies::Older));
        }
        let program = &shell_word(program);
        let mut root = self.root.clone();
        let left = remove(&mut root, client, None);
        // What is there now is what was there before us: a copy of something older is of no use.
        let is_first = root == self.root && left.is_empty() && !server::is_in(&root, client);
        let copies = if is_first { Copies::Kept } else { Copies::Older };
        let hooks = root.entry("hooks").or_insert_with(|| json!({}));
        for (event, _) in client.events() {
            let entries = hooks[event].take();
            let mut entries = entries.as_array().cloned().unwrap_or_default();
            if !left.iter().any(|one| one == event) {
                entries.push(entry(client, event, program));
            }
            hooks[event] = Value::Array(entries);
        }
        let is_same = root == self.root;
        let after = if is_same { self.before.clone() } else { Some(pretty(&root)?) };
        Ok(self.edit(after, Vec::new(), if is_same { Copies::Older } else { copies }))
    }

    /// The file without our entries: the bytes that were there before, if nothing else was changed since.
    pub(super) fn without(&self, client: Client) -> Result<Edit> {
        if client.loads_script() {
            let before = self.before.as_deref().unwrap_or_default();
            let left = if script::is_edited(before) { vec!["plugin".to_owned()] } else { Vec::new() };
            let after = self.before.clone().filter(|bytes| !script::is_ours(bytes));
            return Ok(self.edit(after, left, Copies::Older));
        }
        let copy = self.copy();
        let was = copy.as_deref().and_then(|bytes| parsed(&self.file, bytes).ok());
        let mut root = self.root.clone();
        let left = remove(&mut root, client, was.as_ref());
        if root == self.root {
            // Entries that were changed since still call us: what was there before them is kept.
            let copies =
                if left.is_empty() && !server::is_in(&root, client) { Copies::Gone } else { Copies::Older };
            return Ok(self.edit(self.before.clone(), left, copies));
        }
        let copies = if server::is_in(&root, client) { Copies::Older } else { Copies::Gone };
        let after = self.restored(&root)?;
        Ok(self.edit(after, left, copies))
    }

    /// The bytes of a file that says this: those that were there before us, if they say the same. `None`: there was no file.
    pub(super) fn restored(&self, root: &Map<String, Value>) -> Result<Option<Vec<u8>>> {
        let copy = self.copy();
        let was = copy.as_deref().and_then(|bytes| parsed(&self.file, bytes).ok());
        let is_blank = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_whitespace);
        Ok(match copy {
            Some(bytes) if was == Some(Value::Object(root.clone())) => Some(bytes),
            Some(bytes) if is_blank(&bytes) && root.is_empty() => Some(bytes),
            None if root.is_empty() => None,
            _ => Some(pretty(root)?),
        })
    }

    /// What was there before us, if it is kept.
    pub(super) fn copy(&self) -> Option<Vec<u8>> {
        fs::read(copy_of(&self.file)).ok()
    }

    /// Whether what was there before us has this key.
    pub(super) fn had(&self, key: &str) -> bool {
        let copy = self.copy();
        let was = copy.as_deref().and_then(|bytes| parsed(&self.file, bytes).ok());
        was.is_some_and(|was| was.get(key).is_some())
    }

    /// Whether hooks of ours are in it.
    pub(super) fn has_hooks(&self, client: Client) -> bool {
        !self.places(client).is_empty()
    }

    /// The events of our entries, each with its place in their list.
    pub(super) fn places(&self, client: Client) -> Vec<(String, usize)> {
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
        Edit { file: self.file.clone(), after, before: self.before.clone(), left, copies }
    }
}

impl Edit {
    /// Whether anything is to be written.
    pub(crate) fn is_change(&self) -> bool {
        self.after != self.before
    }

    /// Whether the file goes: nothing else would be left in it.
    pub(crate) fn removes_file(&self) -> bool {
        self.is_change() && self.after.is_none()
    }

    /// Of a dry run of two edits of one file, says what both make of it.
    pub(crate) fn followed_by(&mut self, next: &Self) {
        if self.file == next.file && self.is_change() {
            self.after.clone_from(&next.after);
        }
    }

    /// The text that the file is to have.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(self.after.as_deref().unwrap_or_default()).into_owned()
    }

    /// Writes it, all or nothing; what was there is kept beside it until it is removed again.
    pub(super) fn write(&self, settings: &Settings) -> Result<()> {
        let copy = copy_of(&self.file);
        if !self.is_change() {
            self.drop_copy(&copy, Copies::Gone);
            return Ok(());
        }
        let doing = || format!("writing {}", self.file.display());
        let had_copy = copy.exists();
        match &settings.before {
            Some(before) if self.copies == Copies::Kept => replace(&copy, before, None).while_doing(doing)?,
            _ => self.drop_copy(&copy, Copies::Kept),
        }
        let written = match &self.after {
            Some(bytes) => {
                let mode = fs::metadata(&self.file).map(|found| found.permissions().mode()).ok();
                replace(&self.file, bytes, mode)
            }
            None => fs::remove_file(&self.file),
        };
        if written.is_err() && !had_copy {
            // Nothing was changed, so nothing is left beside it.
            self.drop_copy(&copy, Copies::Kept);
        }
        written.while_doing(doing)?;
        if self.after.is_none() {
            // The directories, if they were made for the file: what is not empty stays.
            for directory in self.file.ancestors().skip(1).take(settings.depth) {
                let _ = fs::remove_dir(directory);
            }
        }
        self.drop_copy(&copy, Copies::Gone);
        Ok(())
    }

    /// Removes the copy in this case, as far as it is a file.
    fn drop_copy(&self, copy: &Path, case: Copies) {
        if self.copies == case {
            let _ = fs::remove_file(copy);
        }
    }
}

/// What a file says; a blank one says nothing. Errors: `config_not_changed` for what is no JSON.
fn parsed(file: &Path, bytes: &[u8]) -> Result<Value> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(json!({}));
    }
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return Err(refused(file, "it begins with a byte order mark, which is no JSON")
            .hint("save it as UTF-8 without one, then call again"));
    }
    let no_json = |why: &str| refused(file, &format!("it is no JSON ({why})"));
    let text = std::str::from_utf8(bytes)
        .map_err(|e| no_json(&e.to_string()).hint("save it as UTF-8, then call again"))?;
    if numbers::is_marked(text) {
        return Err(refused(file, "it has a text that ic marks numbers with"));
    }
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

pub(super) fn refused(file: &Path, why: &str) -> Diagnosis {
    Diagnosis::new(Code::ConfigNotChanged, format!("{} is left as it is: {why}.", file.display()))
}

/// Whether hooks have the form that we know: a list for each event.
fn is_lists(hooks: &Value) -> bool {
    hooks.as_object().is_some_and(|events| events.values().all(Value::is_array))
}

/// Where what was there is kept.
pub(super) fn copy_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".before-ic");
    PathBuf::from(name)
}

pub(super) fn replace(file: &Path, bytes: &[u8], mode: Option<u32>) -> std::io::Result<()> {
    let directory = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let mut name = file.as_os_str().to_owned();
    name.push(".ic-new");
    let fresh = PathBuf::from(name);
    let _ = fs::remove_file(&fresh);
    let written = write_new(&fresh, bytes, mode).and_then(|()| fs::rename(&fresh, file));
    if written.is_err() {
        let _ = fs::remove_file(&fresh);
    }
    written
}

fn write_new(file: &Path, bytes: &[u8], mode: Option<u32>) -> std::io::Result<()> {
    let mut written = File::options().write(true).create_new(true).mode(mode.unwrap_or(0o600)).open(file)?;
    written.write_all(bytes)?;
    written.sync_all()
}

pub(super) fn pretty(root: &Map<String, Value>) -> Result<Vec<u8>> {
    let text = serde_json::to_string_pretty(root)
        .map_err(|e| Diagnosis::new(Code::Internal, format!("The settings cannot be written: {e}.")))?;
    Ok((numbers::restored(&text) + "\n").into_bytes())
}

/// The command of a hook: one line for a shell, that is never in a client's way, even if the program is gone.
pub(super) fn command(client: Client, event: &str, program: &str) -> String {
    format!("command -v {program} >/dev/null 2>&1 || exit 0; {program} {} || exit 0", call(client, event))
}

fn call(client: Client, event: &str) -> String {
    format!("hook {} {event}", client.as_str())
}

/// One hook as the client's settings have it. `program`: how a shell calls us.
pub(crate) fn entry(client: Client, event: &str, program: &str) -> Value {
    let mut hook = json!({
        "type": "command",
        "command": command(client, event, program),
        "timeout": client.timeout(event),
    });
    if client == Client::Gemini {
        hook["name"] = json!(format!("ic-{event}"));
    }
    json!({ "hooks": [hook] })
}

/// Removes our entries, and the lists that are empty without them, save those that were empty before us; returns the events of those that
/// call us and have another form than we give them.
fn remove(root: &mut Map<String, Value>, client: Client, was: Option<&Value>) -> Vec<String> {
    let was = was.and_then(|was| was.get("hooks"));
    let mut left = Vec::new();
    let Some(hooks) = root.get_mut("hooks").and_then(Value::as_object_mut) else { return left };
    let mut emptied = Vec::new();
    for (event, entries) in hooks.iter_mut() {
        let Some(list) = entries.as_array_mut() else { continue };
        let count = list.len();
        list.retain(|entry| !is_ours(entry, client, event));
        if list.iter().any(|entry| entry.to_string().contains(&call(client, event))) {
            left.push(event.clone());
        }
        if list.is_empty() && count > 0 && was.is_none_or(|was| was.get(event).is_none()) {
            emptied.push(event.clone());
        }
    }
    let is_ours = !emptied.is_empty() && emptied.len() == hooks.len() && was.is_none();
    for event in emptied {
        hooks.shift_remove(&event);
    }
    if is_ours {
        root.shift_remove("hooks");
    }
    left
}

/// Whether an entry is one that some version of us made: wherever the program was then.
fn is_ours(found: &Value, client: Client, event: &str) -> bool {
    let Some(text) = found["hooks"][0]["command"].as_str() else { return false };
    let end = format!(" {} || exit 0", call(client, event));
    let program =
        text.strip_prefix("command -v ").and_then(|rest| rest.split_once(" >/dev/null 2>&1 || exit 0; "));
    let Some((program, rest)) = program else { return false };
    rest.strip_suffix(&end) == Some(program) && *found == entry(client, event, program)
}

#[cfg(test)]
mod tests;
