//! Removes the trust that Codex keeps of our hooks in its own settings, when the hooks are uninstalled. Its trust in other hooks stays.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Codex's settings, and their text without its trust in these hooks of `file`.
pub(super) fn without_hooks(file: &Path, hooks: &[(String, usize)], directory: &Path) -> Option<(PathBuf, String)> {
    // The file may be a link that a person made: its target is edited, so that the link stays.
    let settings = fs::canonicalize(directory.join("config.toml")).ok()?;
    let before = fs::read_to_string(&settings).ok()?;
    let after = without(&before, &keys(file, hooks));
    (after != before).then_some((settings, after))
}

/// The keys of our hooks in Codex's settings: the file, the event, the index of the entry in its list, and of the hook in the entry.
fn keys(file: &Path, hooks: &[(String, usize)]) -> BTreeSet<String> {
    let mut files = vec![file.to_owned()];
    // Codex may know the file by its own path or through a link.
    files.extend(fs::canonicalize(file));
    let mut keys = BTreeSet::new();
    for (event, at) in hooks {
        let event = snake(event);
        keys.extend(files.iter().map(|file| format!("{}:{event}:{at}:0", file.display())));
    }
    keys
}

/// Converts the name of an event: `UserPromptSubmit` becomes `user_prompt_submit`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// Removes the trust in these hooks from a text in TOML. Every other byte stays. A table with more in it keeps the rest, and the heading of
/// all tables is removed only if none is left below it.
fn without(text: &str, keys: &BTreeSet<String>) -> String {
    let mut blocks: Vec<Vec<&str>> = vec![Vec::new()];
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with('[') {
            blocks.push(Vec::new());
        }
        if let Some(block) = blocks.last_mut() {
            block.push(line);
        }
    }
    let is_ours = |block: &[&str]| {
        let head = block.first().map(|head| head.trim()).unwrap_or_default();
        let key = head.strip_prefix("[hooks.state.").and_then(|rest| rest.strip_suffix(']'));
        key.and_then(quoted).is_some_and(|key| keys.contains(&key))
    };
    let is_blank = |line: &&str| line.trim().is_empty();
    let (mut out, mut has_removed): (Vec<Vec<&str>>, bool) = (Vec::new(), false);
    for mut block in blocks {
        if is_ours(&block) {
            // The table may also say that the hook is off, which is the person's decision and stays.
            block.retain(|line| !line.trim_start().starts_with("trusted_hash"));
            if block.iter().skip(1).all(is_blank) {
                has_removed = true;
                // The blank line before the table was added with it.
                let is_last_blank = out.last().and_then(|last| last.last()).is_some_and(is_blank);
                if is_last_blank && block.len() == 1 {
                    out.last_mut().and_then(Vec::pop);
                }
                continue;
            }
        }
        out.push(block);
    }
    let is_empty_head = |block: &Vec<&str>| {
        block.first().is_some_and(|head| head.trim() == "[hooks.state]") && block.iter().skip(1).all(is_blank)
    };
    let has_more = out.iter().any(|block| block.first().is_some_and(|head| head.trim().starts_with("[hooks.state.")));
    if has_removed && !has_more {
        out.retain(|block| !is_empty_head(block));
    }
    out.concat().concat()
}

/// The value of a TOML key in quotes.
fn quoted(text: &str) -> Option<String> {
    if let Some(literal) = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        return Some(literal.to_owned());
    }
    // The escapes of a basic string that occur in a path are those of JSON.
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use super::{snake, without};

    #[test]
    fn the_trust_in_our_hooks_goes_and_all_else_stays_byte_for_byte() {
        let keys = ["/shop/.codex/hooks.json:stop:0:0", "/shop/.codex/hooks.json:pre_tool_use:1:0"];
        let keys = keys.map(str::to_owned).into_iter().collect();
        let before = "model = \"x\"  # mine\n\n[projects.\"/shop\"]\ntrust_level = \"trusted\"\n";
        let table = |key: &str| format!("\n[hooks.state.{key}]\ntrusted_hash = \"sha256:1\"\n");
        let ours = table("\"/shop/.codex/hooks.json:stop:0:0\"") + &table("'/shop/.codex/hooks.json:pre_tool_use:1:0'");
        assert_eq!(without(&format!("{before}{ours}"), &keys), before);
        assert_eq!(without(&format!("{before}\n[hooks.state]\n{ours}"), &keys), before.to_owned() + "\n");
        let others = table("\"/shop/.codex/hooks.json:stop:1:0\"") + &table("\"/other/hooks.json:stop:0:0\"");
        assert_eq!(without(&format!("{before}{ours}{others}"), &keys), format!("{before}{others}"));
        assert_eq!(without(&format!("{before}{others}"), &keys), format!("{before}{others}"));
        let more = "\n[hooks.state.\"/shop/.codex/hooks.json:stop:0:0\"]\nenabled = false\n";
        assert_eq!(without(&format!("{before}{more}trusted_hash = \"1\"\n"), &keys), format!("{before}{more}"));
    }

    #[test]
    fn events_are_called_as_codex_calls_them() {
        assert_eq!(snake("UserPromptSubmit"), "user_prompt_submit");
        assert_eq!(snake("Stop"), "stop");
    }
}
