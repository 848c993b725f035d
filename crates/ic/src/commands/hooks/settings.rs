//! A client's file of hooks: what is there stays, what is ours is added or removed.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnose, Diagnosis, Result, shell_word};
use serde_json::{Map, Value, json};

use super::script;
use crate::clients::Client;

/// A file of hooks, as it is.
pub(super) struct Settings {
    file: PathBuf,
    /// Its bytes; `None`: there is none.
    before: Option<Vec<u8>>,
    root: Map<String, Value>,
    /// How many directories the client wants around it: those that we made go with it.
    depth: usize,
}

/// What a file is to be.
pub(crate) struct Edit {
    /// The file.
    pub(crate) file: PathBuf,
    /// Its bytes; `None`: it is removed.
    after: Option<Vec<u8>>,
    before: Option<Vec<u8>>,
    /// Entries that call us and were changed by hand: their events.
    pub(crate) left: Vec<String>,
    /// Whether a copy of what was there is kept beside it.
    keeps_copy: bool,
}

impl Settings {
    /// Errors: `config_not_changed` for what is no plain file, or no JSON object.
    pub(super) fn read(file: &Path, client: Client) -> Result<Self> {
        let refused = |why: &str| refused(file, why);
        let [of_project, of_user] = client.settings();
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
        if client.loads_script() {
            return Ok(Self { file: file.to_owned(), before: Some(bytes), root: Map::new(), depth });
        }
        let parsed: Value = if bytes.iter().all(u8::is_ascii_whitespace) {
            json!({})
        } else {
            serde_json::from_slice(&bytes).map_err(|e| {
                refused(&format!("it is no JSON ({e})"))
                    .hint("JSON has no comments; remove them, then call again")
            })?
        };
        match parsed {
            Value::Object(root) if root.get("hooks").is_none_or(is_lists) => {
                Ok(Self { file: file.to_owned(), before: Some(bytes), root, depth })
            }
            _ => Err(refused("it does not have the form of that client's settings")),
        }
    }

    /// The file with our entries, each once and as they are made now. `program`: where we are.
    pub(super) fn with(&self, client: Client, program: &str) -> Result<Edit> {
        if client.loads_script() {
            if self.before.as_deref().is_some_and(|bytes| !script::is_ours(bytes)) {
                return Err(refused(&self.file, "ic did not write its current content")
                    .hint("move it to another name, then call again"));
            }
            return Ok(self.edit(Some(script::text(Path::new(program)).into_bytes()), Vec::new(), false));
        }
        let program = &shell_word(program);
        let mut root = self.root.clone();
        let left = remove(&mut root, client);
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
        Ok(self.edit(after, Vec::new(), !is_same))
    }

    /// The file without our entries: the bytes that were there before, if nothing else was changed since.
    pub(super) fn without(&self, client: Client) -> Result<Edit> {
        if client.loads_script() {
            let before = self.before.as_deref().unwrap_or_default();
            let left = if script::is_edited(before) { vec!["plugin".to_owned()] } else { Vec::new() };
            let after = self.before.clone().filter(|bytes| !script::is_ours(bytes));
            return Ok(self.edit(after, left, false));
        }
        let mut root = self.root.clone();
        let left = remove(&mut root, client);
        if root.get("hooks").and_then(Value::as_object).is_some_and(Map::is_empty) {
            root.shift_remove("hooks");
        }
        if root == self.root {
            return Ok(self.edit(self.before.clone(), left, false));
        }
        let copy = fs::read(copy_of(&self.file)).ok();
        let was = copy.as_deref().and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
        let is_blank = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_whitespace);
        let after = match copy {
            Some(bytes) if was == Some(Value::Object(root.clone())) => Some(bytes),
            Some(bytes) if is_blank(&bytes) && root.is_empty() => Some(bytes),
            None if root.is_empty() => None,
            _ => Some(pretty(&root)?),
        };
        Ok(self.edit(after, left, false))
    }

    fn edit(&self, after: Option<Vec<u8>>, left: Vec<String>, keeps_copy: bool) -> Edit {
        Edit { file: self.file.clone(), after, before: self.before.clone(), left, keeps_copy }
    }
}

impl Edit {
    /// Whether anything is to be written.
    pub(crate) fn is_change(&self) -> bool {
        self.after != self.before
    }

