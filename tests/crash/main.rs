//! Crashes: before every statement of every writing verb, and kill -9 at random moments. Whatever the moment, the ledger
//! is wholly as it was or wholly as the verb leaves it, and the same command then finishes.

mod campaign;
mod checkpoints;
mod compensations;
mod everywhere;
mod forks;
mod init;
mod kill;
mod migration;
mod outside_files;
mod statements;
