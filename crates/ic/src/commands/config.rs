//! `ic config ...`

mod show;

verbs! {
    pub(crate) enum ConfigVerb {
        Show(show::ConfigShowArgs),
    }
}
