//! What is ignored is what git ignores: what git shows comes back, what git hides is left alone.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ic_testkit::{Cli, write_in};

use crate::project::{create, project, restore, told};

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
    let cli = project().with_env("GIT_CONFIG_NOSYSTEM", "1");
    let home = cli.home().to_owned();
    let cli = cli.with_env("HOME", home);
    git(&cli, &["init", "-q", "-b", "main", "."]);
    cli
}

fn text(cli: &Cli, path: &str) -> Option<String> {
    fs::read_to_string(cli.root().join(path)).ok()
}

#[test]
fn what_git_shows_comes_back_whatever_other_tools_read_in_the_rules() {
    let cli = repository();
    write_in(cli.root(), ".gitignore", "*.{js,css}\n{build,dist}/\nout\t\n[[:digit:]]x\nsrc[/]gen\n");
    let files = ["app.js", "build/gen.py", "out/o", "yx", "src/gen"];
    for file in files {
        write_in(cli.root(), file, "a day of work");
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
    write_in(cli.root(), ".gitignore", &rules);
    let target = create(&cli);
    let files = ["cache/model.bin", "x.log", "Build/x", "z", "a{b"];
    for file in files {
        write_in(cli.root(), file, "precious");
    }
    assert_eq!(git(&cli, &["ls-files", "-o", "--exclude-standard"]), ".gitignore\n");
    let report = restore(&cli, &target);
    for file in files {
        assert_eq!(text(&cli, file).as_deref(), Some("precious"), "{file}: {report}");
    }
}

/// Captures, and compares what was captured with what git shows. Returns that.
fn agrees(cli: &Cli, doing: &str) -> BTreeSet<String> {
    let id = create(cli);
    let shown = cli.json(["checkpoint", "show", &id, "--files", "--json"]);
    let records = shown["files"].as_array().expect("files").iter();
    let captured: BTreeSet<_> = records
        .filter(|record| record["kind"] != "directory")
        .map(|record| record["path"].as_str().expect("a path").to_owned())
        .collect();
    let by_git = git(cli, &["ls-files", "-c", "-o", "--exclude-standard"]);
    assert_eq!(captured, by_git.lines().map(str::to_owned).collect(), "{doing}");
    captured
}

/// Where a setting may stand, and how it may be written: each hides `cache/`.
fn settings(cli: &Cli) -> Vec<(&'static str, Vec<(PathBuf, String)>)> {
    let (home, root) = (cli.home().to_owned(), cli.root().canonicalize().expect("its path"));
    let user = home.join(".gitconfig");
    let ignore = |name: &str| (home.join(name), "cache/\n".to_owned());
    let excludes = |path: &str| format!("[core]\n\texcludesFile = {path}\n");
    let own = fs::read_to_string(root.join(".git/config")).expect("git's configuration");
    let include = |how: &str| format!("[{how}]\n\tpath = ~/included\n");
    let included = || (home.join("included"), excludes("~/ignored"));
    let by_directory = format!("includeIf \"gitdir:{}/\"", root.display());
    vec![
        ("of the user", vec![ignore("ignored"), (user.clone(), excludes("~/ignored"))]),
        ("a space", vec![ignore("my rules"), (user.clone(), excludes("\"~/my rules\""))]),
        ("a comment", vec![ignore("ignored"), (user.clone(), excludes("~/ignored ; mine"))]),
        ("one line", vec![ignore("ignored"), (user.clone(), "[core] excludesfile = ~/ignored\n".to_owned())]),
        ("included", vec![ignore("ignored"), included(), (user.clone(), include("include"))]),
        ("by directory", vec![ignore("ignored"), included(), (user.clone(), include(&by_directory))]),
        ("by branch", vec![ignore("ignored"), included(), (user.clone(), include("includeIf \"onbranch:main\""))]),
        ("of the repository", vec![ignore("ignored"), (root.join(".git/config"), own + &excludes("~/ignored"))]),
        ("by default", vec![(home.join(".config/git/ignore"), "cache/\n".to_owned())]),
        ("by info", vec![(root.join(".git/info/exclude"), "cache/\n".to_owned())]),
        (
            "no case",
            vec![(root.join(".gitignore"), "CACHE/\n".to_owned()), (user, "[core]\n\tignoreCase\n".to_owned())],
        ),
    ]
}

#[test]
fn what_git_hides_survives_however_its_rules_are_named() {
    let forms = settings(&repository()).len();
    for form in 0..forms {
        let cli = repository();
        let (form, files) = settings(&cli).swap_remove(form);
        for (path, content) in files {
            write_in(
                path.parent().expect("a directory above"),
                path.file_name().and_then(|name| name.to_str()).expect("a name"),
                &content,
            );
        }
        write_in(cli.root(), "a", "a");
        let target = create(&cli);
        write_in(cli.root(), "cache/model.bin", "precious");
        assert!(!git(&cli, &["ls-files", "-o", "--exclude-standard"]).contains("cache"), "{form}");
        let report = restore(&cli, &target);
        assert_eq!(text(&cli, "cache/model.bin").as_deref(), Some("precious"), "{form}: {report}");
    }
}

/// A `git` on PATH that writes down what it is asked.
fn with_witness(cli: Cli) -> (Cli, PathBuf) {
    let (bin, log) = (cli.home().join("bin"), cli.home().join("asked"));
    write_in(
        &bin,
        "git",
        format!(
            "#!/bin/sh\necho \"$@\" >> '{}'\nexec /usr/bin/env PATH=/usr/local/bin:/usr/bin:/bin git \"$@\"\n",
            log.display()
        ),
    );
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).expect("its mode");
    let path = format!("{}:/usr/bin:/bin", bin.display());
    (cli.with_env("PATH", path), log)
}

