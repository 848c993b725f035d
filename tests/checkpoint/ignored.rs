//! What is ignored is what git ignores: what git shows comes back, what git hides is left alone.

use std::fs;
use std::path::Path;
use std::process::Command;

use ic_testkit::Cli;

use crate::world::{create, project, restore};

fn git(cli: &Cli, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(cli.root()).env_clear();
    command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command.env("HOME", cli.home()).env("GIT_CONFIG_NOSYSTEM", "1");
    for name in ["GIT_AUTHOR", "GIT_COMMITTER"] {
        command.env(format!("{name}_NAME"), "a").env(format!("{name}_EMAIL"), "a@example.org");
    }
    let output = command.output().expect("git");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// A project in a repository, before its first commit.
fn repository() -> Cli {
    let cli = project();
    git(&cli, &["init", "-q", "-b", "main", "."]);
    cli
}

fn write(root: &Path, path: &str, content: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a directory above")).expect("its directory");
    fs::write(path, content).expect("a file");
}

fn text(cli: &Cli, path: &str) -> Option<String> {
    fs::read_to_string(cli.root().join(path)).ok()
}

#[test]
fn what_git_shows_comes_back_whatever_other_tools_read_in_the_rules() {
    let cli = repository();
    write(cli.root(), ".gitignore", "*.{js,css}\n{build,dist}/\nout\t\n[[:digit:]]x\nsrc[/]gen\n");
    let files = ["app.js", "build/gen.py", "out/o", "yx", "src/gen"];
    for file in files {
        write(cli.root(), file, "a day of work");
    }
    let shown = git(&cli, &["ls-files", "-o", "--exclude-standard"]);
    assert_eq!(shown.lines().count(), files.len() + 1, "{shown}");
    let target = create(&cli);
    for directory in ["build", "out", "src"] {
        fs::remove_dir_all(cli.root().join(directory)).expect("removed");
    }
    for file in ["app.js", "yx"] {
        fs::remove_file(cli.root().join(file)).expect("removed");
    }
    let report = restore(&cli, &target);
    for file in files {
        assert_eq!(text(&cli, file).as_deref(), Some("a day of work"), "{file}: {report}");
    }
}

#[test]
fn what_git_hides_survives_whatever_other_tools_read_in_the_rules() {
    let cli = repository();
    let rules = ["\u{feff}cache/\n*.log\n!\n", "[[:upper:]]*\n", "[\\]z]\n", "a{b\n"].concat();
    write(cli.root(), ".gitignore", &rules);
    let target = create(&cli);
    let files = ["cache/model.bin", "x.log", "Build/x", "z", "a{b"];
    for file in files {
        write(cli.root(), file, "precious");
    }
    assert_eq!(git(&cli, &["ls-files", "-o", "--exclude-standard"]), ".gitignore\n");
    let report = restore(&cli, &target);
    for file in files {
        assert_eq!(text(&cli, file).as_deref(), Some("precious"), "{file}: {report}");
    }
}
