//! Which rule decides about a name.

mod campaign;
mod git_quirks;

use std::path::Path;

use super::{CaptureRules, RuleOptions, RuleSources, RuleVerdict, looks_secret};

#[test]
fn the_deepest_rule_decides() {
    let options = RuleOptions::default();
    let rules = CaptureRules::new(Path::new("/nowhere"), &RuleSources::default(), &options, &[]).unwrap();
    let top = rules.enter(&rules.top(), b"", Some(b"*.log\n/build/\n!keep.log\nsub/x\n"), false);
    let sub = rules.enter(&top, b"sub", Some(b"!a.log\n"), false);
    let judge = |level, path: &str, dir| rules.judge(level, path.as_bytes(), dir, true);
    assert_eq!(judge(&top, "a.log", false), RuleVerdict::Ignored);
    assert_eq!(judge(&top, "keep.log", false), RuleVerdict::Capture);
    assert_eq!(judge(&top, "build", true), RuleVerdict::Ignored);
    assert_eq!(judge(&top, "build", false), RuleVerdict::Capture);
    assert_eq!(judge(&sub, "sub/a.log", false), RuleVerdict::Capture);
    assert_eq!(judge(&sub, "sub/b.log", false), RuleVerdict::Ignored);
    assert_eq!(judge(&sub, "sub/x", false), RuleVerdict::Ignored);
    assert_eq!(judge(&sub, "sub/build", true), RuleVerdict::Capture);
}

#[test]
fn what_was_opted_in_is_captured_inside_of_ignored_directories() {
    let options = RuleOptions {
        include_ignored: vec!["/build/keep/".into(), "deep/*/x.txt".into()],
        force: [b"forced/a/b".to_vec()].into(),
        ..RuleOptions::default()
    };
    let rules = CaptureRules::new(Path::new("/nowhere"), &RuleSources::default(), &options, &[]).unwrap();
    let top = rules.enter(&rules.top(), b"", Some(b"/build/\nforced\nother\ndeep\n"), false);
    let judge = |level, path: &str, dir| rules.judge(level, path.as_bytes(), dir, true);
    assert_eq!(judge(&top, "build", true), RuleVerdict::Descend);
    assert_eq!(judge(&top, "other", true), RuleVerdict::Ignored);
    assert_eq!(judge(&top, "forced", true), RuleVerdict::Descend);
    assert_eq!(judge(&top, "deep", true), RuleVerdict::Descend);
    let build = rules.enter(&top, b"build", None, true);
    assert_eq!(judge(&build, "build/x", false), RuleVerdict::Ignored);
    assert_eq!(judge(&build, "build/keep", true), RuleVerdict::Descend);
    assert_eq!(judge(&build, "build/keep/x", false), RuleVerdict::Capture);
    let forced = rules.enter(&top, b"forced", None, true);
    assert_eq!(judge(&forced, "forced/a", true), RuleVerdict::Descend);
    assert_eq!(judge(&forced, "forced/c", false), RuleVerdict::Ignored);
    assert_eq!(judge(&forced, "forced/a/b", false), RuleVerdict::Capture);
}

#[test]
fn secrets_go_by_their_usual_names() {
    for name in [".env", ".env.local", ".env-prod", "server.pem", "id_rsa", "id_ed25519", "id_work"] {
        assert!(looks_secret(name.as_bytes()), "{name}");
    }
    for name in [".environment", ".env.example", "id_map.rs", "id_rsa.pub", "env", "a.pem.txt"] {
        assert!(!looks_secret(name.as_bytes()), "{name}");
    }
}
