//! What a rollback says of what it does, leaves and opens, and whose a commit is.

use ic_testkit::TestWorld;
use serde_json::json;

use crate::project::{WHOLE, Work as _, in_git};
use crate::story::story;

fn text<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let words = words.iter().copied().filter(|word| *word != "--json");
    words.chain(["--format", "text"]).collect()
}

#[test]
fn a_rollback_from_the_end_of_the_chain_says_that_the_run_is_active_again() {
    for layers in ["--layer=workflow", "--layer=workflow,files"] {
        let world = in_git().begun();
        (0..5).for_each(|_| world.advance());
        assert_eq!(world.status(), "completed@f");
        let words = ["run", "rollback", &world.run, "--to-phase", "a", layers, "--json"];
        let dry = world.cli.json([&words[..], &["--dry-run"]].concat());
        assert_eq!(dry["reopens"], true, "{dry}");
        let said = world.ic(&text(&[&words[..], &["--dry-run"]].concat()));
        assert!(said.contains("The run is completed: it becomes active again."), "{said}");
        assert!(!said.contains("only the phase changes"), "{said}");
        assert_eq!(world.status(), "completed@f");
        let said = world.ic(&text(&[&words[..], &["--yes"]].concat()));
        assert!(said.contains("The run was completed: it is active again."), "{said}");
        assert!(!said.contains("only the phase changes"), "{said}");
        assert_eq!(world.status(), "active@a");
    }
    // Of a run that is not at its end, only the phase changes.
    let world = in_git().begun();
    world.advance();
    let words = ["run", "rollback", &world.run, "--to-phase", "a", "--dry-run", "--json"];
    assert_eq!(world.cli.json(words)["reopens"], false);
    let said = world.ic(&text(&words));
    assert!(said.contains("only the phase changes") && !said.contains("active again"), "{said}");
}

#[test]
fn a_rollback_within_a_phase_does_not_say_that_the_phase_changes() {
    let world = in_git().begun();
    world.advance();
    world.ic(&["checkpoint", "create", "--run", &world.run, "--name", "here"]);
    world.write("README", "ruined\n");
    let before = world.status();
    let words = ["undo", "checkpoint:here", "--run", &world.run];
    let said = world.ic(&text(&[&words[..], &["--dry-run"]].concat()));
    assert!(said.contains("the run is unchanged") && !said.contains("the phase changes"), "{said}");
    world.ic(&text(&[&words[..], &["--yes"]].concat()));
    assert_eq!(world.status(), before);
}

#[test]
fn a_point_from_after_the_end_of_a_run_leads_to_its_files() {
    let world = in_git().begun();
    (0..5).for_each(|_| world.advance());
    let id = world.ic(&["checkpoint", "create", "--run", &world.run, "--name", "here"]);
    let kept = world.read("README");
    world.write("README", "ruined\n");
    let refused = world.cli.run(["undo", "checkpoint:here", "--run", &world.run, "--yes"]);
    let said = &refused.stderr;
    assert_eq!((refused.code, refused.error()), (Some(1), "terminal_phase".to_owned()), "{said}");
    let short = &id[id.len() - 8..];
    let way = format!("ic checkpoint restore {short}");
    assert!(said.contains(&way) && said.contains("ic log"), "{said}");
    world.ic(&["checkpoint", "restore", short, "--yes"]);
    assert_eq!(world.read("README"), kept);
}

#[test]
fn a_rollback_that_undoes_effects_does_not_say_that_only_the_phase_moves() {
    let world = in_git().begun();
    world.advance();
    world.effect("book", &[]);
    let said = world.ic(&text(&world.all("a", &["--dry-run"])));
    assert!(said.contains("book") && !said.contains("only the phase changes"), "{said}");
}

#[test]
fn a_rollback_of_the_record_alone_says_that_files_and_commits_stay() {
    let world = in_git().begun();
    world.advance();
    world.write("README", "ruined\n");
    let sha = world.commit("ruin");
    let words = ["run", "rollback", &world.run, "--to-phase", "a"];
    let said = world.ic(&text(&[&words[..], &["--dry-run"]].concat()));
    assert!(said.contains("Files and commits stay as they are"), "{said}");
    assert!(said.contains("--layer=all"), "{said}");
    let said = world.ic(&text(&words));
    assert!(said.contains("Files and commits stayed as they are"), "{said}");
    assert_eq!(world.read("README").as_deref(), Some("ruined\n"));
    assert_eq!(world.git(&["rev-parse", "HEAD"]), sha);
    let said = world.ic(&["run", "advance", &world.run]);
    assert!(!said.is_empty());
    // What takes the files along does not say so.
    let said = world.ic(&text(&world.all("a", &["--dry-run"])));
    assert!(!said.contains("Files and commits stay"), "{said}");
}

