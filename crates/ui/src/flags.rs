//! The request of an undo: its target and its decisions, as an address, a form and a call have them.

use ic_base::{Code, Diagnosis, Result, check_text};
use ic_kernel::journal::{Force, PathDecisions};
use ic_undo::{LayeredRequest, Layers, RollbackRequest, RollbackTarget};
use maud::{Markup, html};

use crate::params::Params;
use crate::text::query;

/// In bytes: the same limit as on the command line.
const LONGEST_REASON: usize = 64 * 1024;

/// The target of an undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UndoGoal {
    /// Go back to before this point.
    To(String),
    /// Stay, and undo only this dispatch.
    Only(String),
}

/// An undo that a person asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WantedUndo {
    /// The id of the run.
    pub(crate) run: String,
    /// The point or dispatch to undo.
    pub(crate) goal: UndoGoal,
    /// The refusals that the person overrides.
    pub(crate) force: Force,
    /// Whether what others changed stays, instead of being a refusal.
    pub(crate) keep_theirs: bool,
    /// The reason, recorded with the rollback.
    pub(crate) reason: Option<String>,
}

/// The decisions that a person can make: the flag of the command, its name in an address, and what it does.
const DECISIONS: [(&str, &str, &str); 5] = [
    ("--force-files", "files", "Replace what others may have changed; of prompts, the same lines alone"),
    ("--force-commits", "commits", "Take pushed commits, and commits of others, off their branches"),
    ("--force-workers", "workers", "Go ahead while workers still run"),
    ("--past-pivot", "pivot", "Undo effects before one that has no undo"),
    ("--keep-theirs", "keep", "Keep what others changed"),
];

impl WantedUndo {
    /// Parses an address or a form. Errors: `invalid_value`.
    pub(crate) fn of(run: &str, params: &Params) -> Result<Self> {
        let goal = match (params.get("to"), params.get("only")) {
            (Some(point), None) => UndoGoal::To(point.to_owned()),
            (None, Some(dispatch)) => UndoGoal::Only(dispatch.to_owned()),
            (to, _) => {
                let said = if to.is_some() {
                    "This address names a point and a dispatch, and only one of them can be undone."
                } else {
                    "This address names no point and no dispatch."
                };
                return Err(Diagnosis::new(Code::InvalidValue, said).hint("choose one on the page of the run"));
            }
        };
        let reason = params.get("reason").map(str::trim).filter(|reason| !reason.is_empty());
        if let Some(reason) = reason {
            check_text("The reason", reason, LONGEST_REASON)?;
        }
        let force = Force {
            files: params.has("files"),
            commits: params.has("commits"),
            workers: params.has("workers"),
            past_pivot: params.has("pivot"),
        };
        // They exclude each other on the command line, too; replacing files is the more explicit decision.
        let keep_theirs = params.has("keep") && !force.files;
        Ok(Self { run: run.to_owned(), goal, force, keep_theirs, reason: reason.map(str::to_owned) })
    }

    /// The request that `ic undo` makes for it, over all layers. `expected`: the hash of the plan that was seen; `None`: only plan.
    pub(crate) fn request<'a>(&'a self, expected: Option<&'a str>) -> LayeredRequest<'a> {
        let to = match &self.goal {
            // This is as in `ic undo`: with a prompt, the later ones of its session go, too; at any other point the run goes back.
            UndoGoal::To(point) => RollbackTarget::Thread(point),
            UndoGoal::Only(dispatch) => RollbackTarget::Only(dispatch),
        };
        let base = RollbackRequest {
            run: &self.run,
            to,
            reason: self.reason.as_deref(),
            dry_run: expected.is_none(),
            expect_plan: expected,
        };
        let (force, keep_theirs) = (self.force, self.keep_theirs);
        LayeredRequest {
            base,
            layers: Layers::All,
            force,
            keep_theirs,
            decisions: PathDecisions::default(),
            mine: false,
        }
    }

    fn is_decided(&self, name: &str) -> bool {
        match name {
            "files" => self.force.files,
            "commits" => self.force.commits,
            "workers" => self.force.workers,
            "pivot" => self.force.past_pivot,
            _ => self.keep_theirs,
        }
    }

    /// The query of the address of its plan.
    fn pairs(&self) -> Vec<(&'static str, &str)> {
        let reason = self.reason.as_deref().map(|reason| ("reason", reason));
        // Each decision is a link. The reason is in it, so that a person types that once.
        self.decisions().into_iter().chain(reason).collect()
    }

    /// The target and the decisions, as pairs of a query.
    fn decisions(&self) -> Vec<(&'static str, &str)> {
        let goal = match &self.goal {
            UndoGoal::To(point) => ("to", point.as_str()),
            UndoGoal::Only(dispatch) => ("only", dispatch.as_str()),
        };
        let decided = DECISIONS.iter().filter(|(_, name, _)| self.is_decided(name)).map(|(_, name, _)| (*name, "1"));
        [goal].into_iter().chain(decided).collect()
    }

    /// The address of its plan with one more decision.
    pub(crate) fn address_with(&self, name: &str) -> String {
        let mut pairs = self.pairs();
        // Either what others changed is replaced, or it is kept.
        let other = match name {
            "keep" => "files",
            "files" => "keep",
            _ => "",
        };
        pairs.retain(|(key, _)| *key != name && *key != other);
        pairs.push((DECISIONS.iter().find(|(_, key, _)| *key == name).map_or("", |(_, key, _)| key), "1"));
        format!("/runs/{}/undo?{}", self.run, query(&pairs))
    }

