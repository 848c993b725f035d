//! Commands that destroy what `ic` cannot restore: literal pairs of a program and its flags, and what they name that no checkpoint holds.
//!
//! A help against accidents, and no boundary: a script, `make` or `python -c` passes it.

mod destructive_command;
mod git;
mod path_words;
mod pipe;
mod shell;
mod wrapper_command;

use std::path::{Path, PathBuf};

pub use destructive_command::{Danger, StoredPaths};
use destructive_command::{DangerAct, DangerReach, DangerTarget};
use git::Destroys;
use pipe::PipeOutput;
use shell::{ShellStep, Word};

/// What a line for a shell would destroy that runs in this directory, as far as its words say so.
pub fn read(line: &str, directory: &Path, home: Option<&Path>) -> Danger {
    let mut reader = Reader { home, here: Some(directory.to_owned()), by_list: false, acts: Vec::new() };
    reader.line(line, 0);
    Danger { acts: reader.acts }
}

// `su` is among them because `su -c LINE` runs a line as they do.
const SHELLS: [&str; 7] = ["sh", "bash", "zsh", "dash", "ksh", "fish", "su"];

/// Whether these words begin a shell that reads its commands from standard input.
fn is_shell_that_reads(words: &[Word]) -> bool {
    let Some((program, rest)) = wrapper_command::unwrapped(words).words.split_first() else { return false };
    let is_line = |word: &Word| word.text.starts_with('-') && word.text.ends_with('c');
    let reads = rest.iter().any(|word| word.text == "-s") || plain(rest).next().is_none();
    SHELLS.contains(&wrapper_command::name(program)) && reads && !rest.iter().any(is_line)
}

struct Reader<'h> {
    home: Option<&'h Path>,
    /// Where the shell is; `None`: only the shell knows.
    here: Option<PathBuf>,
    /// Whether a list names more of what commands are about.
    by_list: bool,
    acts: Vec<DangerAct>,
}

