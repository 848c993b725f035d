//! Every verb, in a repository that names a program wherever git lets it: nothing of it is run.

mod traps;

use std::collections::{BTreeMap, BTreeSet};

use ic_testkit::{CliOutcome, git_in, verb_calls, write_in};

use traps::Trapped;

/// What is called, in this order, before [`verb_calls::CALLS`]: `NAME=` keeps the id that it prints, `{NAME}` stands for it; `!` before a call that is refused.
const CALLS: &[&str] = &[
    "init",
    "health",
    "backup ../copy.db",
    "migrate",
    "run=run create --goal g --phases a,b,c,d,e --gates {}",
    "run list",
    "run status {run}",
    "run current",
    "run history {run}",
    "run events {run}",
    "agent=run agent add {run} --type codex --name n",
    "run agent list {run}",
    "run agent update {agent} --status completed",
    "artifact=run artifact add {run} --path d",
    "run artifact list {run}",
    "run artifact cat {artifact}",
    "work=dispatch create {run} --name n",
    "dispatch start {work}",
    "dispatch record {work} --commit 1a2b3c4 --file d",
    "dispatch tokens {work} --in 1 --out 1",
    "dispatch show {work}",
    "dispatch list {run}",
    "dispatch complete {work}",
    "!dispatch beat {work} --ttl 5m",
    "wait {work}",
    "status {run}",
    "log {run} --all",
    "blame d",
    "show {work} -p",
    "diff",
    "restore --before {work} d --dry-run",
    "undo --only {work} --dry-run",
    "undo {work} --dry-run",
    "!redo --run {run} --dry-run",
    "failed=dispatch create {run}",
    "dispatch fail {failed} --error e",
    "cancelled=dispatch create {run}",
    "dispatch cancel {cancelled}",
    "compensation add {run} --step s --restore-file d",
    "compensation list {run}",
    "compensation coverage {run}",
    "compensation run {run} --dry-run",
    "gate check {run}",
    "hooks install claude-code",
    "hooks doctor",
    "hook claude-code SessionStart",
    "install claude-code",
    "uninstall claude-code",
    // A server does not end by itself: what it reads and does is what the other verbs do.
    "!ui --port 99999",
    "!mcp --format yaml",
    "fork --name t",
    "exec --isolate=u -- true",
    "compare",
    "adopt t --dry-run",
    "drop t --force",
    "!session continue {work} --print",
    "session list",
    "!session show 00000000",
    "!session attach @ --session 00000000",
    "first=checkpoint create --name first",
    "change ten",
    "second=checkpoint create --message m",
    "checkpoint create --auto --settled --conversation c",
    "checkpoint list",
    "checkpoint show {second} --files",
    "checkpoint list --tree",
    "checkpoint diff {first}",
    "checkpoint diff {first} {second} --unified",
    "checkpoint diff {first} --stat",
    "checkpoint diff {first} --name-status",
    "checkpoint cat {first} d",
    "checkpoint verify --read-data",
    "change two",
    "run advance {run}",
    "change six",
    "gate override {run} --reason r",
    "run skip {run} d --reason r",
    "run set {run} --complexity 4",
    "events tail --limit 3",
    "events cursor list",
    "!events cursor commit absent 1",
    "!events cursor reset absent",
    "events verify",
    "events redact 2 --reason r",
    "checkpoint restore {first} --dry-run",
    "checkpoint restore {first} --dry-run --strategy git-only",
    "run rollback {run} --to-phase a --dry-run",
    "run rollback {run} --to-phase a --layer code",
    "run rollback {run} --to-phase a --layer all --dry-run",
    "workflow validate w.yaml",
    "workflow run w.yaml --dry-run",
    "flow=workflow run w.yaml --json",
    "workflow show {flow}",
    "workflow checkpoints {flow}",
    "workflow rollback {flow} --dry-run",
    "!workflow resume {flow}",
    "rewind init --profile devs",
    "rewind inspect .git/ic/state.db",
    "tasks",
    "rewind targets",
    "rewind to T1 --dry-run --force",
    "rewind list",
    "!rewind status",
    "!rewind resume 00000000",
    "!undo 00000000 --dry-run",
    "rollback list",
    "!rollback show 00000000",
    "!rollback resume 00000000 --yes",
    "!rollback abort 00000000 --dry-run",
    "!redo 00000000 --dry-run",
    "checkpoint delete {second}",
    "checkpoint purge d --yes",
    "checkpoint prune --older-than 0s --keep-last 0 --grace 0s",
    "run cancel {run}",
    "run reopen {run} --reason r",
];

/// What is called when a person asks for a restore, or for a rollback of files and of git's state.
const ACTS: [&str; 15] = [
    "init",
    "run=run create --goal g --phases a,b,c --gates {}",
    "run advance {run}",
    "first=checkpoint create",
    "change ten",
    "run advance {run}",
    "checkpoint restore {first} --yes",
    "redo --yes",
    "undo RESTORE --yes",
    "run rollback {run} --to-phase b --layer all --yes",
    "rolled=rollback list --json",
    "redo {rolled} --yes",
    "redo --yes",
    "undo phase:b --run {run} --yes",
    "redo --run {run} --yes",
];

impl Trapped {
    /// Makes one call and returns what it ran of the repository.
    fn call(&self, line: &str, known: &mut BTreeMap<String, String>) -> BTreeSet<String> {
        match line {
            "tasks" => self.tasks(),
            _ if line.starts_with("change ") => self.change(&line["change ".len()..]),
            _ => {
                self.verb(line, known);
                return self.ran();
            }
        }
        // What the test's own git ran is none of ours: it asks filters whenever a file and the index are of one moment.
        self.ran();
        BTreeSet::new()
    }

