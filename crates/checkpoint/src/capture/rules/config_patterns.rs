//! Patterns of the configuration: lines of a `.gitignore`, in which braces stand for alternatives besides.

use ic_base::{Code, Diagnosis, Result};

use super::patterns::Patterns;

/// What a setting names.
#[derive(Debug)]
pub(super) struct ConfigPatterns {
    /// Its lines, without alternatives.
    pub(super) lines: Vec<String>,
    patterns: Patterns,
}

impl ConfigPatterns {
    /// The patterns of the setting `key`. Errors: `invalid_config` for one that could match nothing: it must be a mistake.
    pub(super) fn new(key: &str, given: &[String]) -> Result<Self> {
        let mut lines = Vec::new();
        for pattern in given {
            let begun = lines.len();
            alternatives(pattern, &mut lines);
            if lines[begun..].iter().any(|line| Patterns::is_malformed(line.as_bytes())) {
                return Err(Diagnosis::new(Code::InvalidConfig, format!("{key}: {pattern:?} is not a pattern."))
                    .hint("write it as a line of a .gitignore"));
            }
        }
        let patterns = Patterns::parse(lines.join("\n").as_bytes(), false);
        Ok(Self { lines, patterns })
    }

    /// Whether a path, or a directory that it lies in, is named.
    pub(super) fn holds(&self, path: &[u8], is_directory: bool) -> bool {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| end);
        // The innermost verdict decides: `!a/b` takes what lies below `a/b` out of `a`.
        self.patterns
            .verdict(path, is_directory)
            .or_else(|| ends.rev().find_map(|end| self.patterns.verdict(&path[..end], true)))
            .unwrap_or(false)
    }
}

/// Writes out the alternatives of a pattern: `a.{b,c}` is `a.b` and `a.c`.
///
/// Git knows no braces, but configurations with braces exist, and the files that they kept must still be kept.
fn alternatives(pattern: &str, out: &mut Vec<String>) {
    let (mut depth, mut open, mut cuts) = (0_usize, 0, Vec::new());
    let mut bytes = pattern.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            // What is escaped is itself.
            b'\\' => drop(bytes.next()),
            b'{' => {
                if depth == 0 {
                    (open, cuts) = (at, Vec::new());
                }
                depth += 1;
            }
            b',' if depth == 1 => cuts.push(at),
            b'}' if depth == 1 && !cuts.is_empty() => {
                let mut start = open + 1;
                for end in cuts.into_iter().chain([at]) {
                    let one = [&pattern[..open], &pattern[start..end], &pattern[at + 1..]].concat();
                    alternatives(&one, out);
                    start = end + 1;
                }
                return;
            }
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    out.push(pattern.to_owned());
}

#[cfg(test)]
mod tests {
    use super::ConfigPatterns;

    #[test]
    fn braces_of_a_configuration_are_alternatives() {
        let given = ["/out/{a,b{1,2}}/x.{js,css}", r"\{c,d\}", "one{e}"].map(str::to_owned);
        let configured = ConfigPatterns::new("key", &given).unwrap();
        for path in ["out/a/x.js", "out/b1/x.css", "out/b2/x.js", "{c,d}", "one{e}", "one{e}/below"] {
            assert!(configured.holds(path.as_bytes(), false), "{path}");
        }
        for path in ["out/b/x.js", "out/b3/x.js", "c", "d", "onee", "x.{js,css}"] {
            assert!(!configured.holds(path.as_bytes(), false), "{path}");
        }
    }

    #[test]
    fn what_could_match_nothing_is_refused() {
        for pattern in ["[z", "a\\", "x/[[:letters:]]", "{a,[}"] {
            let refused = ConfigPatterns::new("key", &[pattern.to_owned()]).unwrap_err();
            assert_eq!(refused.code(), ic_base::Code::InvalidConfig, "{pattern}");
        }
    }
}
