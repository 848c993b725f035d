//! Where the words of a command lead, and what patterns name.

use std::path::{Component, Path, PathBuf};

/// Directories that a build makes again.
const MADE_AGAIN: [&str; 19] = [
    "node_modules", "target", "dist", "build", "out", ".next", ".nuxt", ".cache", ".turbo", ".parcel-cache",
    "coverage", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".tox", ".venv", "venv", ".gradle",
];

/// What begins a pattern.
const PATTERN: [char; 3] = ['*', '?', '['];

/// Whether names of files are put in place of this.
pub(super) fn is_pattern(text: &str) -> bool {
    text.contains(PATTERN)
}

/// Where a word leads from a directory, without `.` and `..`; `None`: only the shell knows. Nothing is looked up.
pub(super) fn named(text: &str, here: Option<&Path>, home: Option<&Path>) -> Option<PathBuf> {
    let path = match text.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => home?.join(rest.trim_start_matches('/')),
        // Another user's home.
        Some(_) => return None,
        None if text.starts_with('/') => PathBuf::from(text),
        None => here?.join(text),
    };
    path.is_absolute().then_some(path)
}

/// A path without `.`, `..` and links. `follows`: its own last link is followed, too. What is not there, a pattern for one, stays.
pub(super) fn real(path: &Path, follows: bool) -> PathBuf {
    let mut real = PathBuf::new();
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        match part {
            Component::CurDir => {}
            // After links are resolved, as the system does: `link/..` is the parent of where the link leads.
            Component::ParentDir => drop(real.pop()),
            part => real.push(part),
        }
        if (follows || parts.peek().is_some())
            && real.is_symlink()
            && let Ok(target) = std::fs::canonicalize(&real)
        {
            // A link that leads nowhere is left in the path.
            real = target;
        }
    }
    real
}

/// Whether a path lies where nothing is meant to last. What the environment calls so may be anything.
pub(super) fn is_temporary(path: &Path) -> bool {
    const PLACES: [&str; 7] =
        ["/tmp", "/var/tmp", "/private/tmp", "/private/var/tmp", "/var/folders", "/private/var/folders", "/dev/shm"];
    const SINKS: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/stdout", "/dev/stderr", "/dev/tty"];
    // `/tmp` itself is not temporary: files of others lie in it.
    PLACES.iter().any(|place| path.starts_with(place) && path != Path::new(place))
        || SINKS.iter().any(|sink| path == Path::new(sink))
}

/// Whether a build makes it again.
pub(super) fn is_made_again(path: &[u8]) -> bool {
    path.split(|b| *b == b'/').any(|part| MADE_AGAIN.iter().any(|name| name.as_bytes() == part))
}

/// How a path, which may be a pattern, and another one meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meeting {
    /// It names the other one.
    Same,
    /// It names something below the other one.
    Within,
    /// It names a directory that the other one lies in.
    Above,
}

/// How they meet, part by part; both from the root. `None`: they do not.
pub(super) fn meeting(pattern: &[u8], path: &[u8]) -> Option<Meeting> {
    let parts = |path| <[u8]>::split(path, |b| *b == b'/').filter(|part: &&[u8]| !part.is_empty());
    let (mut patterns, mut names) = (parts(pattern), parts(path));
    loop {
        match (patterns.next(), names.next()) {
            (None, None) => return Some(Meeting::Same),
            (None, Some(_)) => return Some(Meeting::Above),
            (Some(_), None) => return Some(Meeting::Within),
            (Some(pattern), Some(name)) if matches(pattern, name) => {}
            _ => return None,
        }
    }
}

/// Whether a pattern of a shell matches a name. `[...]` stands for any character: what is doubtful is asked about.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    // A name that begins with a dot is only matched by one.
    if name.starts_with(b".") && matches!(pattern.first(), Some(b'*' | b'?' | b'[')) {
        return false;
    }
    // One place to go back to is enough. Once a later `*` is reached, an earlier one never has to stand for more. So
    // the time is at most the product of both lengths, whatever the pattern.
    let (mut p, mut n) = (0, 0);
    // Where to go on if the last `*` stands for one more character.
    let mut again: Option<(usize, usize)> = None;
    while n < name.len() {
        // A `]` right after the `[` is in the class, so the search for its end begins behind it. Without an end, `[` stands
        // for itself.
        let class = (pattern.get(p) == Some(&b'['))
            .then(|| pattern[p + 1..].iter().skip(1).position(|b| *b == b']').map(|end| end + 3))
            .flatten();
        match pattern.get(p) {
            Some(b'*') => {
                again = Some((p, n));
                p += 1;
            }
            Some(_) if class.is_some() => (p, n) = (p + class.unwrap_or(1), n + 1),
            Some(b'?') => (p, n) = (p + 1, n + 1),
            Some(b) if *b == name[n] => (p, n) = (p + 1, n + 1),
            _ => match again {
                Some((star, from)) => {
                    again = Some((star, from + 1));
                    (p, n) = (star + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p.min(pattern.len())..].iter().all(|b| *b == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_a_shells_do() {
        for (pattern, name, is_match) in [
            ("*", "a", true),
            ("*", ".env", false),
            (".*", ".env", true),
            ("*.log", "a.b.log", true),
            ("*.log", "a.txt", false),
            ("a?c*", "abcd", true),
            ("[ab]c", "bc", true),
            ("[]x]c", "xc", true),
            ("a[", "a[", true),
            ("**b**", "abc", true),
            ("a", "b", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), is_match, "{pattern} {name}");
        }
        let meet = |pattern: &str, path: &str| meeting(pattern.as_bytes(), path.as_bytes());
        assert_eq!(meet("", "a"), Some(Meeting::Above));
        assert_eq!(meet("a/*/c", "a/b"), Some(Meeting::Within));
        assert_eq!(meet("a/*", "a/b"), Some(Meeting::Same));
        assert_eq!(meet("a*", "b/c"), None);
    }
}
