//! `ic gate ...`

mod check;
mod r#override;
mod rules;

verbs! {
    pub(crate) enum Verb {
        Check(check::Check),
        Override(r#override::Override),
        Rules(rules::Rules),
    }
}
