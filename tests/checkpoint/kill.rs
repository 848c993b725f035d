//! kill -9 at random moments of restores and captures. The seed is printed; `IC_TEST_SEED` repeats a campaign.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ic_testkit::{Cli, CliOutcome, Random, rounds, tell};

use crate::forest::{Forest, set_mode};
use crate::project::{create, list, make_again, project, restore, restored_elsewhere, take_back, tree};
use crate::snapshot::{Node, Snapshot};

/// Starts a call, kills it after `wait`, and returns whether it had ended by itself.
fn kill_after(mut command: Command, wait: Duration) -> bool {
    let mut child: Child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("start ic");
    std::thread::sleep(wait);
    // It fails if the call has ended, which is what the status says.
    let _ = child.kill();
    child.wait().expect("wait for ic").code().is_some()
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).expect("microseconds")
}

/// Two states of one tree that differ everywhere, and what they are called.
struct TwoStates {
    cli: Cli,
    ids: [String; 2],
    trees: [Snapshot; 2],
    /// How long a restore takes, in microseconds.
    usual: u64,
}

impl TwoStates {
    fn new(directories: usize, files: usize) -> Self {
        let cli = project();
        let mut states = Vec::new();
        for state in 0..2 {
            plant(&cli, state, directories, files);
            states.push((create(&cli), tree(&cli)));
        }
        let [(a, at), (b, bt)] = <[_; 2]>::try_from(states).ok().expect("two states");
        let started = Instant::now();
        restore(&cli, &a);
        let usual = micros(started.elapsed());
        println!("a restore of {directories} * {files} files takes {usual} us");
        Self { cli, ids: [a, b], trees: [at, bt], usual }
    }

    fn is_interrupted(&self) -> bool {
        let count = unfinished(&self.cli);
        assert!(count <= 1, "{count} restores are unfinished at once");
        count == 1
    }

    /// Every path is as one of the states has it; what both have and is not replaced by another kind is never absent.
    fn assert_old_or_new(&self, when: &str) {
        let found = tree(&self.cli);
        let states = &self.trees;
        for path in found.paths().chain(states[0].paths()).chain(states[1].paths()) {
            let name = path.rsplit(|b| *b == b'/').next().unwrap_or_default();
            if name.starts_with(b".ic-restore-") {
                continue;
            }
            let here = found.get(path);
            let allowed = [states[0].get(path), states[1].get(path)];
            let is_swapped = match allowed {
                [Some(a), Some(b)] => std::mem::discriminant(a) != std::mem::discriminant(b),
                _ => true,
            };
            // During a restore a new directory is open to its owner alone, and an old one may be opened up.
            let is_directory = |node: Option<&Node>| matches!(node, Some(Node::Directory { .. }));
            let is_opened = is_directory(here) && allowed.into_iter().any(is_directory);
            let is_gap = here.is_none() && is_swapped;
            assert!(
                allowed.contains(&here) || is_opened || is_gap,
                "{when}: {:?} is neither old nor new",
                String::from_utf8_lossy(path)
            );
        }
    }

    /// Reads work, and say that there is something to finish.
    fn assert_readable(&self, is_interrupted: bool, when: &str) {
        for read in
            [vec!["list"], vec!["show", &self.ids[0]], vec!["list", "--tree"], vec!["diff", &self.ids[0], &self.ids[1]]]
        {
            let arguments = ["checkpoint"].into_iter().chain(read).chain(["--format", "text"]);
            let CliOutcome { code, stderr, .. } = self.cli.run(arguments.clone());
            let shown: Vec<_> = arguments.collect();
            assert!(matches!(code, Some(0 | 1)), "{when}: {shown:?}: {stderr}");
            assert_eq!(stderr.contains("not finished"), is_interrupted, "{when}: {shown:?}: {stderr:?}");
        }
    }
}

fn plant(cli: &Cli, state: usize, directories: usize, files: usize) {
    for i in 0..directories {
        let directory = cli.root().join(format!("d{i}"));
        fs::create_dir_all(&directory).expect("a directory");
        set_mode(&directory, 0o755);
        for j in 0..files {
            let name = directory.join(format!("f{j}"));
            fs::write(&name, format!("{state} {i} {j} ").repeat(1 + j % 7)).expect("a file");
            set_mode(&name, if (i + j + state).is_multiple_of(5) { 0o755 } else { 0o644 });
        }
        let (gone, made) = (directory.join(format!("only{}", 1 - state)), directory.join(format!("only{state}")));
        let _ = fs::remove_file(gone);
        fs::write(made, "only here").expect("a file");
        let swapped = directory.join("swapped");
        if state == 0 {
            fs::create_dir_all(swapped.join("deep")).expect("a directory");
            fs::write(swapped.join("deep/x"), "x").expect("a file");
        } else {
            fs::remove_dir_all(&swapped).expect("make room");
            fs::write(&swapped, "a file now").expect("a file");
        }
        // Read-only in both states, or in one: a restore opens it up to write into it.
        if i.is_multiple_of(3) {
            set_mode(&directory, 0o555);
        } else if (i + state).is_multiple_of(3) {
            set_mode(&directory, 0o500);
        }
    }
}

