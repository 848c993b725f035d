//! `ic session ...`

mod attach;
mod continue_session;
mod list;
mod show;

verbs! {
    pub(crate) enum SessionVerb {
        List(list::SessionListArgs),
        Show(show::SessionShowArgs),
        Attach(attach::Attach),
        Continue(continue_session::ContinueArgs),
    }
}
