//! Which names a capture leaves out: ignored ones, unless git tracks the file or the configuration opts it in; secrets.
//!
//! Rules are those of git, read by ourselves ([`patterns`]): `.gitignore` of the directory and of those above it, then
//! `info/exclude`, then the user's own excludes file; the deepest rule that says anything decides, and inside an ignored
//! directory everything is ignored.

mod config_patterns;
mod patterns;
mod wildmatch;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ic_base::Result;

use self::config_patterns::ConfigPatterns;
use self::patterns::Patterns;
use super::sources::RuleSources;
use super::text::number_of;
use crate::objects::hash_of;

/// What the configuration and the caller say.
#[derive(Debug, Clone, Default)]
pub struct RuleOptions {
    /// Patterns of files that are captured although a rule ignores them.
    pub include_ignored: Vec<String>,
    /// Patterns of files that are captured although their names look like secrets.
    pub include_secrets: Vec<String>,
    /// Paths that are captured whatever any rule or limit says.
    pub force: BTreeSet<Vec<u8>>,
    /// What the rules say of new names is compared with what git says.
    pub compare: bool,
}

/// Changes when the same rules are read otherwise: what an older program judged by them is then judged anew.
const READING: u8 = 1;

/// What becomes of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleVerdict {
    /// The name is captured; of a directory, its content is judged name by name.
    Capture,
    /// A directory that is ignored, though something in it is not.
    Descend,
    /// The name is left out, and with it all that lies below it.
    Ignored,
}

/// The rules that hold everywhere in a root.
pub(crate) struct CaptureRules<'a> {
    root: &'a Path,
    options: &'a RuleOptions,
    include_ignored: ConfigPatterns,
    include_secrets: ConfigPatterns,
    everywhere: Vec<Patterns>,
    /// Capital and small letters are equal in rules.
    fold: bool,
    is_git: bool,
    tracked: OnceLock<Option<Vec<Vec<u8>>>>,
    fingerprint: u64,
    /// What the rules said about names that had not been judged before; `None` if no comparison with git is wanted.
    judged: Option<Mutex<Vec<Judged>>>,
}

/// A name, and whether a rule ignores it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Judged {
    pub(crate) path: Vec<u8>,
    pub(crate) is_ignored: bool,
}

/// The rules that hold in one directory.
#[derive(Debug)]
pub(crate) struct Level {
    parent: Option<Arc<Level>>,
    /// The rules of its own, and the length of the path that theirs begin after.
    own: Option<(Patterns, usize)>,
    /// The directory itself is ignored.
    is_ignored: bool,
    /// Equal for equal rules.
    pub(crate) fingerprint: u64,
}

impl<'a> CaptureRules<'a> {
    /// The rules of a root; `extra` is whatever else its judgements depend on.
    ///
    /// Errors: `invalid_config` if a pattern of the configuration is not one.
    pub(crate) fn new(root: &'a Path, sources: &RuleSources, options: &'a RuleOptions, extra: &[u64]) -> Result<Self> {
        let fold = sources.ignores_case;
        let mut seen = vec![READING, u8::from(fold)];
        for text in &sources.texts {
            seen.extend_from_slice(&hash_of(text));
        }
        // "/" is in neither list: it keeps a pattern that moves from one list to the other from giving the same
        // fingerprint.
        for pattern in options.include_ignored.iter().chain([&"/".to_owned()]).chain(&options.include_secrets) {
            crate::tree::put_bytes(&mut seen, pattern.as_bytes());
        }
        for number in extra {
            seen.extend_from_slice(&number.to_le_bytes());
        }
        Ok(Self {
            root,
            options,
            include_ignored: ConfigPatterns::new("rollback.checkpointing.include-ignored", &options.include_ignored)?,
            include_secrets: ConfigPatterns::new("rollback.checkpointing.include-secrets", &options.include_secrets)?,
            everywhere: sources.texts.iter().map(|text| Patterns::parse(text, fold)).collect(),
            fold,
            is_git: sources.is_git,
            tracked: OnceLock::new(),
            fingerprint: number_of(&seen),
            judged: (options.compare && sources.is_git).then(Mutex::default),
        })
    }

    /// The rules above the root's own directory.
    pub(crate) fn top(&self) -> Arc<Level> {
        Arc::new(Level { parent: None, own: None, is_ignored: false, fingerprint: self.fingerprint })
    }

    /// The rules in the directory `path`, whose `.gitignore` is `text`.
    pub(crate) fn enter(&self, above: &Arc<Level>, path: &[u8], text: Option<&[u8]>, is_ignored: bool) -> Arc<Level> {
        let is_ignored = is_ignored || above.is_ignored;
        // The fingerprint includes that of the level above, so a rule that changes far above changes all levels below.
        let mut seen = above.fingerprint.to_le_bytes().to_vec();
        seen.push(u8::from(is_ignored));
        seen.extend_from_slice(text.unwrap_or_default());
        let start = if path.is_empty() { 0 } else { path.len() + 1 };
        Arc::new(Level {
            parent: Some(above.clone()),
            own: text.map(|text| (Patterns::parse(text, self.fold), start)),
            is_ignored,
            fingerprint: number_of(&seen),
        })
    }

