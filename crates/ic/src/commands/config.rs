//! `ic config ...`

mod show;

verbs! {
    pub(crate) enum Verb {
        Show(show::Show),
    }
}
