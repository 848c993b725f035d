//! Writes the manual: a page for the program, for each group of verbs and for each verb. `clap_mangen` renders what the command tree says;
//! the rest is here.

use clap::Command;
use clap_mangen::Man;
use roff::{Inline, Roff, bold, italic, roman};

use crate::examples;

/// The date on the pages: of the commit that a release was built from, else of the last change to the manual's own text.
const DATE: &str = match option_env!("IC_BUILD_DATE") {
    Some(date) => date,
    None => "2026-11-23",
};

const EXITS: &[(&str, &str)] = &[
    ("0", "Done, or yes."),
    ("1", "An expected no: blocked, paused, conflict, stale, refused in this state, nothing found by a query."),
    ("2", "Failure: I/O, corruption, busy past the timeout."),
    ("3", "Usage: bad flags or values, or a reference to something that does not exist."),
    ("4", "Partly done: the report on standard output names what is left."),
    (
        "130",
        "Ctrl-C or a request to end (SIGTERM, SIGQUIT, SIGHUP) interrupted a consumer of events, which left its event, or a wait.",
    ),
];

const ENVIRONMENT: &[(&str, &str)] = &[
    ("IC_DB", "The ledger's file or URL, unless `--db` names another."),
    (
        "IC_FORMAT",
        "The output format, unless a flag sets it: auto, json, jsonl, text. A verb that prints just a value prints its record only for a flag.",
    ),
    ("IC_CONFIG", "The configuration file, in place of .ic.yaml in the project's root."),
    ("IC_DISPATCH", "The calling dispatch, unless `--dispatch` names another."),
    ("NO_COLOR", "If it is set and not empty, text has no colours."),
];

const FILES: &[(&str, &str)] = &[
    (".git/ic/ic.db", "The ledger of a git repository; its linked work trees share it."),
    (".ic/ic.db", "The ledger of a directory that is in no git repository."),
    (
        "ic.db-wal",
        "The newest changes of the ledger, beside it. A copy of ic.db alone lacks them: ic backup copies both.",
    ),
    (
        "ic.db.head",
        "What was the newest event of the ledger, beside it: who opens an older copy in its place learns of it.",
    ),
    ("objects.db", "The content of checkpoints, beside the ledger."),
    ("ic.db.reserve", "Reserved space for a prune on a full disk, beside the ledger; it holds no data."),
    ("rewinds/", "The rows that rewinds and rollbacks removed, beside the ledger."),
    ("logs/", "The output of undo commands and workflow steps, beside the ledger."),
    (".ic.yaml", "The project's configuration, in its root."),
];

/// A page of the manual.
pub(crate) struct ManualPage {
    /// The name of its file, as in `ic-run-rollback.1`.
    pub(crate) name: String,
    /// Its text, for man(1).
    pub(crate) text: String,
}

/// All pages of a command tree: the program's own, then group by group.
pub(crate) fn pages(mut tree: Command) -> Vec<ManualPage> {
    tree.build();
    let mut pages = Vec::new();
    collect(&[&tree], &mut pages);
    pages
}

fn collect(path: &[&Command], pages: &mut Vec<ManualPage>) {
    let Some(command) = path.last() else { return };
    pages.push(ManualPage { name: format!("{}.1", title(path)), text: page(path, command) });
    for verb in verbs(command) {
        collect(&[path, &[verb]].concat(), pages);
    }
}

fn verbs(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|verb| verb.get_name() != "help" && !verb.is_hide_set())
}

/// The name of a page, as in `ic-run-rollback`.
fn title(path: &[&Command]) -> String {
    path.iter().map(|command| command.get_name()).collect::<Vec<_>>().join("-")
}

fn page(path: &[&Command], command: &Command) -> String {
    let is_root = path.len() == 1;
    // The global options are left out of each verb's page, where they would hide its own. The synopsis is the usage that `--help` shows.
    // The command is cloned, because clap changes it as it renders it.
    let usage = command.clone().render_usage().to_string();
    let shown = command
        .clone()
        .mut_args(|argument| {
            let is_common = argument.is_global_set() && !is_root || argument.get_id() == "help";
            argument.hide(is_common)
        })
        .override_usage(usage.trim_start_matches("Usage:").trim().to_owned());
    let man = Man::new(shown)
        .title(title(path))
        .date(DATE)
        .source(format!("ic {}", env!("CARGO_PKG_VERSION")))
        .manual("ic manual");
    let mut text = Vec::new();
    // Writing into a `Vec` does not fail.
    let _ = man.render_title(&mut text);
    let _ = man.render_name_section(&mut text);
    let _ = man.render_synopsis_section(&mut text);
    let _ = man.render_description_section(&mut text);
    let _ = man.render_options_section(&mut text);
    let _ = rest(path, command).to_writer(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// What clap does not know: the examples, and the sections that are the same on every page.
fn rest(path: &[&Command], command: &Command) -> Roff {
    let mut page = Roff::new();
    let (examples, notes) = examples::parts(command);
    if path.len() > 1 {
        page.text([roman("Options that are accepted before and after every verb are in "), bold("ic"), roman("(1).")]);
        for note in notes.split("\n\n").filter(|note| !note.trim().is_empty()) {
            page.control("PP", []).text([roman(note.lines().map(str::trim).collect::<Vec<_>>().join(" "))]);
        }
    }
    if verbs(command).next().is_some() {
        page.control("SH", ["COMMANDS"]);
        for verb in verbs(command) {
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            tagged(&mut page, &reference(&[path, &[verb]].concat()), &about);
        }
    }
    if !examples.is_empty() {
        page.control("SH", ["EXAMPLES"]).control("nf", []);
        for line in &examples {
            page.text([roman(line.as_str())]);
        }
        page.control("fi", []);
    }
    for (name, list, style) in [
        ("EXIT STATUS", EXITS, bold as fn(&'static str) -> Inline),
        ("ENVIRONMENT", ENVIRONMENT, bold),
        ("FILES", FILES, italic),
    ] {
        page.control("SH", [name]);
        for (tag, meaning) in list {
            tagged(&mut page, &[style(tag)], meaning);
        }
    }
    page.control("PP", []).text([roman("An error has a code; docs/errors/ explains each.")]);
    page.control("SH", ["SEE ALSO"]).text(related(path));
    page
}

fn tagged(page: &mut Roff, tag: &[Inline], meaning: &str) {
    page.control("TP", []).text(tag.to_vec()).text([roman(meaning.replace('`', ""))]);
}

/// The pages to read next: the groups above a command, and the verbs beside it.
fn related(path: &[&Command]) -> Vec<Inline> {
    let mut related: Vec<Vec<Inline>> = (1..path.len()).map(|depth| reference(&path[..depth])).collect();
    // Verbs of one noun belong together; nouns do not, so they are not listed.
    if let [_, .., group, own] = path {
        let beside = verbs(group).filter(|verb| verb.get_name() != own.get_name());
        related.extend(beside.map(|verb| reference(&[&path[..path.len() - 1], &[verb]].concat())));
    }
    if related.is_empty() {
        related = ["git", "jq", "sqlite3"].map(|program| vec![bold(program), roman("(1)")]).to_vec();
    }
    related.join(&roman(", "))
}

/// A reference to another page, as in **ic-run-rollback**(1).
fn reference(path: &[&Command]) -> Vec<Inline> {
    vec![bold(title(path)), roman("(1)")]
}

#[cfg(test)]
mod tests;
