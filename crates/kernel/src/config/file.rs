//! The file's form.

use std::collections::BTreeSet;
use std::path::Path;

use ic_base::Result;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::explain::{explain, invalid};
use super::rewind::Rewinding;
use super::units::{Flag, Given, GuardSetting, Size, Span, When, Whole};
use super::{Config, OwnHooks};

// A part is an `Option`, a key is `Given`: a part with nothing in it (`rollback:`) sets nothing. For a key with nothing
// after it, the type decides, and `Flag` refuses `auto:`.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct File {
    rollback: Option<Rollback>,
    hooks: Option<Hooks>,
    rewind: Option<Rewinding>,
    /// A part with a configuration of its own.
    #[serde(rename = "workflow")]
    _workflow: Option<IgnoredAny>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct Rollback {
    enabled: Given<Flag>,
    checkpointing: Option<Checkpointing>,
    retention: Option<Retention>,
    on_failure: Option<OnFailure>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct Checkpointing {
    auto: Given<Flag>,
    include_git: Given<Flag>,
    max_file_size: Given<Size>,
    max_files: Given<Whole<u64, 1>>,
    include_ignored: Given<Vec<String>>,
    include_secrets: Given<Vec<String>>,
    flush: Given<When>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct Retention {
    max_age: Given<Span>,
    keep_last: Given<Whole<u32, 0>>,
    points: Given<Whole<u32, 0>>,
    keep_manual: Given<Flag>,
    // A null is a value here: then the store has no limit.
    max_size: Given<Option<Size>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct Hooks {
    guard: Given<GuardSetting>,
    gate: Given<Flag>,
}

/// The user's own file.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct OwnFile {
    hooks: Option<Hooks>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct OnFailure {
    prompt: Given<Flag>,
    auto_rollback: Given<Flag>,
}

/// The configuration that a file asks for, and the keys that it sets.
pub(super) fn parse(bytes: &[u8], path: &Path) -> Result<(Config, BTreeSet<&'static str>)> {
    // A file that is empty, or has only comments, is a null and sets nothing.
    let file: Option<File> = read(bytes, path)?;
    Ok(apply(file.unwrap_or_default()))
}

/// What the user's own file says of hooks.
pub(super) fn parse_own(bytes: &[u8], path: &Path) -> Result<OwnHooks> {
    let file: Option<OwnFile> = read(bytes, path)?;
    let hooks = file.unwrap_or_default().hooks.unwrap_or_default();
    let gate = hooks.gate.0.is_some_and(|Flag(on)| on);
    Ok(OwnHooks { guard: hooks.guard.0.map(|GuardSetting(guard)| guard), gate })
}

fn read<T: serde::de::DeserializeOwned>(bytes: &[u8], path: &Path) -> Result<T> {
    let text = std::str::from_utf8(bytes).map_err(|e| {
        // The parser takes text only, so the place of the bad byte is counted here.
        let before = String::from_utf8_lossy(&bytes[..e.valid_up_to()]);
        let line = before.matches('\n').count() as u64 + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() as u64 + 1;
        invalid(path, Some((line, column)), "it is not UTF-8", None)
    })?;
    serde_saphyr::from_str_with_options(text, options()).map_err(|e| explain(path, &e))
}

/// Limits that no configuration reaches, so that a small file of aliases does not become a large one in memory.
fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        with_snippet: false,
        strict_booleans: true,
        budget: serde_saphyr::budget! {
            max_events: 200_000,
            max_nodes: 100_000,
            max_anchors: 1_000,
            max_aliases: 10_000,
            max_merge_keys: 1_000,
            max_documents: 2,
            max_recorded_anchor_events: 200_000,
            max_recorded_anchor_bytes: 4 << 20,
            max_total_scalar_bytes: 4 << 20,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 100_000 },
    }
}

fn apply(file: File) -> (Config, BTreeSet<&'static str>) {
    let (mut config, mut set) = (Config::default(), BTreeSet::new());
    let rollback = file.rollback.unwrap_or_default();
    let (checkpointing, retention, on_failure) = (
        rollback.checkpointing.unwrap_or_default(),
        rollback.retention.unwrap_or_default(),
        rollback.on_failure.unwrap_or_default(),
    );
    let hooks = file.hooks.unwrap_or_default();
    // Each line has the key, what the file gives, and where it goes. A key that is absent keeps its default, and is not in `set`.
    macro_rules! take {
        ($($key:literal, $given:expr => |$value:pat_param| $assign:expr;)*) => {$(
            if let Some($value) = $given.0 {
                $assign;
                set.insert($key);
            }
        )*};
    }
    let (c, r, f) = (&mut config.checkpointing, &mut config.retention, &mut config.on_failure);
    take! {
        "rollback.enabled", rollback.enabled => |Flag(on)| config.enabled = on;
        "rollback.checkpointing.auto", checkpointing.auto => |Flag(on)| c.auto = on;
        "rollback.checkpointing.include-git", checkpointing.include_git => |Flag(on)| c.include_git = on;
        "rollback.checkpointing.max-file-size", checkpointing.max_file_size => |Size(bytes)| c.max_file_size = bytes;
        "rollback.checkpointing.max-files", checkpointing.max_files => |Whole(files)| c.max_files = files;
        "rollback.checkpointing.include-ignored", checkpointing.include_ignored => |list| c.include_ignored = list;
        "rollback.checkpointing.include-secrets", checkpointing.include_secrets => |list| c.include_secrets = list;
        "rollback.checkpointing.flush", checkpointing.flush => |When(flush)| c.flush = flush;
        "rollback.retention.max-age", retention.max_age => |Span(age)| r.max_age = age;
        "rollback.retention.keep-last", retention.keep_last => |Whole(last)| r.keep_last = last;
        "rollback.retention.points", retention.points => |Whole(points)| r.points = points;
        "rollback.retention.keep-manual", retention.keep_manual => |Flag(on)| r.keep_manual = on;
        "rollback.retention.max-size", retention.max_size => |size| r.max_size = size.map(|Size(bytes)| bytes);
        "rollback.on-failure.prompt", on_failure.prompt => |Flag(on)| f.prompt = on;
        "rollback.on-failure.auto-rollback", on_failure.auto_rollback => |Flag(on)| f.auto_rollback = on;
        "hooks.guard", hooks.guard => |GuardSetting(guard)| config.guard = Some(guard);
        "hooks.gate", hooks.gate => |Flag(on)| config.gate = on;
    }
    set.extend(file.rewind.iter().flat_map(|rewind| rewind.set.iter().copied()));
    config.rewind = file.rewind;
    (config, set)
}
