//! Names that are no user's files: a restore's own, and those that some file system takes for `.git`.
//!
//! A tree is captured on one file system and may be restored on another, or be shared with one: where letters have no case, or
//! where invisible characters are dropped, each of these names is git's own directory, whose configuration names
//! programs. The forms are those that git itself refuses in a tree (`core.protectHFS`, `core.protectNTFS`). Capture and
//! restore ask here, so that nothing is captured that could not be restored.

/// The beginning of the names of a restore's temporary files.
pub(crate) const TEMPORARY: &[u8] = b".ic-restore-";

/// Whether a file system may take this name for `.git`; `.git` itself is one of them.
pub(crate) fn is_like_git(name: &[u8]) -> bool {
    // Few names begin as one of them does: the rest costs one comparison.
    matches!(name.first(), Some(b'.' | b'g' | b'G' | 0xe2 | 0xef)) && (is_git_to_ntfs(name) || is_git_to_hfs(name))
}

/// Whether the path goes through such a name other than `.git` itself.
pub(crate) fn goes_through_one_like_git(path: &[u8]) -> bool {
    path.split(|b| *b == b'/').any(|name| name != b".git" && is_like_git(name))
}

/// NTFS knows no case, drops dots and spaces at the end, has streams after a colon, and a short name for each long one.
fn is_git_to_ntfs(name: &[u8]) -> bool {
    let begins = |with: &[u8]| name.get(..with.len()).is_some_and(|head| head.eq_ignore_ascii_case(with));
    let rest = if begins(b".git") {
        &name[4..]
    } else if begins(b"git~1") {
        &name[5..]
    } else {
        return false;
    };
    // Only dots and spaces may follow, then a stream (`.git::$INDEX_ALLOCATION`) or a path (`.git\config`).
    let end = rest.iter().position(|b| !matches!(b, b'.' | b' '));
    end.is_none_or(|at| matches!(rest[at], b':' | b'\\'))
}

/// HFS+ knows no case and drops characters that have no width.
fn is_git_to_hfs(name: &[u8]) -> bool {
    // Names on HFS+ are Unicode, so other bytes name nothing there.
    let Ok(name) = std::str::from_utf8(name) else { return false };
    let is_dropped = |c: &char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let seen = name.chars().filter(|c| !is_dropped(c)).map(|c| c.to_ascii_lowercase());
    seen.eq(".git".chars())
}

#[cfg(test)]
mod tests {
    use super::is_like_git;

    #[test]
    fn git_has_many_names() {
        let names = [
            ".git",
            ".GIT",
            ".gIt",
            ".git.",
            ".git ",
            ".git . .",
            ".GIT::$INDEX_ALLOCATION",
            ".git\\config",
            "git~1",
            "GIT~1",
            "git~1.",
            ".g\u{200c}it",
            "\u{feff}.git",
            ".git\u{206f}",
            "\u{200e}.G\u{202a}IT",
        ];
        for name in names {
            assert!(is_like_git(name.as_bytes()), "{name:?}");
        }
        let others = [
            "", "git", "git~2", "git~10", ".gitignore", ".github", ".Git-not", ".git_", "..git", "g", ".", "\u{200c}",
            ".git\u{301}", "a.git",
        ];
        for name in others {
            assert!(!is_like_git(name.as_bytes()), "{name:?}");
        }
        assert!(!is_like_git(b".g\xffit"));
    }
}
