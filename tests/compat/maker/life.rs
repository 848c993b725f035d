//! A small life that leaves something of everything in a ledger.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use super::Maker;

impl Maker {
    pub(super) fn life(&self) {
        self.new_world();
        self.life_of_runs();
        self.life_of_checkpoints();
        self.life_of_effects();
        self.life_of_rollbacks();
        self.life_of_sessions();
        self.keep("life");
        self.answers();
    }

    /// A run that went through its phases: gates, skips, verdicts, an override, a redaction.
    fn life_of_runs(&self) {
        let gates = r#"{"b→c": [{"check": "artifact_exists", "phase": "b"}]}"#;
        let create = ["run", "create", "--goal", "Add a login", "--phases", "a,b,c,d", "--scope-id", "sprint-1"];
        let run = self.world.ic(&[&create[..], &["--gates", gates, "--format", "text"]].concat());
        self.put("docs/idea.md", "idea");
        self.call(0, &format!("run artifact add {run} --path docs/idea.md --type report"));
        self.call(0, &format!(r#"run set {run} --metadata-merge {{"ticket":12,"share":0.1}}"#));
        self.call(0, &format!("run advance {run}"));
        self.call(1, &format!("gate check {run}"));
        self.call(1, &format!("run advance {run}"));
        self.call(0, &format!("gate override {run} --reason reviewed"));
        let dispatch = self.id(&format!("dispatch create {run} --name build"));
        self.call(0, &format!("dispatch start {dispatch} --pid 1"));
        self.call(0, &format!("dispatch tokens {dispatch} --in 1200 --out 340 --cache 80"));
        self.put("src/login.rs", "login");
        let commit = self.world.commit("login");
        self.call(0, &format!("dispatch record {dispatch} --commit {commit} --file src/login.rs"));
        self.call(0, &format!("dispatch complete {dispatch} --verdict pass --summary tested"));
        let late = self.id(&format!("dispatch create {run} --name late"));
        self.call(0, &format!("dispatch start {late}"));
        self.call(0, &format!("dispatch fail {late} --error silent --timed-out"));
        let never = self.id(&format!("dispatch create {run} --name never"));
        self.call(0, &format!("dispatch cancel {never} --reason superfluous"));
        let agent = self.id(&format!("run agent add {run} --type codex --dispatch {dispatch}"));
        self.call(0, &format!("run agent update {agent} --status completed"));
        self.call(0, &format!("run advance {run}"));
        let events = self.world.cli.json(["events", "tail", run.as_str(), "--json"]);
        let with_reason = events.as_array().expect("events").iter().find(|event| event["kind"] == "override");
        let seq = with_reason.map_or(&Value::Null, |event| &event["seq"]);
        self.call(0, &format!("events redact {seq} --reason pasted"));
        self.call(0, "events tail --cursor reader --limit 3");
        self.call(0, "events tail --cursor other --limit 7");
        let run = self.id("run create --goal superfluous --phases a,b");
        self.call(0, &format!("run cancel {run} --reason superseded"));
        let run = self.id("run create --goal docs --phases draft,edit,polish,done --scope-id docs");
        self.call(0, &format!("run skip {run} polish --reason internal"));
        for text in ["draft", "edited"] {
            self.put("docs/guide.md", text);
            self.call(0, &format!("run artifact add {run} --path docs/guide.md"));
            if text == "draft" {
                self.call(0, &format!("run advance {run}"));
            }
        }
        self.call(0, &format!("run rollback {run} --to-phase draft --reason wrong"));
        self.call(0, &format!("run advance {run}"));
    }

    /// Keeps what the tree of a checkpoint is to be when it is restored. The secret is purged later on.
    fn remember(&self, id: &str) {
        let tree = self.made(&format!("life/trees/{id}"));
        std::fs::create_dir_all(tree.parent().expect("a directory")).expect("the trees");
        ic_testkit::copy_over(self.root(), &tree);
        for part in [".git", "data", "ignored"] {
            let _ = std::fs::remove_dir_all(tree.join(part));
        }
        for part in [".env", "secret.txt"] {
            let _ = std::fs::remove_file(tree.join(part));
        }
    }

    /// Checkpoints of every kind: restored, undone, redone, deleted, purged, pruned; with a stash, branches, links and modes.
    fn life_of_checkpoints(&self) {
        let at = |path: &str| self.root().join(path);
        self.put("bin/tool", "#!/bin/sh\necho tool");
        std::fs::set_permissions(at("bin/tool"), PermissionsExt::from_mode(0o755)).expect("a mode");
        symlink("bin/tool", at("link")).expect("a link");
        std::fs::create_dir(at("empty")).expect("a directory");
        std::fs::write(at("blob.bin"), b"\0\xffbinary").expect("a file");
        std::fs::write(self.root().join(OsStr::from_bytes(b"caf\xe9.txt")), "latin").expect("a file");
        self.put(".env", "TOKEN=1");
        self.put("ignored/cache", "ignored");
        let local = rusqlite::Connection::open(at("local.sqlite")).expect("a database");
        local.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1)").expect("a table");
        drop(local);
        self.put("secret.txt", "the secret that was purged");
        self.remember(&self.id("checkpoint create --name before-refactor --message well"));
        let named = self.id("checkpoint create --message second");
        self.put("docs/idea.md", "a second idea");
        self.world.remove("secret.txt");
        self.call(0, "checkpoint create --auto --conversation chat-1 --message rename");
        self.call(0, "checkpoint create --auto --settled --conversation chat-1");
        self.call(0, "checkpoint restore --name before-refactor --strategy files-only --force --yes");
        for verb in ["redo", "undo", "redo"] {
            self.call(0, &format!("{verb} {} --yes", self.world.cli.last_restore()));
        }
        self.call(0, &format!("checkpoint delete {named}"));
        self.call(0, "checkpoint purge secret.txt --yes");
        self.world.git(&["branch", "feature"]);
        self.put("README", "stashed");
        self.world.git(&["stash", "push", "-q"]);
        self.put("docs/idea.md", "a third idea");
        self.world.git(&["add", "docs/idea.md"]);
        self.remember(&self.id("checkpoint create --name with-a-stash"));
        for n in 1..=4 {
            self.put("docs/idea.md", &format!("idea {n} of a chat"));
            self.remember(&self.id("checkpoint create --auto --conversation chat-2"));
        }
        self.call(0, "checkpoint prune --older-than 0s --keep-last 2 --grace 0s");
    }

    /// Workflows that ran, that failed and were rolled back, that stopped; compensations in every state.
    fn life_of_effects(&self) {
        for (name, second, exit, more) in [
            ("flow", "run: 'echo two > two.txt', compensate: {shell: 'echo two >> ../outside/undone'}", 0, ""),
            ("broken", "run: 'exit 3', compensate: {skip: 'nothing outside'}", 1, "--on-failure rollback"),
            (
                "stops",
                "run: 'test -e ../outside/repaired', compensate: {skip: 'nothing outside'}",
                1,
                "--on-failure stop",
            ),
        ] {
            let one = format!(
                "  - {{id: one, phase: main, run: 'echo {name} > {name}.txt', compensate: {{shell: 'echo {name} >> ../outside/undone'}}}}"
            );
            let two = format!("  - {{id: two, needs: [one], {second}}}");
            self.put(&format!("{name}.yaml"), &format!("name: {name}\nsteps:\n{one}\n{two}"));
            self.call(exit, &format!("workflow run {name}.yaml {more}"));
        }
        let run = self.id("run create --goal undone --phases a,b");
        self.effect(&run, "book");
        self.effect(&run, "pay");
        self.call(0, &format!("compensation run {run} --yes"));
        let run = self.id("run create --goal fails --phases a,b");
        self.effect(&run, "book");
        let fails = "test -e ../outside/repaired";
        self.world.ic(&["compensation", "add", &run, "--step", "pay", "--shell", fails]);
        self.call(4, &format!("compensation run {run} --yes"));
        let run = self.id("run create --goal stands --phases a,b");
        self.effect(&run, "book");
        self.call(0, &format!("compensation add {run} --step configure --restore-file README"));
        self.call(0, &format!("compensation add {run} --step build --skip --reason ignored"));
        self.call(0, &format!("compensation add {run} --step announce --pivot --reason mail"));
    }

    /// Rows that were rewound and came back, and rollbacks over every layer, done and undone.
    fn life_of_rollbacks(&self) {
        for (time, name) in [(100, "first"), (200, "second"), (300, "third")] {
            self.task(name, time, "");
        }
        self.call(0, "rewind to second --yes");
        self.call(0, &format!("undo {} --yes", self.each("rewind list", "id")[0]));
        self.call(0, "rewind to second --yes");
        for (time, name) in [(400, "undone"), (500, "done")] {
            let run = self.id(&format!("run create --goal {name} --phases a,b,c --scope-id {name}"));
            self.call(0, &format!("run advance {run}"));
            self.put(&format!("work/{name}.txt"), "work");
            self.remember(&self.id(&format!("checkpoint create --run {run}")));
            self.world.commit(name);
            self.task(&format!("task-{name}"), time, "");
            self.call(0, &format!("run advance {run}"));
            self.call(0, &format!("run rollback {run} --to-phase a --layer=all --force --yes"));
            if name == "undone" {
                let id = &self.each(&format!("rollback list {run}"), "id")[0];
                self.call(0, &format!("redo {id} --yes"));
            }
        }
    }

    /// What a coding agent says about an event.
    fn hook(&self, event: &str, session: &str, prompt: &str, more: Value) {
        let mut said =
            json!({"session_id": session, "prompt_id": prompt, "cwd": self.root(), "hook_event_name": event});
        if let (Some(said), Value::Object(more)) = (said.as_object_mut(), more) {
            said.extend(more);
        }
        let input = said.to_string();
        let outcome = self.world.cli.run_with_input(["hook", "claude-code", event], input.as_bytes());
        assert_eq!(outcome.code, Some(0), "{event}: {outcome:?}");
    }

    /// A prompt, one tool call that writes a file, and the agent's stop.
    fn turn(&self, session: &str, prompt: &str, text: &str, path: &str) {
        let input = json!({"file_path": self.root().join(path)});
        let call = json!({"tool_name": "Write", "tool_use_id": format!("call-{prompt}"), "tool_input": input});
        self.hook("UserPromptSubmit", session, prompt, json!({"prompt": text}));
        self.hook("PreToolUse", session, prompt, call.clone());
        self.put(path, &format!("{text}, done by an agent"));
        self.hook("PostToolUse", session, prompt, call);
        self.hook("Stop", session, prompt, json!({}));
    }

    /// A session that ended, one that works, a prompt that was undone, one that was undone alone, a subagent's call.
    fn life_of_sessions(&self) {
        self.turn("session-1", "prompt-1", "add a login", "src/login.rs");
        self.turn("session-1", "prompt-2", "make it longer", "src/login.rs");
        let run = &self.each("session list", "run_id")[0];
        self.call(0, &format!("undo --run {run} --layer workflow,effects,files,git --reason no --yes"));
        self.hook("UserPromptSubmit", "session-1", "prompt-3", json!({"prompt": "do it again"}));
        let call = json!({
            "tool_name": "Bash", "tool_use_id": "call-3", "agent_id": "agent-1", "agent_type": "general-purpose",
            "tool_input": {"command": "echo sub > sub.txt"},
        });
        self.hook("PreToolUse", "session-1", "prompt-3", call.clone());
        self.put("sub.txt", "sub");
        self.hook("PostToolUse", "session-1", "prompt-3", call);
        self.hook("Stop", "session-1", "prompt-3", json!({}));
        self.hook("SessionEnd", "session-1", "prompt-3", json!({"reason": "exit"}));
        self.turn("session-2", "prompt-4", "write a guide", "docs/agent.md");
        self.turn("session-2", "prompt-5", "add an index", "docs/index.md");
        let shown = self.world.cli.json(["session", "show", "session-2", "--json"]);
        let prompt = ic_testkit::text_of(&shown["prompts"][0], "id");
        self.call(0, &format!("undo --only {prompt} --yes"));
        self.hook("UserPromptSubmit", "session-2", "prompt-6", json!({"prompt": "and now?"}));
    }

    /// What every reading verb says about the life.
    fn answers(&self) {
        const PLAIN: &str = "run list|dispatch list|checkpoint list|checkpoint list --tree|rollback list|rewind list|events cursor list|\
            events verify|gate rules|rewind status|checkpoint verify|checkpoint verify --read-data|where|config show|\
            workflow validate flow.yaml|run current|checkpoint diff before-refactor with-a-stash|health|version|session list|\
            events tail --all|blame src/login.rs|blame docs/index.md|blame sub.txt";
        let mut questions: Vec<String> = PLAIN.split('|').map(str::to_owned).collect();
        for (list, verbs) in [
            (
                "run list",
                "run status|run phase|run events|run history|run agent list|run artifact list|gate check|compensation list|\
                 compensation coverage|log --all",
            ),
            ("dispatch list", "dispatch show"),
            ("checkpoint list", "checkpoint show --files"),
            ("rollback list", "rollback show"),
            ("rewind list", "rewind status"),
            ("session list", "session show --calls"),
        ] {
            for id in self.each(list, "id") {
                questions.extend(verbs.split('|').map(|verb| format!("{verb} {id}")));
            }
        }
        for (n, question) in questions.iter().enumerate() {
            let words: Vec<&str> = question.split_whitespace().chain(["--json"]).collect();
            let outcome = self.world.cli.run(&words);
            let answer = json!({"words": words, "exit": outcome.code, "said": outcome.stdout});
            self.write(&format!("life/answers/{n:03}.json"), &answer.to_string());
        }
        self.back_to("life");
    }
}
