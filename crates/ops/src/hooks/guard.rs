//! Commands that destroy what `ic` cannot bring back: literal pairs of a program and its flags, and what they name that no checkpoint holds.
//!
//! A help against accidents, and no boundary: a script, `make` or `python -c` passes it.

mod shell;

use std::path::{Component, Path, PathBuf};

use ic_store::path_bytes;

use shell::Word;

/// What a line for a shell would destroy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Danger {
    /// What does it: `rm -r`; empty: nothing that is known.
    pub what: Vec<&'static str>,
    /// The files and directories that it names, as written.
    paths: Vec<String>,
    /// Whether it names some that only the shell knows, or cannot be read at all.
    is_unknown: bool,
    /// Whether a remote repository changes.
    is_remote: bool,
    /// Whether ignored files go, wherever they are.
    takes_ignored: bool,
    /// Whether what git alone knows goes: what is staged, a stash.
    pub takes_git: bool,
}

/// What is left out of a checkpoint, from the root, and why.
pub type LeftOut = (Vec<u8>, String);

/// Directories that a build makes again.
const MADE_AGAIN: [&str; 19] = [
    "node_modules",
    "target",
    "dist",
    "build",
    "out",
    ".next",
    ".nuxt",
    ".cache",
    ".turbo",
    ".parcel-cache",
    "coverage",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".tox",
    ".venv",
    "venv",
    ".gradle",
];

/// What runs another command, with its own flags before it.
const WRAPPERS: [&str; 18] = [
    "sudo", "doas", "env", "command", "builtin", "exec", "nohup", "nice", "time", "timeout", "stdbuf",
    "then", "do", "else", "if", "while", "!", "{",
];

/// What a line for a shell would destroy, as far as its words say so.
pub fn read(line: &str) -> Danger {
    let mut danger = Danger::default();
    let Some(commands) = shell::commands(line) else {
        danger.what.push("a command that cannot be parsed");
        danger.is_unknown = true;
        return danger;
    };
    for words in &commands {
        danger.add(words, 0);
    }
    danger
}