/// How often git was asked for its settings of rules, or for what they say, since the last look.
fn asked(log: &Path) -> usize {
    let text = fs::read_to_string(log).unwrap_or_default();
    fs::write(log, "").expect("the log");
    text.lines().filter(|line| line.contains("--show-origin") || line.contains("check-ignore")).count()
}

/// A repository of an agent's: a commit, a stash, a branch, an ignored file. Its settings are old enough to be believed.
fn settled() -> (Cli, PathBuf) {
    let (cli, log) = with_witness(repository());
    write_in(cli.root(), ".gitignore", "*.log\n");
    for name in ["a", "b", "sub/c"] {
        write_in(cli.root(), name, name);
    }
    git(&cli, &["add", "."]);
    git(&cli, &["commit", "-qm", "one"]);
    git(&cli, &["branch", "side"]);
    write_in(cli.root(), "a", "stashed");
    git(&cli, &["stash", "-q"]);
    write_in(cli.root(), "x.log", "ignored");
    std::thread::sleep(Duration::from_millis(2_100));
    create(&cli);
    create(&cli);
    (cli, log)
}

/// What git was asked by a call, word by word.
fn commands(log: &Path, call: impl FnOnce()) -> Vec<String> {
    fs::write(log, "").expect("the log");
    call();
    fs::read_to_string(log).expect("the log").lines().map(str::to_owned).collect()
}

#[test]
fn a_capture_of_what_git_has_told_starts_no_git() {
    let (cli, log) = settled();
    let before = cli.json(["checkpoint", "create", "--json"])["git"].clone();
    let started = commands(&log, || {
        assert_eq!(cli.json(["checkpoint", "create", "--json"])["git"], before);
    });
    assert_eq!(started, [""; 0]);
    // One file is another, as long as before: git is asked of that one, and lists what it must not run before.
    let length = std::fs::metadata(cli.root().join("sub/c")).expect("a file").len();
    write_in(cli.root(), "sub/c", "?".repeat(usize::try_from(length).expect("its length")));
    let started = commands(&log, || {
        assert_eq!(cli.json(["checkpoint", "create", "--json"])["git"]["dirty"], true);
    });
    assert_eq!(started.len(), 2, "{started:?}");
    assert!(started.iter().any(|line| line.ends_with("-- :(literal)sub/c")), "{started:?}");
    // What is of another length differs for sure.
    write_in(cli.root(), "sub/c", "of another length");
    assert_eq!(commands(&log, || drop(create(&cli))), [""; 0]);
    // With content in the index, the tree has no say.
    git(&cli, &["add", "."]);
    create(&cli);
    write_in(cli.root(), "b", "changed, too");
    assert_eq!(commands(&log, || drop(create(&cli))), [""; 0]);
}

