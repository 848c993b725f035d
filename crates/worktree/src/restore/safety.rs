//! What refuses a restore: living workers, and what others changed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::time::Duration;

use ic_base::{CheckpointId, Code, Diagnosis, Result, RunId, Seq, Timestamp};
use ic_checkpoint::diff::{self, Difference};
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_dispatch::status::DispatchStatus;
use ic_dispatch::worker::is_living_other;
use ic_dispatch::{Dispatch, code, dispatch};
use ic_ledger::events::Hash;
use ic_ledger::regular_file::open_regular_itself;
use ic_ledger::{is_database, path_bytes, path_from_bytes};
use ic_session::attribution::Attribution;
use ic_session::{ToolCall, call};
use serde_json::json;

use super::super::workspace::{Workspace, root_of};
use super::request::{Conflict, EarlierDeeds};

/// An agent whose call has no end after this time was killed, most likely: no client lets a tool run longer.
const LONGEST_CALL: Duration = Duration::from_mins(10);

/// The reason of a path that others changed while a restore was stopped that had nothing more to do there: it stays.
pub(super) const THEIRS_SINCE: &str = "changed while this was stopped, with nothing left to restore there: it stays";

impl Workspace<'_> {
    /// Errors: `work_running`, naming the dispatches of this root that are not completed and whose processes live: what was cancelled
    /// writes on until its process ends. The caller's own is none, and neither is one whose process the caller descends from.
    pub fn require_no_workers(&self) -> Result<()> {
        let working = self.kernel.read(|snapshot| {
            let caller = self.kernel.calling_dispatch(snapshot)?.map(|dispatch| dispatch.id);
            let mut working = Vec::new();
            for dispatch in dispatch::may_write(snapshot)?.into_iter().filter(is_living_other) {
                let run = ic_phase::run::get(snapshot, &dispatch.run_id)?;
                // By the root and not by the run: two runs may work in one tree.
                if caller.as_ref() != Some(&dispatch.id) && root_of(&run.project_dir) == self.root {
                    working.push(dispatch);
                }
            }
            Ok(working)
        })?;
        let Some(first) = working.first() else { return Ok(()) };
        let named = |d: &Dispatch| {
            let status = d.status.as_str();
            json!({ "id": d.id.as_str(), "name": d.work.name, "pid": d.pid(), "status": status })
        };
        // The message says that the dispatch has ended in the record: a reader would not expect its process to live.
        let though = match first.status {
            DispatchStatus::Pending | DispatchStatus::Running => String::new(),
            ended => format!(" though it is {}", ended.as_str()),
        };
        Err(Diagnosis::new(
            Code::WorkRunning,
            format!("Dispatch {} still works here{though} (process {}).", first.id.short(), first.pid().unwrap_or(0)),
        )
        .hint("it could overwrite what is restored: end it first, or give --force")
        .detail("dispatches", working.iter().map(named).collect::<Vec<_>>()))
    }

    /// Errors: `work_running` while an agent of a session is in the middle of a tool call in this root. Those of the run that goes back are
    /// none: their next call is refused, and that is what was asked for.
    pub(super) fn require_no_calls(&self, run: Option<&RunId>) -> Result<()> {
        let now = self.kernel.context.now().millis();
        let since = Timestamp(now.saturating_sub(LONGEST_CALL.as_millis().try_into().unwrap_or(i64::MAX)));
        let others = self.kernel.read(|snapshot| {
            let caller = self.kernel.calling_dispatch(snapshot)?.map(|dispatch| dispatch.id);
            let mut others = Vec::new();
            for call in call::not_told_of_end(snapshot, since)?.into_iter().filter(|call| call.ended_seq.is_none()) {
                let work = dispatch::get(snapshot, &call.dispatch_id)?;
                let of_run = ic_phase::run::get(snapshot, &work.run_id)?;
                let goes_back = caller.as_ref() == Some(&work.id) || run == Some(&of_run.id);
                if !goes_back && work.rolled_back_by.is_none() && root_of(&of_run.project_dir) == self.root {
                    others.push(call);
                }
            }
            Ok(others)
        })?;
        let Some(first) = others.first() else { return Ok(()) };
        let named = |call: &ToolCall| json!({ "id": call.id.as_str(), "session_id": call.session_id.as_str(), "dispatch_id": call.dispatch_id.as_str(), "tool": call.tool });
        Err(Diagnosis::new(
            Code::WorkRunning,
            format!(
                "The agent of the session {} is in the middle of a tool call here ({}), and could overwrite what is restored.",
                first.session_id.short(),
                first.tool
            ),
        )
        .hint("wait for its end; if that agent was interrupted or killed, which its client does not tell, go back beside it: --force-workers; \
               undo one prompt alone: ic undo --only ID --dry-run")
        .detail("calls", others.iter().map(named).collect::<Vec<_>>()))
    }

    /// Paths that differ from the target because others changed them.
    pub(super) fn conflicts(
        &self,
        target: &CheckpointRecord,
        differences: &[Difference],
        now: &Hash,
        until: Seq,
        did: &EarlierDeeds,
    ) -> Result<Vec<Conflict>> {
        // The first reason of a path stays, and the surest comes first: a record is what a run itself said. The others
        // are concluded from looks at the tree.
        let mut reasons = self.recorded_by_others(target)?;
        self.changed_by_others(target, until, &mut reasons)?;
        for (path, is_asked) in self.changed_while_interrupted(target, until)? {
            let reason = if is_asked { "changed while a restore was interrupted" } else { THEIRS_SINCE };
            reasons.entry(path).or_insert_with(|| reason.to_owned());
        }
        // Nothing of the deed changed the tree since it stopped. But a program that closes a database merges the log into it.
        if let Some(stopped_at) = &did.stopped_at {
            let left = self.kernel.read(|snapshot| record::get(snapshot, stopped_at))?.tree;
            let to_do = self.changed_paths(&left, &target.tree)?;
            for path in self.changed_paths(&left, now)?.into_iter().filter(|path| !self.is_database_now(path)) {
                let reason = if to_do.contains(&path) { "changed since this restore stopped" } else { THEIRS_SINCE };
                reasons.entry(path).or_insert_with(|| reason.to_owned());
            }
        }
        let newest = self.kernel.read(|snapshot| record::newest_of_root_until(snapshot, &self.root, until))?;
        let settled = newest.map(|newest| self.settled(newest, until)).transpose()?.flatten();
        let is_settled = settled.is_some();
        if is_settled || !did.spans.is_empty() {
            let reason = match &settled {
                Some(settled) => format!("changed after checkpoint {}, when work had ended", settled.id.short()),
                None => "changed while this was stopped".to_owned(),
            };
            let stretches = self.time_of_others(settled.map(|settled| settled.tree), now, &did.spans)?;
            for (at, (from, to)) in stretches.iter().enumerate() {
                // Before the deed began, nothing was to do yet that it has done since.
                let is_begun = at > 0 || !is_settled;
                let to_do = if is_begun { self.changed_paths(from, &target.tree)? } else { BTreeSet::new() };
                let is_asked = |path: &Vec<u8>| is_settled || !self.is_database_now(path);
                for path in self.changed_paths(from, to)?.into_iter().filter(is_asked) {
                    let is_theirs = is_begun && !to_do.contains(&path);
                    reasons.entry(path).or_insert_with(|| if is_theirs { THEIRS_SINCE.into() } else { reason.clone() });
                }
            }
        }
        Ok(differences
            .iter()
            .filter_map(|difference| {
                let reason = reasons.get(&difference.path)?.clone();
                Some(Conflict { path: PathText(difference.path.clone()), reason })
            })
            .collect())
    }

    /// The paths at which two trees differ.
    pub(super) fn changed_paths(&self, from: &Hash, to: &Hash) -> Result<BTreeSet<Vec<u8>>> {
        let mut paths = BTreeSet::new();
        diff::diff(&self.objects, Some(from), Some(to), &mut |difference| {
            paths.extend(difference.change().map(|_| difference.path));
            Ok(())
        })?;
        Ok(paths)
    }

    fn is_database_now(&self, path: &[u8]) -> bool {
        let mut head = [0; 16];
        let file = open_regular_itself(&self.root.join(path_from_bytes(path)));
        file.and_then(|mut file| file.read_exact(&mut head)).is_ok_and(|()| is_database(&head))
    }

    /// The newest checkpoint, if work had ended when it was taken. A restore after such a checkpoint leaves a tree in which no work runs
    /// either.
    fn settled(&self, newest: CheckpointRecord, until: Seq) -> Result<Option<CheckpointRecord>> {
        if newest.settled {
            return Ok(Some(newest));
        }
        if newest.kind != record::CheckpointKind::Restored {
            return Ok(None);
        }
        let work = self.kernel.read(|snapshot| record::newest_of_work_until(snapshot, &self.root, until))?;
        Ok(work.is_some_and(|work| work.settled).then_some(newest))
    }

    /// The trees between which others may have changed something since work had ended, or since the deed first stopped: all the time but
    /// while the deed itself `did` something. A part of it that died in its middle is taken to have done all until the next look.
    fn time_of_others(
        &self,
        settled: Option<Hash>,
        now: &Hash,
        did: &[(CheckpointId, Option<CheckpointId>)],
    ) -> Result<Vec<(Hash, Hash)>> {
        let tree = |id: &CheckpointId| self.kernel.read(|snapshot| record::get(snapshot, id)).map(|found| found.tree);
        //   settled ── others ──▶ before ── the deed ──▶ after ── others ──▶ now
        //
        // Without an `after` the deed died there, and all until the next `before`, or until now, is taken for its own.
        let mut stretches = Vec::new();
        let mut from = settled;
        for (before, after) in did {
            if let Some(from) = from {
                stretches.push((from, tree(before)?));
            }
            from = after.as_ref().map(tree).transpose()?;
        }
        stretches.extend(from.map(|from| (from, *now)));
        Ok(stretches)
    }

    /// What other runs recorded in this root since the target was taken; empty if it is not known to which run the target belongs.
    fn recorded_by_others(&self, target: &CheckpointRecord) -> Result<BTreeMap<Vec<u8>, String>> {
        self.kernel.read(|snapshot| {
            let caller = self.kernel.calling_dispatch(snapshot)?.map(|dispatch| dispatch.run_id);
            let own: Vec<RunId> = target.link.run_id.iter().cloned().chain(caller).collect();
            if own.is_empty() {
                return Ok(BTreeMap::new());
            }
            let mut reasons = BTreeMap::new();
            for (path, run, project) in code::files_of_others(snapshot, &own, target.seq)? {
                if root_of(&project) == self.root {
                    let reason = format!("recorded by run {}", run.short());
                    reasons.insert(path_bytes(&path).to_vec(), reason);
                }
            }
            Ok(reasons)
        })
    }

    /// What changed since the target was taken, until this event, while only work of other runs was under way in this root that tells of no
    /// calls: it may have recorded nothing of it. Nothing where it is not known whose the target is.
    fn changed_by_others(
        &self,
        target: &CheckpointRecord,
        until: Seq,
        reasons: &mut BTreeMap<Vec<u8>, String>,
    ) -> Result<()> {
        let Some(own) = &target.link.run_id else { return Ok(()) };
        let (attribution, caller) = self.kernel.read(|snapshot| {
            let range = (target.seq, until.min(ic_ledger::events::head(snapshot)?.0));
            let caller = self.kernel.calling_dispatch(snapshot)?.map(|dispatch| dispatch.run_id);
            Ok((Attribution::between(snapshot, &self.root, range, target.created_at)?, caller))
        })?;
        let is_other = |work: &Dispatch| {
            let is_own = work.run_id == *own || Some(&work.run_id) == caller.as_ref();
            !is_own && !attribution.is_told_by_calls(&work.id)
        };
        // Without such work no two trees need to be compared.
        if !attribution.workers.iter().any(&is_other) {
            return Ok(());
        }
        for window in attribution.windows() {
            let trees = (Some(&window.from.tree), Some(&window.to.tree));
            diff::diff(&self.objects, trees.0, trees.1, &mut |difference| {
                let owners = window.owners(&difference.path);
                // Only where all that may have made the change are others. Where the run may have made it, it goes
                // back with the run.
                if let Some(first) = owners.first().filter(|_| owners.iter().all(|one| is_other(one))) {
                    let reason = format!("changed while run {} was at work", first.run_id.short());
                    reasons.entry(difference.path).or_insert(reason);
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}
