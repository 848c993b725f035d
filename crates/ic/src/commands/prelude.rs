//! The names that nearly every verb uses.

pub(crate) use clap::Args;
pub(crate) use ic_base::{Code, Diagnosis, Result};

pub(crate) use crate::commands::input;
pub(crate) use crate::exit::Exit;
pub(crate) use crate::flags::{Door, one_of};
pub(crate) use crate::session::Session;
pub(crate) use crate::session::ask::Question;
pub(crate) use crate::views;
