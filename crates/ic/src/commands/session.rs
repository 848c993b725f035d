//! `ic session ...`

mod attach;
mod list;
mod show;

verbs! {
    pub(crate) enum SessionVerb {
        List(list::SessionListArgs),
        Show(show::SessionShowArgs),
        Attach(attach::Attach),
    }
}
