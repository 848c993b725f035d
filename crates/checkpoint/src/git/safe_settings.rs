//! What a call of git's runs besides git: nothing that a repository names.
//!
//! Settings that have one name are overridden at every call. Filters and hooks carry names that only the configuration
//! knows: they are known before a command that could run one ([`super::settings`]), and each is switched off by its name.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::process::Command;

/// Which filters a call may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filters {
    /// None: the call looks. Those of the user are no exception, because they obey settings of the repository too
    /// (`lfs.extension.NAME.clean` names a program that git-lfs runs).
    Nobodys,
    /// Those that the user's own configuration defines, where the repository's does not say a word of them.
    Users,
    /// All: a person asked for what git would check out. What they need of the network is theirs to have.
    Everybodys,
}

/// Settings that name a program, or that would change what a command prints or does. Those of a repository that are read
/// from no more than the system's and the user's files (`uploadpack.packObjectsHook`, `trace2.*`) are not among them.
const SETTINGS: [&str; 16] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    // Where a setting names a program, its place is taken by one that does nothing or only fails: `true`, `false`, `cat`.
    "core.alternateRefsCommand=true",
    "gpg.program=false",
    "gpg.openpgp.program=false",
    "gpg.x509.program=false",
    "gpg.ssh.program=false",
    "gpg.ssh.defaultKeyCommand=false",
    "interactive.diffFilter=cat",
    // Git's own upkeep writes to the repository, and may remove what no ref reaches.
    "gc.auto=0",
    "maintenance.auto=false",
    "log.showSignature=false",
    "submodule.recurse=false",
    "status.submoduleSummary=false",
    // An index in two files cannot be copied, edited and replaced as one.
    "core.splitIndex=false",
    // With it git would mark the files that it writes as unchanged, and never look at them again.
    "core.ignoreStat=false",
];

/// Settings of what reaches the network.
const NO_NETWORK: [&str; 4] =
    ["credential.helper=", "core.sshCommand=false", "core.gitProxy=none", "protocol.allow=never"];

// A look at a repository takes no lock, asks nothing, opens no program, and answers in the language that is
// parsed here.
const ENVIRONMENT: [(&str, &str); 9] = [
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
    ("LC_ALL", "C"),
    // Objects are meant as they are, and the network is no place to look for them.
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_PROTOCOL_FROM_USER", "0"),
];

/// A git that does not know `GIT_NO_LAZY_FETCH` (before 2.45) begins to fetch, and finds no protocol that it may use.
const ENVIRONMENT_OFFLINE: [(&str, &str); 3] =
    [("GIT_ALLOW_PROTOCOL", "none"), ("GIT_SSH_COMMAND", "false"), ("GIT_ASKPASS", "")];

/// A setting that is overridden, and by what.
pub(super) type SettingOverride = (OsString, &'static str);

/// Where the user has files of settings: with others, git would ignore other files than it does for them.
const USERS_FILES: [&str; 3] = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"];

/// The program with the settings and the environment of every call.
pub(super) fn command(filters: Filters) -> Command {
    let mut command = Command::new("git");
    // A caller that is a hook of git has variables like GIT_DIR set, and git would then work in another repository.
    let is_dropped =
        |name: &OsStr| name.as_encoded_bytes().starts_with(b"GIT_") && !USERS_FILES.iter().any(|kept| name == *kept);
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_dropped(name)) {
        command.env_remove(name);
    }
    if let Some(path) = absolute_path() {
        command.env("PATH", path);
    }
    command.envs(ENVIRONMENT).arg("--no-pager");
    let is_offline = filters != Filters::Everybodys;
    if is_offline {
        command.envs(ENVIRONMENT_OFFLINE);
    }
    let offline = NO_NETWORK.iter().filter(|_| is_offline);
    for setting in SETTINGS.iter().chain(offline) {
        command.args(["-c", setting]);
    }
    command
}

