//! The hooks of a client that loads a script: a file that is ours as a whole. Its first line has the hash of the rest.

use std::path::Path;

use ic_session::clients::Client;
use serde_json::json;
use sha2::{Digest, Sha256};

/// How the first line begins.
fn written_by(client: &Client) -> String {
    let name = client.name;
    format!("// Written by `ic hooks install {name}`; `ic uninstall {name}` removes it. sha256:")
}

/// The client's script, which calls the program at this path.
pub(super) fn text(client: &Client, script: &str, program: &Path) -> String {
    let events: Vec<&str> = client.events.iter().map(|(event, _)| *event).collect();
    let body = script
        .replace("@PROGRAM@", &json!(program.to_string_lossy()).to_string())
        .replace("@EVENTS@", &json!(events).to_string());
    format!("{}{}\n{body}", written_by(client), digest(&body))
}

/// Whether some version of ic wrote exactly these bytes.
pub(super) fn is_ours(client: &Client, bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let Some((named, body)) = text.strip_prefix(&written_by(client)).and_then(|rest| rest.split_once('\n')) else {
        return false;
    };
    named == digest(body)
}

/// Whether ic wrote the file, and a person has changed it since.
pub(super) fn is_edited(client: &Client, bytes: &[u8]) -> bool {
    !is_ours(client, bytes) && bytes.starts_with(written_by(client).as_bytes())
}

fn digest(body: &str) -> String {
    Sha256::digest(body.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
