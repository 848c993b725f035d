//! Records one event of a client in one work tree.

use std::path::{Path, PathBuf};

use ic_base::{DispatchId, RunId, title};
use ic_dispatch::dispatch;
use ic_kernel::Kernel;
use ic_kernel::config::{self, Guard};
use ic_ops::hooks::calls::{self, Begun, ToldCall};
use ic_ops::hooks::{self, AskedPrompt, Teller, subagents};
use ic_session::clients::{Client, HookOccasion, may_write, tell};
use ic_worktree::{CaptureSettings, Warning};

use super::payload::{Payload, plain_id};
use super::{Said, guard, places};
use crate::background_sweep;
use crate::commands::prelude::*;
use crate::transcript::Transcript;

/// One event, with the client that told it and the place that it is recorded in.
pub(super) struct Hearing<'h> {
    pub(super) event: &'h str,
    pub(super) session: &'h CliSession,
    pub(super) kernel: &'h Kernel,
    pub(super) teller: Teller<'h>,
    pub(super) client: &'static Client,
    pub(super) payload: &'h Payload<'h>,
    /// How the tree is captured; `None`: it is not captured.
    pub(super) kept: Option<CaptureSettings>,
}

impl Hearing<'_> {
    fn prompt(&self, said: &mut Said) -> Result<()> {
        let Self { session, kernel, client, payload, .. } = *self;
        // A command of ic begins no work, nor does the news that a task has ended: that turn continues the prompt
        // before.
        let Some(text) = payload.prompt() else {
            if payload.is_command() {
                hooks::command(kernel, self.teller)?;
            }
            return if payload.is_unprompted() {
                hooks::go_on(kernel, self.teller, payload.prompt_id())
            } else {
                Ok(())
            };
        };
        let given = self.given(&mut said.warnings)?;
        let id = payload.own_id();
        // If a dispatch started this client, its prompts are a part of that dispatch.
        let parent = session.began_by().and_then(|named| dispatch_named(kernel, named));
        let record = self.record_file();
        let of_record = record.as_ref().and_then(|path| Transcript::of(client, path.to_str(), session.home()));
        let asked = AskedPrompt {
            prompt_id: id.as_deref(),
            text,
            model: payload.text("model"),
            transcript: record.as_deref(),
            transcript_size: of_record.and_then(|record| record.size()),
            parent: parent.as_ref(),
            run: given.run.as_ref(),
            is_heard: client.listens_at_prompts,
            is_unseen: false,
        };
        let recorded = hooks::prompt(kernel, self.teller, &asked, self.kept.as_ref())?;
        said.warnings.extend(recorded.warnings);
        // A session's first prompt also tells how ic works, where the client had no chance to say so when the session began.
        if client.listens_at_prompts {
            let is_late = recorded.is_first && !client.listens_at_begin;
            let welcome = if is_late { Some(self.welcome(&given)?) } else { None };
            // This is said once for each run: the welcome has it already, and later prompts of the same run do not
            // repeat it.
            let unusable = given.unusable.filter(|_| recorded.begins_run && welcome.is_none());
            let news: Vec<String> = recorded.undone.or(welcome).into_iter().chain(unusable).collect();
            said.answer = (!news.is_empty()).then(|| tell(self.event, &news.join(" ")));
        }
        Ok(())
    }

    fn before_call(&self, said: &mut Said) -> Result<()> {
        // News of an undo before the call is recorded: the call is refused, so there is nothing to record.
        if let Some(news) = self.news()? {
            said.answer = Some(self.client.dialect.refuse(&news));
            said.is_refused = true;
            return Ok(());
        }
        // A tool that only reads is not captured, yet is refused if the prompt was undone, so that the agent notices soon.
        if !may_write(self.payload.tool()) {
            said.answer = self.refusal()?.map(|why| self.client.dialect.refuse(&why));
            return Ok(());
        }
        let guard = guard::in_force(self.session, &self.kernel.project.root, &mut said.warnings);
        let begun = self.told(guard, |told| calls::begin(self.kernel, self.teller, told, self.kept.as_ref()))?;
        match begun {
            Begun::Refused(why) => {
                said.answer = Some(self.client.dialect.refuse(&why));
                said.is_refused = true;
            }
            Begun::Doubtful(why, more) => {
                // The call is on record as begun, and not as refused: the person may allow it, and it then runs in the
                // other places as well.
                said.answer = Some(guard::doubt(self.client, guard, &why));
                said.warnings.extend(more);
            }
            Begun::Goes(more) => said.warnings.extend(more),
        }
        Ok(())
    }

    fn after_call(&self) -> Result<Vec<Warning>> {
        if !may_write(self.payload.tool()) {
            return Ok(Vec::new());
        }
        self.told(Guard::Allow, |told| calls::end(self.kernel, self.teller, told, self.kept.as_ref()))
    }

    /// Passes to `hand_on` what the payload says about a tool call.
    pub(super) fn told<T>(&self, guard: Guard, hand_on: impl FnOnce(&ToldCall<'_>) -> Result<T>) -> Result<T> {
        let (kernel, payload) = (self.kernel, self.payload);
        let call = payload.call(&kernel.project.directory, &kernel.project.root);
        let outside = places::without_places(call.outside.clone(), kernel);
        let guarded = guard::guarded(&call, guard, self.session.home());
        // The prompt has given these warnings already; each call would repeat them.
        let given = self.given(&mut Vec::new())?;
        let call_id = payload.text("tool_use_id").map(plain_id);
        hand_on(&ToldCall {
            prompt_id: payload.prompt_id(),
            call_id: call_id.as_deref(),
            agent_id: payload.agent_id(),
            agent_type: payload.text("agent_type"),
            tool: self.payload.tool(),
            line: &call.line,
            paths: &call.paths,
            outside: &outside,
            transcript: payload.text("transcript_path").map(Path::new),
            run: given.run.as_ref(),
            guarded,
        })
    }

    fn subagent_stops(&self) -> Result<Vec<Warning>> {
        let agent = self.payload.agent_id().unwrap_or_default();
        let count = |_| self.transcript("agent_transcript_path")?.tokens_since(0);
        subagents::stop(self.kernel, self.teller, agent, self.kept.as_ref(), &count)
    }

    fn stops(&self, said: &mut Said) -> Result<()> {
        // Asked first: an agent that has to continue has not ended its prompt.
        if self.client.can_hold
            && holds_stops(self.session, self.kernel, &mut said.warnings)
            && let Some(why) = hooks::hold(self.kernel, self.teller, self.kept.as_ref())?
        {
            said.answer = Some(self.client.dialect.hold(&why));
            said.is_refused = true;
            return Ok(());
        }
        // This is a function and not a number: the record may be long, and is read only if a prompt ends here.
        let count = |start: Option<u64>| self.transcript("transcript_path")?.tokens_since(start?);
        said.warnings.extend(hooks::stop(self.kernel, self.teller, self.kept.as_ref(), &count)?);
        background_sweep::sweep(self.session, self.kernel, self.kept.as_ref(), &self.kernel.project.root);
        Ok(())
    }

    fn session_ends(&self) -> Result<()> {
        let count = |start: Option<u64>| self.transcript("transcript_path")?.tokens_since(start?);
        hooks::end(self.kernel, self.teller, self.payload.text("reason"), self.kept.as_ref(), &count)
    }

    /// The text that an agent reads when its session begins.
    fn welcome(&self, given: &Given) -> Result<String> {
        let situation = hooks::situation(self.kernel, self.teller, given.run.as_ref())?;
        let welcome = if self.kernel.ledger.is_of_one_host() { WELCOME } else { WELCOME_TO_SERVER };
        let all = [Some(welcome.to_owned()), situation, given.unusable.clone()];
        Ok(all.into_iter().flatten().collect::<Vec<_>>().join(" "))
    }

    /// The run that `IC_RUN` gives the session. If that run takes no prompts, they are recorded in a run of the session's own.
    fn given(&self, warnings: &mut Vec<Warning>) -> Result<Given> {
        let Some(named) = self.session.named_run() else { return Ok(Given::default()) };
        match usable_run(self.kernel, named) {
            Ok(run) => Ok(Given { run: Some(run), unusable: None }),
            // A ledger that cannot be read says nothing about the run, so the event is kept and recorded later.
            Err(error) if error.kind() == ic_base::ErrorKind::Failure => Err(error),
            Err(error) => {
                let why = error.message().trim_end_matches('.');
                let named = title(named);
                let unusable = format!(
                    "IC_RUN is {named}, and takes no prompts: {why}. They are recorded in a run of the session's own: tell the person."
                );
                warnings.push(Warning { code: error.code().as_str(), message: unusable.clone() });
                Ok(Given { run: None, unusable: Some(unusable) })
            }
        }
    }

    /// The file of the client's record of the session: the payload names it, or its place is known.
    fn record_file(&self) -> Option<PathBuf> {
        let named = self.payload.text("transcript_path").map(PathBuf::from);
        named.or_else(|| Transcript::file_of(self.client, self.teller.client_id, self.session.home()))
    }

    /// The client's record of a session or of a subagent, whose path the payload has under `key`.
    fn transcript(&self, key: &str) -> Option<Transcript> {
        Transcript::of(self.client, self.payload.text(key), self.session.home())
    }

    /// The reason to refuse a call whose prompt was undone; `None`: it was not.
    fn refusal(&self) -> Result<Option<String>> {
        hooks::refusal(self.kernel, self.teller, self.payload.prompt_id(), self.payload.agent_id())
    }

    /// News that the model has not read, because it reads nothing with a prompt. A refusal of the call's own prompt comes first.
    fn news(&self) -> Result<Option<String>> {
        if self.client.listens_at_prompts || self.refusal()?.is_some() {
            return Ok(None);
        }
        hooks::news(self.kernel, self.teller)
    }
}

