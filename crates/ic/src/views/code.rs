//! The report of the code layer: commits and files, and the dispatches that recorded them.

use std::collections::HashMap;

use ic_phase::Run;
use ic_runtrack::Artifact;
use ic_undo::code::{CodeEntry, CodeReport};

use crate::text::{Cell, TextTable, path_text, style};
use crate::views::{PathJson, exact};

shape! {
    /// The commits and files of a run, by the dispatch that recorded them (`run rollback --layer=code`).
    pub(crate) struct CodeJson from (run: &Run, report: &CodeReport) {
        run_id: String = run.id.to_string(),
        /// The layer of the report: always code.
        #[cfg_attr(test, schemars(extend("enum" = ["code"])))]
        layer: &'static str = "code",
        /// The phases that were asked for, in chain order.
        phases: Vec<String> = report.phases.clone(),
        /// Dispatches with their commits and files, newest first.
        entries: Vec<EntryJson> = report.entries.iter().map(Into::into).collect(),
        /// The commits to revert, newest first, each once.
        revert_order: Vec<String> = report.revert_order.clone(),
        artifacts: Vec<CodeArtifact> = report.artifacts.iter().map(Into::into).collect(),
    }

    struct EntryJson from entry: &CodeEntry where
        exact = entry.files.iter().map(|f| exact(f)).collect::<Vec<_>>();
    {
        dispatch_id: String = entry.dispatch.id.to_string(),
        dispatch_name: Option<String> = entry.dispatch.work.name.clone(),
        agent_kind: Option<String> = entry.dispatch.work.agent_type.clone(),
        phase: String = entry.dispatch.phase.clone(),
        status: &'static str as ic_dispatch::DispatchStatus = entry.dispatch.status.as_str(),
        /// Whether a part of it was reported after the dispatch was rolled back.
        late: bool = entry.late,
        rolled_back_by: Option<String> = entry.dispatch.rolled_back_by.as_ref().map(ToString::to_string),
        /// The SHAs that the dispatch recorded, oldest first.
        commit_shas: Vec<String> = entry.commits.clone(),
        /// The paths; one that is not UTF-8 is lossy here.
        file_paths: Vec<String> = entry.files.iter().map(|f| f.to_string_lossy().into_owned()).collect(),
        /// The exact bytes of each path in base64, null for one that is UTF-8. Left out if all are.
        #[serde(skip_serializing_if = "Option::is_none")]
        file_paths_b64: Option<Vec<Option<String>>> = exact.iter().any(Option::is_some).then_some(exact),
    }

    struct CodeArtifact from artifact: &Artifact {
        id: String = artifact.id.to_string(),
        phase: String = artifact.phase.clone(),
        #[serde(flatten)]
        path: PathJson = artifact.path.as_path().into(),
        content_hash: Option<String> = artifact.content_hash.clone(),
        kind: String = artifact.kind.clone(),
        status: &'static str as ic_runtrack::artifact::ArtifactStatus = artifact.status.as_str(),
    }
}

/// The commits to revert, newest first, and the files that were recorded, with phase and dispatch.
pub(crate) fn code(report: &CodeReport) -> String {
    let mut origin: HashMap<&str, &CodeEntry> = HashMap::new();
    // From the end: of several dispatches that recorded a commit, the first is named.
    for entry in report.entries.iter().rev() {
        for sha in &entry.commits {
            origin.insert(sha, entry);
        }
    }
    let mut table = TextTable::headless();
    for sha in &report.revert_order {
        let entry = origin.get(sha.as_str());
        let dispatch = entry.map(|e| &e.dispatch);
        let late = if entry.is_some_and(|e| e.late) { ", late" } else { "" };
        table.row(vec![
            Cell::new(style::STRONG, sha),
            dispatch.map_or("", |d| d.phase.as_str()).into(),
            dispatch.map_or("", |d| d.id.short()).into(),
            format!("{}{late}", dispatch.map_or("", |d| d.status.as_str())).as_str().into(),
            dispatch.and_then(|d| d.work.name.as_deref()).unwrap_or("").into(),
        ]);
    }
    table.render("No commits.") + &files_of(report)
}

/// The files that each dispatch recorded.
fn files_of(report: &CodeReport) -> String {
    let mut table = TextTable::headless();
    for entry in &report.entries {
        for file in &entry.files {
            table.row(vec![
                "".into(),
                Cell::new(style::STRONG, &path_text(file)),
                entry.dispatch.phase.as_str().into(),
                entry.dispatch.id.short().into(),
            ]);
        }
    }
    let files = table.render("");
    if report.entries.iter().all(|entry| entry.files.is_empty()) { String::new() } else { format!("\nFiles\n{files}") }
}
