//! Work that was undone goes no further: its calls are refused, and its agent hears of it.

use ic_base::display::counted;
use ic_base::{CheckpointId, Result, RollbackId, title};
use ic_dispatch::dispatch::{self, Dispatch};
use ic_kernel::Kernel;
use ic_kernel::journal::table::{self, RollbackRecord, RollbackStatus};
use ic_kernel::journal::{LayerName, StepDetail, StepKind, steps};
use ic_ledger::Snapshot;
use ic_phase::run;
use ic_session::{self as session, AgentSession};

use super::caller::{Teller, latest_of};
use super::subagents;

/// Why the agent of a session may do nothing more until a person types again; `None`: it may. `prompt_id`: the prompt that the call is made
/// for, where the client says so: a call of a prompt that has stopped may arrive late. `agent_id`: the subagent that makes it.
pub fn refusal(
    kernel: &Kernel,
    teller: Teller<'_>,
    prompt_id: Option<&str>,
    agent_id: Option<&str>,
) -> Result<Option<String>> {
    kernel.read(|snapshot| {
        let own = of_subagent(snapshot, teller, prompt_id, agent_id)?;
        // Whether the prompt has ended makes no difference: an agent may resume by itself, because a background task of it ended, before a
        // person types again.
        let (work, whose) = match (own, latest_of(snapshot, teller)?) {
            (Some(own), _) => (own, "Your work here"),
            (None, Some(prompt)) => (dispatch::get(snapshot, &prompt.dispatch_id)?, "Your work for this prompt"),
            (None, None) => return Ok(None),
        };
        let by = rolled_back_by(snapshot, &work)?.map(|by| table::get(snapshot, &by)).transpose()?;
        let spoken = teller.session(snapshot)?.and_then(|known| known.spoken_seq);
        // A person who has since typed a command of ic to this agent wants it carried out.
        if let Some(rollback) = by.filter(|by| spoken.is_none_or(|spoken| spoken < by.seq)) {
            if !rollback.status.is_over() {
                return Ok(Some(format!("{} Stop here, say so, and wait for the next prompt.", unfinished(&rollback))));
            }
            // In this case the sentence below names the work, and only what became of files is left to say.
            let is_alone = rollback.chosen() == [work.id.clone()];
            let what = if is_alone { files_of(snapshot, &rollback)? } else { told(snapshot, &rollback)? };
            let name = title(work.work.name.as_deref().unwrap_or_default());
            let why = rollback.reason.as_deref().map(|why| format!(" Why: {}.", title(why).trim_end_matches('.')));
            return Ok(Some(format!(
                "{whose} ({name:?}) was undone: {what}.{} Stop here, say so, and wait for the next prompt.",
                why.unwrap_or_default()
            )));
        }
        // The work stands, but its run is closed for a rollback, which may be about to change the same files.
        let run = run::get(snapshot, &work.run_id)?;
        if run.require_settled().is_err() {
            let is_stopped = table::unfinished_of(snapshot, &run.id)?;
            let what = is_stopped.map_or("This work is being undone at the moment.".to_owned(), |by| unfinished(&by));
            return Ok(Some(format!("{what} Stop here, say so, and wait for the next prompt.")));
        }
        Ok(None)
    })
}

/// What is said of an undo of the work that is not finished.
fn unfinished(rollback: &RollbackRecord) -> String {
    // It may end by itself in a moment, so no command is named.
    if rollback.status == RollbackStatus::InProgress {
        return "This work is being undone at the moment.".to_owned();
    }
    let id = rollback.id.short();
    format!(
        "An undo of this work stopped half-way, so the files may be in either state: the person can finish it (ic rollback resume {id} --yes) or \
         abort it (ic rollback abort {id} --yes)."
    )
}

/// The newest work of the subagent that makes a call, if that call is made for the prompt that began it: for a later one it begins anew.
fn of_subagent(
    snapshot: &Snapshot<'_>,
    teller: Teller<'_>,
    prompt_id: Option<&str>,
    agent_id: Option<&str>,
) -> Result<Option<Dispatch>> {
    let Some(session) = teller.session(snapshot)? else {
        return Ok(None);
    };
    let Some(work) = agent_id.map_or(Ok(None), |agent| subagents::newest(snapshot, &session, agent))? else {
        return Ok(None);
    };
    let named = match prompt_id {
        Some(id) => session::by_prompt_id(snapshot, &session.id, id)?,
        None => session::latest(snapshot, &session.id)?,
    };
    Ok(named.is_some_and(|prompt| Some(&prompt.dispatch_id) == work.work.parent_id.as_ref()).then_some(work))
}

/// The rollback that undid work, or the work that began it.
fn rolled_back_by(snapshot: &Snapshot<'_>, work: &Dispatch) -> Result<Option<RollbackId>> {
    Ok(dispatch::with_parents(snapshot, work)?.into_iter().find_map(|one| one.rolled_back_by))
}

/// Records that a person typed a command of ic to an agent: it is no prompt, and what it makes the agent do is not refused for what was
/// undone before.
pub fn command(kernel: &Kernel, teller: Teller<'_>) -> Result<()> {
    let known = |snapshot: &Snapshot<'_>| teller.session(snapshot);
    if kernel.read(known)?.is_none() {
        return Ok(());
    }
    kernel.write(|tx, _| known(tx)?.map_or(Ok(()), |known| session::spoken(tx, &known)))
}

