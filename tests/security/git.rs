//! What a repository brings with it is not run by looking at it.

use std::os::unix::fs::PermissionsExt;

use ic_testkit::{git_in, write_in};

use crate::project::bare;

/// A repository whose own configuration names a command wherever it can; each leaves a file in the given directory.
fn prepared() -> (ic_testkit::Cli, std::path::PathBuf) {
    let cli = bare();
    let ran = cli.home().join("ran");
    std::fs::create_dir(&ran).expect("a directory");
    git_in(cli.root(), &["init", "-q"]);
    write_in(cli.root(), "a", "one\n");
    write_in(cli.root(), "b", "one\n");
    git_in(cli.root(), &["add", "."]);
    git_in(cli.root(), &["commit", "-qm", "one"]);
    cli.ok(["init"]);
    let command = |name: &str| format!("touch {}/{name}; cat", ran.display());
    let config = cli.root().join(".git/config");
    let mut text = std::fs::read_to_string(&config).expect("the configuration");
    for key in ["clean", "smudge"] {
        text.push_str(&format!("[filter \"by.clean=x\"]\n\t{key} = {}\n", command(&format!("filter-{key}"))));
    }
    text.push_str(&format!("[filter \"process\"]\n\tprocess = {}\n\trequired = true\n", command("filter-process")));
    text.push_str(&format!("[diff]\n\texternal = {}\n", command("diff-external")));
    text.push_str(&format!("[diff \"d\"]\n\ttextconv = {0}\n\tcommand = {0}\n", command("textconv")));
    let hooks = cli.home().join("hooks");
    for key in ["pager", "editor", "fsmonitor", "sshCommand", "alternateRefsCommand", "askPass"] {
        text.push_str(&format!("[core]\n\t{key} = {}\n", command(&format!("core-{key}"))));
    }
    text.push_str(&format!("[core]\n\thooksPath = {}\n[log]\n\tshowSignature = true\n", hooks.display()));
    text.push_str(&format!("[gpg]\n\tprogram = {}\n", command("gpg")));
    std::fs::write(&config, text).expect("the configuration");
    for directory in [hooks, cli.root().join(".git/hooks")] {
        for hook in ["post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc", "fsmonitor-watchman"]
        {
            let path = write_in(&directory, hook, format!("#!/bin/sh\ntouch {}/hook-{hook}\n", ran.display()));
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("its mode");
        }
    }
    write_in(cli.root(), ".gitattributes", "a filter=by.clean=x diff=d\nb filter=process diff=d\n");
    write_in(cli.root(), "a", "two\n");
    write_in(cli.root(), "b", "two\n");
    (cli, ran)
}

