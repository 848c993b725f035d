//! Whether standard output was closed as the process began (`>&-` in a shell).
//!
//! Rust opens `/dev/null` in its place before `main`, so that no other file gets its number: all output is lost, and every write
//! succeeds. After that, the process cannot tell this from a caller that wants nothing printed. So a function that the loader calls
//! looks at the descriptor before `main`.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether standard output was closed as the process began.
#[must_use]
pub fn had_no_output() -> bool {
    CLOSED.load(Relaxed)
}

extern "C" fn look() {
    #[allow(unsafe_code, reason = "asks for the flags of a descriptor, which may be closed; nothing is changed")]
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    // F_GETFD fails for a closed descriptor alone (EBADF). No thread exists yet, so no stronger order is needed.
    CLOSED.store(flags == -1, Relaxed);
}

// No code here reads it: without `used` it would be left out of the program.
#[used]
#[allow(unsafe_code, reason = "a place that the loader reads: a pointer to a function without arguments")]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
static LOOK: extern "C" fn() = look;
