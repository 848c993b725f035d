//! What was counted for a requirement, and whether that is enough.

use ic_base::Label;

use super::check::{AuthorRule, GateCheck, Tier};
use super::rules::Requirement;

/// A requirement with the answer that was found, and how much that weighs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateCondition {
    /// The question that was asked.
    pub check: GateCheck,
    /// The phase that it asks about; `None`: the whole run.
    pub phase: Option<Label>,
    /// How much it weighs.
    pub tier: Tier,
    /// Whose artifacts and verdicts count for it.
    pub by: AuthorRule,
    /// Whether the answer is yes, so that the requirement does not block.
    pub holds: bool,
    /// How many artifacts, verdicts or pieces of unfinished work were found.
    pub count: i64,
    /// The same as a sentence, for people.
    pub detail: String,
    /// The work that it waits for.
    pub unfinished: Vec<OpenWork>,
    /// The files of registered artifacts that do not exist: those artifacts were not counted.
    pub missing: Vec<String>,
    /// Whether it holds only because nothing was ever done.
    pub is_idle: bool,
}

/// The artifacts that a run registered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Artifacts {
    /// How many are there: the file exists, or it is no file.
    pub present: i64,
    /// The paths of those whose file does not exist.
    pub missing: Vec<String>,
}

/// A piece of work that a gate waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenWork {
    /// `agent` or `dispatch`, as commands name it.
    pub kind: &'static str,
    /// The id of the agent or dispatch.
    pub id: String,
    /// The end of its id.
    pub short_id: String,
    /// A name for people.
    pub name: Option<String>,
    /// Its status, as the ledger writes it.
    pub status: &'static str,
    /// The command that ends it.
    pub command: String,
    /// Other commands that end it, the likeliest first.
    pub other_commands: Vec<String>,
}

/// The work of agents and dispatches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountedWork {
    /// What has not ended.
    pub unfinished: Vec<OpenWork>,
    /// Whether anything ended since the phase began.
    pub has_ended: bool,
}

/// What was counted for one requirement. Nothing that was rolled back is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Facts {
    /// The artifacts of a phase or run.
    Artifacts(Artifacts),
    /// Agents that are active and dispatches that have not ended.
    Work(CountedWork),
    /// Dispatches that have not ended.
    Dispatches(Vec<OpenWork>),
    /// The end of the id of the dispatch with the newest verdict, and whether that is pass.
    NewestVerdict(Option<(String, bool)>),
    /// The numbers of dispatches by their verdict.
    Verdicts {
        /// Dispatches whose verdict is pass.
        pass: i64,
        /// Dispatches whose verdict is fail.
        fail: i64,
    },
}

/// A requirement of weight `tier` against what was counted for it.
pub(super) fn weigh(requirement: &Requirement, facts: &Facts, tier: Tier) -> GateCondition {
    let place = match &requirement.phase {
        Some(phase) => format!("phase {phase}"),
        None => "the run".to_owned(),
    };
    let place = match requirement.by {
        AuthorRule::Any => place,
        AuthorRule::Other => format!("{place} by another than who did the work"),
    };
    let mut unfinished = Vec::new();
    let mut missing = Vec::new();
    let mut is_idle = false;
    let (holds, count, detail) = match facts {
        Facts::Artifacts(found) => {
            missing.clone_from(&found.missing);
            let n = found.present;
            (n > 0, n, format!("{} in {place}{}", counted(n, "artifact"), absent(&missing)))
        }
        Facts::Work(work) => {
            unfinished.clone_from(&work.unfinished);
            // Nothing is open, and nothing ended since the phase began. The condition holds, and the caller warns
            // that no work was done.
            is_idle = unfinished.is_empty() && !work.has_ended;
            let detail = if is_idle {
                "no work was recorded in this phase".to_owned()
            } else {
                format!("{} in {place}", all_counted(&unfinished))
            };
            (unfinished.is_empty(), length(&unfinished), detail)
        }
        Facts::Dispatches(waiting) => {
            unfinished.clone_from(waiting);
            let n = length(&unfinished);
            (n == 0, n, format!("{} in {place}", counted(n, "unfinished dispatch")))
        }
        Facts::NewestVerdict(None) => (false, 0, format!("no verdict in {place}")),
        Facts::NewestVerdict(Some((id, is_pass))) => {
            let verdict = if *is_pass { "pass" } else { "fail" };
            let detail = format!("the newest verdict in {place}, of dispatch {id}, is {verdict}");
            (*is_pass, i64::from(*is_pass), detail)
        }
        Facts::Verdicts { pass, fail } => (
            // Without any verdict nothing was reviewed, so that is not clean.
            *pass > 0 && *fail == 0,
            pass + fail,
            format!("{} and {} in {place}", counted(*pass, "passing verdict"), counted(*fail, "failing one")),
        ),
    };
    let (check, phase): (GateCheck, _) = (requirement.check, requirement.phase.clone());
    GateCondition { check, phase, tier, by: requirement.by, holds, count, detail, unfinished, missing, is_idle }
}

/// `no active agent and 2 unfinished dispatches`.
fn all_counted(unfinished: &[OpenWork]) -> String {
    let agents = unfinished.iter().filter(|work| work.kind == "agent").count();
    let dispatches = unfinished.len() - agents;
    let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    format!("{} and {}", counted(count(agents), "active agent"), counted(count(dispatches), "unfinished dispatch"))
}

/// `; 2 registered files do not exist: a.md, b.md`, or nothing.
fn absent(missing: &[String]) -> String {
    const NAMED: usize = 3;
    let named = missing.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = if missing.len() > NAMED { ", ..." } else { "" };
    match missing.len() {
        0 => String::new(),
        1 => format!("; 1 registered file does not exist: {named}"),
        n => format!("; {n} registered files do not exist: {named}{more}"),
    }
}

fn length(unfinished: &[OpenWork]) -> i64 {
    i64::try_from(unfinished.len()).unwrap_or(i64::MAX)
}

/// `no artifact`, `1 artifact`, `3 artifacts`.
fn counted(n: i64, noun: &str) -> String {
    match (n, noun.ends_with("ch")) {
        (0, _) => format!("no {noun}"),
        (1, _) => format!("1 {noun}"),
        (_, true) => format!("{n} {noun}es"),
        (_, false) => format!("{n} {noun}s"),
    }
}
