//! The names that nearly every verb uses.

pub(crate) use clap::Args;
pub(crate) use ic_base::{Code, Diagnosis, Result};

pub(crate) use crate::commands::input;
pub(crate) use crate::exit::ExitStatus;
pub(crate) use crate::flags::{ForceFlags, PlanFlags, one_of};
pub(crate) use crate::session::CliSession;
pub(crate) use crate::session::confirmation::Question;
pub(crate) use crate::views;
