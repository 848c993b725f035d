//! What can be asked of a run, and how much the answer weighs.

ic_base::words! {
    /// A question that a gate asks of the run.
    pub enum GateCheck {
        /// The phase has an artifact.
        ArtifactExists = "artifact_exists",
        /// No agent is active, and no dispatch is unfinished.
        AgentsComplete = "agents_complete",
        /// No dispatch is unfinished.
        DispatchesComplete = "dispatches_complete",
        /// The newest verdict is pass.
        VerdictExists = "verdict_exists",
        /// A dispatch has a verdict, and none is fail.
        VerdictClean = "verdict_clean",
    }
}

ic_base::words! {
    /// Whose artifacts and verdicts count.
    pub enum AuthorRule {
        /// Those of all agents and people.
        Any = "any",
        /// Those of others than the agents that did the work.
        Other = "other",
    }
}

ic_base::words! {
    /// How much a failed check weighs. Ordered: a weaker tier is smaller.
    #[derive(PartialOrd, Ord)]
    pub enum Tier {
        /// It is not asked.
        None = "none",
        /// It warns, and the run advances.
        Soft = "soft",
        /// It blocks the advance.
        Hard = "hard",
    }
}

impl Tier {
    /// The strongest tier that a priority allows: 0 and 1 hard, 2 and 3 soft, 4 and above none.
    pub fn of_priority(priority: u32) -> Self {
        match priority {
            0 | 1 => Self::Hard,
            2 | 3 => Self::Soft,
            _ => Self::None,
        }
    }
}
