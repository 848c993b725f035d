//! A person at a terminal: what is shown, and what is typed. `script` of util-linux makes the terminal.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Waits until something is so.
///
/// # Panics
/// If it is not so within half a minute.
pub fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A call on a terminal of its own.
pub struct Terminal {
    child: Child,
    keys: ChildStdin,
    screen: Arc<Mutex<Vec<u8>>>,
}

/// `script`, if it is there.
fn script() -> Option<&'static Path> {
    let is_linux = |path: &&Path| {
        let version = Command::new(path).arg("--version").output();
        version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("util-linux"))
    };
    let found = ["/usr/bin/script", "/bin/script"].into_iter().map(Path::new).find(is_linux);
    if found.is_none() {
        println!("skipped: there is no `script` of util-linux");
    }
    found
}

impl Terminal {
    /// Starts a call that has not been started, in `directory`; `None` where no terminal can be made.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn open(call: &Command, directory: &Path) -> Option<Self> {
        let script = script()?;
        let words = [call.get_program()].into_iter().chain(call.get_args());
        let words: Vec<String> = words.map(|word| format!("'{}'", word.to_str().expect("text"))).collect();
        let mut command = Command::new(script);
        command.env_clear().envs(call.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("NO_COLOR", "1").env("TERM", "dumb").env("SHELL", "/bin/sh").current_dir(directory);
        command.args(["-qec", &format!("exec {}", words.join(" ")), "/dev/null"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("start script");
        let keys = child.stdin.take().expect("a pipe");
        let mut output = child.stdout.take().expect("a pipe");
        let screen = Arc::new(Mutex::new(Vec::new()));
        let kept = screen.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = output.read(&mut bytes) {
                kept.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&bytes[..read]);
            }
        });
        Some(Self { child, keys, screen })
    }

    /// What was shown so far.
    pub fn shown(&self) -> String {
        let screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&screen).replace('\r', "")
    }

    /// Waits until this is shown.
    ///
    /// # Panics
    /// If it is not shown.
    pub fn sees(&self, text: &str) {
        wait_for(text, || self.shown().contains(text));
    }

    /// Writes keys to the terminal, as a person types them.
    ///
    /// # Panics
    /// If the program at the terminal has ended.
    pub fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).and_then(|()| self.keys.flush()).expect("type");
    }

    /// Closes the terminal, as who closes a window does.
    ///
    /// # Panics
    /// If it cannot be closed.
    pub fn closes(mut self) {
        self.child.kill().and_then(|()| self.child.wait()).expect("close the terminal");
    }

    /// The exit code, and all that was shown.
    ///
    /// # Panics
    /// If it does not end.
    pub fn ends(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().expect("its end");
        wait_for("the rest is shown", || Arc::strong_count(&self.screen) == 1);
        (status.code(), self.shown())
    }
}
