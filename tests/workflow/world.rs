//! A project whose workflows have effects outside of it.

use ic_testkit::{Cli, World};

use crate::flow::put_act;

/// A project without checkpoints along the way.
pub(crate) fn plain() -> World {
    ready(Cli::new(env!("CARGO_BIN_EXE_ic")))
}

/// A project with checkpoints along the way.
pub(crate) fn with_checkpoints() -> World {
    ready(Cli::new(env!("CARGO_BIN_EXE_ic")).with_checkpoints())
}

fn ready(cli: Cli) -> World {
    let world = World::around(cli);
    put_act(&world);
    world
}
