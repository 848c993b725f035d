//! The hooks of a client that loads a script: a file that is ours as a whole. Its first line has the hash of the rest.

use std::path::Path;

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::clients::Client;

const BODY: &str = include_str!("opencode.js");
const WRITTEN_BY: &str = "// Written by `ic hooks install opencode`; `ic hooks uninstall opencode` removes it. sha256:";

/// The script, which calls the program at this path.
pub(super) fn text(program: &Path) -> String {
    let events: Vec<&str> = Client::OpenCode.events().iter().map(|(event, _)| *event).collect();
    let body = BODY
        .replace("@PROGRAM@", &json!(program.to_string_lossy()).to_string())
        .replace("@EVENTS@", &json!(events).to_string());
    format!("{WRITTEN_BY}{}\n{body}", digest(&body))
}

/// Whether some version of ic wrote exactly these bytes.
pub(super) fn is_ours(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let Some((named, body)) = text.strip_prefix(WRITTEN_BY).and_then(|rest| rest.split_once('\n')) else {
        return false;
    };
    named == digest(body)
}

/// Whether ic wrote the file, and a person has changed it since.
pub(super) fn is_edited(bytes: &[u8]) -> bool {
    !is_ours(bytes) && bytes.starts_with(WRITTEN_BY.as_bytes())
}

fn digest(body: &str) -> String {
    Sha256::digest(body.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
