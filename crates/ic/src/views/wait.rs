//! What was waited for, at the end of the wait.

use ic_base::Code;
use ic_ops::wait::{Awaited, AwaitedEnd, AwaitedSubject, WaitStop};

use crate::text::{plain, style, styled};
use crate::views;

shape! {
    /// A dispatch or a run at the end of a wait (`wait`).
    pub(crate) struct AwaitedJson from (one: &Awaited, stop: WaitStop) where
        (work, run) = match &one.subject {
            AwaitedSubject::Work(work) => (Some(work), None),
            AwaitedSubject::Run(run) => (None, Some(run)),
        };
    {
        #[cfg_attr(test, schemars(extend("enum" = ["dispatch", "run"])))]
        kind: &'static str = if work.is_some() { "dispatch" } else { "run" },
        id: String = work.map(|work| work.id.to_string()).or(run.map(|run| run.id.to_string())).unwrap_or_default(),
        short_id: String = work.map(|work| work.id.short()).or(run.map(|run| run.id.short())).unwrap_or_default().to_owned(),
        /// The run itself, or that of the dispatch.
        run_id: String = work.map(|work| &work.run_id).or(run.map(|run| &run.id)).map(ToString::to_string).unwrap_or_default(),
        /// The name of a dispatch, or the goal of a run.
        name: Option<String> = work.map_or_else(|| run.map(|run| run.goal.clone()), |work| work.work.name.clone()),
        /// Its state, as of a dispatch or of a run.
        status: &'static str = work.map(|work| work.status.as_str()).or(run.map(|run| run.status.as_str())).unwrap_or_default(),
        verdict: Option<&'static str> = work.and_then(|work| work.verdict).map(ic_dispatch::WorkVerdict::as_str),
        summary: Option<String> = work.and_then(|work| work.summary.clone()),
        error: Option<String> = work.and_then(|work| work.error.clone()),
        /// The rollback that undid the dispatch; null: it counts.
        rolled_back_by: Option<String> = work.and_then(|work| work.rolled_back_by.as_ref()).map(ToString::to_string),
        /// Null: its end is on record. Else why the wait ended before it: `timed_out`, `process_gone`, `lost`, or `not_finished` for a run
        /// whose workflow has stopped, and with --any for what goes on.
        #[cfg_attr(test, schemars(extend("enum" = crate::views::tests::schema_words::or_null(&[Code::ProcessGone, Code::Lost, Code::TimedOut, Code::NotFinished].map(Code::as_str)))))]
        code: Option<&'static str> = code(one, stop).map(Code::as_str),
    }
}

fn code(one: &Awaited, stop: WaitStop) -> Option<Code> {
    match (one.end, stop) {
        (Some(AwaitedEnd::Recorded), _) => None,
        (Some(AwaitedEnd::ProcessGone), _) => Some(Code::ProcessGone),
        (Some(AwaitedEnd::Lost), _) => Some(Code::Lost),
        (None, WaitStop::TimedOut) => Some(Code::TimedOut),
        (Some(AwaitedEnd::Stopped), _) | (None, WaitStop::Ended | WaitStop::Interrupted) => Some(Code::NotFinished),
    }
}

/// A line each, with the reason where the wait ended before it did.
pub(crate) fn awaited(all: &[Awaited], stop: WaitStop) -> String {
    if all.is_empty() {
        return "nothing is under way\n".to_owned();
    }
    let line = |one: &Awaited| {
        let line = match &one.subject {
            AwaitedSubject::Work(work) => views::dispatch::one_line(work),
            AwaitedSubject::Run(run) => {
                format!("{} {} is {}\n", styled(style::STRONG, run.id.short()), plain(&run.goal), run.status.as_str())
            }
        };
        let why = match code(one, stop) {
            Some(Code::ProcessGone) => "its process is gone, and nothing recorded its end",
            Some(Code::Lost) => "it is lost: it has been silent for too long",
            Some(Code::TimedOut) => "the timeout passed",
            Some(_) if one.end.is_some() => "its workflow has stopped; see: ic status",
            Some(_) => "another one ended first",
            None => return line,
        };
        format!("{}: {}\n", line.trim_end(), styled(style::BAD, why))
    };
    all.iter().map(line).collect()
}
