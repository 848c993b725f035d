//! Words, positions and kinds, without a ledger and without a shell.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::{Arg, Command, CommandFactory};

use super::command_line::{QuoteRules, Typed, unquoted};
use super::position::Position;
use super::values::{CompletionKind, kind};
use super::{CompletionShell, bash, candidates, files};
use crate::cli::CommandLine;
use crate::environment::CliEnvironment;

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

/// What is offered, without a ledger.
fn offered(line: &str, typed: &str) -> Vec<String> {
    let environment = CliEnvironment { db: Some("/nonexistent/ic.db".into()), ..CliEnvironment::default() };
    let found = candidates(&words(line), OsStr::new(typed), &environment);
    found.into_iter().map(|c| c.value.into_string().expect("UTF-8")).collect()
}

/// COMPREPLY for a line, when bash would replace `replaced`.
fn replies(line: &str, replaced: &str) -> Vec<String> {
    let environment = CliEnvironment { db: Some("/nonexistent/ic.db".into()), ..CliEnvironment::default() };
    let arguments = ["9", "80", replaced, line].map(OsString::from);
    let answer = bash::answer(&arguments, &environment).expect("an answer");
    String::from_utf8(answer).expect("UTF-8").lines().map(str::to_owned).collect()
}

/// Every verb with its nouns.
fn leaves<'t>(command: &'t Command, path: &[&'t str], found: &mut Vec<(Vec<&'t str>, &'t Command)>) {
    for verb in command.get_subcommands() {
        leaves(verb, &[path, &[verb.get_name()]].concat(), found);
    }
    if !command.has_subcommands() {
        found.push((path.to_vec(), command));
    }
}

fn of_every_verb(mut visit: impl FnMut(&[&str], &Command, &Arg)) {
    let mut tree = CommandLine::command();
    tree.build();
    let mut found = Vec::new();
    leaves(&tree, &[], &mut found);
    found.retain(|(path, _)| !path.contains(&"help"));
    for (path, command) in found {
        let own = command.get_arguments().filter(|a| !a.is_global_set() && a.get_id() != "help");
        own.for_each(|argument| visit(&path, command, argument));
    }
}

