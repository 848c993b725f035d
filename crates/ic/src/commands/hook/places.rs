//! The other work trees of the repository that a session works in. What happens in one of them is captured there.

use std::path::{Path, PathBuf};

use ic_checkpoint::capture::Limit;
use ic_kernel::Kernel;
use ic_kernel::config::Guard;
use ic_ledger::other_work_trees;
use ic_ops::hooks::calls::{self, Begun};
use ic_ops::hooks::{self, Teller, places, subagents};
use ic_phase::run_reference::ProjectScope;
use ic_session::clients::{Client, HookOccasion, may_write};
use ic_session::places::name_in;
use ic_worktree::CaptureSettings;

use super::delivery::Hearing;
use super::payload::Payload;
use super::{PATIENCE, Said, tools};
use crate::commands::prelude::*;

/// The most other work trees that one call is captured in.
const MOST: usize = 8;

/// The other work trees that a call works in: those of the directory that it runs in, of the files that it names, and of the words of its
/// shell line.
fn of_call(payload: &Payload<'_>, directory: &Path, home: &Path) -> Vec<PathBuf> {
    let mut others: Vec<PathBuf> = other_work_trees(home).into_iter().map(|one| one.top).collect();
    // Git still lists work trees whose directories were deleted.
    others.retain(|top| top.is_dir());
    // A work tree of another repository, which `git worktree list` here does not name.
    others.extend(other_above(directory, home));
    // Most projects have one work tree, and then the words of the call are not looked up.
    if others.is_empty() {
        return others;
    }
    // A work tree may lie within another one: the innermost comes first, and is the one that is meant.
    others.sort_by_key(|top| std::cmp::Reverse(top.components().count()));
    let inner = |path: &Path| {
        // A path below `home` is in another work tree only if the top of that tree is deeper than `home`.
        let own = home.components().count();
        let top = others.iter().find(|top| path.starts_with(top))?;
        (!path.starts_with(home) || top.components().count() > own).then(|| top.clone())
    };
    let call = payload.call(directory, home);
    let mut named: Vec<PathBuf> = call.files.clone();
    named.push(real(&call.directory));
    named.extend(call.command.as_deref().map(|line| in_line(line, &call.directory)).unwrap_or_default());
    let mut found: Vec<PathBuf> = named.iter().filter_map(|path| inner(path)).collect();
    found.sort_unstable();
    found.dedup();
    // A limit, because each place costs a capture while the agent waits.
    found.truncate(MOST);
    found
}

/// The outermost work tree of another repository that a directory lies in, below the root.
fn other_above(directory: &Path, home: &Path) -> Option<PathBuf> {
    let directory = real(directory);
    let below = directory.ancestors().take_while(|above| *above != home && above.starts_with(home));
    below.filter(|above| ic_ledger::is_linked_work_tree(above)).last().map(Path::to_owned)
}

/// The paths that the words of a shell line may name, each from the directory that `cd` and `pushd` before it lead to.
fn in_line(line: &str, directory: &Path) -> Vec<PathBuf> {
    // Each word is looked up in the file system while the agent waits.
    const LONGEST: usize = 1_000;
    let is_end = |c: char| c.is_whitespace() || matches!(c, ';' | '|' | '&' | '(' | ')' | '<' | '>' | '=' | '`');
    let (mut at, mut goes, mut found) = (directory.to_owned(), false, Vec::new());
    // A guess at what a shell would do: a word too many costs a look at a place, and changes nothing.
    let words = line.split(is_end).map(|word| word.trim_matches(['"', '\''])).filter(|word| !word.is_empty());
    for word in words.take(LONGEST) {
        let path = real(&at.join(word));
        // The words that follow are resolved from there, as in `cd ../api && touch a`.
        if goes {
            at.clone_from(&path);
        }
        goes = matches!(word, "cd" | "pushd");
        found.push(path);
    }
    found
}

/// A path without links, as far as it exists; the rest is taken by its text.
fn real(path: &Path) -> PathBuf {
    let plain = tools::plain(path);
    let known = plain.ancestors().find_map(|above| Some((above, std::fs::canonicalize(above).ok()?)));
    known.map_or(plain.clone(), |(above, known)| match plain.strip_prefix(above) {
        Ok(rest) if !rest.as_os_str().is_empty() => known.join(rest),
        _ => known,
    })
}

/// A session in one other place.
struct There {
    name: String,
    place: PathBuf,
}

/// The reason to refuse a call because its prompt was undone in another place; `None`: it was not.
pub(super) fn refusal(hearing: &Hearing<'_>) -> Result<Option<String>> {
    let (kernel, teller) = (hearing.kernel, hearing.teller);
    let all = places::elsewhere(kernel, teller)?;
    if all.is_empty() {
        return Ok(None);
    }
    let Some(key) = places::key(kernel, teller, hearing.payload.prompt_id())? else { return Ok(None) };
    for (name, _) in all {
        let there = Teller { client: teller.client, client_id: &name };
        // A place where this prompt has not worked has no undone work of it.
        if !places::has_prompt(kernel, there, &key)? {
            continue;
        }
        if let Some(why) = hooks::refusal(kernel, there, Some(&key), hearing.payload.agent_id())? {
            return Ok(Some(why));
        }
    }
    Ok(None)
}

