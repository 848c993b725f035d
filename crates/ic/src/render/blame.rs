//! Which work changed a file, one change a line.

use ic_base::Timestamp;
use ic_ops::blame::{Blame, Changed, Owner};
use ic_store::path_from_bytes;

use super::table::{Cell, Table};
use super::{path_text, style, styled, when};

/// What is known of a file.
pub(crate) fn blame(blame: &Blame, now: Timestamp) -> String {
    let path = path_text(&path_from_bytes(&blame.path));
    let mut out = format!("{}\n", styled(style::STRONG, &path));
    if blame.is_unseen {
        out.push_str("It changed since the newest checkpoint; who changed it is not known yet.\n");
    }
    let mut table = Table::headless();
    for changed in &blame.changes {
        table.row(vec![
            Cell::new(style::DIM, &when(now, changed.seen_at)),
            changed.change.as_str().into(),
            Cell::new(style::STRONG, &whose(changed)),
            calls(changed).as_str().into(),
            titles(changed).as_str().into(),
        ]);
    }
    out.push_str(&table.render("No checkpoint shows a change of it."));
    if blame.has_more {
        out.push_str("There are more: add --limit N.\n");
    }
    if !blame.commits.is_empty() {
        out.push_str("Git:\n");
        let mut table = Table::headless();
        for (commit, maker) in &blame.commits {
            table.row(vec![
                Cell::new(style::DIM, &when(now, Timestamp(commit.seconds.saturating_mul(1000)))),
                commit.sha.get(..9).unwrap_or(&commit.sha).into(),
                maker
                    .as_ref()
                    .map_or(String::new(), |maker| format!("dispatch:{}", maker.id.short()))
                    .as_str()
                    .into(),
                commit.author.as_str().into(),
                commit.subject.as_str().into(),
            ]);
        }
        out.push_str(&table.render(""));
    }
    if let Some(owner) =
        blame.changes.iter().filter(|one| one.owners.len() == 1).find_map(|one| one.owners.first())
    {
        let id = owner.dispatch.id.short();
        if owner.dispatch.rolled_back_by.is_none() {
            out.push_str(&format!("To undo that work alone: ic undo --dispatch {id} --dry-run\n"));
        }
    }
    out
}

fn whose(changed: &Changed) -> String {
    let name = |owner: &Owner| {
        let kind = if owner.session.is_some() { "prompt" } else { "dispatch" };
        format!("{kind}:{}", owner.dispatch.id.short())
    };
    match changed.owners.as_slice() {
        _ if changed.is_restore => "a restore".to_owned(),
        [] => "no recorded work".to_owned(),
        owners => owners.iter().map(name).collect::<Vec<_>>().join(" or "),
    }
}

fn calls(changed: &Changed) -> String {
    let mut tools: Vec<&str> = changed.calls.iter().map(|call| call.tool.as_str()).collect();
    tools.dedup();
    tools.join(", ")
}

fn titles(changed: &Changed) -> String {
    let title = |owner: &Owner| {
        let undone = if owner.dispatch.rolled_back_by.is_some() { " (undone)" } else { "" };
        format!("{}{undone}", owner.dispatch.work.name.as_deref().unwrap_or_default())
    };
    changed.owners.iter().map(title).collect::<Vec<_>>().join("; ")
}
