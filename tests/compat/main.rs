//! Stores that older versions made: they open, migrate forward and answer every verb; what an older version left half done is
//! resumed and aborted, and what it finished is undone.
//!
//! Every directory of `tests/compat/fixtures` holds the stores of one version, made by `scripts/make-fixture.sh`. Every test here
//! runs over all of them.

mod checkpoints;
mod effects;
mod fixture;
mod half;
mod life;
mod migration;
mod names;
mod newer;
mod restores;
mod rollbacks;
mod workflows;
mod world;
