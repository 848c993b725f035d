//! The chain of phases of a run: their order, fixed when the run is created.

use ic_base::{Code, Diagnosis, Label, Result};

/// The chain of a run that names none.
const DEFAULT: &[&str] = &[
    "brainstorm", "brainstorm-reviewed", "strategized", "planned", "executing", "review", "polish", "reflect", "done",
];

/// More phases than this are a mistake, not a plan.
const MAX_PHASES: usize = 1_000;

/// At least two distinct phase names, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain(Vec<Label>);

impl Default for Chain {
    /// brainstorm, brainstorm-reviewed, strategized, planned, executing, review, polish, reflect, done.
    fn default() -> Self {
        Self(DEFAULT.iter().map(|name| Label::from_ledger((*name).to_owned())).collect())
    }
}

impl Chain {
    /// The chain of a run that is made for a session: work, done.
    pub fn of_session() -> Self {
        Self(["work", "done"].map(|name| Label::from_ledger(name.to_owned())).into())
    }

    /// A chain from `a,b,c` or from a JSON array of strings (for names with commas).
    ///
    /// Errors: `invalid_value` for fewer than two phases, one that stands twice, or a bad name.
    pub fn parse(text: &str) -> Result<Self> {
        // A chain whose first name begins with `[` has to be given as JSON too: the first character decides.
        let names: Vec<String> = if text.trim_start().starts_with('[') {
            serde_json::from_str(text).map_err(|e| invalid(format!("--phases is not a JSON array of strings: {e}.")))?
        } else {
            text.split(',').map(|name| name.trim().to_owned()).collect()
        };
        Self::new(names)
    }

    fn new(names: Vec<String>) -> Result<Self> {
        if names.len() < 2 || names.len() > MAX_PHASES {
            return Err(invalid(format!("A chain has 2 to {MAX_PHASES} phases; this one has {}.", names.len())));
        }
        let mut chain: Vec<Label> = Vec::with_capacity(names.len());
        for name in names {
            let label = Label::parse("A phase name", &name)?;
            // A phase is known by its name alone, so a second one could never be told from the first.
            if chain.contains(&label) {
                return Err(invalid(format!("The phase {name:?} appears twice in the chain.")));
            }
            chain.push(label);
        }
        Ok(Self(chain))
    }

    /// The chain as it stands in the ledger; `None` if it is not one.
    pub(crate) fn from_ledger(json: &str) -> Option<Self> {
        let names: Vec<String> = serde_json::from_str(json).ok()?;
        // A chain has at least two phases, so that the beginning and the end differ. Names were checked when the run
        // was created: a chain that was accepted once stays readable, even if a later version allows less.
        (names.len() >= 2).then(|| Self(names.into_iter().map(Label::from_ledger).collect()))
    }

    /// The chain as a JSON array.
    pub fn to_json(&self) -> String {
        serde_json::Value::from(self.names()).to_string()
    }

    /// The names, in order.
    pub fn names(&self) -> Vec<&str> {
        self.0.iter().map(Label::as_str).collect()
    }

    /// The first phase: where a run begins.
    pub fn first(&self) -> &str {
        // The chain is never empty: a default, a parsed chain and one of the ledger all have at least two phases.
        self.0.first().map_or("", Label::as_str)
    }

    /// The last phase: a run that reaches it is completed.
    pub fn last(&self) -> &str {
        self.0.last().map_or("", Label::as_str)
    }

    /// Whether `phase` is in the chain.
    pub fn contains(&self, phase: &str) -> bool {
        self.index_of(phase).is_some()
    }

    /// The place of `phase`, from 0.
    pub fn index_of(&self, phase: &str) -> Option<usize> {
        self.0.iter().position(|p| p.as_str() == phase)
    }

    /// The place of `phase`. Errors: `unknown_phase`, with the chain in `details.phases`.
    pub fn require(&self, phase: &str) -> Result<usize> {
        self.index_of(phase).ok_or_else(|| {
            Diagnosis::new(
                Code::UnknownPhase,
                format!("{phase:?} is not a phase of this run; its chain is {}.", self.names().join(", ")),
            )
            .detail("phase", phase)
            .detail("phases", self.names())
        })
    }

    /// The phase right after `phase` in the chain, skipped or not; `None` at the end.
    pub fn follower(&self, phase: &str) -> Option<&str> {
        self.0.get(self.index_of(phase)? + 1).map(Label::as_str)
    }

