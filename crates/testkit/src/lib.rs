//! Fixtures and builders for tests: a kernel in memory, and a world: a project on disk driven through the real binary.

mod alone;
mod campaign;
mod cli;
mod cluster;
mod database;
mod deadly;
mod dump;
mod files;
mod kernel;
mod older;
pub mod server;
pub mod signals;
mod state;
mod terminal;
mod worker;
mod world;

pub use alone::{one_file, put_one_file};
pub use campaign::{Random, Rounds, cases, long, rounds, tell, time};
pub use cli::{Cli, Outcome};
pub use cluster::Cluster;
pub use database::Database;
pub use deadly::{deadly_git, dies_with_its_git};
pub use dump::dump;
pub use files::{Place, copy_over, read_in, write_in};
pub use kernel::{kernel, new_run};
pub use older::older_ledger;
pub use state::{State, git_in, git_state, ledger, tree};
pub use terminal::{Terminal, wait_for};
pub use worker::{Ending, end_living_processes, living_process};
pub use world::{World, connect, text_of};