#[test]
fn settings_are_asked_for_again_when_a_file_that_git_read_for_them_changes() {
    let (cli, log) = with_witness(repository());
    write_in(cli.root(), "a", "a");
    git(&cli, &["add", "a"]);
    git(&cli, &["commit", "-qm", "one"]);
    for name in ["one", "two", "three", "four", "Five"] {
        write_in(cli.root(), name, "untracked");
    }
    for name in ["one", "two", "three", "four", "five"] {
        write_in(cli.home(), format!("no-{name}"), format!("{name}\n"));
    }
    let includes = "[core]\n\texcludesFile = ~/no-one\n[include]\n\tpath = later\n\
        [includeIf \"onbranch:side\"]\n\tpath = ~/side\n";
    write_in(cli.home(), ".gitconfig", includes);
    write_in(cli.home(), "side", "[core]\n\texcludesFile = ~/no-two\n");
    assert!(!agrees(&cli, "at first").contains("one"));
    // What was touched in the last two seconds is not believed.
    std::thread::sleep(Duration::from_millis(2_100));
    agrees(&cli, "again");
    asked(&log);
    agrees(&cli, "unchanged");
    assert_eq!(asked(&log), 0, "nothing changed");
    let steps: [(&str, &dyn Fn(), &str); 6] = [
        (
            "a file that is included and was not there",
            &|| drop(write_in(cli.home(), "later", "[core]\n\tignoreCase = true\n")),
            "two",
        ),
        ("another branch", &|| drop(git(&cli, &["checkout", "-qb", "side"])), "one"),
        ("an included file", &|| drop(write_in(cli.home(), "side", "[core]\n\texcludesFile = ~/no-five\n")), "two"),
        ("the repository's own", &|| drop(git(&cli, &["config", "core.excludesFile", "~/no-three"])), "Five"),
        (
            "that of the work tree",
            &|| {
                git(&cli, &["config", "extensions.worktreeConfig", "true"]);
                git(&cli, &["config", "--worktree", "core.excludesFile", "~/no-four"]);
            },
            "three",
        ),
        ("the branch before", &|| drop(git(&cli, &["checkout", "-q", "main"])), "three"),
    ];
    for (doing, change, shown) in steps {
        change();
        assert!(agrees(&cli, doing).contains(shown), "{doing}");
    }
}

/// The warnings of a checkpoint about its rules.
fn doubts(cli: &Cli) -> Vec<String> {
    let created = cli.json(["checkpoint", "create", "--json"]);
    let warnings = created["warnings"].as_array().cloned().unwrap_or_default();
    let is_doubt = |warning: &&serde_json::Value| warning["code"] == "rules_uncertain";
    warnings.iter().filter(is_doubt).map(|warning| warning["message"].as_str().expect("text").to_owned()).collect()
}

#[test]
fn what_git_judges_otherwise_is_named() {
    let cli = repository();
    write_in(cli.home(), "rules", "cache/\n");
    write_in(cli.home(), "others", "hidden\n");
    git(&cli, &["config", "core.excludesFile", "~/rules"]);
    // Another git, to which the rules say something else.
    let bin = cli.home().join("bin");
    let others = cli.home().join("others");
    let script = format!(
        "#!/bin/sh\nPATH=/usr/local/bin:/usr/bin:/bin\ncase \"$*\" in\n*check-ignore*) exec git -c core.excludesFile='{}' \"$@\" ;;\nesac\nexec git \"$@\"\n",
        others.display()
    );
    write_in(&bin, "git", &script);
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).expect("its mode");
    for file in ["a", ":(top)x", "[z"] {
        write_in(cli.root(), file, "of both");
    }
    let cli = cli.with_env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    assert_eq!(doubts(&cli), Vec::<String>::new(), "nothing that differs");
    for file in ["cache/x", "hidden", "deep/cache/y"] {
        write_in(cli.root(), file, "of one");
    }
    let said = [
        "git does not ignore, and the checkpoint lacks: cache, deep/cache",
        "git ignores, and the checkpoint holds: hidden",
    ];
    assert_eq!(doubts(&cli), said);
}