#[test]
fn a_line_is_split_as_a_shell_splits_it() {
    let typed = Typed::of(br#"ic run  'a b'"c d"\ e f"#, QuoteRules::Posix);
    assert_eq!((typed.words, typed.last), (words("ic run").tap("a bc d e"), OsString::from("f")));
    let typed = Typed::of(b"ic run status ", QuoteRules::Posix);
    assert_eq!((typed.words.len(), typed.last.as_os_str(), typed.raw.len()), (3, OsStr::new(""), 0));
    let typed = Typed::of(br#"ic --to-phase="in \"re $x"#, QuoteRules::Posix);
    assert_eq!((typed.last.to_str(), typed.quote), (Some(r#"--to-phase=in "re $x"#), Some(b'"')));
    assert_eq!(typed.raw, br#"--to-phase="in \"re $x"#);
    // An empty word in quotes is a word.
    assert_eq!(Typed::of(b"ic '' x", QuoteRules::Posix).words, [OsString::from("ic"), OsString::new()]);
    // Nothing is run and nothing is expanded.
    assert_eq!(Typed::of(b"ic $(touch x) `y`", QuoteRules::Posix).words.len(), 3);
    assert_eq!(unquoted(br"it\'s' \'", QuoteRules::Posix), r"it's \");
    assert_eq!(unquoted(br"'it\'s' here", QuoteRules::Fish), r"'it\'s' here");
    assert_eq!(unquoted(br"'it\'s", QuoteRules::Fish), "it's");
}

trait Tap {
    fn tap(self, word: &str) -> Self;
}

impl Tap for Vec<OsString> {
    fn tap(mut self, word: &str) -> Self {
        self.push(OsString::from(word));
        self
    }
}

#[test]
fn nouns_verbs_and_options_are_offered() {
    assert_eq!(offered("", "ro"), ["rollback"]);
    assert_eq!(offered("", "he"), ["health", "help"]);
    assert_eq!(offered("run agent", ""), ["add", "list", "update"]);
    assert_eq!(offered("help run", "ro"), ["rollback"]);
    assert_eq!(offered("run rollback @", "--to"), ["--to-phase", "--to"]);
    assert_eq!(offered("-C /tmp --json run rollback @", "--to"), ["--to-phase", "--to"]);
    assert_eq!(offered("-vC /tmp --db=x run", "sta"), ["status"]);
    assert_eq!(offered("", "--js"), ["--json"]);
    assert_eq!(offered("", "--vers"), ["--version"]);
    assert!(offered("run status @", "--vers").is_empty());
    // After an unknown word nothing is offered.
    assert!(offered("runs", "").is_empty());
    assert!(offered("run rollback @ --nothing", "").is_empty());
    assert!(offered("run status one two", "").is_empty());
}

#[test]
fn an_option_is_offered_as_often_as_it_can_be_given() {
    assert!(offered("run rollback @ --to-phase x", "--to").is_empty());
    assert!(offered("run rollback @ --to-phase=x", "--to").is_empty());
    assert_eq!(offered("dispatch record x --commit a", "--com"), ["--commit"]);
    // What excludes each other, in either order.
    assert!(!offered("checkpoint restore --latest", "--").contains(&"--name".to_owned()));
    assert!(!offered("checkpoint restore --name x", "--").contains(&"--latest".to_owned()));
    assert!(!offered("run list --json", "--").contains(&"--format".to_owned()));
    // Nothing but a value follows an option that takes one, and no option follows two dashes.
    assert!(offered("run rollback @ --reason", "--").is_empty());
    assert!(offered("run status --", "-").is_empty());
}

#[test]
fn values_that_the_parser_knows_are_offered() {
    assert_eq!(offered("completions", ""), ["bash", "zsh", "fish"]);
    assert_eq!(offered("run list --format", "j"), ["json", "jsonl"]);
    assert_eq!(offered("run list", "--format=t"), ["--format=text"]);
    assert_eq!(offered("run rollback @ --layer", "git,fi"), ["git,files"]);
    assert_eq!(offered("run rollback @ --layer files", "f").len(), 0);
    assert_eq!(offered("run rollback @", "--layer=files,e"), ["--layer=files,effects"]);
    assert_eq!(offered("dispatch list --status", "t"), ["timed_out"]);
    assert_eq!(offered("gate rules --phase", "po"), ["polish"]);
}

#[test]
fn bash_replaces_only_what_it_split_off() {
    assert_eq!(replies("ic run adv", "adv"), ["advance"]);
    assert_eq!(replies("ic run list --format=js", "js"), ["json", "jsonl"]);
    assert_eq!(replies("ic run list --format=", ""), ["auto", "json", "jsonl", "text"]);
    assert_eq!(replies("ic run list --format=\"te", "te"), ["text"]);
    assert_eq!(replies("ic 'run' \"li", "li"), ["list"]);
    // A bash whose COMP_WORDBREAKS was changed does not split there.
    assert_eq!(replies("ic run list --format=te", "--format=te"), ["--format=text"]);
    // Programs that are called by another name or path.
    assert_eq!(replies("./target/debug/ic run adv", "adv"), ["advance"]);
    assert!(replies("ic run advance", "nonsense").len() <= 1);
}

#[test]
fn files_are_offered_from_their_directory() {
    let place = tempfile::tempdir().expect("a directory");
    for name in ["a.md", ".hidden", "b c.md"] {
        std::fs::write(place.path().join(name), "").expect("a file");
    }
    std::fs::create_dir_all(place.path().join("sub/deep")).expect("a directory");
    std::fs::write(place.path().join("sub/x"), "").expect("a file");
    let named = |typed: &str, only_directories| -> Vec<String> {
        let found = files::named(OsStr::new(typed), place.path(), Some(place.path()), only_directories);
        found.into_iter().map(|c| c.value.into_string().expect("UTF-8")).collect()
    };
    assert_eq!(named("", false), ["a.md", "b c.md", "sub/"]);
    assert_eq!(named("", true), ["sub/"]);
    assert_eq!(named(".", false), [".hidden"]);
    assert_eq!(named("sub/", false), ["sub/deep/", "sub/x"]);
    assert_eq!(named("~/su", false), ["~/sub/"]);
    assert_eq!(named("nowhere/", false), Vec::<String>::new());
    let absolute = format!("{}/a", place.path().display());
    assert_eq!(named(&absolute, false), [format!("{absolute}.md")]);
    assert!(files::named(OsStr::new(""), Path::new("/nonexistent"), None, false).is_empty());
}

/// The names of values that are nothing but a text, a number or a duration, and so the caller's own.
const OWN_NAMES: &[&str] = &["TEXT", "N", "DUR"];

/// Values that only the caller knows. An argument that is not here must be of a kind that can be offered.
const OWN: &[&str] = &[
    "agent_type", "at", "auto_advance", "backoff", "before", "busy_timeout", "cache", "commits", "complexity",
    "conversation", "description", "error", "expect_head", "expect_plan", "goal", "grace", "input", "jobs",
    "keep_last", "kill_pid", "kind", "limit", "message", "metadata", "metadata_merge", "isolate", "model", "name",
    "number", "each", "older_than", "output", "patch_bytes", "phases", "pid", "port", "priority", "reason", "retries",
    "scope", "scope_id", "event", "shell", "step", "summary", "task", "timeout", "in", "out",
];

#[test]
fn every_value_is_offered_or_is_the_callers_own() {
    let mut unknown = BTreeSet::new();
    of_every_verb(|path, _, argument| {
        let takes_value = argument.get_action().takes_values();
        let id = argument.get_id().as_str();
        let is_own = || {
            let names = argument.get_value_names().unwrap_or_default();
            OWN.contains(&id) || names.iter().any(|name| OWN_NAMES.contains(&name.as_str()))
        };
        if takes_value && kind(path, argument) == CompletionKind::Own && !is_own() {
            unknown.insert(format!("{}: {id}", path.join(" ")));
        }
    });
    // A new argument: call its value TEXT, N or DUR if it is one, say in complete/values.rs what it takes, or name it in OWN.
    assert_eq!(unknown, BTreeSet::new());
}

#[test]
fn no_argument_has_the_name_of_a_global_one() {
    let tree = CommandLine::command();
    let global: Vec<&str> = tree.get_arguments().map(|argument| argument.get_id().as_str()).collect();
    of_every_verb(|path, _, argument| {
        let id = argument.get_id().as_str();
        assert!(!global.contains(&id), "{}: {id} is the id of a global option, and takes its place", path.join(" "));
    });
}

#[test]
fn every_verb_can_be_asked_for_everything() {
    let mut tree = CommandLine::command();
    tree.build();
    let mut verbs = Vec::new();
    leaves(&tree, &[], &mut verbs);
    verbs.retain(|(path, _)| !path.contains(&"help"));
    for (path, command) in verbs {
        let line: Vec<OsString> = path.iter().map(OsString::from).collect();
        let at = Position::after(&tree, &line).expect("a position");
        assert_eq!(at.path, path);
        let options = offered(&path.join(" "), "-");
        for argument in command.get_arguments().filter(|a| !a.is_positional() && !a.is_hide_set()) {
            let Some(name) = argument.get_long().map(|long| format!("--{long}")) else { continue };
            assert!(options.contains(&name), "{path:?}: {name} is not offered");
            // With every option given, what it excludes is worked out.
            offered(&format!("{} {name}=x", path.join(" ")), "-");
        }
    }
}

#[test]
fn only_the_names_of_shells_ask() {
    let asked = |value: &str| {
        CompletionShell::asking(&CliEnvironment { complete: Some(value.into()), ..CliEnvironment::default() })
    };
    assert_eq!(asked("zsh"), Some(CompletionShell::Zsh));
    assert_eq!((asked("1"), asked(""), asked("powershell")), (None, None, None));
    assert_eq!(CompletionShell::asking(&CliEnvironment::default()), None);
}
