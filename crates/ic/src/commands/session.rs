//! `ic session ...`

mod attach;
mod list;
mod show;

verbs! {
    pub(crate) enum Verb {
        List(list::List),
        Show(show::Show),
        Attach(attach::Attach),
    }
}