/// What was undone since the agent of a session last heard of it, said once: its next call is refused with it, where its client lets no
/// answer to a prompt through to the model.
pub fn news(kernel: &Kernel, teller: Teller<'_>) -> Result<Option<String>> {
    let pending = |snapshot: &Snapshot<'_>| -> Result<Option<(AgentSession, String)>> {
        let Some(known) = teller.session(snapshot)? else {
            return Ok(None);
        };
        Ok(since_told(snapshot, &known)?.map(|text| (known, text)))
    };
    // Asked in a read first: each call comes here, and nearly always there is no news worth a write.
    if kernel.read(pending)?.is_none() {
        return Ok(None);
    }
    kernel.write(|tx, _| {
        // Calls come at the same time, and only one of them is to be refused for the news.
        let Some((known, text)) = pending(tx)? else { return Ok(None) };
        let newest = untold(tx, &known)?.last().map_or(known.told_seq, |rollback| rollback.seq);
        session::told(tx, &known, newest)?;
        Ok(Some(format!("{text} This call was refused once to tell you: read the files again, then continue.")))
    })
}

/// What was undone of a session's work since its agent last heard of it, for the agent.
pub(super) fn since_told(snapshot: &Snapshot<'_>, session: &AgentSession) -> Result<Option<String>> {
    let mut news = Vec::new();
    for rollback in untold(snapshot, session)? {
        let is_over = rollback.status.is_over();
        news.push(if is_over { told(snapshot, &rollback)? } else { half_way(&rollback) });
    }
    Ok((!news.is_empty()).then(|| format!("Since your last answer {}.", news.join("; "))))
}

/// The rollbacks of a session's work that stand, and of which its agent has not heard.
fn untold(snapshot: &Snapshot<'_>, session: &AgentSession) -> Result<Vec<RollbackRecord>> {
    // In a session that was resumed, the undo may have been in a run that the session worked in before. Its latest prompts name those runs.
    const RECENT: i64 = 8;
    let mut runs = vec![session.run_id.clone()];
    for prompt in session::newest(snapshot, &session.id, RECENT)? {
        runs.push(dispatch::get(snapshot, &prompt.dispatch_id)?.run_id);
    }
    runs.sort_unstable();
    runs.dedup();
    let mut found = Vec::new();
    for run in &runs {
        let all = table::of_run(snapshot, run)?;
        found.extend(all.into_iter().filter(|one| one.status.stands() && one.seq > session.told_seq));
    }
    found.sort_unstable_by_key(|one| one.seq);
    Ok(found)
}

fn half_way(rollback: &RollbackRecord) -> String {
    let id = rollback.id.short();
    format!("an undo of earlier work stopped half-way, so files may be in either state (ic rollback resume {id} --yes)")
}

/// `the person went back to before "add a login"; 4 files changed: ic checkpoint diff 6a99b44f --stat`
fn told(snapshot: &Snapshot<'_>, rollback: &RollbackRecord) -> Result<String> {
    let named = |id: &str| -> Result<String> {
        let name = dispatch::resolve(snapshot, id)?.work.name.unwrap_or_default();
        Ok(format!("{:?}", title(&name)))
    };
    let point = rollback.point().and_then(|point| point.split_once(':'));
    let what = match (rollback.chosen().as_slice(), point) {
        ([only], _) => format!("the person undid {}", named(only.as_str())?),
        ([first, later @ ..], _) => {
            let later = if later.len() == 1 { "prompt" } else { "prompts" };
            format!("the person undid {} and the later {later} of that session", named(first.as_str())?)
        }
        ([], Some(("prompt" | "dispatch", id))) => {
            format!("the person went back to before {}", named(id)?)
        }
        ([], _) => format!("the person went back to the phase {}", title(&rollback.to_phase)),
    };
    Ok(format!("{what}; {}", files_of(snapshot, rollback)?))
}

/// What became of files, and the command that names them.
fn files_of(snapshot: &Snapshot<'_>, rollback: &RollbackRecord) -> Result<String> {
    let mut made = None;
    for step in steps::of_rollback(snapshot, &rollback.id)? {
        // More than one step may have written the tree. The last one says what is there now.
        if step.kind == StepKind::Tree {
            let StepDetail { changes, directories, mut safety, .. } = step.detail;
            made = Some((changes, directories, safety.pop()));
        }
    }
    let named = |safety: Option<CheckpointId>| {
        safety.map(|safety| format!(" (which: ic checkpoint diff {} --stat)", safety.short())).unwrap_or_default()
    };
    Ok(match made {
        Some((0, ..)) => "no file changed".to_owned(),
        Some((paths, directories, safety)) => {
            format!("{} changed{}", files_and(paths.saturating_sub(directories), directories), named(safety))
        }
        None if rollback.layers.contains(&LayerName::Files) => "files are as they were then".to_owned(),
        None => "files stay as they are".to_owned(),
    })
}

/// `2 files and 1 directory`
fn files_and(files: usize, directories: usize) -> String {
    let counts = [(files, "file"), (directories, "directory")];
    let named: Vec<_> = counts.iter().filter(|(n, _)| *n > 0).map(|(n, noun)| counted(*n, noun)).collect();
    named.join(" and ")
}
