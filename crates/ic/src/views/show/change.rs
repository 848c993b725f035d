//! An entry of a log that no work made: a restore, or what a person changed between the works.

use ic_base::Timestamp;

use super::{ShownFile, ShownFileJson, file_table};
use crate::text::{age, counted, plain, shell_word, style, styled};
use crate::views::checkpoint::content::PatchJson;
use crate::views::log::{LogEntryJson, LoggedEntry, entry_lines};

/// A restore, or what a person changed, with its files.
pub(crate) struct ShownChange {
    pub(crate) logged: LoggedEntry,
    pub(crate) files: Vec<ShownFile>,
}

shape! {
    /// A restore, or what a person changed.
    pub(crate) struct ShowChangeJson from (shown: &ShownChange, patch: Option<PatchJson>) {
        #[serde(flatten)]
        entry: LogEntryJson = (&shown.logged).into(),
        /// What it changed, by path.
        files: Vec<ShownFileJson> = shown.files.iter().map(ShownFileJson::from).collect(),
        /// Its changes as a patch, with control characters escaped; left out without `--patch-bytes`.
        #[serde(skip_serializing_if = "Option::is_none")]
        patch: Option<PatchJson> = patch,
    }
}

/// Who did it and when, and what it was.
pub(crate) fn head(shown: &ShownChange, now: Timestamp) -> String {
    let logged = &shown.logged;
    let mut facts = vec![entry_lines::who(logged), age(now, logged.entry.created_at)];
    facts.extend(entry_lines::is_undone(&logged.entry).then(|| "undone".to_owned()));
    let (name, said) = (entry_lines::name(&logged.entry), entry_lines::said(logged));
    let facts = styled(style::DIM, &facts.join(", "));
    format!("{}  {facts}\n    {}\n", styled(style::STRONG, &name), plain(&said))
}

/// The entry with its files, and the commands for what comes next.
pub(crate) fn card(shown: &ShownChange, now: Timestamp) -> String {
    let name = entry_lines::name(&shown.logged.entry);
    let files = if shown.files.is_empty() { "files: none changed\n".to_owned() } else { file_table(&shown.files) };
    let mut ways = Vec::new();
    if let [first, ..] = shown.files.as_slice() {
        let path = shell_word(&String::from_utf8_lossy(&first.path));
        ways.push(format!("its patch, of {}: ic show {name} -p", counted(shown.files.len(), "file")));
        ways.push(format!("a path as it was before: ic restore --before {name} {path}"));
    }
    let ways = if ways.is_empty() { String::new() } else { styled(style::DIM, &ways.join("; ")) + "\n" };
    head(shown, now) + &files + &ways
}
