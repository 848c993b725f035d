//! Reading what may be no regular file: a pipe would wait, a device have no end.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Pointers and git's own files of one line are no longer.
const LONGEST_LINE: u64 = 64 * 1024;

/// Opens a regular file for reading. Errors: `InvalidInput` for what is none: a pipe would wait, a device have no end.
pub fn open_regular(path: &Path) -> io::Result<File> {
    open(path, OFlags::NONBLOCK)
}

/// As [`open_regular`]; a link is not followed, and is an error.
pub fn open_regular_itself(path: &Path) -> io::Result<File> {
    open(path, OFlags::NONBLOCK | OFlags::NOFOLLOW)
}

fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"))
}

/// The content of a small regular file, as git keeps them. Errors: `InvalidInput` for what is none, or longer than 64 KiB.
pub fn read_line(path: &Path) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    // One byte more than is accepted tells a file that is too long from one that fits.
    if open_regular(path)?.take(LONGEST_LINE + 1).read_to_end(&mut line)? as u64 <= LONGEST_LINE {
        return Ok(line);
    }
    Err(io::Error::new(ErrorKind::InvalidInput, "it is too long"))
}
