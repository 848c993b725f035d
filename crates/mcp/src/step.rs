//! The two steps of what takes work back.

/// A step of what is first planned, and then done exactly so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Only the plan.
    Plan,
    /// The plan, and a person may be asked to approve it.
    PlanAndAsk,
    /// What the plan with this hash says.
    Do(String),
}

impl Step {
    /// As the arguments of a call say.
    pub(crate) fn of(expect_plan: Option<&String>, is_dry_run: bool) -> Self {
        match (expect_plan, is_dry_run) {
            (_, true) => Self::Plan,
            (Some(hash), false) => Self::Do(hash.clone()),
            (None, false) => Self::PlanAndAsk,
        }
    }
}