/// Makes the commit that it made before, with the same id, and records it for a new dispatch of a run.
fn recommit(world: &TestWorld, run: &str) -> (String, String) {
    world.write("made", "again\n");
    world.git(&["add", "made"]);
    let date = "2026-01-02T03:04:05Z";
    let mut command = std::process::Command::new("git");
    command.current_dir(world.cli.root()).args(["-c", "user.name=a", "-c", "user.email=a@example.com"]);
    command.args(["commit", "-qm", "made"]).env("GIT_AUTHOR_DATE", date).env("GIT_COMMITTER_DATE", date);
    assert!(command.status().expect("run git").success());
    let sha = world.git(&["rev-parse", "HEAD"]);
    let dispatch = world.ic(&["dispatch", "create", run, "--name", "maker"]);
    world.ic(&["dispatch", "record", &dispatch, "--commit", &sha]);
    (sha, dispatch)
}

#[test]
fn a_commit_of_work_that_is_rolled_back_refuses_nobody() {
    let world = in_git().begun();
    let base = world.git(&["rev-parse", "HEAD"]);
    world.advance();
    let (first, dispatch) = recommit(&world, &world.run);
    let undo = world.roll_back("a", &[])["rollback_id"].as_str().expect("an id").to_owned();
    assert_eq!(world.git(&["rev-parse", "HEAD"]), base);
    let other = world.ic(&["run", "create", "--goal", "other", "--phases", "x,y,z"]);
    world.ic(&["run", "advance", &other]);
    let (second, _) = recommit(&world, &other);
    assert_eq!(second, first, "the same commit, made again");
    // A report that comes late is recorded, and assigns the commit to no work.
    world.cli.run(["dispatch", "record", &dispatch, "--commit", &second]);
    let words = ["run", "rollback", &other, "--to-phase", "x", "--layer=all", "--json"];
    let dry = world.cli.json([&words[..], &["--dry-run"]].concat());
    assert_eq!(dry["commits"][0]["sha"], second.as_str(), "{dry}");
    assert_eq!(dry["commits"][0]["dispatch_name"], "maker", "{dry}");
    assert_eq!(dry["commits"][0]["other_run_id"], json!(null), "{dry}");
    // An undo of the first rollback gives it back to the first run: then it is both's, and both are named.
    world.save(&WHOLE);
    world.ic(&["redo", &undo, "--yes"]);
    let refused = world.cli.run([&words[..], &["--yes"]].concat());
    assert_eq!((refused.code, refused.error().as_str()), (Some(1), "foreign_commits"), "{refused:?}");
    let forced = world.cli.json([&words[..], &["--force", "--dry-run"]].concat());
    assert_eq!(forced["commits"][0]["dispatch_name"], "maker", "{forced}");
    assert_eq!(forced["commits"][0]["other_run_id"], world.run.as_str(), "{forced}");
    let said = world.ic(&text(&[&words[..], &["--force", "--dry-run"]].concat()));
    let named = format!("maker, and recorded by the run {} too", &world.run[world.run.len() - 8..]);
    assert!(said.contains(&named), "{said}");
    world.reset(&WHOLE);
    let done = world.cli.json([&words[..], &["--yes"]].concat());
    assert_eq!(done["status"], "rolled_back", "{done}");
    assert_eq!(world.git(&["rev-parse", "HEAD"]), base);
}

fn paths(list: &serde_json::Value) -> Vec<(&str, &str)> {
    let all = list.as_array().expect("a list").iter();
    all.map(|one| (one["path"].as_str().expect("a path"), one["reason"].as_str().expect("a reason"))).collect()
}

#[test]
fn what_a_rollback_cannot_restore_is_named_in_all_it_says() {
    let world = in_git();
    let large = |byte: u8| vec![byte; 12_000_000];
    std::fs::write(world.cli.root().join("big.bin"), large(1)).expect("a large file");
    world.commit("a large file");
    world.write(".env", "A=1\n");
    let world = world.begun();
    world.advance();
    world.write("README", "changed\n");
    world.write(".env", "A=2\n");
    std::fs::write(world.cli.root().join("big.bin"), large(2)).expect("a large file");
    world.git(&["commit", "-qam", "the large file is another"]);
    world.advance();
    let gaps = [(".env", "secret")];
    let in_part = |words: Vec<&str>| {
        let outcome = world.cli.run(words);
        assert_eq!(outcome.code, Some(4), "{outcome:?}");
        outcome
    };
    let dry = in_part(world.all("a", &["--dry-run"])).json();
    assert_eq!(paths(&dry["files"]["skipped"]), gaps, "{dry}");
    let said = in_part(text(&world.all("a", &["--dry-run"]))).stdout;
    assert!(said.contains(".env  secret"), "{said}");
    let done = in_part(world.all("a", &["--yes"])).json();
    assert_eq!(paths(&done["files"]["skipped"]), gaps, "{done}");
    // The large file is as the commit has it: git had its content.
    assert_eq!(world.git(&["status", "--porcelain", "big.bin"]), "");
    assert!(std::fs::read(world.cli.root().join("big.bin")).expect("a large file") == large(1));
    assert_eq!(world.read("README").as_deref(), Some("base\n"));
    assert_eq!(world.read(".env").as_deref(), Some("A=2\n"));
    let id = done["rollback_id"].as_str().expect("an id");
    for more in ["--dry-run", "--yes"] {
        if more == "--dry-run" {
            let said = world.cli.run(["redo", id, more, "--format", "text"]);
            assert!(said.stdout.contains("big.bin"), "{said:?}");
        }
        let undone = world.cli.run(["redo", id, more, "--json"]).json();
        let named = undone["files"].as_array().expect("restores").iter();
        let named: Vec<_> = named.flat_map(|one| paths(&one["skipped"])).collect();
        assert!(named.iter().all(|one| gaps.contains(one)), "{undone}");
    }
    assert!(std::fs::read(world.cli.root().join("big.bin")).expect("a large file") == large(2));
}

