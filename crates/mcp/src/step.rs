//! The two steps of undo and redo.

/// A step of a tool that first shows its plan, and then does exactly that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConsentStep {
    /// Show the plan, and ask no person (`dry_run`).
    Plan,
    /// Show the plan; if the client can ask its person, carry it out when they approve it.
    PlanAndAsk,
    /// Carry out the plan with this hash (`expect_plan`).
    Do(String),
}

impl ConsentStep {
    /// The step that the arguments of a call ask for. A dry run wins over a hash: it changes nothing.
    pub(crate) fn of(expect_plan: Option<&String>, is_dry_run: bool) -> Self {
        match (expect_plan, is_dry_run) {
            (_, true) => Self::Plan,
            (Some(hash), false) => Self::Do(hash.clone()),
            (None, false) => Self::PlanAndAsk,
        }
    }
}
