//! How this process answers to signals.

/// Whether this process ignores a signal, as long as it has no handler for it.
#[must_use]
pub fn is_ignored(signal: i32) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    #[allow(unsafe_code, reason = "rustix has no such question")]
    // SAFETY: without a new action nothing is changed. The old one is written to a place of its type, which was zeroed: all of its fields
    // are numbers and addresses.
    let (failed, action) = unsafe {
        let failed = libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
        (failed, action.assume_init())
    };
    failed == 0 && action.sa_sigaction == libc::SIG_IGN
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::is_ignored;

    #[test]
    fn a_signal_that_the_parent_ignored_is_ignored() {
        if std::env::var_os("IC_TEST_IGNORED").is_some() {
            println!("{}", if is_ignored(libc::SIGHUP) { "ignored" } else { "heard" });
            return;
        }
        for (begin, expected) in [("trap '' HUP", "ignored"), ("trap - HUP", "heard")] {
            let own = std::env::current_exe().unwrap();
            let mut shell = Command::new("sh");
            let name = "signals::tests::a_signal_that_the_parent_ignored_is_ignored";
            shell.arg("-c").arg(format!("{begin}; exec \"$0\" --exact {name} --nocapture")).arg(own);
            #[allow(unsafe_code, reason = "the runner of the tests may ignore it")]
            // SAFETY: between fork and exec, only a function is called that may be called there.
            unsafe {
                shell.pre_exec(|| {
                    libc::signal(libc::SIGHUP, libc::SIG_DFL);
                    Ok(())
                });
            }
            let output = shell.env("IC_TEST_IGNORED", "1").output().unwrap();
            assert!(String::from_utf8_lossy(&output.stdout).contains(expected), "{begin}: {output:?}");
        }
    }
}