    fn verb(&self, line: &str, known: &mut BTreeMap<String, String>) {
        let (name, line) = match line.split_once('=') {
            Some((name, rest)) if name.chars().all(char::is_alphabetic) => (Some(name), rest),
            _ => (None, line),
        };
        let is_refused = line.starts_with('!');
        let words: Vec<String> = line
            .trim_start_matches('!')
            .split(' ')
            .map(|word| {
                if word == "RESTORE" {
                    return self.cli.last_restore();
                }
                let known = word.strip_prefix('{').and_then(|word| word.strip_suffix('}')).and_then(|n| known.get(n));
                known.map_or_else(|| word.to_owned(), String::clone)
            })
            .collect();
        let said = CliOutcome::of(&mut self.cli.command(&words));
        assert_eq!(said.code != Some(0), is_refused, "{words:?}: {said:?}");
        // A git that failed would have fallen into no trap either.
        assert!(!said.stderr.contains("git's state is not in the checkpoint"), "{words:?}: {said:?}");
        if let Some(name) = name {
            let mut words = said.stdout.split(|c: char| !c.is_ascii_hexdigit() && c != '-');
            let id = words.find(|word| word.len() == 36).unwrap_or_else(|| panic!("{words:?}: {said:?}"));
            known.insert(name.to_owned(), id.to_owned());
        }
    }

    /// Three letters take the place of three: where a file's size tells that it differs, git asks no filter.
    fn change(&self, text: &str) {
        for name in ["a", "b", "c", "d", "mod/a"] {
            write_in(self.root(), name, format!("{text}\n"));
        }
        self.git(&["update-index", "--add", "--cacheinfo", &format!("100644,{},new", self.blob(text))]);
    }

    fn blob(&self, text: &str) -> String {
        let file = write_in(self.cli.home(), "blob", text);
        self.git(&["hash-object", "-w", "--no-filters", &file.to_string_lossy()])
    }

    /// Git without anything that the repository asks for.
    fn git(&self, arguments: &[&str]) -> String {
        let quiet = ["-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null", "-c", "hook.trap.enabled=false"];
        git_in(self.root(), &[&quiet[..], arguments].concat())
    }

    /// Git with everything that the repository asks for.
    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut git = std::process::Command::new("git");
        git.args(arguments).current_dir(self.root()).env("HOME", self.cli.home().join("user"));
        git
    }

    fn tasks(&self) {
        let head = self.git(&["rev-parse", "HEAD~1"]);
        let db = rusqlite::Connection::open(self.root().join(".git/ic/state.db")).expect("the database");
        for (task, at) in [("T1", 100), ("T2", 200)] {
            db.execute("INSERT INTO tasks VALUES (?1, 't', 'done', ?2, ?3)", (task, &head, at)).expect("a task");
        }
    }
}

/// The verbs that are called at least once.
fn called() -> BTreeSet<String> {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/CLI.md")).expect("CLI.md");
    let verbs = page.lines().filter_map(|line| line.strip_prefix("## ic "));
    let is_called = |verb: &&str| {
        CALLS.iter().chain(&ACTS).chain(verb_calls::CALLS).any(|call| {
            let call = call.trim_start_matches('!');
            let call =
                call.split_once('=').filter(|(name, _)| name.chars().all(char::is_alphabetic)).map_or(call, |c| c.1);
            call.strip_prefix(verb).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        })
    };
    verbs.filter(|verb| !is_called(verb)).map(str::to_owned).collect()
}

#[test]
fn nothing_of_a_repository_is_run_by_looking_recording_and_moving_on() {
    assert_eq!(called(), BTreeSet::new(), "verbs that are not called here");
    for is_partial in [false, true] {
        let world = Trapped::new(is_partial);
        write_in(
            world.root(),
            "w.yaml",
            "name: w\nsteps:\n  - id: s\n    phase: p\n    run: \"true\"\n    compensate: skip\n",
        );
        let mut known = BTreeMap::new();
        for call in CALLS.iter().chain(verb_calls::CALLS) {
            assert_eq!(world.call(call, &mut known), BTreeSet::new(), "{call}");
        }
        // The traps are laid well: git itself falls into them.
        world.call("change now", &mut known);
        let ignored = ["ls-files", "-c", "-i", "--exclude-standard"];
        for command in [&["-c", "core.fsmonitor=", "status"], &["status"][..], &ignored] {
            let mut git = world.command(command);
            drop(git.output().expect("run git"));
        }
        let ran = world.ran();
        for name in ["filter.trap.clean", "filter.trapped.process", "core.fsmonitor", "users-filter"] {
            assert!(ran.contains(name), "{name} is no trap: {ran:?}");
        }
        assert!(!is_partial || ran.contains("remote-uploadpack"), "{ran:?}");
    }
}

#[test]
fn a_restore_runs_filters_of_the_user_and_no_others() {
    let world = Trapped::new(false);
    let mut known = BTreeMap::new();
    let users = BTreeSet::from(["users-filter".to_owned()]);
    for call in ACTS {
        let ran = world.call(call, &mut known);
        assert!(ran.is_subset(&users), "{call}: {ran:?}");
    }
}

#[test]
fn a_rewind_runs_filters_and_no_hook() {
    let world = Trapped::new(false);
    let mut known = BTreeMap::new();
    for call in ["init", "rewind init --profile devs", "tasks", "change ten"] {
        assert_eq!(world.call(call, &mut known), BTreeSet::new(), "{call}");
    }
    let ran = world.call("rewind to T1 --force --yes", &mut known);
    assert!(ran.iter().all(|name| name.contains("filter")), "{ran:?}");
}