    /// The address of its plan without a decision.
    pub(crate) fn address_without(&self, name: &str) -> String {
        let mut pairs = self.pairs();
        pairs.retain(|(key, _)| *key != name);
        format!("/runs/{}/undo?{}", self.run, query(&pairs))
    }

    /// Hidden fields of a form, for everything but the reason, which has a field of its own.
    pub(crate) fn hidden(&self) -> Markup {
        html! { @for (name, value) in self.decisions() { input type="hidden" name=(name) value=(value); } }
    }

    /// The command that does the same.
    pub(crate) fn command(&self) -> String {
        let goal = match &self.goal {
            UndoGoal::To(point) => format!("{} --run {}", ic_base::shell_word(point), short(&self.run)),
            UndoGoal::Only(dispatch) => format!("--only {}", short(dispatch)),
        };
        let decided = DECISIONS.iter().filter(|(_, name, _)| self.is_decided(name));
        let flags: String = decided.map(|(flag, ..)| format!(" {flag}")).collect();
        let reason = self.reason.as_deref().map(|reason| format!(" --reason {}", ic_base::shell_word(reason)));
        format!("ic undo {goal}{flags}{}", reason.unwrap_or_default())
    }

    /// The decisions that were made: the name of each, and what it does.
    pub(crate) fn decided(&self) -> Vec<(&'static str, &'static str)> {
        let decided = DECISIONS.iter().filter(|(_, name, _)| self.is_decided(name));
        decided.map(|(_, name, what)| (*name, *what)).collect()
    }
}

/// The last eight digits of an id, as every id is shown.
pub(crate) fn short(id: &str) -> &str {
    id.char_indices().rev().nth(7).map_or(id, |(at, _)| &id[at..])
}

/// The decisions that can override a refusal with this flag: the flag, name and effect of each. Files of others can be replaced, or kept.
pub(crate) fn decisions(flag: &str) -> Vec<(&'static str, &'static str, &'static str)> {
    let is_meant =
        |(one, ..): &&(&str, &str, &str)| *one == flag || (flag == "--force-files" && *one == "--keep-theirs");
    DECISIONS.iter().filter(is_meant).copied().collect()
}

#[cfg(test)]
mod tests {
    use ic_undo::{Layers, RollbackTarget};

    use super::{DECISIONS, UndoGoal, WantedUndo, decisions};
    use crate::params::Params;

    fn wanted(query: &str) -> WantedUndo {
        WantedUndo::of("019c7bfa-3c78-7000-8000-00003c6ef362", &Params::of(query.as_bytes())).unwrap()
    }

    #[test]
    fn an_address_says_the_same_when_it_is_read_again() {
        for query in [
            "to=dispatch%3A3f9a12c4",
            "only=3f9a12c4&files=1&pivot=1",
            "to=created&files=1&reason=it%20is%20wrong",
            "to=step%3Aa%26b%232&keep=1&workers=1&commits=1",
        ] {
            let one = wanted(query);
            assert_eq!(wanted(&super::query(&one.pairs())), one, "{query}");
        }
    }

    #[test]
    fn it_asks_what_the_command_line_asks() {
        let one = wanted("to=created&reason=+no+&files=1&keep=1");
        let request = one.request(None);
        assert!(request.base.dry_run && request.layers == Layers::All);
        assert_eq!((request.base.to, request.base.reason), (RollbackTarget::Thread("created"), Some("no")));
        assert!(request.force.files && !request.keep_theirs, "what others changed either goes or stays");
        let sure = one.request(Some("abc"));
        assert!(!sure.base.dry_run && sure.base.expect_plan == Some("abc"));
        assert_eq!(wanted("only=x").goal, UndoGoal::Only("x".to_owned()));
        assert!(
            WantedUndo::of("x", &Params::of(b"to=a&only=b")).is_err() && WantedUndo::of("x", &Params::of(b"")).is_err()
        );
        assert!(WantedUndo::of("x", &Params::of(b"to=a&reason=a%00b")).is_err());
    }

    #[test]
    fn each_decision_is_a_flag_of_the_command() {
        let one = wanted("to=created&files=1&commits=1&workers=1&pivot=1");
        assert_eq!(
            one.command(),
            "ic undo created --run 3c6ef362 --force-files --force-commits --force-workers --past-pivot"
        );
        assert_eq!(
            wanted("only=019c7bfa-0000-7000-8000-0000daa66d13&keep=1").command(),
            "ic undo --only daa66d13 --keep-theirs"
        );
        assert_eq!(decisions("--force-files").len(), 2);
        assert_eq!(decisions("--force-commits").len(), 1);
        for (_, name, _) in DECISIONS {
            assert!(wanted("to=created").address_with(name).ends_with(&format!("&{name}=1")));
        }
        assert!(!wanted("to=created&files=1").address_with("keep").contains("files"));
        let one = wanted("to=created&files=1&reason=it+is+wrong");
        assert!(one.address_with("commits").contains("reason=it"), "{}", one.address_with("commits"));
        let without = wanted(one.address_without("files").split_once('?').unwrap().1);
        assert_eq!((without.force.files, without.reason.as_deref()), (false, Some("it is wrong")));
        assert_eq!(one.command(), "ic undo created --run 3c6ef362 --force-files --reason 'it is wrong'");
    }
}
