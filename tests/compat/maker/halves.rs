//! Operations that were aborted, one world for each moment.

use serde_json::json;

use super::{Maker, Moments};

/// Statements on the application's database before which a rewind is aborted, too.
const ON_ROWS: [usize; 7] = [2, 8, 14, 20, 26, 32, 40];

impl Maker {
    /// The operation, aborted before the n-th statement; whether it came to that.
    fn aborts_at(&self, name: &str, variable: &str, n: usize, words: &[&str]) -> bool {
        self.back_to(&format!("{name}/before"));
        let ended = self.world.cli.command(words).env(variable, n.to_string()).output().expect("start ic");
        ended.status.code().is_none()
    }

    /// The operation from the world that is there, its end, and what it leaves when it is aborted just after commits of the ledger.
    fn half(&self, name: &str, exit: i32, words: &[&str]) {
        self.keep(&format!("{name}/before"));
        let log = self.made("log");
        let ended = self.world.cli.command(words).env("IC_TEST_SQL_LOG", &log).output().expect("start ic");
        assert_eq!(ended.status.code(), Some(exit), "{words:?}: {ended:?}");
        self.keep(&format!("{name}/after"));
        self.write(&format!("{name}/words.json"), &json!(words).to_string());
        let statements = std::fs::read_to_string(&log).expect("the statements");
        std::fs::remove_file(&log).expect("remove the statements");
        // An abort before the statement that follows a commit; nothing follows the last statement.
        let commits = statements.lines().enumerate().filter(|(_, line)| *line == "COMMIT");
        let mut moments: Vec<(&str, usize)> = commits.map(|(at, _)| ("IC_TEST_ABORT_BEFORE", at + 2)).collect();
        if self.moments == Moments::Few {
            // The last commit may have no statement after it.
            while moments.last().is_some_and(|(variable, n)| !self.aborts_at(name, variable, *n, words)) {
                moments.pop();
            }
            while moments.len() > 3 {
                moments.remove(moments.len() / 2);
            }
        }
        if self.moments == Moments::All || moments.len() < 3 {
            moments.extend(ON_ROWS.map(|n| ("IC_TEST_REWIND_ABORT_BEFORE", n)));
        }
        let mut kept = 0;
        for (variable, n) in moments {
            if self.aborts_at(name, variable, n, words) {
                kept += 1;
                self.keep(&format!("{name}/{kept:02}"));
            }
        }
        self.back_to(&format!("{name}/after"));
    }

    /// A run at d: work in a that stays, and work in b, c and d in every layer.
    fn story(&self) -> String {
        self.new_world();
        let run = self.id("run create --goal story --phases a,b,c,d,e,f");
        self.task("planned", 100, &self.world.head());
        self.put("kept/plan.md", "plan");
        self.call(0, &format!("run artifact add {run} --path kept/plan.md"));
        self.world.commit("plan");
        self.effect(&run, "reserve");
        self.call(0, &format!("run advance {run}"));
        self.put("src/a.rs", "one");
        self.put("src/b.rs", "two");
        let commit = self.world.commit("work");
        let dispatch = self.id(&format!("dispatch create {run} --name done"));
        self.call(0, &format!("dispatch start {dispatch}"));
        self.call(0, &format!("dispatch record {dispatch} --commit {commit} --file src/a.rs --file src/b.rs"));
        self.call(0, &format!("dispatch complete {dispatch} --verdict pass"));
        self.call(0, &format!("run artifact add {run} --path src/a.rs"));
        self.effect(&run, "book");
        self.task("built", 200, &commit);
        self.call(0, &format!("run advance {run}"));
        self.put("README", "changed");
        self.world.remove("src/b.rs");
        let commit = self.world.commit("more");
        self.effect(&run, "pay");
        self.task("paid", 300, &commit);
        self.call(0, &format!("run skip {run} e --reason late"));
        self.call(0, &format!("run advance {run}"));
        self.put("src/a.rs", "not committed");
        self.put("notes/todo", "not tracked");
        self.world.git(&["add", "src/a.rs"]);
        self.call(0, &format!("run agent add {run} --type codex"));
        self.call(0, &format!("dispatch create {run} --name pending"));
        self.effect(&run, "mail");
        self.task("mailed", 400, &commit);
        run
    }

    /// A workflow of three steps with files and effects; its last step fails where outside/fail is there.
    fn flow(&self) {
        self.new_world();
        let step = |id: &str, more: &str, run: &str| {
            format!("  - {{id: {id}, {more}run: '{run}', compensate: {{shell: 'echo {id} >> ../outside/undone'}}}}\n")
        };
        let text = [
            "name: flow\nsteps:\n".to_owned(),
            step("one", "phase: main, ", "echo one > one.txt; echo one >> ../outside/did"),
            step("two", "needs: [one], ", "echo two > README"),
            step("three", "needs: [two], phase: last, ", "echo three > three.txt; test ! -e ../outside/fail"),
        ];
        self.world.write("flow.yaml", &text.concat());
        self.world.commit("flow");
    }

    pub(super) fn halves(&self) {
        let run = self.story();
        self.keep("story");
        self.half("rollback", 0, &["run", "rollback", &run, "--to-phase", "a", "--layer=all", "--yes"]);
        let id = &self.each(&format!("rollback list {run}"), "id")[0];
        self.half("rollback-undo", 0, &["redo", id, "--without-effects", "--yes"]);
        self.back_to("story");
        self.half("compensation", 0, &["compensation", "run", &run, "--yes"]);
        self.back_to("story");
        self.half("rewind", 0, &["rewind", "to", "built", "--force", "--yes"]);
        let id = &self.each("rewind list", "id")[0];
        self.half("rewind-undo", 0, &["undo", id, "--yes"]);
        self.back_to("story");
        let id = &self.each(&format!("checkpoint list --run {run}"), "id")[1];
        self.half("restore", 0, &["checkpoint", "restore", id, "--force", "--yes"]);
        self.half("restore-undo", 0, &["redo", "--yes"]);
        std::fs::remove_dir_all(self.made("story")).expect("remove what only the others need");
        self.flow();
        self.half("workflow", 0, &["workflow", "run", "flow.yaml"]);
        let run = self.world.newest_run();
        self.half("workflow-rollback", 0, &["workflow", "rollback", &run, "--yes"]);
        self.flow();
        std::fs::write(self.home().join("outside/fail"), "").expect("a reason to fail");
        self.half("workflow-failed", 1, &["workflow", "run", "flow.yaml", "--on-failure", "rollback"]);
    }
}
