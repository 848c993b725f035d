//! `ic events redact`

use ic_ops::redact;

use crate::commands::prelude::*;
use crate::views::event::RedactedJson;

/// Remove reason and payload from an event, visibly, without breaking the chain.
///
/// The row that the event recorded loses them too, and the freed space is wiped. The redaction, with its reason, is an
/// event of its own. It cannot be undone.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic events redact 42 --reason 'a token was pasted'")]
pub(crate) struct Redact {
    /// The number of the event
    #[arg(value_name = "SEQ", value_parser = clap::value_parser!(i64).range(1..))]
    seq: i64,
    /// The reason, recorded in an event
    #[arg(long, value_name = "R")]
    reason: String,
    #[command(flatten)]
    door: ForceFlags,
}

impl Redact {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let reason = input::text("--reason", &self.reason)?;
        let kernel = session.kernel_for(self.door.as_deref())?;
        let redaction_seq = redact::redact(&kernel, self.seq, reason, ic_workflow::redact)?;
        session.output.record(&RedactedJson { seq: self.seq, redaction_seq }, || {
            format!("Event {} is redacted; event {redaction_seq} says so.\n", self.seq)
        })
    }
}
