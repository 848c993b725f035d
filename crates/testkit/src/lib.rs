//! Fixtures and builders for tests: a kernel in memory, and a world: a project on disk driven through the real binary.

mod campaign;
mod cli;
mod cluster;
mod database;
mod dump;
mod files;
mod kernel;
mod killed_git;
mod older_ledger;
pub mod server;
pub mod signals;
mod single_file;
mod state;
mod terminal;
pub mod verb_calls;
mod worker;
mod world;

pub use campaign::{Random, Rounds, cases, long, rounds, tell, time};
pub use cli::{Cli, CliOutcome};
pub use cluster::{Cluster, ONE_CLONE};
pub use database::TestDatabase;
pub use dump::dump;
pub use files::{TestDirectory, copy_over, read_in, write_in};
pub use kernel::{kernel, new_run};
pub use killed_git::{deadly_git, dies_with_its_git};
pub use older_ledger::older_ledger;
pub use single_file::{one_file, put_one_file};
pub use state::{ProjectState, git_in, git_state, ledger, tree};
pub use terminal::{Terminal, wait_for};
pub use worker::{WorkerEnding, end_living_processes, living_process};
pub use world::{TestWorld, connect, text_of};