#[test]
fn rules_that_cannot_be_read_are_named() {
    let cli = repository();
    write_in(cli.root(), "a", "a");
    let rules = cli.home().join("rules");
    git(&cli, &["config", "core.excludesFile", rules.to_str().expect("text")]);
    assert_eq!(doubts(&cli), Vec::<String>::new(), "a file that is not there holds no rules");
    symlink(&rules, &rules).expect("a link to itself");
    let said = doubts(&cli);
    assert!(said.len() == 1 && said[0].contains("/rules cannot be read"), "{said:?}");
    fs::remove_file(&rules).expect("removed");
    symlink("/dev/null", &rules).expect("a link");
    assert_eq!(doubts(&cli), Vec::<String>::new(), "a device holds no rules");
    write_in(cli.root(), ".git/config", "[core]\n\trepositoryformatversion = 0\n[oh\n");
    let said = doubts(&cli);
    assert!(said.iter().any(|said| said.contains("cannot read its settings")), "{said:?}");
}

#[test]
fn without_git_the_rules_serve_and_what_only_git_knows_is_named() {
    let cli = repository();
    write_in(cli.root(), ".gitignore", "*.log\n");
    write_in(cli.home(), ".config/git/ignore", "cache/\n");
    for file in ["x.log", "cache/x", "kept"] {
        write_in(cli.root(), file, "x");
    }
    let nowhere = cli.home().join("nowhere");
    let cli = cli.with_env("PATH", &nowhere);
    assert_eq!(doubts(&cli), Vec::<String>::new());
    let id = create(&cli);
    let shown = cli.json(["checkpoint", "show", &id, "--files", "--json"]);
    let files = told(&shown, "files", "kind");
    let files: Vec<_> = files.iter().filter(|(_, kind)| kind == "file").map(|(path, _)| path.as_str()).collect();
    assert_eq!(files, [".gitignore", "kept"]);
    write_in(cli.home(), ".gitconfig", "[core]\n\texcludesFile = ~/rules\n");
    let said = doubts(&cli);
    assert!(said.len() == 1 && said[0].contains("no git on PATH"), "{said:?}");
}

#[test]
fn without_git_what_it_tracks_although_a_rule_ignores_it_is_named_and_is_captured_when_git_is_there_again() {
    let cli = repository();
    write_in(cli.root(), ".gitignore", "out/\n");
    write_in(cli.root(), "out/kept", "tracked");
    git(&cli, &["add", "-f", ".gitignore", "out/kept"]);
    let path = std::env::var_os("PATH").expect("a PATH");
    let nowhere = cli.home().join("nowhere");
    let cli = cli.with_env("PATH", &nowhere);
    let said = doubts(&cli);
    assert!(said.iter().any(|said| said.contains("cannot list tracked files")), "{said:?}");
    let cli = cli.with_env("PATH", path);
    assert_eq!(agrees(&cli, "with git again"), BTreeSet::from([".gitignore".to_owned(), "out/kept".to_owned()]));
}

#[test]
fn rules_that_a_sparse_checkout_leaves_out_are_named() {
    let cli = repository();
    write_in(cli.root(), "sub/.gitignore", "*.log\n");
    git(&cli, &["add", "sub/.gitignore"]);
    git(&cli, &["commit", "-qm", "one"]);
    assert_eq!(doubts(&cli), Vec::<String>::new());
    git(&cli, &["update-index", "--skip-worktree", "sub/.gitignore"]);
    assert_eq!(doubts(&cli), Vec::<String>::new(), "it is there");
    fs::remove_file(cli.root().join("sub/.gitignore")).expect("removed");
    write_in(cli.root(), "sub/x.log", "x");
    assert!(!git(&cli, &["ls-files", "-o", "--exclude-standard"]).contains("x.log"), "git reads it from the index");
    let said = doubts(&cli);
    assert!(said.len() == 1 && said[0].contains("sub/.gitignore"), "{said:?}");
}
