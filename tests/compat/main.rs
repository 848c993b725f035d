//! Stores that older versions made: they open, migrate forward and answer every verb; what an older version left half done is
//! resumed and aborted, and what it finished is undone.
//!
//! Every directory of `tests/compat/stores` holds the stores of one released version, and every test here runs over all of them.
//! A release adds its own: `IC_KEEP_STORES=0.2.0 cargo test -p ic --test compat keep`. Until the first one does, `today` runs
//! these tests over stores that this program has just made.

mod checkpoints;
mod effects;
mod half;
mod life;
mod maker;
mod migration;
mod newer;
mod project;
mod restores;
mod rollbacks;
mod stores;
mod today;
mod workflows;
