//! Commands that destroy what `ic` cannot restore: literal pairs of a program and its flags, and what they name that no checkpoint holds.
//!
//! A help against accidents, and no boundary: a script, `make` or `python -c` passes it.

mod git;
mod pipe;
mod place;
mod shell;
mod wrapped;

use std::path::{Path, PathBuf};

use ic_store::path_bytes;
use ic_worktree::auto::LeftOut;

use git::Destroys;
use pipe::Output;
use place::Meeting;
use shell::{Step, Word};

/// What a line for a shell would destroy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Danger {
    acts: Vec<Act>,
}

/// One command that destroys something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Act {
    /// What does it: `rm -r`.
    what: &'static str,
    /// What it names.
    targets: Vec<Target>,
    /// Whether it names what only the shell knows, or cannot be read at all.
    is_unknown: bool,
    /// Whether a remote repository changes.
    is_remote: bool,
    /// Whether what git alone knows goes: what is staged, a stash.
    takes_git: bool,
}

/// What a command names: a place on the disk, or a pattern for some.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Target {
    path: PathBuf,
    reach: Reach,
}

/// What goes of that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// The name, which may be one of a link.
    Name,
    /// The content that it leads to.
    Content,
    /// It and all that is below it.
    All,
    /// What git does not track below it.
    Untracked { with_ignored: bool, others: bool },
    /// What git alone knows of the repository around it.
    GitState,
}

/// What `ic` can bring back of a tree.
#[derive(Debug, Clone, Copy)]
pub enum Held<'a> {
    /// All but this.
    AllBut(&'a [LeftOut]),
    /// Nothing: it is not captured.
    Nothing,
}

/// What a line for a shell would destroy that runs in this directory, as far as its words say so.
pub fn read(line: &str, directory: &Path, home: Option<&Path>) -> Danger {
    let mut reader = Reader { home, here: Some(directory.to_owned()), by_list: false, acts: Vec::new() };
    reader.line(line, 0);
    Danger { acts: reader.acts }
}

const SHELLS: [&str; 7] = ["sh", "bash", "zsh", "dash", "ksh", "fish", "su"];

/// Whether these words begin a shell that reads its commands from standard input.
fn is_shell_that_reads(words: &[Word]) -> bool {
    let Some((program, rest)) = wrapped::unwrapped(words).words.split_first() else { return false };
    let is_line = |word: &Word| word.text.starts_with('-') && word.text.ends_with('c');
    let reads = rest.iter().any(|word| word.text == "-s") || plain(rest).next().is_none();
    SHELLS.contains(&wrapped::name(program)) && reads && !rest.iter().any(is_line)
}

struct Reader<'h> {
    home: Option<&'h Path>,
    /// Where the shell is; `None`: only the shell knows.
    here: Option<PathBuf>,
    /// Whether a list names more of what commands are about.
    by_list: bool,
    acts: Vec<Act>,
}

