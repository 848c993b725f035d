//! A repository that names a program wherever git lets it; each leaves its name when it is run.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ic_testkit::{Cli, git_in, write_in};

use crate::project::bare;

/// The last word of a setting that names a program ends in one of these. The settings are those that `git help --config`
/// lists: so whatever a newer git adds under such a name is among the traps.
const ENDINGS: [&str; 25] = [
    "askpass", "browser", "clean", "cmd", "command", "difffilter", "driver", "editor", "external", "fsmonitor",
    "gitproxy", "helper", "hook", "httpd", "packobjectshook", "pager", "process", "program", "receivepack", "smudge",
    "textconv", "tool", "tunnel", "uploadpack", "viewer",
];

/// Settings that name a program and that the list of git 2.47 does not hold under their own name: they stand in
/// gitattributes(5), gitcredentials(7), git-hook(1), git-help(1), or behind a `*`.
const OTHERS: [&str; 20] = [
    "alias.status",
    "alias.trap",
    "core.editor",
    "credential.https://example.invalid.helper",
    "filter.trap.clean",
    "filter.trap.smudge",
    "filter.trapped.process",
    "gpg.openpgp.program",
    "gpg.ssh.program",
    "gpg.x509.program",
    "hook.trap.command",
    "pager.branch",
    "pager.config",
    "pager.diff",
    "pager.log",
    "pager.status",
    "sendemail.sendmailCmd",
    "submodule.mod.update",
    "trailer.trap.cmd",
    "trailer.trap.command",
];

/// Settings that name none, and make git run what others name.
const BAIT: [(&str, &str); 20] = [
    ("filter.trap.required", "true"),
    ("commit.gpgSign", "true"),
    ("core.untrackedCache", "true"),
    ("diff.ignoreSubmodules", "none"),
    ("diff.submodule", "log"),
    ("fetch.recurseSubmodules", "true"),
    ("gc.auto", "1"),
    ("gc.autoPackLimit", "1"),
    ("log.showSignature", "true"),
    ("maintenance.auto", "true"),
    ("protocol.allow", "always"),
    ("protocol.ext.allow", "always"),
    ("protocol.file.allow", "always"),
    ("push.gpgSign", "true"),
    ("status.submoduleSummary", "true"),
    ("submodule.active", "."),
    ("submodule.recurse", "true"),
    ("tag.gpgSign", "true"),
    ("hook.trap.event", "reference-transaction"),
    ("hook.trap.enabled", "true"),
];

/// The hooks of githooks(5).
const HOOKS: [&str; 29] = [
    "applypatch-msg", "commit-msg", "fsmonitor-watchman", "p4-changelist", "p4-post-changelist", "p4-pre-submit",
    "p4-prepare-changelist", "post-applypatch", "post-checkout", "post-commit", "post-index-change", "post-merge",
    "post-receive", "post-rewrite", "post-update", "pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit",
    "pre-push", "pre-rebase", "pre-receive", "prepare-commit-msg", "proc-receive", "push-to-checkout",
    "reference-transaction", "sendemail-validate", "trap", "update",
];

/// Variables of the caller that name a program.
const VARIABLES: [&str; 13] = [
    "EDITOR", "GIT_ASKPASS", "GIT_EDITOR", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR", "GIT_SSH", "GIT_SSH_COMMAND", "PAGER", "SSH_ASKPASS", "SUDO_ASKPASS", "VISUAL",
];

/// A project in such a repository.
pub(super) struct Trapped {
    pub(super) cli: Cli,
    programs: PathBuf,
    ran: PathBuf,
}

