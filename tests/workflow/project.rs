//! A project whose workflows have effects outside of it.

use ic_testkit::{Cli, TestWorld};

use crate::flow::put_act;

/// A project without checkpoints along the way.
pub(crate) fn plain() -> TestWorld {
    ready(Cli::new(env!("CARGO_BIN_EXE_ic")))
}

/// A project with checkpoints along the way.
pub(crate) fn with_checkpoints() -> TestWorld {
    ready(Cli::new(env!("CARGO_BIN_EXE_ic")).with_checkpoints())
}

fn ready(cli: Cli) -> TestWorld {
    let world = TestWorld::around(cli);
    put_act(&world);
    world
}