    /// What becomes of the name at `path` in a directory with these rules; `is_new` if the last capture did not judge it by them.
    pub(crate) fn judge(&self, level: &Arc<Level>, path: &[u8], is_directory: bool, is_new: bool) -> RuleVerdict {
        // No rule is asked in an ignored directory: as in git, none can show a name there again.
        if !level.is_ignored {
            let is_ignored = self.is_ignored(level, path, is_directory);
            if let Some(judged) = self.judged.as_ref().filter(|_| is_new) {
                let mut judged = judged.lock().unwrap_or_else(PoisonError::into_inner);
                judged.push(Judged { path: path.to_vec(), is_ignored });
            }
            if !is_ignored {
                return RuleVerdict::Capture;
            }
        }
        // An ignored name may still be captured: if git tracks it, the configuration includes it, or the caller asked for it.
        let tracked = self.tracked();
        let included = self.include_ignored.holds(path, is_directory);
        if is_directory {
            let forced = has_below(self.options.force.range(path.to_vec()..).map(Vec::as_slice), path);
            let kept =
                has_below(tracked[tracked.partition_point(|t| t.as_slice() < path)..].iter().map(Vec::as_slice), path);
            if forced || kept || included || self.may_include_below(path) {
                RuleVerdict::Descend
            } else {
                RuleVerdict::Ignored
            }
        } else if included || self.is_forced(path) || self.is_tracked(path) {
            RuleVerdict::Capture
        } else {
            RuleVerdict::Ignored
        }
    }

    /// Whether this file is likely a secret, is not tracked by git and was not opted in.
    pub(crate) fn is_secret(&self, path: &[u8], name: &[u8]) -> bool {
        looks_secret(name)
            && !self.is_forced(path)
            && !self.include_secrets.holds(path, false)
            && !self.is_tracked(path)
    }

    /// Whether the caller asked for exactly this path.
    pub(crate) fn is_forced(&self, path: &[u8]) -> bool {
        self.options.force.contains(path)
    }

    /// Whether a path that the caller asked for is `path` or lies below it.
    pub(crate) fn forces_below(&self, path: &[u8]) -> bool {
        !self.options.force.is_empty()
            && (path.is_empty() || has_below(self.options.force.range(path.to_vec()..).map(Vec::as_slice), path))
    }

    fn is_tracked(&self, path: &[u8]) -> bool {
        self.tracked().binary_search_by(|tracked| tracked.as_slice().cmp(path)).is_ok()
    }

    /// What git tracks, in byte order; asked for once, when the first name is in question.
    fn tracked(&self) -> &[Vec<u8>] {
        let tracked = self.tracked.get_or_init(|| {
            if !self.is_git {
                return Some(Vec::new());
            }
            let mut paths = super::tracked_files::tracked(self.root)?;
            paths.sort_unstable();
            Some(paths)
        });
        tracked.as_deref().unwrap_or_default()
    }

    /// What was judged that matters to git, sorted: of what it tracks, no rule is asked.
    pub(crate) fn judged(&self) -> Vec<Judged> {
        /// Fewer are not worth asking what git tracks.
        const WORTH_ASKING: usize = 500;
        let judged = self
            .judged
            .as_ref()
            .map(|judged| std::mem::take(&mut *judged.lock().unwrap_or_else(PoisonError::into_inner)));
        let mut judged = judged.unwrap_or_default();
        if judged.len() > WORTH_ASKING {
            judged.retain(|one| one.is_ignored || !self.is_tracked(&one.path));
        }
        judged.sort_unstable();
        judged
    }

    /// Whether git was asked what it tracks, and could not say.
    pub(crate) fn lacks_tracked(&self) -> bool {
        self.tracked.get().is_some_and(Option::is_none)
    }

    fn is_ignored(&self, level: &Arc<Level>, path: &[u8], is_directory: bool) -> bool {
        let mut next = Some(level);
        // The nearest `.gitignore` decides, as in git; the rules of the whole repository come last.
        while let Some(level) = next {
            if let Some((own, start)) = &level.own
                && let Some(verdict) = own.verdict(&path[*start..], is_directory)
            {
                return verdict;
            }
            next = level.parent.as_ref();
        }
        self.everywhere.iter().find_map(|patterns| patterns.verdict(path, is_directory)).unwrap_or(false)
    }

    /// Whether an opted-in path may lie below this ignored directory.
    fn may_include_below(&self, path: &[u8]) -> bool {
        self.include_ignored.lines.iter().any(|pattern| {
            let pattern = pattern.trim_end_matches('/');
            let anchored = pattern.trim_start_matches('/');
            if !pattern.contains('/') {
                // A name alone matches at any depth.
                return true;
            }
            // `/build/keep/x*.txt` may match something below `build`, and something below `build/keep/xyz`.
            let literal: &str = anchored.split(['*', '?', '[', '\\']).next().unwrap_or_default();
            let (literal, below) = (literal.as_bytes(), [path, b"/"].concat());
            literal.starts_with(&below) || below.starts_with(literal)
        })
    }
}

/// Whether the first of the sorted paths that is not before `path` is it, or lies below it.
fn has_below<'p>(mut not_before: impl Iterator<Item = &'p [u8]>, path: &[u8]) -> bool {
    // Names that sort between `a` and `a/` (as `a!b`) stand before what lies below `a`.
    not_before.by_ref().take_while(|p| p.starts_with(path)).any(|p| p.len() == path.len() || p[path.len()] == b'/')
}

/// Whether a file of this name is likely a secret: environment files, keys and certificates, by their usual names.
///
/// A name with an ending, as in `id_map.rs`, is no private key of ssh; a template of an environment file is no secret.
pub fn looks_secret(name: &[u8]) -> bool {
    let is_template = [&b".example"[..], b".sample", b".template", b".dist"].iter().any(|end| name.ends_with(end));
    (name.starts_with(b".env") && matches!(name.get(4), None | Some(b'.' | b'-' | b'_')) && !is_template)
        || name.ends_with(b".pem")
        || (name.starts_with(b"id_") && !name.contains(&b'.'))
}

#[cfg(test)]
mod tests;
