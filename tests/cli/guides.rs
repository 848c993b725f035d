//! The guides in `docs/`: what they tell a reader to type is typed, and must answer what they show.
//!
//! A block of YAML that is headed by a file's name is that file. In a block of `console`, `$ ` begins a command and `> ` goes on
//! with it; the rest is what it says, and `[exit N]` how it ends if not with 0. How long something took may differ.
//! `IC_UPDATE=1 cargo test -p ic --test cli guides` writes the answers.

use std::fmt::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

use crate::support::{Project, args, docs};

const GUIDES: &[&str] = &["WORKFLOWS.md"];

/// A part of a guide.
enum Part<'g> {
    /// Anything that is not done.
    Text(&'g str),
    /// A file and its content, with the line that heads it.
    File { name: &'g str, content: String },
    /// The lines of a dialogue.
    Dialogue(Vec<&'g str>),
}

fn parts(guide: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut lines = guide.lines();
    while let Some(line) = lines.next() {
        let head = line.strip_prefix("```").filter(|head| !head.is_empty());
        parts.push(Part::Text(line));
        let Some(head) = head else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match head.split_once(' ') {
            Some(("yaml", name)) => {
                parts.push(Part::File { name, content: block.join("\n") + "\n" });
            }
            _ if head == "console" => parts.push(Part::Dialogue(block)),
            _ => parts.extend(block.into_iter().map(Part::Text)),
        }
        parts.push(Part::Text("```"));
    }
    parts
}

/// A command of a dialogue and the answer that is shown.
fn exchanges<'g>(lines: &[&'g str]) -> Vec<(Vec<&'g str>, Vec<&'g str>)> {
    let mut exchanges: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    for line in lines {
        match (line.strip_prefix("$ "), line.strip_prefix("> "), exchanges.last_mut()) {
            (Some(command), _, _) => exchanges.push((vec![command], Vec::new())),
            (_, Some(more), Some((command, answer))) if answer.is_empty() => command.push(more),
            (_, _, Some((_, answer))) => answer.push(line),
            (_, _, None) => panic!("a dialogue begins with a command, not with {line:?}"),
        }
    }
    exchanges
}

/// Text in which it does not matter how long something took, nor how wide a column is for it, nor what a process's number is.
fn timeless(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        for at in 1..words.len() {
            if matches!(words[at], "ms" | "s") && words[at - 1].parse::<f64>().is_ok() {
                (words[at - 1], words[at]) = ("some", "time");
            }
            if words[at - 1] == "process" && words[at].parse::<u32>().is_ok() {
                words[at] = "number";
            }
        }
        let _ = writeln!(out, "{}", words.join(" "));
    }
    out
}

/// What a command says.
fn answer(project: &Project, command: &str) -> String {
    let is_plain = command.starts_with("ic ") && !command.contains(['|', '&', ';', '<', '>', '$', '(']);
    let as_typed = project.command(["workflow"]);
    let mut typed = if is_plain {
        // Not through a shell, which has words of its own for a program that was killed.
        let mut typed = Command::new(as_typed.get_program());
        typed.args(args(command).into_iter().skip(1));
        typed
    } else {
        let mut typed = Command::new("/bin/sh");
        typed.args(["-c", &format!("{{ {command}\n}} 2>&1")]);
        typed
    };
    let own = std::path::Path::new(as_typed.get_program()).parent().expect("a directory");
    typed.env_clear().current_dir(project.root());
    typed.envs(as_typed.get_envs().filter_map(|(name, value)| Some((name, value?))));
    typed
        .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", own.display()))
        .env("HOME", project.cli.home());
    typed.env("IC_FORMAT", "text").env("GIT_CONFIG_NOSYSTEM", "1");
    for who in ["AUTHOR", "COMMITTER"] {
        typed.env(format!("GIT_{who}_NAME"), "Ann").env(format!("GIT_{who}_EMAIL"), "ann@example.org");
        typed.env(format!("GIT_{who}_DATE"), "2026-02-20T16:55:15Z");
    }
    let Output { status, stdout, stderr } =
        typed.stdin(std::process::Stdio::null()).output().expect("a shell");
    let mut said = String::from_utf8_lossy(&stderr).into_owned() + &String::from_utf8_lossy(&stdout);
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(0);
    if code != 0 {
        let _ = writeln!(said, "[exit {code}]");
    }
    project.plain(&said)
}

/// The guide as it would be if it told the truth.
fn played(guide: &str) -> String {
    let project = Project::without_ledger();
    std::fs::remove_file(project.root().join(".ic.yaml")).expect("the configuration");
    let mut out = String::new();
    for part in parts(guide) {
        match part {
            Part::Text(line) => {
                let _ = writeln!(out, "{line}");
            }
            Part::File { name, content } => {
                project.write(name, &content);
                out.push_str(&content);
            }
            Part::Dialogue(lines) => {
                for (command, shown) in exchanges(&lines) {
                    let _ = writeln!(out, "$ {}", command.join("\n> "));
                    let said = answer(&project, &command.join("\n"));
                    let shown = shown.iter().fold(String::new(), |text, line| text + line + "\n");
                    // What differs only in what may differ stays as it is.
                    out.push_str(if timeless(&said) == timeless(&shown) { &shown } else { &said });
                }
            }
        }
    }
    out
}

#[test]
fn what_the_guides_show_is_what_happens() {
    for name in GUIDES {
        let guide = std::fs::read_to_string(docs(name)).unwrap_or_else(|e| panic!("docs/{name}: {e}"));
        let played = played(&guide);
        if std::env::var_os("IC_UPDATE").is_some_and(|value| value == "1") {
            std::fs::write(docs(name), &played).expect("write the guide");
        } else {
            for (shown, said) in guide.lines().zip(played.lines()) {
                assert_eq!(shown, said, "docs/{name}; IC_UPDATE=1 writes it");
            }
            assert_eq!(guide, played, "docs/{name}");
        }
    }
}

#[test]
fn a_guide_that_lies_is_noticed() {
    let guide = "# A\n\n```yaml a.yaml\nname: a\n```\n\n```console\n$ cat a.yaml\nname: b\n$ false\n```\n";
    let truth =
        "# A\n\n```yaml a.yaml\nname: a\n```\n\n```console\n$ cat a.yaml\nname: a\n$ false\n[exit 1]\n```\n";
    assert_eq!(played(guide), truth);
    assert_eq!(played(truth), truth);
}