impl Hearing<'_> {
    /// Records an event in the place where the session began.
    pub(super) fn hear(&self, occasion: HookOccasion, said: &mut Said) -> Result<()> {
        let (hearing, client, payload) = (self, self.client, self.payload);
        match occasion {
            HookOccasion::SessionBegins => {
                // Nothing is recorded yet: a session comes into the ledger with its first prompt.
                let given = hearing.given(&mut said.warnings)?;
                if client.listens_at_begin {
                    said.answer = Some(tell(self.event, &hearing.welcome(&given)?));
                }
            }
            HookOccasion::Prompt => hearing.prompt(said)?,
            HookOccasion::BeforeCall => hearing.before_call(said)?,
            HookOccasion::AfterCall => said.warnings.extend(hearing.after_call()?),
            // An event of a subagent, whatever its client calls it: the prompt's own work continues.
            HookOccasion::SubagentStops | HookOccasion::Stops | HookOccasion::SessionEnds
                if payload.agent_id().is_some() =>
            {
                said.warnings.extend(hearing.subagent_stops()?);
            }
            // Without the name of a subagent it is not known whose work ends.
            HookOccasion::SubagentStops => {}
            HookOccasion::Stops => hearing.stops(said)?,
            HookOccasion::SessionEnds => hearing.session_ends()?,
        }
        Ok(())
    }
}