impl Trapped {
    /// `is_partial`: what the rules of ignored files are is to be had only from a remote of a partial clone.
    pub(super) fn new(is_partial: bool) -> Self {
        let cli = bare();
        let home = std::fs::canonicalize(cli.home()).expect("its path");
        let (programs, ran) = (home.join("programs"), home.join("ran"));
        std::fs::create_dir(&ran).expect("a directory");
        std::fs::create_dir(&programs).expect("a directory");
        let path = std::env::var("PATH").expect("a PATH");
        let mut world = Self {
            cli: cli.with_env("PATH", format!("{path}:{}", programs.display())).with_env("HOME", home.join("user")),
            programs,
            ran,
        };
        world.commit();
        world.lay(is_partial);
        for name in VARIABLES {
            let program = world.trap(name);
            world.cli = world.cli.with_env(name, program);
        }
        world
    }

    /// What was run since the last call.
    pub(super) fn ran(&self) -> BTreeSet<String> {
        let entries = std::fs::read_dir(&self.ran).expect("a directory");
        entries
            .map(|entry| {
                let path = entry.expect("an entry").path();
                std::fs::remove_file(&path).expect("remove it");
                path.file_name().expect("a name").to_string_lossy().into_owned()
            })
            .collect()
    }

    pub(super) fn root(&self) -> &Path {
        self.cli.root()
    }

    /// A program that leaves this name.
    fn trap(&self, name: &str) -> PathBuf {
        let plain = name.replace(['/', ':', '*', '<', '>'], "_");
        self.program(&self.programs, &format!("trap-{plain}"), &plain)
    }

    fn program(&self, directory: &Path, file: &str, name: &str) -> PathBuf {
        // A filter writes what it reads. Any other program ends at once, so that git does not wait for the answer of a protocol.
        let then = if file.contains("filter") { "cat" } else { "exit 1" };
        let script = format!("#!/bin/sh\n: >'{}/{name}'\n{then}\n", self.ran.display());
        let path = write_in(directory, file, script);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("its mode");
        path
    }

    /// Two commits, one of them signed, with a submodule; and files that filters, diff and merge drivers are for.
    fn commit(&self) {
        let root = self.root();
        let inner = root.join("mod");
        std::fs::create_dir(&inner).expect("a directory");
        for directory in [&inner, root] {
            git_in(directory, &["init", "-q"]);
            for name in ["a", "b", "c", "d"] {
                write_in(directory, name, "one\n");
            }
            git_in(directory, &["add", "a", "b", "c", "d"]);
            git_in(directory, &["commit", "-qm", "one"]);
        }
        write_in(root, ".gitignore", "*.log\n/.ic.yaml\n");
        write_in(root, "x.log", "ignored\n");
        write_in(root, "y.log", "tracked\n");
        write_in(root, ".gitattributes", "a filter=trap\nb filter=trapped\nc filter=users\n* diff=trap merge=trap\n");
        write_in(root, ".gitmodules", "[submodule \"mod\"]\n\tpath = mod\n\turl = ext::trap\n");
        git_in(root, &["-c", "advice.addEmbeddedRepo=false", "add", "."]);
        git_in(root, &["add", "-f", "y.log"]);
        git_in(root, &["commit", "-qm", "two"]);
        let signed = git_in(root, &["cat-file", "commit", "HEAD"]).replacen(
            "\n\n",
            "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n -----END PGP SIGNATURE-----\n\n",
            1,
        );
        let commit = write_in(self.cli.home(), "signed", signed + "\n");
        let id = git_in(root, &["hash-object", "-t", "commit", "-w", &commit.to_string_lossy()]);
        git_in(root, &["reset", "-q", "--soft", &id]);
    }

