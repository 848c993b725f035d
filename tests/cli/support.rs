//! A project whose calls repeat exactly, and assertions about its output.

mod page;
mod project;
mod schema;
mod story;

pub(crate) use page::{Page, snapshot};
pub(crate) use project::{BINARY, Project, args};
pub(crate) use schema::{assert_shape, docs, verbs};
pub(crate) use story::{Story, chain, story};