impl Danger {
    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        self.what.is_empty()
    }

    fn add(&mut self, words: &[Word], depth: usize) {
        const DEEPEST: usize = 3;
        let (words, by_list) = unwrapped(words);
        let Some((program, rest)) = words.split_first() else { return };
        let name = program.text.rsplit('/').next().unwrap_or_default();
        let has = |flags: &[&str]| rest.iter().any(|word| flags.contains(&word.text.as_str()));
        let has_letter = |letters: &[char]| {
            rest.iter().any(|word| {
                let flags = word.text.strip_prefix('-').filter(|flags| !flags.starts_with('-'));
                flags.is_some_and(|flags| flags.contains(letters))
            })
        };
        match name {
            "rm" if has_letter(&['r', 'R']) || has(&["--recursive"]) => {
                self.of_paths("rm -r", plain(rest), by_list);
            }
            "shred" => self.of_paths("shred", plain(rest), by_list),
            "truncate" => self.of_paths("truncate", plain(rest), by_list),
            "dd" => {
                let of = rest.iter().filter_map(|word| {
                    let text = word.text.strip_prefix("of=")?;
                    Some(Word { text: text.to_owned(), is_plain: word.is_plain })
                });
                let of: Vec<Word> = of.collect();
                if !of.is_empty() {
                    self.of_paths("dd of=", of, false);
                }
            }
            "find" if has(&["-delete"]) || has(&["-exec", "-execdir"]) && has(&["rm", "shred"]) => {
                let from: Vec<Word> =
                    rest.iter().take_while(|word| !word.text.starts_with(['-', '('])).cloned().collect();
                self.of_paths("find -delete", from, false);
            }
            "git" => self.of_git(rest),
            "sh" | "bash" | "zsh" | "dash" if depth < DEEPEST => {
                let line =
                    rest.iter().position(|word| word.text.ends_with('c') && word.text.starts_with('-'));
                let Some(line) = line.and_then(|at| rest.get(at + 1)) else { return };
                for words in shell::commands(&line.text).unwrap_or_default() {
                    self.add(&words, depth + 1);
                }
            }
            _ => {}
        }
    }

    /// Removes what these words name; `by_list`: and what another program names.
    fn of_paths(&mut self, what: &'static str, words: Vec<Word>, by_list: bool) {
        self.what.push(what);
        self.is_unknown |= by_list || words.iter().any(|word| !word.is_plain);
        self.paths.extend(words.into_iter().filter(|word| word.is_plain).map(|word| word.text));
    }

    fn of_git(&mut self, words: &[Word]) {
        let mut words = words.iter().map(|word| word.text.as_str()).peekable();
        while let Some(flag) = words.next_if(|word| word.starts_with('-')) {
            if matches!(flag, "-C" | "-c") {
                words.next();
            }
        }
        let verb = words.next().unwrap_or_default();
        let rest: Vec<&str> = words.collect();
        let has = |flag: &str| rest.contains(&flag);
        let has_letter = |letters: &[char]| {
            rest.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(letters))
        };
        let is_forced =
            |word: &&str| word.starts_with("--force") || word.starts_with('+') || *word == "--mirror";
        match verb {
            "push" if rest.iter().any(is_forced) || has_letter(&['f']) => {
                self.what.push("git push --force");
                self.is_remote = true;
            }
            "clean" if !has("-n") && !has("--dry-run") => {
                self.what.push("git clean");
                self.takes_ignored = has_letter(&['x', 'X']);
            }
            "reset" if has("--hard") => self.of_git_alone("git reset --hard"),
            "checkout" if has("--") => self.of_git_alone("git checkout --"),
            "stash" if has("drop") || has("clear") => self.of_git_alone("git stash drop"),
            _ => {}
        }
    }

    fn of_git_alone(&mut self, what: &'static str) {
        self.what.push(what);
        self.takes_git = true;
    }

    /// What would be lost for good, for people, in a tree with this root of which this is left out; empty: nothing.
    pub fn losses(
        &self,
        directory: &Path,
        root: &Path,
        home: Option<&Path>,
        left_out: &[LeftOut],
    ) -> Vec<String> {
        let mut losses = Vec::new();
        if self.is_remote {
            losses.push("what the remote has".to_owned());
        }
        if self.is_unknown {
            losses.push("files that cannot be told from the command".to_owned());
        }
        let counts = |path: &[u8]| !is_made_again(path);
        let told = |(path, why): &LeftOut| format!("{} ({why})", String::from_utf8_lossy(path));
        if self.takes_ignored {
            losses.extend(left_out.iter().filter(|(path, why)| why == "ignored" && counts(path)).map(told));
        }
        for text in &self.paths {
            let Some(path) = resolved(text, directory, home) else { continue };
            let Ok(inside) = path.strip_prefix(root) else {
                if !is_temporary(&path) && path.symlink_metadata().is_ok() {
                    losses.push(format!("{} (outside of the project)", path.display()));
                }
                continue;
            };
            let inside = path_bytes(inside);
            let meets = |(left, _): &&LeftOut| is_below(left, inside) || is_below(inside, left);
            losses.extend(
                left_out.iter().filter(meets).filter(|(left, _)| counts(left) && counts(inside)).map(told),
            );
        }
        losses.dedup();
        losses
    }
}

/// The command that a wrapper runs, and whether what it removes is named by a list (`xargs`).
fn unwrapped(mut words: &[Word]) -> (&[Word], bool) {
    let mut by_list = false;
    while let Some((first, rest)) = words.split_first() {
        let name = first.text.rsplit('/').next().unwrap_or_default();
        let is_assignment = first.text.contains('=') && !first.text.starts_with('-');
        by_list |= name == "xargs";
        if !is_assignment && !WRAPPERS.contains(&name) && name != "xargs" {
            break;
        }
        let is_own = |word: &&Word| {
            let text = word.text.as_str();
            text.starts_with('-') || text.trim_end_matches(['s', 'm', 'h']).parse::<f64>().is_ok()
        };
        words = &rest[rest.iter().take_while(is_own).count()..];
    }
    (words, by_list)
}

/// The words that are no flags.
fn plain(words: &[Word]) -> Vec<Word> {
    words.iter().filter(|word| !word.text.starts_with('-')).cloned().collect()
}

