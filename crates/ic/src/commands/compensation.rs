//! `ic compensation ...`

mod add;
mod coverage;
mod list;
mod run;

verbs! {
    pub(crate) enum CompensationVerb {
        Add(add::CompensationAddArgs),
        List(list::CompensationListArgs),
        Run(run::CompensationRunArgs),
        Coverage(coverage::CompensationCoverageArgs),
    }
}
