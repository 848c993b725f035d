//! Standard input and output, kept for the protocol alone.
//!
//! Whatever is called here may start a program that inherits them: git, a compensation. What it read would be lost to us, and what it wrote
//! would be no message. So they are moved away, and whoever inherits them reads nothing and writes on standard error.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use ic_base::{Diagnose, Result};

/// Standard input and output; from now on nobody else has them.
pub(crate) fn take() -> Result<(File, File)> {
    moved_away().while_doing(|| "taking standard input and output for the protocol".to_owned())
}

fn moved_away() -> io::Result<(File, File)> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok((File::from(input), File::from(output)))
}