#[test]
fn what_was_hidden_by_a_rule_that_is_restored_too_is_said() {
    let world = in_git().begun();
    world.advance();
    world.write(".gitignore", ".ic/\ndata/\nbuild/\n");
    world.write("build/out", "made\n");
    world.commit("a rule");
    world.advance();
    let done = world.roll_back("a", &[]);
    let differs = paths(&done["files"]["differs"]);
    assert_eq!(differs, [("build", "it is there, and was not in the checkpoint")], "{done}");
    assert_eq!(world.read("build/out").as_deref(), Some("made\n"), "what no checkpoint holds stays");
    assert_eq!(world.git(&["status", "--porcelain"]), "?? build/");
    // Where all is as it was, nothing is said to differ.
    let world = story();
    assert_eq!(world.roll_back("a", &[])["files"]["differs"], json!([]));
}

#[test]
fn a_branch_that_is_left_to_another_work_tree_is_said() {
    let world = in_git();
    let side = world.cli.home().join("side");
    world.git(&["branch", "side"]);
    let world = world.begun();
    world.advance();
    world.git(&["worktree", "add", "-q", side.to_str().expect("text"), "side"]);
    ic_testkit::git_in(&side, &["commit", "-q", "--allow-empty", "-m", "beside"]);
    world.write("README", "changed\n");
    world.commit("mine");
    let done = world.roll_back("a", &[]);
    let differs = paths(&done["files"]["differs"]);
    assert_eq!(differs.len(), 1, "{done}");
    assert!(differs[0].0 == ".git" && differs[0].1.contains("another work tree uses it"), "{done}");
}

#[test]
fn what_is_left_out_of_a_checkpoint_is_said_once() {
    let world = in_git().begun();
    let left_out = |report: &serde_json::Value| -> Vec<String> {
        let all = report["warnings"].as_array().cloned().unwrap_or_default();
        let all = all.iter().filter(|one| one["code"] == "left_out");
        all.map(|one| one["message"].as_str().expect("a text").to_owned()).collect()
    };
    let advance = ["run", "advance", &world.run, "--json"];
    assert_eq!(left_out(&world.cli.json(advance)), Vec::<String>::new());
    world.write(".env", "A=1\n");
    let warned = left_out(&world.cli.json(advance));
    assert!(warned.len() == 1 && warned[0].contains(".env (secret)"), "{warned:?}");
    world.write(".env", "A=2\n");
    assert_eq!(left_out(&world.cli.json(advance)), Vec::<String>::new(), "it was said before");
    std::fs::write(world.cli.root().join("big.bin"), vec![1; 12_000_000]).expect("a large file");
    let warned = left_out(&world.cli.json(["checkpoint", "create", "--json"]));
    assert!(warned.len() == 1 && warned[0].contains("big.bin (oversize)"), "{warned:?}");
    assert!(!warned[0].contains(".env"), "{warned:?}");
    assert_eq!(left_out(&world.cli.json(["checkpoint", "create", "--json"])), Vec::<String>::new());
    std::fs::write(world.cli.root().join("more.bin"), vec![1; 12_000_000]).expect("a large file");
    let created = world.cli.run(["checkpoint", "create", "--format", "text"]);
    assert!(created.stderr.contains("left out of the checkpoint"), "{created:?}");
    assert!(created.stderr.contains("more.bin (oversize)"), "{created:?}");
}

#[test]
fn a_run_that_has_no_rollback_is_named_as_a_run() {
    let world = in_git().begun();
    let short = &world.run[world.run.len() - 8..];
    for words in [vec!["rollback", "show", &world.run], vec!["redo", short]] {
        let outcome = world.cli.run(&words);
        assert_eq!(outcome.error(), "rollback_not_found", "{words:?}");
        let said = format!("The run {short} has no rollback.");
        assert!(outcome.stderr.contains(&said), "{words:?}: {outcome:?}");
    }
}