    /// The text that the file is to have.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(self.after.as_deref().unwrap_or_default()).into_owned()
    }

    /// Writes it, all or nothing; what was there is kept beside it until it is removed again.
    pub(super) fn write(&self, settings: &Settings) -> Result<()> {
        if !self.is_change() {
            return Ok(());
        }
        let copy = copy_of(&self.file);
        let doing = || format!("writing {}", self.file.display());
        if let (true, Some(before)) = (self.keeps_copy && !copy.exists(), &settings.before) {
            replace(&copy, before, None).while_doing(doing)?;
        }
        if let Some(bytes) = &self.after {
            let mode = fs::metadata(&self.file).map(|found| found.permissions().mode()).ok();
            replace(&self.file, bytes, mode).while_doing(doing)?;
        } else {
            fs::remove_file(&self.file).while_doing(doing)?;
            // The directories, if they were made for the file: what is not empty stays.
            for directory in self.file.ancestors().skip(1).take(settings.depth) {
                let _ = fs::remove_dir(directory);
            }
        }
        if !self.keeps_copy {
            let _ = fs::remove_file(&copy);
        }
        Ok(())
    }
}

fn refused(file: &Path, why: &str) -> Diagnosis {
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
    let mut written =
        File::options().write(true).create_new(true).mode(mode.unwrap_or(0o600)).open(&fresh)?;
    written.write_all(bytes)?;
    written.sync_all()?;
    fs::rename(&fresh, file)
}

fn pretty(root: &Map<String, Value>) -> Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(root)
        .map_err(|e| Diagnosis::new(Code::Internal, format!("The settings cannot be written: {e}.")))?;
    bytes.push(b'\n');
    Ok(bytes)
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

/// Removes our entries; returns the events of those that call us and have another form than we give them.
fn remove(root: &mut Map<String, Value>, client: Client) -> Vec<String> {
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
        if list.is_empty() && count > 0 {
            emptied.push(event.clone());
        }
    }
    for event in emptied {
        hooks.shift_remove(&event);
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
mod tests {
    use super::{Settings, copy_of, fs};
    use crate::clients::Client;

    fn install(file: &std::path::Path) {
        let settings = Settings::read(file, Client::ClaudeCode).unwrap();
        settings.with(Client::ClaudeCode, "/opt/ic").unwrap().write(&settings).unwrap();
    }

    fn uninstall(file: &std::path::Path) -> Vec<String> {
        let settings = Settings::read(file, Client::ClaudeCode).unwrap();
        let edit = settings.without(Client::ClaudeCode).unwrap();
        edit.write(&settings).unwrap();
        edit.left
    }

    #[test]
    fn what_was_there_comes_back_byte_for_byte() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("of/settings.json");
        for before in [
            None,
            Some("{}"),
            Some(" \n"),
            Some(
                "{ \"model\" : \"m\",\n\t\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"say done\"}]}]}}",
            ),
        ] {
            if let Some(text) = before {
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(&file, text).unwrap();
            }
            install(&file);
            let installed = fs::read_to_string(&file).unwrap();
            assert!(installed.contains("hook claude-code PreToolUse"), "{installed}");
            install(&file);
            assert_eq!(fs::read_to_string(&file).unwrap(), installed, "the same again changes nothing");
            assert_eq!(uninstall(&file), Vec::<String>::new());
            assert_eq!(fs::read_to_string(&file).ok().as_deref(), before, "{before:?}");
            assert!(!copy_of(&file).exists());
        }
    }

    #[test]
    fn what_a_person_changed_since_stays() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("settings.json");
        fs::write(&file, "{\"model\": \"m\"}").unwrap();
        install(&file);
        let edited = fs::read_to_string(&file).unwrap().replace("\"timeout\": 30", "\"timeout\": 5");
        fs::write(&file, edited.replacen("\"timeout\": 5", "\"timeout\": 30", 6)).unwrap();
        assert_eq!(uninstall(&file), ["SessionEnd"]);
        let left = fs::read_to_string(&file).unwrap();
        assert!(left.contains("hook claude-code SessionEnd") && !left.contains("PreToolUse"), "{left}");
    }

    #[test]
    fn an_older_entry_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("settings.json");
        let settings = Settings::read(&file, Client::ClaudeCode).unwrap();
        settings.with(Client::ClaudeCode, "/old/ic").unwrap().write(&settings).unwrap();
        install(&file);
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("/opt/ic") && !text.contains("/old/ic"), "{text}");
    }

    #[test]
    fn what_is_no_plain_json_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("settings.json");
        for text in [
            "{ // a comment\n}",
            "[]",
            "{\"hooks\": []}",
            "{\"hooks\": {\"Stop\": {}}}",
            "\u{feff}{}",
            "{\"a\": ",
        ] {
            fs::write(&file, text).unwrap();
            assert!(Settings::read(&file, Client::ClaudeCode).is_err(), "{text}");
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        let link = directory.path().join("link.json");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(Settings::read(&link, Client::ClaudeCode).is_err());
        fs::write(&file, "{}").unwrap();
        let elsewhere = directory.path().join("elsewhere");
        std::os::unix::fs::symlink(directory.path(), &elsewhere).unwrap();
        assert!(Settings::read(&elsewhere.join("settings.json"), Client::ClaudeCode).is_err());
    }
}