/// The dispatch that `reference` names; `None` if there is none. A wrong IC_DISPATCH is no reason to lose a prompt.
fn dispatch_named(kernel: &Kernel, reference: &str) -> Option<DispatchId> {
    kernel.read(|snapshot| dispatch::resolve(snapshot, reference)).ok().map(|found| found.id)
}

/// Whether an agent may not stop here while the gate of its run fails, by the user's settings or the project's.
fn holds_stops(session: &CliSession, kernel: &Kernel, warnings: &mut Vec<Warning>) -> bool {
    let own = guard::own_hooks(session, &kernel.project.root, warnings);
    // A configuration that cannot be read must not keep an agent from stopping.
    let of_project = session.config(&config::root_of(kernel, &kernel.project.root)).ok();
    own.gate || of_project.is_some_and(|loaded| loaded.config.gate)
}

/// What an agent reads when its session begins.
const WELCOME: &str = "Each prompt of this session is recorded by `ic`, with the tree before and after it. The person can see it with \
    `ic log` and undo a prompt with `ic undo`; if a tool call is refused because the work was undone, stop and say so.";

/// The same where the ledger is on a server, and keeps no trees.
const WELCOME_TO_SERVER: &str = "Each prompt of this session is recorded by `ic`. The person can see it with `ic log`; if a tool call is \
    refused because the work was undone, stop and say so.";

/// The run that `IC_RUN` gives a session, if it can be used.
#[derive(Default)]
struct Given {
    run: Option<RunId>,
    /// Why the one that is named is not used, for the agent.
    unusable: Option<String>,
}

/// The run that `IC_RUN` names. Errors: those of a lookup, `run_not_active`, and `invalid_value` for one of another project.
fn usable_run(kernel: &Kernel, reference: &str) -> Result<RunId> {
    let run = kernel.read(|snapshot| kernel.run(snapshot, reference))?;
    run.require_active()?;
    // Prompts are captured in the tree where they are given, and a run has the points of one tree.
    if run.project_dir != kernel.project.root {
        let why = format!("The run {} is of another project.", run.id.short());
        return Err(Diagnosis::new(Code::InvalidValue, why));
    }
    Ok(run.id)
}
