//! `ic events verify`

use ic_ledger::events::{ExpectedHead, parse_hex};

use crate::commands::prelude::*;
use crate::views::event::VerifyJson;

/// Verify the hash chain of all events: the record is as it was written.
///
/// If it is not, exit 2 and the first wrong event is named. A chain alone cannot show that its end is missing: keep
/// its head elsewhere and pass it with --expect-head.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic events verify
  head=$(ic events verify --json | jq -r '\"\\(.chain_head.seq):\\(.chain_head.hash)\"')   # keep it elsewhere
  ic events verify --expect-head \"$head\"")]
pub(crate) struct EventsVerifyArgs {
    /// The hash that event SEQ must have
    #[arg(long, value_name = "SEQ:HASH")]
    expect_head: Option<String>,
}

impl EventsVerifyArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let expected = self.expect_head.as_deref().map(parse_head).transpose()?;
        let kernel = session.kernel()?;
        let report = kernel.read(|snapshot| ic_ledger::events::verify(snapshot, expected))?;
        session.output.record(&VerifyJson::from(&report), || views::event::verified(&report))?;
        // The report is printed first: the error alone would not say how far the chain is intact.
        match report.first_bad {
            None => Ok(ExitStatus::Done),
            Some((seq, problem)) => {
                Err(Diagnosis::new(Code::ChainBroken, format!("Event {seq} does not verify: {problem}."))
                    .hint("the ledger was changed from outside or is damaged; compare it with a backup")
                    .detail("seq", seq))
            }
        }
    }
}

fn parse_head(text: &str) -> Result<ExpectedHead> {
    text.split_once(':')
        .and_then(|(seq, hash)| {
            let seq = seq.parse().ok().filter(|seq| *seq >= 0)?;
            Some(ExpectedHead { seq, hash: parse_hex(hash)? })
        })
        .ok_or_else(|| {
            Diagnosis::new(Code::InvalidValue, "--expect-head must be SEQ:HASH, a number and 64 hex digits.")
                .hint("as printed by: ic events verify --json | jq -r '\"\\(.chain_head.seq):\\(.chain_head.hash)\"'")
                .detail("value", "--expect-head")
        })
}