fn ran(directory: &std::path::Path) -> Vec<String> {
    let names = std::fs::read_dir(directory).expect("a directory");
    names.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_checkpoint_runs_nothing_of_the_repository() {
    let (cli, ran_in) = prepared();
    let made = cli.json(["checkpoint", "create", "--json"]);
    assert_eq!(made["git"]["dirty"], true, "{made}");
    let run = cli.ok(["run", "create", "--goal", "g", "--phases", "a,b,c"]);
    write_in(cli.root(), "a", "three\n");
    let moved = cli.json(["run", "advance", &run, "--json"]);
    assert!(moved["checkpoint_id"].is_string(), "{moved}");
    cli.ok(["checkpoint", "diff", made["id"].as_str().expect("an id")]);
    cli.ok(["dispatch", "create", &run]);
    assert_eq!(ran(&ran_in), Vec::<String>::new());
    // The repository would indeed have run something.
    let status = std::process::Command::new("git").arg("status").current_dir(cli.root()).output();
    drop(status.expect("run git"));
    assert_ne!(ran(&ran_in), Vec::<String>::new());
}

#[test]
fn no_hook_is_run_by_a_restore() {
    let (cli, ran_in) = prepared();
    let made = cli.ok(["checkpoint", "create"]);
    git_in(cli.root(), &["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=", "branch", "other"]);
    write_in(cli.root(), "a", "four\n");
    cli.ok(["checkpoint", "restore", &made, "--yes"]);
    assert_eq!(ran(&ran_in), Vec::<String>::new());
}

/// The store of a partial clone, where the rules of what is ignored are to be had only by a command of the repository.
#[test]
fn what_a_partial_clone_lacks_is_not_fetched() {
    let cli = bare();
    let ran_in = cli.home().join("ran");
    git_in(cli.root(), &["init", "-q"]);
    write_in(cli.root(), ".gitignore", "*.log\n");
    write_in(cli.root(), "a", "one\n");
    write_in(cli.root(), "x.log", "one\n");
    git_in(cli.root(), &["add", "-f", "."]);
    git_in(cli.root(), &["commit", "-qm", "one"]);
    cli.ok(["init"]);
    let blob = git_in(cli.root(), &["rev-parse", ":.gitignore"]);
    let upload = format!("touch {}; git-upload-pack", ran_in.display());
    for (key, value) in [
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.url", &cli.root().join(".git").to_string_lossy()),
        ("remote.origin.promisor", "true"),
        ("remote.origin.uploadpack", &upload),
    ] {
        git_in(cli.root(), &["config", key, value]);
    }
    git_in(cli.root(), &["update-index", "--skip-worktree", ".gitignore"]);
    std::fs::remove_file(cli.root().join(".gitignore")).expect("remove a file");
    let object = cli.root().join(".git/objects").join(&blob[..2]).join(&blob[2..]);
    std::fs::remove_file(object).expect("remove an object");
    let made = cli.ok(["checkpoint", "create"]);
    assert!(!ran_in.exists());
    let run = cli.ok(["run", "create", "--goal", "g", "--phases", "a,b,c"]);
    cli.ok(["checkpoint", "diff", &made]);
    let entry = format!("100644,{blob},b");
    git_in(cli.root(), &["-c", "core.fsmonitor=", "update-index", "--add", "--cacheinfo", &entry]);
    cli.ok(["run", "advance", &run]);
    assert!(!ran_in.exists());
    // Git itself would indeed have asked.
    git_in(cli.root(), &["ls-files", "-c", "-i", "--exclude-standard"]);
    assert!(ran_in.exists());
}

#[test]
fn the_work_tree_is_the_one_that_was_meant() {
    let (cli, _) = prepared();
    let elsewhere = cli.home().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a directory");
    write_in(&elsewhere, "a", "precious\n");
    let made = cli.ok(["checkpoint", "create"]);
    git_in(cli.root(), &["config", "core.worktree", &elsewhere.to_string_lossy()]);
    write_in(cli.root(), "a", "five\n");
    cli.ok(["checkpoint", "create"]);
    cli.ok(["checkpoint", "restore", &made, "--yes"]);
    assert_eq!(std::fs::read_to_string(cli.root().join("a")).expect("a file"), "two\n");
    assert_eq!(std::fs::read_to_string(elsewhere.join("a")).expect("a file"), "precious\n");
}

#[test]
fn names_that_look_like_options_are_names() {
    let cli = bare();
    git_in(cli.root(), &["init", "-q"]);
    for name in ["-rf", "--help", "--upload-pack=x", ":(exclude)*", "*", "a\nb", "-"] {
        write_in(cli.root(), name, name);
    }
    git_in(cli.root(), &["add", "-A", "."]);
    git_in(cli.root(), &["commit", "-qm", "one"]);
    git_in(cli.root(), &["update-ref", "refs/heads/-x", "HEAD"]);
    cli.ok(["init"]);
    write_in(cli.root(), "--later", "");
    git_in(cli.root(), &["add", "-N", "--", "--later"]);
    let made = cli.ok(["checkpoint", "create"]);
    for name in ["-rf", "--help", ":(exclude)*", "*"] {
        write_in(cli.root(), name, "changed");
    }
    git_in(cli.root(), &["add", "-A", "."]);
    cli.ok(["checkpoint", "restore", &made, "--yes"]);
    for name in ["-rf", "--help", ":(exclude)*", "*"] {
        assert_eq!(std::fs::read_to_string(cli.root().join(name)).expect("a file"), name);
    }
    assert_eq!(git_in(cli.root(), &["status", "--porcelain"]), " A --later");
}

#[test]
fn a_git_in_the_tree_is_not_taken_for_the_program() {
    let cli = bare();
    git_in(cli.root(), &["init", "-q"]);
    let ran_in = cli.home().join("ran");
    let program = write_in(cli.root(), "git", format!("#!/bin/sh\ntouch {}\n", ran_in.display()));
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).expect("its mode");
    cli.ok(["init"]);
    let first = cli.ok(["checkpoint", "create"]);
    let usual = std::env::var("PATH").expect("a PATH");
    for path in [
        format!(".:{usual}"),
        format!(":{usual}"),
        format!("{usual}:../{}", cli.root().file_name().expect("a name").display()),
    ] {
        std::fs::write(cli.root().join("f"), &path).expect("a file");
        for call in [
            &["checkpoint", "create"][..],
            &["checkpoint", "diff", &first],
            &["checkpoint", "restore", &first, "--yes"],
        ] {
            let outcome = ic_testkit::CliOutcome::of(cli.command(call).env("PATH", &path));
            assert_eq!(outcome.code, Some(0), "{path}: {call:?}: {outcome:?}");
        }
    }
    assert!(!ran_in.exists());
}

#[test]
fn variables_of_git_lead_it_nowhere_else() {
    let (cli, ran_in) = prepared();
    let other = cli.home().join("other");
    std::fs::create_dir(&other).expect("a directory");
    git_in(&other, &["init", "-q"]);
    let program = format!("touch {}/external", ran_in.display());
    let mut call = cli.command(["checkpoint", "create", "--json"]);
    call.env("GIT_DIR", other.join(".git")).env("GIT_WORK_TREE", &other).env("GIT_INDEX_FILE", other.join("index"));
    call.env("GIT_EXTERNAL_DIFF", &program).env("GIT_CONFIG_COUNT", "1");
    call.env("GIT_CONFIG_KEY_0", "core.fsmonitor").env("GIT_CONFIG_VALUE_0", &program);
    let made = ic_testkit::CliOutcome::of(&mut call).json();
    assert_eq!(made["git"]["head"], git_in(cli.root(), &["rev-parse", "HEAD"]));
    assert_eq!(ran(&ran_in), Vec::<String>::new());
}

#[test]
fn every_call_of_git_goes_through_one_door() {
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut callers = Vec::new();
    for path in crate::project::below(&crates) {
        let name = path.strip_prefix(&crates).expect("a path below").to_string_lossy().into_owned();
        // Tests, and what only they use, call it as anybody does.
        let is_shipped = !["testkit/", "fuzzing/"].iter().any(|place| name.starts_with(place))
            && !name.contains("tests")
            && !name.ends_with("campaign.rs");
        if !is_shipped || path.extension().is_none_or(|ending| ending != "rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a source file");
        let shipped = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        if shipped.contains("Command::new(\"git\")") {
            callers.push(name);
        }
    }
    assert_eq!(callers, ["checkpoint/src/git/safe_settings.rs"]);
}