    fn lay(&self, is_partial: bool) {
        let root = self.root();
        if is_partial {
            // Before any trap could be sprung by what lays the others.
            let blob = git_in(root, &["rev-parse", ":.gitignore"]);
            git_in(root, &["update-index", "--skip-worktree", ".gitignore"]);
            std::fs::remove_file(root.join(".gitignore")).expect("remove a file");
            let object = root.join(".git/objects").join(&blob[..2]).join(&blob[2..]);
            std::fs::remove_file(object).expect("remove an object");
        }
        let own = self.programs.join("hooks");
        let events: String = HOOKS.iter().map(|hook| format!("[hook \"trap\"]\n\tevent = {hook}\n")).collect();
        let mut text = format!("{}{events}[core]\n\thooksPath = {}\n", self.settings(), own.display());
        self.program(&self.programs, "git-remote-trap", "git-remote-trap");
        let ext = format!("ext::{} %S", self.trap("remote-ext").display());
        let origin = root.join(".git");
        for (name, url) in [
            ("origin", &*origin.to_string_lossy()),
            ("ext", &ext),
            ("vcs", "x"),
            ("ssh", "ssh://h.invalid/x"),
            ("git", "git://h.invalid/x"),
        ] {
            let upload = self.trap("remote-uploadpack");
            let _ = writeln!(
                text,
                "[remote \"{name}\"]\n\turl = {url}\n\tpromisor = {is_partial}\n\tuploadpack = {}",
                upload.display()
            );
        }
        text.push_str("\tvcs = trap\n");
        if is_partial {
            text.push_str("[core]\n\trepositoryFormatVersion = 1\n[extensions]\n\tpartialClone = origin\n");
        }
        // An included file speaks for the repository.
        let included = write_in(&root.join(".git"), "included", text);
        let alternate = root.join("mod/.git/objects");
        write_in(&root.join(".git/objects/info"), "alternates", format!("{}\n", alternate.display()));
        write_in(&root.join(".git/info"), "attributes", "a diff=trap\nb merge=trap\n");
        for repository in [root.join("mod/.git"), root.join(".git")] {
            let config = repository.join("config");
            let mut text = std::fs::read_to_string(&config).expect("the configuration");
            let _ = writeln!(text, "[include]\n\tpath = {}", included.display());
            std::fs::write(&config, text).expect("the configuration");
            for hooks in [&own, &repository.join("hooks")] {
                for hook in HOOKS {
                    self.program(hooks, hook, &format!("hook-{hook}"));
                }
            }
        }
        let users = self.trap("users-filter");
        let user = format!(
            "[user]\n\tname = n\n\temail = e@x\n[filter \"users\"]\n\tclean = {0}\n\tsmudge = {0}\n",
            users.display()
        );
        write_in(&self.cli.home().join("user"), ".gitconfig", user);
    }

    /// Every setting that names a program, each with one of its own.
    fn settings(&self) -> String {
        let listed = git_in(self.root(), &["help", "--config"]);
        let is_program = |name: &&str| {
            // Switches, whatever they are called.
            let is_switch =
                name.starts_with("advice.") || name.starts_with("color.") || name.ends_with("cachetextconv");
            let last = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
            !is_switch && ENDINGS.iter().any(|ending| last.ends_with(ending))
        };
        let listed: BTreeSet<&str> = listed.lines().filter(is_program).collect();
        assert!(listed.len() > 30, "git lists its settings otherwise: {listed:?}");
        let placeholders = |name: &str| {
            let parts: Vec<&str> = name.split('.').collect();
            let named = |part: &&str| if part.starts_with('<') { "trap".to_owned() } else { (*part).to_owned() };
            parts.iter().map(named).collect::<Vec<_>>().join(".")
        };
        let mut text = String::new();
        for name in listed.iter().map(|name| placeholders(name)).chain(OTHERS.map(str::to_owned)) {
            let program = self.trap(&name).display().to_string();
            let is_shell = name.starts_with("alias.") || name.starts_with("submodule.");
            let value = if is_shell { format!("!{program}") } else { program };
            setting(&mut text, &name, &value);
        }
        for (name, value) in BAIT {
            setting(&mut text, name, value);
        }
        text
    }
}

fn setting(text: &mut String, name: &str, value: &str) {
    let (section, rest) = name.split_once('.').expect("a section");
    let _ = match rest.rsplit_once('.') {
        Some((subsection, key)) => writeln!(text, "[{section} \"{subsection}\"]\n\t{key} = {value}"),
        None => writeln!(text, "[{section}]\n\t{rest} = {value}"),
    };
}