/// Where a word leads; of a pattern, the directory in which it begins. Nothing is looked up.
fn resolved(text: &str, directory: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let text = match (text.strip_prefix('~'), home) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
            format!("{}{rest}", home.display())
        }
        _ => text.to_owned(),
    };
    let fixed = match text.find(['*', '?', '[']) {
        Some(at) => text[..at].rsplit_once('/').map_or("", |(directory, _)| directory),
        None => &text,
    };
    let mut plain = PathBuf::new();
    for part in directory.join(fixed).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain.is_absolute().then_some(plain)
}

fn is_temporary(path: &Path) -> bool {
    let places =
        [PathBuf::from("/tmp"), PathBuf::from("/var/tmp"), PathBuf::from("/dev"), std::env::temp_dir()];
    places.iter().any(|place| path.starts_with(place) && path != place)
}

fn is_made_again(path: &[u8]) -> bool {
    path.split(|b| *b == b'/').any(|part| MADE_AGAIN.iter().any(|name| name.as_bytes() == part))
}

/// Whether a path is `base`, or lies below it; all lie below the root.
fn is_below(path: &[u8], base: &[u8]) -> bool {
    base.is_empty() || path.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(line: &str) -> Vec<String> {
        let left_out = [
            (b".env".to_vec(), "secret".to_owned()),
            (b"data".to_vec(), "ignored".to_owned()),
            (b"web/node_modules".to_vec(), "ignored".to_owned()),
            (b"web/big.bin".to_vec(), "oversize".to_owned()),
        ];
        let (root, home) = (Path::new("/shop"), Path::new("/"));
        read(line).losses(&root.join("web"), root, Some(home), &left_out)
    }

    #[test]
    fn what_a_command_destroys_is_told_where_no_checkpoint_holds_it() {
        for (line, losses) in [
            ("rm -rf ../data", vec!["data (ignored)"]),
            ("rm -rf ../data/rows && ls", vec!["data (ignored)"]),
            ("sudo -n rm --recursive ..", vec![".env (secret)", "data (ignored)", "web/big.bin (oversize)"]),
            ("cd x; rm -fr *", vec!["web/big.bin (oversize)"]),
            ("rm -r ~/etc", vec!["/etc (outside of the project)"]),
            ("rm -r \"$HOME/x\"", vec!["files that cannot be told from the command"]),
            (
                "find .. -name '*.env' -delete",
                vec![".env (secret)", "data (ignored)", "web/big.bin (oversize)"],
            ),
            ("git ls-files | xargs rm -r", vec!["files that cannot be told from the command"]),
            ("git -C .. push origin +main", vec!["what the remote has"]),
            ("git push -f", vec!["what the remote has"]),
            ("git clean -fdx", vec!["data (ignored)"]),
            ("dd if=/dev/zero of=big.bin", vec!["web/big.bin (oversize)"]),
            ("truncate -s 0 ../.env", vec![".env (secret)"]),
            ("bash -c 'rm -rf ../data'", vec!["data (ignored)"]),
            ("X=1 timeout 5s shred ../.env", vec![".env (secret)"]),
            ("echo 'rm -rf", vec!["files that cannot be told from the command"]),
        ] {
            assert_eq!(lost(line), losses, "{line}");
        }
    }

    #[test]
    fn what_comes_back_is_let_through() {
        for line in [
            "ls -r; rm a.txt",
            "rm -rf node_modules dist ../target/debug",
            "rm -rf src",
            "rm -rf /tmp/x",
            "echo rm -rf ../data",
            "cat <<EOF >run.sh\nrm -rf ../data\nEOF\nls",
            "# rm -rf ../data",
            "git commit -m 'rm -rf ../data'",
            "git reset --hard HEAD~1 && git stash drop && git checkout -- .",
            "git clean -fd",
            "git push --set-upstream origin main",
            "find . -name x",
        ] {
            assert_eq!(lost(line), Vec::<String>::new(), "{line}");
        }
        assert!(read("git stash drop").takes_git && !read("rm -rf src").takes_git);
    }
}