impl Reader<'_> {
    fn line(&mut self, line: &str, depth: usize) {
        const DEEPEST: usize = 3;
        let Some(steps) = shell::steps(line).filter(|_| depth <= DEEPEST) else {
            self.acts.push(Act {
                what: "a command that cannot be parsed",
                is_unknown: true,
                ..Act::default()
            });
            return;
        };
        let (mut outer, mut output, mut is_piped) = (Vec::new(), Output::default(), false);
        for step in steps {
            let (words, fed) = match step {
                Step::Opens => {
                    outer.push((self.here.clone(), is_piped));
                    continue;
                }
                Step::Closes => {
                    (self.here, is_piped) = outer.pop().unwrap_or_default();
                    continue;
                }
                Step::Pipe => {
                    is_piped = true;
                    continue;
                }
                Step::Command(words) => (words, None),
                Step::Fed(words, text) => (words, Some(text)),
            };
            let before = std::mem::take(&mut output);
            let mut input = if is_piped { before } else { Output::default() };
            is_piped = false;
            if let Some(text) = fed {
                input = Output { text: Some(text), ..Output::default() };
            }
            self.wrapped(&words, depth);
            if let Some(text) = input.text.as_deref().filter(|_| is_shell_that_reads(&words)) {
                let here = self.here.clone();
                self.line(text, depth + 1);
                self.here = here;
            }
            if let Some(found) = input.found.as_ref().filter(|_| pipe::removes_what_it_reads(&words)) {
                self.act("find -delete", found.iter(), Reach::All);
            }
            output = pipe::output(&words, input);
        }
    }

    fn wrapped(&mut self, words: &[Word], depth: usize) {
        let inner = wrapped::unwrapped(words);
        let by_list = self.by_list;
        self.by_list |= inner.by_list;
        if inner.is_elsewhere {
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
        match wrapped::name(program) {
            "cd" | "pushd" => self.go(rest),
            "popd" => self.here = None,
            "rm" if has("--recursive") || has_letter(rest, &['r', 'R']) => {
                self.act("rm -r", plain(rest), Reach::All);
            }
            "rm" | "unlink" => self.names("rm", rest),
            "shred" => self.act("shred", plain(rest), Reach::Content),
            "truncate" => self.act("truncate", plain(rest), Reach::Content),
            "dd" => {
                let of = rest.iter().filter_map(|word| {
                    let text = word.text.strip_prefix("of=")?;
                    Some(Word { text: text.to_owned(), is_plain: word.is_plain })
                });
                let of: Vec<Word> = of.collect();
                if !of.is_empty() {
                    self.act("dd of=", of.iter(), Reach::Content);
                }
            }
            "find" => self.find(rest, depth),
            "git" => match git::aliased(rest) {
                Some(line) => self.line(&line, depth + 1),
                None => self.git(rest),
            },
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
            Some(word) => self.place(word).filter(|_| !place::is_pattern(&word.text)),
        };
        self.here = to.filter(|to| to.is_dir());
    }

    /// Where a word leads; `None`: only the shell knows.
    fn place(&self, word: &Word) -> Option<PathBuf> {
        place::named(&word.text, self.here.as_deref(), self.home).filter(|_| word.is_plain)
    }

    /// Something is destroyed that these words name.
    fn act<'w>(&mut self, what: &'static str, words: impl Iterator<Item = &'w Word>, reach: Reach) {
        let mut act = Act { what, is_unknown: self.by_list, ..Act::default() };
        for word in words {
            match self.place(word) {
                Some(path) => act.targets.push(Target { path, reach }),
                None => act.is_unknown = true,
            }
        }
        self.acts.push(act);
    }

    /// Single files go: those that only the shell knows are let through, as each `rm` of a script's own files has some.
    fn names(&mut self, what: &'static str, words: &[Word]) {
        let paths = plain(words).filter_map(|word| self.place(word));
        let targets: Vec<Target> = paths.map(|path| Target { path, reach: Reach::Name }).collect();
        if !targets.is_empty() {
            self.acts.push(Act { what, targets, ..Act::default() });
        }
    }

    fn find(&mut self, words: &[Word], depth: usize) {
        let (from, tests) = pipe::roots(words);
        let runs = |at: usize| {
            let end = tests[at..].iter().position(|word| matches!(word.text.as_str(), ";" | "+"));
            let words = &tests[at..end.map_or(tests.len(), |end| at + end)];
            let mut inner = Reader { home: self.home, here: None, by_list: true, acts: Vec::new() };
            inner.wrapped(words, depth + 1);
            let program = wrapped::unwrapped(words).words.first();
            program.is_some_and(|program| wrapped::name(program) == "rm") || !inner.acts.is_empty()
        };
        let destroys = tests.iter().enumerate().any(|(at, word)| match word.text.as_str() {
            "-delete" => true,
            "-exec" | "-execdir" | "-ok" | "-okdir" => runs(at + 1),
            _ => false,
        });
        if destroys {
            self.act("find -delete", from.iter(), Reach::All);
        }
    }

    fn git(&mut self, words: &[Word]) {
        let Some(act) = git::read(words) else { return };
        let shell = self.here.clone();
        for directory in act.within {
            self.here = self.place(directory);
        }
        if act.is_of_all {
            let top =
                self.here.as_ref().and_then(|here| here.ancestors().find(|at| at.join(".git").exists()));
            self.here = top.map(Path::to_owned).or(self.here.take());
        }
        let here = Word { text: ".".to_owned(), is_plain: true };
        match act.destroys {
            Destroys::Remote => self.acts.push(Act { what: act.what, is_remote: true, ..Act::default() }),
            Destroys::OwnState => {
                let target = self.place(&here).map(|path| Target { path, reach: Reach::GitState });
                let targets = target.into_iter().collect();
                self.acts.push(Act { what: act.what, targets, takes_git: true, ..Act::default() });
            }
            Destroys::Untracked { paths, with_ignored, others } => {
                let paths = if paths.is_empty() { vec![&here] } else { paths };
                self.act(act.what, paths.into_iter(), Reach::Untracked { with_ignored, others });
            }
        }
        self.here = shell;
    }
}

