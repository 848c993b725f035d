//! `ic run artifact ...`

mod add;
mod cat;
mod list;

verbs! {
    pub(crate) enum Verb {
        Add(add::Add),
        List(list::List),
        Cat(cat::Cat),
    }
}