#[test]
fn a_killed_restore_leaves_every_file_old_or_new_and_is_finished_by_the_next() {
    let states = TwoStates::new(30, 40);
    let mut random = Random::seeded();
    let (mut killed, mut settled, mut now) = (0, 0, 0);
    for round in rounds(50) {
        let target = 1 - now;
        let wait = Duration::from_micros(random.below(states.usual));
        let verb = ["checkpoint", "restore", &states.ids[target], "--yes"];
        killed += usize::from(!kill_after(states.cli.command(verb), wait));
        let when = format!("round {round}, killed after {wait:?}");
        states.assert_old_or_new(&when);
        let is_interrupted = states.is_interrupted();
        states.assert_readable(is_interrupted, &when);
        let report = restore(&states.cli, &states.ids[target]);
        let warned = report["warnings"]
            .as_array()
            .is_some_and(|all| all.iter().any(|warning| warning["code"] == "restore_settled"));
        assert_eq!(warned, is_interrupted, "{when}: {}", report["warnings"]);
        settled += usize::from(warned);
        let found = tree(&states.cli);
        found.assert_no_temporary(&when);
        found.assert_is(&states.trees[target], &when);
        states.assert_readable(false, &when);
        now = target;
    }
    tell(&format!("{killed} killed, {settled} of them in the midst of writing"));
    assert!(settled > 0, "no kill came at a moment that matters");
}

#[test]
fn what_follows_a_killed_restore_says_that_it_was_interrupted_or_finished() {
    let states = TwoStates::new(30, 40);
    let mut random = Random::seeded();
    let target = (0..200).map(|round| 1 - round % 2).find(|target| {
        let wait = Duration::from_micros(random.below(states.usual));
        kill_after(states.cli.command(["checkpoint", "restore", &states.ids[*target], "--yes"]), wait);
        states.is_interrupted()
    });
    let target = target.expect("a kill at a moment that matters");
    // Without a run there is nothing else to see.
    let told = ic_testkit::CliOutcome::of(&mut states.cli.command(["status", "--json"]));
    assert!(told.stderr.contains("was interrupted"), "{told:?}");
    let created = states.cli.json(["checkpoint", "create", "--json"]);
    assert_eq!(created["warnings"][0]["code"], "restore_interrupted", "{created}");
    // A refused call writes nothing of its own, but it finished the interrupted restore first, and says so.
    let zeros = "0".repeat(64);
    let words = ["checkpoint", "restore", &states.ids[1 - target], "--yes", "--json", "--expect-plan", &zeros];
    let refused = ic_testkit::CliOutcome::of(&mut states.cli.command(words));
    assert_eq!((refused.code, refused.error().as_str()), (Some(1), "plan_changed"), "{refused:?}");
    assert!(refused.stderr.contains("was finished first"), "{refused:?}");
    tree(&states.cli).assert_is(&states.trees[target], "the interrupted restore was finished");
}

#[test]
fn a_killed_restore_is_finished_and_then_undone_by_undo() {
    let states = TwoStates::new(10, 20);
    let mut random = Random::seeded();
    let mut undone = 0;
    for round in rounds(20) {
        restore(&states.cli, &states.ids[1]);
        // Something between both states, that only the safety checkpoint holds.
        fs::write(states.cli.root().join("d1/f1"), format!("round {round}")).expect("a file");
        let before = tree(&states.cli);
        let wait = Duration::from_micros(random.below(states.usual));
        kill_after(states.cli.command(["checkpoint", "restore", &states.ids[0], "--yes"]), wait);
        if states.is_interrupted() {
            take_back(&states.cli);
            undone += 1;
            let found = tree(&states.cli);
            let when = format!("round {round}, killed after {wait:?}, undone");
            found.assert_is(&before, &when);
            found.assert_no_temporary(&when);
        }
    }
    tell(&format!("{undone} interrupted and undone"));
    assert!(undone > 0, "no kill came at a moment that matters");
}

/// How many restores are on record that are not done.
fn unfinished(cli: &Cli) -> u32 {
    cli.sql("SELECT count(*) FROM restores WHERE state <> 'applied'").parse().expect("a number")
}

#[test]
fn the_first_restore_of_a_project_can_be_undone_after_it_was_killed() {
    // By the name of what it replaced, and as a redo undoes any last restore.
    for is_named in [true, false] {
        first_restore_undone(is_named);
    }
}

fn first_restore_undone(is_named: bool) {
    let mut random = Random::seeded();
    for round in 0..200 {
        let cli = project();
        plant(&cli, 0, 5, 20);
        let id = create(&cli);
        plant(&cli, 1, 5, 20);
        let before = tree(&cli);
        let wait = Duration::from_millis(20 + random.below(150));
        kill_after(cli.command(["checkpoint", "restore", &id, "--yes"]), wait);
        if unfinished(&cli) == 1 {
            // It is not said to be as its checkpoint has it.
            let outcome = ic_testkit::CliOutcome::of(&mut cli.command(["undo", "--yes"]));
            assert!(outcome.code != Some(0) && outcome.stderr.contains("was interrupted"), "{outcome:?}");
            let named = is_named.then(|| cli.last_restore());
            cli.ok(["redo", "--yes"].into_iter().chain(named.as_deref()));
            tree(&cli).assert_is(&before, &format!("round {round}, killed after {wait:?}, named: {is_named}"));
            return;
        }
    }
    panic!("no kill came at a moment that matters");
}

