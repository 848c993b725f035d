//! Continuing the conversation of an agent from before a prompt, with the client's own command.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ic_base::{CallId, Diagnose};
use ic_dispatch::Dispatch;
use ic_kernel::Kernel;
use ic_ops::exec;
use ic_session::conversation::ConversationCut;
use ic_session::conversation_point;
use ic_session::places::own_name;
use ic_undo::LayeredRollback;

use crate::commands::prelude::*;
use crate::text::shell_word;
use crate::transcript::Transcript;
use crate::views::conversation::{ConversationJson, UndoneConversationJson};

/// The client's own command that continues a conversation.
pub(crate) struct ContinuedConversation {
    pub(crate) client: &'static str,
    pub(crate) words: Vec<String>,
    /// Where it is to be run.
    pub(crate) place: PathBuf,
}

impl ContinuedConversation {
    /// Makes what the client needs to continue from before a prompt in a place. The record that the client keeps is not changed.
    ///
    /// Errors: `no_conversation`.
    pub(crate) fn before(session: &CliSession, kernel: &Kernel, work: &Dispatch, place: Option<&Path>) -> Result<Self> {
        let point = kernel.read(|snapshot| conversation_point::of_work(snapshot, work))?;
        let (of, client) = (&point.session, point.client);
        let named = of.transcript.clone();
        let file = named.or_else(|| Transcript::file_of(client, own_name(&of.client_id), session.home()));
        let record = file.and_then(|file| Transcript::of(client, file.to_str(), session.home()));
        let whole = record.as_ref().and_then(Transcript::whole);
        let new_id: CallId = kernel.context.new_id();
        let place = place.unwrap_or(&of.project_dir);
        let cut = ConversationCut {
            session: own_name(&of.client_id),
            prompt: point.prompt.prompt_id.as_deref(),
            start: point.prompt.transcript_start,
            record: whole.as_ref().map(|(path, text)| (*path, text.as_slice())),
            new_id: new_id.as_str(),
            store: &kernel.store().join("conversations"),
            project: &of.project_dir,
            place,
        };
        let words = match client.conversations {
            Some(conversations) => conversations.before(&cut)?,
            // This is not reached: `of_work` finds no prompt of a client that cannot continue a conversation.
            None => Vec::new(),
        };
        Ok(Self { client: client.name, words, place: place.to_owned() })
    }

    /// As a person types it.
    pub(crate) fn line(&self) -> String {
        let words: Vec<String> = self.words.iter().map(|word| shell_word(word)).collect();
        format!("cd {} && {}", shell_word(&self.place.to_string_lossy()), words.join(" "))
    }

    pub(crate) fn record(&self) -> ConversationJson {
        ConversationJson::new(self.client, &self.words, &self.place, self.line())
    }

    /// Says on standard error what is run.
    pub(crate) fn announce(&self, session: &CliSession) {
        if !session.output.is_quiet() {
            // With stderr closed the line is lost, and the call still succeeds.
            let _ = writeln!(anstream::stderr(), "{}", self.line());
        }
    }

    /// Runs it in place of this process, with more arguments. Returns only if that fails.
    pub(crate) fn run(&self, arguments: &[OsString]) -> Result<ExitStatus> {
        let words: Vec<OsString> = self.words.iter().map(OsString::from).chain(arguments.iter().cloned()).collect();
        // This is called for its error, which says what was looked for and not found.
        exec::require_startable(&words, &self.place)?;
        let (program, rest) = words.split_first().map_or((OsString::new(), &[][..]), |(one, rest)| (one.clone(), rest));
        // PWD is set by hand: `current_dir` leaves the old one, and a program may believe it.
        let failed = Command::new(program).args(rest).current_dir(&self.place).env("PWD", &self.place).exec();
        Err(failed).while_doing(|| format!("running {}", self.line()))
    }
}

/// The commands that continue the conversations whose newest prompts were undone; none for a preview.
pub(crate) fn of_undone(kernel: &Kernel, whole: &LayeredRollback) -> Vec<UndoneConversationJson> {
    let plan = &whole.rollback.plan;
    if whole.rollback.done.is_none() || !whole.refusals.is_empty() {
        return Vec::new();
    }
    let works: Vec<&Dispatch> = plan.cancelled_dispatches.iter().chain(&plan.marked_dispatches).collect();
    // The undo is done: an error here is no reason to report another outcome.
    let found = kernel.read(|snapshot| conversation_point::first_of(snapshot, &works)).unwrap_or_default();
    found.iter().map(UndoneConversationJson::from).collect()
}