impl Danger {
    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        self.acts.is_empty()
    }

    /// Whether what git alone knows goes: what is staged, a stash.
    pub fn takes_git(&self) -> bool {
        self.acts.iter().any(|act| act.takes_git)
    }

    /// What would be lost for good in a tree with this root, for people: `rm -r` would destroy .env (secret). `None`: nothing.
    pub fn doubt(&self, root: &Path, held: Held<'_>) -> Option<String> {
        const MOST: usize = 5;
        let (mut what, mut losses) = (Vec::new(), Vec::new());
        for act in &self.acts {
            let lost = act.losses(root, held);
            if !lost.is_empty() {
                what.push(format!("`{}`", act.what));
                losses.extend(lost);
            }
        }
        dedup(&mut what);
        dedup(&mut losses);
        let more = losses.len().saturating_sub(MOST);
        let named: Vec<String> = losses.iter().take(MOST).map(|loss| ic_base::title(loss)).collect();
        let and_more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!losses.is_empty()).then(|| {
            let named = named.join(", ");
            format!("{} would destroy what `ic` cannot restore: {named}{and_more}.", what.join(", "))
        })
    }
}

impl Act {
    fn losses(&self, root: &Path, held: Held<'_>) -> Vec<String> {
        let mut losses = Vec::new();
        if self.is_remote {
            losses.push("what the remote has".to_owned());
        }
        if self.is_unknown {
            losses.push("files that cannot be told from the command".to_owned());
        }
        for target in &self.targets {
            losses.extend(target.losses(root, held));
        }
        losses
    }
}

impl Target {
    fn losses(&self, root: &Path, held: Held<'_>) -> Vec<String> {
        let path = place::real(&self.path, self.reach == Reach::Content);
        let is_there = |path: &Path| {
            let fixed = path.ancestors().find(|part| !place::is_pattern(&part.to_string_lossy()));
            fixed.is_some_and(|fixed| fixed.symlink_metadata().is_ok())
        };
        let Ok(inside) = path.strip_prefix(root) else {
            // A project may lie there, and what is above it takes it along, with git and what ic keeps.
            let is_above = root.starts_with(&path);
            let is_lost = (is_above || !place::is_temporary(&path)) && is_there(&path);
            let why = if is_above { "the project is in it" } else { "outside of the project" };
            let told = || format!("{} ({why})", path.display());
            return is_lost.then(told).into_iter().collect();
        };
        let shown = if inside.as_os_str().is_empty() { Path::new(".") } else { inside };
        let inside = path_bytes(inside);
        match held {
            Held::AllBut(left_out) => {
                let is_lost = |(left, why): &&LeftOut| self.takes(root, inside, left, why);
                let told = |(path, why): &LeftOut| format!("{} ({why})", String::from_utf8_lossy(path));
                left_out.iter().filter(is_lost).map(told).collect()
            }
            Held::Nothing => {
                let is_lost = is_there(&path) && !place::is_made_again(inside);
                let told = || match self.reach {
                    Reach::GitState => "what git has not committed (not captured)".to_owned(),
                    Reach::Untracked { .. } => "what git does not track (not captured)".to_owned(),
                    _ => format!("{} (not captured)", shown.display()),
                };
                is_lost.then(told).into_iter().collect()
            }
        }
    }

    /// Whether something goes that no checkpoint holds. `inside`: where it leads, from the root.
    fn takes(&self, root: &Path, inside: &[u8], left: &[u8], why: &str) -> bool {
        let Some(meeting) = place::meeting(inside, left) else { return false };
        let counts = !place::is_made_again(left) && !place::is_made_again(inside);
        counts
            && match self.reach {
                Reach::All => true,
                Reach::Name | Reach::Content => meeting != Meeting::Above,
                Reach::Untracked { with_ignored, others } => match why {
                    "ignored" => with_ignored,
                    "git" | "store" | "ledger" => false,
                    _ => others && !is_tracked(root, left),
                },
                Reach::GitState => false,
            }
    }
}

fn is_tracked(root: &Path, path: &[u8]) -> bool {
    ic_store::git_dirs(root).is_some_and(|dirs| ic_store::git_tracks(&dirs, path).unwrap_or(false))
}

/// Leaves the first of each.
fn dedup(all: &mut Vec<String>) {
    let mut seen = std::collections::HashSet::new();
    all.retain(|one| seen.insert(one.clone()));
}

fn has_letter(words: &[Word], letters: &[char]) -> bool {
    words.iter().take_while(|word| word.text != "--").any(|word| {
        let flags = word.text.strip_prefix('-').filter(|flags| !flags.starts_with('-'));
        flags.is_some_and(|flags| flags.contains(letters))
    })
}

/// The words that are no flags.
fn plain(words: &[Word]) -> impl Iterator<Item = &Word> {
    let end = words.iter().position(|word| word.text == "--").unwrap_or(words.len());
    let (flagged, rest) = words.split_at(end);
    flagged.iter().filter(|word| !word.text.starts_with('-')).chain(rest.iter().skip(1))
}

#[cfg(test)]
mod tests;
