//! Which process group reads from the terminal.

use std::io;

/// Makes a process group the one that the terminal of standard input belongs to, also from the background. Errors: those of the system, as
/// where standard input is no terminal of this session.
pub fn give_terminal_to(group: i32) -> io::Result<()> {
    #[allow(unsafe_code, reason = "sets how one signal is handled, and hands the terminal over; no memory is involved")]
    let (given, error) = unsafe {
        // A process in the background that asks for this is stopped, unless it ignores the signal. In these
        // few instructions no thread starts a process that would inherit this.
        let before = libc::signal(libc::SIGTTOU, libc::SIG_IGN);
        let given = libc::tcsetpgrp(libc::STDIN_FILENO, group);
        let error = io::Error::last_os_error();
        libc::signal(libc::SIGTTOU, before);
        (given, error)
    };
    if given == 0 { Ok(()) } else { Err(error) }
}

/// Whether the terminal of standard input belongs to the process group of this process.
#[must_use]
pub fn has_terminal() -> bool {
    #[allow(unsafe_code, reason = "asks for two numbers; no memory is involved")]
    let (foreground, own) = unsafe { (libc::tcgetpgrp(libc::STDIN_FILENO), libc::getpgrp()) };
    foreground == own
}

#[cfg(test)]
mod tests {
    use super::{give_terminal_to, has_terminal};

    #[test]
    fn without_a_terminal_nothing_is_given() {
        // Tests run with a standard input that is no terminal of theirs, or in its foreground.
        assert_eq!(give_terminal_to(own_group()).is_ok(), has_terminal());
    }

    fn own_group() -> i32 {
        #[allow(unsafe_code, reason = "asks for a number")]
        unsafe {
            libc::getpgrp()
        }
    }
}
