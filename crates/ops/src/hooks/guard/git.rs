//! What git's own commands destroy.

use super::shell::Word;

/// What a command of git destroys.
pub(super) struct GitAct<'w> {
    /// The command, as a message names it: `git reset --hard`.
    pub(super) what: &'static str,
    /// What would be lost by it.
    pub(super) destroys: Destroys<'w>,
    /// The directories of `-C`, in which it works.
    pub(super) within: Vec<&'w Word>,
    /// Whether it works on the whole repository, wherever in it it runs.
    pub(super) is_of_all: bool,
}

/// What a command of git destroys, which decides whether a checkpoint can restore it.
pub(super) enum Destroys<'w> {
    /// What a remote has.
    Remote,
    /// What git alone knows: what is staged, a stash, a branch.
    OwnState,
    /// What git does not track below these paths.
    Untracked { paths: Vec<&'w Word>, with_ignored: bool, others: bool },
}

/// What these words after `git` destroy.
pub(super) fn read(words: &[Word]) -> Option<GitAct<'_>> {
    let (within, words) = own_flags(words);
    let (verb, rest) = words.split_first()?;
    let has = |flag: &str| rest.iter().any(|word| word.text == flag);
    let has_letter = |letters: &[char]| super::has_letter(rest, letters);
    let is_dry = || has("--dry-run") || has_letter(&['n']);
    let own = |what| Some((what, Destroys::OwnState));
    let (what, destroys) = match verb.text.as_str() {
        "push" | "clean" if is_dry() => None,
        "push" => {
            let is_forced = |word: &Word| {
                let text = word.text.as_str();
                // `--force-with-lease` replaces what the remote has, too. `+main` forces one branch alone.
                text.starts_with("--force") || text.starts_with('+') || text == "--mirror"
            };
            let deletes = |word: &Word| {
                let text = word.text.as_str();
                // `:main` pushes nothing to `main`, which deletes it. A `:` alone pushes the branches that both have.
                matches!(text, "--delete" | "--prune") || text.len() > 1 && text.starts_with(':')
            };
            if rest.iter().any(deletes) || has_letter(&['d']) {
                Some(("git push --delete", Destroys::Remote))
            } else {
                let is_forced = rest.iter().any(is_forced) || has_letter(&['f']);
                is_forced.then_some(("git push --force", Destroys::Remote))
            }
        }
        "clean" => {
            let paths = super::plain(rest).collect();
            // `-x` removes ignored files with the rest, `-X` ignored files alone.
            let (with_ignored, others) = (has_letter(&['x', 'X']), !has_letter(&['X']));
            Some(("git clean", Destroys::Untracked { paths, with_ignored, others }))
        }
        "reset" if has("--hard") => own("git reset --hard"),
        "checkout" if has("--") => own("git checkout --"),
        "checkout" | "switch" if has("--force") || has("--discard-changes") || has_letter(&['f']) => {
            own("git checkout --force")
        }
        "stash" if is_pushed(rest) && (has("--all") || has_letter(&['a'])) => {
            let (paths, with_ignored, others) = (Vec::new(), true, true);
            Some(("git stash --all", Destroys::Untracked { paths, with_ignored, others }))
        }
        "stash" if is_pushed(rest) && (has("--include-untracked") || has_letter(&['u'])) => {
            let (paths, with_ignored, others) = (Vec::new(), false, true);
            Some(("git stash --include-untracked", Destroys::Untracked { paths, with_ignored, others }))
        }
        "stash" if has("drop") || has("clear") => own("git stash drop"),
        "branch" if has_letter(&['D']) => own("git branch -D"),
        "branch" if (has("--delete") || has_letter(&['d'])) && (has("--force") || has_letter(&['f'])) => {
            own("git branch -D")
        }
        "tag" if has("--delete") || has_letter(&['d']) => own("git tag -d"),
        _ => None,
    }?;
    // Git stashes the whole work tree, from whichever directory of it.
    Some(GitAct { what, destroys, within, is_of_all: verb.text == "stash" })
}

/// The line for a shell that these words after `git` stand for: an alias that they name themselves (`-c alias.x='clean -fdx' x`).
pub(super) fn aliased(words: &[Word]) -> Option<String> {
    let (_, verb) = own_flags(words);
    let (name, rest) = verb.split_first()?;
    let flags = &words[..words.len() - verb.len()];
    let is_it = |pair: &[Word]| {
        let value = pair[1].text.strip_prefix("alias.")?.strip_prefix(name.text.as_str())?.strip_prefix('=')?;
        (pair[0].text == "-c").then(|| value.to_owned())
    };
    // As for git, the last setting of an alias counts.
    let value = flags.windows(2).rev().find_map(is_it)?;
    let rest: Vec<&str> = rest.iter().map(|word| word.text.as_str()).collect();
    let line = value.strip_prefix('!').map_or_else(|| format!("git {value}"), str::to_owned);
    Some(format!("{line} {}", rest.join(" ")))
}

/// Whether something is put on the stash.
fn is_pushed(rest: &[Word]) -> bool {
    rest.first().is_none_or(|word| word.text.starts_with('-') || matches!(word.text.as_str(), "push" | "save"))
}

/// The directories that git works in, and its words from the verb on.
fn own_flags(mut words: &[Word]) -> (Vec<&Word>, &[Word]) {
    let mut within = Vec::new();
    while let Some((flag, rest)) = words.split_first().filter(|(flag, _)| flag.text.starts_with('-')) {
        let takes_next = matches!(flag.text.as_str(), "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace");
        // Each `-C` counts from the one before it, so all are followed in turn.
        within.extend(rest.first().filter(|_| flag.text == "-C"));
        words = rest.get(usize::from(takes_next)..).unwrap_or_default();
    }
    (within, words)
}