/// One event, with what is the same for all places.
pub(super) struct ToldEvent<'t> {
    pub(super) event: &'t str,
    pub(super) session: &'t CliSession,
    pub(super) teller: Teller<'t>,
    pub(super) client: &'static Client,
    pub(super) payload: &'t Payload<'t>,
    /// When a capture ends, in whichever place.
    pub(super) limit: Limit,
}

impl ToldEvent<'_> {
    /// Records an event in the other places of its session. `kernel` is that of the place where the session began, and is changed to
    /// others.
    pub(super) fn elsewhere(&self, kernel: &mut Kernel, occasion: HookOccasion, said: &mut Said) -> Result<()> {
        let known = places::elsewhere(kernel, self.teller)?;
        let mut all: Vec<There> = known.into_iter().map(|(name, place)| There { name, place }).collect();
        // An end is reported in all places where the session has worked, a beginning only where this call works.
        if occasion == HookOccasion::BeforeCall {
            if !may_write(self.payload.tool()) {
                return Ok(());
            }
            let places = of_call(self.payload, &kernel.project.directory, &kernel.project.root);
            let name = |place: &PathBuf| name_in(self.teller.client_id, place);
            all = places.into_iter().map(|place| There { name: name(&place), place }).collect();
        }
        for there in all {
            // An error in one place is a warning, so that the event is recorded in the others.
            if let Err(error) = self.in_place(kernel, occasion, &there, said) {
                said.warnings.push(super::warning(&error));
            }
        }
        Ok(())
    }

    /// Records an event in one other place.
    fn in_place(&self, kernel: &mut Kernel, occasion: HookOccasion, there: &There, said: &mut Said) -> Result<()> {
        // One ledger serves all work trees of the repository, so only the place is another one.
        kernel.project = ProjectScope { directory: there.place.clone(), root: there.place.clone() };
        let kernel = &*kernel;
        // In a place that was removed, the work ends without a capture.
        let kept =
            if there.place.is_dir() { self.session.kept_along_the_way(kernel, &there.place, true)? } else { None };
        let kept = kept.map(|kept| CaptureSettings { busy_timeout: PATIENCE, limit: self.limit.clone(), ..kept });
        let teller = Teller { client: self.teller.client, client_id: &there.name };
        let Self { event, session, client, payload, .. } = *self;
        // The session has another name in each place, so each has its own prompts, calls and run there.
        let hearing = Hearing { event, session, kernel, teller, client, payload, kept };
        match occasion {
            HookOccasion::BeforeCall => hearing.call_elsewhere(self.teller, said),
            HookOccasion::AfterCall if may_write(self.payload.tool()) => {
                said.warnings.extend(
                    hearing.told(Guard::Allow, |told| calls::end(kernel, teller, told, hearing.kept.as_ref()))?,
                );
                Ok(())
            }
            HookOccasion::SubagentStops | HookOccasion::Stops | HookOccasion::SessionEnds
                if self.payload.agent_id().is_some() =>
            {
                let agent = self.payload.agent_id().unwrap_or_default();
                said.warnings.extend(subagents::stop(kernel, teller, agent, hearing.kept.as_ref(), &|_| None)?);
                Ok(())
            }
            // A prompt follows when the one before was interrupted, which no event told: what that did there has ended.
            HookOccasion::Prompt | HookOccasion::Stops => {
                said.warnings.extend(hooks::stop(kernel, teller, hearing.kept.as_ref(), &|_| None)?);
                Ok(())
            }
            HookOccasion::SessionEnds => {
                hooks::end(kernel, teller, self.payload.text("reason"), hearing.kept.as_ref(), &|_| None)
            }
            HookOccasion::AfterCall | HookOccasion::SessionBegins | HookOccasion::SubagentStops => Ok(()),
        }
    }
}

impl Hearing<'_> {
    /// Begins a call in another place, and its prompt there if this is the first. `own`: the session where it began.
    fn call_elsewhere(&self, own: Teller<'_>, said: &mut Said) -> Result<()> {
        let (kernel, kept) = (self.kernel, self.kept.as_ref());
        let prompt_id = self.payload.prompt_id();
        // The prompt begins first, because a call belongs to one.
        said.warnings.extend(places::begin(kernel, (own, self.teller), prompt_id, kept)?);
        let Some(key) = places::key(kernel, own, prompt_id)? else { return Ok(()) };
        let begun = self.told(Guard::Allow, |told| {
            // Files outside of the trees are captured once, where the session began.
            let told = calls::ToldCall { prompt_id: Some(&key), run: None, outside: &[], guarded: None, ..*told };
            calls::begin(kernel, self.teller, &told, kept)
        })?;
        match begun {
            Begun::Refused(why) => said.answer = Some(self.client.dialect.refuse(&why)),
            // The guard has asked about the call in the place where the session began.
            Begun::Doubtful(_, more) | Begun::Goes(more) => said.warnings.extend(more),
        }
        Ok(())
    }
}

/// Removes the files that lie in another work tree of the repository, because they are captured there.
pub(super) fn without_places(outside: Vec<PathBuf>, kernel: &Kernel) -> Vec<PathBuf> {
    if outside.is_empty() {
        return outside;
    }
    let others = other_work_trees(&kernel.project.root);
    outside.into_iter().filter(|path| !others.iter().any(|one| path.starts_with(&one.top))).collect()
}
