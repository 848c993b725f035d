//! `ic run agent ...`

mod add;
mod list;
mod update;

verbs! {
    pub(crate) enum RunAgentVerb {
        Add(add::RunAgentAddArgs),
        List(list::RunAgentListArgs),
        Update(update::RunAgentUpdateArgs),
    }
}
