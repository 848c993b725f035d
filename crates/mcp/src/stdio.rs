//! Standard input and output, kept for the protocol alone.
//!
//! A command may start a program that inherits them, such as git or a compensation. What that read would be lost to the server, and what
//! it wrote would break the protocol. So they are moved to other descriptors, and child processes read nothing and write on standard error.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use ic_base::{Diagnose, Result};

/// Returns standard input and output, and puts `/dev/null` and standard error in their place. Errors: `io_error`.
pub(crate) fn take() -> Result<(File, File)> {
    moved_away().while_doing(|| "taking standard input and output for the protocol".to_owned())
}

fn moved_away() -> io::Result<(File, File)> {
    // Cloned before they are replaced: the clones are closed in child processes, the numbers 0 and 1 are inherited.
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok((File::from(input), File::from(output)))
}