#[test]
fn a_killed_undo_is_finished_by_the_next() {
    let states = TwoStates::new(10, 20);
    let mut random = Random::seeded();
    let mut settled = 0;
    for round in rounds(20) {
        restore(&states.cli, &states.ids[1]);
        restore(&states.cli, &states.ids[0]);
        let wait = Duration::from_micros(random.below(states.usual));
        let ended = kill_after(states.cli.command(["redo", "--yes"]), wait);
        let when = format!("round {round}, killed after {wait:?}");
        states.assert_old_or_new(&when);
        let is_interrupted = states.is_interrupted();
        let report = restore(&states.cli, &states.ids[1]);
        let found = tree(&states.cli);
        found.assert_is(&states.trees[1], &when);
        found.assert_no_temporary(&when);
        if is_interrupted {
            settled += 1;
            assert!(!ended, "{when}: it said that it was done");
            // What was interrupted went to the same state: nothing is left to do.
            assert_eq!(report["status"], "up_to_date", "{when}: {report}");
        }
    }
    tell(&format!("{settled} undos interrupted"));
    assert!(settled > 0, "no kill came at a moment that matters");
}

#[test]
fn a_killed_undo_is_finished_by_another_undo_and_goes_no_further() {
    let states = TwoStates::new(10, 20);
    let mut random = Random::seeded();
    let cli = &states.cli;
    let (mut finished, mut undone) = (0, 0);
    for round in rounds(20) {
        restore(cli, &states.ids[1]);
        restore(cli, &states.ids[0]);
        let wait = Duration::from_micros(random.below(states.usual));
        kill_after(states.cli.command(["redo", "--yes"]), wait);
        let when = format!("round {round}, killed after {wait:?}");
        if !states.is_interrupted() {
            continue;
        }
        let told = ic_testkit::CliOutcome::of(&mut cli.command(["status", "--json"]));
        let safety = cli.last_restore();
        let way = format!("undo it: ic undo {} --yes", &safety[safety.len() - 8..]);
        assert!(told.stderr.contains(&way), "{when}: {told:?}");
        if round % 2 == 0 {
            let preview = cli.json(["redo", "--dry-run", "--json"]);
            assert_eq!(preview["status"], "planned", "{when}: {preview}");
            let hash = preview["plan_hash"].as_str().expect("a hash").to_owned();
            let zeros = "0".repeat(64);
            let refused = cli.refused(["redo", "--dry-run", "--expect-plan", &zeros]);
            assert_eq!(refused, (Some(1), "plan_changed".to_owned()), "{when}");
            let report = cli.json(["redo", "--yes", "--json", "--expect-plan", &hash]);
            assert_eq!((&report["status"], &report["changes"]), (&"restored".into(), &preview["changes"]), "{when}");
            tree(cli).assert_is(&states.trees[1], &when);
            finished += 1;
        }
        make_again(cli);
        tree(cli).assert_is(&states.trees[0], &when);
        undone += 1;
    }
    tell(&format!("{finished} finished, {undone} undone"));
    assert!(finished > 0 && undone > finished, "no kill came at a moment that matters");
}

#[test]
fn a_killed_capture_leaves_no_broken_checkpoint() {
    let cli = project();
    let mut random = Random::seeded();
    Forest::new(cli.root(), &mut random).plant();
    for i in 0..200 {
        fs::write(cli.root().join(format!("base{i}")), format!("{i} ").repeat(300)).expect("a file");
    }
    let started = Instant::now();
    create(&cli);
    let usual = micros(started.elapsed());
    let mut killed = 0;
    for round in rounds(50) {
        Forest::new(cli.root(), &mut random).edit(10);
        for i in 0..200 {
            // An edit may have put something else there.
            let _ = fs::write(cli.root().join(format!("base{i}")), format!("{round} {i} ").repeat(300));
        }
        let now = tree(&cli);
        let known = list(&cli).len();
        let wait = Duration::from_micros(random.below(usual + usual / 2));
        let ended = kill_after(cli.command(["checkpoint", "create"]), wait);
        killed += usize::from(!ended);
        let when = format!("round {round}, killed after {wait:?}");
        let all = list(&cli);
        assert!(all.len() <= known + 1, "{when}");
        assert!(!ended || all.len() == known + 1, "{when}: it said that it was done");
        for made in &all[known..] {
            let id = made["id"].as_str().expect("an id");
            restored_elsewhere(&cli, id).assert_is(&now, &when);
        }
        // Whatever was left behind, the next capture is whole.
        let next = create(&cli);
        if round % 5 == 0 {
            restored_elsewhere(&cli, &next).assert_is(&now, &format!("{when}: the next capture"));
        }
    }
    tell(&format!("{killed} captures killed"));
    assert!(killed > 0, "no kill came early enough to matter");
}
