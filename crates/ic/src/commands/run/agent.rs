//! `ic run agent ...`

mod add;
mod list;
mod update;

verbs! {
    pub(crate) enum Verb {
        Add(add::Add),
        List(list::List),
        Update(update::Update),
    }
}