/// The caller's PATH without its relative directories, if it has any. With them, `git` could be a program in the tree that is looked at,
/// and its author's code would run.
fn absolute_path() -> Option<OsString> {
    let path = std::env::var_os("PATH")?;
    let all: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let absolute = all.iter().filter(|directory| directory.is_absolute());
    if absolute.clone().count() == all.len() { None } else { std::env::join_paths(absolute).ok() }
}

/// Commands that look at no file of the work tree and write nothing to the repository: no filter and no hook belongs to
/// them. Whatever is not here is taken to run both.
const READING: [&str; 11] = [
    "cat-file", "check-ignore", "config", "diff-tree", "for-each-ref", "log", "ls-files", "pack-objects", "rev-list",
    "rev-parse", "var",
];

/// Whether a command could run filters or hooks.
pub(super) fn runs_named<A: AsRef<OsStr>>(arguments: &[A]) -> bool {
    let mut words = arguments.iter().map(AsRef::as_ref);
    while let Some(word) = words.next() {
        // `-c NAME=VALUE` comes before the command: its value is not a command.
        if word == "-c" {
            words.next();
        } else if !word.as_encoded_bytes().starts_with(b"-") {
            return !READING.iter().any(|reading| word == *reading);
        }
    }
    true
}

/// What the names of a repository's settings say.
#[derive(Debug, Default)]
pub(crate) struct NamedSettings {
    /// What switches filters and hooks off.
    pub(super) overrides: Vec<SettingOverride>,
    /// A setting lets git's answers depend on more than its files and the content of the tree.
    pub(super) is_unusual: bool,
    /// A setting says how refs are kept.
    pub(super) names_ref_storage: bool,
}

/// Such settings: files of attributes anywhere, and stats of which git does not heed all.
const UNUSUAL: [&[u8]; 3] = [b"core.attributesfile", b"core.checkstat", b"core.trustctime"];

/// The overrides of filters and hooks, by the names that the configuration has for them ([`super::settings`]).
pub(super) fn named(names: &[u8], filters: Filters) -> NamedSettings {
    let mut found = NamedSettings::default();
    let mut words = names.split(|byte| *byte == 0);
    while let (Some(scope), Some(key)) = (words.next(), words.next()) {
        found.is_unusual |= UNUSUAL.contains(&key);
        found.names_ref_storage |= key == b"extensions.refstorage";
        let is_repositorys = matches!(scope, b"local" | b"worktree");
        let is_silenced = match filters {
            Filters::Nobodys => true,
            Filters::Users => is_repositorys,
            Filters::Everybodys => false,
        };
        let mut add = |section: &str, name: &[u8], settings: &[(&str, &'static str)]| {
            for (setting, value) in settings {
                let key = [section.as_bytes(), b".", name, b".", setting.as_bytes()].concat();
                found.overrides.push((OsString::from_vec(key), *value));
            }
        };
        if let Some(name) = name_in(key, b"filter.").filter(|_| is_silenced) {
            // Without its program, a filter that is required would make git fail.
            add("filter", name, &[("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")]);
        } else if let Some(name) = name_in(key, b"hook.") {
            add("hook", name, &[("enabled", "false")]);
        }
    }
    // The configuration has several keys for one filter, and each of them adds the same overrides.
    found.overrides.sort();
    found.overrides.dedup();
    found
}

/// `NAME` of `SECTION.NAME.KEY`; it may hold anything, dots too.
fn name_in<'k>(key: &'k [u8], section: &[u8]) -> Option<&'k [u8]> {
    let rest = key.strip_prefix(section)?;
    let end = rest.iter().rposition(|byte| *byte == b'.')?;
    Some(&rest[..end])
}

/// Adds overrides in the form in which their names may hold anything.
pub(super) fn apply(command: &mut Command, overrides: &[SettingOverride]) {
    if overrides.is_empty() {
        return;
    }
    for (at, (key, value)) in overrides.iter().enumerate() {
        command.env(format!("GIT_CONFIG_KEY_{at}"), key).env(format!("GIT_CONFIG_VALUE_{at}"), value);
    }
    command.env("GIT_CONFIG_COUNT", overrides.len().to_string());
}
