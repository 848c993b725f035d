//! Agents, a person and a formatter in the same files by chance, and commits of all of them: the undo of one agent ends with 0 only if none
//! of its lines is left and each line of the others is there, and with 1 only if nothing was changed.

use ic_testkit::{Random, TestWorld, rounds, tell};
use serde_json::json;

use super::history::say;
use crate::project::in_git;

const FILES: [&str; 2] = ["f.txt", "g.txt"];
/// The number of lines in each file, far from one another.
const LINES: usize = 3;
const AGENTS: usize = 2;

/// Who set a line to what, oldest first.
type Line = Vec<(Option<usize>, String)>;

/// The lines of all files.
struct Model {
    lines: Vec<Line>,
    count: usize,
}

impl Model {
    fn new() -> Self {
        let lines = (0..FILES.len() * LINES).map(|at| vec![(None, format!("base {at}"))]);
        Self { lines: lines.collect(), count: 0 }
    }

    /// Sets a line by chance; returns its file.
    fn set(&mut self, random: &mut Random, who: Option<usize>) -> &'static str {
        let at = random.place_in(self.lines.len());
        self.count += 1;
        let name = who.map_or("person".to_owned(), |who| format!("agent {who}"));
        self.lines[at].push((who, format!("{name} {}", self.count)));
        FILES[at / LINES]
    }

    fn write(&self, world: &TestWorld) {
        for (file, lines) in FILES.iter().zip(self.lines.chunks(LINES)) {
            let far = "-\n".repeat(4);
            let line = |(at, line): (usize, &Line)| {
                let (_, value) = line.last().expect("a value");
                format!("{at}{far}{value}\n{far}")
            };
            world.write(file, &lines.iter().enumerate().map(line).collect::<String>());
        }
    }

    /// What a line is without an agent; `None`: others changed it after the agent had.
    fn without(line: &Line, agent: usize) -> Option<&str> {
        let first = line.iter().position(|(who, _)| *who == Some(agent));
        let Some(first) = first else { return line.last().map(|(_, value)| value.as_str()) };
        let is_alone = line[first..].iter().all(|(who, _)| *who == Some(agent));
        is_alone.then(|| line[first - 1].1.as_str())
    }
}

fn read(world: &TestWorld) -> Vec<String> {
    let lines = |file: &&str| -> Vec<String> {
        let text = world.read(file).expect("a file");
        text.lines().filter(|line| line.contains(' ')).map(str::to_owned).collect()
    };
    FILES.iter().flat_map(lines).collect()
}

/// The hooks around a tool call.
fn called(world: &TestWorld, agent: usize, n: usize, named: Option<&str>, deed: impl FnOnce()) {
    let (tool, input) = match named {
        Some(file) => ("Edit", json!({ "file_path": world.cli.root().join(file) })),
        None => ("Bash", json!({ "command": "make" })),
    };
    let said = [("tool_name", json!(tool)), ("tool_input", input), ("tool_use_id", json!(format!("c{n}")))];
    say(world, agent, "PreToolUse", &said);
    deed();
    say(world, agent, "PostToolUse", &said);
}

fn commit(world: &TestWorld) {
    world.git(&["add", "-A"]);
    world.git(&["commit", "-q", "--allow-empty", "-m", "all"]);
}

/// One thing that happens.
fn turn(world: &TestWorld, random: &mut Random, model: &mut Model, n: usize) {
    let agent = random.place_in(AGENTS);
    match random.below(10) {
        // A person, or a formatter, while no call runs; an agent may be between two.
        0..=2 => {
            model.set(random, None);
            model.write(world);
        }
        3 => commit(world),
        4 => called(world, agent, n, None, || commit(world)),
        // The shell of the other one runs at the same time, and does nothing here.
        5 | 6 => {
            let file = model.set(random, Some(agent));
            called(world, (agent + 1) % AGENTS, 1000 + n, None, || {
                called(world, agent, n, Some(file), || model.write(world));
            });
        }
        kind => {
            let file = model.set(random, Some(agent));
            called(world, agent, n, (kind == 7).then_some(file), || model.write(world));
        }
    }
}

/// Undoes what an agent did and brings it back; returns whether it was undone wholly.
fn undone(world: &TestWorld, model: &Model, agent: usize, id: &str, when: &str) -> bool {
    let before = world.state();
    let outcome = world.cli.run(["undo", "--only", id, "--yes", "--json"]);
    let wanted: Vec<Option<&str>> = model.lines.iter().map(|line| Model::without(line, agent)).collect();
    if outcome.code == Some(1) {
        assert_eq!(outcome.error(), "file_conflict", "{when}: {outcome:?}");
        world.state().assert_is(&before, when);
        assert!(wanted.iter().any(Option::is_none), "{when}: no other person changed its lines: {outcome:?}");
        let kept = world.cli.run(["undo", "--only", id, "--keep-theirs", "--yes", "--json"]);
        assert_eq!((kept.code, &kept.json()["status"]), (Some(4), &json!("rolled_back_in_part")), "{when}: {kept:?}");
        let shown = world.cli.json(["dispatch", "show", id, "--json"]);
        assert!(shown["rolled_back_by"].is_null(), "{when}: {shown}");
    } else {
        assert_eq!(outcome.code, Some(0), "{when}: {outcome:?}");
    }
    let is_whole = outcome.code == Some(0);
    for ((is, line), wanted) in read(world).iter().zip(&model.lines).zip(wanted) {
        let (who, last) = line.last().expect("a value");
        if *who != Some(agent) {
            assert_eq!(is, last, "{when}: a line of others is lost");
        } else if is_whole {
            assert!(!is.starts_with(&format!("agent {agent} ")), "{when}: its line {is} is left");
            assert_eq!(wanted.unwrap_or(is), is, "{when}");
        }
    }
    let run = world.cli.json(["dispatch", "show", id, "--json"])["run_id"].clone();
    world.cli.ok(["redo", "--run", run.as_str().expect("its run"), "--yes"]);
    world.state().assert_outside_is(&before, when);
    is_whole
}

#[test]
fn none_of_an_agents_lines_is_left_with_exit_0_and_no_line_of_a_person_or_another_is_lost() {
    let mut random = Random::seeded();
    let (mut whole, mut conflicts) = (0, 0);
    for round in rounds(8) {
        let world = in_git();
        let mut model = Model::new();
        model.write(&world);
        world.commit("base");
        for agent in 0..AGENTS {
            say(&world, agent, "UserPromptSubmit", &[("prompt", json!(format!("work {agent}")))]);
        }
        for n in 0..6 + random.place_in(6) {
            turn(&world, &mut random, &mut model, n);
        }
        (0..AGENTS).for_each(|agent| say(&world, agent, "Stop", &[]));
        for agent in 0..AGENTS {
            let shown = world.cli.json(["session", "show", &format!("s{agent}"), "--json"]);
            let id = shown["prompts"][0]["id"].as_str().expect("the work of its prompt");
            let when = format!("round {round}, without {agent} of {:#?}", model.lines);
            let is_whole = undone(&world, &model, agent, id, &when);
            *(if is_whole { &mut whole } else { &mut conflicts }) += 1;
        }
    }
    tell(&format!("{whole} wholly undone, {conflicts} conflicts"));
    // By chance there may be more conflicts, but never conflicts alone.
    assert!(8 * whole > conflicts, "{whole} and {conflicts}");
}
