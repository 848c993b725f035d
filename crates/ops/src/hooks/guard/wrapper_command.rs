//! Commands that run another one: `sudo`, `env`, `xargs`.

use super::shell::Word;

/// What runs the command that follows its own flags.
struct Wrapper {
    name: &'static str,
    /// Its flags of one letter whose value may be the next word.
    letters: &'static str,
    /// Its other flags of which that is so.
    flags: &'static [&'static str],
    /// How many words that are no flags come before the command.
    operands: usize,
}

const fn wrapper(
    name: &'static str,
    letters: &'static str,
    flags: &'static [&'static str],
    operands: usize,
) -> Wrapper {
    Wrapper { name, letters, flags, operands }
}

const WRAPPERS: [Wrapper; 28] = [
    wrapper(
        "sudo",
        "ughpCDRrtTU",
        &["--user", "--group", "--host", "--prompt", "--chdir", "--chroot", "--role", "--type", "--other-user"],
        0,
    ),
    wrapper("doas", "uC", &[], 0),
    wrapper("env", "uC", &["--unset", "--chdir"], 0),
    wrapper(
        "xargs",
        "InPLdaEs",
        &["--max-args", "--max-procs", "--max-chars", "--delimiter", "--arg-file", "--process-slot-var"],
        0,
    ),
    wrapper("timeout", "sk", &["--signal", "--kill-after"], 1),
    wrapper("nice", "n", &["--adjustment"], 0),
    wrapper("ionice", "cn", &["--class", "--classdata"], 0),
    wrapper("stdbuf", "ioe", &["--input", "--output", "--error"], 0),
    wrapper("time", "of", &["--format", "--output"], 0),
    wrapper("flock", "wE", &["--wait", "--timeout", "--conflict-exit-code"], 1),
    wrapper("exec", "a", &[], 0),
    wrapper("watch", "n", &["--interval"], 0),
    wrapper("command", "", &[], 0),
    wrapper("builtin", "", &[], 0),
    wrapper("nohup", "", &[], 0),
    wrapper("setsid", "", &[], 0),
    wrapper("busybox", "", &[], 0),
    wrapper("coproc", "", &[], 0),
    // Its name, and then what it is.
    wrapper("function", "", &[], 1),
    // Words of the shell's grammar stand before a command as a wrapper does.
    wrapper("then", "", &[], 0),
    wrapper("do", "", &[], 0),
    wrapper("else", "", &[], 0),
    wrapper("elif", "", &[], 0),
    wrapper("if", "", &[], 0),
    wrapper("while", "", &[], 0),
    wrapper("until", "", &[], 0),
    wrapper("!", "", &[], 0),
    wrapper("{", "", &[], 0),
];

/// A command without what runs it.
pub(super) struct Inner<'w> {
    pub(super) words: &'w [Word],
    /// Whether a list names more of what it is about (`xargs`).
    pub(super) by_list: bool,
    /// Whether it runs in another directory than the shell.
    pub(super) is_elsewhere: bool,
}

/// The command that is run in the end.
pub(super) fn unwrapped(mut words: &[Word]) -> Inner<'_> {
    let (mut by_list, mut is_elsewhere) = (false, false);
    while let Some((first, rest)) = words.split_first() {
        let name = name(first);
        if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == name) {
            let own = wrapper.own_words(rest);
            by_list |= name == "xargs";
            // The directory of `env -C DIR` is not followed: after it, a relative name may be anything.
            is_elsewhere |= rest[..own].iter().any(|flag| leads_elsewhere(name, &flag.text));
            words = &rest[own..];
        // A variable that is set for the command alone: `A=1 rm`.
        } else if first.text.contains('=') && !first.text.starts_with('-') {
            words = rest;
        } else {
            break;
        }
    }
    Inner { words, by_list, is_elsewhere }
}

/// The name of a program without its place.
pub(super) fn name(program: &Word) -> &str {
    program.text.rsplit('/').next().unwrap_or_default()
}

fn leads_elsewhere(wrapper: &str, flag: &str) -> bool {
    let flags: &[&str] = match wrapper {
        "env" => &["-C", "--chdir"],
        "sudo" => &["-D", "--chdir", "-i", "--login", "-R", "--chroot"],
        _ => &[],
    };
    flags.iter().any(|one| flag.starts_with(one))
}

impl Wrapper {
    /// How many of these words are its own.
    fn own_words(&self, words: &[Word]) -> usize {
        let mut operands = self.operands;
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let text = word.text.as_str();
            at += match text.strip_prefix('-') {
                // `--` ends the flags. The operands follow it: `timeout -- 5 rm x`.
                Some("-") => return at + 1 + operands.min(words.len() - at - 1),
                Some(letters) => 1 + usize::from(self.takes_next(text, letters)),
                None if operands > 0 => {
                    operands -= 1;
                    1
                }
                None => break,
            };
        }
        at.min(words.len())
    }

    /// Whether the value of a flag is the next word: `-u root`, and not `-uroot` or `--user=root`.
    fn takes_next(&self, flag: &str, letters: &str) -> bool {
        if flag.starts_with("--") {
            return self.flags.contains(&flag);
        }
        // After a letter that takes a value, the rest of the word is that value.
        let first = letters.find(|letter| self.letters.contains(letter));
        first.is_some_and(|first| first + 1 == letters.len())
    }
}
