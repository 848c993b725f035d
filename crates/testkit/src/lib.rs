//! Fixtures and builders for tests: a kernel in memory, and a project on disk driven through the real binary.

mod campaign;
mod cli;
mod database;
mod dump;
mod kernel;
mod older;
mod state;
mod terminal;
mod worker;

pub use campaign::{Random, Rounds, cases, long, rounds, tell, time};
pub use cli::{Cli, Outcome};
pub use database::Database;
pub use dump::dump;
pub use kernel::{kernel, new_run};
pub use older::older_ledger;
pub use state::{State, git_in, git_state, ledger, tree};
pub use terminal::{Terminal, wait_for};
pub use worker::{end_living_processes, living_process};
