use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::rules::{CaptureRules, RuleOptions};
use super::RuleSources;

/// A repository, and a place for what is kept of its settings.
struct Project(tempfile::TempDir);

/// Later than anything here was written, so that all is believed.
const LATER: i64 = i64::MAX;

impl Project {
    fn new() -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        fs::create_dir(project.root()).unwrap();
        project.git(&["init", "-q", "-b", "main", "."]);
        for name in ["one", "two"] {
            fs::write(project.0.path().join(name), name).unwrap();
        }
        project
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("root")
    }

    fn kept(&self) -> PathBuf {
        self.0.path().join("kept")
    }

    fn git(&self, arguments: &[&str]) {
        let status = Command::new("git").args(arguments).current_dir(self.root()).status().unwrap();
        assert!(status.success(), "{arguments:?}");
    }

    /// Writes a configuration that names a file with rules.
    fn names(&self, configuration: &str, rules: &str) {
        let rules = self.0.path().join(rules);
        let text = format!("[core]\n\texcludesFile = {}\n", rules.display());
        fs::write(self.0.path().join(configuration), text).unwrap();
    }

    fn read(&self, now: i64) -> RuleSources {
        let git = ic_ledger::git_dirs(&self.root()).unwrap();
        RuleSources::read(&self.root(), Some(&git), &self.kept(), now)
    }

    /// The rules of the file that settings name.
    fn rules(&self) -> String {
        let sources = self.read(LATER);
        assert!(self.kept().exists(), "the settings were kept");
        String::from_utf8(sources.texts.last().cloned().unwrap_or_default()).unwrap()
    }
}

#[test]
fn settings_are_kept_until_a_file_changes_that_git_read_or_would_read_for_them() {
    let project = Project::new();
    let place = project.0.path().display().to_string();
    project.git(&["config", "core.excludesFile", &format!("{place}/one")]);
    project.git(&["config", "include.path", &format!("{place}/later")]);
    project.git(&["config", "includeIf.onbranch:side.path", &format!("{place}/side")]);
    project.names("side", "two");
    assert_eq!(project.rules(), "one");
    let kept = fs::read(project.kept()).unwrap();
    assert_eq!(project.rules(), "one");
    assert_eq!(fs::read(project.kept()).unwrap(), kept);
    fs::write(project.0.path().join("one"), "ONE").unwrap();
    assert_eq!(project.rules(), "ONE", "rules are read every time");
    project.names("later", "two");
    assert_eq!(project.rules(), "two", "an included file that was not there");
    project.names("later", "one");
    assert_eq!(project.rules(), "ONE", "the file changed");
    project.git(&["symbolic-ref", "HEAD", "refs/heads/side"]);
    assert_eq!(project.rules(), "two", "another branch");
    project.git(&["symbolic-ref", "HEAD", "refs/heads/main"]);
    assert_eq!(project.rules(), "ONE", "the branch before");
    project.git(&["config", "extensions.worktreeConfig", "true"]);
    project.git(&["config", "--worktree", "core.excludesFile", &format!("{place}/two")]);
    assert_eq!(project.rules(), "two", "a configuration of the work tree");
    project.git(&["config", "core.ignoreCase", "true"]);
    assert!(project.read(LATER).ignores_case);
    project.git(&["config", "core.ignoreCase", "off"]);
    assert!(!project.read(LATER).ignores_case);
}

#[test]
fn settings_that_were_written_lately_are_not_kept() {
    let project = Project::new();
    assert_eq!(project.read(0).doubts, Vec::<String>::new());
    assert!(!project.kept().exists());
    project.read(LATER);
    assert!(project.kept().exists());
    fs::write(project.kept(), "{\"place\": 1").unwrap();
    project.git(&["config", "core.excludesFile", "one"]);
    fs::write(project.root().join("one"), "of the work tree").unwrap();
    assert_eq!(project.rules(), "of the work tree", "a torn file is not believed");
}

#[test]
fn judgements_have_another_fingerprint_when_anything_changes_that_they_depend_on() {
    let sources = |ignores_case, texts: &[&str]| RuleSources {
        ignores_case,
        texts: texts.iter().map(|text| text.as_bytes().to_vec()).collect(),
        ..RuleSources::default()
    };
    let mut seen = std::collections::BTreeSet::new();
    for sources in [
        sources(false, &[]),
        sources(true, &[]),
        sources(false, &["a"]),
        sources(true, &["a"]),
        sources(false, &["a", "b"]),
        sources(false, &["b", "a"]),
        sources(false, &["ab"]),
    ] {
        for patterns in [&[][..], &["x".to_owned()], &["x".to_owned(), "y".to_owned()]] {
            for secrets in [&[][..], &["x".to_owned()]] {
                for number in [0, 1] {
                    let options = RuleOptions {
                        include_ignored: patterns.to_vec(),
                        include_secrets: secrets.to_vec(),
                        ..RuleOptions::default()
                    };
                    let rules = CaptureRules::new(Path::new("/nowhere"), &sources, &options, &[number]).unwrap();
                    let top = rules.top();
                    for text in [None, Some(&b""[..]), Some(b"z")] {
                        let fingerprint = rules.enter(&top, b"", text, false).fingerprint;
                        // An empty file holds no rules, as one that is not there.
                        assert_eq!(seen.insert(fingerprint), text != Some(b""), "{sources:?} {options:?} {text:?}");
                    }
                    assert!(seen.insert(rules.enter(&top, b"", None, true).fingerprint));
                }
            }
        }
    }
}
