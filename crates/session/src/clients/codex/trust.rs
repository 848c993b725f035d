//! Makes Codex trust our hooks. Codex runs no other ones; its own program names the hash of each hook, and writes it into its settings.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use ic_base::{Code, Diagnosis, Result};
use serde_json::{Map, Value, json};

use super::trust_removal;
use crate::clients::HookTrust;

/// How long Codex may take for all answers together. It starts in less than a second.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(super) struct CodexTrust;

impl HookTrust for CodexTrust {
    fn grant(&self, file: &Path, project: &Path, commands: &BTreeSet<String>) -> Result<()> {
        let mut codex = CodexProcess::start(project)?;
        codex.ask(
            "initialize",
            &json!({ "clientInfo": { "name": "ic", "version": env!("CARGO_PKG_VERSION") },
                "capabilities": { "experimentalApi": true } }),
        )?;
        codex.tell(&json!({ "method": "initialized" }))?;
        let listed = codex.ask("hooks/list", &json!({ "cwds": [project] }))?;
        let hashes = hashes(&listed, file, commands);
        if hashes.len() != commands.len() {
            return Err(refused("it does not list them: does it trust the project?"));
        }
        let edit = json!({ "keyPath": "hooks.state", "mergeStrategy": "upsert", "value": hashes });
        codex.ask("config/batchWrite", &json!({ "edits": [edit] })).map(drop)
    }

    fn without(&self, file: &Path, hooks: &[(String, usize)], directory: &Path) -> Option<(PathBuf, String)> {
        trust_removal::without_hooks(file, hooks, directory)
    }

    fn note(&self) -> &'static str {
        "Codex runs a hook only when it is trusted: type /hooks in it once, or install with --trust.\n"
    }
}

/// The entries for our hooks. A repository may bring hooks of its own: whether to trust those, the person decides.
fn hashes(listed: &Value, file: &Path, commands: &BTreeSet<String>) -> Map<String, Value> {
    // Links are resolved in both paths: Codex may name the file by another path.
    let file = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let is_ours = |hook: &&Value| {
        let source = hook["sourcePath"].as_str().and_then(|path| std::fs::canonicalize(path).ok());
        source.as_ref() == Some(&file) && hook["command"].as_str().is_some_and(|command| commands.contains(command))
    };
    let entries = listed["data"].as_array().into_iter().flatten();
    let hooks = entries.flat_map(|entry| entry["hooks"].as_array().into_iter().flatten());
    hooks
        .filter(is_ours)
        .filter_map(|hook| {
            let hash = json!({ "trusted_hash": hook["currentHash"].as_str()? });
            Some((hook["key"].as_str()?.to_owned(), hash))
        })
        .collect()
}

/// A running Codex, which is asked line by line.
struct CodexProcess {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    until: Instant,
    asked: u64,
}

impl CodexProcess {
    fn start(project: &Path) -> Result<Self> {
        let started = Command::new("codex")
            .arg("app-server")
            .current_dir(project)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = started.map_err(|e| refused(&format!("codex cannot be started: {e}")))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(refused("codex cannot be reached"));
        };
        let (sender, lines) = channel();
        // Read on a thread, because a read has no timeout, and Codex may not answer.
        std::thread::spawn(move || {
            let read = BufReader::new(output).lines().map_while(std::result::Result::ok);
            for line in read {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self { child, input, lines, until: Instant::now() + PATIENCE, asked: 0 })
    }

    fn tell(&mut self, message: &Value) -> Result<()> {
        writeln!(self.input, "{message}").map_err(|e| refused(&format!("codex does not listen: {e}")))
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.asked += 1;
        self.tell(&json!({ "id": self.asked, "method": method, "params": params }))?;
        loop {
            let left = self.until.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            let line = line.map_err(|_| refused(&format!("codex does not answer {method}")))?;
            // Codex writes notices between its answers.
            let Ok(answer) = serde_json::from_str::<Value>(&line) else { continue };
            if answer["id"] == self.asked {
                return match &answer["result"] {
                    Value::Null => Err(refused(&format!("codex refuses {method}"))),
                    result => Ok(result.clone()),
                };
            }
        }
    }
}

impl Drop for CodexProcess {
    fn drop(&mut self) {
        // Codex would wait for more requests; without the wait its process would stay as a zombie.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn refused(why: &str) -> Diagnosis {
    Diagnosis::new(Code::ConfigNotChanged, format!("The hooks are installed, and Codex does not trust them: {why}."))
        .hint("type /hooks in Codex, and trust them there")
}
