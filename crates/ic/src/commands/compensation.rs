//! `ic compensation ...`

mod add;
mod coverage;
mod list;
mod run;

verbs! {
    pub(crate) enum Verb {
        Add(add::Add),
        List(list::List),
        Run(run::Undo),
        Coverage(coverage::Coverage),
    }
}