impl Reader<'_> {
    fn line(&mut self, line: &str, depth: usize) {
        const DEEPEST: usize = 3;
        // A line in a line, as in `sh -c "sh -c …"`, is followed to a depth. What is deeper counts as unreadable.
        let Some(steps) = shell::steps(line).filter(|_| depth <= DEEPEST) else {
            self.acts.push(DangerAct {
                what: "a command that cannot be parsed",
                is_unknown: true,
                ..DangerAct::default()
            });
            return;
        };
        // `outer` has, for each `(` and `$(` that is open, where the shell around it is, and whether a pipe leads into it.
        // `output` is what the last command writes, where it is literal: the next one reads it after a pipe.
        let (mut outer, mut output, mut is_piped) = (Vec::new(), PipeOutput::default(), false);
        for step in steps {
            let (words, fed) = match step {
                ShellStep::Opens => {
                    outer.push((self.here.clone(), is_piped));
                    continue;
                }
                ShellStep::Closes => {
                    (self.here, is_piped) = outer.pop().unwrap_or_default();
                    continue;
                }
                ShellStep::Pipe => {
                    is_piped = true;
                    continue;
                }
                ShellStep::Command(words) => (words, None),
                ShellStep::Fed(words, text) => (words, Some(text)),
            };
            let before = std::mem::take(&mut output);
            let mut input = if is_piped { before } else { PipeOutput::default() };
            is_piped = false;
            if let Some(text) = fed {
                // `a | sh <<EOF` reads the text, and not the pipe.
                input = PipeOutput { text: Some(text), ..PipeOutput::default() };
            }
            self.wrapped(&words, depth);
            if let Some(text) = input.text.as_deref().filter(|_| is_shell_that_reads(&words)) {
                let here = self.here.clone();
                // What a shell does to its directory ends with it.
                self.line(text, depth + 1);
                self.here = here;
            }
            // `find data | xargs rm`: neither command destroys anything by its own words.
            if let Some(found) = input.found.as_ref().filter(|_| pipe::removes_what_it_reads(&words)) {
                self.act("find -delete", found.iter(), DangerReach::All);
            }
            output = pipe::output(&words, input);
        }
    }

    fn wrapped(&mut self, words: &[Word], depth: usize) {
        let inner = wrapper_command::unwrapped(words);
        let by_list = self.by_list;
        self.by_list |= inner.by_list;
        if inner.is_elsewhere {
            // The wrapper changes the directory for the command alone.
            let here = self.here.take();
            self.command(inner.words, depth);
            self.here = here;
        } else {
            self.command(inner.words, depth);
        }
        self.by_list = by_list;
    }

    fn command(&mut self, words: &[Word], depth: usize) {
        let Some((program, rest)) = words.split_first() else { return };
        let has = |flag: &str| rest.iter().any(|word| word.text == flag);
        match wrapper_command::name(program) {
            "cd" | "pushd" => self.go(rest),
            // The stack of directories is not followed.
            "popd" => self.here = None,
            "rm" if has("--recursive") || has_letter(rest, &['r', 'R']) => {
                self.act("rm -r", plain(rest), DangerReach::All);
            }
            "rm" | "unlink" => self.names("rm", rest),
            "shred" => self.act("shred", plain(rest), DangerReach::Content),
            "truncate" => self.act("truncate", plain(rest), DangerReach::Content),
            "dd" => {
                let of = rest.iter().filter_map(|word| {
                    let text = word.text.strip_prefix("of=")?;
                    Some(Word { text: text.to_owned(), is_plain: word.is_plain })
                });
                let of: Vec<Word> = of.collect();
                if !of.is_empty() {
                    self.act("dd of=", of.iter(), DangerReach::Content);
                }
            }
            "find" => self.find(rest, depth),
            "git" => match git::aliased(rest) {
                Some(line) => self.line(&line, depth + 1),
                None => self.git(rest),
            },
            // It runs in this very shell, so a `cd` in it counts for what follows.
            "eval" => {
                let line: Vec<&str> = rest.iter().map(|word| word.text.as_str()).collect();
                self.line(&line.join(" "), depth + 1);
            }
            program if SHELLS.contains(&program) => {
                let is_flag = |word: &Word| word.text.starts_with('-') && word.text.ends_with('c');
                let Some(at) = rest.iter().position(is_flag) else { return };
                let Some(line) = rest[at + 1..].iter().find(|word| !word.text.starts_with(['-', '+'])) else {
                    return;
                };
                let here = self.here.clone();
                self.line(&line.text, depth + 1);
                self.here = here;
            }
            _ => {}
        }
    }

    /// `cd`: the shell goes elsewhere. Where it leads nowhere, or only the shell knows, the rest of the line cannot be told.
    fn go(&mut self, words: &[Word]) {
        let to = match plain(words).next() {
            None if words.iter().any(|word| word.text == "-") => None,
            None => self.home.map(Path::to_owned),
            Some(word) => self.place(word).filter(|_| !path_words::is_pattern(&word.text)),
        };
        // A `cd` that fails leaves the shell where it is, or ends the line after `&&`: which one is not known.
        self.here = to.filter(|to| to.is_dir());
    }

    /// Where a word leads; `None`: only the shell knows.
    fn place(&self, word: &Word) -> Option<PathBuf> {
        path_words::named(&word.text, self.here.as_deref(), self.home).filter(|_| word.is_plain)
    }

    /// Something is destroyed that these words name.
    fn act<'w>(&mut self, what: &'static str, words: impl Iterator<Item = &'w Word>, reach: DangerReach) {
        // `xargs rm -r src` removes more than `src`: only the list knows what.
        let mut act = DangerAct { what, is_unknown: self.by_list, ..DangerAct::default() };
        for word in words {
            match self.place(word) {
                Some(path) => act.targets.push(DangerTarget { path, reach }),
                None => act.is_unknown = true,
            }
        }
        self.acts.push(act);
    }

    /// Single files go: those that only the shell knows are let through, as each `rm` of a script's own files has some.
    fn names(&mut self, what: &'static str, words: &[Word]) {
        let paths = plain(words).filter_map(|word| self.place(word));
        let targets: Vec<DangerTarget> = paths.map(|path| DangerTarget { path, reach: DangerReach::Name }).collect();
        if !targets.is_empty() {
            self.acts.push(DangerAct { what, targets, ..DangerAct::default() });
        }
    }

    fn find(&mut self, words: &[Word], depth: usize) {
        let (from, tests) = pipe::roots(words);
        let runs = |at: usize| {
            let end = tests[at..].iter().position(|word| matches!(word.text.as_str(), ";" | "+"));
            let words = &tests[at..end.map_or(tests.len(), |end| at + end)];
            // Only `find` knows the paths that it adds, and the directory in which `-execdir` runs.
            let mut inner = Reader { home: self.home, here: None, by_list: true, acts: Vec::new() };
            inner.wrapped(words, depth + 1);
            let program = wrapper_command::unwrapped(words).words.first();
            // `find . -exec rm {} +`: a plain `rm` makes no act here, because only `find` knows what `{}` names.
            program.is_some_and(|program| wrapper_command::name(program) == "rm") || !inner.acts.is_empty()
        };
        let destroys = tests.iter().enumerate().any(|(at, word)| match word.text.as_str() {
            "-delete" => true,
            "-exec" | "-execdir" | "-ok" | "-okdir" => runs(at + 1),
            _ => false,
        });
        if destroys {
            self.act("find -delete", from.iter(), DangerReach::All);
        }
    }

    fn git(&mut self, words: &[Word]) {
        let Some(act) = git::read(words) else { return };
        let shell = self.here.clone();
        for directory in act.within {
            self.here = self.place(directory);
        }
        // `git stash -u` in `web/` takes untracked files of the whole work tree. Its top has `.git`, as a directory or, in a
        // linked work tree, as a file.
        if act.is_of_all {
            let top = self.here.as_ref().and_then(|here| here.ancestors().find(|at| at.join(".git").exists()));
            self.here = top.map(Path::to_owned).or(self.here.take());
        }
        let here = Word { text: ".".to_owned(), is_plain: true };
        match act.destroys {
            Destroys::Remote => self.acts.push(DangerAct { what: act.what, is_remote: true, ..DangerAct::default() }),
            Destroys::OwnState => {
                let target = self.place(&here).map(|path| DangerTarget { path, reach: DangerReach::GitState });
                let targets = target.into_iter().collect();
                self.acts.push(DangerAct { what: act.what, targets, takes_git: true, ..DangerAct::default() });
            }
            Destroys::Untracked { paths, with_ignored, others } => {
                let paths = if paths.is_empty() { vec![&here] } else { paths };
                self.act(act.what, paths.into_iter(), DangerReach::Untracked { with_ignored, others });
            }
        }
        self.here = shell;
    }
}

fn has_letter(words: &[Word], letters: &[char]) -> bool {
    words.iter().take_while(|word| word.text != "--").any(|word| {
        // `-rf` has the letter `r`; the `r` in `--force` does not count.
        let flags = word.text.strip_prefix('-').filter(|flags| !flags.starts_with('-'));
        flags.is_some_and(|flags| flags.contains(letters))
    })
}

/// The words that are no flags.
fn plain(words: &[Word]) -> impl Iterator<Item = &Word> {
    // After `--` every word is a name: `rm -- -x` removes the file `-x`.
    let end = words.iter().position(|word| word.text == "--").unwrap_or(words.len());
    let (flagged, rest) = words.split_at(end);
    flagged.iter().filter(|word| !word.text.starts_with('-')).chain(rest.iter().skip(1))
}

#[cfg(test)]
mod tests;
