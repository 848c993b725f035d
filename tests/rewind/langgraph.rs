//! The database of a real `LangGraph` checkpointer, from `PyPI`. Where it cannot be had, the test says that it was skipped, and why.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use ic_testkit::Cli;
use serde_json::{Value, json};

use crate::project::BINARY;

/// A graph without a model; see the file.
const APP: &str = include_str!("langgraph/app.py");

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
        let probe = Command::new(python).args(["-c", "import langgraph.graph, langgraph.checkpoint.sqlite"]).output();
        probe.is_ok_and(|output| output.status.success())
    };
    if works(&python) {
        return Ok(python);
    }
    let run = |program: &Path, arguments: &[&str]| {
        let output =
            Command::new(program).args(arguments).output().map_err(|e| format!("{}: {e}", program.display()))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().lines().last().unwrap_or("nothing").to_owned();
        Err(format!("{} {}: {said}", program.display(), arguments.join(" ")))
    };
    run(Path::new("python3"), &["-m", "venv", directory.to_str().ok_or("the target directory is not UTF-8")?])?;
    run(
        &python,
        &["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "langgraph", "langgraph-checkpoint-sqlite"],
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
        let copies = app.directory("copies");
        app.call(&["fill", copies.to_str().expect("a name")]);
        app.cli.ok(["rewind", "init", "--profile", "langgraph", "--database", "threads.sqlite"]);
        Some(app)
    }

    /// An empty directory.
    fn directory(&self, name: &str) -> PathBuf {
        let directory = self.cli.home().join(name);
        std::fs::create_dir_all(&directory).expect("a directory");
        directory
    }

    fn call(&self, arguments: &[&str]) -> Value {
        self.call_on(&self.database, arguments)
    }

    fn call_on(&self, database: &Path, arguments: &[&str]) -> Value {
        let mut command = Command::new(&self.python);
        let output = command
            .arg(self.cli.root().join("app.py"))
            .arg(database)
            .args(arguments)
            .output()
            .expect("run the application");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    fn history(&self, thread: &str) -> Vec<Value> {
        self.call(&["history", thread]).as_array().expect("a list").clone()
    }

    /// Copies the database, with what is still in its log.
    fn copy_to(&self, path: &Path) {
        ic_testkit::connect(&self.database)
            .execute("VACUUM INTO ?1", [path.to_str().expect("a name")])
            .expect("copy it");
    }

    fn to(&self, checkpoint: &str) -> Value {
        self.cli.json(["rewind", "to", checkpoint, "--yes"])
    }
}

/// The rows of a thread, or those of all others.
fn rows(database: &Path, is_of_ann: bool) -> Vec<String> {
    let dump = ic_testkit::dump(database);
    let mut rows: Vec<String> =
        dump.lines().filter(|line| line.contains("|\"ann\"|") == is_of_ann).map(str::to_owned).collect();
    rows.sort_unstable();
    rows
}

/// What `ends` says of a database, with the steps `p` and `q` in this order: they run side by side, and either may begin.
fn with_pair_in_order(said: &Value) -> Value {
    let mut said = said.clone();
    for steps in said.as_array_mut().into_iter().flatten().filter_map(Value::as_array_mut) {
        for at in 1..steps.len() {
            if steps[at - 1] == "q" && steps[at] == "p" {
                steps.swap(at - 1, at);
            }
        }
    }
    said
}

#[test]
fn every_checkpoint_of_a_thread_is_a_moment_to_go_back_to() {
    let Some(app) = App::new() else { return };
    let (copies, rewound) = (app.cli.home().join("copies"), app.directory("rewound"));
    let before = ic_testkit::dump(&app.database);
    let mut ids: Vec<String> = std::fs::read_dir(&copies)
        .expect("the copies")
        .map(|entry| entry.expect("a copy").file_name().into_string().expect("a name"))
        .collect();
    ids.sort_unstable();
    assert_eq!(ids.len(), 24, "two runs of a step, a subgraph of two, a pair, a question, a step, and an edit");
    for id in &ids {
        let preview = app.cli.json(["rewind", "to", id, "--dry-run"]);
        let done = app.to(id);
        assert_eq!(done["deleted_row_counts"], {
            let none = json!({"writes": 0, "checkpoints": 0});
            if done["status"] == "nothing_to_do" { none } else { preview["affected_row_counts"].clone() }
        });
        assert_eq!(rows(&app.database, true), rows(&copies.join(id), true), "{id}: as it was then");
        app.copy_to(&rewound.join(id));
        let again = app.to(id);
        assert_eq!(again["status"], "nothing_to_do", "{id}");
        if let Some(rewind) = done["id"].as_str() {
            app.cli.json(["undo", rewind, "--yes"]);
        }
        assert_eq!(ic_testkit::dump(&app.database), before, "{id}: undone");
        assert_eq!(rows(&rewound.join(id), false), rows(&app.database, false), "{id}: other threads");
    }
    // What LangGraph makes of it is what it made of the database as it was then: the state, the end, the steps that run.
    let [was, is] = [&copies, &rewound].map(|directory| app.call_on(directory, &["ends", "ann"]));
    for id in &ids {
        assert_eq!(with_pair_in_order(&is[id]), with_pair_in_order(&was[id]), "{id}");
        let pending = is[id][0]["pending"].as_array().expect("tasks");
        assert!(pending.iter().all(|task| task[1].is_null() && task[3] == json!([])), "{id}: {pending:?}");
    }
    let history = app.history("ann");
    for state in &history {
        let id = state["id"].as_str().expect("an id");
        let at = |key: &str| (&is[id][0][key], &state[key]);
        assert_eq!(at("next").0, at("next").1, "{id}");
        assert_eq!(at("values").0, at("values").1, "{id}");
        if !state["next"].as_array().expect("tasks").is_empty() {
            let end = history.iter().take_while(|other| other["id"] != state["id"]).filter(|s| s["next"] == json!([]));
            let end = end.filter(|s| !is_edited(s)).last().expect("the end of its run");
            assert_eq!(is[id][1], end["values"], "{id}: the same result");
        }
    }
}

/// Whether the state was made by hand.
fn is_edited(state: &Value) -> bool {
    state["values"]["log"].as_array().and_then(|log| log.last()).is_some_and(|last| last == "edited")
}

#[test]
fn a_thread_goes_on_from_where_it_went_back_to() {
    let Some(app) = App::new() else { return };
    let before = ic_testkit::dump(&app.database);
    let (ann, bob) = (app.history("ann"), app.history("bob"));
    let position = |next: Value| ann.iter().position(|state| state["next"] == next).expect("its place");

    // Into the middle of the second run, and on: the same task writes its result for the same checkpoint again.
    let middle = &ann[position(json!(["b"]))];
    let middle_id = middle["id"].as_str().expect("an id");
    let id = app.to(middle_id)["id"].as_str().expect("an id").to_owned();
    let state = app.call(&["state", "ann"]);
    assert_eq!((&state["id"], &state["values"]), (&middle["id"], &middle["values"]));
    assert_eq!(state["pending"], json!([["b", null, null, []]]), "no result is waiting for it");
    assert_eq!(app.call(&["finish", "ann"]), ann[1]["values"]);
    assert_eq!(app.history("bob"), bob, "another thread is untouched");
    let refused = app.cli.run(["undo", &id, "--yes"]);
    assert_eq!((refused.code, refused.error().as_str()), (Some(1), "row_conflict"), "{refused:?}");
    assert!(refused.stderr.contains("writes ('ann', '', '"), "{refused:?}");
    app.to(middle_id);
    app.cli.json(["undo", &id, "--yes"]);
    assert_eq!(ic_testkit::dump(&app.database), before);

    // To the end of the first run, and something else is said.
    let end = ann.iter().filter(|state| state["next"] == json!([])).nth(2).expect("the first run's end");
    app.to(end["id"].as_str().expect("an id"));
    assert_eq!(app.call(&["state", "ann"]), *end);
    let said = app.call(&["say", "ann", "5"]);
    let log = said["log"].as_array().expect("a log");
    assert_eq!((&said["n"], log.iter().any(|line| line == "in5")), (&json!(32), true));
    assert!(!log.iter().any(|line| line == "in10"), "{said}");
}

#[test]
fn inspect_knows_a_checkpointer() {
    let Some(app) = App::new() else { return };
    let looked = app.cli.json(["rewind", "inspect", "threads.sqlite"]);
    assert_eq!(looked["proposal"]["profile"], "langgraph");
    assert_eq!(looked["proposal"]["tables"][0]["boundary"], "inclusive");
    assert_eq!(looked["proposal"]["anchor"]["scope"], json!(["thread_id"]));
}
