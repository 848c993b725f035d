//! Our MCP server in a client's settings: one entry, which starts this program.

use std::path::Path;

use ic_base::{Diagnosis, Result};
use ic_session::clients::{Client, ServerList};
use serde_json::{Map, Value, json};

use super::file::{Copies, Edit, Location, refused};
use super::settings::{HooksSettings, calls_us, pretty};
use super::toml::{self, Unfit};

/// The name of the server. Clients put it before the names of its tools.
const NAME: &str = "ic";

/// A client's file of MCP servers.
pub(crate) struct Servers {
    settings: HooksSettings,
    client: &'static Client,
}

impl Servers {
    /// The client's file. `edited`: what another edit is about to make of a file, if it is this one.
    ///
    /// Errors: `config_not_changed` for what is no plain file, or not valid.
    pub(crate) fn read(location: &Location, client: &'static Client, edited: Option<&Edit>) -> Result<Self> {
        let is_json = client.server_list != ServerList::Toml;
        let settings = HooksSettings::found(location, is_json)?.edited(edited, is_json)?;
        if let ServerList::Json(key) = client.server_list {
            if settings.root.get(key).is_some_and(|servers| !servers.is_object()) {
                return Err(refused(&location.file, "it does not have the form of that client's settings"));
            }
        } else if let Some(bytes) = &settings.before {
            toml::check(bytes).map_err(|unfit| refusal(&location.file, unfit))?;
        }
        Ok(Self { settings, client })
    }

    /// The file with our server. `program`: its path. Errors: `config_not_changed` if a server of this name was not written by ic.
    pub(crate) fn with(&self, program: &str) -> Result<Edit> {
        let Self { settings, client } = self;
        let ServerList::Json(key) = client.server_list else {
            let before = settings.before.as_deref().unwrap_or_default();
            let after = toml::with(settings.before.as_deref(), program)
                .map_err(|unfit| refusal(&settings.location.file, unfit))?;
            // The copy shows the file without our table. Without a file, there is nothing to copy.
            let copies = if toml::is_in(before) || settings.before.is_none() { Copies::Older } else { Copies::Kept };
            return Ok(settings.edit(Some(after), Vec::new(), copies));
        };
        let mut root = settings.root.clone();
        let found = root.get(key).and_then(|servers| servers.get(NAME));
        if found.is_some_and(|found| !is_ours(found, client)) {
            return Err(refusal(&settings.location.file, Unfit::Taken));
        }
        // Hooks of the same file may have made the copy; it has the content from before both.
        let is_first = found.is_none() && !calls_us(&settings.root, client);
        root.entry(key).or_insert_with(|| json!({}))[NAME] = client.dialect.server(program);
        let is_same = root == settings.root;
        let after = if is_same { settings.before.clone() } else { Some(pretty(&root)?) };
        let copies = if is_first && !is_same { Copies::Kept } else { Copies::Older };
        Ok(settings.edit(after, Vec::new(), copies))
    }

    /// The file without our server. If nothing else has changed since, the result is the former content, byte for byte.
    pub(crate) fn without(&self) -> Result<Edit> {
        let Self { settings, client } = self;
        let ServerList::Json(key) = client.server_list else {
            let before = settings.before.as_deref().unwrap_or_default();
            let (after, is_left) = toml::without(before).map_err(|unfit| refusal(&settings.location.file, unfit))?;
            // A file that does not exist was read as an empty text, and must not be made.
            let after = if settings.before.is_none() { None } else { after };
            // The installation ended the last line, if it had no end; then only the copy has the former content.
            let was =
                settings.copy().filter(|was| after.as_ref().is_some_and(|after| *after == [was, &b"\n"[..]].concat()));
            let after = was.or(after);
            let left = if is_left { vec![NAME.to_owned()] } else { Vec::new() };
            return Ok(settings.edit(after, left, if is_left { Copies::Older } else { Copies::Gone }));
        };
        let mut root = settings.root.clone();
        let found = root.get(key).and_then(|servers| servers.get(NAME));
        let found = found.map(|found| is_ours(found, client));
        let copies = if calls_us(&root, client) { Copies::Older } else { Copies::Gone };
        let servers = root.get_mut(key).and_then(Value::as_object_mut);
        match (servers, found) {
            (Some(servers), Some(true)) => {
                servers.shift_remove(NAME);
                // A list that was empty before the installation is in the copy, and is kept.
                if servers.is_empty() && !settings.had(key) {
                    root.shift_remove(key);
                }
                let after = settings.restored(&root)?;
                Ok(settings.edit(after, Vec::new(), copies))
            }
            // A person has changed the entry: it stays, and the copy with it.
            (_, Some(_)) => Ok(settings.edit(settings.before.clone(), vec![NAME.to_owned()], Copies::Older)),
            (_, None) => Ok(settings.edit(settings.before.clone(), Vec::new(), copies)),
        }
    }
}

fn refusal(file: &Path, unfit: Unfit) -> Diagnosis {
    match unfit {
        Unfit::Invalid(why) => refused(file, &format!("it is no TOML ({why})")).hint("correct it, then call again"),
        Unfit::Closed => refused(file, "its mcp_servers are written in a form to which nothing can be added")
            .hint("write each as a table of its own, [mcp_servers.NAME], then call again"),
        Unfit::Taken => refused(file, "it has a server named ic that is not as ic writes it")
            .hint("rename that server, or remove it, then call again"),
    }
}

/// Whether our server is in a client's settings in JSON.
pub(super) fn is_in(root: &Map<String, Value>, client: &Client) -> bool {
    let ServerList::Json(key) = client.server_list else { return false };
    root.get(key).and_then(|servers| servers.get(NAME)).is_some_and(|found| is_ours(found, client))
}

/// Whether an entry is exactly what some version of ic wrote, for a program at any path.
fn is_ours(found: &Value, client: &Client) -> bool {
    let program = found["command"].as_str().or_else(|| found["command"][0].as_str());
    program.is_some_and(|program| *found == client.dialect.server(program))
}
