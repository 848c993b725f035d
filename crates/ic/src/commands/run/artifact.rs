//! `ic run artifact ...`

mod add;
mod cat;
mod list;

verbs! {
    pub(crate) enum RunArtifactVerb {
        Add(add::RunArtifactAddArgs),
        List(list::RunArtifactListArgs),
        Cat(cat::RunArtifactCatArgs),
    }
}