    /// Where an advance from `phase` leads: the next phase that is not skipped; `None` at the end.
    pub fn next(&self, phase: &str, skipped: &[String]) -> Option<&str> {
        let from = self.index_of(phase)?;
        // The index is in bounds for the last phase, too: the slice is empty there.
        self.0[from + 1..].iter().map(Label::as_str).find(|p| !skipped.iter().any(|s| s == p))
    }

    /// The phases after `target` up to and including `current`, in order: what a rollback to `target` leaves
    /// (seed 001: `PhasesAfter`). Empty when `current` is not beyond `target`.
    pub fn phases_after(&self, target: &str, current: &str) -> Vec<String> {
        match (self.index_of(target), self.index_of(current)) {
            (Some(t), Some(c)) if t < c => self.0[t + 1..=c].iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether a move forward crossed the cut of `target`.
    ///
    /// Without the target: from at-or-before it to beyond it. With it: from before it to it or beyond.
    pub fn crosses(&self, from: &str, to: &str, target: &str, include_target: bool) -> bool {
        // In the chain a b c d with the target b: a→c crosses the cut without the target, a→b does not. With the
        // target, a→b crosses it, b→c does not. A run that skips b goes from a to c, so the pointer need never have
        // been at the target.
        match (self.index_of(from), self.index_of(to), self.index_of(target)) {
            (Some(from), Some(to), Some(target)) if include_target => from < target && target <= to,
            (Some(from), Some(to), Some(target)) => from <= target && target < to,
            _ => false,
        }
    }
}

fn invalid(message: String) -> Diagnosis {
    Diagnosis::new(Code::InvalidValue, message)
        .hint("as in: --phases draft,build,done  or  --phases '[\"draft\",\"build, then test\",\"done\"]'")
        .detail("value", "--phases")
}

#[cfg(test)]
mod tests {
    use ic_base::Code;

    use super::Chain;

    #[test]
    fn chains_are_parsed_from_lists_and_json() {
        assert_eq!(Chain::parse("a, b,c").unwrap().names(), ["a", "b", "c"]);
        assert_eq!(Chain::parse(r#"["x, y","計劃"]"#).unwrap().names(), ["x, y", "計劃"]);
        for bad in ["", "a", "a,a", "a,,b", "[1,2]", "[\"a\"]", "[\"a\",\"b\\u0000\"]", "a,b\u{1b}"] {
            assert_eq!(Chain::parse(bad).unwrap_err().code(), Code::InvalidValue, "{bad}");
        }
        for chain in [Chain::default(), Chain::parse("x,y").unwrap()] {
            assert_eq!(Chain::from_ledger(&chain.to_json()), Some(chain));
        }
        assert_eq!(Chain::from_ledger(r#"["a"]"#), None);
        let chain = Chain::parse("x,y,z").unwrap();
        assert_eq!((chain.first(), chain.last()), ("x", "z"));
    }

    #[test]
    fn the_next_phase_passes_over_skipped_ones() {
        let chain = Chain::parse("a,b,c,d").unwrap();
        assert_eq!(chain.next("a", &[]), Some("b"));
        assert_eq!(chain.next("a", &["b".into(), "c".into()]), Some("d"));
        assert_eq!(chain.next("d", &[]), None);
        assert_eq!(chain.follower("a"), Some("b"));
    }

    #[test]
    fn phases_after_are_those_a_rollback_leaves() {
        let chain = Chain::parse("a,b,c,d").unwrap();
        assert_eq!(chain.phases_after("a", "c"), ["b", "c"]);
        assert!(chain.phases_after("c", "c").is_empty());
        assert!(chain.phases_after("d", "a").is_empty());
    }

    #[test]
    fn a_skip_that_was_walked_past_crosses_too() {
        let chain = Chain::parse("a,b,c,d").unwrap();
        assert!(chain.crosses("b", "c", "b", false));
        assert!(chain.crosses("a", "c", "b", false));
        assert!(!chain.crosses("a", "b", "b", false));
        assert!(!chain.crosses("c", "d", "b", false));
        assert!(chain.crosses("a", "b", "b", true));
        assert!(chain.crosses("a", "c", "b", true));
        assert!(!chain.crosses("b", "c", "b", true));
    }
}
