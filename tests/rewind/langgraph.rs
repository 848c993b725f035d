//! The database of a real `LangGraph` checkpointer, from `PyPI`. Where it cannot be had, the test says that it was skipped, and why.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use ic_testkit::Cli;
use serde_json::{Value, json};

use crate::world::BINARY;

/// A small graph without a model: `a` adds one, `b` doubles; both write down what they saw.
const APP: &str = r#"
import json, operator, sqlite3, sys
from typing import Annotated, TypedDict
from langgraph.graph import END, START, StateGraph
from langgraph.checkpoint.sqlite import SqliteSaver

class State(TypedDict):
    n: int
    log: Annotated[list, operator.add]

def a(state): return {"n": state["n"] + 1, "log": [f"a{state['n']}"]}
def b(state): return {"n": state["n"] * 2, "log": [f"b{state['n']}"]}

graph = StateGraph(State)
graph.add_node("a", a)
graph.add_node("b", b)
graph.add_edge(START, "a")
graph.add_edge("a", "b")
graph.add_edge("b", END)
connection = sqlite3.connect(sys.argv[1], check_same_thread=False)
app = graph.compile(checkpointer=SqliteSaver(connection))
verb, thread = sys.argv[2], {"configurable": {"thread_id": sys.argv[3]}}
if verb == "fill":
    for n in [1, 10]:
        for name in sys.argv[3:]:
            app.invoke({"n": n, "log": [f"in{n}"]}, {"configurable": {"thread_id": name}})
    print("null")
elif verb == "say":
    print(json.dumps(app.invoke({"n": int(sys.argv[4]), "log": [f"in{sys.argv[4]}"]}, thread)))
elif verb == "go":
    print(json.dumps(app.invoke(None, thread)))
else:
    states = [app.get_state(thread)] if verb == "state" else list(app.get_state_history(thread))
    print(json.dumps([{"id": s.config["configurable"].get("checkpoint_id"), "values": s.values, "next": list(s.next)}
                      for s in states]))
"#;

/// The Python of an environment that has `LangGraph`, or why there is none; looked for once.
fn python() -> Result<PathBuf, String> {
    static PYTHON: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    PYTHON.get_or_init(environment).clone()
}

/// The environment, which is made below the target directory where it is not there yet.
fn environment() -> Result<PathBuf, String> {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("langgraph");
    let python = directory.join("bin/python");
    let works = |python: &Path| {
        let probe =
            Command::new(python).args(["-c", "import langgraph.graph, langgraph.checkpoint.sqlite"]).output();
        probe.is_ok_and(|output| output.status.success())
    };
    if works(&python) {
        return Ok(python);
    }
    let run = |program: &Path, arguments: &[&str]| {
        let output = Command::new(program)
            .args(arguments)
            .output()
            .map_err(|e| format!("{}: {e}", program.display()))?;
        if output.status.success() {
            return Ok(());
        }
        let said =
            String::from_utf8_lossy(&output.stderr).trim().lines().last().unwrap_or("nothing").to_owned();
        Err(format!("{} {}: {said}", program.display(), arguments.join(" ")))
    };
    run(
        Path::new("python3"),
        &["-m", "venv", directory.to_str().ok_or("the target directory is not UTF-8")?],
    )?;
    run(
        &python,
        &[
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "langgraph",
            "langgraph-checkpoint-sqlite",
        ],
    )?;
    if works(&python) { Ok(python) } else { Err("LangGraph was installed and cannot be imported".to_owned()) }
}

struct App {
    python: PathBuf,
    cli: Cli,
    database: PathBuf,
}

impl App {
    /// Three threads with two runs of the graph each; `None` where `LangGraph` cannot be had.
    fn new() -> Option<Self> {
        let python = match python() {
            Ok(python) => python,
            Err(why) => {
                println!("skipped: there is no LangGraph here: {why}");
                return None;
            }
        };
        let cli = Cli::new(BINARY);
        let database = cli.root().join("threads.sqlite");
        std::fs::write(cli.root().join("app.py"), APP).expect("the application");
        let app = Self { python, cli, database };
        app.call(&["fill", "ann", "bob", "cid"]);
        app.cli.ok(["rewind", "init", "--profile", "langgraph", "--database", "threads.sqlite"]);
        Some(app)
    }

    fn call(&self, arguments: &[&str]) -> Value {
        let mut command = Command::new(&self.python);
        let output = command
            .arg(self.cli.root().join("app.py"))
            .arg(&self.database)
            .args(arguments)
            .output()
            .expect("run the application");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    fn history(&self, thread: &str) -> Vec<Value> {
        self.call(&["history", thread]).as_array().expect("a list").clone()
    }
}

#[test]
fn a_thread_goes_back_and_langgraph_goes_on() {
    let Some(app) = App::new() else { return };
    let before = ic_testkit::dump(&app.database);
    let (ann, bob) = (app.history("ann"), app.history("bob"));
    // The end of the first run, where the second was not said yet.
    let end =
        ann.iter().filter(|state| state["next"] == json!([])).nth(1).expect("the first run's end").clone();
    let newer = ann.iter().position(|state| *state == end).expect("its place");
    let target = end["id"].as_str().expect("an id");

    let preview = app.cli.json(["rewind", "to", target, "--dry-run"]);
    assert_eq!(preview["affected_row_counts"]["checkpoints"], json!(newer));
    let done = app.cli.json(["rewind", "to", target, "--yes"]);
    assert_eq!(done["deleted_row_counts"], preview["affected_row_counts"]);
    assert!(done["deleted_row_counts"]["writes"].as_u64() > Some(0), "{done}");
    assert_eq!(app.call(&["state", "ann"])[0], end, "LangGraph loads the thread as it was then");
    assert_eq!(app.history("ann"), ann[newer..]);
    assert_eq!(app.history("bob"), bob, "another thread is untouched");

    let said = app.call(&["say", "ann", "5"]);
    assert_eq!(
        said,
        json!({"n": 12, "log": ["in1", "a1", "b2", "in5", "a5", "b6"]}),
        "and it goes on from there"
    );

    // What was said since stands in nobody's way: its checkpoints have ids of their own.
    let id = done["rewind_id"].as_str().expect("an id");
    app.cli.json(["rewind", "to", target, "--yes"]);
    app.cli.json(["rewind", "undo", id, "--yes"]);
    assert_eq!(sorted(&ic_testkit::dump(&app.database)), sorted(&before));
    assert_eq!(app.history("ann"), ann);
}

#[test]
fn a_thread_goes_back_into_the_middle_of_a_run() {
    let Some(app) = App::new() else { return };
    let history = app.history("cid");
    let middle = history.iter().find(|state| state["next"] == json!(["b"])).expect("between a and b").clone();
    app.cli.json([
        "rewind",
        "to",
        middle["id"].as_str().expect("an id"),
        "--scope",
        "thread_id=cid",
        "--yes",
    ]);
    let state = app.call(&["state", "cid"])[0].clone();
    assert_eq!(state["id"], middle["id"]);
    // What step b had written for this very checkpoint is still there: LangGraph takes it instead of running b again.
    assert_eq!(state["values"], history[0]["values"]);
    assert_eq!(app.call(&["go", "cid"]), history[0]["values"], "the rest of the run comes to the same");
}

fn sorted(dump: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = dump.lines().collect();
    lines.sort_unstable();
    lines
}
