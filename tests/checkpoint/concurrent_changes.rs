//! Reading during a prune: a checkpoint that is pruned at that moment is reported as absent, never as damaged.

use std::fs;
use std::io::Read;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use ic_testkit::{Cli, WorkerEnding, rounds, tell};

use crate::project::{create, project};

/// Content that no compression makes smaller, in lines.
fn noise(lines: usize, seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut line = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        format!("{state:016x}{:016x}\n", state.wrapping_mul(0x2545_F491_4F6C_DD1D))
    };
    (0..lines).map(|_| line()).collect()
}

/// Starts a call whose output is not read yet: it waits as soon as the pipe is full.
fn begin(cli: &Cli, arguments: &[&str]) -> Child {
    let mut command = cli.command(arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start ic");
    let mut first = [0; 1];
    child.stdout.as_mut().expect("its output").read_exact(&mut first).expect("it prints");
    child
}

/// Reads the rest of what a call prints, and returns its exit code and what it says.
fn end(mut child: Child) -> (Option<i32>, String) {
    let (mut out, mut said) = (Vec::new(), String::new());
    child.stdout.take().expect("its output").read_to_end(&mut out).expect("the rest");
    child.stderr.take().expect("its words").read_to_string(&mut said).expect("its words");
    (child.wait().expect("its end").code(), said)
}

/// Gives checkpoints up, and their content: another tree stands, so that nothing else names it.
fn give_up(cli: &Cli, ids: &[&str]) {
    for entry in fs::read_dir(cli.root()).expect("the tree") {
        let path = entry.expect("an entry").path();
        if path.is_file() && path.extension().is_some_and(|kind| kind == "big") {
            fs::remove_file(path).expect("a file");
        }
    }
    create(cli);
    for id in ids {
        cli.ok(["checkpoint", "delete", id, "--force", "--grace", "0s"]);
    }
}

#[test]
fn content_that_is_printed_while_its_checkpoint_is_pruned_is_not_found() {
    let cli = project();
    fs::write(cli.root().join("one.big"), noise(250_000, 1)).expect("a file");
    let id = create(&cli);
    let cat = begin(&cli, &["checkpoint", "cat", &id, "one.big", "--json"]);
    give_up(&cli, &[&id]);
    let (code, said) = end(cat);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("checkpoint_not_found"), "{said}");
}

#[test]
fn content_that_is_printed_while_it_is_purged_is_gone_and_not_damaged() {
    let cli = project();
    fs::write(cli.root().join("one.big"), noise(250_000, 3)).expect("a file");
    let id = create(&cli);
    let cat = begin(&cli, &["checkpoint", "cat", &id, "one.big", "--json"]);
    cli.ok(["checkpoint", "purge", "one.big", "--yes"]);
    let (code, said) = end(cat);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("path_not_found") && said.contains("it was purged"), "{said}");
    cli.ok(["checkpoint", "verify", "--read-data"]);
}

#[test]
fn content_that_is_printed_while_its_packs_are_written_anew_is_printed_whole() {
    let cli = project();
    let wanted = noise(250_000, 4);
    // What is kept of each pack is little, or all: some are written anew and some stay.
    fs::write(cli.root().join("one.big"), &wanted).expect("a file");
    for i in 0..40 {
        fs::write(cli.root().join(format!("other{i}.big")), noise(300, 100 + i)).expect("a file");
    }
    let all = create(&cli);
    for i in 0..40 {
        fs::remove_file(cli.root().join(format!("other{i}.big"))).expect("a file");
    }
    let id = create(&cli);
    let mut cat = begin(&cli, &["checkpoint", "cat", &id, "one.big"]);
    cli.ok(["checkpoint", "delete", &all, "--force", "--grace", "0s"]);
    let mut rest = String::new();
    cat.stdout.take().expect("its output").read_to_string(&mut rest).expect("the rest");
    assert_eq!(cat.wait().expect("its end").code(), Some(0));
    assert!(rest == wanted[1..], "{} bytes of {}", rest.len(), wanted.len());
}

#[test]
fn checkpoints_that_are_compared_while_they_are_pruned_are_not_found() {
    let cli = project();
    let write = |seed: u64| {
        for file in 0..40 {
            let path = cli.root().join(format!("file{file}.big"));
            fs::write(path, noise(2_000, seed + file)).expect("a file");
        }
        create(&cli)
    };
    let (one, two) = (write(1), write(100));
    let diff = begin(&cli, &["checkpoint", "diff", &one, &two, "--unified"]);
    give_up(&cli, &[&one]);
    let (code, said) = end(diff);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("was pruned"), "{said}");
}

#[test]
fn a_checkpoint_that_is_shown_while_it_is_pruned_is_shown_or_not_found() {
    let cli = project();
    for round in rounds(6) {
        for file in 0..300 {
            let path = cli.root().join(format!("d{file}/file"));
            fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
            fs::write(path, format!("{round} {file}")).expect("a file");
        }
        let id = create(&cli);
        fs::write(cli.root().join("later"), round.to_string()).expect("a file");
        fs::remove_dir_all(cli.root().join("d7")).expect("a directory");
        create(&cli);
        let is_over = AtomicBool::new(false);
        let ended = std::thread::scope(|scope| {
            let over = WorkerEnding(&is_over);
            let look = || {
                let mut ended = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    let outcome = cli.run(["checkpoint", "show", &id, "--files", "--json"]);
                    let is_there = outcome.code == Some(0);
                    assert!(is_there || outcome.error() == "checkpoint_not_found", "{outcome:?}");
                    ended.push(is_there);
                }
                ended
            };
            let looking = scope.spawn(look);
            cli.ok(["checkpoint", "delete", &id, "--force", "--grace", "0s"]);
            drop(over);
            looking.join().expect("the looks")
        });
        tell(&format!("round {round}: {} looks", ended.len()));
    }
}
